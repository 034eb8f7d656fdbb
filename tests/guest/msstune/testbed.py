# SPDX-License-Identifier: GPL-2.0-only
"""What injected faults are made in: namespaces A and B and, on most topologies, a
router or switch between them; firewall rules; counters of the kernel that prove a
fault."""
import json
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TOP / "userspace/msstune"), str(TOP / "userspace/mssab")]

from mssab.netns import inside, snmp  # noqa: E402

A, B, MIDDLE = "tune-a", "tune-b", "tune-m"
ADDRESS, IPV6 = "10.9.0.2", "fd09::2"       # of B
DEVICE, FACING = {A: "va", B: "vb"}, {A: "ma", B: "mb"}
#: One segment is one packet, as on a wire.
SINGLE = "tso off gso off"
#: A group of processes, and the group below it that has the processes.
POD = Path("/sys/fs/cgroup/tune-pod")
KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))


def sh(text):
    """Run shell commands; $A, $B and $M are the namespaces."""
    subprocess.run(["sh", "-ec", text], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "A": A, "B": B, "M": MIDDLE})


def put(end, settings):
    with inside(end):
        for key, value in settings.items():
            Path("/proc/sys", key.replace(".", "/")).write_text(f"{value}\n")


def clean():
    for end in (A, B, MIDDLE):
        subprocess.run(["ip", "netns", "del", end], check=False, capture_output=True)
    for group in (POD / "one", POD):
        with suppress(OSError):
            group.rmdir()


# --- Topologies -----------------------------------------------------------------

def namespaces(*more):
    clean()
    for end in (A, B, *more):
        sh(f"ip netns add {end}; ip -n {end} link set lo up")
        put(end, {"net.ipv4.tcp_no_metrics_save": 1})


def cable(a="", b="", mtu=1500):
    """veth without queue disciplines; @a, @b: offloads, as ethtool takes them."""
    namespaces()
    sh(f"""
    ip link add va netns $A type veth peer name vb netns $B
    ip -n $A addr add 10.9.0.1/24 dev va; ip -n $A addr add fd09::1/64 dev va nodad
    ip -n $B addr add {ADDRESS}/24 dev vb; ip -n $B addr add {IPV6}/64 dev vb nodad
    ip -n $A link set va mtu {mtu} up; ip -n $B link set vb mtu {mtu} up
    [ -z '{a}' ] || ip netns exec $A ethtool -K va {a}
    [ -z '{b}' ] || ip netns exec $B ethtool -K vb {b}""")


# Round trips are long, so that the emulated CPU is not the limit.
def pair(rtt=50, there="limit 10000", egress="", mtu=1500):
    """A cable, and netem at each end.  @there: more arguments of A's; @egress: A's
    qdisc instead, and all of the delay is at B's."""
    cable(mtu=mtu)
    half = rtt if egress else rtt / 2
    sh(f"tc -n $B qdisc add dev vb root netem limit 10000 delay {half}ms; " + (
        egress or f"tc -n $A qdisc add dev va root netem delay {half}ms {there}"))


def over(kind, end, a="", b="", offloads="", number=7):
    """As cable(), but the addresses of @end are on a bridge, macvlan, ipvlan or VLAN
    over its veth; @offloads: of that device."""
    cable(a, b)
    for one in (A, B) if kind == "vlan" else (end,):
        under, own = DEVICE[one], "over" + DEVICE[one][1]
        four, six = ("10.9.0.1", "fd09::1") if one == A else (ADDRESS, IPV6)
        add = {"bridge": f"{own} type bridge forward_delay 0; "
               f"ip -n {one} link set {under} master {own}",
               "vlan": f"link {under} name {own} type vlan id {number}",
               "macvlan": f"link {under} name {own} type macvlan mode bridge",
               "ipvlan": f"link {under} name {own} type ipvlan mode l2"}[kind]
        sh(f"""
        ip -n {one} addr flush dev {under}
        ip -n {one} link add {add}
        ip -n {one} link set {own} up
        ip -n {one} addr add {four}/24 dev {own}
        ip -n {one} addr add {six}/64 dev {own} nodad""")
        if offloads and one == end:
            sh(f"ip netns exec {one} ethtool -K {own} {offloads}")
    if kind == "bridge":
        time.sleep(1.5)     # the kernel may let a new bridge send only after a second


