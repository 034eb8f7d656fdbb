# SPDX-License-Identifier: GPL-2.0
"""One experiment of verify: a change in force in one block, undone in the next.

mssab draws the order, begins with A/A, judges, and makes the page: for it we are a
program that prints figures.  The program is a line of shell that asks us, by two
pipes, for a block; so one process holds the manager, and Python starts once.
"""
from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import sockdiag, throughput
from .transaction import Change, TransactionManager
from .errors import NotSupported, TuneError

#: $0, $1: our ends of the pipes, which a shell further down finds below /proc.
CLIENT = 'echo "$MSSTUNE_ARM $MSSAB_SEED" >"$0" && ' \
    'read -r figures <"$1" && echo "$figures"'
NOW, CHANGED = "unchanged", "changed"
AA_PAIRS = 8
STOLEN = 20             # % of CPU time gone to other machines: such a block is void
LOAD_LIMIT = 3600       # seconds that a load may run
#: Beyond its block a trial may take so long before the timer ends it.
SLACK = 60
#: What else is watched may get so much worse: of 1000 segments; %.  A path that is
#: filled at last has a queue and losses.
MARGINS = {"retransmits": 10.0, "rtt": 100.0, "goodput": 3.0}


@dataclass(frozen=True)
class Protocol:
    """How a change is measured."""

    primary: str = "goodput"    # goodput, rtt; with a load: value, time
    lower: bool = False         # a load's value is better when lower
    pairs: int = 12
    seconds: float = 10.0       # of a block, without a load
    settle: float = 2.0         # left out at a block's start
    effect: float = 3.0         # smallest of interest, %
    load: str = ""              # a shell command; empty: the traffic there is
    margins: dict[str, float] = field(default_factory=lambda: dict(MARGINS))
    page: bool = True           # with mssab's page

    @property
    def guardrails(self) -> list[str]:
        if self.primary == "goodput":
            return ["retransmits", "rtt"]
        return ["goodput", "retransmits"] if self.primary == "rtt" else [
            "retransmits"]

    @property
    def block(self) -> float:
        """Seconds, at most."""
        return self.settle + (LOAD_LIMIT if self.load else self.seconds)

    def duration(self, aa: bool) -> float:
        """Of an experiment without a load, in seconds."""
        return 2 * (self.pairs + aa * AA_PAIRS) * (self.settle + self.seconds)


def design(protocol: Protocol, title: str, pipes: Sequence[str],
           aa: bool) -> str:
    """The experiment file, mssab-experiment(5)."""
    text = json.dumps   # a JSON string is a TOML string
    own = {"value": f'{{ unit = "of the load", better = '
                    f'"{("higher", "lower")[protocol.lower]}" }}',
           "time": '{ unit = "s", better = "lower" }'}
    metrics = [f"{name} = {{ margin = {protocol.margins[name]} }}"
               for name in protocol.guardrails]
    if protocol.primary in own:
        metrics.append(f"{protocol.primary} = {own[protocol.primary]}")
    return "\n".join((
        f"title = {text(title)}", "[design]",
        f"primary = {text(protocol.primary)}",
        f"guardrails = {text(protocol.guardrails)}",
        f"effect_percent = {protocol.effect}", f"pairs = {protocol.pairs}",
        f"aa_pairs = {AA_PAIRS if aa else 0}", f"stolen_percent = {STOLEN}",
        "[program]", f"argv = {text(['sh', '-c', CLIENT, *pipes])}",
        "[metrics]", *metrics, "[arms]",
        *(f'{arm} = {{ env = {{ MSSTUNE_ARM = "{arm}" }} }}'
          for arm in (NOW, CHANGED)), ""))


def run_load(command: str, seed: int, before: set[bytes]) -> dict[str, float]:
    """A load of the user's own: the number it prints last, or its time."""
    with tempfile.TemporaryFile() as said:
        start = time.monotonic()
        process = subprocess.Popen(
            ["sh", "-c", command], stdout=said, stdin=subprocess.DEVNULL,
            env={**os.environ, "MSSAB_SEED": str(seed)}, start_new_session=True)
        ended: list[float] = []

        def wait() -> None:
            process.wait()
            ended.append(time.monotonic() - start)
        waiter = threading.Thread(target=wait)
        waiter.start()
        try:
            figures = throughput.watch(
                lambda elapsed: bool(ended) or elapsed > LOAD_LIMIT, before)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            waiter.join()
        if process.returncode:
            raise TuneError(f"{command}: status {process.returncode}")
        said.seek(0)
        words = said.read().decode(errors="replace").split()
    try:
        figures["value"] = float(words[-1])
    except (IndexError, ValueError):
        figures["time"] = ended[0]
    return figures


@dataclass
class Switchback:
    """One change, all of its settings together."""

    manager: TransactionManager
    changes: Sequence[Change]
    protocol: Protocol
    carried: list[float] = field(default_factory=list)

    def measure(self, arm: str, seed: int) -> dict[str, float]:
        """One block."""
        self.undisturbed()
        before = set(sockdiag.looks())
        p = self.protocol
        with (self.manager.trial(self.changes, p.block + SLACK)
              if arm == CHANGED else nullcontext()) as trial:
            time.sleep(p.settle)
            figures = run_load(p.load, seed, before) if p.load else \
                throughput.watch(lambda elapsed: elapsed >= p.seconds, before)
        if trial and (trial.ended != "trial" or any(
                e.undone != "restored" for e in trial.entries)):
            raise TuneError("someone else wrote "
                            + ", ".join(e.name for e in trial.entries
                                        if e.undone != "restored")
                            + " meanwhile; nothing more is tried")
        self.undisturbed()
        self.carried.append(figures["carried_percent"])
        return figures

    def undisturbed(self) -> None:
        """Without the change everything is as at the start."""
        for change in self.changes:
            now = change.setting.read()
            if change.expected and not change.setting.same(now, change.expected):
                raise TuneError(
                    f"{change.setting.name}: someone else set "
                    f"{' '.join(now.split())}; nothing more is tried")

    def run(self, folder: Path, title: str, aa: bool) -> dict[str, Any]:
        """mssab's result; its directory is @folder."""
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        try:
            file = folder.with_suffix(".toml")
            file.write_text(design(self.protocol, title, [
                f"/proc/{os.getpid()}/fd/{end}" for end in (ask, answered)],
                aa), "utf-8")
            # mssab ends when we do, however we end.
            argv = ["setpriv", "--pdeathsig", "TERM", "mssab", "run", str(file),
                    "-o", str(folder)]
            if not self.protocol.page:
                argv.append("--no-report")
            self._serve(argv, asked, answer)
        finally:
            for end in (asked, ask, answered, answer):
                os.close(end)
        result: dict[str, Any] = json.loads(
            (folder / "result.json").read_text("utf-8"))
        return result

    def _serve(self, argv: list[str], asked: int, answer: int) -> None:
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
        try:
            while process.poll() is None:
                if select.select([asked], [], [], 0.2)[0]:
                    arm, seed = os.read(asked, 4096).decode().split()
                    os.write(answer, (json.dumps(self.measure(arm, int(seed)))
                                      + "\n").encode())
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait()
        if process.returncode == 3:
            raise NotSupported("mssab cannot run here, as it says above")
        if process.returncode:
            raise TuneError(f"mssab ended with status {process.returncode}")


def check_programs() -> None:
    """Say at once what is missing."""
    for name in ("setpriv", "mssab"):
        if not shutil.which(name):
            raise NotSupported(f"no {name} on PATH; install it")
