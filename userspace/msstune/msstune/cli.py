# SPDX-License-Identifier: GPL-2.0-only
"""Command line of msstune: the table of commands, and how errors end."""
from __future__ import annotations

import argparse
import io
import os
import sys
from pathlib import Path

from . import __version__, system
from .commands import (apply, auto, diagnose, journal, lint, plan, recovery, verify,
                       watch)
from .errors import TuneError

COMMANDS = (diagnose, plan, apply, verify, auto, journal,
            lint, recovery, watch)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="msstune", description="Find what limits TCP here, and change settings "
        "with an undo.",
        epilog="Exit status: 0 good, 1 failed or findings, 2 usage, 3 not "
        "supported here.")
    top.add_argument("-V", "--version", action="version",
                     version=f"msstune {__version__}")
    top.add_argument("--state", type=Path, default=system.STATE, metavar="DIR",
                     help=f"folder of the journals, default {system.STATE}")
    top.add_argument("--root", type=Path, default=Path("/"), metavar="DIR",
                     help="use sysctls below DIR/proc/sys, for tests")
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add(commands)
    return top


def _drop_stdout() -> None:
    """Python would complain again at exit about what could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> int:
    if sys.stdout is None:
        print("msstune: standard output is closed; nothing was done", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    args = parser().parse_args()
    # The rollback timer changes to another folder.
    args.state, args.root = args.state.resolve(), args.root.resolve()
    try:
        status: int = args.run(args)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        _drop_stdout()
        return 1
    except KeyboardInterrupt:
        print("msstune: interrupted; changes that were not kept are undone",
              file=sys.stderr)
        return 130
    except (TuneError, OSError) as error:
        try:
            sys.stdout.flush()
        except OSError:
            _drop_stdout()
        print(f"msstune: {error}", file=sys.stderr)
        return getattr(error, "status", 1)
