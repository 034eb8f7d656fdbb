# SPDX-License-Identifier: GPL-2.0-only
"""The loads: one transfer from one end to the other, measured at the receiver.

Loads with a server program are in servers.py.  Every load returns at least
bytes_per_s, rcv_ssthresh and window_clamp (0: not known).
"""
from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from .. import children
from ..errors import LoadFailed, MssabError
from ..experiment.cell import KEYS, LOOPBACK, Cell
from ..netns import inside
from ..testbed.ends import Ends
from . import servers, transfers
from .servers import PORT, limit_s

#: Added to "no tcpload on PATH".
NO_TCPLOAD = ("it is a C program and pip does not install it: run make tcpload in the "
              "source tree, or install the Debian package mssab")

#: How often transfers are repeated that did not begin at the same time.
ATTEMPTS = 3


def _output(argv: list[str], limit: float) -> str:
    try:
        done = children.output(argv, limit)
    except subprocess.TimeoutExpired as error:
        raise LoadFailed(f"{' '.join(argv)}: no end after {limit:g} s; is "
                         "the transfer stuck?") from error
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise LoadFailed(f"{' '.join(argv)}: {why}")
    return done.stdout


def _command(cell: Cell, ends: Ends, port: int) -> list[str]:
    """tcpload for one transfer of the cell."""
    argv = [servers.tool("tcpload", NO_TCPLOAD),
            *(["request"] if cell.request else
              ["bulk", "--write", str(cell.write)]),
            "--from", ends.sender, "--to", ends.receiver,
            "--address", ends.address, "--port", str(port),
            "--warmup-ms", str(round(cell.warmup)),
            "--measure-ms", str(round(cell.measure))]
    if cell.window:
        argv += ["--window", str(cell.window)]
        # The kernel learns the ratio of payload to buffer from full-sized
        # segments.  The first window of lo holds one: with less the MSS would
        # stay half of it.
        blocks = 32 if cell.link == LOOPBACK else 4
        argv += ["--open", str(blocks * 16384)]
    for name, key in KEYS.items():
        argv += key.words(key.option, getattr(cell, name))
    return argv


def _aligned(cell: Cell, every_ms: int) -> list[str]:
    """Start in step with the kernel's clock.  The seed decides the phase, so that
    no timer keeps in step with it."""
    return ["--align-ms", str(every_ms), "--phase-us", str(cell.seed * 317)]


def _tcpload(cell: Cell, ends: Ends, aligned: bool) -> dict[str, Any]:
    port, = servers.free_ports(ends.receiver, 1, PORT + cell.seed)
    argv = _command(cell, ends, port)
    if aligned:
        argv += _aligned(cell, 100)
    else:
        time.sleep(cell.seed * 0.000_317)
    result: dict[str, Any] = json.loads(_output(argv, limit_s(cell)))
    return result


def _sender_ports(ends: Ends) -> dict[int, int]:
    """Receiver's port of each connection of the sender, also of those that are
    not established: the port they come from."""
    found = {}
    with inside(ends.sender):
        for line in Path("/proc/thread-self/net/tcp").read_text(
                "ascii").splitlines()[1:]:
            local, remote = (int(word.rpartition(":")[2], 16)
                             for word in line.split()[1:3])
            found[remote] = local
    return found


def several(cell: Cell, pairs: Sequence[Ends], more: Sequence[str] = (),
            gate: bool = False) -> list[dict[str, Any]]:
    """A transfer of each pair at once, to consecutive ports.  One that fails
    reports "failed", and "sender_port" if it had one: they decide its arm.
    @more: options of tcpload; @gate: connect when all are ready."""
    with ExitStack() as stack:
        door = stack.enter_context(_Gate()) if gate else None
        argvs = [[*_command(cell, ends, PORT + number), *more,
                  *(door.options if door else [])]
                 for number, ends in enumerate(pairs)]
        # Ends of arms per connection are all the same.
        ends = pairs[0]
        # Output goes to files, because a full pipe would stop its writer.
        outs = [(stack.enter_context(tempfile.TemporaryFile("w+")),
                 stack.enter_context(tempfile.TemporaryFile("w+")))
                for _ in argvs]
        running = [children.load(argv, stdout=out, stderr=err,
                                 pass_fds=door.files if door else ())
                   for argv, (out, err) in zip(argvs, outs, strict=True)]
        try:
            if door:
                door.open(running, limit_s(cell))
            end = time.monotonic() + limit_s(cell)
            # Once, in the middle: polling would be part of what is measured.
            _wait(running, time.monotonic() + (cell.warmup + cell.measure) / 2000)
            ports = _sender_ports(ends)
            _wait(running, end)
            if any(process.poll() is None for process in running):
                ports |= _sender_ports(ends)
        finally:
            for process in running:
                children.end(process)
        found = [_one(PORT + number, process.returncode, out, err, ports)
                 for number, (process, (out, err)) in enumerate(
                     zip(running, outs, strict=True))]
    return found


