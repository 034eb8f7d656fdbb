# SPDX-License-Identifier: GPL-2.0
"""msstune auto: diagnose, plan, verify, keep; again, until nothing improves."""
from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from . import (auto_page, cmd_verify, collect, diagnose, plan, units,
               request)
from .diagnosis import Diagnosis
from .transaction import Change
from .errors import TuneError
from .plan import Proposal
from .settings import parse
from .verify import Outcome, Verifier


def add(commands: argparse._SubParsersAction) -> None:
    cmd = commands.add_parser(
        "auto", help="diagnose, plan, verify and keep until nothing improves",
        description="Diagnose and plan; with --yes try what is planned by "
        "experiments, keep what is improved, and begin again, until nothing is "
        "wrong or no setting helps.")
    cmd.add_argument("--interval", type=units.seconds, default=3.0,
                     metavar="TIME", help="how long to watch, default 3s")
    cmd.add_argument("--rate", type=units.rate, default=0.0, metavar="RATE",
                     help="what a connection shall reach, bit/s: 10G")
    cmd.add_argument("--rounds", type=units.whole(1, 100), default=5,
                     metavar="N", help="no more rounds than this, default 5")
    cmd_verify.permissions(cmd)
    cmd_verify.options(cmd)
    cmd.add_argument("--json", action="store_true", help="JSON to stdout")
    cmd.set_defaults(run=run)


@dataclass
class Round:
    """Once around."""

    verdict: str
    diagnoses: list[Diagnosis]
    proposals: list[Proposal]
    refused: dict[str, str] = field(default_factory=dict)   # setting: why
    outcomes: list[Outcome] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return {"verdict": self.verdict,
                "diagnoses": [d.document() for d in self.diagnoses[:5]],
                "proposals": [asdict(p) for p in self.proposals],
                "refused": self.refused,
                "experiments": [o.document() for o in self.outcomes]}


@contextmanager
def _loaded(args: argparse.Namespace) -> Iterator[None]:
    """With the user's load running, if there is one."""
    if not args.load:
        yield
        return
    process = subprocess.Popen(["sh", "-c", args.load], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL)
    try:
        time.sleep(args.settle)
        yield
        if process.poll() is not None:
            raise TuneError("the load ended before it was diagnosed: it must run "
                            "for longer than --settle and --interval together")
        process.wait()
    finally:
        process.kill()


def look(args: argparse.Namespace) -> Round:
    """Diagnose and plan."""
    with _loaded(args):
        facts = collect.collect(args.interval)
    found = diagnose.diagnose(facts)
    return Round(diagnose.verdict(found), found, plan.propose(
        facts, found, plan.Wish(args.rate)))


def _changes(turn: Round, tried: set[tuple[str, str]],
             args: argparse.Namespace) -> list[Change]:
    """What of the plan may be tried and was not yet."""
    changes = []
    for p in turn.proposals:
        if not p.setting or (p.setting, p.new) in tried:
            continue
        try:
            setting, value = parse(f"{p.setting}={p.new}", args.root)
            change = Change(setting, value, f"{p.reason} ({p.source})")
            if setting.same(setting.read(), value):
                continue
            request.guard([change], args)
        except (TuneError, OSError) as error:
            turn.refused[p.setting] = str(error)
            continue
        tried.add((p.setting, p.new))
        changes.append(change)
    return changes


def _loop(args: argparse.Namespace, session: Verifier,
          rounds: list[Round]) -> str:
    """Until there is a reason to end, which is returned."""
    tried: set[tuple[str, str]] = set()
    for _ in range(args.rounds):
        turn = look(args)
        rounds.append(turn)
        session.tell(f"round {len(rounds)}: {turn.verdict}")
        changes = _changes(turn, tried, args)
        for name, why in turn.refused.items():
            session.tell(f"    not tried: {name}: {why}")
        if not changes:
            return "no setting is left to try" if turn.proposals else \
                "nothing is proposed"
        turn.outcomes = session.each(changes)
        if not any(o.number for o in turn.outcomes):
            return "no change is an improvement"
    return f"{args.rounds} rounds"


def _advice(rounds: Sequence[Round]) -> list[str]:
    """What the last plan cannot set from here."""
    return [p.reason for p in rounds[-1].proposals if not p.setting] \
        if rounds else []


def _dry(args: argparse.Namespace) -> int:
    turn = look(args)
    print(turn.verdict)
    for change in _changes(turn, set(), args):
        print(f"would try {change.setting.name}: "
              f"{' '.join(change.setting.read().split())} -> {change.new}")
    for name, why in turn.refused.items():
        print(f"would not try {name}: {why}")
    for text in _advice([turn]):
        print(f"advice: {text}")
    print("nothing was changed; --yes does it")
    return 0


def run(args: argparse.Namespace) -> int:
    if not args.yes:
        return _dry(args)
    session = cmd_verify.verifier(args, cmd_verify.primary(args))
    rounds: list[Round] = []
    end = "it was ended by an error"
    try:
        end = _loop(args, session, rounds)
    finally:
        kept = [o for turn in rounds for o in turn.outcomes if o.number]
        document = {"format": "msstune-auto", "version": 1, "end": end,
                    "rounds": [turn.document() for turn in rounds],
                    "kept": [o.document()["settings"] for o in kept],
                    "advice": _advice(rounds)}
        (session.directory / "auto.json").write_text(json.dumps(document), "utf-8")
        (session.directory / "auto.html").write_text(auto_page.page(document),
                                                     "utf-8")
    for text in _advice(rounds):
        session.tell(f"advice: {text}")
    session.tell(f"end: {end}; kept: "
                 f"{', '.join(o.name for o in kept) or 'nothing'}")
    if args.json:
        print(json.dumps(document))
    else:
        print(f"report: {args.output / 'auto.html'}")
    sys.stdout.flush()
    return 0
