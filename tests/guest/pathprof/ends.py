#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a guest: draws traffic, a topology and faults from a seed, records
them with pathprof, and compares each end of a path with the kernel's counters.

usage: ends.py PATHPROF FIRST-SEED RUNS [TOPOLOGY...]

Prints "ok NAME" or "not ok NAME" for each run, with the differences.  A run
repeats with its seed, except for the timing of the traffic.
"""
import ctypes
import fcntl
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
HOME = os.open("/proc/self/ns/net", os.O_RDONLY)
#: Ends that mean that pathprof lost a packet.
LOSSES = ("stale", "evicted", "no_slot", "map_full", "abandoned", "sock_clash")
KINDS = "veth", "bridge", "router", "vxlan"
SETTLED = 0x06, 0x0a  # time-wait, listen: they send nothing of their own
#: A reset that the network loses is not sent again: its receiver gives up.
PATIENCE = 15
#: Of 1448 bytes, in a GSO packet of 64 KB.
SEGMENTS = 45
#: net.ipv4.tcp_ecn: when asked, always, and always with Accurate ECN (RFC 9768),
#: whose counters take bits of the header word that header prediction compares.
ECN = 2, 1, 3
#: Whether some of the runs record in sampling bursts.
BURSTS = os.environ.get("MSSFRAC_BURSTS", "1") != "0"


def run(command, check=True):
    done = subprocess.run(command, shell=isinstance(command, str), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and done.returncode:
        raise RuntimeError(f"{command}: {done.stdout}")
    return done.stdout


def inside(name, call, *args):
    """Call in a namespace; "" is the one this process began in."""
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY) if name else HOME
    try:
        if LIBC.setns(fd, 0):
            raise OSError(ctypes.get_errno(), f"setns {name}")
        return call(*args)
    finally:
        LIBC.setns(HOME, 0)
        if name:
            os.close(fd)


# --- topologies -------------------------------------------------------------

class Net:
    """Namespaces a and b, and what is between them."""

    def __init__(self, kind):
        self.kind = kind
        self.faulty = False
        self.names = ["a", "b"]
        self.server = "10.9.0.2"
        self.devices = [("a", "va"), ("b", "vb")]
        self.inner = []  # tunnel devices: (namespace, device)
        self.rules = ""
        try:
            getattr(self, kind)()
            self.count()
            self.mark()
        except BaseException:
            self.close()
            raise

    def add(self, *names):
        for name in names:
            run(f"ip netns add {name}; ip -n {name} link set lo up;"
                f"ip netns exec {name} sysctl -qw"
                " net.ipv6.conf.all.disable_ipv6=1"
                " net.ipv6.conf.default.disable_ipv6=1")

    def close(self):
        for name in self.names:
            run(f"ip netns del {name}", check=False)

    def wire(self, one, one_dev, other, other_dev, mtu=1500):
        run(f"ip link add {one_dev} netns {one} type veth"
            f" peer name {other_dev} netns {other};"
            f"ip -n {one} link set {one_dev} mtu {mtu} up;"
            f"ip -n {other} link set {other_dev} mtu {mtu} up")

    def knows(self, name, dev, address, other, other_dev):
        """No ARP: what a device or a qdisc counts is followed, too."""
        mac = run(f"ip netns exec {other} cat /sys/class/net/{other_dev}/address")
        run(f"ip -n {name} neigh replace {address} lladdr {mac.strip()} dev {dev}")

    def veth(self):
        self.add("a", "b")
        self.wire("a", "va", "b", "vb")
        run("ip -n a addr add 10.9.0.1/24 dev va;"
            "ip -n b addr add 10.9.0.2/24 dev vb")
        self.knows("a", "va", "10.9.0.2", "b", "vb")
        self.knows("b", "vb", "10.9.0.1", "a", "va")

    def bridge(self):
        self.names.append("r")
        self.add("a", "b", "r")
        self.wire("a", "va", "r", "ra")
        self.wire("b", "vb", "r", "rb")
        run("ip -n r link add br0 type bridge mcast_snooping 0;"
            "ip -n r link set ra master br0; ip -n r link set rb master br0;"
            "ip -n r link set br0 up;"
            "ip -n a addr add 10.9.0.1/24 dev va;"
            "ip -n b addr add 10.9.0.2/24 dev vb")
        self.knows("a", "va", "10.9.0.2", "b", "vb")
        self.knows("b", "vb", "10.9.0.1", "a", "va")
        self.devices += [("r", "ra"), ("r", "rb")]
        self.rules = "bridge"

    def router(self):
        """With address translation of both ends."""
        self.names.append("r")
        self.add("a", "b", "r")
        self.wire("a", "va", "r", "ra")
        self.wire("b", "vb", "r", "rb")
        run("ip -n a addr add 10.9.0.1/24 dev va;"
            "ip -n r addr add 10.9.0.254/24 dev ra;"
            "ip -n r addr add 10.8.0.254/24 dev rb;"
            "ip -n b addr add 10.8.0.2/24 dev vb;"
            "ip -n a route add default via 10.9.0.254;"
            "ip netns exec r sysctl -qw net.ipv4.ip_forward=1")
        self.nft("r", """table ip nat {
                chain pre {
                        type nat hook prerouting priority dstnat
                        ip daddr 10.9.0.254 meta l4proto { tcp, udp } \
                        th dport 6000-6999 dnat to 10.8.0.2
                }
                chain post {
                        type nat hook postrouting priority srcnat
                        oifname "rb" masquerade
                }
        }""")
        self.knows("a", "va", "10.9.0.254", "r", "ra")
        self.knows("r", "ra", "10.9.0.1", "a", "va")
        self.knows("r", "rb", "10.8.0.2", "b", "vb")
        self.knows("b", "vb", "10.8.0.254", "r", "rb")
        self.server = "10.9.0.254"
        self.devices += [("r", "ra"), ("r", "rb")]
        self.rules = "ip"

    def vxlan(self):
        self.add("a", "b")
        self.wire("a", "va", "b", "vb", 1600)
        run("ip -n a addr add 10.7.0.1/24 dev va;"
            "ip -n b addr add 10.7.0.2/24 dev vb;"
            "ip -n a link add vx type vxlan id 7 dstport 4789"
            " local 10.7.0.1 remote 10.7.0.2;"
            "ip -n b link add vx type vxlan id 7 dstport 4789"
            " local 10.7.0.2 remote 10.7.0.1;"
            "ip -n a link set vx mtu 1500 up; ip -n b link set vx mtu 1500 up;"
            "ip -n a addr add 10.9.0.1/24 dev vx;"
            "ip -n b addr add 10.9.0.2/24 dev vx")
        self.knows("a", "va", "10.7.0.2", "b", "vb")
        self.knows("b", "vb", "10.7.0.1", "a", "va")
        self.knows("a", "vx", "10.9.0.2", "b", "vx")
        self.knows("b", "vx", "10.9.0.1", "a", "vx")
        self.inner = [("a", "vx"), ("b", "vx")]

    def draw(self, rng, ecn):
        """Offloads of each device, and faults towards b or none."""
        for name in "a", "b":
            inside(name, set_ecn, ecn)
        for name, dev in self.devices:
            gro, tso = rng.random() < 0.5, rng.random() < 0.5
            inside(name, offloads, dev, gro, tso, tso or rng.random() < 0.5)
        loss, reorder = rng.choice([0, 0, 1, 5]), rng.choice([0, 0, 30])
        words = f"delay {rng.randint(1, 3)}ms"
        words += f" loss {loss}%" if loss else ""
        words += f" reorder {100 - reorder}% 50%" if reorder else ""
        if self.faulty:
            run("tc -n a qdisc del dev va root")
        self.faulty = bool(loss or reorder)
        if self.faulty:
            run(f"tc -n a qdisc add dev va root netem limit 10000 {words}")

    def count(self):
        """Counters of nft that see what is forwarded."""
        if not self.rules:
            return
        match = "ip protocol" if self.rules == "bridge" else "meta l4proto"
        self.nft("r", f"""table {self.rules} seen {{
                chain forward {{
                        type filter hook forward priority 0
                        {match} tcp counter
                        {match} udp counter
                }}
        }}""")

    def mark(self):
        """One packet of ten has met congestion, if its connection has ECN."""
        for name in "a", "b":
            self.nft(name, """table ip marks {
                chain out {
                        type filter hook postrouting priority 0
                        ip ecn != not-ect numgen random mod 10 == 0 ip ecn set ce
                }
            }""")

    @staticmethod
    def nft(name, text):
        run(["ip", "netns", "exec", name, "nft", text])


def offloads(dev, gro, tso, gso):
    """ETHTOOL_SGRO and so on: a process for each would take most of the time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for command, value in (0x2c, gro), (0x1f, tso), (0x24, gso):
            data = ctypes.create_string_buffer(struct.pack("II", command, value))
            fcntl.ioctl(sock, 0x8946, struct.pack(
                "16sQ8x", dev.encode(), ctypes.addressof(data)))


