# SPDX-License-Identifier: GPL-2.0-only
"""A sixth set of held-out faults, by someone who knew of the rules of msstune what its
manual page says, and not their code.  It has the 18 kinds of the list of the fifth set
(held_out_path_faults_5.py) that were not drawn for that: one case each, in the way in
which an administrator meets it, mild or strong.  Prints "ok NAME" or "not ok NAME" for
each case, and remarks.

usage: held_out_path_faults_6.py list|faults|healthy|all|NAME...
MSSTUNE_SEED=N in the environment: the seed of the parameters, 1 by default.
FACTS=DIR in the environment: store the facts of each case in DIR.
MSSTUNE_APPLY=1 in the environment: apply what msstune proposes, undo it, and tell what
the load gained.  A case then fails only if the load is harmed, or if something is not
as before; what was diagnosed is a remark.

Each fault must show in a counter of the kernel, or in its errors: the case fails unless
that grows meanwhile.  tcp_adv_win_scale has no effect since Linux 6.6, and no case.

Do not change a rule until one of these cases passes: write new ones then.
"""
import json
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import held_out_path_faults as held  # noqa: E402
import faults  # noqa: E402
import held_out_loads_6 as own  # noqa: E402
import held_out_path_faults_3 as third  # noqa: E402
import path_faults  # noqa: E402
from faults import ADDRESS, put, sh  # noqa: E402
from held_out_loads import IPV6, MIDDLE, NODELAY, stream  # noqa: E402
from held_out_loads_3 import receiver  # noqa: E402
from held_out_loads_4 import calls, guarded, number, shared  # noqa: E402
from held_out_loads_5 import configured, pool  # noqa: E402
from held_out_path_faults import SINGLE, case  # noqa: E402
from held_out_path_faults_2 import backlog_drops  # noqa: E402
from held_out_path_faults_3 import answered, counted, extended, healthy  # noqa: E402
from held_out_path_faults_3 import limited  # noqa: E402
from held_out_path_faults_4 import connections, kept_back, unscaled  # noqa: E402
from held_out_path_faults_4 import untracked  # noqa: E402
from held_out_path_faults_5 import container, graded, office, queues, rack  # noqa: E402
from msstune import plan  # noqa: E402
from path_faults import A, B, steered  # noqa: E402

# The command line is that of the first set.  The others have put their cases there.
held.FAULTS.clear()
held.HEALTHY.clear()

KERNEL = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
DEVICE, FACING = {A: "va", B: "vb"}, {A: "ma", B: "mb"}
GATEWAYS = {A: ("10.4.0.254", "fd04::fe"), B: ("10.9.0.254", "fd09::fe")}


def run(name, clients, warm=2.0, **given):
    """run() of the third set, or what is proposed is applied as well."""
    if not os.environ.get("MSSTUNE_APPLY"):
        return third.run(name, clients=clients, warm=warm, **given)
    right = []

    def cured(_, facts, end):
        right.append(own.applied(name, facts, end, warm))

    def judge(_, facts, want=(), *_more):
        verdict, answer, found = faults.first(facts)
        named = f"{answer.limit}, {answer.confidence}" if answer else "nothing"
        proposed = ", ".join(one.setting or "advice" for one in plan.propose(
            facts, found, plan.Wish()))
        faults.tell(f"{name}: {verdict}, {named}; right: "
                    f"{', '.join(want) or 'no fault'}; "
                    f"proposes {proposed or 'nothing'}",
                    f"{'ok' if all(right) else 'not ok'} {name}")
    kept = path_faults.cured, path_faults.judge
    path_faults.cured, path_faults.judge = cured, judge
    try:
        return third.run(name, clients=lambda: [*map(own.renewed, clients())],
                         warm=warm, cure=True, **given)
    finally:
        path_faults.cured, path_faults.judge = kept


# --- What cases share -----------------------------------------------------------

def either(draw):
    return (ADDRESS, IPV6)[draw("IPv6", 0, 1)]


