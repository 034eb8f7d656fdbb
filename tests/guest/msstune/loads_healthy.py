# SPDX-License-Identifier: GPL-2.0-only
"""Healthy loads: nothing is wrong, no fault may be named and no setting proposed.
Faults with a twin (faults_*.py) add more."""
import socket

import programs as own
import testbed as bed
from clients import (
    ask,
    calls,
    chatter,
    curl,
    fetches,
    hold,
    iperf3,
    mails,
    opens_fast,
    pool,
    retrieves,
    secured,
    signed,
    stream,
    url,
    visitors,
)
from driver import healthy
from programs import NODELAY, answer, receiver, upload
from testbed import IPV6, A, B, drawn_path, extended, guarded, office, over, put, sh
from testbed import switched


def rated(draw, back=False, segments=2, **more):
    """A rate at the router, and a queue of about one round trip."""
    rtt, rate = draw("rtt", 20, 60), draw("mbit", 3, 8)
    packets = max(int(2 * rtt / 1000 * rate * 1e6 / 8 / 1514), 20)
    words = f"rate {rate}mbit limit {packets}"
    return lambda: office(rtt, segments, *(("", words) if back else (words,)), **more)


def anywhere(draw):
    return draw.one("at", A, B)


# --- Bulk data --------------------------------------------------------------------

@healthy("transfers that share a link")
def _(draw):
    port, size, address = draw.port, draw("kB", 16, 64) * 1024, draw.either()
    idle = draw("idle", 0, 10)
    return dict(topology=rated(draw), warm=3.0, at=anywhere(draw),
                servers=lambda: [receiver(port)], clients=lambda: [
                    *[stream(port, size, address=address)] * draw("flows", 1, 6),
                    hold(port, idle)])


@healthy("a transfer over a cable", record=True)
def _(draw):
    port = draw.port
    return dict(topology=bed.cable, at=anywhere(draw), servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)])


@healthy("a netem of this host with a queue")
def _(draw):
    port, resting = draw.port, draw("ms", 0, 5) / 1000
    return dict(topology=lambda: bed.pair(there="rate 5mbit limit 40"),
                at=anywhere(draw), servers=lambda: [receiver(port, own.reads(
                    1 << 18, resting))], clients=lambda: [stream(port)])


@healthy("records of TLS, or MSG_ZEROCOPY")
def _(draw):
    port, size = draw.port, 5 + 16384 + draw("tag", 16, 24)
    zero = draw("zero copy", 0, 1)
    options = ((socket.SOL_SOCKET, own.SO_ZEROCOPY, 1),) if zero else NODELAY
    return dict(topology=rated(draw), warm=2.5, servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, size, options=options,
                                        flags=own.MSG_ZEROCOPY * zero)])


@healthy("a file server with sendfile")
def _(draw):
    port, size, half = draw.port, draw("kB", 200, 900) * 1000, draw("half-closed", 0, 1)
    handle = upload() if half else own.sends_file(size)
    return dict(topology=rated(draw, True), at=B, warm=3.0,
                servers=lambda: [receiver(port, handle)],
                clients=lambda: [fetches(port, half_closed=bool(half))])


@healthy("a satellite")
def _(draw):
    port, rtt = draw.port, draw("rtt", 280, 350)
    return dict(topology=lambda: office(rtt, there="rate 3mbit limit 120"), warm=6.0,
                servers=lambda: [receiver(port)], clients=lambda: [stream(port)])


@healthy("ECN marks of a router")
def _(draw):
    port, rate, rtt = draw.port, draw("mbit", 3, 8), draw("rtt", 20, 60)

    def before():
        sh(f"tc -n $M qdisc replace dev mb root cake bandwidth {rate}mbit")
        for end in (A, B):
            put(end, {"net.ipv4.tcp_ecn": 1})
    return dict(topology=lambda: office(rtt), before=before, warm=2.5,
                servers=lambda: [receiver(port)], clients=lambda: [stream(port)] * 2)


@healthy("a narrower link after the router, ICMP works")
def _(draw):
    port, mtu = draw.port, draw("mtu", 1280, 1400)
    return dict(topology=rated(draw), warm=3.0, clients=lambda: [stream(port)],
                before=lambda: sh("ip -n $M route change 10.9.0.0/24 dev mb src "
                                  f"10.9.0.254 mtu {mtu}"),
                servers=lambda: [receiver(port)])


@healthy("paced streams")
def _(draw):
    port, size = draw.port, draw("bytes", 1000, 12000)
    pause = draw("ms", 10, 140) / 1000
    down, fq, count = draw("download", 0, 1), draw("fq", 0, 1), draw("flows", 1, 3)
    load = (upload(size, pause), fetches(port)) if down else (
        None, stream(port, size, pause, NODELAY))
    return dict(topology=drawn_path(draw, 10, 60), at=anywhere(draw), warm=2.0,
                before="tc -n $A qdisc add dev va root fq" if fq else "",
                servers=lambda: [receiver(port, load[0])],
                clients=lambda: [load[1]] * count)


