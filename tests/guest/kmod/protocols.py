# SPDX-License-Identifier: GPL-2.0-only
"""What test_protocols.sh runs: one process for all cases, for Python starts
slowly in an emulated guest."""
import ctypes
import os
import select
import socket
import struct
import subprocess
import tempfile
import time
from operator import itemgetter

import connections
from connections import (
    ADDRESS, LIMIT, Sender, Wire, close, connect, counters, enter, listener,
    netstat, option, pattern, receive, run, same, setting, sh, small_window,
    stepped, sysctl, transfer, unscaled, wait_until)

TCP_ULP, TCP_REPAIR, TCP_REPAIR_QUEUE, TCP_QUEUE_SEQ = 31, 19, 20, 21
TCP_REPAIR_OPTIONS, TCP_REPAIR_WINDOW = 22, 29
SEND_QUEUE, RECV_QUEUE = 2, 1
SOL_TLS, TLS_TX, TLS_RX = 282, 1, 2
SO_SNDBUFFORCE = 32
SO_ZEROCOPY, MSG_ZEROCOPY, MSG_FASTOPEN = 60, 0x4000000, 0x20000000
IPPROTO_MPTCP = 262
TCPI_OPT_SYN_DATA = 32


# --- Sockets whose window or segment size others own ------------------------

def mptcp():
    """MPTCP is left alone"""
    for name in "cd":
        sysctl(name, "mptcp/enabled", 1)
    sock, peer = connect("d", "c", protocol=IPPROTO_MPTCP)
    assert netstat("d", "MPCapableSYNRX"), "this is plain TCP"
    transfer(sock, peer)
    close(sock, peer, "c", "d")
    for name in "cd":
        moved = {k: v for k, v in counters(name).items() if v}
        assert not moved, f"{name}: {moved}"


def kernel_socket():
    """a socket of the kernel that does not keep its namespace is left alone"""
    before = {name: counters(name)["treated_connections"] for name in "cd"}
    enter("d")
    server = socket.create_server((ADDRESS["d"], 7564))
    server.settimeout(LIMIT)
    enter("c")
    with tempfile.TemporaryDirectory(dir="/run") as folder, \
            subprocess.Popen(["mount", "-t", "9p", "-o", "trans=tcp,port=7564",
                              ADDRESS["d"], folder]) as mount:
        peer, _ = server.accept()
        peer.settimeout(LIMIT)
        assert b"9P2000" in peer.recv(100)
        counted = {name: counters(name)["treated_connections"] - before[name]
                   for name in "cd"}
        peer.close()  # mount fails
        mount.wait(LIMIT)
    server.close()
    assert counted == {"c": 0, "d": 1}, counted


def kernel_socket_outlives():
    """a kernel socket may outlive its namespace"""
    sh("ip netns add e && ip link add to_d netns e type veth peer to_e netns d &&"
       " ip -n e addr add 10.9.3.1/24 dev to_d && ip -n e link set to_d up &&"
       " ip -n d addr add 10.9.3.2/24 dev to_e && ip -n d link set to_e up")
    enter("d")
    server = socket.create_server(("10.9.3.2", 7565))
    server.settimeout(LIMIT)
    with tempfile.TemporaryDirectory(dir="/run") as folder, \
            subprocess.Popen("exec ip netns exec e mount -t 9p -o "
                             f"trans=tcp,port=7565 10.9.3.2 {folder}",
                             shell=True) as mount:
        peer, _ = server.accept()
        peer.settimeout(LIMIT)
        assert b"9P2000" in peer.recv(100)
        # Its FIN is never acknowledged.
        sh("tc -n e qdisc add dev to_d root netem loss 100%")
        peer.close()  # mount fails
        mount.wait(LIMIT)
    server.close()
    sh("ip netns del e")
    enter("d")
    wait_until(lambda: "to_e" not in map(itemgetter(1), socket.if_nameindex()),
               "the end of a namespace")


def repair():
    """a socket is left alone in repair mode, and counted afterwards"""
    ends = []
    for name, other, seq, ack in (("c", "d", 1000, 5000),
                                  ("d", "c", 5000, 1000)):
        enter(name)
        sock = socket.socket()
        sock.settimeout(LIMIT)
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((ADDRESS[name], 7001 if name == "c" else 7002))
        for queue, number in ((SEND_QUEUE, seq), (RECV_QUEUE, ack)):
            sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, queue)
            sock.setsockopt(socket.IPPROTO_TCP, TCP_QUEUE_SEQ, number)
        sock.connect((ADDRESS[other], 7002 if name == "c" else 7001))
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_OPTIONS,
                        struct.pack("II", 2, 1460))
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_WINDOW, struct.pack(
            "5I", ack, 30000, 30000, 30000, ack))
        ends.append(sock)
    data = pattern(20000)
    ends[0].setsockopt(socket.IPPROTO_TCP, TCP_REPAIR_QUEUE, SEND_QUEUE)
    ends[0].send(data)
    for name in "cd":
        moved = {k: v for k, v in counters(name).items() if v}
        assert not moved, f"in repair mode, {name}: {moved}"
    for sock in reversed(ends):
        sock.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 0)
    same(receive(ends[1], len(data)), data)
    for name in "cd":
        assert counters(name)["treated_connections"] == 1, name
    for sock in ends:
        sock.close()


