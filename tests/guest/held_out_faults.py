# SPDX-License-Identifier: GPL-2.0-only
"""Held-out faults: cases written without the rules of msstune, by someone who had not
read them.  Parameters are drawn from the ranges stated here, with a fixed seed.  Prints
"ok NAME" or "not ok NAME" for each case, and remarks.

usage: held_out_faults.py [list] faults-1|faults-2|healthy, or NAME...
FACTS=DIR in the environment: store the facts of each case in DIR.

Do not change a rule until one of these cases passes: write new ones then.
"""
import json
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import faults  # noqa: E402
import held_out_loads as loads  # noqa: E402
import wide_faults as wide  # noqa: E402
from faults import sh  # noqa: E402
from held_out_healthy import HEALTHY_HELD_OUT  # noqa: E402
from held_out_loads import (  # noqa: E402
    MIDDLE,
    Draw,
    answer,
    ask,
    download,
    reads,
    routed,
    router_filter,
    short,
    stream,
    upload,
)
from wide_faults import discard, nft, serve  # noqa: E402

#: Any setting at all.
ANY = ["net.", ":"]
#: What can be told honestly of a fault for which there is no name.
HONEST = ["nothing", "unknown", "path", "application-send"]
PROBING = ["mtu_probing"]
BUFFERS = ["tcp_rmem", "tcp_wmem"]
ROUTE = "ip -n $A route change 10.9.0.0/24 dev va src 10.9.0.1 "
SERVER_ROUTE = "ip -n $B route change 10.9.0.0/24 dev vb src 10.9.0.2 "
FAULTS = {}


def fault(name, *variants):
    """The function that follows makes the arguments of wide_faults.run() from a Draw
    and one of the variants."""
    def keep(function):
        for variant in variants:
            FAULTS[f"{name}, {variant}"] = partial(function, variant=variant)
        if not variants:
            FAULTS[name] = function
        return function
    return keep


# --- Applications ---------------------------------------------------------------

@fault("a reader of few bytes per call", "seen by the sender", "seen by the receiver")
def _(draw, variant):
    port, size = draw.port, draw("bytes", 1, 3)
    here = variant == "seen by the receiver"
    return dict(load=lambda: [*serve(reads(size), port=port), stream(port)],
                at="B" if here else "A", wait=3.0, never=BUFFERS,
                want=["application-receive" if here else "peer-application"],
                unsure=["cpu"])


@fault("SO_RCVLOWAT above a request")
def _(draw):
    port, size, low = draw.port, draw("request", 200, 3000), draw("low", 9000, 30000)
    options = ((socket.SOL_SOCKET, socket.SO_RCVLOWAT, low),)
    return dict(load=lambda: [*serve(reads(1 << 18, options=options), port=port),
                              ask(port, size, 100)],
                at="B", wait=2.5, never=ANY,
                want=["reader-stopped", "application-receive"])


@fault("tcp_notsent_lowat of few bytes")
def _(draw):
    port, low = draw.port, draw("bytes", 1, 2000)
    return dict(pair={"rtt_ms": draw("rtt", 30, 80)},
                a={"net.ipv4.tcp_notsent_lowat": low}, never=BUFFERS,
                load=lambda: [*serve(discard, port=port), loads.ticking(
                    port, draw("tick", 20, 40) / 1000)],
                want=["send-buffer", "application-send"], unsure=["unknown"])


@fault("a reader that rests", "seen by the sender", "seen by the receiver")
def _(draw, variant):
    port, rest = draw.port, draw("rest", 400, 900) / 1000
    here = variant == "seen by the receiver"
    batch = draw("batch", 100, 300) * 1000
    return dict(load=lambda: [*serve(reads(0, rest, batch), port=port), stream(port)],
                at="B" if here else "A", wait=4.0, never=BUFFERS,
                want=["application-receive" if here else "peer-application"])


@fault("a server that answers in pieces")
def _(draw):
    port, pieces = draw.port, draw("pieces", 2, 5)
    return dict(pair={"rtt_ms": draw("rtt", 1, 8)}, at="B", want=["nagle"],
                load=lambda: [*serve(answer(150, 120 * pieces, pieces), port=port),
                              ask(port, 150, 120 * pieces)])


