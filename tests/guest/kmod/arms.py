#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Makes connections whose ends, arms and counts test_arms.sh knows, and
compares them with mssfrac:conn_end, /proc/net/mssfrac and tcp_info.  Runs in
the guest, with the namespaces a and b of tests/lib.sh; a case per call."""
import ctypes
import itertools
import os
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "userspace/mssab"))
from mssab.experiment import arm as rule  # noqa: E402

TRACE = Path("/sys/kernel/tracing/trace")
ADDRESS = {4: "10.9.0.2", 6: "fd09::2"}
BYTES = 50000  # fits socket buffers, and is more than one segment
MARK = 0x4d00
libc = ctypes.CDLL(None, use_errno=True)


def enter(ns):
    """Sockets made from now on are of this namespace."""
    fd = os.open(f"/run/netns/{ns}", os.O_RDONLY)
    assert libc.setns(fd, 0x40000000) == 0
    os.close(fd)


def setting(ns, key, value):
    enter(ns)
    Path("/proc/sys/net", key).write_text(f"{value}\n")


def both(key, value):
    for ns in "ab":
        setting(ns, f"mssfrac/{key}", value)


def counters(ns):
    enter(ns)
    lines = Path("/proc/thread-self/net/mssfrac").read_text().splitlines()
    return {key: int(value) for key, value in map(str.split, lines)}


def segments(sock):
    """Data segments in and out, by the socket's tcp_info."""
    return struct.unpack("II", sock.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, 160)[152:160])


def unacked(sock):
    return struct.unpack("I", sock.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, 160)[24:28])[0]


def until(condition, what):
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)  # polling interval
    raise SystemExit(f"waited too long for {what}")


def events():
    """mssfrac:conn_end by local and peer's port, numbers as numbers."""
    found = {}
    for line in TRACE.read_text().splitlines():
        if " conn_end: " not in line:
            continue
        fields = dict(re.findall(r"(\w+)=(\S+)", line.split(" conn_end: ")[1]))
        fields = {k: int(v) if v.isdigit() else v for k, v in fields.items()}
        key = fields["sport"], fields["dport"]
        assert key not in found, f"two ends of {key}"
        found[key] = fields
    return found


def event(ports):
    until(lambda: ports in events(), f"the end of {ports}")
    return events()[ports]


def ports(sock):
    return sock.getsockname()[1], sock.getpeername()[1]


def connect(version=4, client=None, mark=0, listener_mark=0, ends="ab",
            address=None):
    """A connection: the client's socket and the server's."""
    family = socket.AF_INET if version == 4 else socket.AF_INET6
    enter(ends[1])
    listener = socket.socket(family, socket.SOCK_STREAM)
    if listener_mark:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, listener_mark)
    listener.bind((address or ADDRESS[version], 0))
    listener.listen()
    enter(ends[0])
    client = client or socket.socket(family, socket.SOCK_STREAM)
    if mark:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
    client.connect(listener.getsockname()[:2])
    server, _ = listener.accept()
    listener.close()
    return client, server


def send(one, other, size=BYTES):
    one.sendall(bytes(size))
    while size:
        size -= len(other.recv(size))


def exchange(client, server):
    send(client, server)
    send(server, client)
    until(lambda: not unacked(client) and not unacked(server), "the last ACK")


def finish(client, server):
    """Both directions closed, both sockets still open: tcp_info is final."""
    keys = ports(client), ports(server)
    client.shutdown(socket.SHUT_WR)
    server.shutdown(socket.SHUT_WR)
    return keys


def same(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what}: got {got}, wanted {wanted}")


def counted(key):
    return event(key)["rx_segments"], event(key)["tx_segments"]


# --- Cases ------------------------------------------------------------------

def closed():
    """FIN from both sides: one end goes through TIME_WAIT."""
    for version in 4, 6:
        client, server = connect(version)
        exchange(client, server)
        for sock, key in zip((client, server), finish(client, server)):
            same(f"IPv{version} {key}", counted(key), segments(sock))
            same("segments in and out", min(segments(sock)) > 0, True)


