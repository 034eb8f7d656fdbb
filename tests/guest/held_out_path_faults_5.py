# SPDX-License-Identifier: GPL-2.0-only
"""A fifth set of held-out faults, by someone who knew of the rules of msstune what its
manual page says, and not their code.  It samples evenly what can limit TCP: 24 of the
42 kinds below were drawn by random.Random(20261127).sample() before any case was
written.  Each has one case, in the way in which an administrator meets it, mild or
strong.  Prints "ok NAME" or "not ok NAME" for each case, and remarks.

usage: held_out_path_faults_5.py list|faults|healthy|all|NAME...
MSSTUNE_SEED=N in the environment: the seed of the parameters, 1 by default.
FACTS=DIR in the environment: store the facts of each case in DIR.

The kinds, in the order of the list; + marks those that were drawn:
  slow reader, + stopped reader, + Nagle and delayed ACK, cork left on,
  + tiny notsent_lowat,
  + receive buffer too small by the system, + and by the program, window scaling off,
  window clamp of a socket, + route with a window lock, + MSS alignment of a small
  window, tcp_adv_win_scale,
  random loss, policer, + congestive shallow queue, + loss of ACKs, + reordering,
  + stale tcp_metrics, + initcwnd, + slow start after idle, cwnd clamp of a route,
  bufferbloat, MTU black hole, + dead next hop, ECN black hole, + shaper here,
  shaper elsewhere,
  + accept queue, + SYN queue, + ephemeral ports, TIME-WAIT, conntrack table,
  + own firewall, + cgroup CPU quota, + softirq overload, backlog, memory pressure,
  + drops of a FIFO, drops of fq, drops of RED, + offloads off, + RPS placement

Each fault must show in a counter of the kernel, or in its errors: the case fails unless
that grows meanwhile.

Do not change a rule until one of these cases passes: write new ones then.
"""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import held_out_path_faults as held  # noqa: E402
import held_out_loads_5 as own  # noqa: E402
from faults import ADDRESS, put, sh  # noqa: E402
from held_out_loads import IPV6, MIDDLE, answer, ask, short, stream, upload  # noqa: E402
from held_out_loads_3 import curl, filtered, receiver, url  # noqa: E402
from held_out_loads_4 import answers_after, calls, guarded, number, shared  # noqa: E402
from held_out_path_faults import SINGLE, case, summing  # noqa: E402
from held_out_path_faults_2 import below  # noqa: E402
from held_out_path_faults_3 import answered, counted, extended, healthy, limited  # noqa: E402
from held_out_path_faults_3 import run, throttled  # noqa: E402
from held_out_path_faults_4 import connections  # noqa: E402
from path_faults import A, B, namespaces, pinned, steered, veth  # noqa: E402
from wide_faults import discard, programs  # noqa: E402

# The command line is that of the first set.  The others have put their cases there.
held.FAULTS.clear()
held.HEALTHY.clear()


def graded(draw, what, mild, strong):
    """An integer from the range of the severity, which is drawn as well."""
    return draw(what, *(strong if draw("strong", 0, 1) else mild))


def seen(draw, sender, receiver_):
    """Where to look, A or B, and what is right there."""
    return dict(zip(("at", "want"), ((A, sender), (B, receiver_))[draw("at B", 0, 1)],
                    strict=True))


# --- Topologies -----------------------------------------------------------------

def joined(rtt, segments, there, back):
    """A and B at a router; packets of at most so many segments.  @there, @back: more
    arguments of the router's netem towards B and A."""
    namespaces()
    sh(f"""
    ip netns del {MIDDLE} 2>/dev/null || true; ip netns add {MIDDLE}
    ip link add va netns $A type veth peer name ma netns {MIDDLE}
    ip link add vb netns $B type veth peer name mb netns {MIDDLE}
    ip -n $A link set va gso_max_segs {segments} up
    ip -n $B link set vb gso_max_segs {segments} up
    ip -n {MIDDLE} link set dev ma up; ip -n {MIDDLE} link set dev mb up
    ip netns exec {MIDDLE} sysctl -qw net.ipv4.ip_forward=1 \
        net.ipv6.conf.all.forwarding=1
    tc -n {MIDDLE} qdisc add dev mb root netem delay {rtt / 2}ms limit 10000 {there}
    tc -n {MIDDLE} qdisc add dev ma root netem delay {rtt / 2}ms limit 10000 {back}""")


