# SPDX-License-Identifier: GPL-2.0-only
"""Opens events of the kernel's perf subsystem (perf_event_open(2)).

They are counters and samples of this process: the kernel removes each when its file
descriptor is closed, so they also end with a killed msstune.
"""
from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

from ..errors import NotSupported

#: The number of the system call, by machine.
_CALL = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "loongarch64": 241,
         "ppc64le": 319, "s390x": 331}
_LIBC = ctypes.CDLL(None, use_errno=True)
#: struct perf_event_attr up to config2 (PERF_ATTR_SIZE_VER1).
_ATTR = struct.Struct("=IIQQQQQIIQQ")
#: Bits of its flags.
EXCLUDE_USER, EXCLUDE_IDLE = 1 << 4, 1 << 7
CLOEXEC = 8
SOFTWARE, CPU_CLOCK = 1, 0
KPROBES = Path("/sys/bus/event_source/devices/kprobe/type")


def _open(attributes: bytes, pid: int, cpu: int) -> int:
    number = _CALL.get(os.uname().machine)
    if number is None:
        raise NotSupported(f"perf events on {os.uname().machine}")
    found = _LIBC.syscall(ctypes.c_long(number), attributes, ctypes.c_int(pid),
                          ctypes.c_int(cpu), ctypes.c_int(-1), ctypes.c_ulong(CLOEXEC))
    if found < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return int(found)


def calls(function: str, task: int) -> int:
    """A counter of a kernel function's calls by one task.

    Not by those that it starts meanwhile: to inherit such an event the kernel reads
    the function's name again, from memory of the task that forks, and fork fails
    with EFAULT (perf_kprobe_init()).
    """
    kind = int(KPROBES.read_text("ascii"))
    name = ctypes.create_string_buffer(function.encode())
    return _open(_ATTR.pack(kind, _ATTR.size, 0, 0, 0, 0, 0, 0, 0,
                            ctypes.addressof(name), 0), task, -1)


def count(counter: int) -> int:
    return int(struct.unpack("=Q", os.read(counter, 8))[0])


def clock(cpu: int, period_ns: int, sample: int, flags: int) -> int:
    """Samples of what a CPU does, one in @period_ns."""
    return _open(_ATTR.pack(SOFTWARE, _ATTR.size, CPU_CLOCK, period_ns, sample, 0,
                            flags, 0, 0, 0, 0), -1, cpu)
