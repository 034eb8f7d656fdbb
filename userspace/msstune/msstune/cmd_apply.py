# SPDX-License-Identifier: GPL-2.0
"""msstune apply: write settings, to be confirmed or undone."""
from __future__ import annotations

import argparse

from . import cmd_verify, units, request
from .transaction import TransactionManager


def add(commands: argparse._SubParsersAction) -> None:
    cmd = commands.add_parser(
        "apply", help="write settings, undone unless confirmed",
        description="Show what would change; with --yes write it, to be undone "
        "after --timeout unless msstune confirm comes first.")
    cmd.add_argument("settings", nargs="+", metavar="SETTING|PLAN.json",
                     help="KIND:TARGET=VALUE, or a file of msstune plan --json")
    cmd_verify.permissions(cmd)
    cmd.add_argument("--timeout", type=units.whole(1, 86400), default=120,
                     metavar="S", help="seconds to confirm in, default 120")
    cmd.add_argument("--verify", action="store_true",
                     help="as msstune verify, all of them as one change")
    cmd_verify.options(cmd)
    cmd.set_defaults(run=run, json=False, together=True)


def run(args: argparse.Namespace) -> int:
    if args.verify:
        return cmd_verify.run(args)
    changes = request.moving(args)
    if not changes:
        return 0
    request.guard(changes, args)
    if not args.yes:
        print("nothing was changed; --yes does it")
        return 0
    done = TransactionManager(args.state, args.root).apply(changes, args.timeout)
    print(f"{done.number}: applied; undone in {args.timeout} s unless you run: "
          "msstune confirm")
    for entry in done.entries:
        if entry.got is not None and entry.got.split() != entry.new.split():
            print(f"  {entry.name}: the kernel made it "
                  f"{' '.join(entry.got.split())}")
    return 0
