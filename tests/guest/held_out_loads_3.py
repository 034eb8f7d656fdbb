# SPDX-License-Identifier: GPL-2.0-only
"""What the third set of held-out cases (held_out_path_faults_3.py) is made of:
topologies, programs of Debian, and programs of its own."""
import atexit
import hashlib
import os
import select
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

# It names the namespaces, so it is first.
from path_faults import A, B, namespaces, veth  # noqa: E402
import faults  # noqa: E402
from faults import ADDRESS, sh  # noqa: E402
from held_out_loads import IPV6, MIDDLE, NODELAY, dial, take  # noqa: E402
from mssab.netns import inside  # noqa: E402
from wide_faults import discard  # noqa: E402

#: Files of web servers.
FOLDER = Path(tempfile.mkdtemp(prefix="held-out-"))
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
#: A group of processes with a quota, and the group below it that has the processes.
POD = Path("/sys/fs/cgroup/held-out-pod")
BEYOND = "10.77.0.1"    # an address behind B


# --- Topologies -----------------------------------------------------------------

def small_packets(device, segments):
    """So many segments to a packet of A, as if a wire had merged them."""
    return f"ip -n $A link set {device} gso_max_segs {segments}; "


def gateway(number, rtt=0, segments=2, there="limit 10000"):
    """A VLAN from A to a router, and a plain link to B, with IPv6; @there: more
    arguments of the router's netem towards B."""
    namespaces()
    sh(f"""
    ip netns del {MIDDLE} 2>/dev/null || true; ip netns add {MIDDLE}
    ip link add va netns $A type veth peer name ma netns {MIDDLE}
    ip link add vb netns $B type veth peer name mb netns {MIDDLE}
    {small_packets("va", segments)}
    ip -n $A link set va up; ip -n {MIDDLE} link set dev ma up
    ip -n $B link set vb up; ip -n {MIDDLE} link set dev mb up
    ip -n $A link add link va name va.{number} type vlan id {number}
    ip -n {MIDDLE} link add link ma name ma.{number} type vlan id {number}
    {small_packets(f"va.{number}", segments)}
    ip -n $A link set va.{number} up; ip -n {MIDDLE} link set dev ma.{number} up
    ip -n $A addr add 10.8.0.1/24 dev va.{number}
    ip -n $A addr add fd08::1/64 dev va.{number} nodad
    ip -n {MIDDLE} addr add 10.8.0.254/24 dev ma.{number}
    ip -n {MIDDLE} addr add fd08::fe/64 dev ma.{number} nodad
    ip -n $B addr add {ADDRESS}/24 dev vb; ip -n $B addr add {IPV6}/64 dev vb nodad
    ip -n {MIDDLE} addr add 10.9.0.254/24 dev mb
    ip -n {MIDDLE} addr add fd09::fe/64 dev mb nodad
    ip netns exec {MIDDLE} sysctl -qw net.ipv4.ip_forward=1 \
        net.ipv6.conf.all.forwarding=1
    ip -n $A route add default via 10.8.0.254; ip -n $B route add default via 10.9.0.254
    ip -n $A route add fd09::/64 via fd08::fe; ip -n $B route add fd08::/64 via fd09::fe
    tc -n {MIDDLE} qdisc add dev mb root netem delay {rtt / 2}ms {there}
    tc -n {MIDDLE} qdisc add dev ma root netem delay {rtt / 2}ms limit 10000""")


def switched(delay=0):
    """Both ends are at the ports of a switch, which delays what goes to A."""
    namespaces()
    sh(f"""
    ip netns del {MIDDLE} 2>/dev/null || true; ip netns add {MIDDLE}
    ip link add va netns $A type veth peer name ma netns {MIDDLE}
    ip link add vb netns $B type veth peer name mb netns {MIDDLE}
    ip -n {MIDDLE} link add switch type bridge forward_delay 0
    for port in ma mb; do ip -n {MIDDLE} link set dev $port master switch up; done
    ip -n {MIDDLE} link set switch up; ip -n $A link set va up; ip -n $B link set vb up
    ip -n $A addr add 10.9.0.1/24 dev va; ip -n $B addr add {ADDRESS}/24 dev vb
    ip -n $A addr add fd09::1/64 dev va nodad
    ip -n $B addr add {IPV6}/64 dev vb nodad
    [ {delay} = 0 ] || tc -n {MIDDLE} qdisc add dev ma root netem limit 10000 \
        delay {delay}ms""")
    time.sleep(1.5)     # the kernel may let a new bridge send only after a second


