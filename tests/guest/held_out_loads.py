# SPDX-License-Identifier: GPL-2.0-only
"""What the held-out cases are made of: drawn parameters, a path of three namespaces,
and programs."""
import os
import random
import select
import socket
import struct
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/guest"))

import wide_faults as wide  # noqa: E402
from faults import ADDRESS, sh  # noqa: E402
from mssab.netns import inside  # noqa: E402
from wide_faults import A, forever, listening  # noqa: E402

SEED = 25
MIDDLE = "wide-m"       # the router of a routed() path
IPV6 = "fd09::2"
NODELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
TCP_MAXSEG, TCP_WINDOW_CLAMP, SO_ZEROCOPY, MSG_ZEROCOPY = 2, 10, 60, 0x4000000


class Draw:
    """Parameters of one case, at random from a stated range.  They depend on SEED and
    on the name of the case only, so that another case changes none of them."""

    def __init__(self, name):
        self.source, self.drawn = random.Random(f"{SEED} {name}"), {}

    def __call__(self, what, low, high):
        """An integer from @low to @high."""
        return self.drawn.setdefault(what, self.source.randint(low, high))

    @property
    def port(self):
        return self("port", 2000, 30000)


# --- The path -------------------------------------------------------------------

def routed(rtt_ms, there="limit 10000", back="limit 10000"):
    """A router between both ends.  It delays, so neither end has a qdisc of its own;
    @there, @back: more arguments of its netem towards the server and the client."""
    sh(f"""
    ip netns del {MIDDLE} 2>/dev/null || true; ip netns add {MIDDLE}
    ip -n $A link del va
    ip link add va netns $A type veth peer name ma netns {MIDDLE}
    ip link add vb netns $B type veth peer name mb netns {MIDDLE}
    ip -n $A addr add 10.9.1.1/24 dev va; ip -n {MIDDLE} addr add 10.9.1.254/24 dev ma
    ip -n $B addr add {ADDRESS}/24 dev vb; ip -n {MIDDLE} addr add 10.9.0.254/24 dev mb
    ip -n $A link set va up; ip -n $B link set vb up
    ip -n {MIDDLE} link set dev ma up; ip -n {MIDDLE} link set dev mb up
    ip -n $A route add default via 10.9.1.254; ip -n $B route add default via 10.9.0.254
    ip netns exec {MIDDLE} sysctl -qw net.ipv4.ip_forward=1
    tc -n {MIDDLE} qdisc add dev mb root netem delay {rtt_ms / 2}ms {there}
    tc -n {MIDDLE} qdisc add dev ma root netem delay {rtt_ms / 2}ms {back}""")


def filtering(hook, rule):
    """The commands for an nft rule of the router; @rule is quoted for the shell."""
    return (f"ip netns exec {MIDDLE} nft add table inet own; "
            f"ip netns exec {MIDDLE} nft add chain inet own {hook} "
            f"'{{ type filter hook {hook} priority 0; }}'; "
            f"ip netns exec {MIDDLE} nft add rule inet own {hook} '{rule}'")


def router_filter(hook, rule):
    sh(filtering(hook, rule))


def narrow(mtu, icmp):
    """The router's next link carries packets of @mtu; @icmp: it may say so."""
    sh(f"ip -n {MIDDLE} route change 10.9.0.0/24 dev mb src 10.9.0.254 mtu {mtu}")
    if not icmp:
        router_filter("output", "meta l4proto icmp drop")


def flapping(down, up):
    """The link of the server fails and returns, again and again."""
    def run():
        while True:
            sh("ip -n $B link set vb down")
            time.sleep(down)
            sh("ip -n $B link set vb up")
            time.sleep(up)
    return run


# --- Clients --------------------------------------------------------------------

def dial(port, options=(), address=ADDRESS):
    with inside(A):
        sock = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    for option in options:
        sock.setsockopt(*option)
    sock.connect((address, port))
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


def stream(port, write=1 << 16, pause=0.0, options=(), address=ADDRESS, flags=0):
    def run():
        sock, data = dial(port, options, address), bytes(write)
        while True:
            if flags:
                sock.send(data, flags)
                reap(sock)
            else:
                sock.sendall(data)
            if pause:
                time.sleep(pause)
    return run


def ticking(port, tick, write=1 << 16):
    """Writes what the socket takes at each tick of a loop that does other work."""
    def run():
        sock, data = dial(port), bytes(write)
        sock.setblocking(False)
        while True:
            try:
                while True:
                    sock.send(data)
            except BlockingIOError:
                time.sleep(tick)
    return run


