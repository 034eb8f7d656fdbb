# SPDX-License-Identifier: GPL-2.0-only
"""Programs of the sixth set of held-out cases (held_out_path_faults_6.py), and what
applies a plan of msstune while they run."""
import ctypes
import json
import mmap
import os
import random
import re
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

# It names the namespaces, so it is first.
from path_faults import A, B, TOP  # noqa: E402
import faults  # noqa: E402
from faults import ADDRESS  # noqa: E402
from held_out_loads import IPV6, NODELAY, TCP_WINDOW_CLAMP, dial, take  # noqa: E402
from held_out_loads import upload  # noqa: E402
from held_out_loads_4 import number, shared  # noqa: E402
from held_out_loads_5 import count  # noqa: E402
from mssab.netns import inside  # noqa: E402

TCP_CORK, TCP_MD5SIG, TCP_FASTOPEN = 3, 14, 23
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)
#: A client that is killed leaves nothing to send.
RESET = ((socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)),)

#: What programs have done, bytes or requests: a number for each process.
SLOTS = 4096
DONE, LOCK = mmap.mmap(-1, 8 * SLOTS), threading.Lock()
#: Clients begin anew when it changes.
EPOCH = shared()
#: Measurements of each arm, and their length.
TIMES, WINDOW = 4, 2.5


# --- Progress -------------------------------------------------------------------

def done(much):
    at = slice(os.getpid() % SLOTS * 8, os.getpid() % SLOTS * 8 + 8)
    with LOCK:
        DONE[at] = (int.from_bytes(DONE[at], "little") + much).to_bytes(8, "little")


def renewed(function):
    """A client that begins anew, with new connections, when EPOCH changes."""
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
                time.sleep(0.1)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return run


def measured(settle):
    """Bytes or requests per second of new connections."""
    count(EPOCH)
    time.sleep(settle)
    before, begun = sum(struct.unpack(f"{SLOTS}Q", DONE)), time.monotonic()
    time.sleep(WINDOW)
    return (sum(struct.unpack(f"{SLOTS}Q", DONE)) - before) / (
        time.monotonic() - begun)


# --- A plan is applied ------------------------------------------------------------

def state(end, settings):
    """What settings can change.  The kernel numbers queue disciplines."""
    def shown(*words):
        return re.sub(r"(qdisc \S+ )[0-9a-f]+:", r"\1", subprocess.run(
            ["ip", "netns", "exec", end, *words], capture_output=True, text=True,
            check=False).stdout)
    with inside(end):
        paths = [Path("/proc/sys", key.replace(".", "/")) for key in (
            one["setting"].removeprefix("sysctl:") for one in settings)
            if key.startswith("net.")]
        # Some of the host do not exist in a network namespace.
        told = [path.read_text() for path in paths if path.exists()]
    devices = re.findall(r"^\d+: ([^:@]+)", shown("ip", "-o", "link"), re.M)
    return [*told, shown("tc", "qdisc"), *[shown("tc", "class", "show", "dev", device)
            + shown("ethtool", "-k", device) for device in devices], shown(
                "ip", "-o", "link"), shown("ip", "route"), shown("ip", "-6", "route")]


