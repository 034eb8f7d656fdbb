# SPDX-License-Identifier: GPL-2.0-only
"""msstune confirm, status, rollback, export and the hidden timer command: each is
a few lines around the journal."""
from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from . import options
from .. import units
from ..transaction import export, rollback_timer
from ..errors import TuneError
from ..transaction.journal import Entry, Transaction
from ..transaction.transaction import TransactionManager, boottime


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser("confirm", help="keep what apply wrote",
                              description="Keep what apply wrote last.")
    options.add_json(cmd)
    cmd.set_defaults(run=confirm)
    cmd = commands.add_parser(
        "status", help="show what is applied, and what drifted",
        description="Show each change that has not ended, and whether its values "
        "are still in force.")
    cmd.add_argument("--all", action="store_true", help="also show changes that ended")
    options.add_json(cmd)
    cmd.set_defaults(run=status)
    cmd = commands.add_parser(
        "rollback", help="undo what apply wrote",
        description="Undo the change that waits for confirmation.  A value that "
        "another writer changed since is left alone.")
    cmd.add_argument("number", nargs="?", type=units.whole(1, 10**6),
                     metavar="NUMBER", help="undo only this change, confirmed or not")
    cmd.add_argument("--all", action="store_true",
                     help="also undo confirmed changes, newest first")
    options.add_json(cmd)
    cmd.set_defaults(run=rollback)
    cmd = commands.add_parser(
        "export", help="print confirmed settings as a file that survives reboots",
        description="Print confirmed settings as a file to install.")
    cmd.add_argument("--format", choices=sorted(export.FORMATS),
                     default="sysctl.d", help="default sysctl.d")
    cmd.add_argument("number", nargs="?", type=units.whole(1, 10**6),
                     metavar="NUMBER", help="print only this change")
    options.add_json(cmd)
    cmd.set_defaults(run=export_file)
    cmd = commands.add_parser("timer")  # for systemd-run; without help, so not listed
    cmd.add_argument("number", type=int)
    cmd.add_argument("timeout", type=float)
    cmd.set_defaults(run=lambda args: rollback_timer.watch(
        TransactionManager(args.state, args.root), args.number, args.timeout))


def changed(done: Sequence[Transaction]) -> dict[str, Any]:
    """What apply, confirm and rollback print with --json."""
    return {"format": "msstune-changes", "version": 1, "changes": [
        {"number": t.number, "state": "damaged" if t.damaged else t.state,
         "ended": t.ended or "",
         "settings": [_setting(e) for e in t.entries]} for t in done]}


def confirm(args: argparse.Namespace) -> int:
    done = options.request(args).manager().confirm()
    if args.json:
        print(json.dumps(changed([done])))
        return 0
    print(f"{done.number}: confirmed, {len(done.entries)} settings; msstune "
          f"rollback {done.number} undoes it")
    return 0


def _summary(manager: TransactionManager, t: Transaction) -> str:
    """The state of a change, in one line."""
    if t.refused:
        return f"not used: {t.path}: {t.refused}"
    if t.ended:
        return f"ended: {t.ended}" + (
            f"; its journal is damaged ({t.path}: {t.damaged})" if t.damaged else "")
    if t.damaged:
        return (f"its journal is damaged ({t.path}: {t.damaged}); its settings may be "
                f"in force: msstune rollback {t.number} undoes what can be read")
    if t.begin["boot"] != manager.boot:
        return "of an earlier boot: the reboot ended it"
    if t.state == "unfinished":
        return "apply did not finish: run msstune rollback"
    if t.confirmed:
        return "confirmed"
    if t.begin.get("trial") and rollback_timer.alive(t.timer):
        return "a trial of msstune verify, which will undo it"
    left = t.begin["deadline"] - boottime()
    if not rollback_timer.alive(t.timer):
        return ("waits for confirmation, but its timer is gone: run msstune "
                "confirm or msstune rollback")
    return f"waits for confirmation, {max(0, left):.0f} s left"


def _setting(entry: Entry) -> dict[str, Any]:
    """An entry as status prints it."""
    return {key: value for key, value in asdict(entry).items() if key != "n"}


def status(args: argparse.Namespace) -> int:
    manager = TransactionManager(args.state, args.root)
    rows = []
    for t in manager.transactions(ended=args.all):
        if t.ended and not args.all:
            continue
        live = not t.ended and t.begin.get("boot", manager.boot) == manager.boot
        rows.append({
            "number": t.number, "time": t.begin.get("time", 0), "state": t.state,
            "told": _summary(manager, t),
            "settings": [_setting(e) | ({"now": manager.drift(e)} if live else {})
                         for e in t.entries]})
    drifted = [s for row in rows for s in row["settings"]
               if s.get("now", "in force") != "in force"]
    if args.json:
        print(json.dumps({"format": "msstune-status", "version": 1,
                          "changes": rows}))
    for row in () if args.json else rows:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(row["time"]))
        print(f"{row['number']}  {when}  {row['told']}")
        for s in row["settings"]:
            print(f"  {s['name']}: {' '.join(s['old'].split())} -> {s['new']}"
                  f"  {s.get('now') or s['undone'] or ''}".rstrip())
    if not rows and not args.json:
        print("nothing is applied")
    return 1 if drifted or any(
        row["state"] in ("damaged", "refused") for row in rows) else 0


def rollback(args: argparse.Namespace) -> int:
    chosen = options.request(args).manager().rollback(args.number, args.all)
    left = [e.name for t in chosen for e in t.entries
            if e.undone in ("drifted", "gone")]
    if args.json:
        print(json.dumps(changed(chosen)))
    for t in () if args.json else chosen:
        print(f"{t.number}: " + (
            "of an earlier boot: nothing to undo" if t.ended == "reboot" else
            f"its journal is damaged ({t.path}: {t.damaged}); only the settings above "
            "were handled, others of this change may still be in force"
            if t.damaged else "undone"))
    if not chosen and not args.json:
        print("nothing to undo")
    return 1 if left or any(t.unlogged or t.damaged for t in chosen) else 0


def export_file(args: argparse.Namespace) -> int:
    known = [t for t in TransactionManager(args.state, args.root).transactions()
             if t.state == "confirmed"
             and args.number in (None, t.number)]
    entries = {entry.name: entry for t in known for entry in t.entries}
    if not entries:
        raise TuneError("nothing is confirmed" if args.number is None else
                        f"{args.number}: not a confirmed change")
    text = export.FORMATS[args.format](list(entries.values()))
    if args.json:
        print(json.dumps({"format": "msstune-export", "version": 1,
                          "kind": args.format, "text": text,
                          "settings": [_setting(e) for e in entries.values()]}))
    else:
        print(text, end="")
    return 0
