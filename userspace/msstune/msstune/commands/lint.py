# SPDX-License-Identifier: GPL-2.0-only
"""msstune lint: check files with settings before they are applied."""
from __future__ import annotations

import argparse
import glob
import json
import os
import sys
import textwrap
from dataclasses import asdict
from pathlib import Path

from . import options
from .. import units
from ..lint import lint, read as lint_read
from ..errors import UsageError
from ..lint.items import Item, Unreadable
from ..lint.kernel import Kernel
from ..lint.rules import Machine


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "lint", help="check sysctl.d files, scripts, tuned and Ansible files",
        description="Find wrong units, dangerous values, values and keys that the "
        "running kernel refuses, obsolete advice and overridden settings.  "
        "Changes nothing.")
    cmd.add_argument("files", nargs="+", metavar="FILE",
                     help="sysctl.d fragment, shell script, tuned profile or "
                     "Ansible file")
    cmd.add_argument("--memory", type=units.whole(1, 1 << 30), metavar="MIB",
                     help="RAM of the machine they are for, if not this one; skips "
                     "the comparison with the running kernel")
    options.add_json(cmd)
    cmd.set_defaults(run=run)


def _files(words: list[str]) -> tuple[list[Path], list[str]]:
    """The files named, and the patterns that match none: a shell passes a
    pattern on as it is if no file matches it."""
    files: list[Path] = []
    unmatched = []
    for word in words:
        if not glob.has_magic(word) or os.path.lexists(word):
            files.append(Path(word))
            continue
        found = sorted(glob.glob(word))
        files += map(Path, found)
        if not found:
            unmatched.append(word)
    return files, unmatched


def _printable(text: str) -> str:
    """Without characters that a terminal obeys."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def run(args: argparse.Namespace) -> int:
    page = os.sysconf("SC_PAGE_SIZE")
    memory = (args.memory << 20 if args.memory
              else page * os.sysconf("SC_PHYS_PAGES"))
    paths, unmatched = _files(args.files)
    files: dict[str, list[Item]] = {}
    unread = []
    for path in paths:
        try:
            files[str(path)] = lint_read.read(path)
        except UsageError as error:
            unread.append(str(error))
    kernel = None if args.memory else Kernel(args.root)
    found = lint.check(files, Machine(memory, page, kernel))
    bad = [f for f in found if f.level != "note"]
    settings = sum(not isinstance(item, Unreadable)
                   for items in files.values() for item in items)
    if args.json:
        print(json.dumps({"format": "msstune-lint", "version": 1,
                          "files": list(files), "settings": settings,
                          "findings": [asdict(f) for f in found]}))
        return _status(bool(bad), unread)
    for word in unmatched:
        print(f"no file matches {word}: nothing to check there")
    for f in found:
        print(f"{f.file}:{f.line}: {f.level}: {_printable(f.what)} [{f.rule}]")
        print(textwrap.fill(f"{f.why} ({f.source})", 79,
                            initial_indent="    ", subsequent_indent="    "))
    if files:
        print(f"{settings} settings, {len(bad)} errors and warnings, "
              f"{len(found) - len(bad)} notes")
    sys.stdout.flush()
    return _status(bool(bad), unread)


def _status(bad: bool, unread: list[str]) -> int:
    """Exit status; files that could not be read come last."""
    for text in unread:
        print(f"msstune: {text}", file=sys.stderr)
    return UsageError.status if unread else int(bad)