def office(rtt, segments=2, there="", back=""):
    """A router between two networks, with IPv4 and IPv6."""
    joined(rtt, segments, there, back)
    sh(f"""
    ip -n $A addr add 10.4.0.1/24 dev va; ip -n $A addr add fd04::1/64 dev va nodad
    ip -n $B addr add {ADDRESS}/24 dev vb; ip -n $B addr add {IPV6}/64 dev vb nodad
    ip -n {MIDDLE} addr add 10.4.0.254/24 dev ma
    ip -n {MIDDLE} addr add fd04::fe/64 dev ma nodad
    ip -n {MIDDLE} addr add 10.9.0.254/24 dev mb
    ip -n {MIDDLE} addr add fd09::fe/64 dev mb nodad
    ip -n $A route add default via 10.4.0.254; ip -n $A route add default via fd04::fe
    ip -n $B route add default via 10.9.0.254
    ip -n $B route add default via fd09::fe""")


def container(rtt, segments=2, there="", back=""):
    """A is a container: its host has a bridge, and translates addresses."""
    joined(rtt, segments, there, back)
    sh(f"""
    ip -n {MIDDLE} link add docker0 type bridge forward_delay 0
    ip -n {MIDDLE} link set dev ma master docker0; ip -n {MIDDLE} link set docker0 up
    ip -n {MIDDLE} addr add 172.18.0.1/24 dev docker0
    ip -n {MIDDLE} addr add 10.9.0.254/24 dev mb
    ip -n $A addr add 172.18.0.2/24 dev va; ip -n $A route add default via 172.18.0.1
    ip -n $B addr add {ADDRESS}/24 dev vb""")
    filtered(MIDDLE, "table ip nat {\nchain c {\ntype nat hook postrouting priority "
             "100;\noifname mb masquerade\n}\n}\n")
    time.sleep(1.5)     # the kernel may let a new bridge send only after a second


def rack(a="", b=""):
    """A cable, and B's addresses on an ipvlan; @a, @b: offloads of the veths."""
    veth(a, b)
    sh(f"""
    ip -n $B addr flush dev vb
    ip -n $B link add link vb name iv-b type ipvlan mode l2
    ip -n $B link set iv-b up; ip -n $B addr add {ADDRESS}/24 dev iv-b
    ip -n $B addr add {IPV6}/64 dev iv-b nodad
    ip -n $A addr add fd09::1/64 dev va nodad""")


def uplinks(rtt, later, percent):
    """The router has two links to B, and chooses one for each packet: @percent take
    the one on which they arrive later."""
    office(rtt, 1)
    sh(f"""
    ip link add vb2 netns $B type veth peer name mb2 netns {MIDDLE}
    ip -n $B link set vb2 up; ip -n {MIDDLE} link set dev mb2 up
    ip -n {MIDDLE} addr add 10.5.0.254/24 dev mb2; ip -n $B addr add 10.5.0.2/24 dev vb2
    ip -n {MIDDLE} route add default via 10.5.0.2 table 100
    ip -n {MIDDLE} rule add fwmark 1 table 100
    for n in all default vb2; do
        ip netns exec $B sysctl -qw net.ipv4.conf.$n.rp_filter=0; done
    tc -n {MIDDLE} qdisc add dev mb2 root netem limit 10000 \
        delay {rtt / 2 + later}ms""")
    filtered(MIDDLE, "table ip balance {\nchain c {\ntype filter hook prerouting "
             f"priority -150;\nip daddr {ADDRESS} numgen random mod 100 < {percent} "
             "meta mark set 1\n}\n}\n")


