# SPDX-License-Identifier: GPL-2.0-only
"""mssab list: one line for each results directory below a folder."""
from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import MssabError, UsageError
from ..report import report, result_text
from ..run import journal


def run(args: argparse.Namespace) -> int:
    if not args.directory.is_dir():
        raise UsageError(f"{args.directory}: no such folder; name one "
                         "that holds results")
    found = sorted(path.parent for path in
                   args.directory.glob(f"**/{journal.MANIFEST}"))
    print(f"{'results':<30} {'decision':<13} verdict, effect of the first metric")
    for directory in found:
        name = str(directory.relative_to(args.directory))
        print(f"{name:<30} {_line(directory)}")
    if not found:
        print("none yet; mssab run makes some")
    return 0


def _line(directory: Path) -> str:
    try:
        manifest = journal.read_manifest(directory)
        try:
            _, result = report.read(directory)
        except UsageError:
            blocks = len(journal.read_samples(directory))
            return f"{'unfinished':<13} {blocks} blocks; --resume continues"
    except MssabError as error:
        return f"{'damaged':<13} {error}"
    name = result["primary"][0]
    metric = result["metrics"].get(name)
    shown = result["why"]
    if metric:
        shown = f"{name} {result_text.signed(metric['effect'])} " \
            f"{result_text.unit_of(metric)} ({result_text.interval(metric)})"
    return f"{result_text.decision(result).lower():<13} " \
        f"{result['verdict']}: {shown}, {manifest['kernel']}"
