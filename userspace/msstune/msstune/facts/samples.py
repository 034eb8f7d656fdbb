# SPDX-License-Identifier: GPL-2.0-only
"""Samples which module of the kernel each CPU executes.  Reads only.

The samples are a clock's, so they need no packets, and the error of a share follows
from their number.  What is not in a module is counted together: its symbols take long
to read.
"""
from __future__ import annotations

import bisect
import mmap
import os
import struct
from pathlib import Path
from typing import Any

from . import perf_events

#: ns of a CPU's time between two samples: 2 us of work in 5 ms.
PERIOD = 5_000_000
PAGES = 16          # of samples that the kernel keeps for a CPU, a power of two
MOST = 256          # CPUs that are watched
#: Of perf_event.h; a sample then is an address, a process and a thread.
SAMPLE_IP, SAMPLE_TID, RECORD_SAMPLE = 1, 2, 9
_SAMPLE = struct.Struct("=QII")
_HEAD = struct.Struct("=IHH")           # struct perf_event_header
#: Of struct perf_event_mmap_page: data_head and data_tail.
HEAD, TAIL = 1024, 1032


def modules(path: Path = Path("/proc/modules")) -> list[tuple[int, int, str]]:
    """Begin, end and name of each module in memory, in order; only root sees them."""
    found = []
    for line in path.read_text("ascii").splitlines():
        name, size, *rest = line.split()
        begin = int(next(word for word in reversed(rest) if word.startswith("0x")), 16)
        if begin:
            found.append((begin, begin + int(size), name))
    return sorted(found)


def named(address: int, known: list[tuple[int, int, str]]) -> str:
    """The module that holds an address; "kernel"."""
    at = bisect.bisect_right(known, (address, 1 << 64, "")) - 1
    return known[at][2] if at >= 0 and address < known[at][1] else "kernel"


def joined(samples: dict[str, dict[str, int]]) -> dict[str, int]:
    """Samples of all CPUs, by module."""
    found = dict[str, int]()
    for some in samples.values():
        for name, count in some.items():
            found[name] = found.get(name, 0) + count
    return found


class Sampler:
    """Samples of these CPUs, in the kernel only, without idle time in it.  @own: the
    processes that watch, whose work is no traffic's."""

    def __init__(self, cpus: list[int], own: set[int]) -> None:
        self._page = mmap.PAGESIZE
        self._rings: list[tuple[int, int, mmap.mmap]] = []  # CPU, event, samples
        self._seen: list[tuple[int, int]] = []  # CPU and address
        self._own = own
        try:
            for cpu in cpus[:MOST]:
                event = perf_events.clock(
                    cpu, PERIOD, SAMPLE_IP | SAMPLE_TID,
                    perf_events.EXCLUDE_USER | perf_events.EXCLUDE_IDLE)
                try:
                    self._rings.append((cpu, event, mmap.mmap(
                        event, (1 + PAGES) * self._page)))
                except BaseException:
                    os.close(event)
                    raise
        except BaseException:
            self.close()
            raise

    def drain(self) -> None:
        """Take what was sampled, before the kernel has no room for more."""
        for cpu, _, ring in self._rings:
            head, = struct.unpack_from("=Q", ring, HEAD)
            tail, = struct.unpack_from("=Q", ring, TAIL)
            data = ring[self._page:]
            while tail < head:
                at = tail % len(data)
                kind, _, size = _HEAD.unpack(self._piece(data, at, _HEAD.size))
                if size < _HEAD.size:
                    break
                if kind == RECORD_SAMPLE:
                    address, process, _ = _SAMPLE.unpack(self._piece(
                        data, at + _HEAD.size, _SAMPLE.size))
                    if process not in self._own:
                        self._seen.append((cpu, address))
                tail += size
            struct.pack_into("=Q", ring, TAIL, head)

    @staticmethod
    def _piece(data: bytes, at: int, size: int) -> bytes:
        """Bytes of the ring, which may continue at its beginning."""
        at %= len(data)
        return (data[at:at + size] + data[:size])[:size]

    def counted(self) -> dict[str, Any]:
        """Samples by CPU and module."""
        self.drain()
        known, found = modules(), dict[str, dict[str, int]]()
        for cpu, address in self._seen:
            mine, name = found.setdefault(str(cpu), {}), named(address, known)
            mine[name] = mine.get(name, 0) + 1
        return found

    def close(self) -> None:
        for _, event, ring in self._rings:
            ring.close()
            os.close(event)
        self._rings = []
