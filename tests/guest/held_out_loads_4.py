# SPDX-License-Identifier: GPL-2.0-only
"""What the fourth set of held-out cases (held_out_path_faults_4.py) is made of:
topologies, and programs of its own."""
import errno
import mmap
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

# It names the namespaces, so it is first.
from path_faults import A, B  # noqa: E402
from faults import ADDRESS, sh  # noqa: E402
from held_out_loads import IPV6, MIDDLE, NODELAY, dial, take  # noqa: E402
from held_out_loads_3 import filtered, program, switched  # noqa: E402
from held_out_path_faults import six  # noqa: E402
from mssab.netns import inside  # noqa: E402
from wide_faults import forever, listening  # noqa: E402

SO_SNDBUFFORCE = 32
DATAGRAM = 1200
#: What the kernel charges a socket for such a datagram in a queue.
CHARGED = 2304


# --- Topologies -----------------------------------------------------------------

def tunnelled(kind, rtt=0, segments=2, there="", back=""):
    """Both ends are at a switch, and their addresses on a tunnel over it; @there,
    @back: more arguments of the switch's netem towards B and A."""
    switched()
    words = {"gre": "gre", "vxlan": "vxlan id 7 dstport 4789 dev"}[kind]
    a, b = ("va", "vb") if kind == "vxlan" else ("", "")
    sh(f"""
    ip -n $A addr flush dev va; ip -n $B addr flush dev vb
    ip -n $A addr add 10.8.0.1/24 dev va; ip -n $B addr add 10.8.0.2/24 dev vb
    ip -n $A link add tun-a type {words} {a} local 10.8.0.1 remote 10.8.0.2
    ip -n $B link add tun-b type {words} {b} local 10.8.0.2 remote 10.8.0.1
    for device in va tun-a; do
        ip -n $A link set $device gso_max_segs {segments} up; done
    for device in vb tun-b; do
        ip -n $B link set $device gso_max_segs {segments} up; done
    ip -n $A addr add 10.9.0.1/24 dev tun-a; ip -n $B addr add {ADDRESS}/24 dev tun-b
    ip -n $A addr add fd09::1/64 dev tun-a nodad
    ip -n $B addr add {IPV6}/64 dev tun-b nodad
    tc -n {MIDDLE} qdisc add dev mb root netem limit 10000 delay {rtt / 2}ms {there}
    tc -n {MIDDLE} qdisc add dev ma root netem limit 10000 delay {rtt / 2}ms {back}""")


def short_packets(segments):
    """So many segments to a packet of B."""
    sh(f"ip -n $B link set vb gso_max_segs {segments}")


def shaped(kbit):
    """A's packets arrive through an ifb with a rate."""
    six()
    short_packets(2)
    sh(f"""
    ip -n $A link add ifb-a type ifb; ip -n $A link set ifb-a up
    tc -n $A qdisc add dev ifb-a root handle 1: htb default 1
    tc -n $A class add dev ifb-a parent 1: classid 1:1 htb rate {kbit}kbit
    tc -n $A qdisc add dev ifb-a parent 1:1 fq_codel
    tc -n $A qdisc add dev va clsact
    tc -n $A filter add dev va ingress matchall action mirred egress redirect dev ifb-a
    """)


def repeating(percent, first, later):
    """A radio link to A: so many packets need a second try, and arrive later."""
    sh(f"""
    tc -n {MIDDLE} qdisc replace dev ma root handle 1: prio bands 2 \
        priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
    tc -n {MIDDLE} qdisc add dev ma parent 1:1 netem limit 10000 delay {first}ms
    tc -n {MIDDLE} qdisc add dev ma parent 1:2 netem limit 10000 delay {later}ms""")
    filtered(MIDDLE, "table ip radio {\nchain c {\ntype filter hook forward priority "
             f"0;\nip saddr {ADDRESS} numgen random mod 100 < {percent} "
             "meta priority set 1:2\n}\n}\n")


def guarded(end, family, hook, rule):
    """A chain of one rule, with a counter "seen" of the table "guard"."""
    filtered(end, f"table {family} guard {{\ncounter seen {{ }}\nchain c {{\n"
             f"type filter hook {hook} priority 0;\n{rule}\n}}\n}}\n")


# --- Programs -------------------------------------------------------------------