def one_way(draw, address=ADDRESS, reads=own.sink, options=()):
    """Connections whose data go from A to B, or from B to A: that is drawn.  The ends
    that send and receive, and the programs.  @options: of sockets that send."""
    port, count = draw.port, draw("connections", 2, 4)
    if draw("download", 0, 1):
        return B, A, dict(
            servers=lambda: [receiver(port, own.sends(options), address)],
            clients=lambda: [own.fetches(port, address, reads)] * count)
    return A, B, dict(
        servers=lambda: [receiver(port, reads, address)],
        clients=lambda: [stream(port, options=own.RESET + options,
                                address=address)] * count)


def looks(draw, source, sender, target, receiver_):
    """Where to look, at the end that sends or receives, and what is right there."""
    return dict(zip(("at", "want"), ((source, sender), (target, receiver_))[
        draw("at receiver", 0, 1)], strict=True))


def sized(mtu):
    for end, device in ((A, "va"), (B, "vb"), (MIDDLE, "ma"), (MIDDLE, "mb")):
        sh(f"ip -n {end} link set dev {device} mtu {mtu}")


def leaving(target, rtt, qdisc):
    """The router sends through @qdisc to that end, and delays the way back."""
    there = FACING[target]
    back = "mamb".replace(there, "")
    sh(f"tc -n {MIDDLE} qdisc del dev {there} root; "
       f"tc -n {MIDDLE} qdisc change dev {back} root netem delay {rtt}ms limit 10000; "
       f"tc -n {MIDDLE} qdisc add dev {there} root {qdisc}")


def via(end, address, metric):
    """The default route of that end has a metric."""
    gateway = GATEWAYS[end][":" in address]
    sh(f"ip -n {end} route replace default via {gateway} {metric}")


# --- Counters of the kernel -------------------------------------------------------

def lasting(target, kbit, least):
    """Packets over the limit of the router's link, whose queue lasts @least ms."""
    def counter():
        seen = json.loads(answered("tc", "-n", MIDDLE, "-s", "-j", "qdisc", "show",
                                   "dev", FACING[target]))[0]
        if (lasts := seen["backlog"] * 8 / kbit) < least:
            raise ValueError(f"the queue lasts {lasts:.0f} ms")
        return seen["overlimits"]
    return counter


def within(source, most):
    """limited() by windows of at most so many bytes, which the scale rounds up."""
    def counter():
        windows = re.findall(r" snd_wnd:(\d+)", connections(source))
        if not windows or max(map(int, windows)) > most:
            raise ValueError(f"windows of {windows}, at most {most} expected")
        return limited(source, "rwnd_limited")()
    return counter


def pressed():
    """What the kernel does because memory is short."""
    return sum(extended(end, "TCPMemoryPressures", "PruneCalled", "TCPRcvQDrop",
                        "TCPRcvCollapsed")() for end in (A, B))


# --- Faults, in the order of the list ----------------------------------------------

@case("a consumer that stores what it reads")
def _(draw):
    rtt, mtu = draw("rtt", 2, 40), draw("mtu", 1400, 1500)
    batch = graded(draw, "kB", (32, 64), (8, 16)) * 1024
    pause = graded(draw, "ms", (50, 90), (100, 250)) / 1000
    source, target, programs = one_way(draw, either(draw), own.commits(batch, pause))
    return dict(topology=lambda: office(rtt), before=lambda: sized(mtu), **programs,
                **looks(draw, source, ["peer-application"], target,
                        ["application-receive"]),
                warm=4.0, proof=(limited(source, "rwnd_limited"), 900))


@case("a program that never uncorks")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 1, 15), draw("connections", 1, 3)
    request, reply = draw("bytes asked", 30, 900), draw("bytes answered", 80, 1200)
    pause = graded(draw, "ms", (20, 50), (0, 2)) / 1000
    cork = ((own.socket.IPPROTO_TCP, own.TCP_CORK, 1),)
    here, there = (NODELAY, cork) if draw("at B", 0, 1) else (cork, NODELAY)
    end = B if there == cork else A
    return dict(topology=lambda: container(rtt), at=end, want=["cork"],
                servers=lambda: [receiver(port, own.serves(request, reply, there))],
                clients=lambda: [own.asks(port, request, reply, pause, here)] * count,
                proof=(kept_back(end), 1000))


