# SPDX-License-Identifier: GPL-2.0-only
"""Child processes that end with mssab even if it is killed outright: a load, a
recorder that would stay attached, a guest; and how long to wait for one."""
from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


@contextmanager
def _signals_later() -> Iterator[set[int | signal.Signals]]:
    """Signals that end mssab arrive after the block; yields the mask before.
    Python discards the exception of a handler that runs while it forks, and mssab
    would go on."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK,
                               (signal.SIGINT, signal.SIGTERM))
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start(argv: list[str], last: signal.Signals,
          **options: Any) -> subprocess.Popen[str]:
    """Start a program that gets the signal @last when mssab ends first."""
    with _signals_later() as mask:
        def follow() -> None:
            # A script that starts mssab in the background makes it ignore SIGINT.
            signal.signal(last, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _LIBC.prctl(PR_SET_PDEATHSIG, int(last), 0, 0, 0)
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, text=True,
                                preexec_fn=follow, **options)


# --- Loads ------------------------------------------------------------------
# The death signal reaches one process only, and a load may start more.  So each
# load has a process group, and a watcher kills the groups when mssab is gone.

def _watch(pipe: int) -> None:
    """Read "+GROUP" and "-GROUP" until mssab ends, then kill what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    os.closerange(0, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))
    text = b""
    while more := os.read(pipe, 4096):
        text += more
    alive: set[int] = set()
    for word in text.split(b"\n"):
        if word.startswith(b"+"):
            alive.add(int(word))
        elif word:
            alive.discard(-int(word))
    for group in alive - {0}:
        with suppress(OSError):
            os.killpg(group, signal.SIGKILL)


class _Watcher:
    """The watcher of this process, started with the first load."""

    def __init__(self) -> None:
        self._owner = self._pipe = -1

    def note(self, word: str) -> None:
        if self._owner != os.getpid():
            self._start()
        os.write(self._pipe, f"{word}\n".encode())

    def _start(self) -> None:
        reader, self._pipe = os.pipe()
        self._owner = os.getpid()
        # Its parent ends at once, so that nobody has to wait for it.
        child = os.fork()
        if not child:
            try:
                if not os.fork():
                    _watch(reader)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(reader)


_WATCHER = _Watcher()


def load(argv: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a load in a process group of its own; end() ends it."""
    parent = os.getpid()

    with _signals_later() as mask:
        def follow() -> None:
            os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            _LIBC.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
            if os.getppid() != parent:
                os._exit(1)
        _WATCHER.note("+0")     # the watcher must be there first
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL,
                                   preexec_fn=follow, **options)
        _WATCHER.note(f"+{process.pid}")
    return process


def end(process: subprocess.Popen[Any]) -> None:
    """Kill what is left of a load's process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(ChildProcessError):
        process.wait()
    _WATCHER.note(f"-{process.pid}")


def output(argv: list[str], seconds: float, env: dict[str, str] | None = None) \
        -> subprocess.CompletedProcess[str]:
    """Run a load to its end; subprocess.TimeoutExpired if it takes longer."""
    with load(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
              env=env) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        finally:
            end(process)
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


# --- Patience -----------------------------------------------------------------
# The clock of a deterministic guest (scripts/guest) skips the time in which the guest
# waits for a file of the host.  A disk that stalls for one second makes it advance by
# about ten minutes.

#: Seconds to wait longer there.
HOST_S = 36000
LEAPING = ("deterministic", "ticks")


def patience(usual: float) -> float:
    """The usual limit in seconds; with HOST_S added in a guest whose clock leaps."""
    leaps = os.environ.get("MSSFRAC_GUEST") in LEAPING
    return usual + HOST_S if leaps else usual