def congested_before(port, rtt, limit):
    """Connections of A that lost segments in a short queue have ended.  Then the link
    is better, and A remembers their threshold."""
    put(A, {"net.ipv4.tcp_no_metrics_save": 0,
            "net.ipv4.tcp_no_ssthresh_metrics_save": 0})
    sh(f"tc -n {MIDDLE} qdisc del dev mb root; tc -n {MIDDLE} qdisc add dev mb root "
       f"netem delay {rtt / 2}ms rate 2mbit limit {limit}")
    until = time.monotonic() + 20
    with programs(receiver(port), *[short(port, 60_000)] * 3):
        while time.monotonic() < until and "ssthresh" not in subprocess.run(
                ["ip", "-n", A, "tcp_metrics", "show"], capture_output=True, text=True,
                check=True).stdout:
            time.sleep(0.2)
    sh(f"tc -n {MIDDLE} qdisc del dev mb root; tc -n {MIDDLE} qdisc add dev mb root "
       f"netem delay {rtt / 2}ms limit 10000")


# --- Counters of the kernel -------------------------------------------------------

def queues(end, device, what):
    """The JSON of hfsc cannot be read."""
    def counter():
        shown = answered("tc", "-n", end, "-s", "qdisc", "show", "dev", device)
        return sum(map(int, re.findall(rf"{what} (\d+)", shown)))
    return counter


def softirqs(cpu):
    """Hundredths of a second that a CPU spent in softirqs."""
    def counter():
        times = re.search(rf"^cpu{cpu} (.*)", Path("/proc/stat").read_text(), re.M)
        return int(times[1].split()[6])
    return counter


def unaligned():
    """limited() by a window of few segments and a part of one."""
    for mss, window in re.findall(r" mss:(\d+) .* snd_wnd:(\d+)", connections(A)):
        if not int(window) / 24 < int(window) % int(mss) or int(window) > 15 * int(mss):
            raise ValueError(f"segments of {mss} bytes fit into a window of {window}")
    return limited(A, "rwnd_limited")()


def with_threshold():
    """Milliseconds for which connections were busy that have a threshold and have lost
    nothing."""
    return sum(int(re.search(r" busy:(\d+)ms", line)[1])
               for line in connections(A).splitlines()
               if " ssthresh:" in line and " busy:" in line and " retrans:" not in line)


# --- Faults, in the order of the list ----------------------------------------------

@case("a consumer that is suspended")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 1, 40), draw("kB", 1, 32) * 1024
    count, pause = draw("connections", 1, 3), draw("ms", 0, 4) / 1000
    return dict(topology=lambda: container(rtt), warm=draw("warm ms", 800, 2000) / 1000,
                **seen(draw, ["peer-stopped"], ["reader-stopped"]),
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, size, pause)] * count,
                late=lambda pids: os.kill(pids[0], signal.SIGSTOP),
                after=graded(draw, "ms stopped", (2500, 3500), (4500, 6000)) / 1000,
                proof=(extended(A, "TCPWinProbe"), 1))


@case("a driver that writes the head and the body of a message")
def _(draw):
    port, count = draw.port, draw("connections", 1, 4)
    rtt, pause = graded(draw, "rtt", (12, 20), (1, 8)), graded(
        draw, "ms", (5, 12), (0, 1)) / 1000
    head, body = draw("head", 4, 24), draw("body", 20, 900)
    reply = draw("reply", 8, 2000)
    return dict(topology=lambda: container(rtt), want=["nagle"],
                servers=lambda: [receiver(port, answer(head + body, reply))],
                clients=lambda: [
                    own.statements(port, head, body, reply, pause)] * count,
                proof=(extended(B, "DelayedACKs"), 15))


