# SPDX-License-Identifier: GPL-2.0-only
"""Limits of a connection that come from its route or from cached TCP metrics.  Pure.

The kernel does not report which route limits a connection, so the value of the
route and that of the connection must agree.
"""
from __future__ import annotations

import ipaddress
from typing import Any

from .. import units
from ..facts.collect import Facts
from .diagnosis import Diagnosis
from ..sockdiag import host

Flow = dict[str, Any]
Answer = tuple[str, str, str, str, dict[str, Any]]
INFINITE = 2**31 - 1
INITIAL = 10        # segments, the kernel's own initial window
NEAR, GROWTH = 4, 0.7   # of a threshold; of a window that grew while it was watched
FEW_BYTES = 200_000  # within slow start


def peer(flow: Flow) -> str:
    """The address of the other end."""
    return host(flow["remote"])


def _of(address: str, facts: Facts) -> dict[str, Any]:
    """Metrics of the most specific route to the address."""
    best: dict[str, Any] = {}
    longest = -1
    for route in facts.get("routes") or []:
        text = route["dst"].replace("default", "0.0.0.0/0")
        try:
            net = ipaddress.ip_network(text, strict=False)
            if ipaddress.ip_address(address) in net and net.prefixlen > longest:
                best, longest = route, net.prefixlen
        except ValueError:
            continue
    return best


def sender(f: Flow, facts: Facts, numbers: dict[str, Any]) -> Answer | None:
    """The congestion window is the limit: does something fixed limit it?"""
    if f["high_unacked"] < 0.9 * f["snd_cwnd"]:
        return None
    route = _of(peer(f), facts)
    clamp = route.get("cwnd")
    if clamp and f["snd_cwnd"] == f.get("high_snd_cwnd", 0) == clamp:
        return ("cwnd-clamp", "high",
                f"the congestion window stays at {clamp} segments, the cwnd of its "
                f"route {route['dst']}", "it grows without that metric",
                numbers | {"cwnd": clamp, "dst": route["dst"]})
    cached = (facts.get("tcp_metrics") or {}).get(peer(f), {})
    never = not f.get("total_retrans", 1)
    # Near that threshold it limits; further on, while the window still grows from it.
    near = f["snd_cwnd"] <= NEAR * f["snd_ssthresh"]
    grows = f.get("low_snd_cwnd", f["snd_cwnd"]) < GROWTH * f["snd_cwnd"]
    if never and f["snd_ssthresh"] < INFINITE \
            and cached.get("ssthresh") == f["snd_ssthresh"] \
            and (near or grows) and f["rtt"] < 1.5 * f["min_rtt"]:
        return ("stale-metrics", "high" if near else "medium",
                f"it never lost a segment, but left slow start at "
                f"{f['snd_ssthresh']} segments: the ssthresh that tcp_metrics holds "
                "from an earlier connection", "a new connection is as slow after ip "
                "tcp_metrics flush", numbers | {"ssthresh": f["snd_ssthresh"],
                                                "address": peer(f)})
    return None


def receiver(f: Flow, facts: Facts, most: int, told: str,
             numbers: dict[str, Any]) -> Answer | None:
    """The own window is the limit: does a route limit it?  Since 6.12 at the latest
    the window grows beyond that of its route, up to @most: what the scale allows that
    was chosen for it; 0: the window is smaller."""
    limit = _of(peer(f), facts).get("window")
    if limit and (f["rcv_ssthresh"] <= limit or limit <= most):
        return ("route-window", "high", f"{told}; its route limits the window to "
                f"{units.size(limit)}", "it grows without that metric",
                numbers | {"route_window": limit})
    return None


def initial(facts: Facts) -> list[Diagnosis]:
    """Short connections that start with a small window on purpose."""
    found = []
    opened = facts["snmp"].get("Tcp.ActiveOpens", 0) + facts["snmp"].get(
        "Tcp.PassiveOpens", 0)
    for route in facts.get("routes") or []:
        first = route.get("initcwnd", INITIAL)
        mine = [f for f in facts["flows"] if _of(peer(f), facts) is route
                and f["snd_ssthresh"] >= INFINITE
                and f.get("bytes_sent", FEW_BYTES) < FEW_BYTES
                and (f["high_unacked"] >= 0.7 * f["snd_cwnd"]
                     or f.get("low_snd_cwnd", INITIAL) < INITIAL)]
        if first < INITIAL and mine and opened > 0:
            found.append(Diagnosis(
                f"route {route['dst']}", "initcwnd", "high",
                f"{opened} new connections; those of this route start with "
                f"{first} segment{'s' * (first > 1)} instead of {INITIAL}, and end "
                "in slow start", "their duration stays the same without initcwnd",
                70, {"initcwnd": first, "opened": opened, "dst": route["dst"]}))
        elif first < INITIAL and not facts["flows"] and opened > 0 \
                and facts["snmp"].get("Tcp.OutSegs", 0) > INITIAL * opened:
            found.append(Diagnosis(
                f"route {route['dst']}", "initcwnd", "medium",
                f"{opened} connections, too short to be seen twice, sent "
                f"{facts['snmp']['Tcp.OutSegs'] / opened:.0f} segments each; the route "
                f"starts them with {first} instead of {INITIAL}",
                "their duration stays the same without initcwnd", 60,
                {"initcwnd": first, "opened": opened, "dst": route["dst"]}))
    return found