@fault("MSG_MORE on the last write")
def _(draw):
    port, size = draw.port, draw("size", 100, 1200)
    return dict(pair={"rtt_ms": draw("rtt", 1, 8)}, at="B", want=["cork"],
                unsure=["nagle", "unknown"], load=lambda: [
                    *serve(answer(100, size, flags=socket.MSG_MORE), port=port),
                    ask(port, 100, size)])


@fault("a server that stops answering", "seen by the client", "seen by the server")
def _(draw, variant):
    port, most = draw.port, draw("requests", 3, 8)
    here = variant == "seen by the server"
    return dict(pair={"rtt_ms": draw("rtt", 10, 60)}, at="B" if here else "A",
                load=lambda: [*serve(answer(300, 300, most=most), port=port),
                              ask(port, 300, 300)], wait=2.5, never=ANY,
                want=["reader-stopped", "application-receive"] if here else
                [*HONEST, "peer-stopped", "peer-application"])


@fault("connections that the program does not close")
def _(draw):
    port, count = draw.port, draw("count", 20, 50)

    def leaks(backlog=64):
        listener = wide.listening(backlog, port)

        def run():
            kept = []
            while True:
                kept.append(listener.accept()[0])
        return run
    return dict(at="B", wait=3.0, never=ANY, want=HONEST, pair={"rtt_ms": 5},
                load=lambda: [leaks(), *[ends_soon(port)] * count])


def ends_soon(port):
    def run():
        loads.dial(port).close()
    return run


# --- Windows and buffers ---------------------------------------------------------

@fault("TCP_WINDOW_CLAMP", "seen by the sender", "seen by the receiver")
def _(draw, variant):
    port, clamp = draw.port, draw("clamp", 5000, 13000)
    # Autotuning would lift the clamp; a buffer set by the program ends autotuning.
    options = ((socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000),
               (socket.IPPROTO_TCP, loads.TCP_WINDOW_CLAMP, clamp))
    here = variant == "seen by the receiver"
    return dict(load=lambda: [loads.server_with(port, options), stream(port)],
                at="B" if here else "A", never=BUFFERS,
                want=["receive-buffer-fixed", "route-window", "receive-window"] if here
                else ["receive-window"], unsure=["mss-granularity", "unknown"])


@fault("SO_RCVBUF of a client that downloads")
def _(draw):
    port, size = draw.port, draw("bytes", 8000, 24000)
    options = ((socket.SOL_SOCKET, socket.SO_RCVBUF, size),)
    return dict(load=lambda: [*serve(upload(), port=port), download(
        port, options=options)], never=["tcp_rmem"], want=["receive-buffer-fixed"])


@fault("tcp_adv_win_scale", "mild", "severe")
def _(draw, variant):
    port, scale = draw.port, -2 if variant == "mild" else -4
    size = draw("rmem", 200, 300) * 1000
    return dict(b={"net.ipv4.tcp_adv_win_scale": scale,
                   "net.ipv4.tcp_rmem": f"4096 131072 {size}"}, at="B",
                load=lambda: [*serve(discard, port=port), stream(port)], wait=2.5,
                want=["adv-win-scale"], unsure=["receive-window"])


@fault("window scaling off, seen by the receiver")
def _(draw):
    port = draw.port
    return dict(pair={"rtt_ms": draw("rtt", 80, 160)}, at="B", wait=3.0,
                a={"net.ipv4.tcp_window_scaling": 0}, never=BUFFERS,
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=["window-scaling"])


@fault("a window of two segments and a half", "MTU 4000", "MTU 32000")
def _(draw, variant):
    port, mtu = draw.port, int(variant.split()[1])
    size = int(2 * (mtu - 52) * draw("hundredths", 230, 280) / 100)
    return dict(pair={"mtu": mtu}, b={"net.ipv4.tcp_rmem": f"4096 {size} {size}"},
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=["mss-granularity"], unsure=["receive-window"])


# --- The congestion window -------------------------------------------------------

@fault("bursts of loss", "mild", "severe")
def _(draw, variant):
    port = draw.port
    rate = draw("p", 2, 5) / 10 if variant == "mild" else draw("p", 10, 20) / 10
    loss = f"loss gemodel {rate}% {draw('r', 25, 50)}% limit 10000"
    return dict(before=lambda: routed(draw("rtt", 30, 70), loss), wait=2.5,
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=["loss"], unsure=["policer"], never=PROBING)