def applied(name, facts, end, settle):
    """Apply what msstune proposes, as a user does, and undo it.  False if the load is
    harmed, or if something is not as before."""
    with tempfile.TemporaryDirectory() as folder:
        def msstune(*words):
            ran = subprocess.run(
                ["ip", "netns", "exec", end, TOP / "build/bin/msstune", "--state",
                 f"{folder}/state", *words], capture_output=True, text=True,
                check=False)
            if ran.returncode:
                faults.tell(f"{name}: msstune {words[0]}: status {ran.returncode}: "
                            + (ran.stderr or ran.stdout).strip().replace("\n", "; "))
            return ran

        def tell(result, right=True):
            faults.tell(f"{name}: applied: {result}")
            return right
        Path(folder, "facts.json").write_text(json.dumps(facts))
        ran = msstune("plan", "--facts", f"{folder}/facts.json", "--json")
        if ran.returncode:
            return tell("there is no plan", False)
        Path(folder, "plan.json").write_text(ran.stdout)
        plan = json.loads(ran.stdout)
        for one in plan["settings"] + plan["advice"]:
            faults.tell(f"{name}: plan: {one['setting'] or 'advice'} "
                        f"{one['old']!r} -> {one['new']!r}: {one['reason']}; "
                        f"{one['figure']}")
        if not plan["settings"]:
            return tell("no change: " + (
                "advice" if plan["advice"] else "nothing is proposed"))
        was = state(end, plan["settings"])
        before = [measured(settle) for _ in range(TIMES)]
        apply = "apply", "--yes", "--timeout", "900", f"{folder}/plan.json"
        after, words = [], (apply, (*apply, "--allow-disruptive"))
        if any(msstune(*one).returncode == 0 for one in words):
            after = [measured(settle) for _ in range(TIMES)]
            msstune("rollback")
        restored = state(end, plan["settings"]) == was
        what = ", ".join(f"{one['setting']}={one['new']}" for one in plan["settings"])
        undone = "" if restored else "; it is NOT restored"
        if not after:
            return tell(f"{what}: not possible{undone}", restored)
        return tell(*judged(what, before, after, undone))


def judged(what, before, after, undone):
    """A difference counts if it exceeds that of any two measurements before."""
    spread = max(before) - min(before)
    old, new = statistics.median(before), statistics.median(after)
    factor = f" {new / old:.2f} times" if old else ""
    effect = ("helps" if new - old > spread else "HARMS" if old - new > spread else
              "no change,")
    rates = " ".join(f"{rate:.4g}" for rate in before) + " before, " + " ".join(
        f"{rate:.4g}" for rate in after) + " after"
    return f"{what}: {effect}{factor} ({rates} per s){undone}", (
        effect != "HARMS" and not undone)


# --- Programs of faults -----------------------------------------------------------

def sink(peer):
    while data := peer.recv(1 << 18):
        done(len(data))


def fetches(port, address=ADDRESS, reads=sink):
    """A client that downloads."""
    def run():
        reads(dial(port, RESET, address))
    return run


def commits(batch, pause):
    """Reads a batch of records, and stores it before it reads on."""
    def handle(peer):
        while take(peer, batch):
            time.sleep(pause)
            done(batch)
    return handle


