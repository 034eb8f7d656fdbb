# SPDX-License-Identifier: GPL-2.0-only
"""What all connections of our network namespace transfer during one block of
verify: goodput, retransmissions, round-trip time.  Reads only.

Repeated dumps include connections that begin or end during the block, except
the bytes that a connection moves after its last dump.
"""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from .. import sockdiag

#: Seconds between dumps, and the share of a CPU that they may use.
STEP = 0.2
SHARE = 0.1

Looks = dict[bytes, sockdiag.Look]


def moved(old: Looks, new: Looks, before: set[bytes]) -> Counter[str]:
    """Sums over the connections of @new since @old.  @before: connections that are
    older than the block."""
    sums: Counter[str] = Counter()
    for cookie, look in new.items():
        start = old.get(cookie)
        if start and sockdiag.counts(start) == sockdiag.counts(look):
            continue
        now = sockdiag.unpack(look)
        then: dict[str, Any] = sockdiag.unpack(start) if start else {}
        acked, received, sent, again = (
            now[key] - then.get(key, 0) for key in (
                "bytes_acked", "bytes_received", "data_segs_out",
                "total_retrans"))
        sums["bytes"] += acked + received
        sums["sent_segments"] += sent
        sums["retransmits"] += again
        # A receiver's rtt is that of its few own segments: use its own estimate.
        rtt = now["rtt"] if acked >= received else now["rcv_rtt"] or now["rtt"]
        sums["rtt_x_bytes"] += rtt * (acked + received)
        if cookie in before:
            sums["carried"] += acked + received
    return sums


def metrics(sums: Counter[str], seconds: float) -> dict[str, float]:
    """The metrics by mssab's names, and carried_percent, the share of bytes of
    connections older than the block."""
    total = max(1, sums["bytes"])
    return {"bytes_per_s": sums["bytes"] / seconds,
            "retransmits": sums["retransmits"],
            "sent_segments": sums["sent_segments"],
            "rtt_us": max(1.0, sums["rtt_x_bytes"] / total),
            "carried_percent": 100 * sums["carried"] / total}


def watch(over: Callable[[float], bool], before: set[bytes]) -> dict[str, float]:
    """Measure until over(seconds since the start) is true."""
    start = time.monotonic()
    last = sockdiag.looks()
    elapsed = cost = time.monotonic() - start
    sums: Counter[str] = Counter()
    while not over(elapsed):
        time.sleep(max(STEP, cost / SHARE))
        begun = time.monotonic()
        new = sockdiag.looks()
        cost, elapsed = time.monotonic() - begun, begun - start
        sums += moved(last, new, before)
        # A dump may miss a connection: it is not new when it reappears.
        last |= new
    return metrics(sums, elapsed)
