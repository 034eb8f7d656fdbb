# SPDX-License-Identifier: GPL-2.0-only
"""Held-out healthy loads: nothing is wrong, no setting is to be proposed.  Written as
held_out_faults.py, which runs them."""
import socket
from pathlib import Path

import held_out_loads as loads
import wide_faults as wide
from faults import put, sh
from held_out_loads import answer, ask, download, routed, short, stream, upload
from wide_faults import discard, serve

HEALTHY_HELD_OUT = {}
FILE = Path("/tmp/held-out-file")


def healthy(name):
    def keep(function):
        HEALTHY_HELD_OUT[name] = function
        return function
    return keep


def rated(draw):
    """A rate at the router, and a queue of about one round trip."""
    rtt, rate = draw("rtt", 20, 60), draw("mbit", 3, 8)
    packets = max(int(2 * rtt / 1000 * rate * 1e6 / 8 / 1514), 20)
    return lambda: routed(rtt, f"rate {rate}mbit limit {packets}")


@healthy("records of TLS")
def _(draw):
    port, size = draw.port, 5 + 16384 + draw("tag", 16, 24)
    return dict(before=rated(draw), wait=2.5, load=lambda: [
        *serve(discard, port=port), stream(port, size, options=loads.NODELAY)])


@healthy("a stream in chunks")
def _(draw):
    port, size = draw.port, draw("kB", 5, 12) * 1000
    pause = draw("pause", 60, 140) / 1000
    return dict(pair={"rtt_ms": draw("rtt", 10, 60)}, at="B", wait=2.0, load=lambda: [
        *serve(upload(size, pause), port=port), download(port)])


@healthy("many idle connections")
def _(draw):
    port, count = draw.port, draw("count", 80, 200)
    return dict(at="B", wait=3.0, pair={"rtt_ms": 5},
                load=lambda: [loads.eager(port), loads.hold(port, count)])


@healthy("idle connections with keepalive")
def _(draw):
    port, count = draw.port, draw("count", 5, 20)
    keep = ((socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1))
    return dict(wait=3.0, pair={"rtt_ms": draw("rtt", 5, 80)},
                load=lambda: [loads.eager(port), loads.hold(port, count, keep)])


@healthy("a file server with sendfile")
def _(draw):
    port, size = draw.port, draw("kB", 200, 900) * 1000
    FILE.write_bytes(bytes(size))
    rtt, rate = draw("rtt", 20, 60), draw("mbit", 3, 8)
    return dict(before=lambda: routed(rtt, back=f"rate {rate}mbit limit 50"), at="B",
                wait=3.0, load=lambda: [
                    *serve(loads.sends_file(FILE, size), port=port), download(port)])


@healthy("MSG_ZEROCOPY")
def _(draw):
    port, size = draw.port, draw("kB", 16, 60) * 1000
    option = ((socket.SOL_SOCKET, loads.SO_ZEROCOPY, 1),)
    return dict(before=rated(draw), wait=2.5, load=lambda: [
        *serve(discard, port=port),
        stream(port, size, options=option, flags=loads.MSG_ZEROCOPY)])


@healthy("IPv6")
def _(draw):
    port = draw.port
    return dict(pair={"rtt_ms": draw("rtt", 20, 60), "ingress": "rate 5mbit limit 40"},
                before="ip -n $A addr add fd09::1/64 dev va nodad; "
                f"ip -n $B addr add {loads.IPV6}/64 dev vb nodad", wait=2.5,
                load=lambda: [loads.serve6(port), stream(port, address=loads.IPV6)])


@healthy("flows that share a link")
def _(draw):
    port, count = draw.port, draw("flows", 3, 6)
    return dict(before=rated(draw), wait=3.0, load=lambda: [
        *serve(discard, count=count, port=port), *[stream(port)] * count])


@healthy("a satellite")
def _(draw):
    port, rtt = draw.port, draw("rtt", 280, 350)
    return dict(before=lambda: routed(rtt, "rate 3mbit limit 120"), wait=6.0,
                load=lambda: [*serve(discard, port=port), stream(port)])


@healthy("small requests on 500 connections")
def _(draw):
    port, size = draw.port, draw("size", 20, 90)
    return dict(pair={"rtt_ms": 2}, wait=8.0, at="B", load=lambda: [
        loads.eager(port), loads.many(port, 500, size, 0.002)])


@healthy("transfers that just ended")
def _(draw):
    port, size = draw.port, draw("kB", 50, 200) * 1000

    def once():
        sock = loads.dial(port)
        sock.sendall(bytes(size))
        sock.close()
        wide.forever()
    return dict(pair={"rtt_ms": draw("rtt", 5, 20)}, wait=3.0, load=lambda: [
        *serve(discard, count=3, port=port), *[once] * 3])


@healthy("a narrower link after the router, ICMP works")
def _(draw):
    port, limited = draw.port, rated(draw)

    def before():
        limited()
        loads.narrow(draw("mtu", 1000, 1400), icmp=True)
    return dict(before=before, wait=3.0, load=lambda: [
        *serve(discard, port=port), stream(port)])


@healthy("a client that has shut down its side")
def _(draw):
    port, rtt, rate = draw.port, draw("rtt", 20, 60), draw("mbit", 3, 8)
    return dict(before=lambda: routed(rtt, back=f"rate {rate}mbit limit 50"), at="B",
                wait=3.0, load=lambda: [*serve(upload(), port=port),
                                        download(port, half_closed=True)])


@healthy("ECN marks of a router")
def _(draw):
    port, rate = draw.port, draw("mbit", 3, 8)

    def before():
        routed(draw("rtt", 20, 60))
        sh(f"tc -n {loads.MIDDLE} qdisc replace dev mb root cake bandwidth {rate}mbit")
        for end in (wide.A, wide.B):
            put(end, {"net.ipv4.tcp_ecn": 1})
    return dict(before=before, wait=2.5, load=lambda: [
        *serve(discard, count=2, port=port), *[stream(port)] * 2])


@healthy("a page of several objects on new connections")
def _(draw):
    port, size = draw.port, draw("kB", 2, 12) * 1000
    return dict(pair={"rtt_ms": draw("rtt", 10, 40)}, at="B", wait=2.0, load=lambda: [
        *serve(answer(300, size), count=4, port=port),
        *[ask(port, 300, size, 0.02, every=4)] * 4])


@healthy("short connections one after another")
def _(draw):
    port = draw.port
    return dict(pair={"rtt_ms": draw("rtt", 1, 10)}, wait=2.0, load=lambda: [
        *serve(discard, count=3, port=port), *[short(port, 3000, 0.05)] * 2])
