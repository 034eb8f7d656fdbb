# SPDX-License-Identifier: GPL-2.0-only
"""Command line of mssab: the options of each command, and the errors' way to
the user.  Each command is a file in commands/."""
from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable
from pathlib import Path

from . import __version__
from .errors import MssabError, NotSupported, UsageError
from .experiment import experiment_file, grid, module

Command = Callable[[argparse.Namespace], int]


def command(name: str) -> Command:
    """A command by its module's name, imported when it runs: numpy, scipy and
    matplotlib take time to import, and grids do without them."""
    def run_it(args: argparse.Namespace) -> int:
        try:
            imported = importlib.import_module(f"mssab.commands.{name}")
        except ModuleNotFoundError as error:
            raise NotSupported(f"no Python module {error.name}; run "
                               "scripts/setup ab") from error
        status: int = imported.run(args)
        return status
    return run_it


def _run(args: argparse.Namespace) -> int:
    """mssab run: an experiment or a grid, by what the file holds."""
    if not experiment_file.is_experiment(grid.read(args.file)):
        for option, given in (("-o", args.output),
                              ("--no-report", args.no_report)):
            if given:
                raise UsageError(f"{option} is for experiments with [design]; "
                                 "a grid's results go to --json FILE")
        return command("grid")(args)
    for option, given in (("--only", args.only), ("--json", args.json),
                          ("--part", args.part != WHOLE)):
        if given:
            raise UsageError(f"{option} is for grids; an experiment with "
                             "[design] has one cell, and its results go to "
                             "-o DIR")
    return command("experiment")(args)


def _run_aa(args: argparse.Namespace) -> int:
    """mssab aa: only the A/A part of an experiment."""
    if not experiment_file.is_experiment(grid.read(args.file)):
        raise UsageError(f"{args.file}: no [design]: a grid has no A/A run")
    return command("experiment")(args)


def setting(name: str) -> Callable[[str], int]:
    """A type for argparse: a value of a module setting, decimal or 0x..."""
    key = module.SETTINGS[name]

    def check(text: str) -> int:
        try:
            value: int = key.read(name, int(text, 0))
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"{text} is not a number in {key.limits}") from error
        return value
    return check


WHOLE = 1, 1


def part(text: str) -> tuple[int, int]:
    """A type for argparse: K/N, the K-th of N parts."""
    found = re.fullmatch(r"([1-9]\d{0,3})/([1-9]\d{0,3})", text)
    if not found or int(found[1]) > int(found[2]):
        raise argparse.ArgumentTypeError(
            f"{text} is not K/N with 1 <= K <= N <= 9999, as in 1/2")
    return int(found[1]), int(found[2])


def _add_output(cmd: argparse.ArgumentParser) -> None:
    """Options of both commands that measure."""
    cmd.add_argument("--resume", action="store_true",
                     help="continue an interrupted run")
    cmd.add_argument("-o", "--output", type=Path, metavar="DIR",
                     help="folder for the results of an experiment (a file "
                     "with [design]); default mssab-results/NAME")
    cmd.add_argument("--no-report", action="store_true",
                     help="do not write report.html; mssab report does later")


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="mssab", description="A/B experiments on TCP windows.",
        epilog="Exit status: 0 good, 1 failed, 2 usage, 3 not supported "
        "here, 125 undecided, 130 interrupted.")
    top.add_argument("-V", "--version", action="version",
                     version=f"mssab {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    cmd = commands.add_parser(
        "run", help="run an experiment or a grid",
        description="Run an experiment (a file with [design]): compare its two "
        "arms and report a verdict.  Or run a grid: measure each cell once per "
        "arm and print a table.")
    cmd.add_argument("file", type=Path, metavar="FILE.toml",
                     help="see mssab-experiment(5) and mssab-grid(5)")
    cmd.add_argument("--only", default="", metavar="REGEX",
                     help="grid: run only cells whose name matches")
    cmd.add_argument("--part", type=part, default=WHOLE, metavar="K/N",
                     help="grid: run the K-th of every N of these cells")
    cmd.add_argument("--json", type=Path, metavar="FILE",
                     help="grid: write raw and derived numbers to FILE; - is "
                     "stdout")
    _add_output(cmd)
    cmd.set_defaults(run=_run, only_aa=False)
    cmd = commands.add_parser(
        "aa", help="compare the first arm with itself",
        description="Run only the A/A part of an experiment: it shows whether "
        "the testbed finds a difference where there is none.")
    cmd.add_argument("file", type=Path, metavar="EXPERIMENT.toml",
                     help="see mssab-experiment(5)")
    _add_output(cmd)
    cmd.set_defaults(run=_run_aa, only_aa=True)
    cmd = commands.add_parser(
        "block", help="measure one block of an experiment on this machine",
        description="Set up one arm of an experiment on this machine and "
        "measure one block of it.  Guests that mssab run boots do this.")
    cmd.add_argument("file", type=Path, metavar="EXPERIMENT.toml",
                     help="see mssab-experiment(5)")
    cmd.add_argument("arm", metavar="ARM", help="name of the arm in the file")
    cmd.add_argument("--seed", type=int, default=0, metavar="N",
                     help="nuisance seed, default 0")
    cmd.add_argument("-o", "--output", type=Path, metavar="FILE",
                     help="write the measurements to FILE as JSON; without it "
                     "the arm is only set up")
    cmd.set_defaults(run=command("block"))
    cmd = commands.add_parser(
        "report", help="show the results of an experiment",
        description="Print the results of an experiment and write its page, "
        "DIR/report.html.")
    cmd.add_argument("directory", type=Path, metavar="DIR",
                     help="the experiment's folder of results")
    cmd.add_argument("--json", action="store_true",
                     help="print result.json and write no page")
    cmd.set_defaults(run=command("report"))
    cmd = commands.add_parser(
        "compare", help="compare two results",
        description="Report whether two experiments found the same effect.")
    cmd.add_argument("one", type=Path, metavar="A",
                     help="folder of the results of one experiment")
    cmd.add_argument("other", type=Path, metavar="B",
                     help="folder of the results of the other")
    cmd.set_defaults(run=command("compare"))
    cmd = commands.add_parser(
        "list", help="list results",
        description="List the experiments with results below a folder.")
    cmd.add_argument("directory", type=Path, metavar="DIR", nargs="?",
                     default=Path("mssab-results"),
                     help="the folder; default mssab-results")
    cmd.set_defaults(run=command("list"))
    cmd = commands.add_parser(
        "arm", help="print the arm of a connection",
        description="Print the arm, treated or stock, and the slot (0..99) "
        "of a connection.")
    cmd.add_argument("--seed", type=setting("ab_seed"), default=0,
                     metavar="N", help="net.mssfrac.ab_seed, default 0")
    cmd.add_argument("--percent", type=setting("ab_percent"), default=100,
                     metavar="N", help="net.mssfrac.ab_percent, default 100")
    cmd.add_argument("one", metavar="ADDRESS:PORT",
                     help="one end; an IPv6 address in brackets")
    cmd.add_argument("other", metavar="ADDRESS:PORT", help="the other end")
    cmd.set_defaults(run=command("arm"))
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
        print("mssab: interrupted; --resume continues from here",
              file=sys.stderr)
        return 130
