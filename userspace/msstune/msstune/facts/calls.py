# SPDX-License-Identifier: GPL-2.0-only
"""Counts how often the busiest programs read and write, and how much each time: the
calls of tcp_recvmsg and tcp_sendmsg, for a part of the interval.  Reads only.

A counter is a kprobe for one thread.  The kernel runs all of them at each call of
the function on the host, so few threads are watched, and not for long.
"""
from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import perf_events
from .. import sockdiag

#: Threads that are watched, and those of one program.
THREADS, OF_ONE = 8, 4
ENOUGH = 200        # calls of a program from which its bytes per call are known
FUNCTIONS = {"reads": "tcp_recvmsg", "writes": "tcp_sendmsg"}

Dump = dict[bytes, sockdiag.Look]


def _bytes(dump: Dump, inodes: dict[int, int]) -> dict[int, tuple[int, int]]:
    """What each process has read and written so far, on the connections that it
    holds: what arrived less what is unread, what was acknowledged and what waits."""
    found: dict[int, tuple[int, int]] = {}
    for look in dump.values():
        head = sockdiag.inode_of(look)
        if head not in inodes:
            continue
        one = sockdiag.unpack(look)
        read, written = found.get(inodes[head], (0, 0))
        found[inodes[head]] = (read + one["bytes_received"] - one["rqueue"],
                               written + one["bytes_acked"] + one["wqueue"])
    return found


class Calls:
    """One count.  @holders: the process of each socket, by inode, the busiest first.
    @dump: dumps the connections."""

    def __init__(self, holders: dict[int, int], dump: Callable[[], Dump]) -> None:
        self._dump = dump
        self._counters: dict[int, dict[str, list[int]]] = {}
        self._inodes = holders
        try:
            self._open(dict.fromkeys(holders.values()))
        except BaseException:
            self.close()
            raise
        # Opening takes long, so bytes and calls are read together only now.
        self._calls, self._before = self._read(), _bytes(dump(), holders)
        self._begun = time.monotonic()

    def _open(self, pids: Iterable[int]) -> None:
        room = THREADS
        for pid in pids:
            try:
                tasks = [int(task.name) for task in
                         Path(f"/proc/{pid}/task").iterdir()]
            except OSError:
                continue    # it ended
            # Of a program with more threads only a part would be counted.
            if len(tasks) > min(room, OF_ONE):
                continue
            room -= len(tasks)
            mine = self._counters[pid] = {name: [] for name in FUNCTIONS}
            for name, function in FUNCTIONS.items():
                for task in tasks:
                    try:
                        mine[name].append(perf_events.calls(function, task))
                    except ProcessLookupError:
                        continue

    def _read(self) -> dict[int, dict[str, int]]:
        return {pid: {name: sum(map(perf_events.count, some))
                      for name, some in mine.items()}
                for pid, mine in self._counters.items()}

    def enough(self) -> bool:
        """Whether a program has made enough calls of a kind."""
        return any(count - self._calls[pid][name] >= ENOUGH
                   for pid, mine in self._read().items()
                   for name, count in mine.items())

    def counted(self) -> dict[int, dict[str, Any]]:
        """Calls, bytes and seconds since it was opened, by process."""
        seconds = time.monotonic() - self._begun
        calls, now = self._read(), _bytes(self._dump(), self._inodes)
        found = {}
        for pid, mine in calls.items():
            if pid in now and pid in self._before:
                (read, written), (then, before) = now[pid], self._before[pid]
                found[pid] = {
                    **{name: mine[name] - self._calls[pid][name] for name in mine},
                    "seconds": seconds, "bytes_read": read - then,
                    "bytes_written": written - before}
        return found

    def close(self) -> None:
        for mine in self._counters.values():
            for counter in [one for some in mine.values() for one in some]:
                os.close(counter)
        self._counters = {}