@fault("a limit of packets at the router", "mild", "severe")
def _(draw, variant):
    port = draw.port
    rate = draw("kB", 500, 800) if variant == "mild" else draw("kB", 100, 250)

    def before():
        routed(draw("rtt", 20, 50))
        router_filter("forward", f"ip daddr 10.9.0.2 limit rate over {rate} "
                      f"kbytes/second burst {draw('burst', 10, 40)} kbytes drop")
    return dict(before=before, load=lambda: [*serve(discard, port=port), stream(port)],
                wait=3.0, want=["policer"], unsure=["loss"],
                never=["congestion_control", *PROBING])


@fault("a narrow way back", "a short queue", "a long queue")
def _(draw, variant):
    port, long = draw.port, variant == "a long queue"
    back = f"rate {draw('kbit', 40, 90)}kbit limit {500 if long else 10}"
    return dict(before=lambda: routed(draw("rtt", 20, 50), back=back), wait=4.0,
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=["bufferbloat"] if long else ["ack-loss", *HONEST],
                unsure=["ack-loss", "unknown", "path", "bufferbloat"],
                never=BUFFERS + PROBING)


@fault("jitter that reorders", "mild", "severe")
def _(draw, variant):
    port = draw.port
    jitter = draw("ms", 3, 5) if variant == "mild" else draw("ms", 10, 18)
    return dict(before=lambda: routed(50, f"{jitter}ms limit 10000"), wait=2.5,
                load=lambda: [*serve(discard, port=port), stream(port)], never=PROBING,
                # TCP adapts to the mild one: the window may be all that limits it.
                want=["reordering"] + ["receive-window"] * (variant == "mild"))


@fault("packets that arrive twice")
def _(draw):
    port = draw.port
    more = f"duplicate {draw('percent', 15, 40)}% rate 5mbit limit 40"
    return dict(before=lambda: routed(50, more), never=ANY, wait=2.5,
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=HONEST, unsure=["reordering", "ack-loss"])


@fault("damaged packets", "seen by the sender", "seen by the receiver")
def _(draw, variant):
    port, here = draw.port, variant == "seen by the receiver"
    more = f"corrupt {draw('percent', 1, 3)}% limit 10000"
    return dict(before=lambda: routed(draw("rtt", 30, 60), more), wait=2.5,
                load=lambda: [*serve(discard, port=port), stream(port)],
                at="B" if here else "A", want=["link-errors"] if here else ["loss"],
                unsure=["loss"])


def cached(port, route):
    """TCP takes a locked cwnd or ssthresh of a route from its cache of metrics, where
    the end of an earlier connection puts it."""
    sh(route)
    with wide.programs(*serve(discard, port=port), short(port, 20000)):
        time.sleep(1.5)


@fault("a route with a cwnd", "mild", "severe")
def _(draw, variant):
    port = draw.port
    cwnd = draw("cwnd", 8, 12) if variant == "mild" else draw("cwnd", 2, 4)
    return dict(pair={"rtt_ms": draw("rtt", 40, 90)},
                before=lambda: cached(port, f"{ROUTE} cwnd lock {cwnd}"),
                want=["cwnd-clamp"], never=BUFFERS,
                load=lambda: [*serve(discard, port=port), stream(port)])


@fault("a route with an ssthresh")
def _(draw):
    port = draw.port
    return dict(pair={"rtt_ms": draw("rtt", 80, 150)},
                a={"net.ipv4.tcp_no_ssthresh_metrics_save": 0}, never=BUFFERS,
                before=lambda: cached(
                    port, f"{ROUTE} ssthresh lock {draw('ssthresh', 4, 8)}"), wait=2.0,
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=["stale-metrics"], unsure=["cwnd-clamp", "recovery", "unknown"])


@fault("a route with a large rto_min, and loss")
def _(draw):
    port, size = draw.port, draw("size", 200, 2000)

    def before():
        routed(draw("rtt", 10, 40), f"loss {draw('percent', 8, 15)}%")
        sh("ip -n $A route change default via 10.9.1.254 "
           f"rto_min {draw('rto_min', 1, 2)}s")
    return dict(before=before, load=lambda: [
        *serve(answer(size, size), count=6, port=port), *[ask(port, size, size)] * 6],
        wait=3.0, want=["loss", "recovery"], unsure=["unknown", "ack-loss"])


