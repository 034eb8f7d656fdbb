# SPDX-License-Identifier: GPL-2.0-only
"""How sure a diagnosis may be.  Pure.

A rule states the most that its own evidence allows.  Here that is lowered by what the
rule does not see.  "high" takes one of these:

- an event that only this cause makes, counted by the kernel over the interval; or
- enough observations, so that a lower bound of the share is past the threshold, and
  every cause that looks alike ruled out by a fact.

A fact that is missing rules nothing out.  Where another diagnosis holds back nearly
as much and neither is an event, neither is "high".
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from .diagnosis import Diagnosis
from ..facts.path_sums import busy, packet_share

Facts = dict[str, Any]
Flow = dict[str, Any]

#: Standard deviations of a lower bound: wrong for one share in forty.
DEVIATIONS = 2.0
#: Limits that rest on events which the kernel counts or on states that it reports.
EVENTS = frozenset((
    "accept-queue", "syn-queue", "conntrack-full", "ports-used-up", "own-firewall",
    "cpu-quota", "qdisc-drops", "backlog-drops", "ring-drops", "link-errors",
    "memory-pressure", "path-down", "reader-stopped", "peer-stopped", "cork",
    "initcwnd", "cwnd-clamp", "stale-metrics", "route-window", "sack-off",
    "window-scaling"))
#: Events of a device or a CPU, which limit only a connection that lost data.
LOSSES = frozenset(("qdisc-drops", "backlog-drops", "ring-drops", "link-errors"))
#: Symptoms with many causes, each of which has a name of its own.
SYMPTOMS = frozenset(("cpu-softirq",))
#: Share of the first diagnosis that a second one may hold back beside it.
MARGIN = 0.8
#: Dumps from which a connection's state is a habit.
DUMPS = 3
#: min_rtt of a connection that has measured none.
NO_RTT = (0, 2**32 - 1)
#: Calls of a program from which bytes per call are known.
CALLS = 100
#: Bytes per read below which the call costs more than its copy: a system call takes
#: about as long as it takes to copy 4 KiB.
LITTLE = 1024
RESTING = 0.5       # share of a CPU of a reader whose calls are not its limit
PACKETS = 0.2       # share of a CPU that softirqs take from its program
FILLED = 0.2        # of a window that is full enough to hold back the sender
QUEUED = 0.2        # share of the time that a program waits for its CPU
FULL = 0.9          # busy share of a CPU that has no time left
LONGER = 1.5        # round trip over its minimum that shows a queue,
LONGER_US = 500     # if it is also so much longer
PAUSES = 2          # the same, of a receiver's own estimate, which is no minimum


def lower(share: float, count: float) -> float:
    """The lower bound of a share seen in @count observations (Wilson 1927)."""
    return _bound(share, count, -1)


def upper(share: float, count: float) -> float:
    return _bound(share, count, 1)


def _bound(share: float, count: float, way: int) -> float:
    if count <= 0:
        return 0.5 + way / 2
    square = DEVIATIONS ** 2
    center = share + square / (2 * count)
    half = DEVIATIONS * math.sqrt(
        share * (1 - share) / count + square / (4 * count * count))
    return max(0.0, min(1.0, (center + way * half) / (1 + square / count)))


def each(flow: Flow, what: str) -> float | None:
    """Bytes per read or write of the connection's program; None: not known."""
    calls = flow.get("owner", {}).get("calls") or {}
    count = calls.get(f"{what}s", 0)
    moved = calls.get({"read": "bytes_read", "write": "bytes_written"}[what], 0)
    return moved / count if count >= CALLS and moved > 0 else None


# --- What looks alike --------------------------------------------------------

