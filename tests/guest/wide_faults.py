# SPDX-License-Identifier: GPL-2.0-only
"""Faults of applications, tables of the host, routes and paths, and healthy loads of
many kinds: the first diagnosis of msstune, and what it must not propose.  Prints
"ok NAME" or "not ok NAME" for each case, and remarks.

usage: wide_faults.py faults|healthy|NAME...
FACTS=DIR in the environment: store the facts of each case in DIR.
"""
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/guest"))

import faults  # noqa: E402
from faults import ADDRESS, PORT, children, pair, put, sh  # noqa: E402
from mssab.netns import inside  # noqa: E402
from msstune import plan  # noqa: E402

TCP_CORK = 3
INTERVAL = 2.0
faults.A, faults.B = A, B = "wide-a", "wide-b"
CGROUP = Path("/sys/fs/cgroup/wide")


# --- Loads: each is a generator of child functions ----------------------------

def listening(backlog=64, port=PORT, **options):
    with inside(B):
        return socket.create_server((ADDRESS, port), backlog=backlog, **options)


def connected(port=PORT, nodelay=False):
    with inside(A):
        sock = socket.socket()
    if nodelay:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.connect((ADDRESS, port))
    return sock


def forever():
    while True:
        time.sleep(1000)    # until it is killed


@contextmanager
def programs(*functions):
    pids = children(*functions)
    try:
        yield pids
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def serve(handle, backlog=64, count=1, port=PORT):
    """Programs that accept @count connections and handle each with its own."""
    listener = listening(backlog, port)

    def one():
        while True:
            peer = listener.accept()[0]
            try:
                handle(peer)
            except OSError:
                pass
            peer.close()
    return [one] * count


def never_accepts():
    listener = listening(1)

    def run():
        forever()
        listener.close()
    return run


def discard(peer):
    while peer.recv(1 << 18):
        pass


def echo(size):
    def handle(peer):
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            got = 0
            while got < size:
                data = peer.recv(size - got)
                if not data:
                    return
                got += len(data)
            peer.sendall(bytes(size))
    return handle


def bulk(sock=None, write=1 << 16, pause=0.0, nodelay=False):
    def run():
        with (sock or connected(nodelay=nodelay)) as own:
            while True:
                own.sendall(bytes(write))
                if pause:
                    time.sleep(pause)
    return run


def no_reader(peer):
    peer.recv(10000)
    forever()


def two_writes():
    """A request in two writes, and its answer."""
    sock = connected()
    while True:
        sock.sendall(bytes(100))
        sock.sendall(bytes(100))
        got = 0
        while got < 200:
            got += len(sock.recv(200))


def corked():
    sock = connected()
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CORK, 1)
    while True:
        sock.sendall(bytes(200))
        got = 0
        while got < 200:
            got += len(sock.recv(200))


def requests(size, pause=0.0, many=0):
    """Requests with an answer of their size; @many: of a connection."""
    def run():
        while True:
            with connected(nodelay=True) as sock:
                number = 0
                while not many or number < many:
                    number += 1
                    sock.sendall(bytes(size))
                    got = 0
                    while got < size:
                        got += len(sock.recv(size - got))
                    time.sleep(pause)
    return run


def transfers(size, pause=0.0):
    """Short connections that send so much."""
    def run():
        while True:
            try:
                with connected() as sock:
                    sock.settimeout(5)
                    sock.sendall(bytes(size))
                    sock.shutdown(socket.SHUT_WR)
                    sock.recv(1)
            except OSError:
                pass
            time.sleep(pause)   # also between attempts that fail at once
    return run


def attempts(count):
    """Connection attempts, each on its own."""
    def run():
        socks = []
        for _ in range(count):
            with inside(A):
                sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex((ADDRESS, PORT))
            socks.append(sock)
        time.sleep(0.5)     # until those that can are connected
        for sock in socks:
            try:
                sock.send(b"hello")
            except OSError:
                pass
        forever()
    return run


def drained(handle, first=100_000):
    """Reads so much, then handles."""
    def run(peer):
        got = 0
        while got < first:
            got += len(peer.recv(1 << 16))
        handle(peer)
    return run


def limited(quota):
    """The rest of this process in a cgroup with a CPU quota."""
    CGROUP.mkdir(exist_ok=True)
    (CGROUP / "cpu.max").write_text(f"{quota} 100000\n")
    (CGROUP / "cgroup.procs").write_text(f"{os.getpid()}\n")