def two_ways(fast, slow):
    """Bonds that send round-robin over two links; A's links delay differently."""
    namespaces()
    sh(f"""
    for end in a b; do [ $end = a ] && ns=$A || ns=$B
        ip -n $ns link add bond-$end type bond mode balance-rr miimon 100; done
    for n in 1 2; do
        ip link add va$n netns $A type veth peer name vb$n netns $B
        ip -n $A link set va$n master bond-a; ip -n $B link set vb$n master bond-b
        {small_packets("va$n", 2)}
    done
    {small_packets("bond-a", 2)}
    ip -n $A link set bond-a up; ip -n $B link set bond-b up
    ip -n $A addr add 10.9.0.1/24 dev bond-a
    ip -n $B addr add {ADDRESS}/24 dev bond-b
    tc -n $A qdisc add dev va1 root netem limit 10000 delay {fast}ms
    tc -n $A qdisc add dev va2 root netem limit 10000 delay {slow}ms""")
    time.sleep(1.0)     # until the bonds have seen their links


def sending_macvlan(offloads=""):
    """A's addresses are on a macvlan, which takes over @offloads of its veth."""
    veth(offloads)
    sh(f"""
    ip -n $A addr flush dev va
    ip -n $A link add link va name mv-a type macvlan mode bridge
    ip -n $A link set mv-a up; ip -n $A addr add 10.9.0.1/24 dev mv-a
    ip -n $A addr add fd09::1/64 dev mv-a nodad
    ip -n $B addr add {IPV6}/64 dev vb nodad""")


def behind():
    """B is the next hop to an address behind it."""
    sh(f"ip -n $B addr add {BEYOND}/32 dev lo; "
       f"ip -n $A route add {BEYOND}/32 via {ADDRESS}")


def filtered(end, text):
    with inside(end):
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)


def ingress(count):
    """@count rules at ingress of B's device that match nothing, then a counter."""
    filtered(B, "\n".join([
        "table netdev long {", "counter passed { }", "chain first {",
        "type filter hook ingress device vb priority 0;",
        *[f"ip6 saddr fd77::{n:x} tcp dport {20000 + n} drop" for n in range(count)],
        "counter name passed", "}", "}", ""]))


def policed(kbytes, burst):
    filtered(MIDDLE, "table ip6 police {\ncounter over { }\nchain c {\n"
             "type filter hook forward priority 0;\noifname mb limit rate over "
             f"{kbytes} kbytes/second burst {burst} kbytes counter name over drop\n"
             "}\n}\n")


def narrowed(mtu):
    """The router's link carries packets of @mtu, and its answers are filtered."""
    sh(f"ip -n {MIDDLE} link set dev mb mtu {mtu}")
    filtered(MIDDLE, "table ip6 silence {\ncounter hidden { }\nchain c {\n"
             "type filter hook output priority 0;\nicmpv6 type packet-too-big "
             "counter name hidden drop\n}\n}\n")


def remembered(port, segments):
    """A route with a locked congestion window.  The kernel applies it once its table
    of metrics has the address: a connection that ends puts it there."""
    faults.put(A, {"net.ipv4.tcp_no_metrics_save": 0})
    sh(f"ip -n $A route replace fd09::/64 via fd08::fe cwnd lock {segments}")
    with inside(B):
        listener = socket.create_server((IPV6, port), family=socket.AF_INET6)
    with listener, dial(port, (), IPV6) as sock, listener.accept()[0] as peer:
        sock.sendall(bytes(10000))
        take(peer, 10000)
    time.sleep(0.5)


# --- Programs -------------------------------------------------------------------

def program(end, *argv, reads=None, writes=None):
    """A program of the distribution; @reads, @writes: descriptors."""
    def run():
        null = os.open(os.devnull, os.O_RDWR)
        for number, given in enumerate((reads, writes, None)):
            os.dup2(null if given is None else given, number)
        with inside(end):
            os.execvp(argv[0], [str(word) for word in argv])
    return run


def file(size):
    (FOLDER / "file").write_bytes(b"")
    os.truncate(FOLDER / "file", size)
    return FOLDER / "file"


def web_server(port, address=ADDRESS, protocol="HTTP/1.0"):
    return program(B, "/usr/bin/python3", "-m", "http.server", port, "--bind", address,
                   "--protocol", protocol, "--directory", FOLDER)


def url(port, rest="file", address=ADDRESS, scheme="http"):
    host = f"[{address}]" if ":" in address else address
    return f"{scheme}://{host}:{port}/{rest}"


