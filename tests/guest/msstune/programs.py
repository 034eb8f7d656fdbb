# SPDX-License-Identifier: GPL-2.0-only
"""Programs that load the testbed.  A function here returns the function that a child
process runs, or, where it takes a connected socket (@peer), a handler of receiver()."""
import ctypes
import fcntl
import mmap
import os
import random
import select
import signal
import socket
import socketserver
import struct
import termios
import time
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path

from testbed import ADDRESS, POD, A, B
from mssab.netns import inside

TCP_MAXSEG, TCP_CORK, TCP_WINDOW_CLAMP, TCP_MD5SIG, TCP_FASTOPEN = 2, 3, 10, 14, 23
TCP_NOTSENT_LOWAT, SO_SNDBUFFORCE, SO_MAX_PACING_RATE, SO_ZEROCOPY = 25, 32, 47, 60
MSG_ZEROCOPY, UDP_SEGMENT = 0x4000000, 103
SND_CWND = 80           # offset in struct tcp_info
NODELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
CORK = ((socket.IPPROTO_TCP, TCP_CORK, 1),)
KEEPALIVE = ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
             (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
             (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1))
#: A datagram, and what the kernel charges a socket for it in a queue.
DATAGRAM, CHARGED = 1200, 2304
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
#: Files of web servers, set by the driver.
FOLDER = Path("/nowhere")


# --- Processes ------------------------------------------------------------------

@contextmanager
def running(*functions):
    """A process group for each function, until the block ends."""
    pids = []
    try:
        for function in functions:
            pid = os.fork()
            if pid == 0:
                try:
                    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                    function()
                finally:
                    os._exit(0)
            os.setpgid(pid, pid)
            pids.append(pid)
        yield pids
    finally:
        for pid in pids:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


@contextmanager
def resting(pids):
    """The programs are stopped.  Beside a load that keeps all CPUs busy another program
    takes minutes to start in a guest."""
    for pid in pids:
        os.killpg(pid, signal.SIGSTOP)
    yield
    for pid in pids:
        os.killpg(pid, signal.SIGCONT)


def forever():
    while True:
        time.sleep(1000)    # until it is killed


def pinned(cpu, function):
    def run(*args):
        os.sched_setaffinity(0, {cpu % 3})
        return function(*args)
    return run


def confined(function):
    """In the group of processes of testbed.quota()."""
    def run():
        (POD / "one/cgroup.procs").write_text(f"{os.getpid()}\n")
        function()
    return run


def busy():
    while True:
        sum(range(1000))


def shared():
    """A number that all programs share; one of them changes it."""
    return mmap.mmap(-1, 8)


def number(memory):
    return int.from_bytes(memory[:8], "little")


def count(memory):
    memory[:8] = (number(memory) + 1).to_bytes(8, "little")


#: Clients begin anew, with new connections, when it changes.
EPOCH = shared()


def renewed(function):
    def run():
        while True:
            begun, pid = number(EPOCH), os.fork()
            if pid == 0:
                try:
                    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
                    function()
                finally:
                    os._exit(0)
            while number(EPOCH) == begun:
                time.sleep(0.1)     # polling interval
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return run


# --- Sockets --------------------------------------------------------------------

def family(address):
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def buffer(size, which=socket.SO_RCVBUF):
    return ((socket.SOL_SOCKET, which, size),)


def equipped(sock, options):
    for option in options:
        sock.setsockopt(*option)
    return sock


def dial(port, options=(), address=ADDRESS):
    with inside(A):
        sock = socket.socket(family(address))
    equipped(sock, options).connect((address, port))
    return sock


def listening(port, backlog=64, options=(), address="::"):
    """It takes IPv4 and IPv6, unless an address is given."""
    with inside(B):
        sock = socket.socket(family(address))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    equipped(sock, options).bind((address, port))
    sock.listen(backlog)
    return sock


def take(sock, size):
    """Receive exactly so much; False at the end of the stream."""
    got = 0
    while got < size:
        data = sock.recv(min(size - got, 1 << 18))
        if not data:
            return False
        got += len(data)
    return True


def cwnd(sock):
    return struct.unpack_from("I", sock.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, 104), SND_CWND)[0]


def met(port, address):
    """A connection that ends, after data both ways: the kernel remembers its path."""
    with listening(port, address=address) as listener, dial(
            port, (), address) as sock, listener.accept()[0] as peer:
        for one, other in ((sock, peer), (peer, sock)):
            one.sendall(bytes(10000))
            take(other, 10000)
    time.sleep(0.5)     # until the connection has ended


# --- Servers --------------------------------------------------------------------

