# SPDX-License-Identifier: GPL-2.0-only
"""Reads and prints numbers with units.  Pure."""
from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable

_DECIMAL = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}


def rate(text: str) -> float:
    """bit/s of 10G, 10gbit, 2.5Gbit/s, 622e6."""
    match = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)\s*([kmgt]?)(?:bit|bps)?(?:/s)?",
                         text.strip().lower())
    return _positive(text, match, _DECIMAL, "a rate, such as 10G or 2.5gbit")


def seconds(text: str) -> float:
    """Seconds of 120ms, 50us, 0.1s; the unit is required."""
    match = re.fullmatch(r"([0-9.]+(?:e-?[0-9]+)?)\s*(s|ms|us|ns)",
                         text.strip().lower())
    return _positive(text, match, _SECONDS,
                     "a time with its unit, such as 120ms or 50us")


def percent(text: str) -> float:
    """3 of 3."""
    return _positive(text, re.fullmatch(r"([0-9.]+)()", text.strip()), {"": 1.0},
                     "a percentage above 0")


def _positive(text: str, match: re.Match[str] | None,
              factors: dict[str, float], wanted: str) -> float:
    try:
        value = float(match[1]) * factors[match[2]] if match else 0.0
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return value


def whole(low: int, high: int) -> Callable[[str], int]:
    """A type for argparse: a whole number in low..high."""
    def check(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not a whole number in {low}..{high}")
        return value
    return check


def kernel_numbers(text: str) -> list[int] | None:
    """The numbers of a sysctl as the kernel reads them, hexadecimal after 0x and octal
    after 0; None: there is something else."""
    words = text.split()
    if not all(re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", word)
               for word in words):
        return None
    return [int(re.sub(r"\b0(?=[0-7])", "0o", word), 0) for word in words]


def numbers(text: str) -> set[int]:
    """Those of a list such as 0-3,8; it may be empty."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        low, _, high = part.partition("-")
        found.update(range(int(low), int(high or low) + 1))
    return found


def _scaled(value: float, step: int, units: tuple[str, ...]) -> tuple[float, str]:
    """@value in the largest of @units in which it is at least 1."""
    at = 0
    while abs(value) >= step and at < len(units) - 1:
        value, at = value / step, at + 1
    return value, units[at]


def size(value: float) -> str:
    """Bytes, readable: 64 KiB, 1.5 GiB."""
    value, unit = _scaled(value, 1024, ("B", "KiB", "MiB", "GiB", "TiB"))
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"


def bits(value: float) -> str:
    """bit/s, readable: 2.5 Gbit/s."""
    value, unit = _scaled(value, 1000, ("", "k", "M", "G", "T"))
    return f"{value:.3g} {unit}bit/s"


def duration(value: float) -> str:
    """Seconds as table 1 of the paper prints them: two units at most; minutes
    are rounded to the nearest, or down after hours."""
    if value < 1e-3:
        return f"{value * 1e6:.0f} us"
    if value < 1:
        return f"{value * 1e3:.0f} ms"
    if value < 100:
        return f"{value:.1f} s"
    if value < 3600:
        return f"{value / 60:.0f} min"
    return f"{int(value // 3600)} h {int(value % 3600 // 60)} min"