@fault("a server that pauses between answers")
def _(draw):
    port, size = draw.port, draw("kB", 200, 400) * 1000
    return dict(pair={"rtt_ms": draw("rtt", 60, 90)}, at="B", wait=4.0,
                load=lambda: [*serve(answer(100, size), port=port),
                              ask(port, 100, size, draw("pause", 900, 1100) / 1000)],
                want=["idle-restart"])


@fault("a server with initcwnd 2")
def _(draw):
    port, size = draw.port, draw("kB", 40, 90) * 1000
    return dict(pair={"rtt_ms": draw("rtt", 50, 90)}, at="B", want=["initcwnd"],
                before=f"{SERVER_ROUTE} initcwnd 2", wait=2.0,
                b={"net.ipv4.tcp_no_metrics_save": 1},
                load=lambda: [*serve(answer(100, size), count=3, port=port),
                              *[ask(port, 100, size, every=1)] * 3])


@fault("tcp_pacing_ca_ratio of few percent")
def _(draw):
    port, part = draw.port, draw("percent", 5, 20)
    return dict(pair={"egress": "tc -n $A qdisc add dev va root fq"},
                a={"net.ipv4.tcp_pacing_ca_ratio": part,
                   "net.ipv4.tcp_pacing_ss_ratio": part}, want=["pacing"],
                load=lambda: [*serve(discard, port=port), stream(port)],
                unsure=["unknown"], never=BUFFERS)


@fault("SACK off at the receiver only")
def _(draw):
    port = draw.port
    more = f"loss {draw('percent', 2, 4)}%"
    return dict(before=lambda: routed(draw("rtt", 30, 60), more), wait=2.5,
                b={"net.ipv4.tcp_sack": 0}, want=["sack-off"], unsure=["loss"],
                load=lambda: [*serve(discard, port=port), stream(port)])


@fault("timestamps off at the sender only")
def _(draw):
    port = draw.port
    return dict(pair={"ingress": "rate 5mbit limit 40"}, want=["timestamps"],
                a={"net.ipv4.tcp_timestamps": 0},
                b={"net.ipv4.tcp_timestamps": 1}, at="B",
                load=lambda: [*serve(discard, port=port), stream(port)])


# --- The path -------------------------------------------------------------------

@fault("a queue elsewhere that is too long", "mild", "severe")
def _(draw, variant):
    port, rate = draw.port, draw("mbit", 2, 5)
    seconds = 0.6 if variant == "mild" else 2.5
    more = f"rate {rate}mbit limit {int(seconds * rate * 1e6 / 8 / 1514)}"
    return dict(before=lambda: routed(20, more), wait=6.0, never=BUFFERS,
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=["bufferbloat"])


@fault("a narrower link after the router, ICMP blocked", "mild", "severe")
def _(draw, variant):
    port = draw.port
    mtu = draw("mtu", 1300, 1450) if variant == "mild" else draw("mtu", 576, 900)

    def before():
        routed(draw("rtt", 10, 50))
        loads.narrow(mtu, icmp=False)
    return dict(before=before, load=lambda: [*serve(discard, port=port), stream(port)],
                wait=3.0, want=["mtu"])


@fault("a router that stops forwarding")
def _(draw):
    port = draw.port
    return dict(before=lambda: routed(draw("rtt", 10, 50)), never=PROBING, wait=3.0,
                fault=f"ip netns exec {MIDDLE} sysctl -qw net.ipv4.ip_forward=0",
                load=lambda: [*serve(discard, port=port), stream(port)],
                want=["path-down"], unsure=["no-answer", "unknown", "mtu"])


@fault("a router that reports an unreachable host")
def _(draw):
    port = draw.port
    return dict(before=lambda: routed(draw("rtt", 10, 50)), never=PROBING, wait=2.5,
                # An unreachable route soon sends no ICMP any more: its rate is limited.
                fault=f"ip netns exec {MIDDLE} sysctl -qw net.ipv4.icmp_ratelimit=0; "
                + loads.filtering("forward", "ip daddr 10.9.0.2 reject with icmp type "
                                  "host-unreachable"),
                load=lambda: [*serve(discard, port=port, count=3), stream(
                    port, 500, 0.3), short(port, 500, 0.3)], want=["path-down"])


