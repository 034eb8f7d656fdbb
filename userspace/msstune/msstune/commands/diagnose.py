# SPDX-License-Identifier: GPL-2.0-only
"""msstune diagnose: what limits the traffic of this network namespace."""
from __future__ import annotations

import argparse
import json
import textwrap
from typing import Any

from . import options
from .. import output_file
from ..causes import diagnose, path_evidence
from ..facts import collect
from ..causes.diagnosis import LIMITS, Diagnosis
from ..errors import UsageError

SHOWN = 10      # diagnoses printed without --json


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "diagnose", help="report what limits the traffic here",
        description="Watch the traffic, then report what limits each busy "
        "connection, and what devices and CPUs lose.  Changes nothing.")
    options.add_facts(cmd)
    cmd.set_defaults(run=run)


def facts_of(args: argparse.Namespace) -> collect.Facts:
    """Collected now, or read from a file."""
    if args.facts:
        try:
            read: collect.Facts = json.loads(args.facts.read_text("utf-8"))
            if read["format"] != "msstune-facts" or read["version"] != 1:
                raise ValueError(f"format {read['format']}, version "
                                 f"{read['version']}")
            return read
        except OSError as error:
            raise UsageError(f"{args.facts}: {error.strerror}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{args.facts}: not facts of msstune: "
                             f"{error}") from error
    if args.save:
        output_file.check(args.save)
    facts = collect.collect(args.interval, profile_file=args.profile,
                            record=not args.no_profile)
    if args.save:
        output_file.store(args.save, json.dumps(facts))
    return facts


def show(d: Diagnosis) -> None:
    print(f"{d.subject}: {LIMITS[d.limit][0]} [{d.limit}, {d.confidence}]")
    path = f"Path: {d.evidence.text}" if d.evidence else ""
    for text in filter(None, (d.why, path, f"Would change this: {d.would_change}")):
        print(textwrap.fill(text, 79, initial_indent="    ",
                            subsequent_indent="    "))


def document(facts: collect.Facts, found: list[Diagnosis]) -> dict[str, Any]:
    return {"format": "msstune-diagnosis", "version": 1,
            "verdict": diagnose.verdict(found), "flows": facts["flows_total"],
            "interval": facts["interval"], "profile": facts.get("recorded"),
            "disagree": list(path_evidence.disagreements(facts)),
            "diagnoses": [d.document() for d in found]}


def run(args: argparse.Namespace) -> int:
    facts = facts_of(args)
    if str(args.save) == "-":
        return 0    # stdout has the facts
    found = diagnose.diagnose(facts)
    verdict = diagnose.verdict(found)
    if args.json:
        print(json.dumps(document(facts, found)))
    else:
        print(f"{verdict}\n{facts['flows_total']} connections, "
              f"{len(facts['flows'])} of them moved data in "
              f"{facts['interval']:.1f} s\n")
        for d in found[:SHOWN]:
            show(d)
        if len(found) > SHOWN:
            print(f"{len(found) - SHOWN} more: --json lists them all")
        for line in path_evidence.disagreements(facts):
            print(f"does not fit together: {line}")
        for line in facts["missing"]:
            print(f"could not be read: {line}")
    return 0
