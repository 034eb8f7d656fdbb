# SPDX-License-Identifier: GPL-2.0-only
"""The write-ahead journal: one file of JSON lines for each change.  Each line is
on disk before the step that it announces.

A step that was announced and not reported as done may or may not have happened;
the transaction finds out by reading the setting.  The space for all lines is
allocated with the first one, as zero bytes behind the last line, so that a full
disk cannot stop an undo.  An incomplete last line does not count.

A journal gets its name only with its first line on disk, which holds the size of
the file and all settings of the change.  Each line has its number and a checksum.
So a damaged journal is always told from one that a crash cut short.
"""
from __future__ import annotations

import fcntl
import json
import math
import os
import re
import stat
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import TuneError

Record = dict[str, Any]
_NAME = re.compile(r"([0-9]+)\.jsonl(\.damaged)?")
BLOCK = 4096
SPARE = 512     # bytes for the result of one setting, beyond its announcement
KEPT = 100      # journals of ended changes, below ENDED
ENDED = "ended"
_CHECKED = re.compile(rb'\{"crc": "([0-9a-f]{8})", (.*\})')


@dataclass
class Entry:
    """One setting of a change."""

    name: str
    old: str
    new: str
    identity: str = ""
    reason: str = ""
    got: str | None = None      # value in force after the write; None: unknown
    #: restored, unchanged, inherited, drifted, gone, failed
    undone: str | None = None
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

    def _files(self, *folders: Path) -> list[tuple[int, Path]]:
        """Number and path of each journal in @folders, oldest first."""
        found = []
        for folder in folders or (self.folder,):
            try:
                names = os.listdir(folder)
            except FileNotFoundError:
                continue
            except PermissionError as error:
                raise TuneError(f"{folder}: permission denied; only root can see "
                                "what is applied") from error
            found += [(int(match[1]), folder / match[0])
                      for match in map(_NAME.fullmatch, names) if match]
        return sorted(found)

    def append(self, path: Path, record: Record) -> None:
        """Returns when the line is on disk."""
        self._write(path, os.O_RDWR | os.O_NOFOLLOW, record)

    def _write(self, path: Path, flags: int, record: Record,
               size: int = 0) -> None:
        """Write a line behind the last one, and zero bytes up to @size."""
        fd = os.open(path, flags | os.O_CLOEXEC, 0o600)
        try:
            text = _content(fd)
            start = text.rfind(b"\n") + 1
            line = _line({"i": text.count(b"\n") + 1, **record})
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
        number = max((number for number, _ in self._files(
            self.folder, self.folder / ENDED)), default=0) + 1
        path = self.folder / f"{number:06d}.jsonl"
        record = {**record, "size": 0, "settings": [
            [e.n, e.name, e.old, e.new, e.identity] for e in entries]}
        size = len(json.dumps(record)) + 2 * BLOCK + sum(
            3 * len(json.dumps(vars(entry))) + 3 * SPARE for entry in entries)
        record["size"] = size // BLOCK * BLOCK + BLOCK
        new = path.with_suffix(".new")
        try:
            with suppress(FileNotFoundError):
                os.unlink(new)
            self._write(new, os.O_RDWR | os.O_CREAT | os.O_EXCL,
                        {"op": "begin", **record}, record["size"])
            os.rename(new, path)
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            for name in (new, path):
                with suppress(OSError):
                    os.unlink(name)
            raise TuneError(f"{path}: {error.strerror}; nothing was changed"
                            ) from error
        return Transaction(number, path, record)

    def load(self, ended: bool = False) -> list[Transaction]:
        """All changes, oldest first; with @ended also those that tidy() moved."""
        files = self._files(self.folder, *[self.folder / ENDED] * ended)
        if files:
            self._check_folder()
        return [t for t in (_read(*one) for one in files) if t]

    def stored(self, transaction: Transaction) -> Transaction | None:
        """One change as stored by now, if it can be read."""
        path = transaction.path
        for one in (path, path.parent / ENDED / path.name):
            found = _read(transaction.number, one)
            if found:
                return None if found.damaged or found.refused else found
        return None

    def tidy(self, known: Sequence[Transaction]) -> None:
        """Move ended changes of @known out of the way, so that no command has to
        read them again, and delete all but the newest KEPT.  Never fails."""
        folder = self.folder / ENDED
        moved = False
        for transaction in known:
            if transaction.ended and not transaction.refused:
                with suppress(OSError):
                    os.makedirs(folder, mode=0o700, exist_ok=True)
                    os.rename(transaction.path, folder / transaction.path.name)
                    moved = True
        if moved:
            for _, path in self._files(folder)[:-KEPT]:
                with suppress(OSError):
                    os.unlink(path)

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


def _line(record: Record) -> bytes:
    body = json.dumps(record)
    return (f'{{"crc": "{zlib.crc32(body.encode()):08x}", {body[1:]}\n').encode()


def _record(line: bytes, number: int) -> Record:
    """The record of line @number.  Lines of older versions have no checksum."""
    if not line.startswith(b'{"op": '):
        checked = _CHECKED.fullmatch(line)
        if not checked or zlib.crc32(b"{" + checked[2]) != int(checked[1], 16):
            raise ValueError("checksum")
        line = b"{" + checked[2]
    record = json.loads(line)
    if record.pop("i", number) != number:
        raise ValueError("number")
    return dict(record)


def _read(number: int, path: Path) -> Transaction | None:
    """None: moved at this moment."""
    transaction = Transaction(number, path, {})
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
                     | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        transaction.refused = str(error.strerror)
        return transaction
    try:
        info = os.fstat(fd)
        transaction.refused = _distrust(info, stat.S_ISREG, "plain file")
        if transaction.refused:
            return transaction
        text = _content(fd)
    except OSError as error:
        transaction.damaged = str(error.strerror)
        return transaction
    finally:
        os.close(fd)
    damaged = []
    for at, line in enumerate(text.split(b"\n")[:-1], 1):
        try:
            _take(transaction, _record(line, at))
        except (ValueError, LookupError, TypeError, AttributeError, StopIteration):
            damaged.append(f"line {at}")
    if "boot" not in transaction.begin:
        damaged.insert(0, "line 1")
    elif info.st_size < transaction.begin.get("size", 0):
        damaged.append("its end is missing")
    transaction.damaged = damaged[0] if damaged else ""
    return transaction


def _take(t: Transaction, record: Record) -> None:
    """Add one line to what is known of a change."""
    op = record.pop("op")
    if op == "begin":
        if not (isinstance(record["boot"], str)
                and isinstance(record["deadline"], (int, float))
                and isinstance(record["time"], (int, float))):
            raise ValueError("begin")
        t.begin = record
        # If a crash or damage hides that they were written, undo must find out.
        t.entries = [Entry(name, old, new, identity, n=n) for
                     n, name, old, new, identity in record.get("settings", ())]
    elif op == "timer":
        t.timer = {"pid": int(record["pid"]), "start": int(record["start"]),
                   "unit": str(record["unit"])}
    elif op == "intent":
        n = record.pop("n")
        if not isinstance(n, int) or not all(
                isinstance(value, str) for value in record.values()):
            raise ValueError("intent")
        t.entries = [e for e in t.entries if e.n != n] + [Entry(**record, n=n)]
        t.entries.sort(key=lambda entry: entry.n)
    elif op in ("done", "undo", "inherit"):
        # A damaged line before it may have been the intent of another entry.
        entry = next(e for e in t.entries if e.n == record["n"])
        if op == "done":
            entry.got = str(record["got"])
        elif op == "inherit":
            entry.old = str(record["old"])
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