def slow_by_quota(peer):
    limited(5000)
    while peer.recv(1 << 14):
        sum(range(3000))


# --- Cases ----------------------------------------------------------------------

def nft(end, rule):
    sh(f"ip netns exec ${end} nft add table inet own; ip netns exec ${end} nft add "
       f"chain inet own c '{{ type filter hook {rule[0]} priority 0; }}'; "
       f"ip netns exec ${end} nft add rule inet own c {rule[1]}")


#: Random loss of ACKs only: netem at the receiver.
ACK_LOSS = "tc -n $B qdisc change dev vb root netem limit 10000 delay 25ms loss 40%"
DROP = ("input", "'meta l4proto tcp numgen random mod 100 < 3 counter drop'")
HTB = ("tc -n $A qdisc add dev va root handle 1: htb default 1; "
       "tc -n $A class add dev va parent 1: classid 1:1 htb rate 2mbit")
POLICE = ("tc -n $B qdisc add dev vb ingress; tc -n $B filter add dev vb parent ffff: "
          "protocol ip matchall action police rate "
          "4mbit burst 15k conform-exceed drop")

#: name: pair(), commands before and after the load starts, programs, where to look,
#: the limits that are right, those that are right but for "high" confidence, settings
#: that must not be proposed.
CASES = {
    "a reader that stopped": dict(
        load=lambda: [*serve(drained(lambda _: forever())), bulk()], at="B",
        want=["reader-stopped"]),
    "the same, seen by the sender": dict(
        load=lambda: [*serve(drained(lambda _: forever())), bulk()],
        want=["peer-stopped"], never=["tcp_rmem", "tcp_wmem"]),
    "Nagle and a delayed ACK": dict(
        pair={"rtt_ms": 1}, load=lambda: [*serve(echo(200)), two_writes],
        want=["nagle"]),
    "a cork left on": dict(
        pair={"rtt_ms": 1}, load=lambda: [*serve(echo(200)), corked],
        want=["cork"]),
    "an accept queue that overflows": dict(
        load=lambda: [never_accepts(), attempts(12)], at="B",
        want=["accept-queue"], never=["mtu_probing"]),
    "the same, seen by the client": dict(
        load=lambda: [never_accepts(), attempts(12)],
        want=["peer-accept-queue", "no-answer", "unknown"], never=["mtu_probing"]),
    "a dead link": dict(
        load=lambda: [*serve(discard), bulk()],
        fault="ip -n $B link set vb down", wait=2.5, want=["path-down"],
        never=["mtu_probing"]),
    "a next hop that does not answer": dict(
        load=lambda: [transfers(100)], before="ip -n $B addr del 10.9.0.2/24 dev vb; "
        "ip -n $B addr add 10.9.0.3/24 dev vb", want=["path-down"], wait=2.5),
    "packets dropped without an answer": dict(
        load=lambda: [attempts(2)], before=lambda: nft("B", ("input", "drop")),
        wait=2.5, want=["no-answer"]),
    "an MTU black hole": dict(
        pair={"mtu": 9000}, before="ip -n $B link set vb mtu 1500; "
        f"ip -n $B route change 10.9.0.0/24 dev vb src {ADDRESS} advmss 8960; "
        "ip netns exec $A ethtool -K va gso off tso off",
        load=lambda: [*serve(discard), bulk()], wait=2.0, want=["mtu"]),
    "own firewall": dict(
        before=lambda: nft("B", DROP), load=lambda: [*serve(discard), bulk()],
        at="B", want=["own-firewall"]),
    "conntrack is full": dict(
        host={"net.netfilter.nf_conntrack_max": 4},
        before=lambda: nft("B", ("input", "ct state new counter accept")),
        load=lambda: [*serve(discard, count=8), attempts(30)], at="B",
        want=["conntrack-full"], wait=2.0),
    "no local port is left": dict(
        a={"net.ipv4.ip_local_port_range": "40000 40019"}, pair={"rtt_ms": 1},
        load=lambda: [*serve(discard, count=4), transfers(100)],
        want=["ports-used-up"], wait=2.0),
    "a CPU quota": dict(
        load=lambda: [*serve(slow_by_quota), bulk()], at="B", want=["cpu-quota"]),
    "a queue of two seconds": dict(
        pair={"ingress": "rate 5mbit", "rtt_ms": 20}, wait=4.0,
        load=lambda: [*serve(discard), bulk()], want=["bufferbloat"],
        never=["tcp_rmem", "tcp_wmem"]),
    "HTB": dict(
        pair={"egress": HTB}, load=lambda: [*serve(discard, count=2), bulk(), bulk()],
        want=["shaper"]),
    "a policer": dict(
        before=POLICE, load=lambda: [*serve(discard), bulk()], wait=3.0,
        want=["policer"], unsure=["loss"], never=["congestion_control"]),
    "reordering": dict(
        pair={"ingress": "reorder 70% 25%"}, load=lambda: [*serve(discard), bulk()],
        want=["reordering"]),
    "lost ACKs": dict(
        before=ACK_LOSS, load=lambda: [*serve(echo(20000)), requests(20000)],
        want=["ack-loss", "unknown"]),
    "many small writes": dict(
        pair={"rtt_ms": 20}, load=lambda: [*serve(discard), bulk(
            write=50, nodelay=True)], want=["small-writes"]),
    "a route with initcwnd 1": dict(
        before="ip -n $A route change 10.9.0.0/24 dev va src 10.9.0.1 initcwnd 1",
        a={"net.ipv4.tcp_no_metrics_save": 1},
        load=lambda: [*serve(discard, count=2), transfers(60000), transfers(60000)],
        want=["initcwnd"]),
    # Autotuning would grow the window beyond it, and it counts only for the end
    # that connects.
    "a route with a window": dict(
        a={"net.ipv4.tcp_moderate_rcvbuf": 0},
        before="ip -n $A route change 10.9.0.0/24 dev va src 10.9.0.1 window 9000",
        load=lambda: [*serve(lambda peer: bulk(peer)()),
                      lambda: discard(connected())], want=["route-window"],
        never=["tcp_rmem"]),
    "SO_SNDBUF of the program": dict(
        load=lambda: [*serve(discard), small_sndbuf], want=["send-buffer"],
        never=["tcp_wmem"]),
    "an old threshold": dict(
        a={"net.ipv4.tcp_no_ssthresh_metrics_save": 0}, metrics=True,
        load=lambda: [*serve(discard), bulk()],
        want=["stale-metrics"]),
    "bursts after a pause": dict(
        load=lambda: [*serve(discard), bulk(write=300_000, pause=0.7)],
        want=["idle-restart"], wait=3.0),
}