def joined(rtt, segments, there, back, mtu=1500):
    """A and B at a router; packets of at most so many segments.  @there, @back: more
    arguments of the router's netem towards B and A."""
    namespaces(MIDDLE)
    sh(f"""
    ip link add va netns $A type veth peer name ma netns $M
    ip link add vb netns $B type veth peer name mb netns $M
    for n in va:$A ma:$M vb:$B mb:$M; do
        ip -n ${{n#*:}} link set dev ${{n%:*}} mtu {mtu}; done
    ip -n $A link set va gso_max_segs {segments} up
    ip -n $B link set vb gso_max_segs {segments} up
    ip -n $M link set dev ma up; ip -n $M link set dev mb up
    ip netns exec $M sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    tc -n $M qdisc add dev mb root netem delay {rtt / 2}ms limit 10000 {there}
    tc -n $M qdisc add dev ma root netem delay {rtt / 2}ms limit 10000 {back}""")


def office(rtt=0, segments=2, there="", back="", mtu=1500, vlan=0):
    """A router between two networks, with IPv4 and IPv6; @vlan: A's link to it."""
    joined(rtt, segments, there, back, mtu)
    va, ma = "va", "ma"
    if vlan:
        va, ma = f"va.{vlan}", f"ma.{vlan}"
        sh(f"ip -n $A link add link va name {va} type vlan id {vlan}; "
           f"ip -n $M link add link ma name {ma} type vlan id {vlan}; "
           f"ip -n $A link set {va} gso_max_segs {segments} up; "
           f"ip -n $M link set dev {ma} up")
    sh(f"""
    ip -n $A addr add 10.4.0.1/24 dev {va}; ip -n $A addr add fd04::1/64 dev {va} nodad
    ip -n $B addr add {ADDRESS}/24 dev vb; ip -n $B addr add {IPV6}/64 dev vb nodad
    ip -n $M addr add 10.4.0.254/24 dev {ma}
    ip -n $M addr add fd04::fe/64 dev {ma} nodad
    ip -n $M addr add 10.9.0.254/24 dev mb; ip -n $M addr add fd09::fe/64 dev mb nodad
    ip -n $A route add default via 10.4.0.254; ip -n $A route add default via fd04::fe
    ip -n $B route add default via 10.9.0.254; ip -n $B route add default via fd09::fe
    """)


def via(end, address, metric):
    """The default route of an end of office() has a metric."""
    gateway = {A: ("10.4.0.254", "fd04::fe"), B: ("10.9.0.254", "fd09::fe")}[end]
    sh(f"ip -n {end} route replace default via {gateway[':' in address]} {metric}")


def container(rtt, segments=2, there="", back=""):
    """A is a container: its host has a bridge, and translates addresses (IPv4)."""
    joined(rtt, segments, there, back)
    sh(f"""
    ip -n $M link add docker0 type bridge forward_delay 0
    ip -n $M link set dev ma master docker0; ip -n $M link set docker0 up
    ip -n $M addr add 172.18.0.1/24 dev docker0; ip -n $M addr add 10.9.0.254/24 dev mb
    ip -n $A addr add 172.18.0.2/24 dev va; ip -n $A route add default via 172.18.0.1
    ip -n $B addr add {ADDRESS}/24 dev vb""")
    nft(MIDDLE, "table ip nat {\nchain c {\ntype nat hook postrouting priority 100;\n"
        "oifname mb masquerade\n}\n}\n")
    time.sleep(1.5)     # the kernel may let a new bridge send only after a second


def drawn_path(draw, low, high, four=False, segments=2, there="", back=""):
    """An office, with a VLAN or not, or a container (@four: IPv4 is enough)."""
    rtt, kind = draw("rtt", low, high), draw("way", 0, 2 if four else 1)
    number = draw("vlan", 2, 4000)
    if kind == 2:
        return lambda: container(rtt, segments, there, back)
    return lambda: office(rtt, segments, there, back, vlan=number * kind)