@case("a hardening guide that turns window scaling off")
def _(draw):
    rtt, address = graded(draw, "rtt", (50, 80), (110, 180)), either(draw)
    source, target, programs = one_way(draw, address)
    off = (A, B)[draw("off at B", 0, 1)]
    return dict(topology=lambda: office(rtt), warm=3.5, **programs,
                before=lambda: put(off, {"net.ipv4.tcp_window_scaling": 0}),
                **looks(draw, source, ["window-scaling"], target, ["window-scaling"]),
                proof=(unscaled(source), 900))


# Autotuning would lift the clamp; the program's buffer ends it.
@case("a program that bounds its window")
def _(draw):
    rtt, size = draw("rtt", 60, 120), graded(
        draw, "clamp", (50_000, 80_000), (24_000, 34_000))
    source, target, programs = one_way(draw, reads=own.clamped(size))
    return dict(topology=lambda: container(rtt), warm=3.0, **programs,
                **looks(draw, source, ["receive-window"], target,
                        ["receive-buffer-fixed"]),
                proof=(within(source, size + 127), 900))


if KERNEL < (6, 6):
    @case("an old guide to tcp_adv_win_scale")
    def _(draw):
        rtt, size = draw("rtt", 60, 100), draw("kB", 400, 600) * 1024
        scale = -graded(draw, "scale", (2, 2), (3, 4))
        source, target, programs = one_way(draw, either(draw))
        return dict(topology=lambda: office(rtt), warm=3.0, **programs,
                    before=lambda: put(target, {
                        "net.ipv4.tcp_adv_win_scale": scale,
                        "net.ipv4.tcp_rmem": f"4096 131072 {size}"}),
                    **looks(draw, source, ["receive-window"], target,
                            ["adv-win-scale"]),
                    proof=(limited(source, "rwnd_limited"), 900))


@case("a damaged cable")
def _(draw):
    rtt, mtu = draw("rtt", 15, 50), draw("mtu", 1300, 1500)
    lost = graded(draw, "in 1000", (6, 12), (20, 50)) / 10
    source, target, programs = one_way(draw, either(draw))
    return dict(topology=lambda: office(rtt), want=["loss"], at=source, warm=4.0,
                before=lambda: (sized(mtu), sh(
                    f"tc -n {MIDDLE} qdisc change dev {FACING[target]} root netem "
                    f"delay {rtt / 2}ms limit 10000 loss {lost}%")), **programs,
                proof=(queues(MIDDLE, FACING[target], "dropped"), 8))


@case("a provider that polices")
def _(draw):
    rtt, mbit, mtu = draw("rtt", 15, 50), draw("mbit/s", 4, 9), draw("mtu", 1400, 1500)
    burst = graded(draw, "kB", (32, 64), (8, 16))
    source, _, programs = one_way(draw, either(draw))
    device = FACING[source]
    return dict(topology=lambda: office(rtt), want=["policer"], at=source, warm=4.0,
                before=lambda: (sized(mtu), sh(
                    f"tc -n {MIDDLE} qdisc add dev {device} clsact; tc -n {MIDDLE} "
                    f"filter add dev {device} ingress matchall action police rate "
                    f"{mbit}mbit burst {burst}k conform-exceed drop")), **programs,
                proof=(queues(MIDDLE, device, "dropped"), 15))


@case("a default route with a locked cwnd")
def _(draw):
    rtt, window = draw("rtt", 30, 80), graded(draw, "segments", (14, 24), (4, 8))
    address = either(draw)
    source, _, programs = one_way(draw, address)

    def before():
        put(source, {"net.ipv4.tcp_no_metrics_save": 0})
        via(source, address, f"cwnd lock {window}")
        own.met(draw.port + 1, address)
    return dict(topology=lambda: office(rtt), before=before, want=["cwnd-clamp"],
                at=source, **programs, proof=(limited(source, "busy", window), 1500))


