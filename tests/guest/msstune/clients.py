# SPDX-License-Identifier: GPL-2.0-only
"""Clients that load the testbed from A, hosts that send datagrams, and programs of the
distribution.  A function here returns the function that a child process runs."""
import errno
import hashlib
import os
import random
import select
import socket
import struct
import subprocess
import threading
import time
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import programs
from programs import (
    NODELAY,
    SO_SNDBUFFORCE,
    TCP_MD5SIG,
    count,
    cwnd,
    dial,
    discard,
    equipped,
    family,
    forever,
    take,
)
from testbed import ADDRESS, IPV6, A, B
from mssab.netns import inside

UDP_SEGMENT = 103
#: A datagram, and what the kernel charges a socket for it in a queue.
DATAGRAM, CHARGED = 1200, 2304


# --- Clients --------------------------------------------------------------------

def stream(port, write=1 << 16, pause=0.0, options=(), address=ADDRESS, flags=0):
    def run():
        sock, data = dial(port, options, address), bytes(write)
        while True:
            if flags:
                sock.send(data, flags)
                with suppress(OSError):
                    while True:     # the completions of MSG_ZEROCOPY
                        sock.recvmsg(0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
            else:
                sock.sendall(data)
            if pause:
                time.sleep(pause)
    return run


def fetches(port, address=ADDRESS, handle=discard, options=(), half_closed=False):
    """A client that downloads."""
    def run():
        sock = dial(port, options, address)
        if half_closed:
            sock.shutdown(socket.SHUT_WR)
        handle(sock)
        forever()
    return run


def writev(port, parts, size, pause=0.0, address=ADDRESS):
    def run():
        sock, buffers = dial(port, NODELAY, address), [bytes(size)] * parts
        while True:
            os.writev(sock.fileno(), buffers)
            if pause:
                time.sleep(pause)
    return run


def file_sender(port, size, pause=0.0, options=(), address=ADDRESS):
    """Sends a file of @size again and again by sendfile()."""
    def run():
        sock, opened = dial(port, options, address), os.memfd_create("data")
        os.write(opened, bytes(size))
        while True:
            os.sendfile(sock.fileno(), opened, 0, size)
            if pause:
                time.sleep(pause)
    return run


def ask(port, size, reply, pause=0.0, options=NODELAY, every=0, address=ADDRESS,
        head=0, batch=1, enough=0):
    """Requests of @size with an answer of @reply; @every: so many to a connection.
    @head: bytes in a write of their own before it; @batch: so many at once; @enough:
    closes the connection after so many bytes of an answer."""
    def run():
        while True:
            with dial(port, options, address) as sock:
                left = every or 1 << 60
                while left:
                    left -= 1
                    if head:
                        sock.sendall(bytes(head))
                    sock.sendall(bytes(size * batch))
                    if not take(sock, enough or reply * batch) or enough:
                        break
                    time.sleep(pause)
            if every or enough:
                time.sleep(pause)
    return run


def calls(port, size, pause, address=ADDRESS, wait=2.0, failed=None):
    """Short connections, also where some fail; @failed: counts those for which the
    kernel has no port."""
    def run():
        while True:
            try:
                with inside(A):
                    sock = socket.socket(family(address))
                with sock:
                    sock.settimeout(wait)
                    sock.connect((address, port))
                    sock.sendall(bytes(size))
                    sock.shutdown(socket.SHUT_WR)
                    sock.recv(1)
            except OSError as error:
                if failed and error.errno == errno.EADDRNOTAVAIL:
                    count(failed)
            time.sleep(pause)
    return run


def pool(port, many, size, reply, pause, address=ADDRESS, gone=False):
    """One program with @many connections, which asks on any of them; @gone: waits for
    all answers at once instead (long polls)."""
    def run():
        socks = [dial(port, NODELAY, address) for _ in range(many)]
        source = random.Random(5)
        if gone:
            for sock in socks:
                sock.sendall(bytes(size))
        while True:
            ready = select.select(socks, [], [])[0] if gone else [source.choice(socks)]
            for sock in ready:
                if gone:
                    take(sock, reply)
                sock.sendall(bytes(size))
                if not gone:
                    take(sock, reply)
            time.sleep(source.uniform(0.5, 1.5) * pause)
    return run


def crowd(port, many, size, pause=0.0, address=ADDRESS):
    """One program that writes to @many connections in turn."""
    def run():
        socks, data = [dial(port, NODELAY, address) for _ in range(many)], bytes(size)
        while True:
            for sock in socks:
                sock.sendall(data)
                if pause:
                    time.sleep(pause)
    return run


def hold(port, many, options=(), retry=0.2, address=ADDRESS, handle=None):
    """@many connections that stay open; @handle: reads what arrives at any."""
    def run():
        kept = []
        while len(kept) < many:
            try:
                kept.append(dial(port, options, address))
            except OSError:
                time.sleep(retry)
        while handle and (ready := select.select(kept, [], [])[0]):
            for sock in ready:
                sock.recv(1 << 16)
        forever()
    return run


def visitors(port, pause, address=ADDRESS, sources=()):
    """A new connection after each pause, which sends nothing; @sources: from these
    addresses in turn."""
    def run():
        kept = []
        for turn in range(1 << 30):
            with inside(A):
                sock = socket.socket(family(address))
            sock.setblocking(False)
            if sources:
                sock.bind((sources[turn % len(sources)], 0))
            sock.connect_ex((address, port))
            kept = [*kept[-200:], sock]
            time.sleep(pause)
    return run


def greets(port, small, address=ADDRESS):
    """A short exchange, then data as fast as the path takes them."""
    def run():
        sock = dial(port, (), address)
        sock.sendall(bytes(small))
        take(sock, small)
        while True:
            sock.sendall(bytes(1 << 16))
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


def hashing(port, size, rounds):
    """Sends blocks, each after its hash."""
    def run():
        sock, data = dial(port), bytes(size)
        while True:
            for _ in range(rounds):
                hashlib.sha256(data).digest()
            sock.sendall(data)
    return run


def mails(port, size, pause, address=ADDRESS):
    """A connection for each mail: lines, which are answered."""
    def run():
        body = (b"x" * 70 + b" ") * (size // 71)
        while True:
            with dial(port, (), address) as sock, sock.makefile("rb") as answers:
                for line in (b"", b"EHLO a", b"MAIL FROM:<a@a>", b"DATA", body,
                             b"QUIT"):
                    if line:
                        sock.sendall(line + b"\r\n")
                    answers.readline()
            time.sleep(pause)
    return run


def retrieves(port, back, pause):
    def run():
        with inside(A):
            listener = socket.create_server(("10.9.0.1", back))
        sock = dial(port)
        while True:
            sock.sendall(b"RETR 0123456789 now\n")
            with listener.accept()[0] as data:
                discard(data)
            take(sock, len(b"226 complete\r\n"))
            time.sleep(pause)
    return run


def opens_fast(port, request, reply, pause):
    """The request is in the SYN."""
    def run():
        while True:
            with inside(A):
                sock = socket.socket()
            with sock:
                sock.sendto(bytes(request), socket.MSG_FASTOPEN, (ADDRESS, port))
                take(sock, reply)
            time.sleep(pause)
    return run


def chatter(least, most, pause):
    """Messages in its own time, whatever arrives: events of a desktop, updates of BGP,
    the state of a game, batches of a producer."""
    def handle(peer):
        equipped(peer, NODELAY)
        threading.Thread(target=discard, args=(peer,), daemon=True).start()
        source = random.Random(5)
        while True:
            peer.sendall(bytes(source.randint(least, most)))
            time.sleep(source.uniform(0.5, 1.5) * pause)
    return handle


def signed(address, key=b"a key"):
    """The option of a BGP session with MD5, towards @address."""
    there = struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, socket.inet_pton(
        socket.AF_INET6, address), 0)
    return (socket.IPPROTO_TCP, TCP_MD5SIG, there.ljust(128, b"\0") + struct.pack(
        "=BBHi80s", 0, 0, len(key), 0, key))


# --- Packets of others ------------------------------------------------------------

def datagrams(source, target, address, kbit=0, queued=0, after=0.0, each=1, ports=0):
    """Datagrams of another host to a program that reads them, at a rate.  @queued: or
    so many bytes of them in queues on the way.  @each: to a packet, which are not
    read; @ports: one from each of so many, as lookups are."""
    size = 60 if each > 1 else DATAGRAM

    def run():
        with inside(target):
            sink = socket.socket(type=socket.SOCK_DGRAM)
        sink.bind((address, 0))
        sink.setblocking(False)
        kept = []
        with inside(source):
            sock = socket.socket(type=socket.SOCK_DGRAM)
        if queued:  # the kernel doubles it
            sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE,
                            queued // (DATAGRAM + 42) * CHARGED // 2)
        if each > 1:
            sock.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size)
        time.sleep(after)       # until others have seen the path without them
        pause, due = (size + 42) * 8 / kbit / 1000 if kbit else 0.0, time.monotonic()
        while True:
            if ports:
                with inside(source):
                    kept.append(socket.socket(type=socket.SOCK_DGRAM))
                kept[-1].sendto(bytes(40), (address, 53))
                if len(kept) == ports:
                    forever()
            else:
                sock.sendto(bytes(size * each), sink.getsockname())
            while each == 1:
                try:
                    sink.recv(DATAGRAM)
                except BlockingIOError:
                    break
            due = max(due + pause, time.monotonic() - 1)
            if pause:
                time.sleep(max(due - time.monotonic(), 0))
    return run