# The link is free while the program does other things.
@case("a low-water mark of few bytes")
def _(draw):
    port, rtt, mbit = draw.port, draw("rtt", 10, 30), draw("mbit/s", 60, 100)
    low = draw("bytes", 1, 4000)
    tick = graded(draw, "ms", (220, 280), (300, 450)) / 1000
    down, idle = draw("download", 0, 1), shared()
    write, rate = own.unwilling(low, tick, idle), f"rate {mbit}mbit limit 4000"
    return dict(topology=lambda: office(rtt, 2, rate, rate), at=B if down else A,
                want=["application-send", "send-buffer"], warm=3.0,
                servers=lambda: [receiver(port, write if down else discard, IPV6)],
                clients=lambda: [own.fetches(port, IPV6) if down else (
                    lambda: write(own.dial(port, (), IPV6)))],
                proof=(lambda: number(idle), 5))


@case("a small maximum of tcp_rmem")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 60, 100), draw("connections", 1, 3)
    most = graded(draw, "kB", (130, 200), (60, 80)) * 1024
    return dict(topology=lambda: container(rtt), warm=3.0,
                before=lambda: put(A, {"net.ipv4.tcp_rmem": f"4096 {most} {most}"}),
                **seen(draw, ["receive-window"], ["receive-window"]),
                servers=lambda: [receiver(port, upload())],
                clients=lambda: [own.fetches(port)] * count,
                proof=(limited(B, "rwnd_limited"), 900))


@case("a daemon that is configured with a receive buffer")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 60, 100), draw("connections", 1, 3)
    size = graded(draw, "kB", (56, 80), (28, 36)) * 1024
    address = (ADDRESS, IPV6)[draw("IPv6", 0, 1)]
    return dict(topology=lambda: office(rtt), warm=3.0,
                **seen(draw, ["receive-window"], ["receive-buffer-fixed"]),
                servers=lambda: [own.configured(port, options=own.buffer(size))],
                clients=lambda: [stream(port, address=address)] * count,
                proof=(limited(A, "rwnd_limited"), 900))


# The kernel chooses the scale of windows by that of the route, so autotuning does not
# reach far beyond it.
@case("a route with a window")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 60, 100), draw("connections", 1, 3)
    window = graded(draw, "bytes", (70_000, 120_000), (8000, 60_000))
    unscaled = ["window-scaling"] * draw("strong", 0, 1)
    return dict(topology=lambda: office(rtt), warm=3.0,
                before=lambda: sh("ip -n $A route replace default via 10.4.0.254 "
                                  f"window lock {window}"),
                **seen(draw, ["route-window"], ["receive-window", *unscaled]),
                servers=lambda: [receiver(port, upload())],
                clients=lambda: [own.fetches(port)] * count,
                proof=(limited(B, "rwnd_limited"), 900))


@case("jumbo frames and a small tcp_rmem")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 20, 60), draw("connections", 1, 3)
    # Hundredths of a segment that fit into the window.
    parts = graded(draw, "whole", (4, 6), (2, 3)) * 100 + draw("part", 35, 65)
    most = int(8948 * parts / 100 / 0.7115)

    def before():
        sh(f"ip -n $A link set va mtu 9000; ip -n {MIDDLE} link set dev ma mtu 9000; "
           f"ip -n $B link set vb mtu 9000; ip -n {MIDDLE} link set dev mb mtu 9000")
        put(B, {"net.ipv4.tcp_rmem": f"4096 {most} {most}"})
    return dict(topology=lambda: office(rtt, 1), before=before, warm=2.5,
                want=["mss-granularity"] if draw("strong", 0, 1) else
                ["mss-granularity", "receive-window"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)] * count, proof=(unaligned, 900))


