# SPDX-License-Identifier: GPL-2.0
"""Programs that write the same settings, and who wins."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .settings import Setting


@dataclass(frozen=True)
class Rival:
    """@kinds, @keys: what it writes; empty keys: every key of those kinds.
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
          True, "bpftune adjusts it all the time, and gives it up when someone "
          "else writes it: stop bpftune, or leave this to it"),
    Rival("tuned", ("sysctl", "ring", "coalesce", "offload", "pause",
                    "txqueuelen"), (), False,
          "tuned writes its profile at its start and at each switch: put a "
          "setting to keep into a profile of its own"),
    Rival("NetworkManager", ("mtu", "ring", "coalesce", "offload", "pause",
                             "qdisc", "route", "txqueuelen"), (), False,
          "NetworkManager sets what a connection's profile names whenever the "
          "connection comes up: put it there to keep it"),
    Rival("systemd-network", ("mtu", "qdisc", "route", "txqueuelen"), (), False,
          "systemd-networkd sets what its .network files name whenever the "
          "link comes up: put it there to keep it"),
    Rival("irqbalance", ("irq",), (), True,
          "irqbalance moves interrupts every 10 s: ban this one there "
          "(--banirq), or stop it"),
)


def running(proc: Path = Path("/proc")) -> set[str]:
    """Names of all processes, as the kernel has them."""
    names = set()
    for path in proc.glob("[0-9]*/comm"):
        try:
            names.add(path.read_text(encoding="utf-8", errors="replace").strip())
        except OSError:
            continue  # it ended
    return names


def find(settings: Iterable[Setting],
         names: set[str]) -> list[tuple[Rival, list[str]]]:
    """Rivals that run, each with those of the settings it writes, too."""
    found = []
    for rival in RIVALS:
        if rival.comm not in names:
            continue
        theirs = [s.name for s in settings if s.kind in rival.kinds
                  and (not rival.keys or s.target.startswith(rival.keys))]
        if theirs:
            found.append((rival, theirs))
    return found
