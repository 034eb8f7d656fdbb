# SPDX-License-Identifier: GPL-2.0-only
"""The testbed: namespaces, links and settings of a cell, and a transfer in
them with what the kernel counts meanwhile.

Everything it makes is named mssab-* and gone when the with-block ends.
"""
from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from . import (
    bridge,
    cwnd_lock,
    ends,
    ethtool,
    host,
    loads,
    module,
    netem,
    nic_move,
    observer,
    profiler,
)
from .cell import INTERFACES, KEYS, LOOPBACK, Cell
from .ends import SENDER, Ends
from .errors import MssabError
from .experiment import Arm
from .netns import command, counters, snmp, write_sysctls

#: Two ports, of which connect() takes the even one.
SOURCE_PORTS = "40000 40001"
MANY_SOURCE_PORTS = "40000 49999"
PORT_RANGE = "net.ipv4.ip_local_port_range"
#: Cells that agree in these keys can share namespaces and links.
_SHAPE = attrgetter(*(name for name, key in KEYS.items()
                      if key.shapes_testbed))


# --- Links ------------------------------------------------------------------

def _devices(cell: Cell, between: Ends) -> list[tuple[str, str]]:
    """Namespace and device of each end on this machine, the senders first."""
    if cell.link != INTERFACES:
        return [(end, "veth0") for end in between.namespaces]
    # A receiver on another machine has no namespace here.
    return list(zip(between.namespaces, (
        cell.sender_interface, cell.receiver_interface), strict=False))


def _set_offloads(cell: Cell, senders: list[tuple[str, str]],
                  receivers: list[tuple[str, str]]) -> None:
    for name, key in KEYS.items():
        if not key.offloads or getattr(cell, name) == key.default:
            continue
        for end, device in receivers if key.at_receiver else senders:
            where = "ip", "netns", "exec", end
            before = ethtool.on(device, *where)
            command(*where, "ethtool", "-K", device,
                    *(word for offload in key.offloads
                      for word in (offload, "off")))
            if ethtool.on(device, *where) == before:
                raise MssabError(f"{name} = false changes nothing: {device} has "
                                 "it off already (a veth device has GRO off)")


def _set_queues(cell: Cell, between: Ends,
                devices: list[tuple[str, str]]) -> None:
    """Queue lengths, queueing disciplines and netem."""
    count = len(between.senders)
    senders, receivers = devices[:count], devices[count:]
    _set_offloads(cell, senders, receivers)
    if cell.cwnd_max:
        cwnd_lock.lock(cell, between, devices[0][1])
    for end, name in senders if cell.txqueuelen else ():
        # pfifo_fast reads it when it is attached, below.
        command("ip", "-n", end, "link", "set", name, "txqueuelen",
                str(cell.txqueuelen))
    if cell.bridge:
        netem.on_bridge(cell, senders, [
            (bridge.SWITCH, bridge.port(end)) for end in between.receivers],
            receivers)
    else:
        netem.on_devices(cell, devices)
    for end, name in receivers:
        netem.on_received(cell, end, name)


def _cell_sysctls(cell: Cell, everywhere: bool) -> dict[str, object]:
    """The sysctls of the receiver; @everywhere: only those of both ends."""
    return {name: value for key_name, key in KEYS.items()
            if key.sysctls and (key.both_ends or not everywhere)
            for name, value in key.sysctls(getattr(cell, key_name)).items()}


# --- Counters ---------------------------------------------------------------

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


# --- The testbed ------------------------------------------------------------

