# SPDX-License-Identifier: GPL-2.0-only
"""One experiment of verify: a change in force in one block, undone in the next.

mssab draws the order, starts with A/A, judges, and makes the page.  To mssab we
are a program that prints measurements: a line of shell that asks this process
for a block through two pipes.  So one process holds the transactions, and Python
starts once.
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import output_file, sockdiag
from ..facts import profile_costs, profile_facts, throughput
from .error_budget import ALPHA
from ..errors import NotSupported, TuneError
from ..facts.profile_recorder import PATIENCE, Recorder
from .transaction import Change, TransactionManager

#: Asks for a block by our ends of two pipes, which the shell opens below /proc.
#: Their paths are in the environment: the experiment file must not change when an
#: experiment is resumed.
CLIENT = 'echo "$MSSTUNE_ARM $MSSAB_SEED" >"$MSSTUNE_ASK" && ' \
    'read -r numbers <"$MSSTUNE_ANSWER" && echo "$numbers"'
NOW, CHANGED = "unchanged", "changed"
AA_PAIRS = 8
BUDGET = 2.0            # % of the CPU time that sampling may take in a block
STOLEN = 20             # % of CPU time stolen by other machines that voids a block
LOAD_LIMIT = 3600       # seconds that a load may run
#: Seconds beyond its block after which the timer ends a trial.
SLACK = 60
#: How much worse a guardrail may get: retransmits of 1000 segments, the others %.
#: A path that is full for the first time has a queue and losses.
MARGINS = {"retransmits": 10.0, "rtt": 100.0, "goodput": 3.0}


@dataclass(frozen=True)
class Protocol:
    """How a change is measured."""

    #: goodput, rtt or a metric of profile_costs; with a load also value, time
    primary: str = "goodput"
    lower: bool = False         # a lower value of the load is better
    pairs: int = 12
    seconds: float = 10.0       # of a block, without a load
    settle: float = 2.0         # not measured, at the start of a block
    effect: float = 3.0         # smallest of interest, %
    load: str = ""              # a shell command; empty: the traffic of the host
    margins: dict[str, float] = field(default_factory=lambda: dict(MARGINS))
    page: bool = True           # make mssab's page
    alpha: float = ALPHA        # probability of a false finding

    @property
    def guardrails(self) -> list[str]:
        """By the metric that decides; costs of a profile that have a margin, too."""
        names = {"goodput": ["retransmits", "rtt"], "rtt": ["goodput", "retransmits"],
                 }.get(self.primary, ["retransmits"])
        if profile_costs.known(self.primary) and not self.load:
            names = ["goodput", "retransmits", "rtt"]
        return names + [name for name in self.margins if profile_costs.known(name)
                        and name != self.primary]

    @property
    def profiled(self) -> list[str]:
        """Metrics that need a profile of each block."""
        return [name for name in (self.primary, *self.guardrails)
                if profile_costs.known(name)]

    @property
    def block(self) -> float:
        """Longest time of a block, s."""
        return self.settle + (LOAD_LIMIT if self.load else self.seconds) \
            + (PATIENCE if self.profiled else 0)

    def duration(self, aa: bool) -> float:
        """Duration of an experiment without a load, s."""
        return 2 * (self.pairs + aa * AA_PAIRS) * (self.settle + self.seconds)


def design(protocol: Protocol, title: str, aa: bool) -> str:
    """The experiment file, mssab-experiment(5)."""
    text = json.dumps   # a JSON string is a TOML string
    own = {"value": f'unit = "of the load", better = '
                    f'"{("higher", "lower")[protocol.lower]}"',
           "time": 'unit = "s", better = "lower"'}
    own |= {name: f'unit = "{profile_costs.unit(name)}", better = "lower"'
            for name in protocol.profiled if name not in profile_costs.WHOLE}
    margins = {name: f"margin = {protocol.margins[name]}"
               for name in protocol.guardrails}
    metrics = [f"{text(name)} = {{ " + ", ".join(
        part[name] for part in (margins, own) if name in part) + " }"
        for name in dict.fromkeys([protocol.primary, *protocol.guardrails])
        if name in margins or name in own]
    return "\n".join((
        f"title = {text(title)}", "[design]",
        f"primary = {text(protocol.primary)}",
        f"guardrails = {text(protocol.guardrails)}",
        f"effect_percent = {protocol.effect}", f"alpha = {protocol.alpha:.6f}",
        f"pairs = {protocol.pairs}",
        f"aa_pairs = {AA_PAIRS if aa else 0}", f"stolen_percent = {STOLEN}",
        "[program]", f"argv = {text(['sh', '-c', CLIENT])}",
        "[metrics]", *metrics, "[arms]",
        *(f'{arm} = {{ env = {{ MSSTUNE_ARM = "{arm}" }} }}'
          for arm in (NOW, CHANGED)), ""))


def run_load(command: str, seed: int, before: set[bytes]) -> dict[str, float]:
    """Run the user's load: adds the last number it prints, or its run time."""
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
            numbers = throughput.watch(
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
        numbers["value"] = float(words[-1])
    except (IndexError, ValueError):
        numbers["time"] = ended[0]
    return numbers


@contextmanager
def _recorded(names: list[str]) -> Iterator[dict[str, float]]:
    """Record the block; the dict yielded then has the metrics that were asked for."""
    found: dict[str, float] = {}
    if not names:
        yield found
        return
    recorder = Recorder(BUDGET)
    try:
        recorder.start()
        if not recorder.missing:
            yield found
        path = recorder.stop()
        if not path:
            raise TuneError(f"{names[0]} needs a profile: {recorder.missing}")
        found |= profile_costs.measured(profile_facts.load(path), names)
    finally:
        recorder.close()


@dataclass
class Switchback:
    """One experiment, with all of @changes as one."""

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
            with _recorded(p.profiled) as costs:
                numbers = run_load(p.load, seed, before) if p.load else \
                    throughput.watch(lambda elapsed: elapsed >= p.seconds, before)
            numbers |= costs
        if trial and (trial.ended != "trial" or any(
                e.undone != "restored" for e in trial.entries)):
            raise TuneError("another writer changed "
                            + ", ".join(e.name for e in trial.entries
                                        if e.undone != "restored")
                            + " during the block; the experiment ends")
        self.undisturbed()
        self.carried.append(numbers["carried_percent"])
        if p.load and not numbers["bytes_per_s"]:
            # Its own number decides; mssab takes 0 bytes for a stalled block.
            del numbers["bytes_per_s"]
        return numbers

    def undisturbed(self) -> None:
        """Raise unless all settings have the values of the start."""
        for change in self.changes:
            now = change.setting.read()
            if change.expected and not change.setting.same(now, change.expected):
                raise TuneError(
                    f"{change.setting.name}: another writer set "
                    f"{' '.join(now.split())}; the experiment ends")

    def run(self, folder: Path, title: str, aa: bool,
            resume: bool = False) -> dict[str, Any]:
        """Returns mssab's result; its directory is @folder.  @resume: go on with the
        blocks that are there."""
        if resume and (folder / "result.json").exists():
            return _result(folder)
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        try:
            file = folder.with_suffix(".toml")
            output_file.store(file, design(self.protocol, title, aa))
            # mssab ends when this process ends, however that happens.
            argv = ["setpriv", "--pdeathsig", "TERM", "mssab", "run", str(file),
                    "-o", str(folder)]
            if not self.protocol.page:
                argv.append("--no-report")
            if resume:
                argv.append("--resume")
            pipes = {name: f"/proc/{os.getpid()}/fd/{end}" for name, end in (
                ("MSSTUNE_ASK", ask), ("MSSTUNE_ANSWER", answered))}
            status = self._serve(argv, pipes, asked, answer)
            # 1 and 125 are decisions too, if there is a result.
            if status not in (0, 1, 125) or not (folder / "result.json").exists():
                raise TuneError(f"mssab ended with status {status}")
        finally:
            for end in (asked, ask, answered, answer):
                os.close(end)
        return _result(folder)

    def _serve(self, argv: list[str], pipes: dict[str, str], asked: int,
               answer: int) -> int:
        """The exit status of mssab, whose blocks are measured here."""
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL,
                                   env=os.environ | pipes)
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
            raise NotSupported("mssab cannot run here; its message is above")
        return process.returncode


def _result(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "result.json").read_text("utf-8"))
    return result


def check_programs() -> None:
    """Raise before anything is changed if a program is missing."""
    for name in ("setpriv", "mssab"):
        if not shutil.which(name):
            raise NotSupported(f"no {name} on PATH; install it")