def perl(port, first, second):
    """Prints a line in two parts, and reads one."""
    return program(A, "perl", "-MIO::Socket::INET", "-e", f"""
        $peer = IO::Socket::INET->new("{ADDRESS}:{port}") or die; $peer->autoflush(1);
        while (1) {{
            print $peer "x" x {first}; print $peer "y" x {second} . "\\n";
            <$peer> // last; }}""")


def answers_lines(peer):
    peer.setsockopt(*NODELAY[0])
    with peer.makefile("rb") as lines:
        while lines.readline():
            peer.sendall(b"250 ok\r\n")


def bash(port):
    """Reads lines: a byte at a time, because it cannot put back what it has read."""
    return program(A, "bash", "-c", "while read -r line; do :; done "
                   f"</dev/tcp/{IPV6}/{port}")


def sends_lines(length):
    def handle(peer):
        data = (b"x" * length + b"\n") * 500
        while True:
            peer.sendall(data)
    return handle


def spliced(request, reply):
    """Answers through a pipe, and says of each answer that more will follow."""
    def handle(peer):
        source, sink = os.pipe()
        while take(peer, request):
            os.write(sink, bytes(reply))
            os.splice(source, peer.fileno(), reply, flags=os.SPLICE_F_MORE)
    return handle


def datagrams(queued, after):
    """Another host's datagrams to B, so many bytes of them in the router's queue."""
    def run():
        with inside(B):
            sink = socket.socket(type=socket.SOCK_DGRAM)
        with inside(MIDDLE):
            sock = socket.socket(type=socket.SOCK_DGRAM)
        sink.bind((ADDRESS, 0))
        sink.setblocking(False)
        # The kernel doubles it.
        sock.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE,
                        queued // (DATAGRAM + 42) * CHARGED // 2)
        time.sleep(after)       # until others have seen the path without them
        while True:
            sock.sendto(bytes(DATAGRAM), sink.getsockname())
            with suppress(BlockingIOError):
                while sink.recv(DATAGRAM):
                    pass
    return run


def lookups(count, after, pause):
    """A datagram from each of many ports."""
    def run():
        kept = []
        time.sleep(after)
        for _ in range(count):
            with inside(A):
                kept.append(socket.socket(type=socket.SOCK_DGRAM))
            kept[-1].sendto(bytes(40), (ADDRESS, 53))
            time.sleep(pause)
        forever()
    return run


def greeter(port, backlog):
    """Greets each client at once."""
    listener = listening(backlog, port)

    def run():
        kept = []
        while True:
            peer = listener.accept()[0]
            with suppress(OSError):
                peer.sendall(b"220 ready\r\n")
            kept = [*kept[-50:], peer]
    return run


def calls(port, size, pause, address, wait=2.0, failed=None):
    """Short connections, which the client closes first; @failed: counts those for
    which the kernel has no port."""
    def run():
        while True:
            try:
                with inside(A):
                    sock = socket.socket(socket.AF_INET6 if ":" in address else
                                         socket.AF_INET)
                with sock:
                    sock.settimeout(wait)
                    sock.connect((address, port))
                    sock.sendall(bytes(size))
                    sock.recv(1)
            except OSError as error:
                if failed and error.errno == errno.EADDRNOTAVAIL:
                    failed[:8] = (number(failed) + 1).to_bytes(8, "little")
            time.sleep(pause)
    return run


def shared():
    """A number that all programs share; one of them changes it."""
    return mmap.mmap(-1, 8)


def number(memory):
    return int.from_bytes(memory[:8], "little")


def answers_after(size, pause, reply=1):
    """Answers each request after a pause."""
    def handle(peer):
        while take(peer, size):
            time.sleep(pause)
            peer.sendall(bytes(reply))
    return handle


def pollers(port, count, size, reply):
    """One program that waits for the answers of all its connections."""
    def run():
        socks = [dial(port, NODELAY, IPV6) for _ in range(count)]
        for sock in socks:
            sock.sendall(bytes(size))
        while True:
            for sock in select.select(socks, [], [])[0]:
                take(sock, reply)
                sock.sendall(bytes(size))
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
                one.setsockopt(*NODELAY[0])
            while True:
                for one in select.select([*to], [], [])[0]:
                    if not (data := one.recv(1 << 16)):
                        return
                    to[one].sendall(data)
    return handle


def leaves(port, size, enough, pause):
    """Asks, and closes the connection in the middle of the answer."""
    def run():
        while True:
            with dial(port) as sock:
                sock.sendall(bytes(size))
                take(sock, enough)
            time.sleep(pause)
    return run