@case("backups through a modem with a long queue")
def _(draw):
    rtt, kbit = draw("rtt", 10, 40), draw("kbit/s", 1000, 2500)
    lasts = graded(draw, "ms of queue", (700, 1000), (1500, 2500))
    source, target, programs = one_way(draw, either(draw))
    return dict(topology=lambda: office(rtt), want=["bufferbloat"], at=source, warm=7.0,
                before=lambda: leaving(target, rtt, f"tbf rate {kbit}kbit burst 5kb "
                                       f"limit {kbit * lasts // 8}"), **programs,
                proof=(lasting(target, kbit, 450), 20))


@case("PPPoE behind a firewall that drops ICMP")
def _(draw):
    port, rtt, address = draw.port, draw("rtt", 5, 40), either(draw)
    mtu, count = graded(draw, "mtu", (1480, 1492), (1280, 1420)), draw("uploads", 1, 3)
    small = draw("bytes before", 20, 900)

    def before():
        sh(f"ip -n {MIDDLE} link set dev mb mtu {mtu}")
        guarded(MIDDLE, "inet", "output",
                "icmp type destination-unreachable counter name seen drop\n"
                "icmpv6 type packet-too-big counter name seen drop")
    return dict(topology=lambda: office(rtt), before=before, want=["mtu"],
                warm=draw("ms", 800, 2500) / 1000,
                servers=lambda: [receiver(port, own.greeted(small), address)],
                clients=lambda: [own.greets(port, small, address)] * count,
                proof=(counted(MIDDLE, "inet", "guard", "seen"), 1))


# Strong: what carries ECN is dropped.  Mild: only a SYN that asks for it, so that each
# connection begins with a second try.
@case("tcp_ecn=1 and an old firewall on the path")
def _(draw):
    port, rtt, address = draw.port, draw("rtt", 10, 50), either(draw)
    syn, clients = not draw("strong", 0, 1), draw("clients", 6, 10)
    request, reply = draw("bytes asked", 80, 900), draw("answered", 500, 9000)
    rule = ("tcp flags & (syn | ecn | cwr) == (syn | ecn | cwr)" if syn else
            "ip6 ecn != not-ect" if ":" in address else "ip ecn != not-ect")
    return dict(topology=lambda: office(rtt), warm=4.0,
                want=["no-answer"] if syn else ["ecn-black-hole"],
                before=lambda: (put(A, {"net.ipv4.tcp_ecn": 1}), guarded(
                    MIDDLE, "inet", "forward", rule + " counter name seen drop")),
                servers=lambda: [configured(port, own.serves(request, reply) if syn
                                            else own.sink)],
                clients=lambda: [own.asks(port, request, reply, 0.02, every=1,
                                          address=address)] * clients if syn else
                [stream(port, options=own.RESET, address=address)] * (clients // 3),
                proof=(counted(MIDDLE, "inet", "guard", "seen"), 5))


@case("a provider that shapes")
def _(draw):
    rtt, mbit = draw("rtt", 25, 50), graded(draw, "mbit/s", (7, 10), (2, 4))
    lasts = draw("ms of queue", 90, 250)
    source, target, programs = one_way(draw, either(draw))
    return dict(topology=lambda: office(rtt), want=["path"], at=source, warm=5.0,
                before=lambda: leaving(target, rtt, f"tbf rate {mbit}mbit burst 5kb "
                                       f"limit {mbit * lasts * 125}"), **programs,
                proof=(lasting(target, mbit * 1000, 15), 20))


# The other backend is asked over one connection.
@case("a proxy whose ports are in TIME-WAIT for one backend")
def _(draw):
    port, rtt, first = draw.port, draw("rtt", 1, 15), draw("first", 20000, 60000)
    ports, size = graded(draw, "ports", (70, 120), (20, 40)), draw("bytes", 50, 2000)
    count, failed, address = draw("workers", 3, 5), shared(), either(draw)
    return dict(topology=lambda: office(rtt), want=["ports-used-up"], warm=7.0,
                before=lambda: put(A, {
                    "net.ipv4.ip_local_port_range": f"{first} {first + ports - 1}",
                    "net.ipv4.tcp_tw_reuse": 0}),
                servers=lambda: [configured(port, own.serves(size, 1)),
                                 configured(port + 1, own.serves(size, 900))],
                clients=lambda: [*[calls(port, size, 0.02, address, failed=failed)]
                                 * count, own.asks(port + 1, size, 900, 0.03,
                                                   address=address)],
                proof=(lambda: number(failed), 20))


@case("a pool that fills the firewall's table")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 1, 15), draw("bytes", 50, 900)
    most, left = draw("most", 60, 120), graded(draw, "left", (10, 16), (2, 4))
    count, pause = draw("clients", 4, 7), draw("ms", 20, 50) / 1000
    return dict(topology=lambda: office(rtt), warm=7.0,
                host={"net.netfilter.nf_conntrack_max": most},
                before=lambda: guarded(B, "inet", "input", "ct state new "
                                       "counter name seen accept"),
                **looks(draw, A, ["no-answer"], B, ["conntrack-full"]),
                servers=lambda: [configured(port, own.serves(size, 1))],
                clients=lambda: [pool(port, most - left, size, 1, pause), *[calls(
                    port, size, 0.05, ADDRESS, 8.0)] * count],
                proof=(untracked(B), 5))


