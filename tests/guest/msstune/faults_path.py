# SPDX-License-Identifier: GPL-2.0-only
"""Injected faults of paths: what routers, links and switches do to packets.  The
group "loss" has paths of wide ranges that lose; some policers and losses look alike
from an end, so a share of them must be named (Documentation/results/policers.rst)."""
from functools import partial

import driver
import programs as own
import testbed as bed
from clients import ask, calls, curl, datagrams, greets, hold, stream, url
from clients import visitors, web_server
from faults_ends import ANY, BUFFERS, HONEST, one_way
from programs import answer, receiver
from testbed import (
    FACING,
    MIDDLE,
    A,
    B,
    extended,
    guard,
    guarded,
    lasting,
    leaving,
    office,
    put,
    queue,
    sh,
    switched,
)

fault = partial(driver.fault, "path")
lossy = partial(driver.fault, "loss", of=8)
PROBING = ["mtu_probing"]


def flows(draw, most=3, either=True):
    """Connections from A to B."""
    port, count = draw.port, draw("connections", 1, most)
    address = draw.either() if either else bed.ADDRESS
    return dict(servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, address=address)] * count)


# --- Losses ---------------------------------------------------------------------

@fault("a damaged cable")
def _(draw):
    rtt, mtu = draw("rtt", 15, 50), draw("mtu", 1300, 1500)
    lost = draw.graded("in 1000", (6, 12), (20, 50)) / 10
    source, target, load = one_way(draw, draw.either())
    device = FACING[target]
    return dict(topology=lambda: office(rtt, mtu=mtu), want=["loss"], at=source,
                warm=4.0, never=PROBING, before=lambda: sh(
                    f"tc -n $M qdisc change dev {device} root netem delay {rtt / 2}ms "
                    f"limit 10000 loss {lost}%"), **load,
                proof=(queue(MIDDLE, device, "dropped"), 5))


@fault("loss of what carries a VXLAN")
def _(draw):
    port, rtt, lost = draw.port, draw("rtt", 25, 60), draw("in 1000", 10, 25) / 10
    return dict(topology=lambda: bed.tunnelled("vxlan", rtt, back=f"loss {lost}%"),
                before=lambda: own.file(1 << 34), at=B, want=["loss"], warm=4.0,
                servers=lambda: [web_server(port)],
                clients=lambda: [curl(url(port))] * draw("connections", 2, 3),
                proof=(extended(B, "TCPFastRetrans"), 4))


@fault("losses in bursts")
def _(draw):
    rtt, rate = draw("rtt", 30, 70), draw.graded("p", (2, 5), (10, 20)) / 10
    return dict(topology=lambda: office(
        rtt, there=f"loss gemodel {rate}% {draw('r', 25, 50)}%"), warm=2.5,
        want=["loss"], unsure=["policer"], never=PROBING, **flows(draw))


@fault("damaged packets")
def _(draw):
    rtt, percent = draw("rtt", 30, 60), draw("percent", 1, 3)
    return dict(topology=lambda: office(rtt, there=f"corrupt {percent}%"), warm=2.5,
                **draw.seen(["loss"], ["link-errors"]), unsure=["loss"],
                **flows(draw, 1, False))


@fault("a provider that polices")
def _(draw):
    rtt, mbit = draw("rtt", 15, 50), draw("mbit/s", 4, 9)
    burst, by = draw.graded("kB", (32, 64), (8, 16)), draw("by nft", 0, 1)
    source, target, load = one_way(draw, draw.either(), most=2)

    def before():
        if by:
            guarded(MIDDLE, "inet", "forward", f"oifname {FACING[target]} limit rate "
                    f"over {mbit * 125} kbytes/second burst {burst} kbytes drop")
        else:
            police(FACING[source], f"{mbit}mbit", burst)
    return dict(topology=lambda: office(rtt, 1), want=["policer"], at=source, warm=4.0,
                before=before, never=["congestion_control", *PROBING], **load)


def police(device, rate, burst):
    sh(f"tc -n $M qdisc add dev {device} clsact; tc -n $M filter add dev {device} "
       f"ingress matchall action police rate {rate} burst {burst}kb "
       "conform-exceed drop")


@lossy("a policer", share=0.5)
def _(draw):
    rtt, rate, burst = (draw("rtt", 10, 80), draw("kB/s", 200, 3000) * 8,
                        draw("kB burst", 6, 40))
    return dict(topology=lambda: office(rtt, draw("segments", 1, 2)), warm=4.0,
                before=lambda: police("ma", f"{rate}kbit", burst), want=["policer"],
                **flows(draw))


