# SPDX-License-Identifier: GPL-2.0
"""msstune diagnose: what limits the traffic of this network namespace."""
from __future__ import annotations

import argparse
import json
import textwrap
from pathlib import Path
from typing import Any

from . import collect, diagnose, units
from .diagnosis import LIMITS, Diagnosis
from .errors import UsageError

SHOWN = 10


def options(cmd: argparse.ArgumentParser) -> None:
    """Where facts come from: shared with plan."""
    cmd.add_argument("--interval", type=units.seconds, default=3.0,
                     metavar="TIME", help="how long to watch, default 3s")
    cmd.add_argument("--profile", type=Path, metavar="FILE",
                     help="a pathprof profile of this traffic, too")
    cmd.add_argument("--facts", type=Path, metavar="FILE",
                     help="facts of an earlier --save instead of watching")
    cmd.add_argument("--save", type=Path, metavar="FILE",
                     help="write the facts there")
    cmd.add_argument("--json", action="store_true", help="JSON to stdout")


def add(commands: argparse._SubParsersAction) -> None:
    cmd = commands.add_parser(
        "diagnose", help="tell what limits the traffic here",
        description="Watch for a while; tell what limits each busy connection "
        "and what devices and CPUs lose.  Changes nothing.")
    options(cmd)
    cmd.set_defaults(run=run)


def facts_of(args: argparse.Namespace) -> collect.Facts:
    """Watched now, or read."""
    if args.facts:
        try:
            facts: Any = json.loads(args.facts.read_text("utf-8"))
            if facts["format"] != "msstune-facts" or facts["version"] != 1:
                raise ValueError(f"it is {facts['format']} {facts['version']}")
        except OSError as error:
            raise UsageError(f"{args.facts}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{args.facts}: not facts of msstune: "
                             f"{error}") from error
        return dict(facts)
    facts = collect.collect(args.interval, profile_file=args.profile)
    if args.save:
        args.save.write_text(json.dumps(facts), encoding="utf-8")
    return facts


def show(d: Diagnosis) -> None:
    print(f"{d.subject}: {LIMITS[d.limit][0]} [{d.limit}, {d.confidence}]")
    for text in (d.why, f"Would change this: {d.would_change}"):
        print(textwrap.fill(text, 79, initial_indent="    ",
                            subsequent_indent="    "))


def run(args: argparse.Namespace) -> int:
    facts = facts_of(args)
    found = diagnose.diagnose(facts)
    verdict = diagnose.verdict(found)
    if args.json:
        print(json.dumps({"format": "msstune-diagnosis", "version": 1,
                          "verdict": verdict, "flows": facts["flows_total"],
                          "interval": facts["interval"],
                          "diagnoses": [d.document() for d in found]}))
    else:
        print(f"{verdict}\n{facts['flows_total']} connections, "
              f"{len(facts['flows'])} of them moved in "
              f"{facts['interval']:.1f} s\n")
        for d in found[:SHOWN]:
            show(d)
        if len(found) > SHOWN:
            print(f"{len(found) - SHOWN} more: --json has them all")
        for line in facts["missing"]:
            print(f"not read: {line}")
    return 0
