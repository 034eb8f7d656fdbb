# SPDX-License-Identifier: GPL-2.0-only
"""The timer that undoes a change nobody confirms, in a process of its own.

It has its own session, so it outlives apply, the terminal and the login.  It
holds the other end of a pipe, so it notices at once when apply is killed half
way.  Where systemd runs, a transient systemd timer backs it up, because a
service manager may end all processes of a login.
"""
from __future__ import annotations

import os
import select
import signal
import sys
import syslog
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn, Protocol

from .. import system
from ..errors import TuneError

SYSTEMD = Path("/run/systemd/system")
_PACKAGES = str(Path(__file__).resolve().parents[2])


class Undoer(Protocol):
    """What the timer needs of the TransactionManager."""

    def expire(self, number: int, why: str, say: Callable[[str], None]) -> bool:
        """Undo change @number unless it was confirmed or has ended."""


def _msstune(state: Path, root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "msstune", "--state", str(state),
            "--root", str(root), *words]


@contextmanager
def armed(undoer: Callable[[], Undoer], state: Path, root: Path, number: int,
          timeout: float) -> Iterator[dict[str, Any]]:
    """Start the timer and wait until it runs.  Yields what identifies it later.
    The end of the block closes the pipe.  @undoer: makes one for the timer."""
    # One pipe shows the timer that we live, the other shows us that it is ready.
    (its_in, life), (ready, its_out) = os.pipe(), os.pipe()
    # A fork has all its code in memory: it does not depend on the disk later.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        # Python discards what a signal handler raises while it forks.
        signal.pthread_sigmask(signal.SIG_BLOCK,
                               (signal.SIGINT, signal.SIGTERM))
        pid = os.fork()
        if pid == 0:
            _become(undoer, its_in, its_out, number, timeout, mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.close(its_in)
    os.close(its_out)
    try:
        if os.read(ready, 100) != b"armed\n":
            raise TuneError("the rollback timer did not start; nothing was changed")
        unit = _systemd(state, root, number, timeout)
        yield {"pid": pid, "start": system.start_time(pid), "unit": unit}
        with suppress(BrokenPipeError):
            os.write(life, b"applied\n")
    finally:
        os.close(ready)
        os.close(life)


def _become(undoer: Callable[[], Undoer], its_in: int, its_out: int, number: int,
            timeout: float, mask: set[int | signal.Signals]) -> NoReturn:
    """The timer's process: its own session, folder and open files."""
    try:
        os.setsid()
        os.chdir("/")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        null = os.open(os.devnull, os.O_RDWR)
        for fd, place in ((its_in, 0), (its_out, 1), (null, 2)):
            os.dup2(fd, place)
        # Among them is the journal's lock, which belongs to the parent.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        watch(undoer(), number, timeout)
    finally:
        os._exit(0)


def in_first_namespace() -> bool:
    """Whether we and the service manager are in the same network namespace."""
    try:
        return os.path.samefile("/proc/1/ns/net", "/proc/self/ns/net")
    except OSError:
        return False


def _systemd(state: Path, root: Path, number: int, timeout: float) -> str:
    """Start a transient timer.  Returns its name; empty where it is impossible."""
    if not SYSTEMD.is_dir() or not in_first_namespace():
        return ""
    unit = f"msstune-{os.getpid()}-{number}"
    try:
        system.run("systemd-run", "--quiet", "--collect", f"--unit={unit}",
                   f"--on-active={timeout:g}s",
                   f"--setenv=PYTHONPATH={_PACKAGES}",
                   *_msstune(state, root, "timer", str(number), "0"))
    except TuneError:
        return ""
    return unit


def disarm(timer: dict[str, Any] | None) -> None:
    """End the timer of a change that is confirmed or undone.  A process with
    another start time is a different one that got the same PID."""
    if not timer:
        return
    if system.start_time(timer["pid"]) == timer["start"] != 0:
        with suppress(ProcessLookupError, PermissionError, ChildProcessError):
            os.kill(timer["pid"], signal.SIGTERM)
            os.waitpid(timer["pid"], 0)  # fails unless it is our child
    if timer.get("unit"):
        with suppress(TuneError):
            system.run("systemctl", "stop", f"{timer['unit']}.timer")


def alive(timer: dict[str, Any] | None) -> bool:
    return bool(timer and system.start_time(timer["pid"]) == timer["start"])


def watch(manager: Undoer, number: int, timeout: float) -> int:
    """Wait for @timeout s or the death of apply, then undo.  0: undo now."""
    for signal_number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(signal_number, signal.SIG_IGN)
    told: list[str] = []
    why = "timer"
    if timeout:
        deadline = _now() + timeout
        os.write(1, b"armed\n")
        os.close(1)
        os.open(os.devnull, os.O_WRONLY)
        if _wait(deadline) == "crash":
            why = "crash"
        else:
            _sleep(deadline)
    undone = manager.expire(number, why, told.append)
    if undone:
        syslog.openlog("msstune")
        syslog.syslog(f"{number}: {why}: undone" + "".join(told))
    return 0


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _wait(deadline: float) -> str:
    """Wait until apply succeeds (it writes a word), dies (end of file), or the time
    is up."""
    if not select.select([0], [], [], max(0.0, deadline - _now()))[0]:
        return "late"
    word = os.read(0, 100)
    return "applied" if word else "crash"


def _sleep(deadline: float) -> None:
    # select() does not count time in suspend: check at least once a minute.
    while (left := deadline - _now()) > 0:
        select.select([], [], [], min(left, 60.0))