@case("a full link with a shallow queue")
def _(draw):
    port, rtt, mbit = draw.port, draw("rtt", 30, 60), draw("mbit/s", 8, 14)
    percent = graded(draw, "percent of the path", (25, 40), (6, 14))
    limit = max(rtt * mbit * 1000 // 8 * percent // 100, 3000)
    count = draw("connections", 2, 4)

    def before():
        sh(f"tc -n {MIDDLE} qdisc del dev mb root; tc -n {MIDDLE} qdisc change dev ma "
           f"root netem delay {rtt}ms limit 10000; "
           f"tc -n {MIDDLE} qdisc add dev mb root "
           f"handle 1: tbf rate {mbit}mbit burst 3kb limit 1mb; tc -n {MIDDLE} qdisc "
           f"add dev mb parent 1:1 handle 10: bfifo limit {limit}")
    return dict(topology=lambda: office(rtt, 1), before=before, warm=3.0,
                want=["policer", "loss"] + ["path"] * (1 - draw("strong", 0, 1)),
                servers=lambda: [receiver(port, address=IPV6)],
                clients=lambda: [stream(port, address=IPV6)] * count,
                proof=(queues(MIDDLE, "mb", "dropped"), 10))


@case("a camera whose way back is full of others' packets")
def _(draw):
    port, rtt, kbit = draw.port, draw("rtt", 10, 40), draw("kbit/s", 800, 1200)
    load = kbit * graded(draw, "percent of it", (260, 320), (340, 420)) // 100
    packets, count = draw("packets", 4, 8), draw("connections", 1, 3)
    frame, pause = draw("kB", 15, 30) * 1024, draw("ms", 25, 40) / 1000

    def before():
        sh(f"tc -n {MIDDLE} qdisc change dev mb root netem delay {rtt}ms limit 10000; "
           f"tc -n {MIDDLE} qdisc del dev ma root; "
           f"tc -n {MIDDLE} qdisc add dev ma root "
           f"handle 1: tbf rate {kbit}kbit burst 3kb limit 1mb; tc -n {MIDDLE} qdisc "
           f"add dev ma parent 1:1 handle 10: pfifo limit {packets}")
    return dict(topology=lambda: office(rtt), before=before, want=["ack-loss"],
                warm=4.0,
                servers=lambda: [receiver(port)],
                clients=lambda: [*[stream(port, frame, pause)] * count,
                                 own.noise(load)],
                proof=(extended(A, "TCPTimeouts", "TCPLossProbes"), 2))


@case("two uplinks that are chosen for each packet")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 4, 20), draw("connections", 1, 3)
    later = graded(draw, "ms later", (15, 25), (35, 60))
    percent = graded(draw, "percent", (15, 25), (30, 50))
    return dict(topology=lambda: uplinks(rtt, later, percent), want=["reordering"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)] * count,
                proof=(extended(B, "TCPOFOQueue"), 30))


@case("a link that was worse before")
def _(draw):
    port, rtt = draw.port, graded(draw, "rtt", (120, 150), (170, 220))
    limit, count = draw("packets", 4, 7), draw("connections", 1, 3)
    return dict(topology=lambda: container(rtt), warm=1.0,
                before=lambda: congested_before(port + 1, rtt, limit),
                want=["stale-metrics"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)] * count, proof=(with_threshold, 900))


@case("a server whose route has a small initcwnd")
def _(draw):
    port, rtt, first = draw.port, draw("rtt", 50, 90), graded(
        draw, "segments", (3, 4), (1, 2))
    request, reply = draw("bytes asked", 80, 600), draw("kB", 40, 120) * 1024
    count, pause, met = draw("clients", 2, 5), draw("ms", 0, 50) / 1000, shared()
    return dict(topology=lambda: office(rtt), at=B, want=["initcwnd"],
                before=lambda: sh("ip -n $B route replace default via 10.9.0.254 "
                                  f"initcwnd {first}"),
                servers=lambda: [receiver(port, own.pages(request, reply, first, met))],
                clients=lambda: [ask(port, request, reply, pause, every=1)] * count,
                proof=(lambda: number(met), 5))


