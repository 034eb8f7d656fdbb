# SPDX-License-Identifier: GPL-2.0-only
"""Network namespaces: commands, sysctls and counters in them."""
from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import MssabError

CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def command(*argv: str) -> str:
    """Output of a command; MssabError with its message if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise MssabError(f"{' '.join(argv)}: {why}")
    return done.stdout


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """Enter a namespace for the with-block, without starting a process."""
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


def write_sysctls(end: str, settings: dict[str, object]) -> None:
    """Write sysctls in the namespace of one end."""
    with inside(end):
        for key, value in settings.items():
            path = Path("/proc/sys", key.replace(".", "/"))
            try:
                path.write_text(f"{value}\n", encoding="ascii")
            except OSError as error:
                raise MssabError(f"{key} = {value}: "
                                 f"{error.strerror}") from error


# /proc/net belongs to the first thread and is cached; /proc/thread-self/net is
# the namespace entered.

def counters(end: str) -> dict[str, int]:
    """/proc/net/mssfrac of one namespace."""
    with inside(end):
        text = Path("/proc/thread-self/net/mssfrac").read_text("ascii")
    return {key: int(value) for key, value in
            (line.split() for line in text.splitlines())}


def snmp(end: str) -> dict[str, int]:
    """The kernel's own counters of one namespace: "Tcp.InSegs" and so on."""
    with inside(end):
        lines = Path("/proc/thread-self/net/snmp").read_text(
            "ascii").splitlines()
    return {f"{names.split(':')[0]}.{name}": int(value)
            for names, values in zip(lines[::2], lines[1::2], strict=True)
            for name, value in zip(names.split()[1:], values.split()[1:],
                                   strict=True)}
