# SPDX-License-Identifier: GPL-2.0-only
"""Sums over the paths of a profile, which the rules and the plan judge.  Pure."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Path = dict[str, Any]

#: Packets of a kind below which its paths are no evidence.
ENOUGH = 50
BUSY = 0.5          # busy share of a CPU above which work per packet matters
COSTLY = 0.1        # share of all work that is worth a change
#: Share of a CPU's time in the kernel below which packets are not its work.
KERNEL = 0.25
#: Stages of a received packet that one larger packet passes once.
PER_PACKET = ("gro", "netif", "ip", "local", "socket", "tcp", "do_rcv", "estab",
              "validate", "ack", "ack_slow", "sort", "queue", "ack_now", "ack_late",
              "wake")


@dataclass(frozen=True)
class Evidence:
    """What the profile adds to a diagnosis: a path, its share of @of (work, wait or
    packets), and the gain that may be expected of a change."""

    path: str
    share: float
    of: str = "work"
    gain: str = ""

    @property
    def text(self) -> str:
        return f"{self.path}: {self.share:.0%} of the {self.of}"


def data(facts: dict[str, Any], way: str) -> list[Path]:
    """Paths of packets with payload in this direction.  Those that GRO merged are
    part of other packets, and those dropped go nowhere."""
    return [p for p in facts.get("paths", []) if p["direction"] == way
            and p["bytes"] and p["end"] not in ("merged", "dropped")]


def packets(paths: Iterable[Path]) -> int:
    return sum(int(p["packets"]) for p in paths)


def payload(paths: Iterable[Path]) -> int:
    return sum(int(p["bytes"]) for p in paths)


def segments(paths: Iterable[Path]) -> int:
    return sum(int(p["segments"]) for p in paths)


def spent(paths: Iterable[Path], kind: str = "work",
          stages: Iterable[str] | None = None) -> int:
    """ns of these paths in stages of that kind, or in those of @stages only."""
    wanted = None if stages is None else frozenset(stages)
    return sum(int(ns) for p in paths for name, of, ns in p["stages"]
               if of == kind and (wanted is None or name in wanted))


def share(facts: dict[str, Any], ns: int, kind: str = "work") -> float:
    """Of everything that packets of the profile spent, but for those dropped: when
    that happened is not always known."""
    return ns / max(1, spent([p for p in facts.get("paths", [])
                              if p["end"] != "dropped"], kind))


def passing(paths: Iterable[Path], stage: str) -> list[Path]:
    return [p for p in paths if any(name == stage for name, _, _ in p["stages"])]


def mean(paths: list[Path], stage: str) -> float:
    """ns that a packet which passes the stage spends there."""
    mine = passing(paths, stage)
    ns = sum(int(n) for p in mine for name, _, n in p["stages"] if name == stage)
    return ns / max(1, packets(mine))


def label(paths: list[Path], way: str) -> str:
    """The path of most of these packets, as its direction, flags and stages."""
    most = max(paths, key=lambda p: int(p["packets"]))
    kind = next((flag for flag in ("retransmit", "slow", "fast", "data", "ack")
                 if flag in most["flags"]), "")
    return " ".join(filter(None, (way, kind, " > ".join(
        name for name, _, _ in most["stages"]))))


def busy(facts: dict[str, Any]) -> float:
    """Busy share of the busiest CPU that works for the kernel, too.  One that only
    runs a program gains nothing from cheaper packets."""
    return max((busy_cpu(facts, cpu) for cpu in facts.get("cpus", {})), default=0.0)


def busy_cpu(facts: dict[str, Any], cpu: str) -> float:
    """The same, of one CPU; 0: it only runs a program, or is not known."""
    spent_ = facts.get("cpus", {}).get(cpu)
    if not spent_:
        return 0.0
    ticks = max(1, sum(spent_.values()))
    kernel = (spent_["system"] + spent_["irq"] + spent_["softirq"]) / ticks
    return float(1 - (spent_["idle"] + spent_["iowait"]) / ticks) \
        if kernel >= KERNEL else 0.0


def span(facts: dict[str, Any], what: str) -> float:
    """Seconds between the two readings of these counters: "devices", "counters".  On
    a slow host they are read long before and after the connections."""
    return float(facts.get("spans", {}).get(what) or facts["interval"])


#: Threads of the kernel that poll a device (threaded NAPI): softirqs under their own
#: name, which the kernel counts as a program's time.
POLLING = "napi/"


def packet_share(facts: dict[str, Any], cpu: Any) -> float | None:
    """The share of a CPU that packets take; None: not known."""
    ticks = facts.get("cpus", {}).get(str(cpu))
    if not ticks:
        return None
    return float((ticks["softirq"] + ticks["irq"]) / max(1, sum(ticks.values()))
                 + sum(one["used"] for one in others(facts, cpu)
                       if one["kernel"] and one["comm"].startswith(POLLING)))


def others(facts: dict[str, Any], cpu: Any) -> list[dict[str, Any]]:
    """Who uses a CPU, the busiest first."""
    found: list[dict[str, Any]] = (facts.get("tasks") or {}).get(str(cpu), [])
    return found


def costs(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Each stage with its work or wait in ns per 1000 bytes moved, the largest
    first; [] without a profile."""
    paths = facts.get("paths", [])
    moved = sum(p["bytes"] for p in paths if p["end"] not in ("merged", "dropped"))
    sums: dict[tuple[str, str, str], int] = {}
    for path in paths:
        for name, kind, ns in path["stages"]:
            if kind != "end":
                key = path["direction"], name, kind
                sums[key] = sums.get(key, 0) + ns
    rows = [{"direction": way, "stage": name, "kind": kind,
             "ns_per_kb": 1000 * ns / max(1, moved)}
            for (way, name, kind), ns in sums.items()] if moved else []
    return sorted(rows, key=lambda row: -float(row["ns_per_kb"]))