def clamped(size):
    """A reader that has a large buffer, and bounds its window.  It does so again and
    again: the kernel sets it anew when packets get longer."""
    def handle(peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        while data := peer.recv(1 << 16):
            peer.setsockopt(socket.IPPROTO_TCP, TCP_WINDOW_CLAMP, size)
            done(len(data))
    return handle


def sends(options):
    """Sends as fast as the path takes it."""
    def handle(peer):
        for option in options:
            peer.setsockopt(*option)
        upload()(peer)
    return handle


def serves(request, reply, options=NODELAY):
    """Answers requests."""
    def handle(peer):
        for option in options:
            peer.setsockopt(*option)
        while take(peer, request):
            peer.sendall(bytes(reply))
            done(1)
    return handle


def asks(port, request, reply, pause=0.0, options=NODELAY, every=0, address=ADDRESS):
    """Requests; @every: so many to a connection."""
    def run():
        while True:
            with dial(port, options, address) as sock:
                left = every or 1 << 60
                while left:
                    left -= 1
                    sock.sendall(bytes(request))
                    if not take(sock, reply):
                        break
                    time.sleep(pause)
    return run


def greets(port, small, address=ADDRESS):
    """A short exchange, then data as fast as the path takes them."""
    def run():
        sock = dial(port, RESET, address)
        sock.sendall(bytes(small))
        take(sock, small)
        while True:
            sock.sendall(bytes(1 << 16))
    return run


def greeted(small):
    def handle(peer):
        take(peer, small)
        peer.sendall(bytes(small))
        sink(peer)
    return handle


def met(port, address):
    """A connection that ends, after data both ways: the kernel remembers its path."""
    with inside(B):
        listener = socket.create_server((address, port), family=(
            socket.AF_INET6 if ":" in address else socket.AF_INET))
    with listener, dial(port, (), address) as sock, listener.accept()[0] as peer:
        for one, other in ((sock, peer), (peer, sock)):
            one.sendall(bytes(10000))
            take(other, 10000)
    time.sleep(0.5)


# --- Programs of healthy loads ------------------------------------------------------

def checks(port, pause, address):
    """A load balancer's checks: a connection that is closed at once."""
    def run():
        while True:
            dial(port, (), address).close()
            time.sleep(pause)
    return run


def signed(address, key=b"held-out"):
    """The option of a BGP session with MD5, towards @address."""
    there = struct.pack("=HHI16sI", socket.AF_INET6, 0, 0, socket.inet_pton(
        socket.AF_INET6, address), 0)
    return (socket.IPPROTO_TCP, TCP_MD5SIG, there.ljust(128, b"\0") + struct.pack(
        "=BBHi80s", 0, 0, len(key), 0, key))


def speaks(most, pause):
    """Keepalives of 19 bytes and, now and then, an update."""
    def handle(peer):
        threading.Thread(target=sink, args=(peer,), daemon=True).start()
        source = random.Random(6)
        while True:
            peer.sendall(bytes(source.choice((19, 19, 19, source.randint(60, most)))))
            time.sleep(source.uniform(0.5, 1.5) * pause)
    return handle


def ticks(size, tick):
    """Sends the state of a game at each tick, and does not wait for what it gets."""
    def handle(*peers):
        due = time.monotonic()
        while True:
            while ready := select.select(peers, [], [], max(
                    due - time.monotonic(), 0))[0]:
                for peer in ready:
                    if not peer.recv(1 << 16):
                        return
            for peer in peers:
                peer.sendall(bytes(size))
            due = max(due + tick, time.monotonic())
    return handle


def players(port, count_, size, tick):
    """One program with all players."""
    def run():
        ticks(size, tick)(*[dial(port, NODELAY) for _ in range(count_)])
    return run


def disk(blocks):
    """Reads of blocks: the sizes are in the requests of 48 bytes."""
    def handle(peer):
        peer.setsockopt(*NODELAY[0])
        while request := peer.recv(48, socket.MSG_WAITALL):
            peer.sendall(bytes(48 + blocks[request[0]]))
            done(1)
    return handle


def initiator(port, blocks, depth, pause):
    """Keeps several reads under way, then rests."""
    def run():
        sock, source = dial(port, NODELAY), random.Random(6)
        while True:
            sizes = [source.randrange(len(blocks)) for _ in range(depth)]
            for size in sizes:
                sock.sendall(bytes([size]).ljust(48))
            for size in sizes:
                take(sock, 48 + blocks[size])
            time.sleep(source.uniform(0.5, 1.5) * pause)
    return run


def producer(port, least, most, linger):
    """Sends a batch after each pause; receipts arrive on their own."""
    def run():
        sock, source = dial(port, NODELAY, IPV6), random.Random(6)
        threading.Thread(target=sink, args=(sock,), daemon=True).start()
        while True:
            size = source.randint(least, most)
            sock.sendall(size.to_bytes(4, "big") + bytes(size))
            time.sleep(source.uniform(0.5, 1.5) * linger)
    return run


def broker(receipt):
    def handle(peer):
        peer.setsockopt(*NODELAY[0])
        while size := peer.recv(4, socket.MSG_WAITALL):
            take(peer, int.from_bytes(size, "big"))
            peer.sendall(bytes(receipt))
    return handle


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