def switched(delay=0):
    """Both ends are at the ports of a switch, which delays what goes to A."""
    namespaces(MIDDLE)
    sh(f"""
    ip link add va netns $A type veth peer name ma netns $M
    ip link add vb netns $B type veth peer name mb netns $M
    ip -n $M link add switch type bridge forward_delay 0
    for port in ma mb; do ip -n $M link set dev $port master switch up; done
    ip -n $M link set switch up; ip -n $A link set va up; ip -n $B link set vb up
    ip -n $A addr add 10.9.0.1/24 dev va; ip -n $B addr add {ADDRESS}/24 dev vb
    ip -n $A addr add fd09::1/64 dev va nodad
    ip -n $B addr add {IPV6}/64 dev vb nodad
    [ {delay} = 0 ] || tc -n $M qdisc add dev ma root netem limit 10000 \
        delay {delay}ms""")
    time.sleep(1.5)     # the kernel may let a new bridge send only after a second


def tunnelled(kind, rtt=0, segments=2, there="", back=""):
    """Both ends are at a switch, and their addresses on a GRE tunnel or a VXLAN over
    it; @there, @back: more arguments of the switch's netem towards B and A."""
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
    ip -n $B addr add {IPV6}/64 dev tun-b nodad""")
    if rtt:
        sh(f"tc -n $M qdisc add dev mb root netem limit 10000 delay {rtt / 2}ms {there}"
           f"; tc -n $M qdisc add dev ma root netem limit 10000 delay {rtt / 2}ms "
           f"{back}")


def bonded(fast, slow):
    """Bonds that send round-robin over two links; A's links delay differently."""
    namespaces()
    sh(f"""
    for end in a b; do [ $end = a ] && ns=$A || ns=$B
        ip -n $ns link add bond-$end type bond mode balance-rr miimon 100; done
    for n in 1 2; do
        ip link add va$n netns $A type veth peer name vb$n netns $B
        ip -n $A link set va$n master bond-a; ip -n $B link set vb$n master bond-b
        ip -n $A link set va$n gso_max_segs 2; done
    ip -n $A link set bond-a gso_max_segs 2 up; ip -n $B link set bond-b up
    ip -n $A addr add 10.9.0.1/24 dev bond-a
    ip -n $B addr add {ADDRESS}/24 dev bond-b
    tc -n $A qdisc add dev va1 root netem limit 10000 delay {fast}ms
    tc -n $A qdisc add dev va2 root netem limit 10000 delay {slow}ms""")
    time.sleep(1.0)     # until the bonds have seen their links


def uplinks(rtt, later, percent):
    """The router has two links to B, and chooses one for each packet: @percent take
    the one on which they arrive later."""
    office(rtt, 1)
    sh(f"""
    ip link add vb2 netns $B type veth peer name mb2 netns $M
    ip -n $B link set vb2 up; ip -n $M link set dev mb2 up
    ip -n $M addr add 10.5.0.254/24 dev mb2; ip -n $B addr add 10.5.0.2/24 dev vb2
    ip -n $M route add default via 10.5.0.2 table 100
    ip -n $M rule add fwmark 1 table 100
    for n in all default vb2; do
        ip netns exec $B sysctl -qw net.ipv4.conf.$n.rp_filter=0; done
    tc -n $M qdisc add dev mb2 root netem limit 10000 delay {rtt / 2 + later}ms""")
    nft(MIDDLE, "table ip balance {\nchain c {\ntype filter hook prerouting priority "
        f"-150;\nip daddr {ADDRESS} numgen random mod 100 < {percent} "
        "meta mark set 1\n}\n}\n")


def through_ifb(end, way, length=32, queues=1, limit=2000, offloads="tso off"):
    """Packets of an end pass an ifb with @queues queues.  Each stops after @length
    packets and then wakes, often in the middle of a packet that software splits."""
    cable()
    tc = f"tc -n {end} qdisc add dev ifb-t"
    sh(f"""
    ip -n {end} link add ifb-t numtxqueues {queues} numrxqueues {queues} \
        txqueuelen {length} type ifb
    ip -n {end} link set ifb-t up
    [ -z '{offloads}' ] || ip netns exec {end} ethtool -K ifb-t {offloads}
    if [ {queues} = 1 ]; then {tc} root pfifo limit {limit}; else
        {tc} root handle 1: mq
        for n in $(seq {queues}); do {tc} parent 1:$n pfifo limit {limit}; done
    fi
    tc -n {end} qdisc add dev {DEVICE[end]} clsact
    tc -n {end} filter add dev {DEVICE[end]} {way} matchall action mirred egress \
        redirect dev ifb-t""")


