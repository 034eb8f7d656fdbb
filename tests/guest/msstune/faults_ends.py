# SPDX-License-Identifier: GPL-2.0-only
"""Injected faults of programs, and of the windows and settings of an end."""
import os
import signal
import socket
import subprocess
import time
from functools import partial

import driver
import programs as own
import testbed as bed
from clients import (
    ask,
    bash,
    calls,
    curl,
    fetches,
    hashing,
    hold,
    perl,
    program,
    snapshots,
    stream,
    url,
    web_server,
)
from programs import CORK, NODELAY, answer, buffer, number, receiver, shared, upload
from testbed import (
    IPV6,
    KERNEL,
    MIDDLE,
    A,
    B,
    container,
    drawn_path,
    extended,
    guarded,
    limited,
    office,
    put,
    sh,
    switched,
)

fault = partial(driver.fault, "ends")
#: Any setting at all.
ANY = ["net.", ":"]
BUFFERS = ["tcp_rmem", "tcp_wmem"]
#: Right for a fault that has no name.
HONEST = ["nothing", "unknown", "path", "application-send"]
PAIRED = "ip -n $A route change 10.9.0.0/24 dev va src 10.9.0.1 "


def one_way(draw, address, handle=own.discard, options=(), most=4):
    """Connections whose data go from A to B, or from B to A: that is drawn.  The ends
    that send and receive, and the programs.  @options: of sockets that send."""
    port, count = draw.port, draw("connections", 1, most)
    if draw("download", 0, 1):
        return B, A, dict(
            servers=lambda: [receiver(port, upload(options=options))],
            clients=lambda: [fetches(port, address, handle)] * count)
    return A, B, dict(
        servers=lambda: [receiver(port, handle)],
        clients=lambda: [stream(port, options=options, address=address)] * count)


# --- Readers --------------------------------------------------------------------

@fault("a consumer that is suspended")
def _(draw):
    port, size, address = draw.port, draw("kB", 1, 32) * 1024, draw.either()
    count, pause = draw("connections", 1, 3), draw("ms", 0, 4) / 1000
    return dict(topology=drawn_path(draw, 1, 40),
                warm=draw("warm ms", 800, 2000) / 1000, never=BUFFERS,
                **draw.seen(["peer-stopped"], ["reader-stopped"]),
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, size, pause, address=address)] * count,
                late=lambda pids: os.kill(pids[0], signal.SIGSTOP),
                after=draw.graded("ms stopped", (2500, 3500), (4500, 6000)) / 1000,
                proof=(extended(A, "TCPWinProbe"), 1))


@fault("curl writes to a stopped program")
def _(draw):
    port = draw.port

    def clients():
        source, sink = os.pipe()
        return [program(A, "cat", reads=source), curl(url(port), writes=sink)]
    return dict(topology=drawn_path(draw, 0, 20), at=B, want=["peer-stopped"],
                servers=lambda: [web_server(port)], clients=clients, after=2.5,
                before=lambda: own.file(1 << 34), warm=draw("ms", 1500, 4000) / 1000,
                late=lambda pids: os.kill(pids[1], signal.SIGSTOP),
                proof=(extended(B, "TCPWinProbe"), 1))


# Each waits until the other one reads.
@fault("two programs that both write first")
def _(draw):
    port, count = draw.port, draw("connections", 1, 4)
    return dict(topology=switched, want=["peer-stopped", "reader-stopped"],
                servers=lambda: [receiver(port, upload())],
                clients=lambda: [stream(port, address=IPV6)] * count,
                warm=draw("ms", 500, 1800) / 1000,
                proof=(extended(A, "TCPWinProbe"), 1))


@fault("a server that stops answering")
def _(draw):
    port, most = draw.port, draw("requests", 3, 8)
    return dict(topology=drawn_path(draw, 10, 60), after=2.5, never=ANY,
                servers=lambda: [receiver(port, answer(300, 300, most=most))],
                clients=lambda: [ask(port, 300, 300)], proof=(bed.segments, 0),
                **draw.seen([*HONEST, "peer-stopped", "peer-application"],
                            ["reader-stopped", "application-receive"]))