@healthy("iperf3 with a rate")
def _(draw):
    port, mbit, size = draw.port, draw("Mbit/s", 2, 8), draw("kB", 4, 16)
    return dict(topology=lambda: over("macvlan", A), servers=lambda: [iperf3(port)],
                clients=lambda: [iperf3(port, "-b", f"{mbit}M", "-l", f"{size}K")])


# Its queue is about as long as the path: no round trip takes four times as long.
@healthy("a full link below GRE")
def _(draw):
    port, rtt, mbit = draw.port, draw("rtt", 30, 60), draw("mbit/s", 3, 6)
    longest = max(rtt * mbit // 12, 12)
    return dict(topology=lambda: bed.tunnelled(
        "gre", rtt, there=f"rate {mbit}mbit limit {longest}"), warm=4.0,
        servers=lambda: [receiver(port)],
        clients=lambda: [stream(port)] * draw("connections", 1, 2))


# --- Requests -------------------------------------------------------------------

@healthy("requests")
def _(draw):
    port, pause = draw.port, draw("ms", 0, 120) / 1000
    size, reply = draw("bytes asked", 1, 900), draw("bytes answered", 1, 20000)
    return dict(topology=drawn_path(draw, 1, 60, True), at=anywhere(draw), warm=2.0,
                servers=lambda: [receiver(port, answer(size, reply))],
                clients=lambda: [ask(port, size, reply, pause)] * draw("clients", 1, 4))


@healthy("a stream both ways")
def _(draw):
    port = draw.port
    return dict(topology=rated(draw), servers=lambda: [receiver(port, answer(
        100_000, 100_000))], clients=lambda: [ask(port, 100_000, 100_000)])


@healthy("requests in a pipeline")
def _(draw):
    port, batch, pause = draw.port, draw("batch", 2, 12), draw("ms", 20, 100) / 1000
    request, reply = draw("bytes asked", 30, 120), draw("bytes answered", 50, 9000)
    return dict(topology=drawn_path(draw, 1, 20), at=anywhere(draw),
                servers=lambda: [receiver(port, answer(request, reply))],
                clients=lambda: [ask(port, request, reply, pause, batch=batch)])


@healthy("a pool of connections")
def _(draw):
    port, many, pause = draw.port, draw("connections", 4, 20), draw("ms", 12, 40) / 1000
    size, reply = draw("bytes", 60, 400), draw("bytes answered", 4, 4000)
    return dict(topology=drawn_path(draw, 1, 30, True), at=anywhere(draw),
                servers=lambda: [receiver(port, answer(size, reply))],
                clients=lambda: [pool(port, many, size, reply, pause)])


@healthy("small requests on 500 connections")
def _(draw):
    port, size = draw.port, draw("size", 20, 90)
    return dict(topology=lambda: bed.pair(2), warm=8.0, at=B,
                servers=lambda: [own.eager(port)],
                clients=lambda: [pool(port, 500, size, size, 0.002)])


@healthy("answers when there is news")
def _(draw):
    port, many, size = draw.port, draw("connections", 8, 20), draw("bytes", 80, 400)
    reply, pause = draw("bytes answered", 100, 3000), draw("ms", 400, 1500) / 1000
    return dict(topology=switched, at=B, servers=lambda: [receiver(port, answer(
        size, reply, pause=pause))],
        clients=lambda: [pool(port, many, size, reply, 0, IPV6, gone=True)])


@healthy("news to many subscribers")
def _(draw):
    port, many, size = draw.port, draw("subscribers", 10, 25), draw("bytes", 200, 2000)
    pause = draw("ms", 400, 900) / 1000
    return dict(topology=switched, at=B,
                servers=lambda: [own.publisher(port, many, size, pause)],
                clients=lambda: [hold(port, many, NODELAY, 0.2, IPV6, own.discard)])


@healthy("a proxy in front of a server")
def _(draw):
    port, pause, count = draw.port, draw("ms", 30, 90) / 1000, draw("clients", 2, 3)
    size, reply = draw("bytes", 80, 900), draw("bytes answered", 200, 9000)
    return dict(topology=drawn_path(draw, 1, 20), at=B, servers=lambda: [
        receiver(port, own.relays(port + 1)),
        receiver(port + 1, answer(size, reply), address="127.0.0.1")],
        clients=lambda: [ask(port, size, reply, pause)] * count)


@healthy("clients that leave early")
def _(draw):
    port, size, reply = draw.port, draw("bytes", 80, 400), draw("kB", 60, 200) * 1024
    enough, pause = draw("kB enough", 2, 30) * 1024, draw("ms", 60, 150) / 1000
    return dict(topology=drawn_path(draw, 1, 30), at=B,
                servers=lambda: [receiver(port, answer(size, reply))],
                clients=lambda: [ask(port, size, reply, pause, enough=enough)])


@healthy("small pictures over a VXLAN")
def _(draw):
    port, rtt, size = draw.port, draw("rtt", 20, 60), draw("bytes", 5000, 12000)
    pause, count = draw("ms", 300, 800) / 1000, draw("clients", 2, 4)
    return dict(topology=lambda: bed.tunnelled("vxlan", rtt), at=B,
                servers=lambda: [receiver(port, answer(150, size))],
                clients=lambda: [ask(port, 150, size, pause)] * count)


@healthy("messages in their own time, both ways")
def _(draw):
    port, count = draw.port, draw("sessions", 1, 3)
    least, pause = draw("bytes", 20, 1000), draw("ms", 40, 200) / 1000
    most, md5 = draw("kB at most", 1, 24) * 1024, draw("MD5", 0, 1)
    here, there = ((signed("fd04::1"),), (signed(IPV6),)) if md5 else ((), ())
    talk = chatter(least, most, pause)
    return dict(topology=lambda: office(draw("rtt", 1, 60)), at=anywhere(draw),
                servers=lambda: [receiver(port, talk, here)],
                clients=lambda: [fetches(port, IPV6, talk, there)] * count)


# --- Connections ----------------------------------------------------------------

@healthy("idle connections")
def _(draw):
    port, many = draw.port, draw("count", 1, 200)
    options = own.KEEPALIVE if draw("keepalive", 0, 1) else ()
    return dict(topology=drawn_path(draw, 2, 10), at=anywhere(draw), warm=3.0,
                servers=lambda: [own.eager(port)],
                clients=lambda: [hold(port, many, options)])


@healthy("connections that come and go")
def _(draw):
    port, every, pause = draw.port, draw("requests", 1, 4), draw("ms", 20, 150) / 1000
    size, reply = draw("bytes", 20, 3000), draw("bytes answered", 50, 12000)
    return dict(topology=drawn_path(draw, 1, 30, True), at=anywhere(draw), warm=2.0,
                servers=lambda: [receiver(port, answer(size, reply))],
                clients=lambda: [ask(port, size, reply, pause, every=every)]
                * draw("clients", 1, 4))


@healthy("short transfers, and checks of a load balancer")
def _(draw):
    port, size, pause = draw.port, draw("bytes", 500, 5000), draw("ms", 50, 100) / 1000
    often = draw("ms of checks", 60, 200) / 1000
    return dict(topology=drawn_path(draw, 1, 15), at=anywhere(draw),
                servers=lambda: [receiver(port)], clients=lambda: [
                    calls(port, size, pause), calls(port, 0, often)])


@healthy("transfers that just ended")
def _(draw):
    port, size = draw.port, draw("kB", 50, 200) * 1000

    def once():
        with own.dial(port) as sock:
            sock.sendall(bytes(size))
        own.forever()
    return dict(topology=drawn_path(draw, 5, 20), warm=3.0,
                servers=lambda: [receiver(port)], clients=lambda: [once] * 3)


@healthy("downloads by TLS")
def _(draw):
    port, size, rate = draw.port, draw("kB", 20, 200) * 1024, draw("per second", 2, 5)
    return dict(topology=switched, before=lambda: own.file(size), warm=3.0,
                servers=lambda: [secured(port)], clients=lambda: [curl(
                    "-k", "--rate", f"{rate}/s", url(port, "file?[1-1000000]",
                                                     scheme="https"))])


@healthy("a control connection, and data connections back")
def _(draw):
    port, size, pause = draw.port, draw("kB", 10, 80) * 1024, draw("ms", 50, 150) / 1000
    return dict(topology=switched,
                servers=lambda: [receiver(port, own.sends_back(port + 1, size))],
                clients=lambda: [retrieves(port, port + 1, pause)])


@healthy("mails")
def _(draw):
    port, size, address = draw.port, draw("kB", 2, 60) * 1024, draw.either()
    pause = draw("ms", 50, 200) / 1000
    return dict(topology=drawn_path(draw, 2, 40), at=anywhere(draw),
                servers=lambda: [receiver(port, own.lines(b"220 mail\r\n"))],
                clients=lambda: [mails(port, size, pause, address)])


@healthy("requests by fast open")
def _(draw):
    port, rtt, pause = draw.port, draw("rtt", 1, 40), draw("ms", 50, 150) / 1000
    request, reply = draw("bytes asked", 80, 900), draw("answered", 200, 9000)
    options = ((socket.IPPROTO_TCP, own.TCP_FASTOPEN, 64),)
    return dict(topology=lambda: office(rtt), at=anywhere(draw),
                b={"net.ipv4.tcp_fastopen": 3}, servers=lambda: [receiver(
                    port, answer(request, reply), options)],
                clients=lambda: [opens_fast(port, request, reply, pause)] * 2,
                proof=(extended(B, "TCPFastOpenPassive"), 3))


@healthy("a firewall that keeps strangers out")
def _(draw):
    port, often, size = draw.port, draw("ms", 20, 90) / 1000, draw("bytes", 80, 900)
    rule = draw.one("rule", "tcp dport 23 counter name seen drop",
                    "ct state new counter name seen accept")
    return dict(topology=switched, at=B,
                before=lambda: guarded(B, "inet", "input", rule),
                servers=lambda: [receiver(port, answer(size, size))], clients=lambda: [
                    ask(port, size, size, 0.03), visitors(23, often, IPV6)])


@healthy("nothing at all")
def _(draw):
    return dict()
