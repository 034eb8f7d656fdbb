# SPDX-License-Identifier: GPL-2.0
"""The write-ahead journal: one file of JSON lines for each change.  Each line is
on disk before the step that it announces.

A step that was announced and not reported as done may or may not have happened;
the transaction finds out by reading the setting.  An incomplete last line does
not count.
"""
from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import TuneError

Record = dict[str, Any]


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

    @property
    def state(self) -> str:
        if self.ended:
            return "ended"
        if self.confirmed:
            return "confirmed"
        return "waiting" if self.applied else "unfinished"


class Journal:
    """The journals of one network namespace, in one folder."""

    def __init__(self, state: Path, netns: int) -> None:
        self.folder = state / f"netns-{netns}"

    @contextmanager
    def lock(self, wait: bool = True) -> Iterator[None]:
        """Held until the block or the process ends.  @wait: wait for it, and take
        none where nothing was ever applied."""
        if wait and not self.folder.exists():
            yield
            return
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(self.folder / "lock", "w", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError as error:
                raise TuneError("another msstune is running here") from error
            yield

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9]*.jsonl"))

    def append(self, path: Path, record: Record) -> None:
        """Returns when the line is on disk."""
        line = (json.dumps(record) + "\n").encode()
        new = not path.exists()
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            # Overwrite a line that a crash left incomplete.
            size = os.fstat(fd).st_size
            keep = size
            while keep and os.pread(fd, 1, keep - 1) != b"\n":
                keep -= 1
            if keep != size:
                os.ftruncate(fd, keep)
            os.lseek(fd, keep, os.SEEK_SET)
            while line:
                line = line[os.write(fd, line):]
            os.fsync(fd)
        finally:
            os.close(fd)
        if new:
            folder = os.open(self.folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def begin(self, record: Record) -> Transaction:
        last = [int(path.stem) for path in self._files()]
        path = self.folder / f"{max(last, default=0) + 1:06d}.jsonl"
        self.append(path, {"op": "begin", **record})
        return Transaction(int(path.stem), path, record)

    def load(self) -> list[Transaction]:
        """All changes, oldest first."""
        return [t for t in map(_read, self._files()) if t]


def _read(path: Path) -> Transaction | None:
    transaction: Transaction | None = None
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        try:
            record = json.loads(line)
            op = record.pop("op")
        except (ValueError, KeyError) as error:
            raise TuneError(f"{path}: not a journal of msstune") from error
        if op == "begin":
            transaction = Transaction(int(path.stem), path, record)
            continue
        if transaction is None:
            raise TuneError(f"{path}: not a journal of msstune")
        if op == "timer":
            transaction.timer = record
        elif op == "intent":
            transaction.entries.append(Entry(**record))
        elif op == "done":
            transaction.entries[record["n"]].got = record["got"]
        elif op == "undo":
            transaction.entries[record["n"]].undone = record["result"]
        elif op == "applied":
            transaction.applied = True
        elif op == "confirm":
            transaction.confirmed = True
        elif op == "end":
            transaction.ended = record["why"]
    return transaction
