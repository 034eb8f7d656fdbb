# SPDX-License-Identifier: GPL-2.0-only
"""The testbed: namespaces, links and settings of a cell.

Everything it makes is named mssab-* and gone when the with-block ends.
"""
from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..errors import MssabError
from ..experiment import module
from ..experiment.cell import INTERFACES, KEYS, LOOPBACK, Cell
from ..experiment.device import Settings
from ..experiment.experiment import Arm
from ..netns import command, write_sysctls
from . import bridge, cwnd_lock, ends, ethtool, netem, nic_move
from .ends import SENDER, Ends

#: Two ports, of which connect() takes the even one.
SOURCE_PORTS = "40000 40001"
MANY_SOURCE_PORTS = "40000 49999"
PORT_RANGE = "net.ipv4.ip_local_port_range"
#: Cells that agree in these keys can share namespaces and links.
_SHAPE = attrgetter(*(name for name, key in KEYS.items()
                      if key.shapes_testbed))


# --- Links ------------------------------------------------------------------

def devices(cell: Cell, between: Ends) -> list[tuple[str, str]]:
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

    def set_up(self, cell: Cell, device: Settings | None = None) \
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
    def _connect(cell: Cell, between: Ends, device: Settings) -> None:
        """The link between the ends, with the settings of its devices."""
        if cell.link == INTERFACES:
            nic_move.keep(cell)
            nic_move.move(cell, between)
        else:
            bridge.connect(cell, between)
        ours = devices(cell, between)
        # Before the link is up: rings and channels may take it down.
        for end, name in ours:
            ethtool.write(name, device, "ip", "netns", "exec", end)
        if cell.link == INTERFACES:
            nic_move.bring_up(cell, between)
        _set_queues(cell, between, ours)

    def prepare(self, arm: Arm, keys: Iterable[str], cell: Cell) -> Ends:
        """Namespaces with the settings of an arm.  Settings of the module in
        @keys that the arm does not name get their start values."""
        between = self.set_up(cell, arm.device)
        for ends_of, sysctls in ((between.senders, arm.sysctl_sender),
                                 (between.receivers, arm.sysctl_receiver)):
            for end in ends_of:
                write_module(end, arm.module, keys)
                # One port to connect from, because it decides hashes and
                # thereby the arm.
                write_sysctls(end, {PORT_RANGE: SOURCE_PORTS if cell.transfers
                                    == 1 else MANY_SOURCE_PORTS} | dict(sysctls))
        return between


def write_module(end: str, values: dict[str, int],
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