def reap(sock):
    """Take the completions of MSG_ZEROCOPY."""
    try:
        while True:
            sock.recvmsg(0, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
    except OSError:
        pass


def ask(port, size, reply, pause=0.0, options=NODELAY, every=0):
    """Requests of @size with an answer of @reply; @every: so many to a connection."""
    def run():
        while True:
            with dial(port, options) as sock:
                number = 0
                while not every or number < every:
                    number += 1
                    sock.sendall(bytes(size))
                    if not take(sock, reply):
                        break
                    time.sleep(pause)
    return run


def download(port, half_closed=False, options=()):
    def run():
        sock = dial(port, options)
        if half_closed:
            sock.shutdown(socket.SHUT_WR)
        while sock.recv(1 << 18):
            pass
        forever()
    return run


def short(port, size, pause=0.0):
    """Short connections, also where some fail at once."""
    def run():
        while True:
            try:
                with inside(A):
                    sock = socket.socket()
                with sock:
                    sock.settimeout(4)
                    sock.connect((ADDRESS, port))
                    sock.sendall(bytes(size))
                    sock.shutdown(socket.SHUT_WR)
                    sock.recv(1)
            except OSError:
                pass
            time.sleep(pause)
    return run


def hold(port, count, options=(), retry=0.0):
    """@count connections that stay open and idle; @retry: go on to try for more."""
    def run():
        kept = []
        while len(kept) < count:
            try:
                kept.append(dial(port, options))
            except OSError:
                time.sleep(retry or 0.2)
        forever()
    return run


def flood(port, pause):
    """SYNs from addresses that do not exist: the router drops the answers."""
    def checksum(data):
        total = sum(struct.unpack(f"!{len(data) // 2}H", data))
        total = (total >> 16) + (total & 0xffff)
        return ~(total + (total >> 16)) & 0xffff

    def run():
        with inside(A):
            raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        source = random.Random(SEED)
        there = socket.inet_aton(ADDRESS)
        while True:
            here = bytes([198, 18, source.randint(0, 255), source.randint(1, 250)])
            half = struct.pack("!HHIIBBH", source.randint(1024, 65535), port,
                               source.getrandbits(32), 0, 5 << 4, 2, 64240)
            proof = checksum(here + there + struct.pack("!HH", 6, 20) + half + bytes(4))
            packet = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0, 64, 6, 0, here,
                                 there) + half + struct.pack("!HH", proof, 0)
            raw.sendto(packet, (ADDRESS, 0))
            time.sleep(pause)
    return run


def many(port, count, size, pause):
    """One program with @count connections, which asks on one after another."""
    def run():
        socks = [dial(port, NODELAY) for _ in range(count)]
        while True:
            for sock in socks:
                sock.sendall(bytes(size))
                take(sock, size)
                time.sleep(pause)
    return run


# --- Servers (handlers of wide.serve) --------------------------------------------

def answer(size, reply, pieces=1, flags=0, most=0):
    """Answers requests, in so many writes; @most: reads no more after so
    many requests."""
    def handle(peer):
        if pieces == 1 and not flags:
            peer.setsockopt(*NODELAY[0])
        number = 0
        while take(peer, size):
            for _ in range(pieces):
                peer.sendall(bytes(reply // pieces), flags)
            number += 1
            if number == most:
                forever()
    return handle


def upload(write=1 << 16, pause=0.0):
    def handle(peer):
        while True:
            peer.sendall(bytes(write))
            if pause:
                time.sleep(pause)
    return handle


def reads(size, pause=0.0, batch=0, options=()):
    """Reads @size per call; @batch: as often as it takes, then a pause."""
    def handle(peer):
        for option in options:
            peer.setsockopt(*option)
        while True:
            if options:     # SO_RCVLOWAT: recv() alone would take what there is
                select.select([peer], [], [])
            if not (take(peer, batch) if batch else peer.recv(size)):
                return
            if pause:
                time.sleep(pause)
    return handle


def accepts_slowly(port, backlog, pause):
    listener = listening(backlog, port)

    def run():
        kept = []
        while True:
            kept.append(listener.accept()[0])
            time.sleep(pause)
    return run


def eager(port, backlog=1024):
    """One program that answers on any number of connections, as it was asked."""
    listener = listening(backlog, port)

    def run():
        events, peers = select.epoll(), {}
        events.register(listener, select.EPOLLIN)
        while True:
            for number, _ in events.poll():
                if number == listener.fileno():
                    peer = listener.accept()[0]
                    peers[peer.fileno()] = peer
                    events.register(peer, select.EPOLLIN)
                elif data := peers[number].recv(1 << 16):
                    peers[number].send(data)
                else:
                    peers.pop(number).close()
    return run


def serve6(port):
    with inside(wide.B):
        listener = socket.create_server((IPV6, port), family=socket.AF_INET6)

    def run():
        peer = listener.accept()[0]
        while peer.recv(1 << 18):
            pass
    return run


def sends_file(path, size):
    def handle(peer):
        with open(path, "rb") as file:
            while True:
                os.sendfile(peer.fileno(), file.fileno(), 0, size)
    return handle


def server_with(port, options, handle=wide.discard):
    """A server that sets its options before it listens."""
    with inside(wide.B):
        listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for option in options:
        listener.setsockopt(*option)
    listener.bind((ADDRESS, port))
    listener.listen()

    def run():
        handle(listener.accept()[0])
    return run