@fault("a consumer that stores what it reads")
def _(draw):
    batch = draw.graded("kB", (32, 64), (8, 16)) * 1024
    pause = draw.graded("ms", (50, 90), (100, 250)) / 1000
    source, target, load = one_way(draw, draw.either(), own.reads(0, pause, batch))
    return dict(topology=drawn_path(draw, 2, 40), warm=4.0, never=BUFFERS, **load,
                **draw.seen(["peer-application"], ["application-receive"], source,
                            target), proof=(limited(source), 900))


@fault("a reader of few bytes per call")
def _(draw):
    port, size = draw.port, draw("bytes", 1, 3)
    return dict(servers=lambda: [own.one_reader(port, own.few_bytes(size))],
                clients=lambda: [stream(port)], warm=3.0, never=BUFFERS,
                unsure=["cpu", "tiny-reads"],
                **draw.seen(["peer-application"], ["application-receive"]))


@fault("SO_RCVLOWAT above a request")
def _(draw):
    port, size, low = draw.port, draw("request", 200, 3000), draw("low", 9000, 30000)
    options = buffer(low, socket.SO_RCVLOWAT)
    return dict(servers=lambda: [receiver(port, own.reads(1 << 18, options=options))],
                clients=lambda: [ask(port, size, 100)], at=B, after=2.5, never=ANY,
                proof=(bed.segments, 0),
                want=["reader-stopped", "application-receive"])


@fault("curl with a limit of its rate")
def _(draw):
    port, rate = draw.port, draw("kB/s", 60, 300)
    return dict(topology=drawn_path(draw, 0, 10), want=["application-receive"],
                before=lambda: own.file(1 << 34), warm=4.0,
                servers=lambda: [web_server(port, IPV6)],
                clients=lambda: [curl("--limit-rate", f"{rate}k",
                                      url(port, address=IPV6))],
                proof=(limited(B), 900))


@fault("bash reads lines")
def _(draw):
    port, length, count = draw.port, draw("bytes", 30, 200), draw("connections", 1, 2)
    return dict(topology=lambda: bed.over("macvlan", A), warm=4.0,
                want=["tiny-reads", "application-receive"],
                servers=lambda: [receiver(port, own.lines(length=length))],
                clients=lambda: [bash(port)] * count, proof=(limited(B), 900))


# --- Writers --------------------------------------------------------------------

@fault("a slow writer")
def _(draw):
    port, size = draw.port, draw("bytes", 500, 1200)
    return dict(servers=lambda: [receiver(port)], want=["application-send"],
                clients=lambda: [stream(port, size, draw("us", 1500, 4000) / 1e6)])


# The link is free while the program does other things.
@fault("a low-water mark of few bytes")
def _(draw):
    port, rtt, mbit = draw.port, draw("rtt", 10, 30), draw("mbit/s", 60, 100)
    low = draw("bytes", 1, 4000)
    tick = draw.graded("ms", (220, 280), (300, 450)) / 1000
    down, idle = draw("download", 0, 1), shared()
    write, rate = own.unwilling(low, tick, idle), f"rate {mbit}mbit limit 4000"
    return dict(topology=lambda: office(rtt, 2, rate, rate), at=B if down else A,
                want=["application-send", "send-buffer"], warm=3.0,
                servers=lambda: [receiver(port, write if down else own.discard)],
                clients=lambda: [fetches(port, IPV6, own.discard if down else write)],
                proof=(lambda _: number(idle), 5))


@fault("a message in two writes")
def _(draw):
    port, count = draw.port, draw("connections", 1, 4)
    pause = draw.graded("ms", (5, 12), (0, 1)) / 1000
    head, body = draw("head", 4, 24), draw("body", 20, 900)
    reply = draw("reply", 8, 900)
    server, pieces = draw("by the server", 0, 1), draw("pieces", 2, 5)
    load = answer(body, 120 * pieces, pieces), ask(port, body, 120 * pieces)
    if not server:
        load = answer(head + body, reply), ask(port, body, reply, pause, (), head=head)
    return dict(topology=drawn_path(draw, 1, 8, True), want=["nagle"],
                at=B if server else A, servers=lambda: [receiver(port, load[0])],
                clients=lambda: [load[1]] * count,
                proof=(extended(A if server else B, "DelayedACKs"), 10))


