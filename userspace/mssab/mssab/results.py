# SPDX-License-Identifier: GPL-2.0
"""From raw transfers to the figures of one cell, and the table of them.

Pure: numbers in, numbers and text out.
"""
from __future__ import annotations

from typing import Any

from .experiment import Cell


def usable_window(raw: dict[str, Any]) -> int:
    """Bytes the receiver was ready to have in flight."""
    return min(raw["rcv_ssthresh"], raw["window_clamp"])


def figures(cell: Cell, raw: dict[str, Any]) -> dict[str, Any]:
    """Goodput in bytes/s; utilisation = goodput x RTT / usable window."""
    out: dict[str, Any] = {"bytes_per_s": raw["bytes_per_s"]}
    if cell.rtt_ms and cell.link != "loopback":
        window = usable_window(raw)
        out["usable_window"] = window
        out["utilisation"] = (raw["bytes_per_s"] * cell.rtt_ms / 1000
                              / window)
    return out


def rate(bytes_per_s: float) -> str:
    """Mbit/s, or kbit/s where that would read 0."""
    bits = bytes_per_s * 8
    return f"{bits / 1e6:.1f} M" if bits >= 1e6 else f"{bits / 1e3:.0f} k"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"


HEADER = (f"{'cell':<36} {'stock':>9} {'used':>5} {'treated':>9} {'used':>5}"
          f" {'ratio':>9}")
UNITS = f"{'':<36} {'bit/s':>9} {'':>5} {'bit/s':>9} {'':>5} {'':>9}"


def row(name: str, stock: dict[str, Any], treated: dict[str, Any]) -> str:
    """One line of the table, 79 columns."""
    ratio = treated["bytes_per_s"] / stock["bytes_per_s"]
    times = f"{ratio:.3f}" if ratio < 100 else f"{ratio:.0f}"
    return (f"{name:<36} {rate(stock['bytes_per_s']):>9} "
            f"{percent(stock.get('utilisation')):>5} "
            f"{rate(treated['bytes_per_s']):>9} "
            f"{percent(treated.get('utilisation')):>5} {times:>9}")