@fault("a gateway that does not exist")
def _(draw):
    port = draw.port
    return dict(before="ip -n $A route add 10.9.7.0/24 via 10.9.0.99; ip -n $A route "
                "add 10.9.0.2/32 via 10.9.0.99 src 10.9.0.1", wait=4.0, never=PROBING,
                load=lambda: [*serve(discard, port=port), short(port, 500, 0.2)],
                want=["path-down"], unsure=["no-answer"])


@fault("ECN: dropped", "a SYN that asks for it", "packets that carry it")
def _(draw, variant):
    port = draw.port
    syn = variant.startswith("a SYN")

    def before():
        routed(draw("rtt", 20, 60))
        router_filter("forward", "tcp flags & (syn | ecn | cwr) == (syn | ecn | cwr) "
                      "drop" if syn else "ip ecn ect0 drop")
    return dict(before=before, a={"net.ipv4.tcp_ecn": 1}, b={"net.ipv4.tcp_ecn": 1},
                load=lambda: [*serve(discard, count=4, port=port), *(
                    [short(port, 2000)] * 4 if syn else [stream(port)] * 2)], wait=2.5,
                want=["no-answer"] if syn else ["unknown"], unsure=["unknown"] if syn
                else ["loss", "path-down", "policer"],
                never=["congestion_control", *PROBING, *BUFFERS])


@fault("a link that comes and goes")
def _(draw):
    port = draw.port
    down, up = draw("down", 300, 700) / 1000, draw("up", 500, 900) / 1000
    return dict(load=lambda: [*serve(discard, port=port), stream(port),
                              loads.flapping(down, up)], wait=3.0, never=PROBING,
                want=["path-down", "link-errors"],
                unsure=["loss", "recovery", "unknown", "no-answer"])


@fault("idle connections to a dead host")
def _(draw):
    port = draw.port
    keep = ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1))
    return dict(before=lambda: routed(draw("rtt", 10, 50)), never=ANY, wait=4.0,
                fault=f"ip netns exec {MIDDLE} sysctl -qw net.ipv4.ip_forward=0",
                load=lambda: [loads.eager(port), loads.hold(
                    port, draw("count", 3, 12), keep)],
                want=["path-down"], unsure=["unknown", "no-answer"])


@fault("replies through another link, reverse path filter", "seen by the client",
       "seen by the server")
def _(draw, variant):
    port, here = draw.port, variant == "seen by the server"
    return dict(b={"net.ipv4.conf.all.rp_filter": 1}, at="B" if here else "A",
                a={"net.ipv4.conf.all.arp_announce": 2},    # it would filter ARP too
                before="ip -n $A addr add 10.77.0.1/32 dev va; ip -n $A route change "
                "10.9.0.0/24 dev va src 10.77.0.1; ip -n $B link add d0 type dummy; "
                "ip -n $B link set d0 up; ip -n $B route add 10.77.0.0/24 dev d0",
                load=lambda: [*serve(discard, port=port), *[short(port, 500, 0.2)] * 3],
                wait=3.0, want=["unknown", "own-firewall"] if here else ["no-answer"],
                never=ANY)


@fault("a port on which nobody listens")
def _(draw):
    port = draw.port
    return dict(load=lambda: [*[short(port, 500, 0.02)] * draw("programs", 2, 6)],
                pair={"rtt_ms": draw("rtt", 1, 20)}, want=["nothing", "unknown"],
                unsure=["no-answer"], never=ANY)


# --- The host -------------------------------------------------------------------

@fault("a SYN flood", "without cookies", "with cookies")
def _(draw, variant):
    port, size = draw.port, draw("backlog", 8, 32)

    def before():
        routed(draw("rtt", 5, 40))
        sh(f"ip -n {MIDDLE} route add blackhole 198.18.0.0/16")
    return dict(before=before, at="B", want=["syn-queue"],
                b={"net.ipv4.tcp_syncookies": int(variant == "with cookies"),
                   "net.ipv4.tcp_max_syn_backlog": size,
                   "net.core.somaxconn": size},
                load=lambda: [*serve(discard, port=port), short(port, 500, 0.2),
                              loads.flood(port, draw("pause", 5, 20) / 1000)],
                wait=3.0, unsure=["accept-queue"], never=PROBING)