def _together(cell: Cell, pairs: Sequence[Ends]) -> list[dict[str, Any]]:
    """Transfers that begin at one time.  Programs that took long to start would
    otherwise run when others have ended, and the sum of the rates would be that of
    no moment."""
    for _ in range(ATTEMPTS):
        some = several(cell, pairs, _aligned(cell, 100), gate=True)
        if len({one.get("begun_ns") for one in some if "failed" not in one}) <= 1:
            return some
    raise LoadFailed(f"{len(pairs)} transfers did not begin together in {ATTEMPTS} "
                     "attempts")


class _Gate:
    """Lets all transfers go when all are ready; a pipe for each direction."""

    def __init__(self) -> None:
        self._ready, self._said = os.pipe()
        self._wait, self._go = os.pipe()
        self._left = {self._ready, self._said, self._wait, self._go}

    def __enter__(self) -> _Gate:
        return self

    def __exit__(self, *reason: object) -> None:
        self._close(*self._left)

    def _close(self, *files: int) -> None:
        for file in files:
            self._left.remove(file)
            os.close(file)

    @property
    def options(self) -> list[str]:
        return ["--ready-fd", str(self._said), "--go-fd", str(self._wait)]

    @property
    def files(self) -> tuple[int, int]:
        """What the programs inherit."""
        return self._said, self._wait

    def open(self, running: list[subprocess.Popen[Any]], seconds: float) -> None:
        """Wait for these programs, those apart that have ended, or until time is up."""
        self._close(self._said, self._wait)
        end, ready = time.monotonic() + seconds, 0
        while time.monotonic() < end and ready < sum(
                process.poll() is None for process in running):
            if select.select([self._ready], [], [], 0.1)[0]:
                ready += len(os.read(self._ready, len(running)))
        self._close(self._go)


def _wait(running: list[subprocess.Popen[Any]], end: float) -> None:
    """Until all have ended, or until that time."""
    for process in running:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0, end - time.monotonic()))


def _one(port: int, status: int, out: IO[str], err: IO[str],
         ports: dict[int, int]) -> dict[str, Any]:
    """What one of several transfers reported, or why it failed."""
    out.seek(0)
    err.seek(0)
    if status == -signal.SIGKILL:
        why = "no end; is the transfer stuck?"
    elif status:
        why = err.read().strip() or f"status {status}"
    else:
        said: dict[str, Any] = json.loads(out.read())
        return said | {"port": port}
    return {"port": port, "failed": why, "sender_port": ports.get(port, 0)}


def run(cell: Cell, ends: Ends, aligned: bool = False) -> dict[str, Any]:
    """Run the cell's load between two ends.  @aligned: start in step with the
    kernel's clock, where the load can."""
    if cell.transfers > 1:
        pairs = [pair for pair in ends.pairs for _ in range(cell.streams)]
        return transfers.together(_together(cell, pairs) if aligned
                                  else several(cell, pairs, gate=True))
    if cell.load == "tcpload":
        return _tcpload(cell, ends, aligned)
    return servers.run(cell, ends)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number")


def program(argv: tuple[str, ...], env: dict[str, str],
            limit: float) -> dict[str, Any]:
    """Run a command that is a load of the user's and prints one JSON object.
    @limit: seconds after which it is stuck."""
    try:
        done = children.output(list(argv), limit, os.environ | env)
    except OSError as error:
        raise MssabError(f"{argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise LoadFailed(f"{argv[0]}: no end after {limit:g} s") from error
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise LoadFailed(f"{' '.join(argv)}: status {done.returncode}: {why}")
    try:
        said = json.loads(done.stdout, parse_constant=_no_number)
    except ValueError as error:
        raise LoadFailed(f"{argv[0]}: its output is not a JSON object: "
                         f"{error}") from error
    if not isinstance(said, dict) or not all(
            type(value) in (int, float, str) for value in said.values()):
        raise LoadFailed(f"{argv[0]}: its output is not a JSON object of numbers "
                         "and strings")
    return said
