# SPDX-License-Identifier: GPL-2.0-only
"""Options that several commands share, and the objects made from them."""
from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .. import units
from ..facts import profile_costs
from ..settings.permissions import Permissions
from ..transaction.request import Request, Staging
from ..transaction.switchback import MARGINS, Protocol

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

DIRECTORY = Path("msstune-results")


def add_json(cmd: argparse.ArgumentParser) -> None:
    cmd.add_argument("--json", action="store_true",
                     help="print one JSON object instead of text")


def add_recording(cmd: argparse.ArgumentParser) -> None:
    cmd.add_argument("--no-profile", action="store_true",
                     help="no recording with pathprof, no counts of calls and no "
                     "samples, which root takes by default")


def add_facts(cmd: argparse.ArgumentParser) -> None:
    """Where the facts of a diagnosis come from."""
    cmd.add_argument("--interval", type=units.seconds, default=3.0,
                     metavar="TIME", help="how long to watch, default 3s")
    cmd.add_argument("--profile", type=Path, metavar="FILE",
                     help="also use this pathprof profile of the traffic")
    add_recording(cmd)
    cmd.add_argument("--facts", type=Path, metavar="FILE",
                     help="use facts stored by --save instead of watching")
    cmd.add_argument("--save", type=Path, metavar="FILE",
                     help="store the facts in FILE; - prints them, and nothing else")
    add_json(cmd)


def add_settings(cmd: argparse.ArgumentParser) -> None:
    cmd.add_argument("settings", nargs="+", metavar="SETTING|PLAN.json",
                     help="KIND:TARGET=VALUE, or output of msstune plan --json")


def add_permissions(cmd: argparse.ArgumentParser) -> None:
    cmd.add_argument("--yes", action="store_true",
                     help="make the changes instead of showing them")
    cmd.add_argument("--allow-disruptive", action="store_true",
                     help="permit settings that may lose packets for a moment")
    cmd.add_argument("--despite-rivals", action="store_true",
                     help="permit settings that another running program writes")


def _margin(text: str) -> tuple[str, float]:
    """NAME=X of --margin."""
    name, _, value = text.partition("=")
    if name not in MARGINS and not profile_costs.known(name):
        raise argparse.ArgumentTypeError(
            f"{text!r}: NAME=X, NAME one of {', '.join(MARGINS)}, or a metric of "
            "a profile")
    return name, units.percent(value)


def _primary(text: str) -> str:
    """A metric that can decide."""
    if text not in ("goodput", "rtt") and not profile_costs.known(text):
        raise argparse.ArgumentTypeError(
            f"{text!r}: goodput, rtt, {', '.join(profile_costs.WHOLE)}, or "
            "WAY.at.STAGE, WAY.wait.STAGE, WAY.p99.STAGE (rx.wait.done)")
    return text


def add_experiments(cmd: argparse.ArgumentParser) -> None:
    """How a change is measured."""
    group = cmd.add_argument_group("experiments")
    group.add_argument("--pairs", type=units.whole(8, 1000), default=12,
                       metavar="N", help="pairs of blocks, default 12")
    group.add_argument("--block", type=units.seconds, default=10.0,
                       metavar="TIME", help="measured time of a block, "
                       "default 10s")
    group.add_argument("--settle", type=units.seconds, default=2.0,
                       metavar="TIME", help="time left out before it, default 2s")
    group.add_argument("--effect", type=units.percent, default=3.0,
                       metavar="PERCENT", help="smallest gain of interest, "
                       "default 3")
    group.add_argument("--primary", type=_primary, default="goodput",
                       metavar="NAME", help="metric that decides: goodput "
                       "(default), rtt, or a cost of a profile, such as stack_cost "
                       "or rx.wait.done")
    group.add_argument("--margin", type=_margin, action="append", default=[],
                       metavar="NAME=X", help="how much worse a guardrail may "
                       "get: retransmits (of 1000 segments), rtt, goodput "
                       "or a cost of a profile (%%); default "
                       f"{MARGINS['retransmits']:g}, {MARGINS['rtt']:g}, "
                       f"{MARGINS['goodput']:g}")
    group.add_argument("--load", default="", metavar="COMMAND",
                       help="run COMMAND in each block, and compare the last "
                       "number it prints, or its run time")
    group.add_argument("--lower", action="store_true",
                       help="a lower number of --load is better")
    group.add_argument("-o", "--output", type=Path, default=DIRECTORY,
                       metavar="DIR", help="folder of the results, default "
                       f"{DIRECTORY}")
    group.add_argument("--no-report", action="store_true",
                       help="make no pages; mssab report can make them later")


def add_staging(cmd: argparse.ArgumentParser) -> None:
    """How a session of experiments proceeds."""
    cmd.add_argument("--canary", type=units.whole(1, 99), default=0, metavar="PERCENT",
                     help="try settings net.mssfrac.* on this share of connections "
                     "first, and on all only if they do no harm")
    cmd.add_argument("--resume", action="store_true",
                     help="go on with the session in the folder of -o")


def staging(args: argparse.Namespace) -> Staging:
    """The staging of a command with add_staging()."""
    return Staging(args.canary, args.resume)


def request(args: argparse.Namespace) -> Request:
    """The request of a command with add_json(), and perhaps add_permissions()."""
    return Request(args.state, args.root, tuple(getattr(args, "settings", ())),
                   Permissions(getattr(args, "allow_disruptive", False),
                               getattr(args, "despite_rivals", False)),
                   getattr(args, "yes", False), args.json)


def protocol(args: argparse.Namespace) -> Protocol:
    """The protocol of a command with add_experiments()."""
    return Protocol(args.primary, args.lower, args.pairs, args.block, args.settle,
                    args.effect, args.load, MARGINS | dict(args.margin),
                    not args.no_report)