@fault("a program that accepts slowly", "SYNs are dropped", "tcp_abort_on_overflow")
def _(draw, variant):
    port, backlog = draw.port, draw("backlog", 1, 4)
    abort = int(variant == "tcp_abort_on_overflow")
    return dict(b={"net.ipv4.tcp_abort_on_overflow": abort}, at="B", wait=2.5,
                load=lambda: [loads.accepts_slowly(port, backlog, draw(
                    "pause", 400, 900) / 1000), *[short(port, 200, 0.05)] * 12],
                pair={"rtt_ms": draw("rtt", 1, 20)}, want=["accept-queue"],
                never=["syn_backlog", *PROBING])


@fault("ports held by open connections")
def _(draw):
    port, count = draw.port, draw("ports", 12, 40)
    return dict(a={"net.ipv4.ip_local_port_range": f"41000 {41000 + count - 1}"},
                pair={"rtt_ms": 1}, want=["ports-used-up"], never=["tw_reuse"],
                load=lambda: [loads.eager(port), loads.hold(port, 1000, retry=0.03)],
                wait=2.0)


@fault("more TIME-WAIT than are kept")
def _(draw):
    port = draw.port
    return dict(a={"net.ipv4.tcp_max_tw_buckets": draw("most", 4, 12)}, wait=2.0,
                pair={"rtt_ms": 2}, want=HONEST, never=ANY,
                load=lambda: [*serve(discard, count=3, port=port),
                              *[short(port, 200, 0.01)] * 3])


@fault("a conntrack table full of old connections", "seen by the server",
       "seen by the client")
def _(draw, variant):
    port, here = draw.port, variant == "seen by the server"
    return dict(host={"net.netfilter.nf_conntrack_max": draw("most", 16, 40)},
                before=lambda: nft("B", ("input", "ct state new counter accept")),
                at="B" if here else "A", wait=4.0, pair={"rtt_ms": draw("rtt", 2, 10)},
                load=lambda: [*serve(discard, count=6, port=port),
                              *[short(port, 200, 0.01)] * 6],
                want=["conntrack-full"] if here else ["no-answer"],
                unsure=[] if here else ["unknown", "peer-accept-queue", "path-down"],
                never=["congestion_control", *PROBING])


@fault("own firewall", "a limit on output", "a reset for each connection")
def _(draw, variant):
    port, limits = draw.port, variant == "a limit on output"
    rule = (f"'meta l4proto tcp limit rate over {draw('packets', 40, 120)}/second "
            "counter drop'" if limits else f"'tcp dport {port} counter reject with "
            "tcp reset'")
    return dict(before=lambda: nft("A" if limits else "B", (
        "output" if limits else "input", rule)), at="A" if limits else "B", wait=2.5,
        load=lambda: [*serve(discard, port=port, count=2), stream(port),
                      short(port, 200, 0.1)], want=["own-firewall"],
        never=["congestion_control", *PROBING])


@fault("a CPU quota of the sender", "mild", "severe")
def _(draw, variant):
    port = draw.port
    quota = draw("us", 8000, 12000) if variant == "mild" else draw("us", 1500, 3000)

    def sends():
        sock, data = loads.dial(port), bytes(4000)
        wide.limited(quota)
        while True:
            sum(range(5000))
            sock.sendall(data)
    return dict(load=lambda: [*serve(discard, port=port), sends], wait=2.5,
                want=["cpu-quota"], unsure=["application-send"], never=BUFFERS)


@fault("a short backlog under many flows")
def _(draw):
    port, count = draw.port, draw("flows", 4, 6)
    return dict(host={"net.core.netdev_max_backlog": draw("packets", 1, 4)}, at="B",
                load=lambda: [*serve(discard, count=count, port=port),
                              *[stream(port)] * count], want=["backlog-drops"])