def reset():
    """A reset with data unread: the client's socket outlives it."""
    client, server = connect()
    exchange(client, server)
    client.sendall(bytes(BYTES))
    until(lambda: not unacked(client), "the last ACK")
    keys = ports(client), ports(server)
    last = segments(server)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                      struct.pack("ii", 1, 0))
    server.close()
    same("resetting end", counted(keys[1]), last)
    same("reset end", counted(keys[0]), segments(client))


def disconnected():
    """connect(AF_UNSPEC) clears the socket's counts; then it is used again."""
    client, server = connect()
    exchange(client, server)
    key = ports(client)
    last = segments(client)
    unspec = struct.pack("H14x", socket.AF_UNSPEC)
    assert libc.connect(client.fileno(), unspec, len(unspec)) == 0
    same("disconnected", counted(key), last)
    client, server = connect(client=client)
    send(client, server)
    keys = finish(client, server)
    same("second use", counted(keys[0]), segments(client))


def orphaned():
    """Closed by its process with data not yet sent: the kernel finishes."""
    client, server = connect()
    key, peer = ports(client), ports(server)
    client.sendall(bytes(BYTES))
    client.close()
    while server.recv(65536):
        pass
    server.shutdown(socket.SHUT_WR)
    same("peer of an orphan", counted(peer), segments(server))
    same("orphan", event(key)["tx_segments"] >= event(peer)["rx_segments"] > 0,
         True)


def live():
    """The totals hold what a connection has counted before it ends."""
    before = counters("a")
    client, server = connect()
    for _ in range(3):
        exchange(client, server)
        now = counters("a")
        same("live", tuple(now[f"treated_{way}_segments"]
                           - before[f"treated_{way}_segments"]
                           for way in ("rx", "tx")), segments(client))
    finish(client, server)


def switched():
    """Policies are switched on and off while connections live and the totals are
    read: no total decreases, and no segment is counted twice or lost."""
    pairs = [connect() for _ in range(30)]
    stop, fell = threading.Event(), []

    def read():
        last = counters("a")
        while not stop.is_set():
            now = counters("a")
            fell.extend(key for key in now if now[key] < last[key])
            last = now

    reader = threading.Thread(target=read)
    reader.start()
    for frac in 0, 64, 0, 64, 0:
        both("tx_frac", frac)
        both("rx_frac", frac)
        for pair in pairs:
            exchange(*pair)
    stop.set()
    reader.join()
    same("decreased", fell, [])
    for pair in pairs:
        for sock, key in zip(pair, finish(*pair)):
            same(f"switched {key}", counted(key), segments(sock))


def open_sockets(ns):
    """Connections that have not ended; 06 is TIME_WAIT."""
    enter(ns)
    return [line for name in ("tcp", "tcp6")
            for line in Path("/proc/thread-self/net", name).open()
            if re.match(r" *\d+: \S+ \S+ (?!06)", line)]


def sums():
    """What all connections counted is what the namespaces show."""
    for ns in "ab":
        until(lambda: not open_sockets(ns), f"sockets in {ns}")
    totals = {}
    for ns in "ab":
        for key, value in counters(ns).items():
            totals[key] = totals.get(key, 0) + value
    found = dict.fromkeys(totals, 0)
    for fields in events().values():
        found[f"{fields['arm']}_connections"] += 1
        for key, value in fields.items():
            if key.startswith(("tx_", "rx_")):
                found[f"{fields['arm']}_{key}"] += value
    same("sums", found, totals)
    print(f"{len(events())} connections, {found['treated_tx_segments']} "
          "segments sent")


def hashed():
    """The arm of each connection can be told from its endpoints."""
    arms = set()
    for seed, percent in (0, 50), (4711, 50), (2**32 - 1, 20):
        both("ab_seed", seed)
        both("ab_percent", percent)
        for version, _ in itertools.product((4, 6), range(4)):
            client, server = connect(version)
            one, other = (rule.endpoint(
                f"{a}:{p}" if version == 4 else f"[{a}]:{p}")
                for a, p, *_ in (client.getsockname(), client.getpeername()))
            wanted = rule.arm(one, other, seed, percent), 0
            for key in finish(client, server):
                same(f"seed {seed} percent {percent} {key}",
                     (event(key)["arm"], event(key)["pinned"]), wanted)
            arms.add(wanted[0])
    same("arms met", arms, {"stock", "treated"})
    both("ab_percent", 100)