def tls(sock, direction):
    sock.setsockopt(SOL_TLS, direction, struct.pack("HH", 0x0303, 51)
                    + b"12345678" + b"k" * 16 + b"salt" + bytes(8))


def repaired_window():
    """a window of 2^32 - 1, set in repair mode, is survived"""
    sock, peer = connect(rcvbuf=40000)
    sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 32 << 20)
    sh("tc -n a qdisc add dev va root netem delay 5ms")
    size = 3000000
    reader = Sender(receive, peer, size + 100)
    sock.sendall(bytes(size))
    for _ in range(100):  # each time some of it is in flight
        time.sleep(0.003)
        option(sock, TCP_REPAIR, 1)
        window = struct.unpack("5I", sock.getsockopt(
            socket.IPPROTO_TCP, TCP_REPAIR_WINDOW, 20))
        option(sock, TCP_REPAIR_WINDOW, struct.pack(
            "5I", window[0], 0xffffffff, 0xffffffff, *window[3:]))
        option(sock, TCP_REPAIR, 0)
        sock.send(b"x")
    # Mostly seconds.  But the sender does not believe a smaller window without
    # new data acknowledged (tcp_may_update_window): while the real one is
    # closed, its retransmission timer doubles.
    reader.join(timeout=4 * LIMIT)
    sh("tc -n a qdisc del dev va root")
    close(sock, peer)


def ktls():
    """kTLS is left alone from its start on"""
    sock, peer = connect()
    for end in sock, peer:
        end.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
    before = counters("a"), counters("b")
    for end in sock, peer:
        tls(end, TLS_TX)
        tls(end, TLS_RX)
    transfer(sock, peer, 100000)
    transfer(peer, sock, 20000)
    close(sock, peer)
    for was, name in zip(before, "ab"):
        assert_untouched(was, name)


def assert_untouched(was, name):
    """Nothing but its segments was counted of a connection."""
    moved = {k: v - was[k] for k, v in counters(name).items()
             if v != was[k] and not k.endswith("x_segments")}
    assert not moved, f"{name}: {moved}"


def ktls_kept():
    """kTLS can start on a treated connection"""
    sock, peer = connect()
    small_window(sock, peer)
    for end in sock, peer:
        end.setsockopt(socket.IPPROTO_TCP, TCP_ULP, b"tls")
    before = counters("a")
    tls(sock, TLS_TX)
    tls(peer, TLS_RX)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
    transfer(sock, peer, 60000)
    assert_untouched(before, "a")
    close(sock, peer)


def bpf(command, layout, *fields):
    attr = struct.pack(layout, *fields)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(321, command, attr, len(attr))
    assert fd >= 0, os.strerror(ctypes.get_errno())
    return fd


def sockmap():
    """sockets of a BPF sockmap are left alone from then on"""
    sock, peer = connect("d", "c")
    kept = bpf(0, "5I", 15, 4, 4, 2, 0)  # BPF_MAP_CREATE, BPF_MAP_TYPE_SOCKMAP
    for index, end in enumerate((sock, peer)):
        key = ctypes.c_uint32(index)
        value = ctypes.c_uint32(end.fileno())
        bpf(2, "IIQQQ", kept, 0, ctypes.addressof(key),  # BPF_MAP_UPDATE_ELEM
            ctypes.addressof(value), 0)
    before = {name: counters(name) for name in "cd"}
    transfer(sock, peer, 60000)
    for name in "cd":
        assert_untouched(before[name], name)
    close(sock, peer)
    os.close(kept)


# --- The handshake's variants ------------------------------------------------