@case("a file after each rest")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 60, 110), draw("kB", 300, 700) * 1024
    pause, met = graded(draw, "ms", (600, 800), (1000, 1500)) / 1000, shared()
    return dict(topology=lambda: container(rtt), want=["idle-restart"],
                warm=draw("warm ms", 5000, 6000) / 1000,
                servers=lambda: [receiver(port, answer(size, 1))],
                clients=lambda: [own.snapshots(port, size, pause, met)],
                proof=(lambda: number(met), 1))


@case("the gateway of a container dies")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 5, 40), draw("connections", 3, 5)
    write, pause = draw("kB", 4, 64) * 1024, draw("ms", 0, 30) / 1000
    return dict(topology=lambda: container(rtt), want=["path-down"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, write, pause)] * count,
                late=lambda _: sh(f"ip -n {MIDDLE} link set dev docker0 down"),
                after=graded(draw, "ms after", (600, 1500), (3000, 6000)) / 1000,
                proof=(extended(A, "TCPTimeouts"), 2))


@case("an own limit of the rate")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 5, 40), draw("connections", 2, 4)
    mbit = graded(draw, "mbit/s", (8, 14), (1, 3))
    more = "default 1; tc -n $A class add dev va parent 1: classid 1:1"
    qdisc = (f"tbf rate {mbit}mbit burst 10kb limit 500kb",
             f"handle 1: htb {more} htb rate {mbit}mbit", f"handle 1: hfsc {more} hfsc "
             f"sc rate {mbit}mbit ul rate {mbit}mbit")[draw("kind", 0, 2)]
    address = (ADDRESS, IPV6)[draw("IPv6", 0, 1)]
    return dict(topology=lambda: office(rtt), want=["shaper"], warm=3.0,
                before=lambda: sh(f"tc -n $A qdisc add dev va root {qdisc}"),
                servers=lambda: [receiver(port, address=address)],
                clients=lambda: [stream(port, address=address)] * count,
                proof=(queues(A, "va", "overlimits"), 30))


@case("a server that serves one client at a time")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 1, 30), draw("bytes", 50, 900)
    backlog, count = graded(draw, "backlog", (4, 6), (1, 3)), draw("clients", 12, 18)
    pause = graded(draw, "ms", (100, 200), (250, 500)) / 1000
    return dict(topology=lambda: container(rtt), warm=4.0,
                **seen(draw, ["peer-accept-queue", "no-answer"], ["accept-queue"]),
                servers=lambda: [own.one_at_a_time(port, backlog, size, pause)],
                clients=lambda: [calls(port, size, 0.02, ADDRESS, 8.0)] * count,
                proof=(extended(B, "ListenOverflows"), 10))


@case("a scanner that leaves connections half open")
def _(draw):
    port, rtt, cookies = draw.port, draw("rtt", 5, 40), draw("cookies", 0, 1)
    backlog = graded(draw, "backlog", (24, 48), (6, 12))
    often, size = draw("ms of the scanner", 8, 20) / 1000, draw("bytes", 50, 900)

    def before():
        sh("ip -n $A addr add 10.4.0.128/25 dev lo")
        guarded(MIDDLE, "ip", "forward",
                "ip daddr 10.4.0.128/25 counter name seen drop")
        put(B, {"net.ipv4.tcp_syncookies": cookies})
    return dict(topology=lambda: office(rtt), before=before, at=B, want=["syn-queue"],
                servers=lambda: [own.configured(port, answers_after(size, 0),
                                                backlog=backlog)],
                clients=lambda: [calls(port, size, 0.1, ADDRESS),
                                 own.half_open(port, often)], warm=4.0,
                proof=(extended(B, "TCPReqQFullDrop", "TCPReqQFullDoCookies"), 10))


