# SPDX-License-Identifier: GPL-2.0-only
"""The type of a proposal, and arithmetic that several proposals share.  Pure."""
from __future__ import annotations

from dataclasses import dataclass, replace

from ..facts.collect import Facts
from ..facts.path_sums import Evidence

SHARE = 32      # one connection may use 1/SHARE of RAM
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
    path: str = ""      # of a profile, that the setting makes cheaper
    share: float = 0.0  # of the work, wait or packets
    of: str = ""        # which of these
    gain: str = ""      # that may be expected

    def shown_by(self, evidence: Evidence | None) -> Proposal:
        """With what the profile shows."""
        return self if evidence is None or self.path else replace(
            self, path=evidence.path, share=evidence.share, of=evidence.of,
            gain=self.gain or evidence.gain)


def whole_host(facts: Facts) -> bool:
    """Whether settings that the network namespaces of a host share can be made here:
    only the initial one has them all."""
    return "net.core.netdev_max_backlog" in facts["sysctl"]


def triple(facts: Facts, key: str) -> tuple[int, int, int]:
    words = facts["sysctl"].get(key, "4096 16384 4194304").split()
    low, default, high = map(int, words)
    return low, default, high


def buffer_for(need: float, facts: Facts) -> tuple[int, str]:
    """Size of a buffer whose window holds @need bytes: twice that, because about
    half of a buffer is the kernel's overhead.  With a remark if RAM limits it."""
    size = max(LEAST, 1 << (2 * int(need) - 1).bit_length() if need >= 1 else 0)
    top = 1 << (facts["memory"] // SHARE).bit_length() - 1
    if size > top:
        return top, f"; limited to 1/{SHARE} of RAM"
    return size, ""


def block(mtu: int) -> tuple[int, int]:
    """Memory for one frame in a driver that uses power-of-two blocks, and the unused
    part of it: figure 5 of the paper, where an MTU of 8160 beats 9000."""
    frame = mtu + 18    # Ethernet header, VLAN tag
    size = 1 << (frame - 1).bit_length()
    return size, size - frame
