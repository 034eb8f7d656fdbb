# SPDX-License-Identifier: GPL-2.0
"""Namespaces, links, and settings inside those namespaces: with loads.py the
only modules of mssab that touch the system.

Everything it makes is named mssab-*, and gone when the with-block ends.
"""
from __future__ import annotations

import ctypes
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from . import ethtool, loads, nic_move, nics, profiler
from .ends import RECEIVER, SENDER, Ends
from .experiment import Arm
from .errors import MssabError, NotSupported
from .grid import Cell
from .netns import command, counters, snmp, write_sysctls

#: Two, of which connect() takes the even one.
SOURCE_PORTS = "40000 40001"
ADDR_NO_RANDOMIZE = 0x0040000
_LIBC = ctypes.CDLL(None, use_errno=True)


def check_machine(module: bool = True) -> None:
    """Say at once what would fail later."""
    if os.geteuid() != 0:
        raise NotSupported("network namespaces need root; use sudo")
    if module and not has_module():
        raise NotSupported("the module mssfrac is not loaded; "
                           "insmod mssfrac.ko first")
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            raise NotSupported(f"no {tool} on PATH; install iproute2")


def has_module() -> bool:
    return Path("/proc/net/mssfrac").exists()


def _netem(namespace: str, device: str, cell: Cell, delay_ms: float,
           *more: str) -> None:
    command("tc", "-n", namespace, "qdisc", "add", "dev", device, "root",
            "netem", "limit", str(cell.queue_packets),
            "delay", f"{round(delay_ms * 1000)}us", *more)


def _impairments(cell: Cell) -> list[str]:
    """What netem does to the data on its way, beside the delay."""
    words = []
    if cell.ecn_mark_percent:
        words += ["loss", "random", f"{cell.ecn_mark_percent:g}%", "ecn"]
    if cell.loss_percent:
        words += ["loss", "random", f"{cell.loss_percent:g}%"]
    if cell.reorder_percent:
        words += ["reorder", f"{cell.reorder_percent:g}%"]
    return words


def _veth(cell: Cell) -> None:
    command("ip", "link", "add", "veth0", "netns", SENDER, "type", "veth",
            "peer", "name", "veth0", "netns", RECEIVER)
    for end, host in ((SENDER, 1), (RECEIVER, 2)):
        command("ip", "-n", end, "addr", "add", f"10.9.0.{host}/24",
                "dev", "veth0")
        command("ip", "-n", end, "addr", "add", f"fd09::{host}/64",
                "dev", "veth0", "nodad")
        command("ip", "-n", end, "link", "set", "veth0", "mtu",
                str(cell.mtu), "up")


def _features(cell: Cell, sender: str, receiver: str) -> None:
    """Offloads, route and queues of the ends' devices."""
    if not cell.gso:
        command("ip", "netns", "exec", SENDER, "ethtool", "-K", sender,
                "gso", "off", "tso", "off")
    if not cell.gro:
        command("ip", "netns", "exec", RECEIVER, "ethtool", "-K", receiver,
                "gro", "off")
    if cell.cwnd_max:
        command("ip", "-n", SENDER, "route", "change", "10.9.0.0/24", "dev",
                sender, "src", "10.9.0.1", "cwnd", "lock", str(cell.cwnd_max))
    # fq needs the sender's device for itself, and of a receiver elsewhere we
    # have no device: all delay on one way.
    share = (0.0, 1.0) if cell.qdisc else (1.0, 0.0) if not receiver \
        else (0.5, 0.5)
    if cell.qdisc:
        command("tc", "-n", SENDER, "qdisc", "add", "dev", sender, "root",
                cell.qdisc)
    rate = ["rate", f"{cell.rate_mbit:g}mbit"] if cell.rate_mbit else []
    for end, device, part, more in (
            (SENDER, sender, share[0], _impairments(cell) + rate),
            (RECEIVER, receiver, share[1], rate)):
        if device and ((part and cell.rtt_ms) or more):
            _netem(end, device, cell, cell.rtt_ms * part, *more)


def _devices(cell: Cell, ends: Ends) -> list[tuple[str, str]]:
    """Namespace and device of each end that is ours and has one."""
    if cell.link == "loopback":
        return []
    names = (cell.sender_interface, cell.receiver_interface) \
        if cell.link == nics.KIND else ("veth0", "veth0")
    return list(zip(ends.namespaces, names))


def _lo(cell: Cell) -> None:
    command("ip", "-n", SENDER, "link", "set", "lo", "up")
    if cell.window_segments and cell.rtt_ms:
        _netem(SENDER, "lo", cell, cell.rtt_ms / 2)