@case("few local ports and many short connections")
def _(draw):
    port, rtt, first = draw.port, draw("rtt", 1, 15), draw("first", 20000, 60000)
    count, size = graded(draw, "ports", (60, 110), (15, 40)), draw("bytes", 50, 2000)
    clients, failed = draw("clients", 2, 4), shared()
    return dict(topology=lambda: container(rtt), want=["ports-used-up"], warm=6.0,
                before=lambda: put(A, {"net.ipv4.ip_local_port_range":
                                       f"{first} {first + count - 1}"}),
                servers=lambda: [receiver(port, answers_after(size, 0))],
                clients=lambda: [calls(port, size, 0.02, ADDRESS, failed=failed)]
                * clients, proof=(lambda: number(failed), 20))


@case("a firewall that limits new connections")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 1, 30), draw("bytes", 50, 2000)
    rate = graded(draw, "per minute", (120, 200), (20, 60))
    burst, count = draw("burst", 3, 8), draw("clients", 4, 8)
    return dict(topology=lambda: container(rtt), warm=4.0,
                before=lambda: guarded(
                    B, "inet", "input", f"tcp dport {port} ct state new "
                    "limit rate over "
                    f"{rate}/minute burst {burst} packets counter name seen drop"),
                **seen(draw, ["no-answer"], ["own-firewall"]),
                servers=lambda: [receiver(port, answers_after(size, 0))],
                clients=lambda: [calls(port, size, 0.1, ADDRESS, 5.0)] * count,
                proof=(counted(B, "inet", "guard", "seen"), 5))


@case("a server with a CPU limit of its container")
def _(draw):
    port, rtt = draw.port, draw("rtt", 1, 15)
    percent = graded(draw, "percent", (12, 20), (3, 8))
    request, reply = draw("bytes asked", 80, 900), draw("answered", 500, 20000)
    work, count = draw("kB compressed", 4, 24), draw("clients", 2, 4)
    return dict(topology=lambda: office(rtt), at=B, want=["cpu-quota"], warm=3.0,
                before=lambda: own.quota(percent),
                servers=lambda: [own.with_quota(receiver(
                    port, own.compresses(request, reply, work)))],
                clients=lambda: [ask(port, request, reply)] * count,
                proof=(throttled, 900))


# Programs are on the other CPUs.  The kernel splits what the flood sends at its
# receiver, so the flood costs that CPU more than it costs its sender.
@case("a flood of datagrams, and one CPU for all packets")
def _(draw):
    port, cpu, each = draw.port, draw("CPU", 0, 2), graded(
        draw, "datagrams", (30, 40), (55, 63))
    count, write = draw("connections", 2, 4), draw("kB", 16, 64) * 1024
    return dict(topology=rack, before=lambda: steered(cpu), cpus=3, at=B, warm=3.0,
                want=["cpu-softirq"],
                servers=lambda: [pinned((cpu + 2) % 3, receiver(port))],
                clients=lambda: [*[pinned((cpu + 2) % 3, stream(port, write))] * count,
                                 pinned((cpu + 1) % 3, own.flood(each))],
                proof=(softirqs(cpu), 180))


@case("a FIFO of few packets below HTB")
def _(draw):
    port, rtt, mbit = draw.port, draw("rtt", 50, 80), draw("mbit/s", 15, 25)
    limit = graded(draw, "packets", (8, 12), (3, 5))
    count = graded(draw, "connections", (8, 12), (5, 7))
    return dict(topology=lambda: office(rtt, 1), want=["qdisc-drops"], warm=3.0,
                before=lambda: sh(
                    "tc -n $A qdisc add dev va root handle 1: htb default 1; tc -n $A "
                    f"class add dev va parent 1: classid 1:1 htb rate {mbit}mbit; "
                    "tc -n "
                    f"$A qdisc add dev va parent 1:1 handle 10: pfifo limit {limit}"),
                servers=lambda: [receiver(port, address=IPV6)],
                clients=lambda: [curl("-H", "Expect:", "-T", "/dev/zero",
                                      url(port, address=IPV6))] * count,
                proof=(queues(A, "va", "dropped"), 15))


