# SPDX-License-Identifier: GPL-2.0
"""Command line of mssab: options in, tables and JSON out."""
from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import __version__, arm, experiment, grid, results, testbed
from .errors import MssabError, NotSupported, UsageError


def progress(text: str) -> None:
    """What is running now, on a terminal only, gone when it is done."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run(args: argparse.Namespace) -> int:
    """Run an experiment file: a grid of cells, or a design with a verdict."""
    source = grid.read(args.experiment)
    if not experiment.is_design(source):
        for option, given in (("-o", args.output),
                              ("--no-report", args.no_report)):
            if given:
                raise UsageError(f"{option} is for experiments with [design]; "
                                 "a grid's results go to --json FILE")
        return run_grid(args)
    for option, given in (("--only", args.only), ("--json", args.json)):
        if given:
            raise UsageError(f"{option} is for grids; an experiment with "
                             "[design] has one cell, and its results go to "
                             "-o DIR")
    return later("cmd_experiment")(args)


def run_aa(args: argparse.Namespace) -> int:
    """Only the A/A part of an experiment."""
    source = grid.read(args.experiment)
    if not experiment.is_design(source):
        raise UsageError(f"{args.experiment}: no [design]: a grid has no A/A")
    return later("cmd_experiment")(args)


def run_grid(args: argparse.Namespace) -> int:
    """Run every cell with the first arm and the second, print the table."""
    plan = grid.load(args.experiment)
    try:
        cells = [c for c in plan.cells if re.search(args.only, c.name)]
    except re.error as error:
        raise UsageError(f"--only {args.only}: {error}") from error
    if not cells:
        names = ", ".join(c.name for c in plan.cells[:3])
        raise UsageError(f"--only {args.only}: no cell matches "
                         f"(cells: {names}, ...)")
    testbed.check_machine()
    if args.json and str(args.json) != "-":
        args.json.touch()  # fail now, not when all is measured
    stock_name, treated_name = list(plan.arms)[:2]
    # The table goes where the JSON does not.
    table = sys.stderr if str(args.json) == "-" else sys.stdout
    print(f"{plan.title}\nkernel {testbed.kernel()}, "
          f"{stock_name} v {treated_name}: {plan.arms[treated_name]}\n",
          file=table)
    print(results.HEADER, results.UNITS, sep="\n", file=table)
    head: dict[str, Any] = {
        "format": "mssab-results", "version": 1, "mssab": __version__,
        "kernel": testbed.kernel(), "title": plan.title, "arms": plan.arms}
    done = _resumed(args, head) if args.resume else {}
    wanted = {cell.name for cell in cells}
    # As text: a grid has hundreds, and is written again after each.
    texts = [json.dumps(result) for name, result in done.items()
             if name not in wanted]
    with testbed.Testbed() as bed:
        for i, cell in enumerate(cells, 1):
            known = done.get(cell.name)
            result = known or _cell(bed, plan, cell,
                                    f"cell {i} of {len(cells)}")
            stock, treated = (result["arms"][name]
                              for name in (stock_name, treated_name))
            progress("")
            print(results.row(cell.name, stock, treated), file=table,
                  flush=True)
            texts.append(json.dumps(result))
            if args.json and str(args.json) != "-" and not known:
                # After each cell: what breaks the next one loses nothing.
                later = [json.dumps(done[c.name]) for c in cells[i:]
                         if c.name in done]
                _save(args.json, _document(head, texts + later))
    if str(args.json) == "-":
        print(_document(head, texts), end="")
    return 0


def _document(head: dict[str, Any], cells: list[str]) -> str:
    """The results file: a cell a line."""
    return (json.dumps(head)[:-1] + ', "cells": [\n' + ",\n".join(cells)
            + "\n]}\n")


def _cell(bed: testbed.Testbed, plan: grid.Experiment,
          cell: grid.Cell, place: str) -> dict[str, Any]:
    """Every transfer of one cell, the arms in turn."""
    names = list(plan.arms)[:2]
    keys = {key for arm in plan.arms.values() for key in arm}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    for turn in range(cell.repeat):
        for name, raws in runs.items():
            progress(f"{place}: {cell.name}, {name} "
                     f"{turn + 1} of {cell.repeat}")
            raws.append(bed.transfer(cell, plan.arms[name], sorted(keys)))
    rtt = results.round_trip(cell, [raw for raws in runs.values()
                                    for raw in raws])
    arms = {name: results.figures(cell, raws, rtt) | {"runs": raws}
            for name, raws in runs.items()}
    return {"cell": cell.name, "settings": vars(cell), "rtt": rtt,
            "arms": arms,
            "ratio": results.ratio(*(arms[name] for name in names))}


def _save(path: Path, text: str) -> None:
    """Whole or not at all, whenever this is killed."""
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


def _resumed(args: argparse.Namespace,
             head: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The cells an earlier run of the same experiment left in its file."""
    if not args.json or str(args.json) == "-":
        raise UsageError("--resume needs --json FILE, the file to go on with")
    try:
        old = json.loads(args.json.read_text() or "{}")
    except (ValueError, OSError) as error:
        raise UsageError(f"--resume {args.json}: {error}") from error
    for key in ("kernel", "arms"):
        if old and old.get(key) != head[key]:
            raise UsageError(f"--resume {args.json}: it is of another {key}")
    return {cell["cell"]: cell for cell in old.get("cells", [])}