@fault("little memory for TCP, seen by the sender")
def _(draw):
    port, most = draw.port, draw("pages", 200, 600)
    return dict(host={"net.ipv4.tcp_mem": f"{most // 4} {most // 2} {most}"}, wait=2.5,
                load=lambda: [*serve(discard, count=4, port=port),
                              *[stream(port)] * 4], want=["memory-pressure"],
                unsure=["unknown", "receive-window", "send-buffer"], never=BUFFERS)


@fault("a netem of this host with a short queue", "mild", "severe")
def _(draw, variant):
    port = draw.port
    most = draw("packets", 8, 14) if variant == "mild" else draw("packets", 2, 4)
    return dict(pair={"ingress": f"limit {most}", "rtt_ms": draw("rtt", 40, 80)},
                load=lambda: [*serve(discard, count=3, port=port),
                              *[stream(port)] * 3], wait=2.5, want=["qdisc-drops"],
                unsure=["policer"], never=PROBING)


@fault("fq with a short queue for each flow")
def _(draw):
    port = draw.port
    limit = draw("limit", 2, 4)
    return dict(pair={"egress": "tc -n $A qdisc add dev va root handle 1: tbf rate "
                      f"{draw('mbit', 3, 6)}mbit burst 20kb limit 1mb; tc -n $A qdisc "
                      f"add dev va parent 1:1 fq flow_limit {limit}"},
                load=lambda: [*serve(discard, count=3, port=port),
                              *[stream(port)] * 3], wait=2.5, want=["qdisc-drops"],
                unsure=["shaper"])


@fault("CAKE with a rate")
def _(draw):
    port, rate = draw.port, draw("kbit", 1500, 4000)
    return dict(pair={"egress": f"tc -n $A qdisc add dev va root cake bandwidth {rate}"
                      "kbit"}, want=["shaper"], never=["congestion_control", *BUFFERS],
                load=lambda: [*serve(discard, count=2, port=port),
                              *[stream(port)] * 2], wait=2.5)


@fault("segments of few bytes", "TCP_MAXSEG", "advmss of the peer's route")
def _(draw, variant):
    port, mss = draw.port, draw("mss", 90, 180)
    option = ((socket.IPPROTO_TCP, loads.TCP_MAXSEG, mss),)
    own = variant == "TCP_MAXSEG"
    return dict(pair={"rtt_ms": draw("rtt", 5, 20)},
                before="" if own else f"{SERVER_ROUTE} advmss {mss}",
                load=lambda: [*serve(discard, port=port), stream(
                    port, options=option if own else ())],
                want=["small-writes"], unsure=["unknown", "cpu", "cpu-softirq",
                                               "receive-window", "send-buffer"],
                never=["congestion_control", *PROBING])


@fault("TSO, GSO and scatter-gather off")
def _(draw):
    port = draw.port
    return dict(pair={"rtt_ms": draw("rtt", 1, 3)}, want=["offload-off"],
                before="ip netns exec $A ethtool -K va tso off gso off sg off tx off",
                load=lambda: [*serve(discard, port=port), stream(port)],
                unsure=["cpu", "cpu-softirq"])


def clean():
    for name in (MIDDLE, wide.A, wide.B):
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def main():
    every = FAULTS | HEALTHY_HELD_OUT
    names = list(FAULTS)
    kinds = {"faults-1": names[::2], "faults-2": names[1::2],   # ten minutes each
             "healthy": list(HEALTHY_HELD_OUT)}
    if sys.argv[1] == "list":
        print("\n".join(kinds[sys.argv[2]]))
        return
    for name in kinds.get(sys.argv[1], sys.argv[1:]):
        draw = Draw(name)
        case = every[name](draw) | {"healthy": name in HEALTHY_HELD_OUT}
        case["pair_"] = case.pop("pair", None)
        try:
            wide.run(name, **case)
        except (OSError, subprocess.CalledProcessError, KeyError,
                ValueError) as error:
            faults.tell(repr(error), f"not ok {name}")
        finally:
            clean()
        faults.tell(f"{name}: seed {loads.SEED}, {json.dumps(draw.drawn)}; want "
                    f"{case.get('want', 'no fault')}, unsure {case.get('unsure', [])}, "
                    f"never {case.get('never', [])}, seen from {case.get('at', 'A')}")


if __name__ == "__main__":
    main()