def leaving(target, rtt, qdisc):
    """The router of an office sends through @qdisc to that end, and delays the way
    back."""
    there = FACING[target]
    back = "mamb".replace(there, "")
    sh(f"tc -n $M qdisc del dev {there} root; "
       f"tc -n $M qdisc change dev {back} root netem delay {rtt}ms limit 10000; "
       f"tc -n $M qdisc add dev {there} root {qdisc}")


def steered(cpu, device="vb"):
    """B's softirqs on one CPU."""
    sh(f"ip netns exec $B sh -c 'echo {1 << cpu:x} > "
       f"/sys/class/net/{device}/queues/rx-0/rps_cpus'")


def polling_thread(cpu):
    """A thread on that CPU handles what B's veth receives (threaded NAPI)."""
    sh("ip netns exec $B sh -c 'echo 1 > /sys/class/net/vb/threaded'")
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().startswith("napi/vb-"):
                os.sched_setaffinity(int(path.parent.name), {cpu})


def quota(percent, period=100, above=False):
    """Of a CPU, in each @period of ms; @above: of the group above that of the
    processes."""
    with suppress(OSError):
        (POD.parent / "cgroup.subtree_control").write_text("+cpu\n")
    (POD / "one").mkdir(parents=True, exist_ok=True)
    if not above:
        (POD / "cgroup.subtree_control").write_text("+cpu\n")
    (POD if above else POD / "one").joinpath("cpu.max").write_text(
        f"{percent * period * 10} {period * 1000}\n")


# --- Firewalls ------------------------------------------------------------------

def nft(end, text):
    with inside(end):
        subprocess.run(["nft", "-f", "-"], input=text, text=True, check=True)


def guarded(end, family, hook, *rules):
    """A chain, with a counter "seen" of the table "guard" that rules may name.
    @hook: as nft takes it, without a priority the usual one."""
    priority = "" if "priority" in hook else " priority 0"
    nft(end, f"table {family} guard {{\ncounter seen {{ }}\nchain c {{\n"
        f"type filter hook {hook}{priority};\n" + "\n".join(rules) + "\n}\n}\n")