def _reads_late(flow: Flow, facts: Facts) -> Iterator[str]:
    """Of a reader whose data waits."""
    owner = flow.get("owner", {})
    size = each(flow, "read")
    used = owner.get("system", 1.0) + owner.get("user", 1.0)
    if used >= RESTING and (size is None or size <= LITTLE):
        yield "reads of a few bytes"
    if owner.get("queued", 1.0) >= QUEUED:
        yield "a CPU that it has to wait for"
    packets = packet_share(facts, owner.get("cpu"))
    if packets is None or packets > PACKETS:
        yield "packets that take its CPU"


def _partly(flow: Flow, facts: Facts) -> Iterator[str]:
    """Of a reader that takes nothing, though its window has room."""
    if flow["low_rqueue"] < FILLED * flow["rcv_ssthresh"]:
        yield "a message whose end has not come"


def _waits_long(flow: Flow, facts: Facts) -> Iterator[str]:
    """A window or a buffer allows so much per round trip, so it looks like a limit
    wherever round trips are long."""
    if not facts.get("cpus") or busy(facts) >= FULL:
        yield "a CPU without idle time"
    unknown = flow["min_rtt"] in NO_RTT
    if flow["d_bytes_acked"] > flow["d_bytes_received"]:
        if unknown or flow["rtt"] > LONGER * flow["min_rtt"] + LONGER_US:
            yield "a queue on the path"
        if flow.get("falls_snd_wnd") == 0 and \
                flow["low_snd_wnd"] * LONGER < flow["high_snd_wnd"]:
            yield "a window that still grows"
    # A receiver takes the pauses of a sender for a round trip.
    elif unknown or flow["rcv_rtt"] > PAUSES * flow["min_rtt"] + LONGER_US:
        yield "a sender that pauses"


#: limit: what could look the same, of the connection that is limited.
_ALIKE: dict[str, Callable[[Flow, Facts], Iterator[str]]] = {
    "application-receive": _reads_late, "reader-stopped": _partly,
    "send-buffer": _waits_long,
    "receive-window": _waits_long, "mss-granularity": _waits_long,
}


def _open(d: Diagnosis, facts: Facts) -> list[str]:
    """What is not ruled out."""
    flow = next((f for f in facts["flows"]
                 if f"{f['local']} > {f['remote']}" == d.subject), None)
    if flow is None or d.limit not in _ALIKE:
        return []
    return list(_ALIKE[d.limit](flow, facts))


def _few(d: Diagnosis, facts: Facts) -> bool:
    """A connection that few dumps contain."""
    return any(f.get("looks", DUMPS) < DUMPS for f in facts["flows"]
               if f"{f['local']} > {f['remote']}" == d.subject)


def felt(facts: Facts) -> bool:
    """Whether a connection here lost data: it sent again, or got a later segment."""
    return any(f["d_total_retrans"] or f.get("d_rcv_ooopack", 0)
               or f["d_bytes_acked"] and f["snd_ssthresh"] < 2**31 - 1
               for f in facts["flows"])


def _doubt(d: Diagnosis, found: list[Diagnosis], facts: Facts) -> str | None:
    """Why it is not "high", "" if that needs no word; None: it is."""
    alike = _open(d, facts)
    if alike:
        return f"not ruled out: {', '.join(alike)}"
    if d.limit in LOSSES and "carrier_changes" not in d.numbers and not felt(facts):
        return "no connection here lost data"
    if d.limit in EVENTS:
        return None
    rivals = sorted({other.limit for other in found if other.wrong
                     and other.limit != d.limit
                     and other.weight >= MARGIN * d.weight})
    if rivals:
        return f"{', '.join(rivals)} may hold back as much"
    return "" if d.limit in SYMPTOMS or _few(d, facts) else None


def judged(found: list[Diagnosis], facts: Facts) -> list[Diagnosis]:
    """The same diagnoses, in the same order, none surer than the facts allow."""
    kept = []
    for d in found:
        doubt = _doubt(d, found, facts) if d.wrong and d.confidence == "high" else None
        if doubt is not None:
            d = replace(d, confidence="medium",
                        why=f"{d.why}; {doubt}" if doubt else d.why)
        kept.append(d)
    return kept
