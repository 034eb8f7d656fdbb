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

from . import devices, interfaces, links, loads, profiler
from .bed import RECEIVER, SENDER, Bed
from .design import Arm
from .errors import MssabError, NotSupported
from .experiment import Cell
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


def _devices(cell: Cell, bed: Bed) -> list[tuple[str, str]]:
    """Namespace and device of each end that is ours and has one."""
    if cell.link == "loopback":
        return []
    names = (cell.sender_interface, cell.receiver_interface) \
        if cell.link == links.KIND else ("veth0", "veth0")
    return list(zip(bed.ends, names))


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


#: What a bed depends on; cells that agree in it share one.
_TOPOLOGY = attrgetter("link", *links.KEYS, "mtu", "rtt_ms", "rcvbuf_max", "ipv6",
                       "window_scaling", "cwnd_max", "gso", "gro", "qdisc",
                       "ecn_mark_percent", "rate_mbit", "loss_percent",
                       "reorder_percent", "queue_packets")


def _bed(cell: Cell) -> Bed:
    if cell.link == "loopback":
        return Bed(SENDER, SENDER, "::1" if cell.ipv6 else "127.0.0.1")
    if cell.remote:
        return Bed(SENDER, "", cell.receiver_address)
    return Bed(SENDER, RECEIVER, "fd09::2" if cell.ipv6 else "10.9.0.2")


def _counted(bed: Bed) -> dict[str, dict[str, int]]:
    """Of each end: what the module counts, and what the kernel does."""
    return {end: (counters(end) if has_module() else {}) | snmp(end)
            for end in bed.ends}


def _grown(bed: Bed, before: dict[str, dict[str, int]]) \
        -> dict[str, dict[str, int]]:
    return {end: {key: value - before[end].get(key, 0)
                  for key, value in now.items()}
            for end, now in _counted(bed).items()}


def _interrupted() -> dict[str, int]:
    """Of the host, to be read where packets are counted: setting devices up
    interrupts, too."""
    return {"softirqs": softirqs(), "interrupts": interrupts()}


def _told(bed: Bed, raw: dict[str, Any],
          grown: dict[str, dict[str, int]]) -> dict[str, Any]:
    """What the load said, and beside it what the kernel counted: all of it in
    "counters", and what metrics are made of where the load does not tell."""
    sender = grown[bed.sender]
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


class Lab:
    """The namespaces of the cells, one bed at a time."""

    def __init__(self) -> None:
        self._bed: Bed | None = None
        self._topology: Any = None

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: object) -> None:
        self.tear_down()

    def tear_down(self) -> None:
        if self._bed:
            interfaces.put_back(self._bed.ends)
        for end in self._bed.ends if self._bed else ():
            subprocess.run(["ip", "netns", "del", end], check=False,
                           capture_output=True)
        self._bed = self._topology = None

    def _bed_for(self, cell: Cell, device: devices.Settings | None = None) \
            -> Bed:
        # Without a window of its own each transfer starts afresh.
        topology = _TOPOLOGY(cell), bool(cell.window_segments)
        if self._bed and cell.window_segments and topology == self._topology:
            return self._bed
        self.tear_down()
        bed = self._bed = _bed(cell)
        self._topology = topology
        for end in bed.ends:
            command("ip", "netns", "add", end)
        if cell.link == "loopback":
            _lo(cell)
        elif cell.link == links.KIND:
            interfaces.keep(cell)
            interfaces.move(cell, bed)
        else:
            _veth(cell)
        # Before the link is up: rings and channels may take it down.
        for end, name in _devices(cell, bed):
            devices.write(name, device or {}, "ip", "netns", "exec", end)
        if cell.link == links.KIND:
            interfaces.bring_up(cell, bed)
        if cell.link != "loopback":
            names = [name for _, name in _devices(cell, bed)]
            _features(cell, names[0], names[1] if names[1:] else "")
        for end in bed.ends:
            if end == bed.receiver or cell.window_segments:
                write_sysctls(end, _end_settings(cell))
        # The load itself cannot choose it; iperf3 and mssab-load do.
        if cell.congestion_control and cell.load in ("nuttcp", "netpipe"):
            write_sysctls(bed.sender, {"net.ipv4.tcp_congestion_control":
                                       cell.congestion_control})
        return bed

    def trial(self, arm: Arm, keys: Iterable[str], seed: int,
              sample: int = 0) -> dict[str, Any]:
        """One block of an experiment, in namespaces of its own: no metric,
        route, queue or connection of an earlier block is left.  @sample:
        pathprof follows 1 in so many packets; 0: it does not run."""
        assert arm.cell
        cell = replace(arm.cell, seed=seed)
        self.tear_down()
        try:
            bed = self.prepare(arm, keys, cell)
            with profiler.recording(sample, bed.address, cell.udp) if sample \
                    else nullcontext({}) as profile:
                before, were = _counted(bed), _interrupted()
                result = loads.run(cell, bed, aligned=True)
                grown, are = _grown(bed, before), _interrupted()
            return _told(bed, result, grown) | profile | {
                key: are[key] - were[key] for key in are}
        finally:
            self.tear_down()

    def trials(self, arm: Arm, keys: Iterable[str],
               count: int) -> list[dict[str, Any]]:
        """Some transfers at once, each from a port of its own."""
        assert arm.cell
        self.tear_down()
        try:
            bed = self.prepare(arm, keys, arm.cell)
            write_sysctls(bed.sender, {"net.ipv4.ip_local_port_range": "40000 49999"})
            return loads.several(arm.cell, bed, count)
        finally:
            self.tear_down()

    def prepare(self, arm: Arm, keys: Iterable[str], cell: Cell) -> Bed:
        """Namespaces with the settings of an arm, and those of @keys that it
        does not name at their start."""
        bed = self._bed_for(cell, arm.device)
        for end, sysctls in ((bed.sender, arm.sysctl_sender),
                             (bed.receiver, arm.sysctl_receiver)):
            if not end:
                continue  # elsewhere: not ours to set
            write_sysctls(end, {f"net.mssfrac.{key}": arm.module.get(
                key, _start_value(key)) for key in keys})
            # One port to connect from: it decides hashes, and so the arm.
            write_sysctls(end, {"net.ipv4.ip_local_port_range": SOURCE_PORTS}
                          | dict(sysctls))
        return bed

    def transfer(self, cell: Cell, arm: dict[str, int],
                 arms: Iterable[str]) -> dict[str, Any]:
        """One transfer of one arm: what was measured.  @arms: all settings
        that any arm names; those this one does not go back to their start."""
        bed = self._bed_for(cell)
        for end in bed.ends:
            write_sysctls(end, {f"net.mssfrac.{key}":
                                arm.get(key, _start_value(key))
                                for key in arms})
        before = _counted(bed)
        result = loads.run(cell, bed)
        return _told(bed, result, _grown(bed, before))


def _start_value(key: str) -> int:
    """Of a setting, as the module was loaded."""
    return int(Path("/sys/module/mssfrac/parameters", key).read_text("ascii"))


def sweep() -> None:
    """Take away what a killed run left: its loads, then its namespaces, and
    give back the interfaces in them.  To be called with the lock held."""
    interfaces.put_back((SENDER, RECEIVER))
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
