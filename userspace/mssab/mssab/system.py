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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from . import loads
from .design import Arm
from .errors import MssabError, NotSupported
from .experiment import Cell

SENDER, RECEIVER = "mssab-tx", "mssab-rx"
#: Two, of which connect() takes the even one.
SOURCE_PORTS = "40000 40001"
CLONE_NEWNET = 0x40000000
ADDR_NO_RANDOMIZE = 0x0040000
_LIBC = ctypes.CDLL(None, use_errno=True)


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise MssabError(f"{' '.join(argv)}: {why}")
    return done.stdout


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


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Be in a namespace for the block: no process to start for each look."""
    with open("/proc/self/ns/net", "rb") as home, \
            open(f"/run/netns/{namespace}", "rb") as there:
        _setns(there.fileno())
        try:
            yield
        finally:
            _setns(home.fileno())


def _setns(fd: int) -> None:
    if _LIBC.setns(fd, CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "setns")


def _set(end: str, settings: dict[str, object]) -> None:
    """Write sysctls of one end."""
    with inside(end):
        for key, value in settings.items():
            path = Path("/proc/sys", key.replace(".", "/"))
            try:
                path.write_text(f"{value}\n", encoding="ascii")
            except OSError as error:
                raise MssabError(f"{key} = {value}: "
                                 f"{error.strerror}") from error


def counters(end: str) -> dict[str, int]:
    """/proc/net/mssfrac of one namespace."""
    with inside(end):
        # Not /proc/net: that is of the first thread, and cached.
        text = Path("/proc/thread-self/net/mssfrac").read_text("ascii")
    return {key: int(value) for key, value in
            (line.split() for line in text.splitlines())}


def _netem(namespace: str, device: str, cell: Cell, delay_ms: float,
           *more: str) -> None:
    _run("tc", "-n", namespace, "qdisc", "add", "dev", device, "root",
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
    _run("ip", "link", "add", "veth0", "netns", SENDER, "type", "veth",
         "peer", "name", "veth0", "netns", RECEIVER)
    for end, host in ((SENDER, 1), (RECEIVER, 2)):
        _run("ip", "-n", end, "addr", "add", f"10.9.0.{host}/24",
             "dev", "veth0")
        _run("ip", "-n", end, "addr", "add", f"fd09::{host}/64",
             "dev", "veth0", "nodad")
        _run("ip", "-n", end, "link", "set", "veth0", "mtu", str(cell.mtu),
             "up")
    if not cell.gso:
        _run("ip", "netns", "exec", SENDER, "ethtool", "-K", "veth0",
             "gso", "off", "tso", "off")
    if not cell.gro:
        _run("ip", "netns", "exec", RECEIVER, "ethtool", "-K", "veth0",
             "gro", "off")
    if cell.cwnd_max:
        _run("ip", "-n", SENDER, "route", "change", "10.9.0.0/24", "dev",
             "veth0", "src", "10.9.0.1", "cwnd", "lock", str(cell.cwnd_max))
    # fq needs the sender's device for itself: all delay on the way back.
    share = (0.0, 1.0) if cell.qdisc else (0.5, 0.5)
    if cell.qdisc:
        _run("tc", "-n", SENDER, "qdisc", "add", "dev", "veth0", "root",
             cell.qdisc)
    rate = ["rate", f"{cell.rate_mbit:g}mbit"] if cell.rate_mbit else []
    for end, part, more in ((SENDER, share[0], _impairments(cell) + rate),
                            (RECEIVER, share[1], rate)):
        if (part and cell.rtt_ms) or more:
            _netem(end, "veth0", cell, cell.rtt_ms * part, *more)


def _lo(cell: Cell) -> None:
    _run("ip", "-n", SENDER, "link", "set", "lo", "up")
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


@dataclass(frozen=True)
class Bed:
    """Two ends to send between; one namespace twice for loopback."""

    sender: str
    receiver: str
    address: str

    @property
    def ends(self) -> tuple[str, ...]:
        if self.sender == self.receiver:
            return (self.sender,)
        return (self.sender, self.receiver)


#: What a bed depends on; cells that agree in it share one.
_TOPOLOGY = attrgetter("link", "mtu", "rtt_ms", "rcvbuf_max", "ipv6",
                       "window_scaling", "cwnd_max", "gso", "gro", "qdisc",
                       "ecn_mark_percent", "rate_mbit", "loss_percent",
                       "reorder_percent", "queue_packets")


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
        for end in self._bed.ends if self._bed else ():
            subprocess.run(["ip", "netns", "del", end], check=False,
                           capture_output=True)
        self._bed = self._topology = None

    def _bed_for(self, cell: Cell) -> Bed:
        # Without a window of its own each transfer starts afresh.
        topology = _TOPOLOGY(cell), bool(cell.window_segments)
        if self._bed and cell.window_segments and topology == self._topology:
            return self._bed
        self.tear_down()
        loopback = cell.link == "loopback"
        address = "fd09::2" if cell.ipv6 else "10.9.0.2"
        if loopback:
            address = "::1" if cell.ipv6 else "127.0.0.1"
        self._bed = Bed(SENDER, SENDER if loopback else RECEIVER, address)
        self._topology = topology
        for end in self._bed.ends:
            _run("ip", "netns", "add", end)
        (_lo if loopback else _veth)(cell)
        for end in self._bed.ends:
            if end == self._bed.receiver or cell.window_segments:
                _set(end, _end_settings(cell))
        return self._bed

    def trial(self, arm: Arm, keys: Iterable[str],
              seed: int) -> dict[str, Any]:
        """One block of an experiment, in namespaces of its own: no metric,
        route, queue or connection of an earlier block is left."""
        assert arm.cell
        cell = replace(arm.cell, seed=seed)
        self.tear_down()
        try:
            bed = self.prepare(arm, keys, cell)
            before = self._counters(bed)
            result = loads.run(cell, bed.sender, bed.receiver, bed.address,
                               aligned=True)
            result["counters"] = {
                end: {key: value - before[end][key]
                      for key, value in now.items()}
                for end, now in self._counters(bed).items()}
            return result
        finally:
            self.tear_down()

    def trials(self, arm: Arm, keys: Iterable[str],
               count: int) -> list[dict[str, Any]]:
        """Some transfers at once, each from a port of its own."""
        assert arm.cell
        self.tear_down()
        try:
            bed = self.prepare(arm, keys, arm.cell)
            _set(bed.sender, {"net.ipv4.ip_local_port_range": "40000 49999"})
            return loads.several(arm.cell, bed.sender, bed.receiver,
                                 bed.address, count)
        finally:
            self.tear_down()

    def prepare(self, arm: Arm, keys: Iterable[str], cell: Cell) -> Bed:
        """Namespaces with the settings of an arm, and those of @keys that it
        does not name at their start."""
        bed = self._bed_for(cell)
        for end, sysctls in ((bed.sender, arm.sysctl_sender),
                             (bed.receiver, arm.sysctl_receiver)):
            _set(end, {f"net.mssfrac.{key}": arm.module.get(
                key, _start_value(key)) for key in keys})
            # One port to connect from: it decides hashes, and so the arm.
            _set(end, {"net.ipv4.ip_local_port_range": SOURCE_PORTS}
                 | dict(sysctls))
        return bed

    @staticmethod
    def _counters(bed: Bed) -> dict[str, dict[str, int]]:
        return {end: counters(end) for end in bed.ends} \
            if has_module() else {}

    def transfer(self, cell: Cell, arm: dict[str, int],
                 arms: Iterable[str]) -> dict[str, Any]:
        """One transfer of one arm: what was measured.  @arms: all settings
        that any arm names; those this one does not go back to their start."""
        bed = self._bed_for(cell)
        before = {}
        for end in bed.ends:
            _set(end, {f"net.mssfrac.{key}":
                       arm.get(key, _start_value(key)) for key in arms})
            before[end] = counters(end)
        result = loads.run(cell, bed.sender, bed.receiver, bed.address)
        result["counters"] = {
            end: {key: value - before[end][key]
                  for key, value in counters(end).items()}
            for end in bed.ends}
        return result


def _start_value(key: str) -> int:
    """Of a setting, as the module was loaded."""
    return int(Path("/sys/module/mssfrac/parameters", key).read_text("ascii"))


def sweep() -> None:
    """Take away what a killed run left: its loads, then its namespaces.  To be
    called with the lock held."""
    for end in (SENDER, RECEIVER):
        if not Path("/run/netns", end).exists():
            continue
        for pid in _run("ip", "netns", "pids", end).split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        _run("ip", "netns", "del", end)


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
