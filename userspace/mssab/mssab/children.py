# SPDX-License-Identifier: GPL-2.0
"""Programs that must not outlive mssab, even if it is killed outright: a recorder
that would stay attached, a guest."""
from __future__ import annotations

import ctypes
import signal
import subprocess
from typing import Any

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


def start(argv: list[str], told: signal.Signals,
          **options: Any) -> subprocess.Popen[str]:
    """A program that gets this signal when we end before it."""
    def follow() -> None:
        _LIBC.prctl(PR_SET_PDEATHSIG, int(told), 0, 0, 0)
    return subprocess.Popen(argv, stdin=subprocess.DEVNULL, text=True,
                            preexec_fn=follow, **options)