def small_sndbuf():
    with inside(A):
        sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
    sock.connect((ADDRESS, PORT))
    bulk(sock)()


#: Nothing is wrong: no fault, and no setting is proposed.
SHORT = {"ingress": "rate 5mbit limit 40"}
HEALTHY = {
    "one bulk transfer": dict(pair=SHORT, load=lambda: [*serve(discard), bulk()]),
    "three bulk transfers": dict(
        pair=SHORT, load=lambda: [*serve(discard, count=3), *[bulk()] * 3]),
    "requests of 200 bytes": dict(load=lambda: [*serve(echo(200)), requests(200)]),
    "requests, 1 ms away": dict(
        pair={"rtt_ms": 1}, load=lambda: [*serve(echo(200)), requests(200, 0.002)]),
    "requests of 20 kB": dict(load=lambda: [*serve(echo(20000)), requests(20000)]),
    "requests with pauses": dict(
        load=lambda: [*serve(echo(1000)), requests(1000, 0.2)]),
    "a connection that does nothing": dict(
        load=lambda: [*serve(discard), lambda: (connected(), forever())]),
    "ten that do nothing, and a transfer": dict(
        pair=SHORT, load=lambda: [*serve(discard, count=11), bulk(),
                                  *[lambda: (connected(), forever())] * 10]),
    "short transfers": dict(
        load=lambda: [*serve(discard, count=2), transfers(5000, 0.05)]),
    "a slow writer": dict(load=lambda: [*serve(discard), bulk(
        write=1000, pause=0.01, nodelay=True)]),
    "a paced stream": dict(load=lambda: [*serve(discard), bulk(
        write=4000, pause=0.02)]),
    "a stream both ways": dict(
        pair=SHORT, load=lambda: [*serve(echo(100_000)), requests(100_000)]),
    "a firewall that drops nothing of ours": dict(
        before=lambda: nft("B", ("input", "udp dport 9 counter drop")), pair=SHORT,
        load=lambda: [*serve(discard), bulk()]),
    "conntrack with room": dict(
        before=lambda: nft("B", ("input", "ct state new counter accept")), pair=SHORT,
        load=lambda: [*serve(discard), bulk()], at="B"),
    "a listener with a queue": dict(
        load=lambda: [*serve(echo(500), count=3), *[requests(500, 0.01)] * 3], at="B"),
    "nothing at all": dict(load=lambda: []),
    "the receiver of a transfer": dict(
        pair=SHORT, load=lambda: [*serve(discard), bulk()], at="B"),
    "the receiver of requests": dict(
        load=lambda: [*serve(echo(200)), requests(200)], at="B"),
    "connections that come and go": dict(
        load=lambda: [*serve(echo(300), count=3), requests(300, many=3)]),
    "a reader that rests shortly": dict(
        pair=SHORT, load=lambda: [*serve(resting), bulk()], at="B"),
}


