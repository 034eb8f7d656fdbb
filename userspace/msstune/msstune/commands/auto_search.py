# SPDX-License-Identifier: GPL-2.0-only
"""The loop of msstune auto: diagnose, plan, try what is planned, keep what helps,
and begin again until nothing is left to try.
"""
from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from ..causes import diagnose, plan
from ..facts import collect, path_sums
from ..settings import settings
from ..causes.diagnosis import Diagnosis
from ..errors import TuneError
from ..causes.plan_values import Proposal
from ..transaction.request import Request
from ..transaction.transaction import Change
from ..transaction.verify import Outcome, Verifier


@dataclass(frozen=True)
class Search:
    """How auto looks at the traffic, and how often."""

    interval: float = 3.0       # seconds of a diagnosis
    rate: float = 0.0           # bit/s a connection should reach; 0: not given
    rounds: int = 5
    load: str = ""              # a command to run during a diagnosis
    settle: float = 2.0         # seconds between its start and the diagnosis
    record: bool = False        # a profile, where that is possible


@dataclass
class Round:
    """One diagnosis, its plan, and the experiments that follow."""

    verdict: str
    diagnoses: list[Diagnosis]
    proposals: list[Proposal]
    refused: dict[str, str] = field(default_factory=dict)   # setting: why
    outcomes: list[Outcome] = field(default_factory=list)
    costs: list[dict[str, Any]] = field(default_factory=list)   # of stages

    def document(self) -> dict[str, Any]:
        return {"verdict": self.verdict, "costs": self.costs,
                "diagnoses": [d.document() for d in self.diagnoses[:5]],
                "proposals": [asdict(p) for p in self.proposals],
                "refused": self.refused,
                "experiments": [o.document() for o in self.outcomes]}


@contextmanager
def _loaded(search: Search) -> Iterator[None]:
    """Run the user's load, if there is one, around the block."""
    if not search.load:
        yield
        return
    process = subprocess.Popen(["sh", "-c", search.load], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    try:
        time.sleep(search.settle)
        yield
        if process.poll() is not None:
            raise TuneError("the load ended before it was diagnosed: it must run "
                            "longer than --settle and --interval together")
        process.wait()
    finally:
        process.kill()


def look(search: Search) -> Round:
    """Diagnose and plan."""
    with _loaded(search):
        facts = collect.collect(search.interval, record=search.record)
    found = diagnose.diagnose(facts)
    return Round(diagnose.verdict(found), found, plan.propose(
        facts, found, plan.Wish(search.rate)), costs=path_sums.costs(facts))


def untried(turn: Round, tried: set[tuple[str, str]],
            request: Request) -> list[Change]:
    """Changes of the plan that are permitted and not in @tried, to which they are
    added."""
    changes = []
    for p in turn.proposals:
        if not p.setting or (p.setting, p.new) in tried:
            continue
        try:
            setting, value = settings.parse(f"{p.setting}={p.new}", request.root)
            change = Change(setting, value, f"{p.reason} ({p.source})")
            if setting.same(setting.read(), value):
                continue
            request.permit([change])
        except (TuneError, OSError) as error:
            turn.refused[p.setting] = str(error)
            continue
        tried.add((p.setting, p.new))
        changes.append(change)
    return changes


def loop(request: Request, search: Search, session: Verifier,
         rounds: list[Round]) -> str:
    """Add to @rounds until there is a reason to stop, which is returned.  The last
    round shows the paths after the last change that is kept."""
    end = _loop(request, search, session, rounds)
    if rounds and any(o.number for o in rounds[-1].outcomes):
        rounds.append(look(search))
    return end


def _loop(request: Request, search: Search, session: Verifier,
          rounds: list[Round]) -> str:
    tried: set[tuple[str, str]] = set()
    for _ in range(search.rounds):
        turn = look(search)
        rounds.append(turn)
        session.tell(f"round {len(rounds)}: {turn.verdict}")
        changes = untried(turn, tried, request)
        for name, why in turn.refused.items():
            session.tell(f"    not tried: {name}: {why}")
        if not changes:
            return "no setting is left to try" if turn.proposals else \
                "nothing is proposed"
        turn.outcomes = session.each(changes, len(rounds))
        if not any(o.number for o in turn.outcomes):
            return "no change is an improvement"
    return f"{search.rounds} rounds"


def advice(rounds: Sequence[Round]) -> list[str]:
    """Proposals of the last plan that no setting of this host can carry out."""
    return [p.reason for p in rounds[-1].proposals if not p.setting] \
        if rounds else []
