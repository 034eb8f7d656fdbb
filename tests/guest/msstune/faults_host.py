# SPDX-License-Identifier: GPL-2.0-only
"""Injected faults of a host: its tables and queues, its firewall, its memory."""
import socket
from functools import partial

import driver
import programs as own
import testbed as bed
from clients import ask, calls, curl, datagrams, hold, pool, puts, stream, url
from clients import visitors, web_server
from faults_ends import ANY, BUFFERS, HONEST, one_way
from faults_path import PROBING
from programs import answer, buffer, number, receiver, shared
from testbed import (
    ADDRESS,
    DEVICE,
    IPV6,
    MIDDLE,
    A,
    B,
    drawn_path,
    extended,
    guard,
    guarded,
    office,
    queue,
    sh,
    switched,
)

fault = partial(driver.fault, "host")


# --- Listeners ------------------------------------------------------------------

@fault("a server that serves one client at a time")
def _(draw):
    port, size, count = draw.port, draw("bytes", 50, 900), draw("clients", 12, 18)
    backlog = draw.graded("backlog", (4, 6), (1, 3))
    pause = draw.graded("ms", (100, 200), (250, 500)) / 1000
    return dict(topology=drawn_path(draw, 1, 30, True), warm=4.0, never=PROBING,
                **draw.seen(["peer-accept-queue", "no-answer"], ["accept-queue"]),
                servers=lambda: [own.accepts(port, backlog, pause, size)],
                clients=lambda: [calls(port, size, 0.02, wait=8.0)] * count,
                proof=(extended(B, "ListenOverflows"), 5))


@fault("a program that accepts slowly")
def _(draw):
    port, backlog, abort = draw.port, draw("backlog", 1, 4), draw("abort", 0, 1)
    pause = draw("pause", 400, 900) / 1000
    return dict(b={"net.ipv4.tcp_abort_on_overflow": abort}, at=B, warm=2.5,
                topology=drawn_path(draw, 1, 20), want=["accept-queue"],
                servers=lambda: [own.accepts(port, backlog, pause)],
                clients=lambda: [calls(port, 200, 0.05, wait=4.0)] * 12,
                never=["syn_backlog", *PROBING])


# Its clients wait for a greeting and send nothing, so no data waits for it.
@fault("a server that greets is stopped")
def _(draw):
    port, pause = draw.port, draw("ms", 30, 120) / 1000
    return dict(topology=switched, at=B, want=["accept-queue"], after=2.5,
                servers=lambda: [own.accepts(port, 64)],
                clients=lambda: [visitors(port, pause, IPV6)],
                late=lambda pids: own.os.kill(pids[0], own.signal.SIGSTOP),
                warm=1.0, proof=(lambda _: 0, 0))


@fault("a scanner that leaves connections half open")
def _(draw):
    port, rtt, cookies = draw.port, draw("rtt", 5, 40), draw("cookies", 0, 1)
    backlog = draw.graded("backlog", (24, 48), (6, 12))
    often, size = draw("ms of the scanner", 8, 20) / 1000, draw("bytes", 50, 900)

    def before():
        sh("ip -n $A addr add 10.4.0.128/25 dev lo")
        guarded(MIDDLE, "ip", "forward",
                "ip daddr 10.4.0.128/25 counter name seen drop")
    return dict(topology=lambda: office(rtt), before=before, at=B, want=["syn-queue"],
                b={"net.ipv4.tcp_syncookies": cookies}, warm=4.0, never=PROBING,
                servers=lambda: [receiver(port, answer(size, 1), backlog=backlog)],
                clients=lambda: [calls(port, size, 0.1), visitors(
                    port, often, ADDRESS, [f"10.4.0.{n}" for n in range(130, 230)])],
                proof=(extended(B, "TCPReqQFullDrop", "TCPReqQFullDoCookies"), 5))