@lossy("random losses", share=0.8)
def _(draw):
    rtt, lost, segments = (draw("rtt", 10, 80), draw("in 10000", 30, 800) / 100,
                           draw("segments", 1, 2))
    return dict(topology=lambda: office(rtt, segments, f"loss {lost}%"), warm=4.0,
                want=["loss"], **flows(draw))


@lossy("bursts of losses", share=0.4)
def _(draw):
    rtt, segments = draw("rtt", 10, 80), draw("segments", 1, 2)
    begins, ends = draw("in 10000 begin", 10, 200) / 100, draw("percent end", 20, 60)
    return dict(topology=lambda: office(
        rtt, segments, f"loss gemodel {begins}% {ends}%"), warm=4.0, want=["loss"],
        **flows(draw))


@fault("a full link with a shallow queue")
def _(draw):
    rtt, mbit = draw("rtt", 30, 60), draw("mbit/s", 8, 14)
    percent = draw.graded("percent of the path", (25, 40), (6, 14))
    limit = max(rtt * mbit * 1000 // 8 * percent // 100, 3000)
    return dict(topology=lambda: office(rtt, 1), warm=3.0, before=lambda: (
        leaving(B, rtt, f"handle 1: tbf rate {mbit}mbit burst 3kb limit 1mb"),
        sh(f"tc -n $M qdisc add dev mb parent 1:1 handle 10: bfifo limit {limit}")),
        want=["policer", "loss"] + ["path"] * (1 - draw("strong", 0, 1)),
        **flows(draw, 4), proof=(queue(MIDDLE, "mb", "dropped"), 10))


@fault("a route with a large rto_min, and loss")
def _(draw):
    port, size, rtt = draw.port, draw("size", 200, 2000), draw("rtt", 10, 40)
    lost, least = draw("percent", 8, 15), draw("rto_min", 1, 2)
    return dict(topology=lambda: office(rtt, there=f"loss {lost}%"), warm=3.0,
                before=lambda: bed.via(A, bed.ADDRESS, f"rto_min {least}s"),
                servers=lambda: [receiver(port, answer(size, size))],
                clients=lambda: [ask(port, size, size)] * 6,
                want=["loss", "recovery"], unsure=["unknown", "ack-loss"])


# --- ACKs, order, copies ----------------------------------------------------------

# Half to eight tenths of the ACKs are lost, each on its own or several in a row.  With
# SACK blocks an ACK is shorter than 100 bytes.
@fault("a router that loses ACKs", twin="both directions over a router")
def _(draw, fault):
    port, rtt, rows = draw.port, draw("rtt", 10, 40), draw("in a row", 0, 1)
    write, pause = draw("kB", 32, 96) * 1024, draw.rest(15, 30, fault)
    lost = (f"ip saddr {bed.ADDRESS} meta length < 100 "
            "tcp flags & (fin | syn | rst | psh | ack) == ack "
            f"numgen random mod 100 < {draw('percent', 50, 80)} counter name seen drop")
    burst = ("tc -n $M qdisc change dev ma root netem limit 10000 delay "
             f"{rtt / 2}ms loss gemodel {draw('to bad', 35, 50)}% "
             f"{draw('to good', 20, 35)}%")
    late = burst if rows else lambda _: guarded(MIDDLE, "ip", "forward", lost)
    proof = (queue(MIDDLE, "ma", "dropped") if rows else guard(MIDDLE, "ip")), 20
    back = [] if fault else [receiver(port + 1, own.upload(write, pause))]
    more = dict(after=2.0, proof=proof, late=late) if fault else {}
    return dict(topology=lambda: office(rtt), want=["ack-loss"],
                servers=lambda: [receiver(port), *back], clients=lambda: [
                    stream(port, write, pause)] * draw("connections", 1, 3), **more)


@fault("a camera whose way back is full of others' packets")
def _(draw):
    port, rtt, kbit = draw.port, draw("rtt", 10, 40), draw("kbit/s", 800, 1200)
    load = kbit * draw.graded("percent of it", (260, 320), (340, 420)) // 100
    packets, count = draw("packets", 4, 8), draw("connections", 1, 3)
    frame, pause = draw("kB", 15, 30) * 1024, draw("ms", 25, 40) / 1000
    return dict(topology=lambda: office(rtt), want=["ack-loss"], warm=4.0,
                before=lambda: (
                    leaving(A, rtt, f"handle 1: tbf rate {kbit}kbit burst 3kb limit "
                            "1mb"), sh("tc -n $M qdisc add dev ma parent 1:1 handle "
                                       f"10: pfifo limit {packets}")),
                servers=lambda: [receiver(port)], clients=lambda: [
                    *[stream(port, frame, pause)] * count,
                    datagrams(MIDDLE, A, "10.4.0.1", load)],
                proof=(extended(A, "TCPTimeouts", "TCPLossProbes"), 2))


@fault("a narrow way back")
def _(draw):
    rtt, kbit, many = draw("rtt", 20, 50), draw("kbit", 40, 90), draw("long", 0, 1)
    return dict(topology=lambda: office(
        rtt, back=f"rate {kbit}kbit limit {500 if many else 10}"), warm=4.0,
        want=["bufferbloat"] if many else ["ack-loss", *HONEST],
        unsure=["ack-loss", "unknown", "path", "bufferbloat"],
        never=BUFFERS + PROBING, **flows(draw, 1))


@fault("jitter that reorders")
def _(draw):
    ms = draw.graded("ms", (3, 5), (10, 18))
    return dict(topology=lambda: office(50, there=f"{ms}ms"), warm=2.5, never=PROBING,
                # TCP adapts to the mild one: the window may be all that limits it.
                want=["reordering"] + ["receive-window"] * (ms < 10),
                **flows(draw, 1))


@fault("two links with unlike delays")
def _(draw):
    bond, fast = draw("a bond", 0, 1), draw("ms fast", 2, 5)
    slow, rtt = draw("ms slow", 30, 60), draw("rtt", 4, 20)
    percent = draw.graded("percent", (15, 25), (30, 50))
    return dict(topology=lambda: bed.bonded(fast, slow) if bond else bed.uplinks(
        rtt, slow, percent), want=["reordering"], **flows(draw, 2, False),
        proof=(extended(B, "TCPOFOQueue"), 30))


@fault("a radio link that repeats packets")
def _(draw):
    port, ms, more = draw.port, draw("ms", 3, 8), draw("ms later", 30, 60)
    percent = draw("percent", 5, 15)

    def before():
        own.file(1 << 34)
        sh(f"""tc -n $M qdisc replace dev ma root handle 1: prio bands 2 \
            priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
        tc -n $M qdisc add dev ma parent 1:1 netem limit 10000 delay {ms}ms
        tc -n $M qdisc add dev ma parent 1:2 netem limit 10000 delay {ms + more}ms""")
        guarded(MIDDLE, "ip", "forward", f"ip saddr {bed.ADDRESS} numgen random mod "
                f"100 < {percent} meta priority set 1:2")
    return dict(topology=office, before=before, at=B, want=["reordering"], warm=3.0,
                servers=lambda: [web_server(port)],
                clients=lambda: [curl(url(port))] * draw("connections", 1, 2),
                proof=(extended(A, "TCPOFOQueue"), 30))


@fault("packets that arrive twice")
def _(draw):
    percent = draw("percent", 15, 40)
    return dict(topology=lambda: office(
        50, there=f"duplicate {percent}% rate 5mbit limit 40"), never=ANY, warm=2.5,
        want=HONEST, unsure=["reordering", "ack-loss"], **flows(draw, 1))


# --- Queues and rates of others ---------------------------------------------------

@fault("backups through a modem with a long queue")
def _(draw):
    rtt, kbit = draw("rtt", 10, 40), draw("kbit/s", 1000, 2500)
    lasts = draw.graded("ms of queue", (700, 1000), (1500, 2500))
    source, target, load = one_way(draw, draw.either())
    return dict(topology=lambda: office(rtt), want=["bufferbloat"], at=source, warm=7.0,
                before=lambda: leaving(target, rtt, f"tbf rate {kbit}kbit burst 5kb "
                                       f"limit {kbit * lasts // 8}"), **load,
                never=BUFFERS, proof=(lasting(target, kbit, 450), 20))


@fault("messages behind the datagrams of another host")
def _(draw):
    port, rtt, kbit = draw.port, draw("rtt", 10, 30), draw("kbit/s", 1500, 2500)
    count, size = draw("connections", 2, 4), draw("bytes", 300, 2000)
    pause = draw("ms", 100, 250) / 1000
    queued = kbit * draw("ms of queue", 900, 1800) // 8
    return dict(topology=lambda: office(rtt), want=["bufferbloat"], warm=8.0,
                before=lambda: leaving(B, rtt, f"tbf rate {kbit}kbit burst 5kb limit "
                                       f"{2 * queued}"),
                servers=lambda: [receiver(port)], clients=lambda: [
                    *[stream(port, size, pause)] * count,
                    datagrams(MIDDLE, B, bed.ADDRESS, queued=queued, after=2.0)],
                proof=(lasting(B, kbit, 450), 20))


@fault("a queue of two seconds here")
def _(draw):
    mbit = draw("mbit/s", 3, 6)
    return dict(topology=lambda: bed.pair(20, f"rate {mbit}mbit limit 2000"), warm=4.0,
                want=["bufferbloat"], never=BUFFERS, **flows(draw, 1))


@fault("a provider that shapes")
def _(draw):
    rtt, mbit = draw("rtt", 25, 50), draw.graded("mbit/s", (7, 10), (2, 4))
    lasts = draw("ms of queue", 90, 250)
    source, target, load = one_way(draw, draw.either())
    return dict(topology=lambda: office(rtt), want=["path"], at=source, warm=5.0,
                before=lambda: leaving(target, rtt, f"tbf rate {mbit}mbit burst 5kb "
                                       f"limit {mbit * lasts * 125}"), **load,
                proof=(lasting(target, mbit * 1000, 15), 20))


# --- Packets that are too long, and marks -------------------------------------------

@fault("PPPoE behind a firewall that drops ICMP")
def _(draw):
    port, rtt, address = draw.port, draw("rtt", 5, 40), draw.either()
    mtu, count = draw.graded("mtu", (1480, 1492), (1280, 1420)), draw("uploads", 1, 3)
    small = draw("bytes before", 20, 900)

    def before():
        sh(f"ip -n $M link set dev mb mtu {mtu}")
        guarded(MIDDLE, "inet", "output",
                "icmp type destination-unreachable counter name seen drop",
                "icmpv6 type packet-too-big counter name seen drop")
    return dict(topology=lambda: office(rtt), before=before, want=["mtu"],
                warm=draw("ms", 800, 2500) / 1000,
                servers=lambda: [receiver(port, own.greeted(small))],
                clients=lambda: [greets(port, small, address)] * count,
                proof=(guard(MIDDLE, "inet"), 1))


@fault("a switch that drops long frames")
def _(draw):
    port, longest = draw.port, draw("bytes", 1280, 1480)

    def before():
        own.file(draw("kB", 50, 900) * 1024)
        sh("ip -n $B link set vb gso_max_segs 1")
        guarded(MIDDLE, "bridge", "forward",
                f"meta length > {longest} counter name seen drop")
    return dict(topology=switched, before=before, at=B, want=["mtu"],
                servers=lambda: [web_server(port)], warm=draw("ms", 500, 1200) / 1000,
                clients=lambda: [curl(url(port))] * draw("connections", 1, 3),
                proof=(guard(MIDDLE, "bridge"), 1))


@fault("a jumbo MTU that the other end lacks")
def _(draw):
    return dict(topology=lambda: bed.pair(mtu=9000), want=["mtu"], warm=2.0, before=(
        "ip -n $B link set vb mtu 1500; ip -n $B route change 10.9.0.0/24 dev vb src "
        f"{bed.ADDRESS} advmss 8960; ip netns exec $A ethtool -K va gso off tso off"),
        **flows(draw, 1, False), proof=(bed.segments, 1))


# Strong: what carries ECN is dropped.  Mild: only a SYN that asks for it, so that each
# connection begins with a second try.
@fault("tcp_ecn=1 and an old firewall on the path")
def _(draw):
    port, rtt, address = draw.port, draw("rtt", 10, 50), draw.either()
    syn, clients = not draw("strong", 0, 1), draw("clients", 6, 10)
    request, reply = draw("bytes asked", 80, 900), draw("answered", 500, 9000)
    rule = ("tcp flags & (syn | ecn | cwr) == (syn | ecn | cwr)" if syn else
            "ip6 ecn != not-ect" if ":" in address else "ip ecn != not-ect")
    return dict(topology=lambda: office(rtt), warm=4.0, a={"net.ipv4.tcp_ecn": 1},
                want=["no-answer"] if syn else ["ecn-black-hole"],
                before=lambda: guarded(MIDDLE, "inet", "forward",
                                       rule + " counter name seen drop"),
                servers=lambda: [receiver(port, answer(request, reply) if syn
                                          else None)],
                clients=lambda: [ask(port, request, reply, 0.02, every=1,
                                     address=address)] * clients if syn else
                [stream(port, address=address)] * (clients // 3),
                proof=(guard(MIDDLE, "inet"), 3))


# --- Nothing arrives ----------------------------------------------------------------

@fault("a path that dies")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 5, 40), draw("connections", 2, 4)
    write, pause = draw("kB", 4, 64) * 1024, draw("ms", 0, 30) / 1000
    topology, late = draw.one(
        "way", (lambda: bed.container(rtt), "ip -n $M link set dev docker0 down"),
        (lambda: switched(rtt / 2), "ip -n $M link set dev mb nomaster"),
        (lambda: office(rtt), "ip netns exec $M sysctl -qw net.ipv4.ip_forward=0"),
        (lambda: bed.pair(rtt), "ip -n $B link set vb down"))
    return dict(topology=topology, late=late, want=["path-down"], never=PROBING,
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, write, pause)] * count,
                after=draw.graded("ms after", (1500, 2500), (3000, 6000)) / 1000,
                proof=(lambda _: 0, 0))


