# SPDX-License-Identifier: GPL-2.0-only
"""When and where an experiment was begun: time, machine, processor, commit and
the settings that change what a block costs.  For the manifest and the page."""
from __future__ import annotations

import datetime
import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path

TREE = Path(__file__).resolve().parents[4]


def _read(path: str) -> str:
    """A file of the kernel's in one line; "" if it is not there."""
    try:
        return " ".join(Path(path).read_text("utf-8", "replace").split())
    except OSError:
        return ""


def _output(*argv: str) -> str:
    if not shutil.which(argv[0]):
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return done.stdout.strip() if not done.returncode else ""


def _field(path: str, name: str, separator: str) -> str:
    """The first value of a name in a file of names and values."""
    try:
        text = Path(path).read_text("utf-8", "replace")
    except OSError:
        return ""
    for line in text.splitlines():
        key, _, value = line.partition(separator)
        if key.strip() == name:
            return value.strip().strip('"')
    return ""


def commit() -> str:
    """The commit of the source tree that mssab runs from, "+" if it is
    changed; "" if it is installed."""
    if not (TREE / ".git").exists():
        return ""
    git = "git", "-C", str(TREE)
    found = _output(*git, "rev-parse", "HEAD")
    changed = _output(*git, "status", "--porcelain", "--untracked-files=no")
    return found + ("+" if found and changed else "")


def collect() -> dict[str, str]:
    """Names and values, all as text; what is not known is left out."""
    sys = "/sys/devices/system"
    found = {
        "started": datetime.datetime.now(datetime.UTC).isoformat(
            timespec="seconds"),
        "host": socket.gethostname(),
        "processor": _field("/proc/cpuinfo", "model name", ":")
        or platform.processor(),
        "CPUs": str(len(os.sched_getaffinity(0))),
        "memory": _field("/proc/meminfo", "MemTotal", ":"),
        "virtualisation": _output("systemd-detect-virt"),
        "distribution": _field("/etc/os-release", "PRETTY_NAME", "="),
        "kernel build": platform.version(),
        "kernel command line": _read("/proc/cmdline"),
        "clock source": _read(
            f"{sys}/clocksource/clocksource0/current_clocksource"),
        "CPU governor": _read(f"{sys}/cpu/cpu0/cpufreq/scaling_governor"),
        "SMT": _read(f"{sys}/cpu/smt/control"),
        "commit": commit(),
    }
    return {name: value for name, value in found.items() if value}
