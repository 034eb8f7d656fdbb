# SPDX-License-Identifier: GPL-2.0-only
"""Programs of the fifth set of held-out cases (held_out_path_faults_5.py)."""
import fcntl
import os
import random
import select
import socket
import socketserver
import struct
import sys
import termios
import threading
import time
import zlib
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

# It names the namespaces, so it is first.
from path_faults import A, B  # noqa: E402
from faults import ADDRESS  # noqa: E402
from held_out_loads import IPV6, MIDDLE, NODELAY, dial, take  # noqa: E402
from held_out_loads_3 import POD  # noqa: E402
from held_out_loads_4 import number  # noqa: E402
from mssab.netns import inside  # noqa: E402
from wide_faults import discard, listening  # noqa: E402

TCP_NOTSENT_LOWAT, SND_CWND = 25, 80    # SND_CWND: offset in struct tcp_info
DATAGRAM, UDP_SEGMENT = 1200, 103


def count(memory):
    memory[:8] = (number(memory) + 1).to_bytes(8, "little")


def cwnd(sock):
    return struct.unpack_from("I", sock.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, 104), SND_CWND)[0]


def buffer(size):
    return ((socket.SOL_SOCKET, socket.SO_RCVBUF, size),)


def configured(port, handle=discard, options=(), backlog=64):
    """A server with a thread for each connection; its listener has @options."""
    with inside(B):
        listener = socket.socket(socket.AF_INET6)
    for option in options:
        listener.setsockopt(*option)
    listener.bind(("::", port))
    listener.listen(backlog)

    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        daemon_threads = True

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with suppress(OSError):
                handle(self.request)
    server = Server(("", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    return server.serve_forever


def fetches(port, address=ADDRESS, options=()):
    """A client that downloads."""
    def run():
        discard(dial(port, options, address))
    return run


def statements(port, head, body, reply, pause):
    """A driver of a database: the head and the body of a message are two writes."""
    def run():
        sock = dial(port)
        while True:
            sock.sendall(bytes(head))
            sock.sendall(bytes(body))
            take(sock, reply)
            time.sleep(pause)
    return run


def snapshots(port, size, pause, restarts):
    """Sends a file and waits for a confirmation, then rests.  @restarts: counts how
    often the kernel has reduced the congestion window at the first write."""
    def run():
        sock, data = dial(port, NODELAY), bytes(size)
        while True:
            before = cwnd(sock)
            sock.sendall(data[:1])
            if cwnd(sock) < before:
                count(restarts)
            sock.sendall(data[1:])
            take(sock, 1)
            time.sleep(pause)
    return run


def pages(request, reply, first, seen):
    """Answers one request; @seen: counts connections that begin with a congestion
    window of @first."""
    def handle(peer):
        if cwnd(peer) == first:
            count(seen)
        if take(peer, request):
            peer.sendall(bytes(reply))
    return handle


def noise(kbit):
    """Another host's datagrams to A."""
    def run():
        with inside(A):
            sink = socket.socket(type=socket.SOCK_DGRAM)
        with inside(MIDDLE):
            sock = socket.socket(type=socket.SOCK_DGRAM)
        sink.bind(("10.4.0.1", 0))
        sink.setblocking(False)
        pause, due = (DATAGRAM + 42) * 8 / kbit / 1000, time.monotonic()
        while True:
            sock.sendto(bytes(DATAGRAM), sink.getsockname())
            with suppress(BlockingIOError):
                while sink.recv(DATAGRAM):
                    pass
            due = max(due + pause, time.monotonic() - 1)
            time.sleep(max(due - time.monotonic(), 0))
    return run


def flood(each, size=60):
    """Datagrams of another host to a program that does not read, @each to a packet."""
    def run():
        with inside(B):
            sink = socket.socket(type=socket.SOCK_DGRAM)
        with inside(A):
            sock = socket.socket(type=socket.SOCK_DGRAM)
        sink.bind((ADDRESS, 0))
        sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
        while True:
            sock.sendto(bytes(size * each), sink.getsockname())
    return run


def compresses(request, reply, kbytes):
    """Compresses so much for each answer."""
    data = random.Random(5).randbytes(kbytes * 512) * 2

    def handle(peer):
        peer.setsockopt(*NODELAY[0])
        while take(peer, request):
            zlib.compress(data, 6)
            peer.sendall(bytes(reply))
    return handle


def with_quota(function):
    def run():
        (POD / "cgroup.procs").write_text(f"{os.getpid()}\n")
        function()
    return run


def quota(percent):
    """Of a CPU, with the default period."""
    with suppress(OSError):
        (POD.parent / "cgroup.subtree_control").write_text("+cpu\n")
    POD.mkdir(exist_ok=True)
    (POD / "cpu.max").write_text(f"{percent * 1000} 100000\n")


def one_at_a_time(port, backlog, size, pause):
    """Serves one connection after another."""
    listener = listening(backlog, port)

    def run():
        while True:
            with suppress(OSError), listener.accept()[0] as peer:
                peer.settimeout(2)
                take(peer, size)
                time.sleep(pause)
                peer.sendall(bytes(1))
    return run


def half_open(port, pause):
    """SYNs of a scanner, from addresses that get no answers."""
    def run():
        kept, last = [], 0
        while True:
            with inside(A):
                sock = socket.socket()
            sock.setblocking(False)
            sock.bind((f"10.4.0.{130 + last}", 0))
            last = (last + 1) % 100
            sock.connect_ex((ADDRESS, port))
            kept = [*kept[-300:], sock]
            time.sleep(pause)
    return run


def unwilling(low, tick, idle):
    """Writes what the socket takes, once in each round of a loop; @low: of
    TCP_NOTSENT_LOWAT.  @idle: counts rounds that find all data acknowledged although
    the socket took less than there was."""
    def handle(peer):
        peer.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, low)
        peer.setblocking(False)
        data, short = bytes(1 << 20), False
        while True:
            waiting = fcntl.ioctl(peer, termios.TIOCOUTQ, bytes(4))
            if short and waiting == bytes(4):
                count(idle)
            with suppress(BlockingIOError):
                short = peer.send(data) < len(data)
            time.sleep(tick)
    return handle


def pool(port, count_, size, reply, pause):
    """One program that takes any of its connections for each query."""
    def run():
        socks, source = [dial(port, NODELAY) for _ in range(count_)], random.Random(5)
        while True:
            sock = source.choice(socks)
            sock.sendall(bytes(source.randint(20, size)).ljust(size))
            take(sock, reply)
            time.sleep(source.uniform(0.5, 1.5) * pause)
    return run


def mail_server(peer):
    peer.settimeout(5)
    with peer.makefile("rb") as lines:
        peer.sendall(b"220 mail\r\n")
        while line := lines.readline():
            if line == b"DATA\r\n":
                peer.sendall(b"354 go ahead\r\n")
                while lines.readline() != b".\r\n":
                    pass
            peer.sendall(b"250 ok\r\n")
            if line == b"QUIT\r\n":
                return


def mails(port, size, pause, address):
    """A connection for each mail."""
    def run():
        body = (b"x" * 70 + b"\r\n") * (size // 72)
        while True:
            with dial(port, (), address) as sock, sock.makefile("rb") as lines:
                lines.readline()
                for line in (b"EHLO a", b"MAIL FROM:<a@a>", b"RCPT TO:<b@b>", b"DATA"):
                    sock.sendall(line + b"\r\n")
                    lines.readline()
                for line in (body + b".", b"QUIT"):
                    sock.sendall(line + b"\r\n")
                    lines.readline()
            time.sleep(pause)
    return run


def screen(least, most, pause):
    """A remote desktop: events arrive, and changes of the screen are sent, neither
    waits for the other."""
    def handle(peer):
        peer.setsockopt(*NODELAY[0])
        threading.Thread(target=discard, args=(peer,), daemon=True).start()
        source = random.Random(5)
        while True:
            peer.sendall(bytes(source.randint(least, most)))
            time.sleep(source.uniform(0.5, 1.5) * pause)
    return handle


def viewer(port, size, pause):
    def run():
        sock, due = dial(port, NODELAY), time.monotonic()
        while True:
            while select.select([sock], [], [], max(due - time.monotonic(), 0))[0]:
                sock.recv(1 << 17)
            sock.sendall(bytes(size))
            due = time.monotonic() + pause
    return run


def sensors(port, count_, size, pause):
    """A gateway of sensors: one connection each, and a receipt for each message."""
    def run():
        socks = [dial(port, NODELAY, IPV6) for _ in range(count_)]
        while True:
            for sock in socks:
                sock.sendall(bytes(size))
                take(sock, 4)
                time.sleep(pause / count_)
    return run