# The server writes the head and the body of an answer one after the other.
@fault("python's http.server keeps connections")
def _(draw):
    port, size, count = draw.port, draw("bytes", 150, 1200), draw("connections", 1, 3)
    return dict(topology=switched, at=B, want=["nagle"],
                before=lambda: own.file(size),
                servers=lambda: [web_server(port, IPV6, "HTTP/1.1")],
                clients=lambda: [curl(url(port, "file?[1-1000000]", IPV6))] * count,
                proof=(extended(A, "DelayedACKs"), 10))


@fault("perl prints a line in two parts over GRE")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 1, 3), draw("connections", 1, 3)
    first, second = draw("bytes first", 5, 300), draw("bytes second", 1, 500)
    return dict(topology=lambda: bed.tunnelled("gre", rtt), want=["nagle"],
                servers=lambda: [receiver(port, own.lines())],
                clients=lambda: [perl(port, first, second)] * count,
                proof=(extended(B, "DelayedACKs"), 10))


@fault("a program that never uncorks")
def _(draw):
    port, count = draw.port, draw("connections", 1, 3)
    request, reply = draw("bytes asked", 30, 900), draw("bytes answered", 80, 1200)
    pause = draw.graded("ms", (20, 50), (0, 2)) / 1000
    end = draw.one("at", A, B)
    there, here = (CORK, NODELAY) if end == B else (NODELAY, CORK)
    return dict(topology=drawn_path(draw, 1, 15, True), at=end, want=["cork"],
                servers=lambda: [receiver(port, answer(request, reply, options=there))],
                clients=lambda: [ask(port, request, reply, pause, here)] * count,
                proof=(bed.kept_back(end), 500))


@fault("a server with more to follow")
def _(draw):
    port, count = draw.port, draw("connections", 1, 3)
    request, reply = draw("bytes asked", 20, 900), draw("bytes answered", 80, 1300)
    handle = draw.one("by", own.spliced(request, reply), answer(
        request, reply, flags=socket.MSG_MORE))
    return dict(topology=drawn_path(draw, 1, 15), at=B, want=["cork"],
                servers=lambda: [receiver(port, handle)],
                clients=lambda: [ask(port, request, reply)] * count,
                proof=(bed.kept_back(B), 500))


@fault("connections that the program does not close")
def _(draw):
    port, count = draw.port, draw("count", 20, 50)
    return dict(topology=drawn_path(draw, 2, 10), at=B, warm=3.0, never=ANY,
                want=HONEST, servers=lambda: [own.accepts(port, 64)],
                proof=(bed.segments, 0), clients=lambda: [hold(port, count)])


@fault("a file after each rest")
def _(draw):
    port, size, met = draw.port, draw("kB", 300, 700) * 1024, shared()
    pause = draw.graded("ms", (600, 800), (1000, 1500)) / 1000
    return dict(topology=drawn_path(draw, 60, 110, True), want=["idle-restart"],
                warm=draw("warm ms", 5000, 6000) / 1000,
                servers=lambda: [receiver(port, answer(size, 1))],
                clients=lambda: [snapshots(port, size, pause, met)],
                proof=(lambda _: number(met), 1))


@fault("a CPU quota")
def _(draw):
    port, percent = draw.port, draw.graded("percent", (12, 20), (3, 8))
    period, above = draw("period", 20, 100), draw("above", 0, 1)
    size = draw("kB", 4, 24)
    count, client = draw("programs", 1, 3), draw("client", 0, 1)
    return dict(topology=drawn_path(draw, 1, 15), at=A if client else B, warm=3.0,
                before=lambda: bed.quota(percent, period, above), want=["cpu-quota"],
                servers=lambda: [receiver(port) if client else own.confined(
                    receiver(port, answer(300, 9000, work=size)))],
                clients=lambda: [own.confined(hashing(port, 4096 * size, 2)) if client
                                 else ask(port, 300, 9000)] * count,
                proof=(bed.throttled, 500))


