# SPDX-License-Identifier: GPL-2.0-only
"""msstune auto: diagnose, plan, verify and keep, until nothing improves."""
from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from . import auto_page, auto_search, options, verify
from .. import output_file, units
from .auto_search import Round, Search
from ..transaction.request import Request


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "auto", help="diagnose, plan and verify until nothing improves",
        description="Diagnose and plan.  With --yes, try the plan by experiments, "
        "keep what helps, and repeat until nothing is wrong or no setting helps.")
    cmd.add_argument("--interval", type=units.seconds, default=3.0,
                     metavar="TIME", help="how long to watch, default 3s")
    cmd.add_argument("--rate", type=units.rate, default=0.0, metavar="RATE",
                     help="bit/s a connection should reach: 10G")
    cmd.add_argument("--rounds", type=units.whole(1, 100), default=5,
                     metavar="N", help="at most N rounds, default 5")
    options.add_recording(cmd)
    options.add_permissions(cmd)
    options.add_experiments(cmd)
    options.add_json(cmd)
    cmd.set_defaults(run=run)


def _document(end: str, rounds: list[Round]) -> dict[str, Any]:
    kept = [o for turn in rounds for o in turn.outcomes if o.number]
    return {"format": "msstune-auto", "version": 1, "end": end,
            "rounds": [turn.document() for turn in rounds],
            "kept": [o.document()["settings"] for o in kept],
            "advice": auto_search.advice(rounds)}


def _dry_run(request: Request, search: Search) -> int:
    turn = auto_search.look(search)
    changes = auto_search.untried(turn, set(), request)
    if request.json:
        print(json.dumps(_document("nothing was changed", [turn])))
        return 0
    print(turn.verdict)
    for change in changes:
        print(f"would try {change.setting.name}: "
              f"{' '.join(change.setting.read().split())} -> {change.new}")
    for name, why in turn.refused.items():
        print(f"would not try {name}: {why}")
    for text in auto_search.advice([turn]):
        print(f"advice: {text}")
    print("nothing was changed; --yes does it")
    return 0


def run(args: argparse.Namespace) -> int:
    request = options.request(args)
    search = Search(args.interval, args.rate, args.rounds, args.load, args.settle,
                    not args.no_profile)
    if not request.yes:
        return _dry_run(request, search)
    session = verify.verifier(request, options.protocol(args), args.output)
    rounds: list[Round] = []
    end = "an error ended it"
    try:
        end = auto_search.loop(request, search, session, rounds)
    finally:
        kept = [o for turn in rounds for o in turn.outcomes if o.number]
        document = _document(end, rounds)
        output_file.store(session.directory / "auto.json", json.dumps(document))
        output_file.store(session.directory / "auto.html", auto_page.page(document))
    for text in auto_search.advice(rounds):
        session.tell(f"advice: {text}")
    session.tell(f"end: {end}; kept: "
                 f"{', '.join(o.name for o in kept) or 'nothing'}")
    if request.json:
        print(json.dumps(document))
    else:
        print(f"report: {args.output / 'auto.html'}")
    sys.stdout.flush()
    return 0