def resting(peer):
    while peer.recv(1 << 18):
        time.sleep(0.005)


def old_threshold():
    """A cached ssthresh, as an earlier connection leaves it: it lost segments."""
    sh("tc -n $A qdisc change dev va root netem delay 25ms loss 10%")
    with programs(*serve(discard), transfers(60_000)):
        time.sleep(5)       # lossy connections begin and end
    sh("tc -n $A qdisc change dev va root netem delay 25ms loss 0%")


def run(name, want=(), unsure=(), never=(), load=None, pair_=None, a=(), b=(), host=(),
        before="", fault="", at="A", wait=1.2, metrics=False, healthy=False):
    kept = {}
    with ExitStack() as stack:
        pair(**(pair_ or {}))
        stack.callback(sh, "ip netns del $A; ip netns del $B")
        for key, value in dict(host).items():
            path = Path("/proc/sys", key.replace(".", "/"))
            kept[path] = path.read_text()
            path.write_text(f"{value}\n")
            stack.callback(path.write_text, kept[path])
        put(A, dict(a))
        put(B, dict(b))
        if callable(before):
            before()
        elif before:
            sh(before)
        if metrics:
            old_threshold()
        stack.enter_context(programs(*load()))
        if fault:
            time.sleep(1.2)     # it works first
            sh(fault)
        time.sleep(wait)        # slow start, or the first timeouts
        facts = faults.facts_of(A if at == "A" else B, INTERVAL)
    if os.environ.get("FACTS"):
        Path(os.environ["FACTS"], name.replace(" ", "-") + ".json").write_text(
            json.dumps(facts))
    verdict, answer, found = faults.first(facts)
    proposals = plan.propose(facts, found, plan.Wish())
    got = answer.limit if answer else "nothing"
    bad = [p.setting for p in proposals for word in never if word in p.setting]
    if healthy:
        wrong = [d for d in found if d.wrong and d.weight >= 5]
        right = not wrong and not any(p.setting for p in proposals)
    else:
        # "unsure": also right, but not with confidence "high".
        right = not bad and (got in want or got in unsure
                             and answer.confidence != "high")
    told = [f"{name}: {verdict}; " + (f"{answer.confidence}; " if answer else "")
            + "proposes " + (", ".join(p.setting or "advice" for p in proposals)
                             or "nothing")]
    if not right:
        told.append(f"got {got}, expected {' or '.join(want) or 'no fault'}; "
                    f"missing {facts['missing']}")
        told += [f"{d.weight:.1f} {d.subject} {d.limit}: {d.why} "
                 f"{json.dumps(d.numbers)}" for d in found[:4]]
    faults.tell(*told, f"{'ok' if right else 'not ok'} {name}")


def main():
    every = CASES | {name: case | {"healthy": True} for name, case in HEALTHY.items()}
    kinds = {"faults": list(CASES), "healthy": list(HEALTHY)}
    for name in kinds.get(sys.argv[1], sys.argv[1:]):
        case = dict(every[name])
        case["pair_"] = case.pop("pair", None)
        try:
            run(name, **case)
        except (OSError, subprocess.CalledProcessError, KeyError,
                ValueError) as error:
            faults.tell(repr(error), f"not ok {name}")
            for end in (A, B):
                subprocess.run(["ip", "netns", "del", end], check=False,
                               capture_output=True)


if __name__ == "__main__":
    main()