# --- Windows and buffers ----------------------------------------------------------

@fault("a small maximum of tcp_rmem")
def _(draw):
    most = draw.graded("kB", (130, 200), (60, 80)) * 1024
    source, target, load = one_way(draw, draw.either())
    return dict(topology=drawn_path(draw, 60, 100), warm=3.0, **load,
                before=lambda: put(target, {
                    "net.ipv4.tcp_rmem": f"4096 {most} {most}"}),
                **draw.seen(["receive-window"], ["receive-window"], source, target),
                proof=(limited(source), 600))


@fault("a small buffer by the system", cure="plan")
def _(draw):
    port, cause = draw.port, draw("cause", 0, 1)
    value = {"net.ipv4.tcp_rmem": "4096 65536 65536"} if cause else \
        {"net.ipv4.tcp_moderate_rcvbuf": 0}
    return dict(b=value, at=B, want=["receive-window"], interval=4.0,
                servers=lambda: [receiver(port)], clients=lambda: [stream(port)])


@fault("send buffer too small", cure="plan")
def _(draw):
    port = draw.port
    return dict(a={"net.ipv4.tcp_wmem": "4096 16384 16384"}, want=["send-buffer"],
                servers=lambda: [receiver(port)], clients=lambda: [stream(port)])


@fault("SO_SNDBUF of the program")
def _(draw):
    port, options = draw.port, buffer(draw("bytes", 12000, 20000), socket.SO_SNDBUF)
    return dict(want=["send-buffer"], never=["tcp_wmem"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, options=options)])


@fault("a receive buffer set by the program")
def _(draw):
    port, size = draw.port, draw.graded("kB", (56, 80), (28, 36)) * 1024
    options, when = buffer(size), draw("when", 0, 2)
    load = (receiver, (port, None, options)), stream(port)
    if when == 1:
        load = (receiver, (port, own.reads(1 << 18, options=options))), stream(port)
    if when == 2:
        load = (receiver, (port, upload())), fetches(port, options=options)
    right = ["receive-window"], ["receive-buffer-fixed"]
    ends = (B, A) if when == 2 else (A, B)
    return dict(topology=drawn_path(draw, 60, 100), warm=3.0, never=["tcp_rmem"],
                servers=lambda: [load[0][0](*load[0][1])],
                clients=lambda: [load[1]] * draw("connections", 1, 3),
                **draw.seen(*right, *ends), proof=(limited(ends[0]), 600))


# The program asks for 4 MiB.
@fault("rmem_max below the buffer of a program")
def _(draw):
    port, most = draw.port, draw("kB", 24, 64) * 1024
    return dict(topology=drawn_path(draw, 40, 100), want=["receive-buffer-fixed"],
                host={"net.core.rmem_max": most}, proof=(limited(B), 600),
                servers=lambda: [receiver(port, upload())],
                clients=lambda: [fetches(port, options=buffer(1 << 22))]
                * draw("connections", 1, 2))


# Autotuning would lift the clamp; the program's buffer ends it.
@fault("a program that bounds its window")
def _(draw):
    size = draw.graded("clamp", (50_000, 80_000), (24_000, 34_000))
    source, target, load = one_way(draw, bed.ADDRESS, own.clamped(size))
    return dict(topology=drawn_path(draw, 60, 120, True), warm=3.0, **load,
                **draw.seen(["receive-window"], ["receive-buffer-fixed"], source,
                            target), proof=(limited(source, most=size + 127), 600))