# --- Programs of the distribution ---------------------------------------------------

def program(end, *argv, reads=None, writes=None):
    """@reads, @writes: descriptors."""
    def run():
        null = os.open(os.devnull, os.O_RDWR)
        for place, given in enumerate((reads, writes, None)):
            os.dup2(null if given is None else given, place)
        with inside(end):
            os.execvp(argv[0], [str(word) for word in argv])
    return run


def web_server(port, address="::", protocol="HTTP/1.0"):
    return program(B, "/usr/bin/python3", "-m", "http.server", port, "--bind", address,
                   "--protocol", protocol, "--directory", programs.FOLDER)


def url(port, name="file", address=ADDRESS, scheme="http"):
    host = f"[{address}]" if ":" in address else address
    return f"{scheme}://{host}:{port}/{name}"


def curl(*words, writes=None):
    """Waits for a server that starts late."""
    return program(A, "curl", "-s", "--retry", 30, "--retry-delay", 1,
                   "--retry-connrefused", *([] if writes else ["-o", os.devnull]),
                   *words, writes=writes)


def puts(port, address=ADDRESS, data=("-T", "/dev/zero")):
    return curl("-H", "Expect:", *data, url(port, address=address))


def iperf3(port, *words):
    """The server; with @words, the client."""
    if not words:
        return program(B, "iperf3", "-s", "-p", port)
    return program(A, "iperf3", "-6", "-c", IPV6, "-p", port, "-t", 1000, *words)


def perl(port, first, second):
    """Prints a line in two parts, and reads one."""
    return program(A, "perl", "-MIO::Socket::INET", "-e", f"""
        $peer = IO::Socket::INET->new("{ADDRESS}:{port}") or die; $peer->autoflush(1);
        while (1) {{
            print $peer "x" x {first}; print $peer "y" x {second} . "\\n";
            <$peer> // last; }}""")


def bash(port):
    """Reads lines: a byte at a time, because it cannot put back what it has read."""
    return program(A, "bash", "-c", "while read -r line; do :; done "
                   f"</dev/tcp/{IPV6}/{port}")


def secured(port):
    """A web server with TLS."""
    import ssl      # takes a second in a guest
    subprocess.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=msstune", "-keyout",
        programs.FOLDER / "key", "-out", programs.FOLDER / "certificate"], check=True,
        capture_output=True)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=programs.FOLDER)

        def log_message(self, *_):
            pass
    with inside(B):
        server = ThreadingHTTPServer((ADDRESS, port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(programs.FOLDER / "certificate", programs.FOLDER / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server.serve_forever
