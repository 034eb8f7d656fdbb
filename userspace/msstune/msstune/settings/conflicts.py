# SPDX-License-Identifier: GPL-2.0-only
"""Running programs that write the same settings, and which writer wins."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .setting import Setting


@dataclass(frozen=True)
class Rival:
    """@kinds, @keys: the settings it writes; without keys, all of these kinds.
    @blocks: it would change the value again within seconds."""

    comm: str
    kinds: tuple[str, ...]
    keys: tuple[str, ...]
    blocks: bool
    rule: str


RIVALS = (
    Rival("bpftune", ("sysctl",),
          ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem",
           "net.core.netdev_max_backlog", "net.core.netdev_budget",
           "net.core.netdev_budget_usecs", "net.core.flow_limit",
           "net.ipv4.tcp_congestion_control", "net.ipv4.neigh",
           "net.ipv4.tcp_max_orphans", "net.ipv4.ipfrag"),
          True, "bpftune adjusts it all the time, and stops when another writer "
          "changes it: stop bpftune, or leave the setting to it"),
    Rival("tuned", ("sysctl", "ring", "coalesce", "offload", "pause",
                    "txqueuelen"), (), False,
          "tuned writes its profile when it starts and when the profile "
          "changes: to keep a setting, put it into a tuned profile"),
    Rival("NetworkManager", ("mtu", "ring", "coalesce", "offload", "pause",
                             "qdisc", "route", "txqueuelen"), (), False,
          "NetworkManager applies the connection's profile whenever the "
          "connection comes up: to keep the setting, put it there"),
    Rival("systemd-network", ("mtu", "qdisc", "route", "txqueuelen"), (), False,
          "systemd-networkd applies its .network files whenever the link "
          "comes up: to keep the setting, put it there"),
    Rival("irqbalance", ("irq",), (), True,
          "irqbalance moves interrupts every 10 s: ban this one "
          "(--banirq), or stop irqbalance"),
)


def running(proc: Path = Path("/proc")) -> set[str]:
    """The kernel's names of all processes."""
    names = set()
    for path in proc.glob("[0-9]*/comm"):
        try:
            names.add(path.read_text(encoding="utf-8", errors="replace").strip())
        except OSError:
            continue  # it ended
    return names


def find(settings: Iterable[Setting],
         names: set[str]) -> list[tuple[Rival, list[str]]]:
    """The rivals that run, each with those of @settings that it also writes."""
    found = []
    for rival in RIVALS:
        if rival.comm not in names:
            continue
        theirs = [s.name for s in settings if s.kind in rival.kinds
                  and (not rival.keys or s.target.startswith(rival.keys))]
        if theirs:
            found.append((rival, theirs))
    return found
