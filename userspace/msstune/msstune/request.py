# SPDX-License-Identifier: GPL-2.0
"""The changes that a command line asks for, and whether they may be made."""
from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import conflicts, settings, system
from .transaction import Change
from .errors import TuneError, UsageError


def _from_plan(path: Path, root: Path) -> list[Change]:
    try:
        plan: Any = json.loads(path.read_text(encoding="utf-8"))
        if plan["format"] != "msstune-plan":
            raise ValueError(f"it is {plan['format']}")
        rows = [(row["setting"], row["new"], row["old"],
                 f"{row['reason']} ({row['source']})")
                for row in plan["settings"] if row.get("apply", True)]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a plan of msstune: {error}") from error
    changes = []
    for name, new, old, reason in rows:
        setting, value = settings.parse(f"{name}={new}", root)
        changes.append(Change(setting, value, reason, old))
    return changes


def changes_of(words: Sequence[str], root: Path) -> list[Change]:
    changes: list[Change] = []
    for word in words:
        if word.endswith(".json"):
            changes += _from_plan(Path(word), root)
        else:
            changes.append(Change(*settings.parse(word, root)))
    return changes


def session_device() -> str:
    """The device that carries the operator's ssh session."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    if len(words) != 4:
        return ""
    for device in json.loads(system.run("ip", "-j", "addr", "show")):
        if any(info.get("local") == words[2]
               for info in device.get("addr_info", [])):
            return str(device["ifname"])
    return ""


def guard(changes: Sequence[Change], args: argparse.Namespace) -> None:
    rough = [c.setting for c in changes if c.setting.disruptive]
    if rough and not args.allow_disruptive:
        raise TuneError(f"{rough[0].name} may lose packets for a moment; give "
                        "--allow-disruptive")
    if rough:
        here = session_device()
        for setting in rough:
            if setting.device == here:
                raise TuneError(f"{setting.name}: your ssh session goes through "
                                f"{here}; use another way in")
    for rival, names in conflicts.find([c.setting for c in changes],
                                       conflicts.running()):
        print(f"note: {', '.join(names)}: {rival.rule}", file=sys.stderr
              if args.json else sys.stdout)
        if rival.blocks and not args.despite_rivals:
            raise TuneError(f"{rival.comm} runs; stop it or give "
                            "--despite-rivals")


def moving(args: argparse.Namespace) -> list[Change]:
    """Those that are not there already; all are shown."""
    told = sys.stderr if args.json else sys.stdout
    changes = []
    for change in changes_of(args.settings, args.root):
        old = change.setting.read()
        same = change.setting.same(old, change.new)
        print(f"{change.setting.name}: {' '.join(old.split())} -> "
              + ("the same" if same else change.new), file=told)
        if not same:
            changes.append(change)
    if not changes:
        print("nothing to change", file=told)
    return changes