@case("a low netdev_max_backlog behind RPS")
def _(draw):
    port, cpu, count = draw.port, draw("CPU", 0, 2), draw("connections", 4, 6)
    limit = graded(draw, "limit", (12, 24), (3, 8))
    write, address = draw("kB", 16, 128) * 1024, either(draw)
    return dict(topology=lambda: rack(SINGLE), before=lambda: steered(cpu), cpus=3,
                host={"net.core.netdev_max_backlog": limit}, at=B, warm=3.0,
                want=["backlog-drops"],
                servers=lambda: [receiver(port, own.sink, address)],
                clients=lambda: [stream(port, write, 0, own.RESET, address)] * count,
                proof=(lambda: backlog_drops(None), 10))


# The kernel counts memory by CPU first, up to 1 MiB for each.
@case("tcp_mem of a smaller machine, and large send buffers")
def _(draw):
    rtt, most = draw("rtt", 30, 60), graded(draw, "pages", (450, 650), (150, 300))
    draw("connections", 10, 14)
    buffer = ((own.socket.SOL_SOCKET, own.socket.SO_SNDBUF, 1 << 20),)
    source, target, programs = one_way(draw, either(draw), options=buffer)
    return dict(topology=lambda: office(rtt), warm=5.0, **programs,
                host={"net.ipv4.tcp_mem": f"{most // 2} {most * 3 // 4} {most}"},
                **looks(draw, source, ["memory-pressure"], target, ["memory-pressure"]),
                proof=(pressed, 5))


@case("fq with a limit for low latency")
def _(draw):
    rtt, limit = draw("rtt", 30, 70), graded(draw, "packets", (8, 12), (3, 5))
    draw("connections", 5, 9)
    source, _, programs = one_way(draw, either(draw))
    return dict(topology=lambda: office(rtt, 1), want=["qdisc-drops"], at=source,
                warm=4.0, before=lambda: sh(
                    f"tc -n {source} qdisc add dev {DEVICE[source]} root fq "
                    f"limit {limit}"), **programs,
                proof=(queues(source, DEVICE[source], "dropped"), 15))


