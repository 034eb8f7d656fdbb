# SPDX-License-Identifier: GPL-2.0
"""A proposal, and the arithmetic of sizes that several of them share.  Pure."""
from __future__ import annotations

from dataclasses import dataclass

from .collect import Facts

#: No more than this share of RAM for one connection.
SHARE = 32
LEAST = 1 << 20


@dataclass(frozen=True)
class Proposal:
    setting: str        # KIND:TARGET; empty: advice
    old: str
    new: str
    reason: str
    figure: str
    source: str
    risk: str


def triple(facts: Facts, key: str) -> tuple[int, int, int]:
    low, middle, high = (int(word) for word in
                         facts["sysctl"].get(key, "4096 16384 4194304").split())
    return low, middle, high


def buffer_for(need: float, facts: Facts) -> tuple[int, str]:
    """A buffer whose window holds @need bytes: twice that, for about half of it
    is the kernel's own; and a remark where RAM ends it."""
    size = max(LEAST, 1 << (2 * int(need) - 1).bit_length() if need >= 1 else 0)
    top = 1 << (facts["memory"] // SHARE).bit_length() - 1
    if size > top:
        return top, f"; held to 1/{SHARE} of RAM"
    return size, ""


def block(mtu: int) -> tuple[int, int]:
    """Memory that a driver which takes power-of-two blocks needs for a frame, and
    what of it is wasted: the paper's figure 5, where 8160 beats 9000."""
    frame = mtu + 18    # Ethernet header, VLAN tag
    size = 1 << (frame - 1).bit_length()
    return size, size - frame
