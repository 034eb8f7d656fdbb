# SPDX-License-Identifier: GPL-2.0-only
"""Child processes that end with mssab even if it is killed outright: a recorder
that would stay attached, a guest."""
from __future__ import annotations

import ctypes
import signal
import subprocess
from typing import Any

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def start(argv: list[str], last: signal.Signals,
          **options: Any) -> subprocess.Popen[str]:
    """Start a program that gets the signal @last when mssab ends first."""
    def follow() -> None:
        _LIBC.prctl(PR_SET_PDEATHSIG, int(last), 0, 0, 0)
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, text=True,
                            preexec_fn=follow, **options)