# A guide to hardening turns it off, or a router removes the option.
@fault("window scaling off")
def _(draw):
    rtt, address = draw.graded("rtt", (50, 80), (110, 180)), draw.either()
    source, target, load = one_way(draw, address)
    cause = draw("cause", 0, 2)

    def before():
        if cause < 2:
            put((A, B)[cause], {"net.ipv4.tcp_window_scaling": 0})
        else:
            guarded(MIDDLE, "inet", "forward", "tcp flags & syn == syn counter name "
                    "seen reset tcp option window")
    return dict(topology=lambda: office(rtt), warm=3.5, before=before, **load,
                **draw.seen(["window-scaling"], ["window-scaling"], source, target),
                proof=(limited(source, scaled=False), 600))


@fault("a window of few segments and a part of one")
def _(draw):
    port, rtt, mtu = draw.port, draw("rtt", 20, 60), draw.one("mtu", 4000, 9000, 32000)
    # Hundredths of a segment that fit into the window.
    parts = draw.graded("whole", (4, 6), (2, 3)) * 100 + draw("part", 35, 65)
    most = int((mtu - 52) * parts / 100 / 0.7115)
    return dict(topology=lambda: office(rtt, 1, mtu=mtu), warm=2.5,
                b={"net.ipv4.tcp_rmem": f"4096 {most} {most}"},
                want=["mss-granularity"] + ["receive-window"] * (parts > 400),
                servers=lambda: [receiver(port)], clients=lambda: [stream(port)]
                * draw("connections", 1, 3), proof=(bed.unaligned, 600))


if KERNEL < (6, 6):
    @fault("an old guide to tcp_adv_win_scale")
    def _(draw):
        size, scale = draw("kB", 400, 600) * 1024, -draw.graded("scale", (2, 2), (3, 4))
        source, target, load = one_way(draw, draw.either())
        return dict(topology=drawn_path(draw, 60, 100), warm=3.0, **load,
                    before=lambda: put(target, {
                        "net.ipv4.tcp_adv_win_scale": scale,
                        "net.ipv4.tcp_rmem": f"4096 131072 {size}"}),
                    **draw.seen(["receive-window"], ["adv-win-scale"], source, target),
                    proof=(limited(source), 600))


# The kernel chooses the scale of windows by that of the route, so autotuning does not
# reach far beyond it.
@fault("a route with a window")
def _(draw):
    port, rtt, count = draw.port, draw("rtt", 60, 100), draw("connections", 1, 3)
    window = draw.graded("bytes", (70_000, 120_000), (8000, 60_000))
    unscaled = ["window-scaling"] * draw("strong", 0, 1)
    return dict(topology=lambda: office(rtt), warm=3.0, never=["tcp_rmem"],
                before=lambda: bed.via(A, bed.ADDRESS, f"window lock {window}"),
                **draw.seen(["receive-window", *unscaled], ["route-window"], B, A),
                servers=lambda: [receiver(port, upload())],
                clients=lambda: [fetches(port)] * count, proof=(limited(B), 600))


# --- Rates and congestion windows ---------------------------------------------------

@fault("a pacing limit")
def _(draw):
    port, cause, part = draw.port, draw("cause", 0, 2), draw("percent", 5, 20)
    limit = buffer(draw("kB/s", 150, 350) * 1000, own.SO_MAX_PACING_RATE)
    fq = "tc -n $A qdisc add dev va root fq"
    pair = ({}, {"egress": f"{fq} maxrate {draw('mbit/s', 1, 3)}mbit"},
            {"egress": fq})[cause]
    return dict(topology=lambda: bed.pair(**pair), want=["pacing"], never=BUFFERS,
                a={"net.ipv4.tcp_pacing_ca_ratio": part,
                   "net.ipv4.tcp_pacing_ss_ratio": part} if cause == 2 else {},
                unsure=["unknown"] * (cause == 2), servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, options=limit if not cause else ())])


@fault("a default route with a locked cwnd")
def _(draw):
    rtt, window = draw("rtt", 30, 80), draw.graded("segments", (14, 24), (4, 8))
    address = draw.either()
    source, _, load = one_way(draw, address)

    def before():
        put(source, {"net.ipv4.tcp_no_metrics_save": 0})
        bed.via(source, address, f"cwnd lock {window}")
        own.met(draw.port + 1, address)
    return dict(topology=lambda: office(rtt), before=before, want=["cwnd-clamp"],
                at=source, never=BUFFERS, **load,
                proof=(limited(source, "busy", window), 900))


