# SPDX-License-Identifier: GPL-2.0-only
"""The write-ahead journal: one file of JSON lines for each change.  Each line is
on disk before the step that it announces.

A step that was announced and not reported as done may or may not have happened;
the transaction finds out by reading the setting.  The space for all lines is
allocated with the first one, as zero bytes behind the last line, so that a full
disk cannot stop an undo.  An incomplete last line does not count.
"""
from __future__ import annotations

import fcntl
import json
import math
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import TuneError

Record = dict[str, Any]
_NAME = re.compile(r"([0-9]+)\.jsonl(\.damaged)?")
BLOCK = 4096
SPARE = 512     # bytes for the result of one setting, beyond its announcement


@dataclass
class Entry:
    """One setting of a change."""

    name: str
    old: str
    new: str
    identity: str = ""
    reason: str = ""
    got: str | None = None      # value in force after the write; None: unknown
    undone: str | None = None   # restored, unchanged, drifted, gone, failed
    n: int = -1                 # its number in the journal


@dataclass
class Transaction:
    """One change, as stored in its journal."""

    number: int
    path: Path
    begin: Record
    entries: list[Entry] = field(default_factory=list)
    timer: Record | None = None
    applied: bool = False
    confirmed: bool = False
    ended: str = ""             # why it ended: rollback, timer, crash, ...
    damaged: str = ""           # which part of the journal cannot be read
    refused: str = ""           # why the journal must not be trusted
    unlogged: str = ""          # why the end could not be stored

    @property
    def state(self) -> str:
        if self.refused:
            return "refused"
        if self.ended:
            return "ended"
        if self.damaged:
            return "damaged"
        if self.confirmed:
            return "confirmed"
        return "waiting" if self.applied else "unfinished"


