# SPDX-License-Identifier: GPL-2.0-only
"""One cause after another that takes TCP off its cheap ways; pathprof explain
must name each first at its branch.  Everything else is left as it is, so what
a cause drags along must be told apart from it."""
import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time

import connections
import estimate
from connections import (connect, enter, option, receive, run, setting, sh,
                         transfer, wait_until)

PP = os.environ["PP"]
MPTCP = 262
SMALL = 100


class Recording:
    """What explain says of the packets of the next connection's port."""

    def __init__(self, port=None):
        self.file = tempfile.NamedTemporaryFile(suffix=".json")
        ready, theirs = os.pipe()
        self.process = subprocess.Popen(
            [PP, "record", "--sample", "1", "-o", self.file.name, "--port",
             str(port or connections.port + 1), "--ready-fd", str(theirs)],
            pass_fds=[theirs], stderr=subprocess.PIPE, text=True)
        os.close(theirs)
        if os.read(ready, 1) != b"\n":
            raise AssertionError(self.process.communicate()[1])
        os.close(ready)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert not self.process.wait(), self.process.stderr.read()
        out = subprocess.run([PP, "explain", "--json", self.file.name],
                             check=True, capture_output=True, text=True)
        return {b["branch"]: b for b in json.loads(out.stdout)["branches"]}

    def names(self, branch, *facts):
        """The first fact of the branch is one of these, and has packets."""
        b = self.stop()[branch]
        ways = " ".join(f"{w['way']}: {w['packets']}" for w in b["ways"])
        told = ", ".join(f"{f['fact']} {f['packets'][1]}/{f['packets'][0]}"
                         for f in b["facts"])
        print(f"# {branch}: {ways}; {told or 'nothing'}")
        assert b["facts"] and b["facts"][0]["fact"] in facts, facts
        assert b["facts"][0]["packets"][1] > 0


@contextlib.contextmanager
def qdisc(what):
    sh(f"tc -n a qdisc add dev va root {what}")
    try:
        yield
    finally:
        sh("tc -n a qdisc del dev va root")


def bulk(size=300000, **more):
    sock, peer = connect(**more)
    transfer(sock, peer, size)
    sock.close()
    peer.close()


def out_of_order():
    """out of order: prediction fails by the out-of-order queue"""
    with qdisc("netem delay 5ms reorder 60%"):
        r = Recording()
        bulk(2000000)
        r.names("prediction of data", "out-of-order queue")


def window_change():
    """a window that changes: prediction of ACKs fails by it"""
    r = Recording()
    sock, peer = connect(rcvbuf=60000)
    for _ in range(20):
        sock.sendall(bytes(20000))
        receive(peer, 20000)
    sock.close()
    peer.close()
    r.names("prediction of acks", "window change")


def no_timestamps():
    """segments without the agreed timestamps: prediction fails by them"""
    tun = estimate.device()
    r = Recording(estimate.Peer.port + 1)
    peer = estimate.Peer(tun)
    peer.deliver([1000] * 40)
    peer.close()
    r.names("prediction of data", "timestamp")


def unread(sock):
    return int.from_bytes(fcntl.ioctl(sock, termios.FIONREAD, bytes(4)),
                          sys.byteorder)


def receive_buffer():
    """a receive buffer that shrank under its data: prediction is off for it"""
    with qdisc("netem delay 5ms"):
        r = Recording()
        sock, peer = connect()
        option(sock, socket.TCP_NODELAY, 1)
        sock.send(bytes(30000))
        wait_until(lambda: unread(peer) == 30000, "the data")
        # The sender was offered more, and has sent it when it hears of that.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        for _ in range(20):
            sock.send(bytes(1000))
        time.sleep(0.1)  # some sent again
        sock.close()
        peer.close()
        r.names("prediction of data", "receive buffer")


def forward_alloc():
    """large packets over loopback: prediction fails by reserved memory"""
    r = Recording()
    bulk(4000000, server="b", client="b")
    r.names("prediction of data", "forward alloc")


def urgent():
    """urgent data: prediction fails by it"""
    r = Recording()
    sock, peer = connect()
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)
    for _ in range(20):
        sock.send(b"x", socket.MSG_OOB)
        receive(peer, 1)  # one packet each
    sock.close()
    peer.close()
    r.names("prediction of data", "urgent")


def mptcp():
    """MPTCP: prediction is off for it"""
    r = Recording()
    bulk(protocol=MPTCP)
    r.names("prediction of data", "mptcp")


def backlog():
    """a busy owner: packets go to the backlog"""
    r = Recording()
    bulk(2000000, server="b", client="b")
    r.names("backlog", "socket owned")


def gro():
    """a driver without GRO: nothing is merged"""
    r = Recording()
    sock, peer = connect()
    for _ in range(20):  # one by one: what GSO left whole needs no merging
        sock.sendall(bytes(1000))
        receive(peer, 1000)
    sock.close()
    peer.close()
    r.names("gro", "no gro", "gro off")


def early_demux():
    """early demux switched off"""
    with setting("b", "ipv4/ip_early_demux", 0):
        r = Recording()
        bulk()
        r.names("demux", "early demux off")


def queued():
    """a queueing discipline that delays"""
    with qdisc("netem delay 1ms"):
        r = Recording()
        bulk(100000)
        r.names("qdisc", "queued")


def nagle():
    """small writes: Nagle holds them back"""
    with qdisc("netem delay 5ms"):
        r = Recording()
        sock, peer = connect()
        for _ in range(60):
            sock.send(bytes(SMALL))
            time.sleep(0.002)  # several within a round trip
        receive(peer, 60 * SMALL)
        sock.close()
        peer.close()
        r.names("hold", "held by nagle or cork")


def tso():
    """TSO switched off: segmentation is in software"""
    sh("ip netns exec a ethtool -K va tso off gso off")
    r = Recording()
    bulk()
    sh("ip netns exec a ethtool -K va tso on gso on")
    r.names("split", "tso off", "software split")


def tsq():
    """a slow device queue: TSQ holds data back"""
    # 7.2 allows 4 MB, which other limits come before.
    sh("ip netns exec a sysctl -qw net.ipv4.tcp_limit_output_bytes=16384")
    with qdisc("tbf rate 40mbit burst 5k limit 2mb"):
        r = Recording()
        bulk(600000)
        r.names("hold", "held by tsq")


if __name__ == "__main__":
    enter("")
    run([out_of_order, window_change, no_timestamps, receive_buffer,
         forward_alloc, urgent, mptcp, backlog, gro, early_demux, queued,
         nagle, tso, tsq])
