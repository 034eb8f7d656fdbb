# SPDX-License-Identifier: GPL-2.0
"""Apply, confirm, undo: the order of journal and write that makes a kill at any
point harmless.

For each setting: its old value goes to disk, then it is written, then what the
kernel made of it goes to disk.  Undo goes backwards and restores a value only
where what we wrote is still there: another writer's work is left alone, and
said.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import rollback_timer, system
from .errors import TuneError, UsageError
from .journal import Entry, Journal, Transaction
from .settings import Setting, named


@dataclass(frozen=True)
class Change:
    """One setting and its new value, as asked for."""

    setting: Setting
    new: str
    reason: str = ""
    expected: str | None = None     # what a plan saw; None: no plan


def boottime() -> float:
    """Seconds since the boot, time asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class TransactionManager:
    """All of it, for one network namespace."""

    def __init__(self, state: Path, root: Path = Path("/"),
                 say: Callable[[str], None] = print) -> None:
        self.state, self.root, self.say = state, root, say
        self.boot, self.netns = system.boot_id(), system.netns()
        self.journal = Journal(state, self.netns)

    # --- What is there -----------------------------------------------------

    def transactions(self) -> list[Transaction]:
        return self.journal.load()

    def pending(self) -> Transaction | None:
        """The one that is neither confirmed nor over; there is one at most."""
        for transaction in reversed(self.transactions()):
            if transaction.state in ("waiting", "unfinished"):
                return transaction
        return None

    def drift(self, entry: Entry) -> str:
        """in force, or what is there instead."""
        try:
            setting = named(entry.name, self.root)
            current = setting.read()
        except (TuneError, OSError) as error:
            return f"gone: {error}"
        if setting.same(current, entry.got or entry.new):
            return "in force"
        if setting.same(current, entry.old):
            return "old value again"
        return f"drifted: now {' '.join(current.split())}"

    # --- Apply -------------------------------------------------------------

    def recover(self) -> None:
        """End what a crash, a reboot or a dead timer left; under the lock."""
        pending = self.pending()
        if not pending:
            return
        if pending.begin["boot"] != self.boot:
            # The kernel's settings went with that boot; nothing to put back.
            self._append(pending, "end", why="reboot")
            self.say(f"{pending.number}: the machine was restarted; its changes "
                     "went with that")
        elif pending.state == "unfinished":
            self.say(f"{pending.number}: apply did not finish; undoing it")
            self.undo(pending, "crash")
        elif boottime() >= pending.begin["deadline"]:
            self.say(f"{pending.number}: not confirmed in time; undoing it")
            self.undo(pending, "timer")

    def apply(self, changes: Sequence[Change], timeout: float) -> Transaction:
        """Write all of them or none; undone after @timeout s unless confirmed."""
        with self._applied(changes, timeout) as transaction:
            return transaction

    @contextmanager
    def trial(self, changes: Sequence[Change],
              timeout: float) -> Iterator[Transaction]:
        """Written for the block and undone at its end; at once if we are killed
        in it, for the timer's pipe stays open; after @timeout s if we hang."""
        with self._applied(changes, timeout, trial=True) as transaction:
            try:
                yield transaction
            finally:
                with self.journal.lock():
                    now, = (t for t in self.transactions()
                            if t.number == transaction.number)
                    if not now.ended:
                        self.undo(now, "trial")
                    transaction.entries, transaction.ended = now.entries, now.ended
                rollback_timer.disarm(transaction.timer)

    @contextmanager
    def _applied(self, changes: Sequence[Change], timeout: float,
                 **more: object) -> Iterator[Transaction]:
        with ExitStack() as armed:
            with self.journal.lock(wait=False):
                self.recover()
                pending = self.pending()
                if pending:
                    raise TuneError(f"{pending.number} waits: msstune confirm or "
                                    "msstune rollback first")
                entries = self._entries(changes)
                transaction = self.journal.begin({
                    "boot": self.boot, "netns": self.netns,
                    "root": str(self.root), "time": int(time.time()),
                    "timeout": timeout, "deadline": boottime() + timeout,
                    **more})
                timer = armed.enter_context(rollback_timer.armed(
                    self.state, self.root, transaction.number, timeout))
                self._append(transaction, "timer", **timer)
                transaction.timer = timer
                try:
                    for change, entry in zip(changes, entries):
                        self._write(transaction, change, entry)
                    self._append(transaction, "applied")
                except BaseException:
                    self.undo(transaction, "failed")
                    raise
                transaction.applied = True
            yield transaction

    def _entries(self, changes: Sequence[Change]) -> list[Entry]:
        names = [change.setting.name for change in changes]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{name}: given twice")
        entries = []
        for change in changes:
            old = change.setting.read()
            if (change.expected is not None
                    and not change.setting.same(old, change.expected)):
                raise TuneError(
                    f"{change.setting.name}: the plan saw {change.expected}, now "
                    f"it is {' '.join(old.split())}; plan again")
            entries.append(Entry(change.setting.name, old, change.new,
                                 change.setting.identity(), change.reason))
        return entries

    def _write(self, transaction: Transaction, change: Change,
               entry: Entry) -> None:
        n = len(transaction.entries)
        self._append(transaction, "intent", name=entry.name, old=entry.old,
                     new=entry.new, identity=entry.identity,
                     reason=entry.reason)
        transaction.entries.append(entry)
        try:
            change.setting.write(change.new)
        except OSError as error:
            raise TuneError(f"{entry.name}={change.new}: {error.strerror}; all "
                            "undone") from error
        entry.got = change.setting.read()
        self._append(transaction, "done", n=n, got=entry.got)
        if not change.setting.took(change.new, entry.got):
            raise TuneError(f"{entry.name}: {change.new} was written and "
                            f"{' '.join(entry.got.split())} is there")

    def _append(self, transaction: Transaction, op: str, **more: object) -> None:
        self.journal.append(transaction.path, {"op": op, **more})

    # --- Confirm, undo -----------------------------------------------------

    def confirm(self) -> Transaction:
        with self.journal.lock():
            self.recover()
            pending = self.pending()
            if not pending:
                raise TuneError("nothing waits for confirmation")
            if pending.begin.get("trial"):
                raise TuneError(f"{pending.number} is a trial of msstune verify, "
                                "which decides by itself")
            self._append(pending, "confirm", time=int(time.time()))
            pending.confirmed = True
            rollback_timer.disarm(pending.timer)
            return pending

    def rollback(self, number: int | None = None,
                 confirmed: bool = False) -> list[Transaction]:
        """Undo what waits, or one by number, or all of this boot."""
        with self.journal.lock():
            known = [t for t in self.transactions() if t.state != "ended"]
            if number is not None:
                chosen = [t for t in known if t.number == number]
                if not chosen:
                    raise TuneError(f"{number}: no such change, or it is over")
            else:
                chosen = [t for t in reversed(known)
                          if confirmed or t.state != "confirmed"]
            for transaction in chosen:
                if transaction.begin["boot"] != self.boot:
                    self._append(transaction, "end", why="reboot")
                    transaction.ended = "reboot"
                    continue
                self.undo(transaction, "rollback")
                rollback_timer.disarm(transaction.timer)
            return chosen

    def expire(self, number: int, why: str) -> bool:
        """For the timer: undo @number if it was neither confirmed nor ended."""
        with self.journal.lock():
            for transaction in self.transactions():
                if (transaction.number == number
                        and transaction.begin["boot"] == self.boot
                        and transaction.state in ("waiting", "unfinished")):
                    self.undo(transaction, why)
                    return True
        return False

    def undo(self, transaction: Transaction, why: str) -> None:
        """Backwards, each by compare and swap; under the lock."""
        for n, entry in reversed(list(enumerate(transaction.entries))):
            if entry.undone and entry.undone != "failed":
                continue
            entry.undone, told = self._undo_one(entry)
            self._append(transaction, "undo", n=n, result=entry.undone)
            self.say(f"  {entry.name}: {told}")
        if any(entry.undone == "failed" for entry in transaction.entries):
            raise TuneError(f"{transaction.number}: not all could be put back; "
                            "msstune rollback tries again")
        self._append(transaction, "end", why=why)
        transaction.ended = why

    def _undo_one(self, entry: Entry) -> tuple[str, str]:
        old = " ".join(entry.old.split())
        try:
            setting = named(entry.name, self.root)
            if setting.identity() != entry.identity:
                return "gone", "another device has this name now; left alone"
            current = setting.read()
        except (TuneError, OSError) as error:
            return "gone", f"left alone: {error}"
        if setting.same(current, entry.old):
            return "unchanged", f"{old} is there already"
        if entry.got is None:
            ours = setting.took(entry.new, current)
        else:
            ours = setting.same(current, entry.got)
        if not ours:
            return "drifted", (f"someone else set {' '.join(current.split())}; "
                               "left alone")
        try:
            setting.write(entry.old)
            current = setting.read()
        except (TuneError, OSError) as error:
            return "failed", f"could not be put back: {error}"
        if not setting.same(current, entry.old):
            return "failed", f"still {' '.join(current.split())}, wanted {old}"
        return "restored", f"back to {old}"