class Journal:
    """The journals of one network namespace, in one folder."""

    def __init__(self, state: Path, netns: int) -> None:
        self.folder = state / f"netns-{netns}"

    @contextmanager
    def lock(self, wait: bool = True, patience: float = math.inf) -> Iterator[None]:
        """Held until the block or the process ends.  @wait: wait for it, at most
        @patience s, and take none where nothing was ever applied."""
        if not wait:
            state = self.folder.parent
            state.parent.mkdir(parents=True, exist_ok=True)
            state.mkdir(mode=0o755, exist_ok=True)
            self.folder.mkdir(mode=0o700, exist_ok=True)
        else:
            try:
                os.lstat(self.folder)
            except FileNotFoundError:
                yield
                return
        self._check_folder()
        lock = self._open_lock()
        try:
            _flock(lock, patience if wait else 0.0)
            yield
        finally:
            os.close(lock)

    def _open_lock(self) -> int:
        """Any way that works: an undo must be possible on a read-only disk."""
        path = self.folder / "lock"
        for flags in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):
            with suppress(OSError):
                return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        return os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)

    def _check_folder(self) -> None:
        """Raise if another user could have written the journals."""
        for folder in (self.folder.parent, self.folder):
            why = _distrust(os.stat(folder, follow_symlinks=folder != self.folder),
                            stat.S_ISDIR, "folder")
            if why:
                raise TuneError(f"{folder}: {why}; its journals are not used")

    def _files(self) -> list[tuple[int, Path]]:
        """Number and path of each journal, oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        except PermissionError as error:
            raise TuneError(f"{self.folder}: permission denied; only root can see "
                            "what is applied") from error
        return sorted((int(match[1]), self.folder / match[0])
                      for match in map(_NAME.fullmatch, names) if match)

    def append(self, path: Path, record: Record) -> None:
        """Returns when the line is on disk."""
        self._write(path, os.O_RDWR | os.O_NOFOLLOW, record)

    def _write(self, path: Path, flags: int, record: Record,
               size: int = 0) -> None:
        """Write a line behind the last one, and zero bytes up to @size."""
        line = (json.dumps(record) + "\n").encode()
        fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            text = _content(fd)
            start = text.rfind(b"\n") + 1
            # A crash may have left a part of a line: overwrite all of it.
            data = line.ljust(max(len(text) - start, size), b"\0")
            while data:
                done = os.pwrite(fd, data, start)
                data, start = data[done:], start + done
            os.fsync(fd)
        finally:
            os.close(fd)

    def begin(self, record: Record, entries: Sequence[Entry]) -> Transaction:
        """A new journal, with space for all that may happen to @entries."""
        number = max((number for number, _ in self._files()), default=0) + 1
        path = self.folder / f"{number:06d}.jsonl"
        need = len(json.dumps(record)) + 2 * BLOCK + sum(
            2 * len(json.dumps(vars(entry))) + 2 * SPARE for entry in entries)
        try:
            self._write(path, os.O_RDWR | os.O_CREAT | os.O_EXCL,
                        {"op": "begin", **record}, need // BLOCK * BLOCK + BLOCK)
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            with suppress(OSError):
                os.unlink(path)
            raise TuneError(f"{path}: {error.strerror}; nothing was changed"
                            ) from error
        return Transaction(number, path, record)

    def load(self) -> list[Transaction]:
        """All changes, oldest first."""
        files = self._files()
        if files:
            self._check_folder()
        return [t for t in (_read(*one) for one in files) if t]

    def quarantine(self, transaction: Transaction) -> None:
        """Mark a damaged journal by its name."""
        if not transaction.path.name.endswith(".damaged"):
            new = transaction.path.with_name(f"{transaction.path.name}.damaged")
            with suppress(OSError):
                os.rename(transaction.path, new)
                transaction.path = new


def _flock(lock: int, patience: float) -> None:
    if patience == math.inf:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= end:
                raise TuneError("another msstune is running here") from error
        time.sleep(0.1)


def _content(fd: int) -> bytes:
    """All of a file, without the allocated space behind its last byte."""
    data = b""
    while part := os.pread(fd, 1 << 20, len(data)):
        data += part
    return data.rstrip(b"\0")


def _distrust(info: os.stat_result, kind: Any, name: str) -> str:
    """Why another user could have written a file or folder; empty if trusted."""
    if not kind(info.st_mode):
        return f"not a {name}"
    if info.st_uid not in (0, os.geteuid()):
        return f"belongs to user {info.st_uid}"
    if info.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not (
            name == "folder" and info.st_mode & stat.S_ISVTX):
        return "other users may write it"
    return ""


def _read(number: int, path: Path) -> Transaction | None:
    """None: a journal whose first line never reached the disk."""
    transaction = Transaction(number, path, {})
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
                     | os.O_NONBLOCK)
    except FileNotFoundError:
        return None  # renamed at this moment
    except OSError as error:
        transaction.refused = str(error.strerror)
        return transaction
    try:
        transaction.refused = _distrust(os.fstat(fd), stat.S_ISREG, "plain file")
        if transaction.refused:
            return transaction
        text = _content(fd)
    except OSError as error:
        transaction.damaged = str(error.strerror)
        return transaction
    finally:
        os.close(fd)
    lines = text.split(b"\n")[:-1]
    for at, line in enumerate(lines, 1):
        try:
            _take(transaction, json.loads(line))
        except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
            transaction.damaged = f"line {at}"
    if lines and "boot" not in transaction.begin:
        transaction.damaged = "line 1"
    return transaction if lines else None


def _take(t: Transaction, record: Record) -> None:
    """Add one line to what is known of a change."""
    op = record.pop("op")
    if op == "begin":
        if not (isinstance(record["boot"], str)
                and isinstance(record["deadline"], (int, float))
                and isinstance(record["time"], (int, float))):
            raise ValueError("begin")
        t.begin = record
    elif op == "timer":
        t.timer = {"pid": int(record["pid"]), "start": int(record["start"]),
                   "unit": str(record["unit"])}
    elif op == "intent":
        n = record.pop("n")
        if not isinstance(n, int) or not all(
                isinstance(value, str) for value in record.values()):
            raise ValueError("intent")
        t.entries.append(Entry(**record, n=n))
    elif op in ("done", "undo"):
        # A damaged line before it may have been the intent of another entry.
        entry = next(e for e in t.entries if e.n == record["n"])
        if op == "done":
            entry.got = str(record["got"])
        else:
            entry.undone = str(record["result"])
    elif op == "applied":
        t.applied = True
    elif op == "confirm":
        t.confirmed = True
    elif op == "end":
        t.ended = str(record["why"])
    else:
        raise ValueError(op)
