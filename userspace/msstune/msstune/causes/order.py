# SPDX-License-Identifier: GPL-2.0-only
"""Segments out of order: where the kernel takes them for losses.  Pure.

It then reduces the congestion window, though nothing was lost.  RFC 8985 (RACK-TLP),
tcp_rack_update_reo_wnd().
"""
from __future__ import annotations

from typing import Any

from ..facts import path_sums
from ..facts.collect import Facts

Flow = dict[str, Any]
Answer = tuple[str, str, str, str, dict[str, Any]]
ENOUGH = 8           # retransmissions, or reorderings, below which the cause is a guess
OUT_OF_ORDER = 0.01  # share of segments out of order that is a limit,
TIMELY = 0.1         # and of the time that they take
CROWDED = 0.9        # busy share of a CPU whose packets may be out of order
MOSTLY = 0.5         # of the recoveries that followed no loss


def crowded(facts: Facts) -> bool:
    """Whether the order of packets may be a symptom: those of a CPU without idle time
    wait in the queues of several."""
    return path_sums.busy(facts) >= CROWDED


def timely(f: Flow, facts: Facts) -> bool:
    """Whether reordering takes time that matters: each takes a round trip, and where
    a queue makes that longer, the bottleneck sends meanwhile."""
    return bool(f["d_reord_seen"] * f["min_rtt"] / 1e6
                >= TIMELY * f.get("seconds", facts["interval"]))


def often(f: Flow) -> bool:
    return bool(f.get("d_reord_seen", 0) > max(
        ENOUGH, OUT_OF_ORDER * f.get("d_delivered", 0)))


def needless(f: Flow, facts: Facts, numbers: dict[str, Any]) -> Answer | None:
    """Recoveries for which nothing was lost.  They hold a window down whatever the
    round trip is: on links of unlike delay it is long without a queue.  The kernel
    counts recoveries for all connections together."""
    snmp, all_ = facts["snmp"], facts["flows"]
    begun = snmp.get("TcpExt.TCPSackRecovery", 0) + snmp.get(
        "TcpExt.TCPRenoRecovery", 0)
    lost = max(snmp.get("Tcp.RetransSegs", 0), sum(
        one["d_total_retrans"] for one in all_)) - sum(
        one["d_dsack_dups"] for one in all_)
    seen = sum(one.get("d_reord_seen", 0) for one in all_)
    if begun < ENOUGH or lost > (1 - MOSTLY) * begun or seen < MOSTLY * begun \
            or not often(f):
        return None
    return ("reordering", "low" if crowded(facts) else "medium",
            f"{f['d_reord_seen']} of {f['d_delivered']} segments were acknowledged out "
            f"of order, and the kernel reduced its congestion window {begun} times, "
            + (f"though at most {lost} segments were lost" if lost > 0
               else "though nothing was lost"),
            "segments arrive in order",
            numbers | {"reord_seen": f["d_reord_seen"], "recoveries": begun})


def slow(f: Flow, facts: Facts, numbers: dict[str, Any]) -> Answer | None:
    """Segments out of order, for which little was sent again."""
    if not often(f) or not timely(f, facts):
        return None
    return ("reordering", "low" if crowded(facts) else "medium",
            f"{f['d_reord_seen']} of {f['d_delivered']} segments were "
            "acknowledged out of order; the kernel waits for up to "
            f"{f.get('reordering', 0)} of them, and sends few again",
            "segments arrive in order", numbers | {"reord_seen": f["d_reord_seen"]})


def late(f: Flow, facts: Facts, told: str,
         numbers: dict[str, Any]) -> Answer | None:
    """Needless recoveries that began with holes (SACK).  Lost ACKs leave no holes, and
    what is sent again for them follows a timeout.  The kernel counts recoveries for
    all connections together, so most of what any of them sent again was needless."""
    snmp = facts["snmp"]
    again, total = f["d_dsack_dups"], f["d_total_retrans"]
    if sum(one["d_dsack_dups"] for one in facts["flows"]) \
            <= MOSTLY * snmp.get("Tcp.RetransSegs", 0):
        return None
    holes = snmp.get("TcpExt.TCPSackRecovery", 0)
    timers = snmp.get("TcpExt.TCPTimeouts", 0) + snmp.get("TcpExt.TCPLossProbes", 0)
    if again <= MOSTLY * total or holes < ENOUGH or timers > (1 - MOSTLY) * holes:
        return None
    return ("reordering", "low" if crowded(facts) else "medium",
            f"{told}, and the peer already had {again} of {total} (DSACK): {holes} "
            f"recoveries began with a hole (SACK), and {timers} timers expired: the "
            "segments came late",
            "no DSACKs", numbers | {"recoveries": holes})


def sent_again(f: Flow, facts: Facts, told: str,
               numbers: dict[str, Any]) -> Answer | None:
    """Segments that were sent again for being out of order."""
    again, total = f["d_dsack_dups"], f["d_total_retrans"]
    # Segments that are sent again for lost ACKs come out of order once.
    seen = f.get("d_reord_seen", 0)
    if seen <= max(1, again / (2 * ENOUGH)) or total < ENOUGH or again <= total / 4:
        return None
    slight = crowded(facts) or not timely(f, facts)
    return ("reordering",
            "low" if slight else "high" if again > total / 2 else "medium",
            f"{told}, the peer already had {again} of {total} (DSACK), and "
            f"{f['d_reord_seen']} ACKs were for segments out of order",
            "no DSACKs", numbers | {"reord_seen": f["d_reord_seen"]})