def _end_settings(cell: Cell) -> dict[str, object]:
    settings: dict[str, object] = {
        "net.ipv4.tcp_window_scaling": int(cell.window_scaling)}
    if cell.rcvbuf_max:
        size = cell.rcvbuf_max
        settings["net.ipv4.tcp_moderate_rcvbuf"] = 0
        settings["net.ipv4.tcp_rmem"] = f"4096 {size} {size}"
    if cell.window_segments:
        # The whole buffer is the window, and no transfer helps the next.
        settings["net.ipv4.tcp_app_win"] = 0
        settings["net.ipv4.tcp_no_metrics_save"] = 1
    if cell.ecn_mark_percent:
        settings["net.ipv4.tcp_ecn"] = 1
    return settings


#: What the testbed depends on; cells that agree in it share one.
_TOPOLOGY = attrgetter("link", *nics.KEYS, "mtu", "rtt_ms", "rcvbuf_max", "ipv6",
                       "window_scaling", "cwnd_max", "gso", "gro", "qdisc",
                       "ecn_mark_percent", "rate_mbit", "loss_percent",
                       "reorder_percent", "queue_packets")


def _ends_of(cell: Cell) -> Ends:
    if cell.link == "loopback":
        return Ends(SENDER, SENDER, "::1" if cell.ipv6 else "127.0.0.1")
    if cell.remote:
        return Ends(SENDER, "", cell.receiver_address)
    return Ends(SENDER, RECEIVER, "fd09::2" if cell.ipv6 else "10.9.0.2")


def _counted(ends: Ends) -> dict[str, dict[str, int]]:
    """Of each end: what the module counts, and what the kernel does."""
    return {end: (counters(end) if has_module() else {}) | snmp(end)
            for end in ends.namespaces}


def _grown(ends: Ends, before: dict[str, dict[str, int]]) \
        -> dict[str, dict[str, int]]:
    return {end: {key: value - before[end].get(key, 0)
                  for key, value in now.items()}
            for end, now in _counted(ends).items()}


def _interrupted() -> dict[str, int]:
    """Of the host, to be read where packets are counted: setting devices up
    interrupts, too."""
    return {"softirqs": softirqs(), "interrupts": interrupts()}


def _told(ends: Ends, raw: dict[str, Any],
          grown: dict[str, dict[str, int]]) -> dict[str, Any]:
    """What the load said, and beside it what the kernel counted: all of it in
    "counters", and what metrics are made of where the load does not tell."""
    sender = grown[ends.sender]
    return {
        "retransmits": sender["Tcp.RetransSegs"],
        "sent_segments": sender["Tcp.OutSegs"] + sender["Tcp.RetransSegs"],
        "packets": sum(end[key] for end in grown.values() for key in (
            "Tcp.InSegs", "Tcp.OutSegs", "Tcp.RetransSegs",
            "Udp.InDatagrams", "Udp.OutDatagrams")),
    } | raw | {"counters": {end: {key: value for key, value in some.items()
                                  if "." not in key}
                            for end, some in grown.items()}
               if has_module() else {}}


