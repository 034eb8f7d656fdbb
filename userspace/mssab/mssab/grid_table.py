# SPDX-License-Identifier: GPL-2.0-only
"""The table that mssab run prints for a grid: one row per cell.

Pure.
"""
from __future__ import annotations

from typing import Any

from .errors import MssabError

NAME = 36  # columns of a cell's name
HEADER = (f"{'cell':<{NAME}} {'control':>9} {'used':>5} {'treatment':>9}"
          f" {'used':>5} {'ratio':>7}  policy")
UNITS = f"{'':<{NAME}} {'bit/s':>9} {'':>5} {'bit/s':>9}"


def rate(bytes_per_s: float) -> str:
    """Mbit/s, or kbit/s below one Mbit/s."""
    bits = bytes_per_s * 8
    return f"{bits / 1e6:.1f} M" if bits >= 1e6 else f"{bits / 1e3:.0f} k"


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"


def ratio(control: dict[str, Any], treatment: dict[str, Any]) -> float:
    """Goodput of the treatment over that of the control."""
    if not control["bytes_per_s"]:
        raise MssabError("the control arm delivered nothing; is the link up?")
    return float(treatment["bytes_per_s"] / control["bytes_per_s"])


def row(name: str, control: dict[str, Any], treatment: dict[str, Any]) -> str:
    """One line of the table.  policy: did the module act?"""
    times = ratio(control, treatment)
    return (f"{name:<{NAME}} {rate(control['bytes_per_s']):>9} "
            f"{percent(control.get('utilisation')):>5} "
            f"{rate(treatment['bytes_per_s']):>9} "
            f"{percent(treatment.get('utilisation')):>5} "
            f"{times:>7.{3 if times < 100 else 0}f}  "
            f"{'acted' if treatment['acted'] else 'idle'}")