def remembered(port, rtt, limit):
    """Connections of A that lost segments in a short queue have ended.  Then the link
    is better, and A remembers their threshold."""
    put(A, {"net.ipv4.tcp_no_metrics_save": 0,
            "net.ipv4.tcp_no_ssthresh_metrics_save": 0})
    link = ("tc -n $M qdisc del dev mb root; tc -n $M qdisc add dev mb root netem "
            f"delay {rtt / 2}ms ")
    sh(f"{link} rate 2mbit limit {limit}")
    until = time.monotonic() + 20
    with own.running(receiver(port), *[calls(port, 60_000, 0, wait=4.0)] * 3):
        while time.monotonic() < until and "ssthresh" not in subprocess.run(
                ["ip", "-n", A, "tcp_metrics", "show"], capture_output=True, text=True,
                check=True).stdout:
            time.sleep(0.2)     # polling interval
    sh(f"{link} limit 10000")


@fault("a link that was worse before")
def _(draw):
    port, rtt = draw.port, draw.graded("rtt", (120, 150), (170, 220))
    limit, count = draw("packets", 4, 7), draw("connections", 1, 3)
    way = draw.one("way", container, office)
    return dict(topology=lambda: way(rtt), warm=1.0, want=["stale-metrics"],
                before=lambda: remembered(port + 1, rtt, limit),
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)] * count,
                proof=(bed.with_threshold, 600))


@fault("a route with an ssthresh")
def _(draw):
    port, rtt, limit = draw.port, draw("rtt", 80, 150), draw("ssthresh", 4, 8)

    def before():
        put(A, {"net.ipv4.tcp_no_metrics_save": 0,
                "net.ipv4.tcp_no_ssthresh_metrics_save": 0})
        sh(f"{PAIRED} ssthresh lock {limit}")
        own.met(port + 1, bed.ADDRESS)
    return dict(topology=lambda: bed.pair(rtt), before=before, never=BUFFERS,
                warm=2.0, servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)], want=["stale-metrics"],
                unsure=["cwnd-clamp", "recovery", "unknown"])


@fault("a server whose route has a small initcwnd")
def _(draw):
    port, rtt, window = draw.port, draw("rtt", 50, 90), draw.graded(
        "segments", (3, 4), (1, 2))
    request, reply = draw("bytes asked", 80, 600), draw("kB", 40, 120) * 1024
    count, pause, met = draw("clients", 2, 5), draw("ms", 0, 50) / 1000, shared()
    return dict(topology=lambda: office(rtt), at=B, want=["initcwnd"],
                before=lambda: bed.via(B, bed.ADDRESS, f"initcwnd {window}"),
                servers=lambda: [receiver(port, answer(request, reply,
                                                       met=(window, met)))],
                clients=lambda: [ask(port, request, reply, pause, every=1)] * count,
                proof=(lambda _: number(met), 3))


@fault("timestamps on one side")
def _(draw):
    port, off = draw.port, draw.one("off", A, B)
    return dict(topology=lambda: bed.pair(there="rate 5mbit limit 40"),
                before=lambda: put(off, {"net.ipv4.tcp_timestamps": 0}),
                want=["timestamps"], at=draw.one("at", A, B),
                servers=lambda: [receiver(port)], clients=lambda: [stream(port)])


@fault("SACK off with loss")
def _(draw):
    port, off, lost = draw.port, draw.one("off", [A], [B], [A, B]), draw("loss", 2, 4)
    rtt = draw("rtt", 30, 60)
    return dict(topology=lambda: office(rtt, there=f"loss {lost}%"), warm=2.5,
                before=lambda: [put(end, {"net.ipv4.tcp_sack": 0}) for end in off],
                want=["sack-off"], unsure=["loss"], servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)])
