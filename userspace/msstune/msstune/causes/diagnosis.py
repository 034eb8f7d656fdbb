# SPDX-License-Identifier: GPL-2.0-only
"""The type of a diagnosis, and the list of all limits.  Pure."""
from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..facts.path_sums import Evidence

#: limit: text, and whether it is a fault.
LIMITS = {
    "application-send": ("the sending application", False),
    "application-receive": ("the receiving application reads too slowly", True),
    "peer-application": ("the peer's application reads too slowly", True),
    "receive-window": ("the receive window", True),
    "receive-buffer-fixed": ("a receive buffer set by hand (SO_RCVBUF)", True),
    "window-scaling": ("window scaling is off", True),
    "mss-granularity": ("a window of few full-sized segments", True),
    "send-buffer": ("the send buffer", True),
    "pacing": ("a pacing limit", True),
    "sack-off": ("losses without SACK", True),
    "loss": ("losses that are not congestion", True),
    "path": ("the path: it is full, nothing is wrong", False),
    "recovery": ("recovery from an earlier loss", True),
    "mtu": ("packets too large for the path", True),
    "reader-stopped": ("the receiving application has stopped reading", True),
    "peer-stopped": ("the peer's application has stopped reading", True),
    "path-down": ("the path: nothing answers", True),
    "no-answer": ("connection attempts without an answer", True),
    "peer-accept-queue": ("the peer's queue of accept()", True),
    "cork": ("data held back by the program (cork)", True),
    "nagle": ("small writes that wait for an ACK (Nagle)", True),
    "small-writes": ("many small segments", True),
    "idle-restart": ("a congestion window reduced while idle", True),
    "bufferbloat": ("a queue on the path that is far too long", True),
    "shaper": ("a shaper of this host", True),
    "policer": ("losses in groups: a policer, or a queue too short", True),
    "ecn-black-hole": ("a path that drops what ECN could mark", True),
    "reordering": ("segments out of order", True),
    "ack-loss": ("segments sent again that had arrived", True),
    "cwnd-clamp": ("a congestion window limited by a route", True),
    "stale-metrics": ("a threshold cached from an earlier connection", True),
    "initcwnd": ("a small initial window set by a route", True),
    "route-window": ("a window limited by a route", True),
    "adv-win-scale": ("the share of a buffer that is window", True),
    "accept-queue": ("the queue of accept() is full", True),
    "syn-queue": ("the queue of half-open connections is full", True),
    "conntrack-full": ("the conntrack table is full", True),
    "ports-used-up": ("no local port is left", True),
    "own-firewall": ("this host's own firewall", True),
    "cpu-quota": ("a CPU quota (cgroup)", True),
    "qdisc-drops": ("drops in this host's queue", True),
    "backlog-drops": ("drops in the per-CPU backlog", True),
    "ring-drops": ("drops in the receive ring", True),
    "link-errors": ("errors of the link", True),
    "memory-pressure": ("memory for TCP", True),
    "cpu-softirq": ("a CPU busy with packets", True),
    "cpu": ("a CPU that is busy", True),
    "placement": ("interrupt and reader on one CPU", True),
    "interrupt-rate": ("an interrupt per packet", True),
    "coalescing": ("interrupts held back", True),
    "offload-off": ("an offload that is off", True),
    "netfilter-cost": ("the work of netfilter's rules", True),
    "tiny-reads": ("the receiving application reads a few bytes at a time", True),
    "wake-ups": ("a wake-up of the reader for each small packet", True),
    "requeues": ("a driver that cannot take what is queued", True),
    "transmit-queue": ("waiting in this host's own queue", True),
    "mssfrac": ("a mssfrac setting that does not help", True),
    "bus": ("the bus slot", True),
    "budget": ("receive work cut short", True),
    "timestamps": ("timestamps on one side only", True),
    "unknown": ("unknown", False),
}


@dataclass(frozen=True)
class Diagnosis:
    """@weight, 0..100, orders diagnoses: the share of the traffic it holds back."""

    subject: str
    limit: str
    confidence: str             # high, medium, low
    why: str
    would_change: str
    weight: float
    numbers: dict[str, Any] = field(default_factory=dict)
    evidence: Evidence | None = None    # of a profile

    def __post_init__(self) -> None:
        assert self.limit in LIMITS, self.limit

    @property
    def wrong(self) -> bool:
        return LIMITS[self.limit][1]

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"text": LIMITS[self.limit][0],
                               "wrong": self.wrong}
