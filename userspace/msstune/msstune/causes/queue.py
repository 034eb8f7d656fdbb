# SPDX-License-Identifier: GPL-2.0-only
"""Queues and shapers that a connection's packets wait in, on this host and on the
path.  Pure."""
from __future__ import annotations

from typing import Any

from .. import units
from ..facts.collect import Facts
from ..facts.path_sums import span

Flow = dict[str, Any]
Answer = tuple[str, str, str, str, dict[str, Any]]
FULL_RTT = 1.5       # round trip over its minimum that shows a queue
BLOATED = 5          # the same, of a queue that is far too long,
BLOATED_US = 400_000  # if it also takes that long


def _far_too_long(f: Flow) -> bool:
    return bool(f["rtt"] >= BLOATED * f["min_rtt"] > 0
                and f["rtt"] - f["min_rtt"] > BLOATED_US)


def is_bloated(f: Flow) -> bool:
    """Whether a queue makes the round trip far too long."""
    return _far_too_long(f) and not is_scattered(f)


def is_scattered(f: Flow) -> bool:
    """Whether the round trips vary by more than their mean.  Those through a queue
    vary by a part of it; where ACKs are lost, a later one ends the round trip."""
    return _far_too_long(f) and bool(f["rttvar"] > f["rtt"])


def bloated(f: Flow, facts: Facts, beside: str, numbers: dict[str, Any]) -> Answer:
    """A queue that takes several round trips; of this host, if one is as long."""
    queued = f["rtt"] - f["min_rtt"]
    own = [f"{name_} {q['kind']}" for name_, device in facts["devices"].items()
           for q in device["qdiscs"] if q["kind"] != "netem"
           and (q.get("backlog") or 0) > 0.5 * numbers["bits_per_second"] / 8
           * queued / 1e6]
    return ("bufferbloat", "medium",
            f"the round trip is {units.duration(f['rtt'] / 1e6)}, at least "
            f"{units.duration(f['min_rtt'] / 1e6)}, {beside}: "
            f"{units.duration(queued / 1e6)} of data wait in "
            + (own[0] if own else "a queue on the path"),
            "the round trip is as long with one slow connection",
            numbers | {"queue_us": queued, "own": own})


def maxrate(facts: Facts, rate: float) -> tuple[str, float] | None:
    """A maxrate of fq that the connection nearly reaches, as text and number."""
    for name_, device in facts["devices"].items():
        for qdisc in device["qdiscs"]:
            cap = (qdisc.get("options") or {}).get("maxrate")
            if qdisc["kind"] == "fq" and isinstance(cap, (int, float)) \
                    and 0.7 * cap * 8 <= rate <= 1.1 * cap * 8:
                return (f"fq on {name_} has maxrate {units.bits(cap * 8)} per "
                        "connection", cap)
    return None


#: Share of a connection's data that a shaper has sent which limits it.
PASSED = 0.5
#: Shapers whose rate tc does not print as JSON.
SHAPERS = ("htb", "hfsc", "cake", "tbf")


def held(f: Flow, facts: Facts) -> str:
    """A shaper of this host that holds packets back, as text."""
    for name_, device in facts["devices"].items():
        for qdisc in device["qdiscs"]:
            if qdisc["kind"] in SHAPERS and (qdisc.get("overlimits") or 0) > 0 \
                    and (qdisc.get("backlog") or 0) > 0 \
                    and qdisc["bytes"] >= PASSED * max(
                        f["d_bytes_acked"], f["d_bytes_received"]):
                return (f"{qdisc['kind']} on {name_} held packets back "
                        f"{qdisc['overlimits']} times, and "
                        f"{units.size(qdisc['backlog'])} wait in it")
    return ""


def full(facts: Facts) -> str:
    """A device whose shaper sends at its limit, as text."""
    for name_, device in facts["devices"].items():
        for qdisc in device["qdiscs"]:
            cap = (qdisc.get("options") or {}).get("rate")
            if qdisc["kind"] == "tbf" and isinstance(cap, (int, float)) and \
                    qdisc["bytes"] >= 0.9 * cap * span(facts, "devices"):
                return (f"tbf on {name_} sends at its limit of "
                        f"{units.bits(cap * 8)}")
    return ""