@fault("a next hop that does not answer")
def _(draw):
    port, gone = draw.port, draw("a gateway", 0, 1)
    before = ("ip -n $A route add 10.9.0.2/32 via 10.9.0.99 src 10.9.0.1" if gone else
              "ip -n $B addr del 10.9.0.2/24 dev vb; "
              "ip -n $B addr add 10.9.0.3/24 dev vb")
    return dict(before=before, warm=3.5, never=PROBING, want=["path-down"],
                unsure=["no-answer"], clients=lambda: [calls(port, 500, 0.2, wait=4.0)],
                proof=(lambda _: 0, 0))


@fault("a router that reports an unreachable host")
def _(draw):
    port, rtt = draw.port, draw("rtt", 10, 50)
    # An unreachable route soon sends no ICMP any more: its rate is limited.
    return dict(topology=lambda: office(rtt), never=PROBING, after=2.5,
                late=lambda _: (put(MIDDLE, {"net.ipv4.icmp_ratelimit": 0}), guarded(
                    MIDDLE, "ip", "forward", f"ip daddr {bed.ADDRESS} counter name "
                    "seen reject with icmp type host-unreachable")),
                servers=lambda: [receiver(port)], want=["path-down"], clients=lambda: [
                    stream(port, 500, 0.3), calls(port, 500, 0.3)],
                proof=(guard(MIDDLE, "ip"), 1))