def receiver(port, handle=None, options=(), backlog=64, address="::"):
    """A server with a thread for each connection; its listener has @options."""
    listener = listening(port, backlog, options, address)

    class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
        daemon_threads = True

    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with suppress(OSError):
                (handle or discard)(self.request)
    server = Server(("", 0), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = listener
    return server.serve_forever


def one_reader(port, handle):
    """A process that accepts one connection."""
    listener = listening(port)
    return lambda: handle(listener.accept()[0])


def discard(peer):
    while peer.recv(1 << 18):
        pass


def reads(size, pause=0.0, batch=0, options=(), work=0):
    """Reads @size per call, and works on @work bytes of them; @batch: as often as it
    takes, then a pause."""
    def handle(peer):
        equipped(peer, options)
        while True:
            if batch:
                if not take(peer, batch):
                    return
            else:
                select.select([peer], [], [])   # recv() alone ignores SO_RCVLOWAT
                if not (data := peer.recv(size)):
                    return
                sum(data[:work])
            if pause:
                time.sleep(pause)
    return handle


def few_bytes(size):
    """Nothing but reads of few bytes."""
    def handle(peer):
        while peer.recv(size):
            pass
    return handle


def scattering(parts, size, readv=False):
    """A reader by recvmsg() or readv() into @parts buffers."""
    def handle(peer):
        buffers = [bytearray(size) for _ in range(parts)]
        while os.readv(peer.fileno(), buffers) if readv else \
                peer.recvmsg_into(buffers)[0]:
            pass
    return handle


def splicing(size):
    """A reader that moves its data into a pipe, without a copy."""
    def handle(peer):
        source, sink = os.pipe()
        null = os.open("/dev/null", os.O_WRONLY)
        while got := os.splice(peer.fileno(), sink, size):
            os.splice(source, null, got)
    return handle


def polled(peer):
    """A reader that waits in poll() for each message."""
    poller = select.poll()
    poller.register(peer, select.POLLIN)
    while poller.poll() and peer.recv(4096):
        pass


def clamped(size):
    """A reader that has a large buffer, and bounds its window.  It does so again and
    again: the kernel sets it anew when packets get longer."""
    def handle(peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        while peer.recv(1 << 16):
            peer.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, size)
    return handle


def upload(write=1 << 16, pause=0.0, options=()):
    def handle(peer):
        equipped(peer, options)
        while True:
            peer.sendall(bytes(write))
            if pause:
                time.sleep(pause)
    return handle


def answer(size, reply, pieces=1, flags=0, most=0, pause=0.0, options=NODELAY,
           work=0, met=None):
    """Answers requests of @size, in so many writes, after a pause or after it has
    compressed @work kB; @most: reads no more after so many requests.  @met: first
    congestion window and a number, of connections that begin with it."""
    data = random.Random(5).randbytes(work * 512) * 2

    def handle(peer):
        equipped(peer, options if pieces == 1 and not flags else ())
        if met and cwnd(peer) == met[0]:
            count(met[1])
        asked = 0
        while take(peer, size):
            if work:
                zlib.compress(data, 6)
            if pause:
                time.sleep(pause)
            for _ in range(pieces):
                peer.sendall(bytes(reply // pieces), flags)
            asked += 1
            if asked == most:
                forever()
    return handle


def spliced(request, reply):
    """Answers through a pipe, and says of each answer that more will follow."""
    def handle(peer):
        source, sink = os.pipe()
        while take(peer, request):
            os.write(sink, bytes(reply))
            os.splice(source, peer.fileno(), reply, flags=os.SPLICE_F_MORE)
    return handle


def lines(greeting=b"", length=0):
    """Answers lines, after a greeting; @length: sends lines instead."""
    def handle(peer):
        equipped(peer, NODELAY)
        while length:
            peer.sendall((b"x" * length + b"\n") * 500)
        peer.sendall(greeting)
        with peer.makefile("rb") as asked:
            while asked.readline():
                peer.sendall(b"250 ok\r\n")
    return handle


def greeted(small):
    def handle(peer):
        take(peer, small)
        peer.sendall(bytes(small))
        discard(peer)
    return handle


def accepts(port, backlog, pause=0.0, size=0):
    """Accepts a connection after each pause, and keeps it; @size: serves one request
    of so many bytes, and only then accepts the next one."""
    listener = listening(port, backlog)

    def run():
        kept = []
        while True:
            peer = listener.accept()[0]
            with suppress(OSError):
                peer.sendall(b"" if size else b"220 ready\r\n")
                if size:
                    peer.settimeout(2)
                    take(peer, size)
            time.sleep(pause)
            if size:
                with suppress(OSError), peer:
                    peer.sendall(bytes(1))
            else:
                kept.append(peer)
    return run


def file(size):
    (FOLDER / "file").write_bytes(b"")
    os.truncate(FOLDER / "file", size)
    return FOLDER / "file"


def eager(port, work=0, replies=True):
    """One program that reads any number of connections, and answers as it was asked;
    @work: bytes of each read that it works on."""
    listener = listening(port, 1024)

    def run():
        events, peers = select.epoll(), {}
        events.register(listener, select.EPOLLIN)
        while True:
            for ready, _ in events.poll():
                if ready == listener.fileno():
                    peer = listener.accept()[0]
                    peers[peer.fileno()] = peer
                    events.register(peer, select.EPOLLIN)
                elif data := peers[ready].recv(1 << 16):
                    sum(data[:work])
                    if replies:
                        peers[ready].send(data)
                else:
                    peers.pop(ready).close()
    return run


def relays(port):
    """A proxy to a server of the same host."""
    def handle(peer):
        with inside(B):
            sock = socket.socket()
        with sock:
            sock.connect(("127.0.0.1", port))
            to = {peer: sock, sock: peer}
            for one in to:
                equipped(one, NODELAY)
            while True:
                for one in select.select([*to], [], [])[0]:
                    if not (data := one.recv(1 << 16)):
                        return
                    to[one].sendall(data)
    return handle


def sends_file(size):
    def handle(peer):
        with open(file(size), "rb") as opened:
            while True:
                os.sendfile(peer.fileno(), opened.fileno(), 0, size)
    return handle


def sends_back(port, size):
    """As FTP in active mode: a command, then a connection back with the data."""
    def handle(peer):
        while take(peer, 20):
            with inside(B):
                sock = socket.socket()
            with sock:
                sock.connect(("10.9.0.1", port))
                sock.sendall(bytes(size))
            peer.sendall(b"226 complete\r\n")
    return handle


def publisher(port, subscribers, size, pause):
    """One program that sends news to each of its subscribers."""
    listener = listening(port, subscribers)

    def run():
        peers = [equipped(listener.accept()[0], NODELAY) for _ in range(subscribers)]
        while True:
            for peer in peers:
                peer.sendall(bytes(size))
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
