# SPDX-License-Identifier: GPL-2.0-only
"""A load in a testbed, with what the kernel and the module count meanwhile."""
from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from ..experiment import module
from ..experiment.cell import LOOPBACK, Cell
from ..experiment.experiment import Arm
from ..netns import counters, snmp, write_sysctls
from ..testbed import host
from ..testbed.ends import Ends
from ..testbed.testbed import (
    MANY_SOURCE_PORTS,
    PORT_RANGE,
    Testbed,
    devices,
    write_module,
)
from . import loads, observer

Counts = dict[str, dict[str, int]]


def _counts(between: Ends) -> Counts:
    """The counters of the module and of the kernel, for each end."""
    return {end: (counters(end) if module.loaded() else {}) | snmp(end)
            for end in between.namespaces}


def _growth(between: Ends, before: Counts) -> Counts:
    return {end: {key: value - before[end].get(key, 0)
                  for key, value in now.items()}
            for end, now in _counts(between).items()}


def _interrupts() -> dict[str, int]:
    """Of the machine.  Read where packets are counted, because setting up
    devices interrupts too."""
    return {"softirqs": host.softirqs(), "interrupts": host.interrupts()}


def _with_counts(between: Ends, raw: dict[str, Any],
                 grown: Counts) -> dict[str, Any]:
    """What the load reported, completed by what the kernel counted: the
    module's counters in "counters", and what metrics need where the load does
    not report it."""
    def of(ends: Iterable[str], *keys: str) -> int:
        return sum(grown[end].get(key, 0) for end in ends for key in keys)
    return {
        "retransmits": of(between.senders, "Tcp.RetransSegs"),
        "sent_segments": of(between.senders, "Tcp.OutSegs",
                            "Tcp.RetransSegs"),
        "csum_errors": of(between.namespaces, "Tcp.InCsumErrors",
                          "Ip.InHdrErrors"),
        "packets": sum(end[key] for end in grown.values() for key in (
            "Tcp.InSegs", "Tcp.OutSegs", "Tcp.RetransSegs",
            "Udp.InDatagrams", "Udp.OutDatagrams")),
    } | raw | {"counters": {end: {key: value for key, value in some.items()
                                  if "." not in key}
                            for end, some in grown.items()}
               if module.loaded() else {}}


def transfer(bed: Testbed, cell: Cell, arm: dict[str, int],
             keys: Iterable[str]) -> dict[str, Any]:
    """One transfer of a grid's arm: what was measured.  @keys: settings of
    the module that any arm names."""
    between = bed.set_up(cell)
    for end in between.namespaces:
        write_module(end, arm, keys)
    before = _counts(between)
    result = loads.run(cell, between)
    return _with_counts(between, result, _growth(between, before))


def block(bed: Testbed, arm: Arm, keys: Iterable[str], seed: int,
          sample: int = 0) -> dict[str, Any]:
    """One block of an experiment, in namespaces of its own: no metric,
    route, queue or connection of an earlier block is left.  @sample:
    pathprof follows 1 in so many packets; 0: it does not run."""
    assert arm.cell
    cell = replace(arm.cell, seed=seed)
    bed.tear_down()
    try:
        between = bed.prepare(arm, keys, cell)
        recording: AbstractContextManager[dict[str, Any]] = \
            observer.recording(sample, between.address, cell.udp) \
            if sample else nullcontext(dict[str, Any]())
        ours = () if cell.link == LOOPBACK else devices(cell, between)
        with recording as profile, observer.beside(
                cell, between, ours[-1][1] if ours else "lo") as seen:
            before, were = _counts(between), _interrupts()
            result = loads.run(cell, between, aligned=True)
            grown, are = _growth(between, before), _interrupts()
        return _with_counts(between, result, grown) | profile | seen | {
            key: are[key] - were[key] for key in are}
    finally:
        bed.tear_down()


def connections(bed: Testbed, arm: Arm, keys: Iterable[str],
                count: int) -> list[dict[str, Any]]:
    """So many transfers at once, each from a port of its own."""
    assert arm.cell
    bed.tear_down()
    try:
        between = bed.prepare(arm, keys, arm.cell)
        write_sysctls(between.sender, {PORT_RANGE: MANY_SOURCE_PORTS})
        return loads.several(arm.cell, (between,) * count)
    finally:
        bed.tear_down()
