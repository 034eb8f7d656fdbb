# SPDX-License-Identifier: GPL-2.0-only
"""mssab run, of a grid file: every cell with two arms, a table, results JSON.

Needs nothing but Python's standard library.
"""
from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, TextIO

from .. import __version__
from ..errors import MssabError, UsageError
from ..experiment import grid
from ..experiment.cell import Cell
from ..experiment.grid import Grid
from ..run import journal, transfers, trial
from ..testbed import host, testbed

Result = dict[str, Any]
STDOUT = Path("-")
VERSION = 2  # of the results; mssab(1), RESULTS


def run(args: argparse.Namespace) -> int:
    """Run the cells and print a row for each."""
    plan = grid.load(args.file)
    cells = _chosen(plan, args.only, args.part)
    host.check()
    for cell in cells:
        host.check_congestion_control(cell.congestion_control)
    saved = args.json if args.json != STDOUT else None
    if saved:
        journal.check_target(saved)
        saved.touch()  # fail now, not when all is measured
    # The table goes where the JSON does not.
    table = sys.stderr if args.json == STDOUT else sys.stdout
    _print_heading(plan, table)
    head = {"format": "mssab-results", "version": VERSION, "mssab": __version__,
            "kernel": host.kernel(), "title": plan.title, "arms": plan.arms}
    earlier = _earlier(saved, head) if args.resume else {}
    wanted = {cell.name for cell in cells}
    # As text: a grid has hundreds of cells, written again after each.
    texts = [json.dumps(result) for name, result in earlier.items()
             if name not in wanted]
    with testbed.Testbed() as bed:
        for i, cell in enumerate(cells, 1):
            known = earlier.get(cell.name)
            result = known or _measure(bed, plan, cell,
                                       f"cell {i} of {len(cells)}")
            _show_progress("")
            arms = [result["arms"][name] for name in _two_arms(plan)]
            print(_row(cell.name, *arms), file=table, flush=True)
            texts.append(json.dumps(result))
            if saved and not known:
                # After each cell: a failure in the next one loses nothing.
                rest = [json.dumps(earlier[c.name]) for c in cells[i:]
                        if c.name in earlier]
                journal.write_whole(saved, _document(head, texts + rest))
    if args.json == STDOUT:
        print(_document(head, texts), end="")
    return 0


def _chosen(plan: Grid, only: str, part: tuple[int, int]) -> list[Cell]:
    """The cells whose name matches; of these the K-th of every N, which may be
    none."""
    try:
        cells = [c for c in plan.cells if re.search(only, c.name)]
    except re.error as error:
        raise UsageError(f"--only {only}: {error}") from error
    if not cells:
        names = ", ".join(c.name for c in plan.cells[:3])
        raise UsageError(f"--only {only}: no cell matches "
                         f"(cells: {names}, ...)")
    number, parts = part
    return cells[number - 1::parts]


def _two_arms(plan: Grid) -> tuple[str, str]:
    """Names of control and treatment; further arms are not run."""
    control, treatment, *_ = plan.arms
    return control, treatment


def _print_heading(plan: Grid, table: TextIO) -> None:
    control, treatment = _two_arms(plan)
    print(f"{plan.title}\nkernel {host.kernel()}, "
          f"{control} v {treatment}: {plan.arms[treatment]}\n", file=table)
    print(_HEADER, _UNITS, sep="\n", file=table)


def _show_progress(text: str) -> None:
    """One line on a terminal, overwritten by the next."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def _measure(bed: testbed.Testbed, plan: Grid, cell: Cell,
             place: str) -> Result:
    """Every transfer of one cell, the arms in turn."""
    keys = sorted({key for arm in plan.arms.values() for key in arm})
    runs: dict[str, list[Result]] = {name: [] for name in _two_arms(plan)}
    for turn in range(cell.repeat):
        for name, raws in runs.items():
            _show_progress(f"{place}: {cell.name}, {name} "
                           f"{turn + 1} of {cell.repeat}")
            raws.append(trial.transfer(bed, cell, plan.arms[name], keys))
    rtt = transfers.round_trip(cell, [raw for raws in runs.values()
                                      for raw in raws])
    window = transfers.mean_window(cell, runs[_two_arms(plan)[0]])
    arms = {name: transfers.averages(cell, raws, rtt, window) | {"runs": raws}
            for name, raws in runs.items()}
    return {"cell": cell.name, "settings": vars(cell), "rtt": rtt,
            "arms": arms, "ratio": _ratio(*arms.values())}


def _document(head: Result, cells: list[str]) -> str:
    """The results file: one line per cell."""
    return (json.dumps(head)[:-1] + ', "cells": [\n' + ",\n".join(cells)
            + "\n]}\n")


def _earlier(path: Path | None, head: Result) -> dict[str, Result]:
    """The cells that an earlier run of the same grid left in its file."""
    if not path:
        raise UsageError("--resume needs --json FILE, the file to go on with")
    try:
        old = json.loads(path.read_text() or "{}")
    except (ValueError, OSError) as error:
        raise UsageError(f"--resume {path}: {error}") from error
    for key in ("version", "kernel", "arms"):
        if old and old.get(key) != head[key]:
            raise UsageError(f"--resume {path}: its {key} "
                             f"{'are' if key == 'arms' else 'is'} different")
    return {cell["cell"]: cell for cell in old.get("cells", [])}


# --- The table ----------------------------------------------------------------

_NAME = 36  # columns of a cell's name
_HEADER = (f"{'cell':<{_NAME}} {'control':>9} {'used':>5} {'treatment':>9}"
           f" {'used':>5} {'ratio':>7}  policy")
_UNITS = f"{'':<{_NAME}} {'bit/s':>9} {'':>5} {'bit/s':>9}"


def _rate(bytes_per_s: float) -> str:
    """Mbit/s, or kbit/s below one Mbit/s."""
    bits = bytes_per_s * 8
    return f"{bits / 1e6:.1f} M" if bits >= 1e6 else f"{bits / 1e3:.0f} k"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"


def _ratio(control: dict[str, Any], treatment: dict[str, Any]) -> float:
    """Goodput of the treatment over that of the control."""
    if not control["bytes_per_s"]:
        raise MssabError("the control arm delivered nothing; is the link up?")
    return float(treatment["bytes_per_s"] / control["bytes_per_s"])


def _row(name: str, control: dict[str, Any], treatment: dict[str, Any]) -> str:
    """One line of the table.  policy: did the module act?"""
    times = _ratio(control, treatment)
    return (f"{name:<{_NAME}} {_rate(control['bytes_per_s']):>9} "
            f"{_percent(control.get('utilisation')):>5} "
            f"{_rate(treatment['bytes_per_s']):>9} "
            f"{_percent(treatment.get('utilisation')):>5} "
            f"{times:>7.{3 if times < 100 else 0}f}  "
            f"{'acted' if treatment['acted'] else 'idle'}")