def set_ecn(value):
    """Older kernels have no Accurate ECN: the mode that is next to it."""
    for mode in value, 1:
        try:
            with open("/proc/sys/net/ipv4/tcp_ecn", "w") as f:
                f.write(str(mode))
            return
        except OSError:
            pass


# --- traffic ----------------------------------------------------------------

def receive(sock, size):
    got = 0
    while got < size:
        data = sock.recv(min(size - got, 65536))
        if not data:
            break
        got += len(data)
    return got


def connection(net, port, plan):
    """One connection: `plan` is a list of (bytes there, bytes back)."""
    listener = inside("b", socket.socket)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.settimeout(PATIENCE)
    listener.bind(("0.0.0.0", port))
    listener.listen(8)

    def serve():
        with listener.accept()[0] as sock:
            sock.settimeout(PATIENCE)
            for there, back in plan["parts"]:
                if receive(sock, there) < there:
                    return
                sock.sendall(b"r" * back)
            if plan["end"] == "unread":
                time.sleep(0.05)  # the last part arrives, and stays unread
            else:
                sock.recv(1)

    server = threading.Thread(target=quietly, args=(serve,))
    server.start()
    try:
        with inside("a", socket.socket) as sock:
            sock.settimeout(PATIENCE)
            sock.connect((net.server, port))
            if plan["nodelay"]:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for there, back in plan["parts"]:
                sock.sendall(b"s" * there)
                receive(sock, back)
                if plan["pause"]:
                    time.sleep(plan["pause"])
            if plan["end"] == "unread":
                sock.sendall(b"u" * 100)
                time.sleep(0.1)
            elif plan["end"] == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                struct.pack("ii", 1, 0))
    finally:
        server.join()
        listener.close()