@case("offloads that a driver's bug has cost")
def _(draw):
    port, write = draw.port, draw("kB", 32, 256) * 1024
    count, here = draw("connections", 1, 3), draw("at B", 0, 1)
    off = ("tso off", SINGLE)[draw("strong", 0, 1)]
    address = (ADDRESS, IPV6)[draw("IPv6", 0, 1)]
    return dict(topology=lambda: rack(SINGLE, "gro off") if here else rack(off),
                at=B if here else A, want=["offload-off"],
                servers=lambda: [receiver(port, address=address)],
                clients=lambda: [stream(port, write, address=address)] * count,
                proof=(lambda: below(1600, B, "vb", "rx")(None), 10**5))


@case("packets are steered to the CPU of their reader")
def _(draw):
    port, cpu, step = draw.port, draw("CPU", 0, 2), draw("step", 1, 2)
    work = graded(draw, "bytes of work", (1000, 2000), (4000, 8000))
    count, write = draw("connections", 1, 3), draw("kB", 16, 128) * 1024
    return dict(topology=rack, cpus=3, at=B, want=["placement", "cpu-softirq"],
                before=lambda: steered(cpu),
                servers=lambda: [pinned(cpu, receiver(port, summing(work), IPV6))],
                clients=lambda: [pinned((cpu + step) % 3, stream(
                    port, write, address=IPV6))] * count, proof=(softirqs(cpu), 30))


# --- Healthy loads ----------------------------------------------------------------

@healthy("a pool of connections to a database")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 1, 15), draw("connections", 4, 9)
    size, reply = draw("bytes", 60, 400), draw("bytes answered", 100, 4000)
    pause = draw("ms", 12, 40) / 1000
    return dict(topology=lambda: container(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, answer(size, reply))],
                clients=lambda: [own.pool(port, count, size, reply, pause)])


@healthy("mails")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 2, 40), draw("kB", 2, 60) * 1024
    pause, address = draw("ms", 50, 200) / 1000, (ADDRESS, IPV6)[draw("IPv6", 0, 1)]
    return dict(topology=lambda: office(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, own.mail_server, address)],
                clients=lambda: [own.mails(port, size, pause, address)])


@healthy("a remote desktop")
def _(draw):
    port, rtt, least = draw.port, draw("rtt", 5, 40), draw("bytes", 200, 1000)
    most, pause = draw("kB at most", 4, 24) * 1024, draw("ms", 40, 90) / 1000
    event, often = draw("bytes of events", 16, 60), draw("ms of events", 30, 80) / 1000
    return dict(topology=lambda: office(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, own.screen(least, most, pause))],
                clients=lambda: [own.viewer(port, event, often)])


@healthy("clones of a repository")
def _(draw):
    port, rtt, pause = draw.port, draw("rtt", 2, 15), draw("ms", 150, 500) / 1000
    request, reply = draw("bytes asked", 300, 3000), draw("kB", 20, 120) * 1024
    return dict(topology=lambda: container(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, answer(request, reply))],
                clients=lambda: [ask(port, request, reply, pause, every=1)] * 2)


@healthy("scrapes of metrics")
def _(draw):
    port, reply = draw.port, draw("kB", 4, 14) * 1024
    pause = draw("ms", 150, 500) / 1000
    count = draw("targets", 3, 8)
    return dict(topology=rack, at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, answer(200, reply))],
                clients=lambda: [ask(port, 200, reply, pause)] * count)


@healthy("a gateway of sensors")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 1, 30), draw("sensors", 8, 20)
    size, pause = draw("bytes", 40, 300), draw("ms", 500, 1000) / 1000
    return dict(topology=lambda: office(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, answer(size, 4), IPV6)],
                clients=lambda: [own.sensors(port, count, size, pause)])


if __name__ == "__main__":
    held.main(run)
