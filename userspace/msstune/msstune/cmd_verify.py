# SPDX-License-Identifier: GPL-2.0
"""msstune verify: each change earns its place by an experiment, or goes."""
from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from typing import NoReturn

from . import switchback, units, request
from .transaction import TransactionManager
from .errors import UsageError
from .switchback import MARGINS, Protocol
from .verify import Verifier

DIRECTORY = Path("msstune-results")


def _margin(text: str) -> tuple[str, float]:
    """NAME=X of --margin."""
    name, _, value = text.partition("=")
    if name not in MARGINS:
        raise argparse.ArgumentTypeError(
            f"{text!r}: NAME=X, NAME one of {', '.join(MARGINS)}")
    return name, units.percent(value)


def permissions(cmd: argparse.ArgumentParser) -> None:
    """What must be allowed: shared with apply and auto."""
    cmd.add_argument("--yes", action="store_true", help="do it")
    cmd.add_argument("--allow-disruptive", action="store_true",
                     help="also what may lose packets for a moment")
    cmd.add_argument("--despite-rivals", action="store_true",
                     help="also what another program here will write again")


def options(cmd: argparse.ArgumentParser) -> None:
    """How it is measured: shared with apply and auto."""
    group = cmd.add_argument_group("experiments")
    group.add_argument("--pairs", type=units.whole(8, 1000), default=12,
                       metavar="N", help="pairs of blocks, default 12")
    group.add_argument("--block", type=units.seconds, default=10.0,
                       metavar="TIME", help="what is measured of a block, "
                       "default 10s")
    group.add_argument("--settle", type=units.seconds, default=2.0,
                       metavar="TIME", help="what is left out before, default 2s")
    group.add_argument("--effect", type=units.percent, default=3.0,
                       metavar="PERCENT", help="smallest gain of interest, "
                       "default 3")
    group.add_argument("--primary", choices=("goodput", "rtt"),
                       default="goodput", help="what decides, default goodput")
    group.add_argument("--margin", type=_margin, action="append", default=[],
                       metavar="NAME=X", help="how much worse retransmits (of "
                       "1000 segments), rtt or goodput (%%) may get beside it; "
                       f"default {MARGINS['retransmits']:g}, {MARGINS['rtt']:g}, "
                       f"{MARGINS['goodput']:g}")
    group.add_argument("--load", default="", metavar="COMMAND",
                       help="run this in each block, and compare the number it "
                       "prints last, or its time")
    group.add_argument("--lower", action="store_true",
                       help="the number of --load is better when lower")
    group.add_argument("-o", "--output", type=Path, default=DIRECTORY,
                       metavar="DIR", help="folder of the results, default "
                       f"{DIRECTORY}")
    group.add_argument("--no-report", action="store_true",
                       help="leave the pages to mssab report")


def add(commands: argparse._SubParsersAction) -> None:
    cmd = commands.add_parser(
        "verify", help="keep of some settings those that an experiment favours",
        description="Show what would be tried; with --yes try each setting in "
        "randomised blocks, with it and without, and keep it if mssab says "
        "improved and no guardrail regressed.")
    cmd.add_argument("settings", nargs="+", metavar="SETTING|PLAN.json",
                     help="KIND:TARGET=VALUE, or a file of msstune plan --json")
    permissions(cmd)
    options(cmd)
    cmd.add_argument("--json", action="store_true", help="JSON to stdout")
    cmd.set_defaults(run=run, together=False)


def _terminate(*_: object) -> NoReturn:
    """As Ctrl-C: leave through the with-blocks, which undo."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


def verifier(args: argparse.Namespace, primary: str) -> Verifier:
    """All that is to be known before anything is changed."""
    signal.signal(signal.SIGTERM, _terminate)
    switchback.check_programs()
    protocol = Protocol(primary, args.lower, args.pairs, args.block, args.settle,
                        args.effect, args.load, MARGINS | dict(args.margin),
                        not args.no_report)
    told = sys.stderr if args.json else sys.stdout

    def tell(text: str) -> None:
        print(text, file=told, flush=True)
    found = Verifier(TransactionManager(args.state, args.root, say=lambda text: None),
                     protocol, args.output.resolve(), tell)
    found.begin()
    return found


def primary(args: argparse.Namespace) -> str:
    """What decides: with a load, what it prints, which one run shows."""
    if not args.load:
        if args.lower:
            raise UsageError("--lower is of the number that a --load prints")
        return str(args.primary)
    figures = switchback.run_load(args.load, 1, set())
    return "value" if "value" in figures else "time"


def run(args: argparse.Namespace) -> int:
    changes = request.moving(args)
    if not changes:
        return 0
    request.guard(changes, args)
    if not args.yes:
        protocol = Protocol(pairs=args.pairs, seconds=args.block,
                            settle=args.settle)
        if not args.load:
            seconds = protocol.duration(True) + protocol.duration(False) * (
                len(changes) - 1)
            print(f"up to {units.duration(seconds)} of blocks")
        print("nothing was changed; --yes does it")
        return 0
    session = verifier(args, primary(args))
    outcomes = [session.one(changes)] if args.together else \
        session.each(changes)
    document = {"format": "msstune-verify", "version": 1,
                "changes": [o.document() for o in outcomes]}
    (session.directory / "verify.json").write_text(json.dumps(document), "utf-8")
    if args.json:
        print(json.dumps(document))
    kept = [o for o in outcomes if o.number]
    if not args.json:
        print(f"kept: {', '.join(o.name for o in kept) or 'nothing'}; experiments "
              f"in {args.output}")
    return 0