# The clients are not flooding: they try again, and some get through.
@fault("a router that loses SYN-ACKs")
def _(draw):
    port, rtt, cookies = draw.port, draw("rtt", 5, 40), draw("cookies", 0, 1)
    percent, backlog = draw("percent", 60, 85), draw("backlog", 6, 16)
    pause = draw("ms", 10, 25) / 1000
    return dict(topology=lambda: office(rtt), b={"net.ipv4.tcp_syncookies": cookies},
                before=lambda: guarded(
                    MIDDLE, "ip", "forward", "tcp flags & (syn | ack) == syn | ack "
                    f"numgen random mod 100 < {percent} counter name seen drop"),
                at=B, want=["syn-queue"], warm=4.0,
                servers=lambda: [own.accepts(port, backlog)],
                clients=lambda: [visitors(port, pause, f"::ffff:{ADDRESS}")],
                proof=(extended(B, "TCPReqQFullDrop", "TCPReqQFullDoCookies"), 5))


# --- Ports and tables -------------------------------------------------------------

# A proxy for two backends: the other one is asked over one connection.
@fault("few local ports and many short connections")
def _(draw):
    port, begin = draw.port, draw("first", 20000, 50000)
    free, size = draw.graded("ports", (60, 110), (15, 40)), draw("bytes", 50, 2000)
    length, failed = draw.one("reserved", 0, 250, 2500), shared()
    return dict(topology=drawn_path(draw, 1, 15), want=["ports-used-up"], warm=7.0, a={
        "net.ipv4.ip_local_port_range": f"{begin} {begin + length + free - 1}",
        "net.ipv4.ip_local_reserved_ports":
        f"{begin}-{begin + length - 1}" if length else "",
        "net.ipv4.tcp_tw_reuse": 0},
        servers=lambda: [receiver(port, answer(size, 1)),
                         receiver(port + 1, answer(size, 900))],
        clients=lambda: [*[calls(port, size, 0.02, failed=failed)]
                         * draw("workers", 2, 5), ask(port + 1, size, 900, 0.03)],
        proof=(lambda _: number(failed), 10))


@fault("ports held by open connections")
def _(draw):
    port, count = draw.port, draw("ports", 12, 40)
    return dict(a={"net.ipv4.ip_local_port_range": f"41000 {41000 + count - 1}"},
                topology=lambda: bed.pair(2), want=["ports-used-up"],
                never=["tw_reuse"], servers=lambda: [own.eager(port)],
                clients=lambda: [hold(port, 1000, retry=0.03)], warm=2.0,
                proof=(lambda _: 0, 0))


@fault("more TIME-WAIT than are kept")
def _(draw):
    port, most = draw.port, draw("most", 4, 12)
    return dict(a={"net.ipv4.tcp_max_tw_buckets": most}, topology=lambda: bed.pair(2),
                want=HONEST, never=ANY, warm=2.0, servers=lambda: [receiver(port)],
                clients=lambda: [calls(port, 200, 0.01)] * 3)


@fault("a full table of the firewall's connections")
def _(draw):
    port, size, how = draw.port, draw("bytes", 50, 900), draw("datagrams", 0, 1)
    most, left = draw("most", 60, 120), draw.graded("left", (10, 16), (2, 4))
    count, pause = draw("clients", 4, 7), draw("ms", 20, 50) / 1000

    def clients():
        load = [stream(port, 4000, 0.1), datagrams(
            A, B, ADDRESS, kbit=80, ports=3 * most, after=1.0)] if how else [
                pool(port, most - left, size, 1, pause)]
        return [*load, *[calls(port, size, 0.05, wait=8.0)] * count]
    return dict(topology=drawn_path(draw, 1, 15), warm=7.0, clients=clients,
                host={"net.netfilter.nf_conntrack_max": most},
                before=lambda: guarded(B, "inet", "input", "ct state new "
                                       "counter name seen accept"),
                **draw.seen(["no-answer"], ["conntrack-full"]),
                never=["congestion_control", *PROBING],
                servers=lambda: [receiver(port, answer(size, 1))],
                proof=(bed.untracked(B), 3))


# --- Own firewall ---------------------------------------------------------------