@fault("a link that comes and goes")
def _(draw):
    down, up = draw("down", 300, 700) / 1000, draw("up", 500, 900) / 1000
    load = flows(draw, 1)

    def flapping():
        while True:
            for state, length in (("down", down), ("up", up)):
                sh(f"ip -n $B link set vb {state}")
                own.time.sleep(length)      # the fault
    return dict(servers=load["servers"], clients=lambda: [*load["clients"](), flapping],
                warm=3.0, never=PROBING, want=["path-down", "link-errors"],
                unsure=["loss", "recovery", "unknown", "no-answer"],
                proof=(lambda _: 0, 0))


@fault("idle connections to a dead host")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 10, 50), draw("count", 3, 12)
    return dict(topology=lambda: office(rtt), never=ANY, after=4.0,
                late="ip netns exec $M sysctl -qw net.ipv4.ip_forward=0",
                servers=lambda: [own.eager(port)], proof=(lambda _: 0, 0),
                clients=lambda: [hold(port, count, own.KEEPALIVE)],
                want=["path-down"], unsure=["unknown", "no-answer"])


@fault("packets dropped without an answer")
def _(draw):
    port, pause = draw.port, draw("ms", 300, 900) / 1000
    return dict(before=lambda: guarded(B, "inet", "input", "counter name seen drop"),
                clients=lambda: [visitors(port, pause)], warm=2.5, want=["no-answer"],
                proof=(guard(B, "inet"), 1))


@fault("replies through another link, reverse path filter")
def _(draw):
    port = draw.port
    return dict(b={"net.ipv4.conf.all.rp_filter": 1}, never=ANY, warm=3.0,
                a={"net.ipv4.conf.all.arp_announce": 2},    # it would filter ARP too
                before="ip -n $A addr add 10.77.0.1/32 dev va; ip -n $A route change "
                "10.9.0.0/24 dev va src 10.77.0.1; ip -n $B link add d0 type dummy; "
                "ip -n $B link set d0 up; ip -n $B route add 10.77.0.0/24 dev d0",
                servers=lambda: [receiver(port)], proof=(lambda _: 0, 0),
                clients=lambda: [calls(port, 500, 0.2, wait=4.0)] * 3,
                **draw.seen(["no-answer"], ["unknown", "own-firewall"]))


@fault("a port on which nobody listens")
def _(draw):
    port, count, rtt = draw.port, draw("programs", 2, 6), draw("rtt", 1, 20)
    return dict(topology=lambda: bed.pair(rtt), want=["nothing", "unknown"],
                unsure=["no-answer"], never=ANY,
                clients=lambda: [calls(port, 500, 0.02)] * count)
