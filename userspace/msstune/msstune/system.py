# SPDX-License-Identifier: GPL-2.0-only
"""Access to the machine: kernel files, programs, and our identity (boot, network
namespace).  Contains no name of a setting."""
from __future__ import annotations

import os
import socket
import struct
import subprocess
from pathlib import Path

from .errors import NotSupported, TuneError

STATE = Path("/var/lib/msstune")
SO_NETNS_COOKIE = 71    # Linux 5.14


def run(*argv: str) -> str:
    """Output of a program.  Raises with its error message if it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False,
                              env={**os.environ, "LC_ALL": "C"})
    except FileNotFoundError as error:
        raise NotSupported(f"no {argv[0]} on PATH; install it") from error
    if done.returncode:
        why = (done.stderr or done.stdout).strip().splitlines()
        raise TuneError(f"{' '.join(argv)}: {why[0] if why else 'failed'}")
    return done.stdout


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def netns() -> int:
    """Cookie of our network namespace; unlike an inode, it is never reused."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            raw = probe.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8)
        except OSError:
            return os.stat("/proc/self/ns/net").st_ino
    return int(struct.unpack("=Q", raw)[0])


def start_time(pid: int) -> int:
    """Start time of a process, in clock ticks; 0 if it does not exist."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return 0 if fields[0] in "ZX" else int(fields[19])


def write_kernel(path: Path, text: str) -> None:
    """Write to a file of procfs or sysfs, in one write."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def write_value(path: Path, text: str) -> None:
    """Write a sysctl.  A plain file, in a tree for tests or of an image, is replaced
    as a whole, so that no reader finds it half written."""
    if str(path).startswith("/proc/"):
        write_kernel(path, text)
        return
    new = path.with_name(path.name + ".msstune-new")
    new.write_text(text, encoding="utf-8")
    new.chmod(path.stat().st_mode & 0o777)
    new.replace(path)