def fast_open():
    """TCP Fast Open carries data in the SYN"""
    enter("a")
    sh("ip netns exec a ip tcp_metrics flush all >/dev/null 2>&1 || true")
    for name in "ab":
        sysctl(name, "ipv4/tcp_fastopen", 3)
    listening = listener("b", options=[
        (socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)])
    before = counters("a")["treated_connections"]
    data = pattern(60000)
    carried = []
    for _ in range(2):
        enter("a")
        sock = socket.socket()
        sent = sock.sendto(data[:1000], MSG_FASTOPEN, (ADDRESS["b"], connections.port))
        sock.settimeout(LIMIT)
        peer, _ = listening.accept()
        peer.settimeout(LIMIT)
        sender = Sender(sock.sendall, data[sent:])
        same(receive(peer, len(data)), data)
        sender.join()
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 8)
        carried.append(bool(info[5] & TCPI_OPT_SYN_DATA))
        sock.close()
        peer.close()
    listening.close()
    assert carried == [False, True], f"data in the SYN: {carried}"
    assert counters("a")["treated_connections"] == before + 2


def ipv6():
    """IPv6 works, both sides treated"""
    sock, peer = unscaled(address="fd09::2", rcvbuf=14000)
    stepped(sock, peer)
    close(sock, peer)
    sock, peer = connect(address="fd09::2")
    small_window(sock, peer)
    transfer(sock, peer)
    close(sock, peer)


def syn_cookies():
    """SYN cookies work, both sides treated"""
    before = netstat("b", "SyncookiesRecv")
    with setting("b", "ipv4/tcp_syncookies", 2):
        sock, peer = unscaled()
        stepped(sock, peer)
        close(sock, peer)
        sock, peer = connect()
        small_window(sock, peer)
    assert netstat("b", "SyncookiesRecv") == before + 2
    close(sock, peer)


# --- Windows -----------------------------------------------------------------

def stop_and_go(sock, peer):
    """The reader stops until the sender probes, three times."""
    data = pattern(200000)
    sender = Sender(sock.sendall, data)
    got = b""
    for _ in range(3):
        before = netstat("a", "TCPWinProbe")
        wait_until(lambda: netstat("a", "TCPWinProbe") > before,
                   "a probe of the zero window")
        got += receive(peer, 30000)
    same(got + receive(peer, len(data) - len(got)), data)
    sender.join()


def zero_window_sender():
    """zero-window probes get through, windows below one MSS, sender treated"""
    sock, peer = connect()
    small_window(sock, peer)
    stop_and_go(sock, peer)
    close(sock, peer)


def zero_window_receiver():
    """zero-window probes get through, receiver treated"""
    sock, peer = unscaled()
    stepped(sock, peer)
    stop_and_go(sock, peer)
    close(sock, peer)


def window_clamp():
    """TCP_WINDOW_CLAMP holds, receiver treated"""
    clamp = 20000  # holds two MSS, and 2104 bytes that only steps offer
    sock, peer = unscaled(40000)
    transfer(sock, peer)
    for _ in range(5):
        option(peer, socket.TCP_WINDOW_CLAMP, clamp)
        transfer(sock, peer)
        wire = Wire("b")
        stepped(sock, peer)
        if peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP) == clamp:
            break
        # The kernel replaces the user's clamp by the buffer's, since 6.11, if a
        # full-sized segment follows smaller ones and takes another share of its
        # truesize than the last did (tcp_measure_rcv_mss()).
    else:
        raise AssertionError("the kernel replaced the clamp five times")
    windows = [window for source, window, _ in wire.packets()
               if source == connections.port]
    assert 18000 < max(windows) <= clamp, f"offered {max(windows)}"
    close(sock, peer)


def shrink_window():
    """windows may shrink (tcp_shrink_window), sender treated"""
    with setting("b", "ipv4/tcp_shrink_window", 1):
        sock, peer = connect()
        # The sender must know of the smaller window before it sends: what
        # comes out of order later can hold the whole buffer, and then the
        # stock kernel too never opens the window again.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2500)
        transfer(peer, sock, 1000)
        # A reader that stops was seen to stay without data for minutes.
        small_window(sock, peer)
        close(sock, peer)


def memory_pressure():
    """transfers complete under memory pressure, both policies on"""
    def pressures():  # on either side
        return sum(netstat(name, "TCPMemoryPressures") for name in "ab")

    def hog():  # 2 MB: each CPU keeps 1 MB out of the account
        sock, peer = connect()
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 2 << 20)
        sock.settimeout(0)
        try:
            while sock.send(bytes(65536)):
                pass
        except BlockingIOError:
            return sock, peer
    before = pressures()
    with setting("", "ipv4/tcp_mem", "1 1 4000"):
        ends = [*hog(), *hog()]
        for pair in connect(), unscaled():
            transfer(*pair)
            ends += pair
        for end in ends:
            end.close()
    assert pressures() > before, "there was no memory pressure"


# --- Segment sizes -----------------------------------------------------------