# Mild: RED does its work, and the rate is what limits.
@case("RED below HTB, with the numbers of another link")
def _(draw):
    rtt, mbit = draw("rtt", 40, 70), graded(draw, "mbit/s", (5, 8), (16, 24))
    least = graded(draw, "bytes", (8000, 15000), (2000, 3500))
    draw("connections", 4, 8)
    source, _, programs = one_way(draw, either(draw))
    add = f"tc -n {source} %s add dev {DEVICE[source]} "
    return dict(topology=lambda: office(rtt, 1), at=source, warm=4.0, **programs,
                want=["qdisc-drops"] if draw("strong", 0, 1) else
                ["qdisc-drops", "shaper"],
                before=lambda: sh(
                    add % "qdisc" + "root handle 1: htb default 1; " + add % "class"
                    + f"parent 1: classid 1:1 htb rate {mbit}mbit; " + add % "qdisc"
                    + f"parent 1:1 handle 10: red limit {least * 12} min {least} max "
                    f"{least * 3} avpkt 1000 burst {least // 1000 + 2} bandwidth "
                    f"{mbit}mbit probability 0.2"),
                proof=(queues(source, DEVICE[source], "dropped"), 10))


# --- Healthy loads ----------------------------------------------------------------

@healthy("checks of a load balancer")
def _(draw):
    port, rtt, address = draw.port, draw("rtt", 1, 15), either(draw)
    often, pause = draw("ms of checks", 60, 200) / 1000, draw("ms", 40, 120) / 1000
    request, reply = draw("bytes asked", 80, 900), draw("answered", 200, 6000)
    return dict(topology=lambda: office(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, own.serves(request, reply), address)],
                clients=lambda: [own.checks(port, often, address), own.asks(
                    port, request, reply, pause, address=address)])


@healthy("a BGP session with MD5")
def _(draw):
    port, rtt, pause = draw.port, draw("rtt", 1, 40), draw("ms", 60, 200) / 1000
    most = draw("bytes of an update", 400, 4096)
    return dict(topology=lambda: office(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [configured(port, own.speaks(most, pause),
                                            (own.signed("fd04::1"),))],
                clients=lambda: [lambda: own.speaks(most, pause)(own.dial(
                    port, (own.signed(IPV6),), IPV6))], proof=(third.segments, 10))


@healthy("players of a game")
def _(draw):
    port, rtt, players = draw.port, draw("rtt", 5, 60), draw("players", 2, 4)
    size, tick = draw("bytes", 30, 120), draw("ms", 50, 90) / 1000
    world, often = draw("bytes sent", 100, 900), draw("ms between", 50, 100) / 1000
    return dict(topology=lambda: container(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, own.ticks(world, often))],
                clients=lambda: [own.players(port, players, size, tick)])


@healthy("reads of an iSCSI disk")
def _(draw):
    port, depth, pause = draw.port, draw("depth", 2, 8), draw("ms", 40, 100) / 1000
    blocks = [512 << draw(f"block {n}", 1, 6) for n in range(4)]
    return dict(topology=rack, at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, own.disk(blocks))],
                clients=lambda: [own.initiator(port, blocks, depth, pause)])


@healthy("batches to a message broker")
def _(draw):
    port, rtt, linger = draw.port, draw("rtt", 1, 25), draw("ms", 50, 150) / 1000
    least, most = draw("bytes", 200, 2000), draw("kB at most", 4, 30) * 1024
    count, receipt = draw("producers", 1, 3), draw("bytes of a receipt", 30, 90)
    return dict(topology=lambda: office(rtt), at=(A, B)[draw("at B", 0, 1)],
                servers=lambda: [receiver(port, own.broker(receipt), IPV6)],
                clients=lambda: [own.producer(port, least, most, linger)] * count)


@healthy("requests by fast open")
def _(draw):
    port, rtt, pause = draw.port, draw("rtt", 1, 40), draw("ms", 50, 150) / 1000
    request, reply = draw("bytes asked", 80, 900), draw("answered", 200, 9000)
    options = ((own.socket.IPPROTO_TCP, own.TCP_FASTOPEN, 64),)
    return dict(topology=lambda: office(rtt), at=(A, B)[draw("at B", 0, 1)],
                before=lambda: put(B, {"net.ipv4.tcp_fastopen": 3}),
                servers=lambda: [configured(port, own.serves(request, reply), options)],
                clients=lambda: [own.opens_fast(port, request, reply, pause)] * 2,
                proof=(extended(B, "TCPFastOpenPassive"), 5))


if __name__ == "__main__":
    held.main(run)