def pinned_to(keys, wanted):
    for key in keys:
        same(f"arm of {key}", (event(key)["arm"], event(key)["pinned"]),
             wanted)


def marked():
    """A mark on the client's socket, on the listener, of the SYN."""
    both("ab_mark", MARK)
    for percent, mark, arm in ((100, MARK, "stock"), (0, MARK + 1, "treated")):
        both("ab_percent", percent)
        other = {"stock": "treated", "treated": "stock"}[arm]
        for version in 4, 6:
            client, server = finish(*connect(version, mark=mark))
            pinned_to([client], (arm, 1))
            pinned_to([server], (other, 0))
            client, server = finish(*connect(version, listener_mark=mark))
            pinned_to([server], (arm, 1))
            pinned_to([client], (other, 0))
        # Over lo, where the SYN keeps its mark.
        setting("b", "ipv4/tcp_fwmark_accept", 1)
        pinned_to(finish(*connect(mark=mark, ends="bb")), (arm, 1))
        setting("b", "ipv4/tcp_fwmark_accept", 0)
    both("ab_percent", 100)


def other_marks():
    """Marks beside the two, and no ab_mark: the hash decides."""
    for mark in MARK - 1, MARK + 2, 0:
        pinned_to(finish(*connect(mark=mark)), ("treated", 0))
    both("ab_mark", 0)
    for mark in 0, 1, MARK:
        pinned_to(finish(*connect(mark=mark)), ("treated", 0))
    both("ab_mark", MARK)


def fixed():
    """A mark set once the connection is established moves nothing."""
    client, server = connect(mark=MARK)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK + 1)
    exchange(client, server)
    pinned_to(finish(client, server)[:1], ("stock", 1))
    client, server = connect()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
    exchange(client, server)
    pinned_to(finish(client, server)[:1], ("treated", 0))


def bpf(command, *fields):
    attr = struct.pack(*fields)
    fd = libc.syscall(321, command, attr, len(attr))
    assert fd >= 0, os.strerror(ctypes.get_errno())
    return fd


def by_bpf():
    """A BPF program marks the sockets that a cgroup makes."""
    code = b"".join(struct.pack("BBhi", *insn) for insn in (
        (0xb7, 2, 0, MARK),         # r2 = MARK
        (0x63, 1 | 2 << 4, 16, 0),  # ((struct bpf_sock *)r1)->mark = r2
        (0xb7, 0, 0, 1),            # r0 = 1: allow it
        (0x95, 0, 0, 0)))           # return r0
    text = ctypes.create_string_buffer(code)
    licence = ctypes.create_string_buffer(b"GPL")
    # BPF_PROG_LOAD; BPF_PROG_TYPE_CGROUP_SOCK, BPF_CGROUP_INET_SOCK_CREATE
    program = bpf(5, "IIQQIIQII16sII", 9, len(code) // 8,
                  ctypes.addressof(text), ctypes.addressof(licence),
                  0, 0, 0, 0, 0, b"", 0, 2)
    top = Path(os.environ["TMP"], "cgroup")
    top.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "none", top], check=True)
    group = top / "arms"
    group.mkdir()
    fd = os.open(group, os.O_RDONLY)
    bpf(8, "IIII", fd, program, 2, 0)  # BPF_PROG_ATTACH
    os.close(fd)
    (group / "cgroup.procs").write_text(f"{os.getpid()}\n")
    keys = finish(*connect())
    (top / "cgroup.procs").write_text(f"{os.getpid()}\n")
    group.rmdir()
    subprocess.run(["umount", top], check=True)
    pinned_to(keys, ("stock", 1))  # the listener was made there too


def old():
    """Older than the module: counted from its first segment since.  Younger:
    goes on without the module."""
    subprocess.run(["rmmod", "mssfrac"], check=True)
    client, server = connect()
    exchange(client, server)
    before = segments(client)
    subprocess.run(["insmod", os.environ["MODULE"]], check=True)
    Path("/sys/kernel/tracing/events/mssfrac/enable").write_text("1\n")
    exchange(client, server)
    key = finish(client, server)[0]
    same("old", counted(key), tuple(
        now - then for now, then in zip(segments(client), before)))
    young = connect()
    exchange(*young)
    subprocess.run(["rmmod", "mssfrac"], check=True)
    exchange(*young)


globals()[sys.argv[1]]()