class Testbed:
    """The namespaces of the cells, those of one at a time."""

    def __init__(self) -> None:
        self._ends: Ends | None = None
        self._topology: Any = None

    def __enter__(self) -> Testbed:
        return self

    def __exit__(self, *_: object) -> None:
        self.tear_down()

    def tear_down(self) -> None:
        if self._ends:
            nic_move.put_back(self._ends.namespaces)
        for end in self._ends.namespaces if self._ends else ():
            subprocess.run(["ip", "netns", "del", end], check=False,
                           capture_output=True)
        self._ends = self._topology = None

    def _ends_for(self, cell: Cell, device: ethtool.Settings | None = None) \
            -> Ends:
        # Without a window of its own each transfer starts afresh.
        topology = _TOPOLOGY(cell), bool(cell.window_segments)
        if self._ends and cell.window_segments and topology == self._topology:
            return self._ends
        self.tear_down()
        ends = self._ends = _ends_of(cell)
        self._topology = topology
        for end in ends.namespaces:
            command("ip", "netns", "add", end)
        if cell.link == "loopback":
            _lo(cell)
        elif cell.link == nics.KIND:
            nic_move.keep(cell)
            nic_move.move(cell, ends)
        else:
            _veth(cell)
        # Before the link is up: rings and channels may take it down.
        for end, name in _devices(cell, ends):
            ethtool.write(name, device or {}, "ip", "netns", "exec", end)
        if cell.link == nics.KIND:
            nic_move.bring_up(cell, ends)
        if cell.link != "loopback":
            names = [name for _, name in _devices(cell, ends)]
            _features(cell, names[0], names[1] if names[1:] else "")
        for end in ends.namespaces:
            if end == ends.receiver or cell.window_segments:
                write_sysctls(end, _end_settings(cell))
        # The load itself cannot choose it; iperf3 and mssab-load do.
        if cell.congestion_control and cell.load in ("nuttcp", "netpipe"):
            write_sysctls(ends.sender, {"net.ipv4.tcp_congestion_control":
                                        cell.congestion_control})
        return ends

    def trial(self, arm: Arm, keys: Iterable[str], seed: int,
              sample: int = 0) -> dict[str, Any]:
        """One block of an experiment, in namespaces of its own: no metric,
        route, queue or connection of an earlier block is left.  @sample:
        pathprof follows 1 in so many packets; 0: it does not run."""
        assert arm.cell
        cell = replace(arm.cell, seed=seed)
        self.tear_down()
        try:
            ends = self.prepare(arm, keys, cell)
            with profiler.recording(sample, ends.address, cell.udp) if sample \
                    else nullcontext({}) as profile:
                before, were = _counted(ends), _interrupted()
                result = loads.run(cell, ends, aligned=True)
                grown, are = _grown(ends, before), _interrupted()
            return _told(ends, result, grown) | profile | {
                key: are[key] - were[key] for key in are}
        finally:
            self.tear_down()

    def trials(self, arm: Arm, keys: Iterable[str],
               count: int) -> list[dict[str, Any]]:
        """Some transfers at once, each from a port of its own."""
        assert arm.cell
        self.tear_down()
        try:
            ends = self.prepare(arm, keys, arm.cell)
            write_sysctls(ends.sender, {"net.ipv4.ip_local_port_range": "40000 49999"})
            return loads.several(arm.cell, ends, count)
        finally:
            self.tear_down()

    def prepare(self, arm: Arm, keys: Iterable[str], cell: Cell) -> Ends:
        """Namespaces with the settings of an arm, and those of @keys that it
        does not name at their start."""
        ends = self._ends_for(cell, arm.device)
        for end, sysctls in ((ends.sender, arm.sysctl_sender),
                             (ends.receiver, arm.sysctl_receiver)):
            if not end:
                continue  # elsewhere: not ours to set
            write_sysctls(end, {f"net.mssfrac.{key}": arm.module.get(
                key, _start_value(key)) for key in keys})
            # One port to connect from: it decides hashes, and so the arm.
            write_sysctls(end, {"net.ipv4.ip_local_port_range": SOURCE_PORTS}
                          | dict(sysctls))
        return ends

    def transfer(self, cell: Cell, arm: dict[str, int],
                 arms: Iterable[str]) -> dict[str, Any]:
        """One transfer of one arm: what was measured.  @arms: all settings
        that any arm names; those this one does not go back to their start."""
        ends = self._ends_for(cell)
        for end in ends.namespaces:
            write_sysctls(end, {f"net.mssfrac.{key}":
                                arm.get(key, _start_value(key))
                                for key in arms})
        before = _counted(ends)
        result = loads.run(cell, ends)
        return _told(ends, result, _grown(ends, before))


def _start_value(key: str) -> int:
    """Of a setting, as the module was loaded."""
    return int(Path("/sys/module/mssfrac/parameters", key).read_text("ascii"))


def sweep() -> None:
    """Take away what a killed run left: its loads, then its namespaces, and
    give back the interfaces in them.  To be called with the lock held."""
    nic_move.put_back((SENDER, RECEIVER))
    for end in (SENDER, RECEIVER):
        if not Path("/run/netns", end).exists():
            continue
        for pid in command("ip", "netns", "pids", end).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        command("ip", "netns", "del", end)


@contextmanager
def alone() -> Iterator[None]:
    """One mssab at a time on a machine: the names of its namespaces are fixed.
    The lock is an address, which ends with its holder and leaves no file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            lock.bind("\0mssab")
        except OSError as error:
            raise MssabError("another mssab runs on this machine; wait for "
                             "it to end") from error
        yield


def fix_addresses() -> None:
    """No random addresses in what is started from now on: where a program's
    pages lie decides how many instructions it takes to touch them."""
    _LIBC.personality(ADDR_NO_RANDOMIZE)


def cpu_times() -> tuple[int, int]:
    """Ticks of all CPUs since boot, and those stolen of them."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[7]


def interrupts() -> int:
    """Of the hardware, timers and other CPUs, since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if line.startswith("intr "):
                return int(line.split()[1])
    return 0


def softirqs() -> int:
    """Network receive interrupts handled since boot."""
    with open("/proc/softirqs", encoding="ascii") as file:
        for line in file:
            if "NET_RX" in line:
                return sum(map(int, line.split()[1:]))
    return 0


def module_version() -> str:
    """What tells one build of the module from another; "" if not loaded."""
    try:
        return Path("/sys/module/mssfrac/srcversion").read_text(
            "ascii").strip()
    except OSError:
        return "loaded" if has_module() else ""


def kernel() -> str:
    return os.uname().release
