# SPDX-License-Identifier: GPL-2.0-only
"""From raw transfers to the numbers of one arm in one cell: goodput, usable
window, utilisation, and whether the module acted.  Pure.
"""
from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import LoadFailed
from ..experiment.cell import LOOPBACK, Cell

#: Counters of the treatment arm that show that a policy changed something.
ACTED = ("treated_tx_sized", "treated_tx_unstalled", "treated_rx_raised")


def usable_window(cell: Cell, raw: dict[str, Any]) -> int:
    """Bytes the receiver allowed unacknowledged; 0: not known."""
    window = min(filter(None, (raw["rcv_ssthresh"], raw["window_clamp"])),
                 default=0)
    # The largest window that the header holds without scaling (RFC 7323).
    return window if cell.window_scaling else min(window, 65535)


def round_trip(cell: Cell, runs: list[dict[str, Any]]) -> float:
    """Seconds: the smallest round trip time that a sender of any arm saw
    (TCP_INFO), which includes the ends' time for one segment; the link's
    delay where the load does not report it."""
    least = min(raw.get("min_rtt_us", 0) for raw in runs)
    return float(least / 1e6 or cell.rtt_ms / 1e3)


def acted(raw: dict[str, Any]) -> bool:
    """Did the module choose a value other than the kernel's?"""
    return any(end[key] for end in raw["counters"].values() for key in ACTED)


def mean_window(cell: Cell, runs: list[dict[str, Any]]) -> float:
    """Mean usable window of the runs of one arm, bytes; 0: not known."""
    windows = [usable_window(cell, raw) for raw in runs]
    return statistics.fmean(windows) if windows and all(windows) else 0


def averages(cell: Cell, runs: list[dict[str, Any]], rtt: float,
             window: float = 0) -> dict[str, Any]:
    """Means over the runs of one arm: goodput in bytes/s, and utilisation =
    goodput x RTT / window, where both are known.  @rtt: seconds.

    @window: bytes, the usable window of the control.  Smaller segments can lower the
    receiver's own window (scaling_ratio, Linux 6.6 and later), and then an arm
    that fills a smaller window would seem to use as much.  0: its own.
    """
    rates = [raw["bytes_per_s"] for raw in runs]
    out: dict[str, Any] = {"bytes_per_s": statistics.fmean(rates),
                           "acted": any(acted(raw) for raw in runs)}
    own = mean_window(cell, runs)
    delayed = cell.link != LOOPBACK or cell.window_segments
    if cell.rtt_ms and delayed and own:
        out["usable_window"] = own
        out["utilisation"] = out["bytes_per_s"] * rtt / (window or own)
    return out


#: How members of several transfers become one; of others the first counts.
_TOGETHER: dict[str, Callable[[Iterable[Any]], Any]] = {
    **dict.fromkeys((
        "bytes", "bytes_per_s", "received", "segments", "cpu_ns", "retransmits",
        "retransmitted", "sent_segments", "zerocopy_sent", "zerocopy_copied",
        "zerocopy_received", "wrong_bytes"), sum),
    **dict.fromkeys(("ns", "wall_ns", "cpu_sender_ns", "cpu_receiver_ns"), max),
    "rtt_us": statistics.fmean, "min_rtt_us": min}


def fairness(rates: list[float]) -> float:
    """Jain's index: 1 if all rates are equal, 1/n if one has everything."""
    return sum(rates)**2 / (len(rates) * sum(rate**2 for rate in rates))


def together(some: list[dict[str, Any]]) -> dict[str, Any]:
    """Several transfers at once, as one: sums, and how fair they were to one
    another.  LoadFailed if one failed."""
    for one in some:
        if "failed" in one:
            raise LoadFailed(f"one of {len(some)} transfers: {one['failed']}")
    out = {key: _TOGETHER[key](one[key] for one in some)
           if key in _TOGETHER else first for key, first in some[0].items()}
    rates = [one["bytes_per_s"] for one in some]
    # Each has a window of its own.
    return out | {"rcv_ssthresh": 0, "window_clamp": 0, "rates": rates,
                  "fairness": fairness(rates) if any(rates) else 0.0}
