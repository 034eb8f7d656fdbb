# SPDX-License-Identifier: GPL-2.0-only
"""Collects which programs and threads of the kernel use each CPU, to name what a
program waits for.  Reads only."""
from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import NotSupported

#: Processes up to which all are read, and the share of a CPU from which one matters.
MOST, LEAST = 4000, 0.05
KTHREAD = 0x00200000    # PF_KTHREAD of the kernel's flags


@dataclass(frozen=True)
class Task:
    """A process of one thread, or a thread of the kernel."""

    comm: str
    cpu: int            # where it ran last
    kernel: bool
    started: int        # with its id it names one process
    seconds: float      # CPU time


def tasks(root: Path = Path("/proc")) -> tuple[float, dict[int, Task]]:
    """When, and all of them.  Threads of a program run anywhere: they are left out."""
    pids = [entry.name for entry in os.scandir(root) if entry.name.isdigit()]
    if len(pids) > MOST:
        raise NotSupported(f"{len(pids)} processes")
    tick, found = os.sysconf("SC_CLK_TCK"), dict[int, Task]()
    for pid in pids:
        try:
            text = (root / pid / "stat").read_text("ascii", "replace")
        except OSError:
            continue    # it ended
        head, _, rest = text.rpartition(")")
        words = rest.split()
        if int(words[17]) == 1:
            found[int(pid)] = Task(
                head.partition("(")[2], int(words[36]), bool(int(words[6]) & KTHREAD),
                int(words[19]), (int(words[11]) + int(words[12])) / tick)
    return time.monotonic(), found


def since(before: tuple[float, dict[int, Task]], own: set[int],
          root: Path = Path("/proc")) -> dict[str, list[dict[str, Any]]]:
    """By CPU, those that used it, the busiest first.  @own: who watches."""
    then, old = before
    when, now = tasks(root)
    found: dict[str, list[dict[str, Any]]] = {}
    for pid, task in now.items():
        was = old.get(pid)
        used = task.seconds - (was.seconds if was and was.started == task.started
                               else 0.0)
        share = used / max(1e-3, when - then)
        if share >= LEAST and pid not in own:
            found.setdefault(str(task.cpu), []).append({
                "pid": pid, "comm": task.comm, "kernel": task.kernel, "used": share})
    return {cpu: sorted(some, key=lambda one: -float(one["used"]))
            for cpu, some in found.items()}
