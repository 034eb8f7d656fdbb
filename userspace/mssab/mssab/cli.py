# SPDX-License-Identifier: GPL-2.0
"""Command line of mssab: options in, tables and JSON out."""
from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import __version__, arm, experiment, results, system
from .errors import MssabError, UsageError


def progress(text: str) -> None:
    """What is running now, on a terminal only, gone when it is done."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run(args: argparse.Namespace) -> int:
    """Run every cell with the first arm and the second, print the table."""
    plan = experiment.load(args.experiment)
    try:
        cells = [c for c in plan.cells if re.search(args.only, c.name)]
    except re.error as error:
        raise UsageError(f"--only {args.only}: {error}") from error
    if not cells:
        names = ", ".join(c.name for c in plan.cells[:3])
        raise UsageError(f"--only {args.only}: no cell matches "
                         f"(cells: {names}, ...)")
    system.check_machine()
    if args.json and str(args.json) != "-":
        args.json.touch()  # fail now, not when all is measured
    stock_name, treated_name = list(plan.arms)[:2]
    # The table goes where the JSON does not.
    table = sys.stderr if str(args.json) == "-" else sys.stdout
    print(f"{plan.title}\nkernel {system.kernel()}, "
          f"{stock_name} v {treated_name}: {plan.arms[treated_name]}\n",
          file=table)
    print(results.HEADER, results.UNITS, sep="\n", file=table)
    document: dict[str, Any] = {
        "format": "mssab-results", "version": 1, "mssab": __version__,
        "kernel": system.kernel(), "title": plan.title, "arms": plan.arms,
        "cells": []}
    for i, cell in enumerate(cells, 1):
        runs: dict[str, list[dict[str, Any]]] = {stock_name: [],
                                                 treated_name: []}
        for turn in range(cell.repeat):
            for name, raws in runs.items():
                progress(f"cell {i} of {len(cells)}: {cell.name}, {name} "
                         f"{turn + 1} of {cell.repeat}")
                raws.append(system.transfer(cell, plan.arms[name]))
        arms = {name: results.figures(cell, raws) | {"runs": raws}
                for name, raws in runs.items()}
        stock, treated = arms[stock_name], arms[treated_name]
        progress("")
        print(results.row(cell.name, stock, treated), file=table, flush=True)
        document["cells"].append({
            "cell": cell.name, "settings": vars(cell), "arms": arms,
            "ratio": results.ratio(stock, treated)})
        if args.json and str(args.json) != "-":
            # After each cell: what breaks the next one loses nothing.
            args.json.write_text(json.dumps(document, indent=1) + "\n")
    if str(args.json) == "-":
        print(json.dumps(document, indent=1))
    return 0


def tell_arm(args: argparse.Namespace) -> int:
    """Print the arm of one connection, and the slot it follows from."""
    one, other = arm.endpoint(args.one), arm.endpoint(args.other)
    print(arm.arm(one, other, args.seed, args.percent),
          arm.slot(one, other, args.seed))
    return 0


def setting(key: str) -> Callable[[str], int]:
    """A type for argparse: what the setting may hold, decimal or 0x..."""
    low, high = experiment.ARM_KEYS[key]

    def check(text: str) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{text} is not a number in {low}..{high}")
        return value
    return check


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="mssab", description="A/B experiments on TCP windows.",
        epilog="Exit status: 0 good, 1 failed, 2 usage, 3 not supported "
        "here.")
    top.add_argument("-V", "--version", action="version",
                     version=f"mssab {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    cmd = commands.add_parser("run", help="run an experiment file")
    cmd.add_argument("experiment", type=Path, metavar="EXPERIMENT.toml")
    cmd.add_argument("--only", default="", metavar="REGEX",
                     help="only cells whose name matches")
    cmd.add_argument("--json", type=Path, metavar="FILE",
                     help="raw and derived figures; - for stdout")
    cmd.set_defaults(run=run)
    cmd = commands.add_parser(
        "arm", help="tell the arm of a connection",
        description="Print the arm, treated or stock, and the slot (0..99) "
        "of a connection.")
    cmd.add_argument("--seed", type=setting("ab_seed"), default=0,
                     metavar="N", help="net.mssfrac.ab_seed, default 0")
    cmd.add_argument("--percent", type=setting("ab_percent"), default=100,
                     metavar="N", help="net.mssfrac.ab_percent, default 100")
    cmd.add_argument("one", metavar="ADDRESS:PORT",
                     help="one end; an IPv6 address in brackets")
    cmd.add_argument("other", metavar="ADDRESS:PORT", help="the other end")
    cmd.set_defaults(run=tell_arm)
    return top


def main() -> int:
    args = parser().parse_args()
    try:
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except (MssabError, OSError) as error:
        print(f"mssab: {error}", file=sys.stderr)
        return getattr(error, "status", 1)
