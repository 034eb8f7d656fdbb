# SPDX-License-Identifier: GPL-2.0
"""msstune lint: sysctl.d files and scripts, before they are applied."""
from __future__ import annotations

import argparse
import json
import os
import textwrap
from dataclasses import asdict
from pathlib import Path

from . import lint, lint_read, units
from .lint_rules import Machine


def add(commands: argparse._SubParsersAction) -> None:
    cmd = commands.add_parser(
        "lint", help="check sysctl.d files and scripts",
        description="Find wrong units, refused values, stale advice and "
        "overridden settings.  Changes nothing.")
    cmd.add_argument("files", nargs="+", type=Path, metavar="FILE",
                     help="sysctl.d fragment or shell script")
    cmd.add_argument("--memory", type=units.whole(1, 1 << 30), metavar="MIB",
                     help="RAM of the machine they are for (default: this one's)")
    cmd.add_argument("--json", action="store_true", help="JSON to stdout")
    cmd.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    page = os.sysconf("SC_PAGE_SIZE")
    memory = (args.memory << 20 if args.memory
              else page * os.sysconf("SC_PHYS_PAGES"))
    files = {str(path): lint_read.read(path) for path in args.files}
    found = lint.check(files, Machine(memory, page))
    bad = [f for f in found if f.level != "note"]
    settings = sum(len(items) for items in files.values())
    if args.json:
        print(json.dumps({"format": "msstune-lint", "version": 1,
                          "files": list(files), "settings": settings,
                          "findings": [asdict(f) for f in found]}))
    else:
        for f in found:
            print(f"{f.file}:{f.line}: {f.level}: {f.what} [{f.rule}]")
            print(textwrap.fill(f"{f.why} ({f.source})", 79,
                                initial_indent="    ",
                                subsequent_indent="    "))
        print(f"{settings} settings, {len(bad)} errors and warnings, "
              f"{len(found) - len(bad)} notes")
    return 1 if bad else 0
