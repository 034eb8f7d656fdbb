# SPDX-License-Identifier: GPL-2.0-only
"""mssab run, of an experiment file, and mssab aa: measure, analyse, store."""
from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import secrets
import signal
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import UsageError
from ..experiment import experiment, experiment_file, grid, module
from ..experiment.experiment import Arm, Plan
from ..report import result_text
from ..run import block, campaign, guests, journal, surroundings
from ..statistics import outcomes
from ..testbed import host

DEFAULT = Path("mssab-results")


class Progress:
    """Progress and time left: one line on a terminal, otherwise a line at each
    tenth."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._first: int | None = None
        self._tenth = -1

    def __call__(self, done: int, total: int, what: str) -> None:
        if self._first is None:
            self._first = done
        fresh = done - self._first
        left = ""
        if fresh:
            seconds = (time.monotonic() - self._start) / fresh * (total - done)
            left = f", at most {clock(seconds)} left"
        line = f"{done} of {total} blocks{left}: {what}"
        if sys.stderr.isatty():
            bar = "#" * round(20 * done / total)
            print(f"\r\033[K[{bar:<20}] {line}", end="", file=sys.stderr,
                  flush=True)
        elif 10 * done // total > self._tenth:
            self._tenth = 10 * done // total
            print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"


def _block(plan: Plan, phase: str, side: int) -> str:
    """The arm of a block, or its share of connections with the treatment."""
    if phase == outcomes.AA:
        return plan.arms[0].name
    if plan.assign == experiment.CONNECTION:
        return f"{plan.allocations[side]} %"
    return plan.arms[side].name


def _both(arm: Arm) -> dict[str, int | str]:
    """Settings of both ends beside the sysctls."""
    out: dict[str, int | str] = {
        f"net.mssfrac.{key}": value for key, value in arm.module.items()}
    return out | {f"{group} {key}": value
                  for group, some in arm.device.items()
                  for key, value in some.items()}


def manifest(plan: Plan, file: Path, source: str,
             kernel: str = "", built: str = "") -> dict[str, Any]:
    """All that is needed to repeat the experiment and to identify it.
    @kernel, @built: kernels of the guests and the builds of their modules, if
    it runs in guests."""
    schedule = [
        {"phase": phase, "pair": pair,
         "order": [_block(plan, phase, side) for side in chance.order],
         "seed": chance.seed}
        for phase, count in ((outcomes.AA, plan.aa_pairs),
                             (outcomes.AB, plan.looks[-1]))
        for pair in range(count)
        for chance in [experiment.draw(plan, phase, pair, 0)]]
    return {
        "format": journal.FORMAT, "version": journal.VERSION, "mssab": __version__,
        "file": str(file), "text": source,
        "plan": json.loads(json.dumps(dataclasses.asdict(plan))),
        "run": plan.run, "kernel": kernel or host.kernel(),
        "machine": platform.machine(), "environment": surroundings.collect(),
        "module": built if kernel else module.version(),
        "python": platform.python_version(), "tools": block.tools(),
        "clock": "wall time; in a deterministic guest, instructions",
        "settings": {arm.name: {
            "sender": _both(arm) | arm.sysctl_sender,
            "receiver": _both(arm) | arm.sysctl_receiver}
            for arm in plan.arms},
        "schedule": schedule}


def _seed(directory: Path, resume: bool) -> int:
    """A seed from the system's entropy, or the one that was drawn when the
    experiment to resume began."""
    if resume and (directory / journal.MANIFEST).exists():
        return int(journal.read_manifest(directory)["plan"]["seed"])
    return 1 + secrets.randbelow(2**32 - 1)


def _terminate(*_: object) -> None:
    """Like Ctrl-C: leave through the with-blocks, which clean up."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def run(args: argparse.Namespace) -> int:
    """The whole experiment, or its A/A part."""
    source = grid.read(args.file)
    plan = experiment_file.parse(args.file, source)
    only_aa = args.only_aa
    if only_aa and not plan.aa_pairs:
        raise UsageError(f"{args.file}: aa_pairs = 0: there is no A/A "
                         "run")
    directory = args.output or DEFAULT / args.file.stem
    if not plan.seed:
        plan = dataclasses.replace(plan, seed=_seed(directory, args.resume))
    signal.signal(signal.SIGTERM, _terminate)
    progress = Progress()
    in_guests = plan.run != experiment.HOST
    place: block.Runner | guests.Guests = block.Runner(plan)
    about = "", ""
    if in_guests:
        place = guests.Guests(plan, args.file, source)
        place.find()
        about = place.kernel(), place.module_version()
    # The names of namespaces are fixed, so one mssab at a time makes some.
    with (host.alone() if plan.arms[0].cell and not in_guests
          else nullcontext()), journal.opened(
            directory, manifest(plan, args.file, source, *about),
            args.resume) as book, place:
        try:
            result = campaign.run(plan, book, place.measure, progress, only_aa)
        finally:
            progress.close()
        journal.write_whole(directory / journal.RESULT,
                            json.dumps(result, indent=1) + "\n")
    print(result_text.summary(result, about[0] or host.kernel()), end="")
    if not args.no_report:
        from ..report import report  # matplotlib takes its time
        report.write(directory)
        print(f"Report: {directory / journal.REPORT}")
    else:
        print(f"Results: {directory}")
    return result_text.status(result)
