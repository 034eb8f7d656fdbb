# SPDX-License-Identifier: GPL-2.0
"""From raw transfers to the figures of one cell, and the table of them.

Pure: numbers in, numbers and text out.
"""
from __future__ import annotations

import statistics
from typing import Any

from .errors import MssabError
from .grid import Cell


def usable_window(cell: Cell, raw: dict[str, Any]) -> int:
    """Bytes the receiver was ready to have in flight; 0: not known."""
    window = min(filter(None, (raw["rcv_ssthresh"], raw["window_clamp"])),
                 default=0)
    # All that the header field can say without scaling (RFC 7323).
    return window if cell.window_scaling else min(window, 65535)


def round_trip(cell: Cell, runs: list[dict[str, Any]]) -> float:
    """Seconds: the smallest a sender of any arm saw (TCP_INFO), with what the
    ends take for one segment; the link's own where the load cannot tell."""
    least = min(raw.get("min_rtt_us", 0) for raw in runs)
    return float(least / 1e6 or cell.rtt_ms / 1e3)


#: Counters of the treated arm that say a policy changed something.
ACTED = ("treated_tx_trials", "treated_tx_unstalled", "treated_rx_raised")


def acted(raw: dict[str, Any]) -> bool:
    """Did the module choose anything but the kernel's own value?"""
    return any(end[key] for end in raw["counters"].values() for key in ACTED)


def figures(cell: Cell, runs: list[dict[str, Any]],
            rtt: float) -> dict[str, Any]:
    """Means over the runs of one arm: goodput in bytes/s, and utilisation =
    goodput x RTT / usable window, where both are known.  @rtt: seconds."""
    rates = [raw["bytes_per_s"] for raw in runs]
    out: dict[str, Any] = {"bytes_per_s": statistics.fmean(rates),
                           "acted": any(acted(raw) for raw in runs)}
    windows = [usable_window(cell, raw) for raw in runs]
    delayed = cell.link != "loopback" or cell.window_segments
    if cell.rtt_ms and delayed and all(windows):
        out["usable_window"] = statistics.fmean(windows)
        out["utilisation"] = statistics.fmean(
            rate * rtt / window for rate, window in zip(rates, windows))
    return out


def rate(bytes_per_s: float) -> str:
    """Mbit/s, or kbit/s where that would read 0."""
    bits = bytes_per_s * 8
    return f"{bits / 1e6:.1f} M" if bits >= 1e6 else f"{bits / 1e3:.0f} k"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"


NAME = 36  # columns of a cell's name
HEADER = (f"{'cell':<{NAME}} {'stock':>9} {'used':>5} {'treated':>9} {'used':>5}"
          f" {'ratio':>7}  policy")
UNITS = f"{'':<{NAME}} {'bit/s':>9} {'':>5} {'bit/s':>9}"


def ratio(stock: dict[str, Any], treated: dict[str, Any]) -> float:
    """Goodput of the treated arm over that of the stock arm."""
    if not stock["bytes_per_s"]:
        raise MssabError("the stock arm delivered nothing; is the link up?")
    return float(treated["bytes_per_s"] / stock["bytes_per_s"])


def row(name: str, stock: dict[str, Any], treated: dict[str, Any]) -> str:
    """One line of the table.  policy: did it act at all?"""
    times = ratio(stock, treated)
    return (f"{name:<{NAME}} {rate(stock['bytes_per_s']):>9} "
            f"{percent(stock.get('utilisation')):>5} "
            f"{rate(treated['bytes_per_s']):>9} "
            f"{percent(treated.get('utilisation')):>5} "
            f"{times:>7.{3 if times < 100 else 0}f}  "
            f"{'acted' if treated['acted'] else 'idle'}")