def curl(*words, writes=None):
    """Waits for a server that starts late."""
    return program(A, "curl", "-s", "--retry", 30, "--retry-delay", 1,
                   "--retry-connrefused", *([] if writes else ["-o", os.devnull]),
                   *words, writes=writes)


def iperf3(port, *words):
    """The server; with @words, the client."""
    if not words:
        return program(B, "iperf3", "-s", "-p", port)
    return program(A, "iperf3", "-6", "-c", IPV6, "-p", port, "-t", 1000, *words)


def visitors(port, pause, address):
    """A new connection after each pause; each waits for a greeting."""
    def run():
        kept = []
        while True:
            with inside(A):
                sock = socket.socket(socket.AF_INET6)
            sock.setblocking(False)
            sock.connect_ex((address, port))
            kept = [*kept[-200:], sock]
            time.sleep(pause)
    return run


def greets(peer):
    peer.sendall(b"220 ready\r\n")


def receiver(port, handle=discard, address=ADDRESS):
    """A server with a thread for each connection."""
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with suppress(OSError):
                handle(self.request)

    class Server(socketserver.ThreadingTCPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
        daemon_threads, allow_reuse_address = True, True
    with inside(B):
        server = Server((address, port), Handler)
    return server.serve_forever


def buffered(size):
    """A reader that sets its buffer after it has accepted."""
    def handle(peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        discard(peer)
    return handle


def confined(function):
    """The program is in a group without a quota, below one that has one."""
    def run():
        (POD / "one/cgroup.procs").write_text(f"{os.getpid()}\n")
        function()
    return run


def pod(percent, period):
    """@period: ms."""
    with suppress(OSError):
        (POD.parent / "cgroup.subtree_control").write_text("+cpu\n")
    (POD / "one").mkdir(parents=True, exist_ok=True)
    (POD / "cpu.max").write_text(f"{percent * period * 10} {period * 1000}\n")


def hashing(port, size, rounds):
    """Sends blocks, each after its hash."""
    def run():
        sock, data = dial(port), bytes(size)
        while True:
            for _ in range(rounds):
                hashlib.sha256(data).digest()
            sock.sendall(data)
    return run


def secured(port, folder):
    """A web server with TLS."""
    subprocess.run([
        "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
        "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=held-out", "-keyout",
        folder / "key", "-out", folder / "certificate"], check=True,
        capture_output=True)

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=folder)

        def log_message(self, *_):
            pass
    with inside(B):
        server = ThreadingHTTPServer((ADDRESS, port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate", folder / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server.serve_forever


def publisher(port, count, size, pause):
    """One program that sends news to each of its subscribers."""
    with inside(B):
        listener = socket.create_server((IPV6, port), backlog=count,
                                        family=socket.AF_INET6)

    def run():
        peers = [listener.accept()[0] for _ in range(count)]
        for peer in peers:
            peer.setsockopt(*NODELAY[0])
        while True:
            for peer in peers:
                peer.sendall(bytes(size))
            time.sleep(pause)
    return run


def subscribers(port, count):
    """One program with all subscriptions."""
    def run():
        socks = [dial(port, NODELAY, IPV6) for _ in range(count)]
        while ready := select.select(socks, [], [])[0]:
            for sock in ready:
                sock.recv(1 << 16)
    return run


def answers_batches(request, reply):
    """Answers all requests that have arrived, in one write."""
    def handle(peer):
        peer.setsockopt(*NODELAY[0])
        waiting = 0
        while data := peer.recv(1 << 16):
            waiting += len(data)
            if whole := waiting // request:
                peer.sendall(bytes(whole * reply))
                waiting -= whole * request
    return handle


def pipelined(port, request, reply, batch, pause):
    def run():
        sock = dial(port, NODELAY)
        while True:
            sock.sendall(bytes(batch * request))
            take(sock, batch * reply)
            time.sleep(pause)
    return run


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


def lookups(port, query, reply, pause):
    """As DNS over TCP: a connection for each query, with its length before it."""
    def run():
        while True:
            with dial(port, NODELAY, IPV6) as sock:
                sock.sendall(query.to_bytes(2, "big") + bytes(query))
                take(sock, 2 + reply)
            time.sleep(pause)
    return run


def name_server(reply):
    def handle(peer):
        size = int.from_bytes(peer.recv(2, socket.MSG_WAITALL), "big")
        if take(peer, size):
            peer.sendall(reply.to_bytes(2, "big") + bytes(reply))
        peer.recv(1)
    return handle