@fault("own firewall drops packets")
def _(draw):
    port, percent = draw.port, draw("percent", 3, 6)
    rate, kind = draw("packets", 40, 120), draw("kind", 0, 2)
    end, hook, rule = (
        (B, "input", f"meta l4proto tcp numgen random mod 100 < {percent} "
         "counter name seen counter drop"),
        (A, "output", f"meta l4proto tcp limit rate over {rate}/second "
         "counter name seen counter drop"),
        (B, "input", f"tcp dport {port + 1} counter name seen counter reject "
         "with tcp reset"))[kind]
    return dict(topology=lambda: bed.pair(20), at=end, want=["own-firewall"],
                before=lambda: guarded(end, "inet", hook, rule), warm=2.5,
                servers=lambda: [receiver(port)], clients=lambda: [
                    stream(port), calls(port + (kind == 2), 200, 0.1)],
                never=["congestion_control", *PROBING], proof=(guard(end, "inet"), 3))


@fault("own firewall limits connections")
def _(draw):
    port, size, output = draw.port, draw("bytes", 50, 2000), draw("of output", 0, 1)
    most, pause = draw("most", 2, 5), draw("ms", 200, 600) / 1000
    rate = draw.graded("per minute", (120, 200), (20, 60))
    limit = f"ct count over {most}" if output else \
        f"limit rate over {rate}/minute burst {draw('burst', 3, 8)} packets"
    look = dict(at=A, want=["own-firewall"]) if output else draw.seen(
        ["no-answer"], ["own-firewall"])
    return dict(topology=drawn_path(draw, 1, 30), warm=4.0, **look,
                before=lambda: guarded(
                    A if output else B, "inet", "output" if output else "input",
                    f"tcp dport {port} ct state new {limit} counter name seen drop"),
                servers=lambda: [receiver(port, answer(
                    size, 1, pause=pause if output else 0))],
                clients=lambda: [calls(port, size, 0.1, wait=5.0)]
                * draw("clients", 7, 10),
                proof=(guard(A if output else B, "inet"), 3))


# --- Queue disciplines --------------------------------------------------------------

@fault("an own limit of the rate")
def _(draw):
    rtt, mbit = draw("rtt", 5, 40), draw.graded("mbit/s", (8, 14), (1, 3))
    more = "default 1; tc -n $A class add dev va parent 1: classid 1:1"
    qdisc = draw.one(
        "kind", f"tbf rate {mbit}mbit burst 10kb limit 500kb",
        f"handle 1: htb {more} htb rate {mbit}mbit", f"handle 1: hfsc {more} hfsc "
        f"sc rate {mbit}mbit ul rate {mbit}mbit", f"cake bandwidth {mbit}mbit")
    port, address = draw.port, draw.either()
    return dict(topology=lambda: office(rtt), want=["shaper"], warm=3.0,
                before=lambda: sh(f"tc -n $A qdisc add dev va root {qdisc}"),
                never=["congestion_control", *BUFFERS],
                servers=lambda: [receiver(port)], clients=lambda: [stream(
                    port, address=address)] * draw("connections", 2, 4),
                proof=(queue(A, "va", "overlimits"), 20))


@fault("downloads through a shaper at ingress")
def _(draw):
    port, kbit = draw.port, draw("kbit/s", 1500, 5000)

    def before():
        own.file(1 << 34)
        sh(f"""ip -n $B link set vb gso_max_segs 2
        tc -n $A qdisc replace dev ifb-t root handle 1: htb default 1
        tc -n $A class add dev ifb-t parent 1: classid 1:1 htb rate {kbit}kbit
        tc -n $A qdisc add dev ifb-t parent 1:1 fq_codel""")
    return dict(topology=lambda: bed.through_ifb(A, "ingress", offloads=""), at=A,
                before=before, want=["shaper"], warm=4.0,
                servers=lambda: [web_server(port, IPV6)],
                clients=lambda: [curl(url(port, address=IPV6))]
                * draw("connections", 2, 4),
                proof=(queue(A, "ifb-t", "overlimits"), 20))