def quietly(call, *args):
    try:
        call(*args)
    except OSError:
        pass  # reset by the other end, as drawn


def refused(net, port):
    """Nobody listens there: a reset answers."""
    sock = inside("a", socket.socket)
    try:
        sock.connect((net.server, port))
    except ConnectionRefusedError:
        pass
    sock.close()


def datagrams(net, port, sizes):
    there = inside("b", socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    there.bind(("0.0.0.0", port))
    there.settimeout(1)
    here = inside("a", socket.socket, socket.AF_INET, socket.SOCK_DGRAM)
    for size in sizes:
        here.sendto(b"d" * size, (net.server, port))
        try:
            there.recv(2048)
        except TimeoutError:
            pass
    here.close()
    there.close()


def overflow(net, port, clients):
    """A listener whose queue is full refuses SYNs, which are sent again."""
    listener = inside("b", socket.socket)
    listener.bind(("0.0.0.0", port))
    listener.listen(0)
    socks = []
    for _ in range(clients):
        sock = inside("a", socket.socket)
        sock.setblocking(False)
        sock.connect_ex((net.server, port))
        socks.append(sock)
    time.sleep(0.3)  # the SYNs arrive; none is sent again before 1 s
    for sock in socks:
        sock.close()
    listener.close()


def draw_traffic(net, rng):
    """A list of calls, each for a thread."""
    calls = []
    for i in range(rng.randint(1, 4)):
        kind = rng.choice(["bulk", "bulk", "rounds", "short", "both"])
        plan = {"nodelay": rng.random() < 0.5, "pause": 0,
                "end": rng.choice(["close"] * 4 + ["unread", "reset"])}
        if kind == "bulk":
            plan["parts"] = [(rng.randint(1, 400000), 0)]
        elif kind == "both":
            plan["parts"] = [(rng.randint(1, 100000), rng.randint(1, 100000))]
        elif kind == "rounds":
            plan["parts"] = [(rng.randint(1, 3000), rng.randint(1, 3000))
                             for _ in range(rng.randint(1, 30))]
            plan["pause"] = rng.choice([0, 0, 0.05])
        else:
            plan["parts"] = [(1, 1)]
        calls.append((quietly, connection, net, 6000 + i, plan))
    if rng.random() < 0.3:
        calls.append((refused, net, 6100))
    if rng.random() < 0.3:
        calls.append((datagrams, net, 6200,
                      [rng.randint(1, 1400) for _ in range(rng.randint(1, 20))]))
    if rng.random() < 0.3:
        calls.append((overflow, net, 6300, rng.randint(2, 6)))
    return calls


# --- the kernel's counters --------------------------------------------------

def snmp():
    """TcpExt:X, Ip:X and so on of the namespace of this thread."""
    out = {}
    for name in "netstat", "snmp":
        with open(f"/proc/thread-self/net/{name}", encoding="ascii") as f:
            lines = f.read().splitlines()
        for head, values in zip(lines[::2], lines[1::2]):
            group, *names = head.split()
            for key, value in zip(names, values.split()[1:]):
                out[group + key] = int(value)
    return out


def busy():
    """Sockets of this namespace that could still send."""
    with open("/proc/thread-self/net/tcp", encoding="ascii") as f:
        return [line for line in f.readlines()[1:]
                if int(line.split()[3], 16) not in SETTLED]


def received(dev):
    with open("/proc/thread-self/net/dev", encoding="ascii") as f:
        for line in f:
            name, _, values = line.partition(":")
            if name.strip() == dev:
                return int(values.split()[1])
    raise RuntimeError(f"no device {dev}")


def kernel_counts(net):
    total = {}
    for name in ["", *net.names]:
        for key, value in inside(name, snmp).items():
            total[key] = total.get(key, 0) + value
    total["qdisc"] = 0
    if net.faulty:
        total["qdisc"] = int(re.search(r"dropped (\d+)", run(
            "tc -s -n a qdisc show dev va")).group(1))
    total["tunnel"] = sum(inside(name, received, dev)
                          for name, dev in net.inner)
    if net.rules:
        total["forward"] = sum(
            int(n) for n in re.findall(r"packets (\d+)", run(
                f"ip netns exec r nft list table {net.rules} seen")))
    return total


# --- one run ----------------------------------------------------------------

class Profile:
    def __init__(self, path):
        with open(path, encoding="utf-8") as f:
            self.data = json.load(f)
        names = {s["id"]: s["name"] for s in self.data["stages"]}
        self.paths = [({p["direction"], p["end"], *p["flags"],
                        *("@" + names[i] for i in p["stages"]),
                        "until " + names[p["stages"][-2:][0]],
                        *("fact " + i for i in p["facts"])}, p)
                      for p in self.data["paths"]]
        self.names = names

    def n(self, *want, but=(), key="packets"):
        return sum(p[key] for have, p in self.paths
                   if have.issuperset(want) and not have & set(but))

    def describe(self, *want):
        for have, p in self.paths:
            if have.issuperset(want):
                yield (f"{p['packets']} {p['direction']} {p['end']}"
                       f" {p['reason']} {p.get('location', '')} {p['flags']} "
                       f"{[self.names[i] for i in p['stages']]}")


def compare(p, before, after, udp):
    """[(what, pathprof's, the kernel's)] of one recording."""
    def grew(*names):
        return sum(after.get(name, 0) - before.get(name, 0) for name in names)

    account = p.data["account"]
    # What reached TCP of this host, and did not leave before.
    left = ("merged", "forwarded", "reentered", "split", "udp", "@dev")
    rows = [
        ("header prediction hits", p.n("rx", "fast", "data"),
         grew("TcpExt:TCPHPHits")),
        ("predicted ACKs", p.n("hpack"), grew("TcpExt:TCPHPAcks")),
        ("pure ACKs", p.n("pureack"), grew("TcpExt:TCPPureAcks")),
        ("segments sent again", p.n("tx", "retransmit", key="segments"),
         grew("Tcp:RetransSegs")),
        ("out of order", p.n("rx", "ooo"), grew("TcpExt:TCPOFOQueue")),
        ("segments received", p.n("rx", but=left), grew("Tcp:InSegs")),
        ("segments sent", p.n("tx", but=("udp",), key="segments") -
         p.n("tx", "retransmit", "@transmit", key="segments"),
         grew("Tcp:OutSegs")),
        # A full queue refuses an ACK of a SYN cookie at the listener, before it
        # has a state: such packets end behind the filter of the socket.  Where
        # another CPU has made the connection meanwhile, that one drops an ACK.
        ("refused by listeners", p.n("rx", "dropped", "@listen") +
         p.n("rx", "dropped", "@request", but=("established", "@state", "rst")) +
         p.n("rx", "dropped", "until socket", but=("udp",)) +
         p.n("rx", "dropped", "until do_rcv", but=("udp",)),
         grew("TcpExt:ListenDrops")),
        ("dropped by the qdisc", p.n("dropped", "@dev"), grew("qdisc")),
        ("forwarded", p.n("rx", "@dev"), grew("forward")),
        ("decapsulated", p.n("rx", "udp", "reentered"), grew("tunnel")),
        ("TCP reentered", p.n("rx", "reentered", but=("udp",)), 0),
        # TCP has seen those that join the receive queue.
        ("joined in the backlog",
         p.n("rx", "joined", but=("established", "@state")),
         grew("TcpExt:TCPBacklogCoalesce")),
        ("joined in the receive queue", p.n("rx", "joined", "established") +
         p.n("rx", "joined", "@state", but=("established",)),
         grew("TcpExt:TCPRcvCoalesce")),
        ("freed before the driver", p.n("tx", "freed"), 0),
        ("unaccounted", account["unaccounted"], 0),
    ]
    if udp:
        rows.append(("datagrams read", p.n("rx", "udp", "delivered"),
                     grew("Udp:InDatagrams")))
    rows += [(name, account[name], 0) for name in LOSSES]
    return rows


def one_run(pathprof, seed, net):
    """Records one drawn run; what it was, and the differences, if any."""
    rng = random.Random(seed)
    kind = net.kind
    bursts = rng.random() < 0.25 and BURSTS
    fine = not bursts and rng.random() < 0.4
    # A generator of its own: what a seed draws besides stays what it was.
    ecn = random.Random(f"ecn {seed}").choice(ECN)
    net.draw(rng, ecn)
    calls = draw_traffic(net, rng)
    ready, theirs = os.pipe()
    # Outer packets of a tunnel are UDP.
    options = ["--udp", *(["--fine"] if fine else []),
               *(["--budget", "50"] if bursts else ["--sample", "1"])]
    with subprocess.Popen(
            [pathprof, "record", *options, "-o", "run.json",
             "--ready-fd", str(theirs)], pass_fds=(theirs,),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as recorder:
        os.close(theirs)
        if os.read(ready, 1) != b"\n":
            raise RuntimeError(recorder.stdout.read().decode())
        os.close(ready)
        before = kernel_counts(net)
        threads = [threading.Thread(target=c[0], args=c[1:]) for c in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        end = time.monotonic() + 60
        while any(inside(name, busy) for name in net.names):
            if time.monotonic() > end:
                recorder.send_signal(2)
                raise RuntimeError("a connection does not end")
            time.sleep(0.1)
        time.sleep(0.1)  # what was sent last arrives
        recorder.send_signal(2)
        text = recorder.communicate()[0].decode()
        if recorder.returncode:
            raise RuntimeError(text)
    after = kernel_counts(net)
    profile = Profile("run.json")
    rows = compare(profile, before, after, kind != "vxlan")
    missed = sum(h["missed"] for h in profile.data["hooks"])
    if bursts:
        # Only some packets are followed: none may be counted twice or be lost.
        # Which of them are sent again is not seen.
        rows = [(what, ours, theirs + after["Tcp:RetransSegs"] -
                 before["Tcp:RetransSegs"] if what == "segments sent" else theirs)
                for what, ours, theirs in rows]
        # What was joined is inferred there (rx_left() in bpf/end.bpf.h).
        rows = [row for row in rows if not row[0].startswith("joined")
                and (row[1] > row[2] or row[1] < 0)]
    # A hook that the kernel skipped, and counted, may be a difference of one, or
    # of all segments of a GSO packet.
    bad = [row for row in rows if abs(row[1] - row[2]) >
           missed * (SEGMENTS if row[0].startswith("segments sent") else 1)]
    words = (f"{kind}{' --fine' if fine else ''}, ecn {ecn},"
             f"{' bursts,' if bursts else ''}"
             f" {profile.data['account']['sampled']} packets")
    if not bad:
        return words, None
    lines = [f"{what}: pathprof {ours}, kernel {theirs}"
             for what, ours, theirs in bad]
    lines += [line for want in suspects(bad) for line in profile.describe(*want)]
    return words, [f"{missed} missed", *lines]


def suspects(bad):
    """Which paths to print for these differences: how else those ended that are
    missing."""
    for end in "stale", "reentered", "evicted", "dropped", "@listen", "@request":
        yield end,
    names = " ".join(row[0] for row in bad)
    if "joined" in names:
        yield "rx", "established"
    if "datagrams" in names:
        yield "rx", "udp"


def main():
    pathprof, first, runs = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    kinds = sys.argv[4:] or KINDS
    equal = seed = 0
    for kind in kinds:
        net = Net(kind)
        try:
            for seed in range(first, first + runs):
                if kinds[seed % len(kinds)] != kind:
                    continue
                begin = time.monotonic()
                try:
                    words, bad = one_run(pathprof, seed, net)
                except (OSError, RuntimeError) as error:
                    words, bad = kind, [str(error)]
                for line in bad or ():
                    print(" ", line)
                equal += not bad
                print(f"{'not ' if bad else ''}ok seed {seed}: {words},"
                      f" {time.monotonic() - begin:.1f} s", flush=True)
        finally:
            net.close()
    print(f"{equal} of {runs} runs equal to the kernel, seeds {first} to"
          f" {first + runs - 1}", flush=True)


if __name__ == "__main__":
    main()
