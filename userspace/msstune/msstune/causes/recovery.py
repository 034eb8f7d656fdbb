# SPDX-License-Identifier: GPL-2.0-only
"""Calculates how long a sender needs, after one lost segment, to fill its path
again.  Pure.

The window before the loss is W = rate x RTT / MSS segments: the path is full and
has no queue, as table 1 of the case study assumes.
"""
from __future__ import annotations

from dataclasses import dataclass

CUBIC_C = 0.4      # RFC 9438, section 5: segments/s^3
CUBIC_BETA = 0.7   # section 4.6
#: Section 4.3: makes the Reno-friendly estimate as aggressive as Reno.
CUBIC_ALPHA = 3 * (1 - CUBIC_BETA) / (1 + CUBIC_BETA)
#: BBR v3 reacts only if more than this share of a round trip is lost.
BBR3_LOSS = 0.02

#: Path, bit/s, s, bytes, and the time to recover as printed.
TABLE_1 = (
    ("LAN", 10e9, 0.001, 1460, "428 ms"),
    ("Geneva - Chicago", 10e9, 0.120, 1460, "1 hr 42 min"),
    ("Geneva - Chicago", 10e9, 0.120, 8960, "17 min"),
    ("Geneva - Sunnyvale", 10e9, 0.180, 1460, "3 hr 51 min"),
    ("Geneva - Sunnyvale", 10e9, 0.180, 8960, "38 min"),
)


@dataclass(frozen=True)
class Recovery:
    """Result for one algorithm."""

    cc: str
    seconds: float
    how: str
    source: str


def window(rate: float, rtt: float, mss: int) -> float:
    """Segments in flight that fill the path."""
    return rate * rtt / 8 / mss


def reno(segments: float, rtt: float) -> Recovery:
    return Recovery(
        "reno", segments / 2 * rtt,
        f"halves {segments:.0f} segments, gains one per RTT",
        "Feng et al., SC 2003, section 4.1, table 1; RFC 5681")


def cubic(segments: float, rtt: float) -> Recovery:
    """The sender uses the larger of both windows, so the shorter time counts."""
    curve = (segments * (1 - CUBIC_BETA) / CUBIC_C) ** (1 / 3)
    friendly = segments * (1 - CUBIC_BETA) / CUBIC_ALPHA * rtt
    if friendly <= curve:
        return Recovery("cubic", friendly,
                        "Reno-friendly: 0.53 segments each RTT from 0.7 W",
                        "RFC 9438, section 4.3")
    return Recovery("cubic", curve, "K = cbrt(W (1 - 0.7) / 0.4)",
                    "RFC 9438, section 4.2, figure 2")


def bbr(segments: float, rtt: float) -> Recovery:
    how = "its model ignores one loss; packet conservation for one RTT"
    if segments * BBR3_LOSS < 1:
        how += "; BBR v3 would reduce: one of so few is over 2 %"
    return Recovery("bbr", rtt, how, "Linux tcp_bbr.c "
                    "(bbr_set_cwnd_to_recover_or_restore); "
                    "draft-ietf-ccwg-bbr")


ALGORITHMS = {"reno": reno, "cubic": cubic, "bbr": bbr}


def recoveries(rate: float, rtt: float, mss: int,
               names: list[str]) -> list[Recovery]:
    segments = window(rate, rtt, mss)
    return [ALGORITHMS[name](segments, rtt) for name in names]