def maxseg():
    """TCP_MAXSEG holds, sender treated"""
    sh("ip netns exec a ethtool -K va tso off")
    wire = Wire("b")
    sock, peer = connect(client_options=[
        (socket.IPPROTO_TCP, socket.TCP_MAXSEG, 3000)])
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1200)
    before = counters("a")["treated_tx_unstalled"]
    transfer(sock, peer)
    assert counters("a")["treated_tx_unstalled"] > before, "not treated"
    sizes = {size for source, _, size in wire.packets() if source != connections.port}
    sh("ip netns exec a ethtool -K va tso on")
    assert max(sizes) <= 3000, f"a segment of {max(sizes)} bytes"
    close(sock, peer)


def path_mtu(address, lower):
    sock, peer = connect(address=address)
    small_window(sock, peer)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 60000)

    def snd_mss():
        return struct.unpack_from("I", sock.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, 20), 16)[0]
    assert snd_mss() > 8000, f"MSS {snd_mss()} to begin with"
    transfer(sock, peer, 1000000, meanwhile=lambda: sh(lower))
    assert snd_mss() < 1500, f"MSS {snd_mss()} in the end"
    close(sock, peer)


def pmtu_icmp(version, address):
    """The link behind a router shrinks: the router tells the sender."""
    before = icmp_errors(version)
    path_mtu(address, "ip -n m link set to_b mtu 1500")
    assert icmp_errors(version) > before, "the router said nothing"
    sh("ip -n m link set to_b mtu 9000")


def icmp_errors(version):
    enter("a")
    if version == 4:
        with open("/proc/net/snmp", encoding="ascii") as file:
            rows = [line.split() for line in file if line.startswith("Icmp:")]
        return int(rows[1][rows[0].index("InDestUnreachs")])
    with open("/proc/net/snmp6", encoding="ascii") as file:
        return int(dict(map(str.split, file))["Icmp6InPktTooBigs"])


def pmtu4():
    """a treated transfer continues when the path MTU falls, IPv4"""
    pmtu_icmp(4, "10.9.2.2")


def pmtu6():
    """a treated transfer continues when the path MTU falls, IPv6"""
    pmtu_icmp(6, "fd09:2::2")


def route_mtu():
    """a treated transfer continues after ip route change mtu"""
    path_mtu("10.9.0.2", "ip -n a route change 10.9.0.0/24 dev va mtu 1500")
    sh("ip -n a route change 10.9.0.0/24 dev va")


# --- Ways to send ------------------------------------------------------------

def zerocopy():
    """MSG_ZEROCOPY works, sender treated"""
    sock, peer = connect()
    small_window(sock, peer)
    sock.setsockopt(socket.SOL_SOCKET, SO_ZEROCOPY, 1)
    # Its pages are sent from: it must outlive the notifications.
    data = memoryview(pattern(200000))

    def send():
        sent = calls = notified = 0
        while sent < len(data):
            sent += sock.send(data[sent:sent + 50000], MSG_ZEROCOPY)
            calls += 1
        while notified < calls:
            poll = select.poll()
            poll.register(sock, select.POLLERR)
            poll.poll(1000 * LIMIT)
            _, ancillary, _, _ = sock.recvmsg(0, 200, socket.MSG_ERRQUEUE)
            low, high = struct.unpack_from("II", ancillary[0][2], 8)
            notified += high - low + 1
    sender = Sender(send)
    same(receive(peer, len(data)), data)
    sender.join()
    close(sock, peer)


def send_file():
    """sendfile and splice work, sender treated"""
    sock, peer = connect()
    small_window(sock, peer)
    data = pattern(200000)
    with tempfile.TemporaryFile(dir="/run") as file:
        file.write(data)
        file.flush()

        def from_file():
            sent = 0
            while sent < len(data):
                sent += os.sendfile(sock.fileno(), file.fileno(), sent,
                                    len(data) - sent)

        def from_pipe():
            out, into = os.pipe()
            sent = 0
            while sent < len(data):
                size = os.splice(file.fileno(), into, 50000, offset_src=sent)
                sent += size
                while size:
                    size -= os.splice(out, sock.fileno(), size)
        sock.settimeout(None)  # these calls do not know about timeouts
        for way in from_file, from_pipe:
            sender = Sender(way)
            same(receive(peer, len(data)), data)
            sender.join()
    close(sock, peer)


if __name__ == "__main__":
    run([mptcp, repair, ktls, ktls_kept, sockmap, kernel_socket, fast_open,
         ipv6, syn_cookies, zero_window_sender, zero_window_receiver, window_clamp,
         shrink_window, memory_pressure, maxseg, pmtu4, pmtu6, route_mtu,
         zerocopy, send_file, repaired_window, kernel_socket_outlives])
