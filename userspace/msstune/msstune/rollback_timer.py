# SPDX-License-Identifier: GPL-2.0
"""The timer that undoes what nobody confirms, outside the process that applies.

A process of its own session: it outlives apply, its terminal and its login.  It
holds the other end of a pipe, so it knows at once when apply was killed half
way.  Where systemd runs, a transient timer stands behind it, for a service
manager that ends all processes of a login.
"""
from __future__ import annotations

import os
import select
import signal
import sys
import syslog
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from . import system
from .errors import TuneError

SYSTEMD = Path("/run/systemd/system")
_PACKAGES = str(Path(__file__).resolve().parent.parent)


def _msstune(state: Path, root: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "msstune", "--state", str(state),
            "--root", str(root), *words]


@contextmanager
def armed(state: Path, root: Path, number: int,
          timeout: float) -> Iterator[dict[str, Any]]:
    """Start the timer, wait until it runs; the block's end lets go of the pipe.
    Yields what finds it again."""
    # One pipe carries our life to it, the other its readiness to us.
    (its_in, life), (ready, its_out) = os.pipe(), os.pipe()
    # Forked, not started: all it needs is in memory already.
    pid = os.fork()
    if pid == 0:
        _become(its_in, its_out, state, root, number, timeout)
    os.close(its_in)
    os.close(its_out)
    try:
        if os.read(ready, 100) != b"armed\n":
            raise TuneError("the timer does not start; nothing was changed")
        unit = _systemd(state, root, number, timeout)
        yield {"pid": pid, "start": system.start_time(pid), "unit": unit}
        with suppress(BrokenPipeError):
            os.write(life, b"applied\n")
    finally:
        os.close(ready)
        os.close(life)


def _become(its_in: int, its_out: int, state: Path, root: Path, number: int,
            timeout: float) -> NoReturn:
    """The timer's process: a session, a folder and open files of its own."""
    from .transaction import TransactionManager  # which needs us, too
    try:
        os.setsid()
        os.chdir("/")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for fd, place in ((its_in, 0), (its_out, 1), (null, 2)):
            os.dup2(fd, place)
        # The journal's lock among them, which is the maker's.
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        watch(TransactionManager(state, root), number, timeout)
    finally:
        os._exit(0)


def in_first_namespace() -> bool:
    """Is our network namespace the service manager's?"""
    try:
        return os.path.samefile("/proc/1/ns/net", "/proc/self/ns/net")
    except OSError:
        return False


def _systemd(state: Path, root: Path, number: int, timeout: float) -> str:
    """The name of a transient timer; empty where there can be none."""
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
    """End the timer of a change that is decided.  It would find nothing to do,
    too; a process of another start time is not it."""
    if not timer:
        return
    if system.start_time(timer["pid"]) == timer["start"] != 0:
        with suppress(ProcessLookupError, PermissionError, ChildProcessError):
            os.kill(timer["pid"], signal.SIGTERM)
            os.waitpid(timer["pid"], 0)  # where it is our own child
    if timer.get("unit"):
        with suppress(TuneError):
            system.run("systemctl", "stop", f"{timer['unit']}.timer")


def alive(timer: dict[str, Any] | None) -> bool:
    return bool(timer and system.start_time(timer["pid"]) == timer["start"])


def watch(manager: Any, number: int, timeout: float) -> int:
    """The timer's own life."""
    for signal_number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(signal_number, signal.SIG_IGN)
    told: list[str] = []
    manager.say = told.append
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
    undone = manager.expire(number, why)
    if undone:
        syslog.openlog("msstune")
        syslog.syslog(f"{number}: {why}: undone" + "".join(told))
    return 0


def _now() -> float:
    import time
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _wait(deadline: float) -> str:
    """Until apply is through (its word), was killed (none), or the time is up."""
    if not select.select([0], [], [], max(0.0, deadline - _now()))[0]:
        return "late"
    word = os.read(0, 100)
    return "applied" if word else "crash"


def _sleep(deadline: float) -> None:
    # poll() counts no time asleep: look again after at most a minute.
    while (left := deadline - _now()) > 0:
        select.select([], [], [], min(left, 60.0))
