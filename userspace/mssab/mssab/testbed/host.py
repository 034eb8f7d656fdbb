# SPDX-License-Identifier: GPL-2.0-only
"""The machine that mssab runs on: what it lacks, its kernel, its CPU time and
interrupts, and the lock that lets one mssab run at a time."""
from __future__ import annotations

import ctypes
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import MssabError, NotSupported
from ..experiment import module

ADDR_NO_RANDOMIZE = 0x0040000
TCP_CONGESTION = 13
_LIBC = ctypes.CDLL(None, use_errno=True)


def check(with_module: bool = True) -> None:
    """NotSupported for what would fail later."""
    if os.geteuid() != 0:
        raise NotSupported("network namespaces need root; use sudo")
    if with_module and not module.loaded():
        raise NotSupported("the module mssfrac is not loaded; "
                           "insmod mssfrac.ko first")
    for tool in ("ip", "tc"):
        if not shutil.which(tool):
            raise NotSupported(f"no {tool} on PATH; install iproute2")


def check_congestion_control(name: str) -> None:
    """NotSupported if the kernel has no congestion control of that name; one
    that is a module is loaded."""
    if not name:
        return
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        try:
            one.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION,
                           name.encode())
        except OSError as error:
            known = Path("/proc/sys/net/ipv4/"
                         "tcp_available_congestion_control").read_text()
            raise NotSupported(
                f"congestion_control = {name}: {error.strerror}; this kernel "
                f"has {', '.join(known.split())}") from error


@contextmanager
def alone() -> Iterator[None]:
    """One mssab at a time on a machine, because the names of its namespaces
    are fixed.  The lock is an abstract socket address: it ends with its holder
    and leaves no file."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:
        try:
            lock.bind("\0mssab")
        except OSError as error:
            raise MssabError("another mssab runs on this machine; wait for "
                             "it to end") from error
        yield


def fix_addresses() -> None:
    """No address randomisation in programs started from now on: the place of
    a program's pages decides how many instructions it takes to touch them."""
    _LIBC.personality(ADDR_NO_RANDOMIZE)


def kernel() -> str:
    return os.uname().release


def cpu_times() -> tuple[int, int]:
    """Ticks of all CPUs since boot, and those of them that were stolen."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[7]


def interrupts() -> int:
    """Interrupts since boot: devices, timers and other CPUs."""
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            if line.startswith("intr "):
                return int(line.split()[1])
    return 0


def softirqs() -> int:
    """Network receive softirqs since boot."""
    return sum(map(int, next(
        (line.split()[1:] for line in
         Path("/proc/softirqs").read_text("ascii").splitlines()
         if "NET_RX" in line), [])))