@fault("a FIFO of few packets")
def _(draw):
    port, rtt, mbit = draw.port, draw("rtt", 50, 80), draw("mbit/s", 15, 25)
    limit, kind = draw.graded("packets", (8, 12), (3, 5)), draw("txqueuelen", 0, 1)
    leaf = "handle 10: pfifo" + ("" if kind else f" limit {limit}")
    return dict(topology=lambda: office(rtt, 1), want=["qdisc-drops"], warm=3.0,
                before=lambda: sh(
                    f"ip -n $A link set va txqueuelen {limit if kind else 1000}; "
                    "tc -n $A qdisc add dev va root handle 1: htb default 1; tc -n $A "
                    f"class add dev va parent 1: classid 1:1 htb rate {mbit}mbit; "
                    f"tc -n $A qdisc add dev va parent 1:1 {leaf}"),
                servers=lambda: [receiver(port)], clients=lambda: [puts(port, IPV6)]
                * draw("connections", 5, 9), proof=(queue(A, "va", "dropped"), 10))


@fault("fq with a short queue")
def _(draw):
    rtt, limit = draw("rtt", 30, 70), draw.graded("packets", (8, 12), (3, 5))
    draw("connections", 5, 9)
    source, _, load = one_way(draw, draw.either())
    what, device = draw.one("limit", "limit", "flow_limit"), DEVICE[source]
    return dict(topology=lambda: office(rtt, 1), want=["qdisc-drops"], at=source,
                before=lambda: sh(f"tc -n {source} qdisc add dev {device} root fq "
                                  f"{what} {limit}"), warm=4.0, unsure=["shaper"],
                **load, proof=(queue(source, device, "dropped"), 10))


# Mild: RED does its work, and the rate is what limits.
@fault("RED below HTB, with the numbers of another link")
def _(draw):
    rtt, mbit = draw("rtt", 40, 70), draw.graded("mbit/s", (5, 8), (16, 24))
    least = draw.graded("bytes", (8000, 15000), (2000, 3500))
    draw("connections", 4, 8)
    source, _, load = one_way(draw, draw.either())
    add = f"tc -n {source} %s add dev {DEVICE[source]} "
    return dict(topology=lambda: office(rtt, 1), at=source, warm=4.0, **load,
                want=["qdisc-drops"] if draw("strong", 0, 1) else
                ["qdisc-drops", "shaper"], before=lambda: sh(
                    add % "qdisc" + "root handle 1: htb default 1; " + add % "class"
                    + f"parent 1: classid 1:1 htb rate {mbit}mbit; " + add % "qdisc"
                    + f"parent 1:1 handle 10: red limit {least * 12} min {least} max "
                    f"{least * 3} avpkt 1000 burst {least // 1000 + 2} bandwidth "
                    f"{mbit}mbit probability 0.2"),
                proof=(queue(source, DEVICE[source], "dropped"), 8))


@fault("a netem of this host with a short queue")
def _(draw):
    port, rtt = draw.port, draw("rtt", 40, 80)
    most = draw.graded("packets", (8, 14), (2, 4))
    return dict(topology=lambda: bed.pair(rtt, f"limit {most}"), want=["qdisc-drops"],
                warm=2.5, servers=lambda: [receiver(port)], unsure=["policer"],
                clients=lambda: [stream(port)] * 3, never=PROBING,
                proof=(queue(A, "va", "dropped"), 5))


# --- Memory ---------------------------------------------------------------------

@fault("a short backlog of the host")
def _(draw):
    port, limit = draw.port, draw("packets", 1, 4)
    return dict(host={"net.core.netdev_max_backlog": limit}, at=draw.one("at", A, B),
                servers=lambda: [receiver(port)], want=["backlog-drops"],
                clients=lambda: [stream(port)] * draw("flows", 1, 6),
                proof=(bed.backlog_drops, 5))


# The kernel counts memory by CPU first, up to 1 MiB for each.
@fault("tcp_mem of a smaller machine, and large send buffers")
def _(draw):
    rtt, most = draw("rtt", 30, 60), draw.graded("pages", (450, 650), (150, 300))
    draw("connections", 10, 14)
    source, target, load = one_way(draw, draw.either(), options=buffer(
        1 << 20, socket.SO_SNDBUF))
    return dict(topology=lambda: office(rtt), warm=5.0, never=BUFFERS, **load,
                host={"net.ipv4.tcp_mem": f"{most // 2} {most * 3 // 4} {most}"},
                **draw.seen(["memory-pressure"], ["memory-pressure"], source, target),
                proof=(bed.pressed, 3))
