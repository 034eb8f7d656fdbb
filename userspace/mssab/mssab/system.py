# SPDX-License-Identifier: GPL-2.0
"""Namespaces, links, and settings inside those namespaces: with loads.py the
only modules of mssab that touch the system.

Everything it makes is named mssab-*, and gone when the with-block ends.
"""
from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import loads
from .errors import MssabError, NotSupported
from .experiment import Cell

SENDER, RECEIVER = "mssab-tx", "mssab-rx"
ADDRESS = "10.9.0.2"


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise MssabError(f"{' '.join(argv)}: {why}")
    return done.stdout


def check_machine() -> None:
    """Say at once what would fail later."""
    if os.geteuid() != 0:
        raise NotSupported("network namespaces need root; use sudo")
    if not Path("/proc/net/mssfrac").exists():
        raise NotSupported("the module mssfrac is not loaded; "
                           "insmod mssfrac.ko first")
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            raise NotSupported(f"no {tool} on PATH; install iproute2")


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

    def set(self, end: str, settings: dict[str, object]) -> None:
        """Write sysctls of one end."""
        if settings:
            _run("ip", "netns", "exec", end, "sysctl", "-qw",
                 *(f"{key}={value}" for key, value in settings.items()))


def _veth(cell: Cell) -> None:
    _run("ip", "link", "add", "veth0", "netns", SENDER, "type", "veth",
         "peer", "name", "veth0", "netns", RECEIVER)
    for end, address in ((SENDER, "10.9.0.1"), (RECEIVER, ADDRESS)):
        _run("ip", "-n", end, "addr", "add", f"{address}/24", "dev", "veth0")
        _run("ip", "-n", end, "link", "set", "veth0", "mtu", str(cell.mtu),
             "up")
        if cell.rtt_ms:
            _run("tc", "-n", end, "qdisc", "add", "dev", "veth0", "root",
                 "netem", "limit", "10000", "delay",
                 f"{round(cell.rtt_ms * 500)}us")


def _receiver_settings(cell: Cell) -> dict[str, object]:
    settings: dict[str, object] = {
        "net.ipv4.tcp_window_scaling": int(cell.window_scaling)}
    if cell.rcvbuf_max:
        size = cell.rcvbuf_max
        settings["net.ipv4.tcp_moderate_rcvbuf"] = 0
        settings["net.ipv4.tcp_rmem"] = f"4096 {size} {size}"
    return settings


@contextmanager
def bed(cell: Cell) -> Iterator[Bed]:
    """The topology of one cell, fresh, with its receiver settings."""
    loopback = cell.link == "loopback"
    made = Bed(SENDER, SENDER if loopback else RECEIVER,
               "127.0.0.1" if loopback else ADDRESS)
    try:
        for end in made.ends:
            _run("ip", "netns", "add", end)
        if loopback:
            _run("ip", "-n", SENDER, "link", "set", "lo", "up")
        else:
            _veth(cell)
        made.set(made.receiver, _receiver_settings(cell))
        yield made
    finally:
        for end in made.ends:
            subprocess.run(["ip", "netns", "del", end], check=False,
                           capture_output=True)


def counters(end: str) -> dict[str, int]:
    """/proc/net/mssfrac of one namespace."""
    text = _run("ip", "netns", "exec", end, "cat", "/proc/net/mssfrac")
    return {key: int(value) for key, value in
            (line.split() for line in text.splitlines())}


def transfer(cell: Cell, arm: dict[str, int]) -> dict[str, Any]:
    """One transfer of one arm in fresh namespaces: what was measured."""
    with bed(cell) as made:
        for end in made.ends:
            made.set(end, {f"net.mssfrac.{k}": v for k, v in arm.items()})
        result = loads.run(cell, made.sender, made.receiver, made.address)
        result["counters"] = {end: counters(end) for end in made.ends}
        return result


def kernel() -> str:
    return os.uname().release