class Testbed:
    """The namespaces of one cell at a time."""

    __test__ = False  # not a test of pytest's

    def __init__(self) -> None:
        self._ends: Ends | None = None
        self._shape: Any = None

    def __enter__(self) -> Testbed:
        return self

    def __exit__(self, *_: object) -> None:
        self.tear_down()

    def tear_down(self) -> None:
        namespaces = self._ends.namespaces if self._ends else ()
        if namespaces:
            nic_move.put_back(namespaces)
        for end in namespaces:
            subprocess.run(["ip", "netns", "del", end], check=False,
                           capture_output=True)
        bridge.remove()
        self._ends = self._shape = None

    def _set_up(self, cell: Cell, device: ethtool.Settings | None = None) \
            -> Ends:
        """The cell's namespaces and links; those that are there if they have
        the same shape.  @device: settings of the ends' devices."""
        # Without a window of its own each transfer gets fresh namespaces.
        shape = _SHAPE(cell), bool(cell.window_segments)
        if self._ends and cell.window_segments and shape == self._shape:
            return self._ends
        self.tear_down()
        between = self._ends = ends.of(cell)
        self._shape = shape
        for end in between.namespaces:
            command("ip", "netns", "add", end)
        if cell.link == LOOPBACK:
            command("ip", "-n", SENDER, "link", "set", "lo", "up")
            netem.on_loopback(cell, SENDER)
        else:
            self._connect(cell, between, device or {})
        for end in between.namespaces:
            of_receiver = end in between.receivers or bool(cell.window_segments)
            write_sysctls(end, _cell_sysctls(cell, not of_receiver))
        # These loads cannot choose it themselves; iperf3 and tcpload can.
        if cell.congestion_control and cell.load in ("nuttcp", "netpipe"):
            write_sysctls(between.sender, {
                "net.ipv4.tcp_congestion_control": cell.congestion_control})
        return between

    @staticmethod
    def _connect(cell: Cell, between: Ends, device: ethtool.Settings) -> None:
        """The link between the ends, with the settings of its devices."""
        if cell.link == INTERFACES:
            nic_move.keep(cell)
            nic_move.move(cell, between)
        else:
            bridge.connect(cell, between)
        devices = _devices(cell, between)
        # Before the link is up: rings and channels may take it down.
        for end, name in devices:
            ethtool.write(name, device, "ip", "netns", "exec", end)
        if cell.link == INTERFACES:
            nic_move.bring_up(cell, between)
        _set_queues(cell, between, devices)

    def trial(self, arm: Arm, keys: Iterable[str], seed: int,
              sample: int = 0) -> dict[str, Any]:
        """One block of an experiment, in namespaces of its own: no metric,
        route, queue or connection of an earlier block is left.  @sample:
        pathprof follows 1 in so many packets; 0: it does not run."""
        assert arm.cell
        cell = replace(arm.cell, seed=seed)
        self.tear_down()
        try:
            between = self.prepare(arm, keys, cell)
            recording: AbstractContextManager[dict[str, Any]] = \
                profiler.recording(sample, between.address, cell.udp) \
                if sample else nullcontext(dict[str, Any]())
            devices = () if cell.link == LOOPBACK else _devices(cell, between)
            with recording as profile, observer.beside(
                    cell, between, devices[-1][1] if devices else "lo") as seen:
                before, were = _counts(between), _interrupts()
                result = loads.run(cell, between, aligned=True)
                grown, are = _growth(between, before), _interrupts()
            return _with_counts(between, result, grown) | profile | seen | {
                key: are[key] - were[key] for key in are}
        finally:
            self.tear_down()

    def trials(self, arm: Arm, keys: Iterable[str],
               count: int) -> list[dict[str, Any]]:
        """So many transfers at once, each from a port of its own."""
        assert arm.cell
        self.tear_down()
        try:
            between = self.prepare(arm, keys, arm.cell)
            write_sysctls(between.sender, {PORT_RANGE: MANY_SOURCE_PORTS})
            return loads.several(arm.cell, (between,) * count)
        finally:
            self.tear_down()

    def prepare(self, arm: Arm, keys: Iterable[str], cell: Cell) -> Ends:
        """Namespaces with the settings of an arm.  Settings of the module in
        @keys that the arm does not name get their start values."""
        between = self._set_up(cell, arm.device)
        for ends_of, sysctls in ((between.senders, arm.sysctl_sender),
                                 (between.receivers, arm.sysctl_receiver)):
            for end in ends_of:
                _write_module(end, arm.module, keys)
                # One port to connect from, because it decides hashes and
                # thereby the arm.
                write_sysctls(end, {PORT_RANGE: SOURCE_PORTS if cell.transfers
                                    == 1 else MANY_SOURCE_PORTS} | dict(sysctls))
        return between

    def transfer(self, cell: Cell, arm: dict[str, int],
                 keys: Iterable[str]) -> dict[str, Any]:
        """One transfer of a grid's arm: what was measured.  @keys: settings of
        the module that any arm names."""
        between = self._set_up(cell)
        for end in between.namespaces:
            _write_module(end, arm, keys)
        before = _counts(between)
        result = loads.run(cell, between)
        return _with_counts(between, result, _growth(between, before))


def _write_module(end: str, values: dict[str, int],
                  keys: Iterable[str]) -> None:
    write_sysctls(end, {
        f"net.mssfrac.{key}": values[key] if key in values
        else module.start_value(key) for key in keys})


def sweep() -> None:
    """Remove what a killed mssab left: its loads, its namespaces; and return
    the interfaces in them.  The caller holds the lock (host.alone)."""
    left = sorted(path.name for path in Path("/run/netns").glob("mssab-*"))
    nic_move.put_back(left)
    for end in left:
        for pid in command("ip", "netns", "pids", end).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        command("ip", "netns", "del", end)