def long_chain(end, family, hook, count):
    """@count rules that match nothing, then the counter "seen"."""
    rule = {"bridge": "ether saddr 02:00:5e:00:{0:02x}:{1:02x} drop",
            "netdev": "ip6 saddr fd77::{1:x} tcp dport {2} drop",
            "inet": "ip saddr 192.0.2.{1} tcp dport {2} drop"}[family]
    guarded(end, family, hook, *[rule.format(n // 250, n % 250, 30000 + n)
                                 for n in range(count)], "counter name seen")


# --- Counters of the kernel: a function of the programs' ids each ------------------

def answered(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def extended(end, *words):
    """A sum of counters of /proc/net/netstat."""
    def counter(_):
        with inside(end):
            lines = Path("/proc/thread-self/net/netstat").read_text().splitlines()
        names, values = (line.split() for line in lines if line.startswith("TcpExt:"))
        return sum(int(dict(zip(names, values))[word]) for word in words)
    return counter


def guard(end, family):
    """What the counter of guarded() or long_chain() has seen."""
    def counter(_):
        shown = answered("ip", "netns", "exec", end, "nft", "-j", "list", "counter",
                         family, "guard", "seen")
        return json.loads(shown)["nftables"][1]["counter"]["packets"]
    return counter


def connections(end):
    return answered("ip", "netns", "exec", end, "ss", "-tinH", "state", "established")


def limited(end, what="rwnd_limited", cwnd=0, most=0, scaled=True):
    """Milliseconds for which connections with data were busy (@what) or limited.
    @cwnd: the congestion window that busy ones must have; @most: of their windows."""
    def counter(_):
        shown = connections(end)
        windows = {int(n) for n in re.findall(r" cwnd:(\d+).* busy:", shown)}
        if cwnd and windows != {cwnd}:
            raise ValueError(f"congestion windows of {windows}, {cwnd} expected")
        peers = [*map(int, re.findall(r" snd_wnd:(\d+)", shown))]
        if most and (not peers or max(peers) > most):
            raise ValueError(f"windows of {peers}, at most {most} expected")
        if not scaled and " wscale:" in shown:
            raise ValueError("windows have a scale")
        return sum(int(n) for n in re.findall(rf" {what}:(\d+)ms", shown))
    return counter


def unaligned(_):
    """limited() by a window of few segments and a part of one."""
    for mss, window in re.findall(r" mss:(\d+) .* snd_wnd:(\d+)", connections(A)):
        if not int(window) / 24 < int(window) % int(mss) or int(window) > 15 * int(mss):
            raise ValueError(f"segments of {mss} bytes fit into a window of {window}")
    return limited(A)(_)


def with_threshold(_):
    """Milliseconds for which connections were busy that have a threshold and have lost
    nothing."""
    return sum(int(re.search(r" busy:(\d+)ms", line)[1])
               for line in connections(A).splitlines()
               if " ssthresh:" in line and " busy:" in line and " retrans:" not in line)


def kept_back(end):
    """Grows if a segment's data wait for more than 50 ms on average, to be sent or to
    be acknowledged."""
    def counter(_):
        shown = connections(end)
        return sum(map(int, re.findall(r" busy:(\d+)ms", shown))) \
            - 50 * sum(map(int, re.findall(r" data_segs_out:(\d+)", shown)))
    return counter


def below(size, end, device, way):
    """Grows if the packets of a device have fewer bytes than that on average."""
    def counter(_):
        shown = answered("ip", "-n", end, "-s", "-j", "link", "show", "dev", device)
        seen = json.loads(shown)[0]["stats64"][way]
        return size * seen["packets"] - seen["bytes"]
    return counter


def queue(end, device, what):
    """A number of all queue disciplines; the JSON of hfsc cannot be read."""
    def counter(_):
        shown = answered("tc", "-n", end, "-s", "qdisc", "show", "dev", device)
        return sum(map(int, re.findall(rf"{what} (\d+)", shown)))
    return counter


def lasting(target, kbit, least):
    """Packets over the limit of the router's link, whose queue lasts @least ms."""
    def counter(_):
        shown = json.loads(answered("tc", "-n", MIDDLE, "-s", "-j", "qdisc", "show",
                                    "dev", FACING[target]))[0]
        if (lasts := shown["backlog"] * 8 / kbit) < least:
            raise ValueError(f"the queue lasts {lasts:.0f} ms")
        return shown["overlimits"]
    return counter


def untracked(end):
    """Packets that the full table of connections did not take."""
    def counter(_):
        with inside(end):
            names, *cpus = (line.split() for line in Path(
                "/proc/thread-self/net/stat/nf_conntrack").read_text().splitlines())
        return sum(int(cpu[names.index("drop")], 16) for cpu in cpus)
    return counter


def pressed(_):
    """What the kernel does because memory is short."""
    return sum(extended(end, "TCPMemoryPressures", "PruneCalled", "TCPRcvQDrop",
                        "TCPRcvCollapsed")(_) for end in (A, B))


def throttled(_):
    """Milliseconds for which the groups waited for their quota."""
    return sum(int(usec) // 1000 for path in (POD / "cpu.stat", POD / "one/cpu.stat")
               for usec in re.findall(r"throttled_usec (\d+)", path.read_text()))


def backlog_drops(_):
    return sum(int(line.split()[1], 16) for line in
               Path("/proc/net/softnet_stat").read_text().splitlines())


def softirqs(cpu):
    """Hundredths of a second that a CPU spent in softirqs."""
    def counter(_):
        times = re.search(rf"^cpu{cpu} (.*)", Path("/proc/stat").read_text(), re.M)
        return int(times[1].split()[6])
    return counter


def sleeps(pids):
    """How often the first program slept."""
    status = Path(f"/proc/{pids[0]}/status").read_text().split()
    return int(status[status.index("voluntary_ctxt_switches:") + 1])


def waited(pids):
    """Milliseconds for which the first program waited for its CPU."""
    return int(Path(f"/proc/{pids[0]}/schedstat").read_text().split()[1]) // 10**6


def segments(_):
    """TCP segments that both ends received."""
    return sum(snmp(end)["Tcp.InSegs"] for end in (A, B))


def opens():
    return snmp(A)["Tcp.ActiveOpens"]
