# SPDX-License-Identifier: GPL-2.0-only
"""msstune apply: write settings that are undone unless confirmed."""
from __future__ import annotations

import argparse
import json

from . import journal, options, verify as cmd_verify
from .. import units


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "apply", help="write settings; undo them unless confirmed",
        description="Show what would change.  With --yes, write the settings "
        "and undo them after --timeout unless msstune confirm comes first.")
    options.add_settings(cmd)
    options.add_permissions(cmd)
    cmd.add_argument("--timeout", type=units.whole(1, 86400), default=120,
                     metavar="S", help="seconds to confirm in, default 120")
    cmd.add_argument("--verify", action="store_true",
                     help="do as msstune verify, with all settings as one change")
    options.add_experiments(cmd)
    options.add_staging(cmd)
    options.add_json(cmd)
    cmd.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    request = options.request(args)
    if args.verify:
        return cmd_verify.verify(request, options.protocol(args), args.output,
                                 options.staging(args), together=True)
    changes = request.changes()
    request.permit(changes)
    if changes and not request.yes:
        request.tell("nothing was changed; --yes does it")
    done = request.manager().apply(changes, args.timeout) \
        if changes and request.yes else None
    if request.json:
        print(json.dumps(journal.changed([done] if done else [])))
    if request.json or not done:
        return 0
    print(f"{done.number}: applied; undone in {args.timeout} s unless you run: "
          "msstune confirm")
    for entry in done.entries:
        if entry.got is not None and entry.got.split() != entry.new.split():
            print(f"  {entry.name}: the kernel changed it to "
                  f"{' '.join(entry.got.split())}")
    return 0
