# SPDX-License-Identifier: GPL-2.0-only
"""What one command line asks for: which changes, where, and what is permitted.
The commands build it from their arguments; nothing below them sees these.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..settings import permissions, settings
from ..errors import TuneError, UsageError
from ..settings.permissions import Permissions
from .transaction import Change, TransactionManager


@dataclass(frozen=True)
class Request:
    """The part that every command which changes something has."""

    state: Path
    root: Path
    settings: tuple[str, ...] = ()      # KIND:TARGET=VALUE, or plan files
    permissions: Permissions = Permissions()
    yes: bool = False                   # False: only show what would change
    json: bool = False                  # stdout is kept for one JSON object

    def tell(self, text: str) -> None:
        """A line for the user."""
        print(text, file=sys.stderr if self.json else sys.stdout, flush=True)

    def manager(self) -> TransactionManager:
        found = TransactionManager(self.state, self.root)
        found.say = self.tell
        return found

    def permit(self, changes: Sequence[Change]) -> None:
        """Raise unless all of @changes may be made."""
        permissions.check([c.setting for c in changes], self.permissions,
                          self.tell)

    def changes(self) -> list[Change]:
        """The changes that are not in force already; all are shown."""
        needed, same_names = [], set()
        for change in changes_of(self.settings, self.root):
            old = change.setting.read()
            same = change.setting.same(old, change.new)
            self.tell(f"{change.setting.name}: {' '.join(old.split())} -> "
                      + ("the same" if same else change.new))
            if same:
                same_names.add(change.setting.name)
            else:
                needed.append(change)
        self._check_pending(same_names)
        if not needed:
            self.tell("nothing to change")
        return needed

    def _check_pending(self, names: set[str]) -> None:
        """Raise if values of @names are there only until a timer undoes them."""
        try:
            pending = self.manager().pending()
        except TuneError:
            if self.yes:
                raise
            return  # another user may see what would change
        theirs = [e.name for e in pending.entries if e.name in names] if pending else []
        if pending and theirs:
            raise TuneError(
                f"{', '.join(theirs)}: set by change {pending.number}, which waits for "
                "confirmation and is undone otherwise: run msstune confirm or msstune "
                "rollback first")


@dataclass(frozen=True)
class Staging:
    """How a session of experiments proceeds."""

    canary: int = 0         # % of connections that get a change first; 0: none
    resume: bool = False    # go on with the session in the folder of the results


AT_ONCE = Staging()


def changes_of(words: Sequence[str], root: Path) -> list[Change]:
    """Settings of the command line, and those of plan files among them."""
    changes: list[Change] = []
    for word in words:
        if word.endswith(".json"):
            changes += _from_plan(Path(word), root)
        else:
            changes.append(Change(*settings.parse(word, root)))
    return changes


def _from_plan(path: Path, root: Path) -> list[Change]:
    try:
        plan: Any = json.loads(path.read_text(encoding="utf-8"))
        if plan["format"] != "msstune-plan":
            raise ValueError(f"its format is {plan['format']}")
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
