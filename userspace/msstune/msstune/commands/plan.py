# SPDX-License-Identifier: GPL-2.0-only
"""msstune plan: propose settings that answer the diagnoses; write none."""
from __future__ import annotations

import argparse
import json
import textwrap

from . import diagnose as cmd_diagnose, options
from .. import units
from ..causes import diagnose, plan, plan_host


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "plan", help="propose settings, with reasons",
        description="Diagnose, and propose settings with reason, calculation, "
        "source and risk.  Changes nothing; msstune apply takes the output of "
        "--json.")
    options.add_facts(cmd)
    cmd.add_argument("--rate", type=units.rate, default=0.0, metavar="RATE",
                     help="bit/s a connection should reach: 10G")
    cmd.add_argument("--goal", choices=plan_host.GOALS, default="",
                     help="add settings for this kind of traffic")
    cmd.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    facts = cmd_diagnose.facts_of(args)
    if str(args.save) == "-":
        return 0    # stdout has the facts
    found = diagnose.diagnose(facts)
    proposals = plan.propose(facts, found, plan.Wish(args.rate, args.goal))
    verdict = diagnose.verdict(found)
    if args.json:
        print(json.dumps(plan.document(proposals) | {"verdict": verdict}))
        return 0
    print(verdict)
    for p in proposals:
        print(f"\n{p.setting}: {p.old} -> {p.new}" if p.setting else "\nadvice")
        path = f"{p.path}: {p.share:.0%} of the {p.of}" if p.path else ""
        for label, text in (("reason", p.reason), ("figure", p.figure), ("path", path),
                            ("gain", p.gain), ("source", p.source), ("risk", p.risk)):
            if text:
                print(textwrap.fill(text, 79, initial_indent=f"    {label:7} ",
                                    subsequent_indent=" " * 12))
    if not proposals:
        print("nothing to propose")
    return 0