def tell_arm(args: argparse.Namespace) -> int:
    """Print the arm of one connection, and the slot it follows from."""
    one, other = arm.endpoint(args.one), arm.endpoint(args.other)
    print(arm.arm(one, other, args.seed, args.percent),
          arm.slot(one, other, args.seed))
    return 0


def setting(key: str) -> Callable[[str], int]:
    """A type for argparse: what the setting may hold, decimal or 0x..."""
    low, high = grid.ARM_KEYS[key]

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


def later(module: str) -> Callable[[argparse.Namespace], int]:
    """A command by its module's name: numpy, scipy and matplotlib take their
    time, and are not there where only grids are run."""
    def run_it(args: argparse.Namespace) -> int:
        try:
            command = importlib.import_module(f"mssab.{module}")
        except ModuleNotFoundError as error:
            raise NotSupported(f"no Python module {error.name}; run "
                               "scripts/setup ab") from error
        status: int = command.run(args)
        return status
    return run_it


def output(cmd: argparse.ArgumentParser) -> None:
    """Where an experiment's results go."""
    cmd.add_argument("-o", "--output", type=Path, metavar="DIR",
                     help="results of an experiment with [design]; default "
                     "mssab-results/NAME")
    cmd.add_argument("--no-report", action="store_true",
                     help="leave report.html to mssab report")


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
    cmd.add_argument("--resume", action="store_true",
                     help="go on with the results that are there")
    output(cmd)
    cmd.set_defaults(run=run)
    cmd = commands.add_parser(
        "aa", help="only compare the first arm with itself")
    cmd.add_argument("experiment", type=Path, metavar="EXPERIMENT.toml")
    cmd.add_argument("--resume", action="store_true",
                     help="go on with the results that are there")
    output(cmd)
    cmd.set_defaults(run=run_aa, only_aa=True)
    cmd = commands.add_parser(
        "block", help="measure one block of an experiment, here",
        description="What mssab run has each of its guests do: set up one arm "
        "of an experiment where this runs, and measure one block of it.")
    cmd.add_argument("experiment", type=Path, metavar="EXPERIMENT.toml")
    cmd.add_argument("arm", metavar="ARM", help="its name in the file")
    cmd.add_argument("--seed", type=int, default=0, metavar="N",
                     help="nuisance seed, default 0")
    cmd.add_argument("-o", "--output", type=Path, metavar="FILE",
                     help="what was measured, as JSON; without it the arm is "
                     "only set up")
    cmd.set_defaults(run=later("cmd_block"))
    cmd = commands.add_parser("report", help="show results, make the page")
    cmd.add_argument("directory", type=Path, metavar="DIR")
    cmd.add_argument("--json", action="store_true",
                     help="result.json on stdout, no page")
    cmd.set_defaults(run=later("cmd_report"))
    cmd = commands.add_parser("compare", help="compare two results")
    cmd.add_argument("one", type=Path, metavar="A")
    cmd.add_argument("other", type=Path, metavar="B")
    cmd.set_defaults(run=later("cmd_compare"))
    cmd = commands.add_parser("list", help="list results")
    cmd.add_argument("directory", type=Path, metavar="DIR", nargs="?",
                     default=Path("mssab-results"),
                     help="folder to look below; default mssab-results")
    cmd.set_defaults(run=later("cmd_list"))
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
    except KeyboardInterrupt:
        print("mssab: interrupted; --resume goes on from here",
              file=sys.stderr)
        return 130
