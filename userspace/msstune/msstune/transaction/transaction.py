# SPDX-License-Identifier: GPL-2.0-only
"""Apply, confirm and undo, in an order of journal and write that makes a kill at
any point harmless.

For each setting: store its old value on disk, write the new one, read it back,
store the result on disk.  Undo goes backwards.  It restores a value only where
the value that we wrote is still in force; a value from another writer is left
alone and reported.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from . import rollback_timer
from .. import system
from ..errors import TuneError, UsageError
from .journal import Entry, Journal, Transaction
from ..settings.setting import Setting
from ..settings.settings import named


@dataclass(frozen=True)
class Change:
    """One setting and the new value requested for it."""

    setting: Setting
    new: str
    reason: str = ""
    expected: str | None = None     # old value in the plan; None: no plan


#: Seconds that the timer waits for a stopped or hanging process.
PATIENCE = 30.0


def boottime() -> float:
    """Seconds since boot, including time in suspend."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class TransactionManager:
    """Applies and undoes the changes of one network namespace."""

    def __init__(self, state: Path, root: Path = Path("/"),
                 say: Callable[[str], None] = print,
                 copy: Transaction | None = None) -> None:
        """@copy: the change of a timer, in case its journal cannot be read."""
        self.state, self.root, self.say, self.copy = state, root, say, copy
        self.boot, self.netns = system.boot_id(), system.netns()
        self.journal = Journal(state, self.netns)

    # --- State -------------------------------------------------------------

    def transactions(self, ended: bool = False) -> list[Transaction]:
        """All changes; @ended: also those that ended before the last one began."""
        return self.journal.load(ended)

    def pending(self) -> Transaction | None:
        """The one change that is neither confirmed nor ended, if any."""
        for transaction in reversed(self.transactions()):
            if transaction.state in ("waiting", "unfinished"):
                return transaction
        return None

    def drift(self, entry: Entry) -> str:
        """Whether the value is in force, and if not, which one is."""
        try:
            setting = named(entry.name, self.root)
            current = setting.read()
        except (TuneError, OSError) as error:
            return f"gone: {error}"
        except Exception as error:  # one value must not keep others from being shown
            return f"gone: it could not be read: {error!r}"
        if setting.same(current, entry.got or entry.new):
            return "in force"
        if setting.same(current, entry.old):
            return "old value again"
        return f"drifted: now {' '.join(current.split())}"

    # --- Apply -------------------------------------------------------------

    def recover(self) -> None:
        """End a change left by a crash, a reboot or a dead timer.  Holds the lock."""
        known = self.transactions()
        self.journal.tidy(known)
        for damaged in known:
            if damaged.state == "damaged" and not self._of_earlier_boot(damaged):
                self.journal.quarantine(damaged)
                self.say(f"{damaged.number}: its journal is damaged "
                         f"({damaged.path}: {damaged.damaged}); its settings may be "
                         f"in force; msstune rollback {damaged.number} undoes what "
                         "can be read")
            elif damaged.refused:
                self.say(f"{damaged.number}: {damaged.path}: {damaged.refused}; this "
                         "journal is not used")
        pending = self.pending()
        if not pending:
            return
        if self._of_earlier_boot(pending):
            # The reboot reset the kernel's settings: nothing to restore.
            self._log(pending, "end", why="reboot")
            self.say(f"{pending.number}: the machine was rebooted, which ended this "
                     "change")
        elif pending.state == "unfinished":
            self.say(f"{pending.number}: apply did not finish; undoing it")
            self.undo(pending, "crash")
        elif boottime() >= pending.begin["deadline"]:
            self.say(f"{pending.number}: not confirmed in time; undoing it")
            self.undo(pending, "timer")

    def _of_earlier_boot(self, transaction: Transaction) -> bool:
        return bool(transaction.begin.get("boot", self.boot) != self.boot)

    def apply(self, changes: Sequence[Change], timeout: float) -> Transaction:
        """Write all @changes or none; undo after @timeout s unless confirmed."""
        with self._applied(changes, timeout) as transaction:
            return transaction

    @contextmanager
    def trial(self, changes: Sequence[Change],
              timeout: float) -> Iterator[Transaction]:
        """Write @changes for the duration of the block.  The timer undoes them at
        once if we are killed (its pipe closes), after @timeout s if we hang."""
        with self._applied(changes, timeout, trial=True) as transaction:
            try:
                yield transaction
            finally:
                with self.journal.lock():
                    now = self._stored(transaction)
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
                    raise TuneError(f"{pending.number} waits: run msstune confirm "
                                    "or msstune rollback first")
                entries = self._entries(changes)
                transaction = self.journal.begin({
                    "boot": self.boot, "netns": self.netns,
                    "root": str(self.root), "time": int(time.time()),
                    "timeout": timeout, "deadline": boottime() + timeout,
                    **more}, entries)
                # The timer can undo even if it cannot read the journal.
                copy = replace(transaction, entries=[replace(e) for e in entries])
                try:
                    timer = armed.enter_context(rollback_timer.armed(
                        lambda: TransactionManager(self.state, self.root, copy=copy),
                        self.state, self.root, transaction.number, timeout))
                    self._append(transaction, "timer", **timer)
                    transaction.timer = timer
                    for change, entry in zip(changes, entries, strict=True):
                        self._write(transaction, change, entry)
                    self._check_not_ended(transaction)
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
        entries: list[Entry] = []
        for change in changes:
            old = change.setting.read()
            if (change.expected is not None
                    and not change.setting.same(old, change.expected)):
                raise TuneError(
                    f"{change.setting.name}: was {change.expected} in the plan and "
                    f"is {' '.join(old.split())} now; plan again")
            entries.append(Entry(change.setting.name, old, change.new,
                                 change.setting.identity(), change.reason,
                                 n=len(entries)))
        return entries

    def _write(self, transaction: Transaction, change: Change,
               entry: Entry) -> None:
        self._check_not_ended(transaction)
        self._append(transaction, "intent", n=entry.n, name=entry.name,
                     old=entry.old, new=entry.new, identity=entry.identity,
                     reason=entry.reason)
        transaction.entries.append(entry)
        try:
            change.setting.write(change.new)
        except OSError as error:
            raise TuneError(f"{entry.name}={change.new}: {error.strerror}; all "
                            "settings were undone") from error
        entry.got = change.setting.read()
        self._append(transaction, "done", n=entry.n, got=entry.got)
        if not change.setting.took(change.new, entry.got):
            raise TuneError(f"{entry.name}: {change.new} was written, but "
                            f"{' '.join(entry.got.split())} is in force")

    def _check_not_ended(self, transaction: Transaction) -> None:
        """Raise if we were stopped for so long that the timer did not wait for the
        lock, and undid the change."""
        if self._stored(transaction).ended:
            raise TuneError(f"{transaction.number}: undone meanwhile; no more is "
                            "written")

    def _append(self, transaction: Transaction, op: str, **more: object) -> None:
        try:
            self.journal.append(transaction.path, {"op": op, **more})
        except OSError as error:
            raise TuneError(f"{transaction.path}: {error.strerror}") from error

    def _log(self, transaction: Transaction, op: str, **more: object) -> None:
        """As _append(), for steps that must not depend on the disk."""
        try:
            self.journal.append(transaction.path, {"op": op, **more})
        except OSError as error:
            transaction.unlogged = str(error.strerror)

    # --- Confirm, undo -----------------------------------------------------

    def confirm(self) -> Transaction:
        with self.journal.lock():
            self.recover()
            pending = self.pending()
            if not pending:
                raise TuneError("nothing waits for confirmation")
            if pending.begin.get("trial"):
                raise TuneError(f"{pending.number} is a trial of msstune verify, "
                                "which confirms or undoes it")
            try:
                self._append(pending, "confirm", time=int(time.time()))
            except TuneError as error:
                raise TuneError(f"{error}; msstune status shows whether "
                                f"{pending.number} is confirmed") from error
            pending.confirmed = True
            rollback_timer.disarm(pending.timer)
            return pending

    def rollback(self, number: int | None = None,
                 confirmed: bool = False) -> list[Transaction]:
        """Undo the pending and damaged changes, or change @number, or with
        @confirmed all changes of this boot.  One that fails does not stop the
        others."""
        failed = []
        with self.journal.lock():
            known = [t for t in self.transactions()
                     if t.state not in ("ended", "refused")]
            if number is not None:
                chosen = [t for t in known if t.number == number]
                if not chosen:
                    raise TuneError(f"{number}: no such change, or it has ended")
            else:
                chosen = [t for t in reversed(known)
                          if confirmed or t.state != "confirmed"]
            for transaction in chosen:
                if self._of_earlier_boot(transaction):
                    self._log(transaction, "end", why="reboot")
                    transaction.ended = "reboot"
                    continue
                try:
                    self.undo(transaction, "rollback", known)
                except TuneError as error:
                    failed.append(str(error))
                    continue
                if transaction.damaged:
                    self.journal.quarantine(transaction)
                rollback_timer.disarm(transaction.timer)
        if failed:
            raise TuneError("; ".join(failed))
        return chosen

    def expire(self, number: int, why: str,
               say: Callable[[str], None] = lambda text: None) -> bool:
        """For the timer: undo @number unless it was confirmed or has ended."""
        self.say = say
        with ExitStack() as held:
            # Undo without the lock rather than not at all.
            with suppress(TuneError, OSError):
                held.enter_context(self.journal.lock(patience=PATIENCE))
            found = [t for t in self._readable() if t.number == number]
            if not found and self.copy:
                # Confirming ends the timer, so the change is not confirmed.
                found = [self.copy]
            for transaction in found:
                if (not self._of_earlier_boot(transaction)
                        and transaction.state in ("waiting", "unfinished")):
                    self.undo(transaction, why)
                    return True
        return False

    def _readable(self) -> list[Transaction]:
        try:
            return [t for t in self.transactions() if not t.damaged and not t.refused]
        except (TuneError, OSError):
            return []

    def _stored(self, transaction: Transaction) -> Transaction:
        """The change as stored by now, or as known here if that is unreadable."""
        try:
            return self.journal.stored(transaction) or transaction
        except (TuneError, OSError):
            return transaction

    def undo(self, transaction: Transaction, why: str,
             known: Sequence[Transaction] | None = None) -> None:
        """Undo the entries backwards, each by compare and swap.  Holds the lock.
        Nothing here depends on the journal, nor on a terminal.  @known: all changes,
        if they were read already."""
        newer = [t for t in (self._readable() if known is None else known)
                 if t.number > transaction.number and not t.ended and not t.refused
                 and not self._of_earlier_boot(t)]
        for entry in reversed(transaction.entries):
            if entry.undone and entry.undone != "failed":
                continue
            entry.undone, told = (self._inherited(entry, newer)
                                  or self._undo_one(entry))
            self._log(transaction, "undo", n=entry.n, result=entry.undone)
            self._report(f"  {entry.name}: {told}")
        if any(entry.undone == "failed" for entry in transaction.entries):
            raise TuneError(f"{transaction.number}: not all settings could be "
                            "restored; msstune rollback tries again")
        transaction.unlogged = ""
        self._log(transaction, "end", why=why)
        transaction.ended = why
        if transaction.unlogged:
            self._report(f"{transaction.number}: undone, but this could not be stored "
                         f"({transaction.path}: {transaction.unlogged}); run msstune "
                         "rollback again when it can")

    def _inherited(self, entry: Entry,
                   newer: Sequence[Transaction]) -> tuple[str, str] | None:
        """The value to restore goes to the next change of the same setting, if there
        is one, so that any order of undoing ends with the oldest value."""
        heir, its = next(((t, e) for t in newer for e in t.entries
                          if (e.name, e.identity) == (entry.name, entry.identity)
                          and e.undone in (None, "failed")), (None, None))
        if heir is None or its is None:
            return None
        try:
            if not named(entry.name, self.root).same(its.old, entry.got or entry.new):
                return "drifted", ("another writer set "
                                   f"{' '.join(its.old.split())}; left alone")
            self._append(heir, "inherit", n=its.n, old=entry.old)
        except Exception as error:  # it must not keep others from being restored
            return "failed", f"change {heir.number} could not take over: {error}"
        its.old = entry.old
        return "inherited", (f"change {heir.number} set it again; undoing that "
                             f"restores {' '.join(entry.old.split())}")

    def _report(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self.say(text)

    def _undo_one(self, entry: Entry) -> tuple[str, str]:
        old = " ".join(entry.old.split())
        try:
            setting = named(entry.name, self.root)
            if setting.identity() != entry.identity:
                return "gone", "this name now belongs to another device; left alone"
            current = setting.read()
            if setting.same(current, entry.old):
                return "unchanged", f"has its old value, {old}"
            if entry.got is None:
                ours = setting.took(entry.new, current)
            else:
                ours = setting.same(current, entry.got)
        except (TuneError, OSError) as error:
            return "gone", f"left alone: {error}"
        except Exception as error:  # it must not keep others from being restored
            return "gone", f"left alone: it could not be read: {error!r}"
        if not ours:
            return "drifted", (f"another writer set {' '.join(current.split())}; "
                               "left alone")
        try:
            setting.write(entry.old)
            current = setting.read()
            restored = setting.same(current, entry.old)
        except Exception as error:  # likewise
            return "failed", f"could not be restored: {error}"
        if not restored:
            return "failed", f"is {' '.join(current.split())} after writing {old}"
        return "restored", f"restored to {old}"
