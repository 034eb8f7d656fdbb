# SPDX-License-Identifier: GPL-2.0-only
"""The results directory: what was planned, and every block as it was measured.

samples.jsonl only grows: one line per block, on disk before the next block
starts.  If mssab is killed, at most the last line is incomplete; --resume cuts
it off.  manifest.json is written once, before the first block.
"""
from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import MssabError, UsageError

MANIFEST, SAMPLES, RESULT = "manifest.json", "samples.jsonl", "result.json"
REPORT = "report.html"
FORMAT, VERSION = "mssab-experiment", 2
#: Versions that are read.  In 1 no block is failed: such a run ended there.
READ = (1, 2)
Record = dict[str, Any]


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _open(path: Path, flags: int) -> int:
    """A descriptor of a file itself: a symbolic link is refused, so that no
    other file is written in its place."""
    try:
        return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise MssabError(f"{path} is a symbolic link; it is not "
                             "followed") from error
        raise


def check_target(path: Path) -> None:
    """MssabError if write_whole() would replace what is not a file."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise MssabError(f"{path} is not a regular file; it is not replaced")


def write_whole(path: Path, text: str) -> None:
    """Write all or nothing, and wait until it is on disk."""
    check_target(path)
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    with open(_open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "w",
              encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync(path.parent)


def read_manifest(directory: Path) -> Record:
    try:
        manifest = json.loads((directory / MANIFEST).read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"{directory}: no results of an experiment: "
                         f"{MANIFEST}: {error.strerror}") from error
    except ValueError as error:
        raise MssabError(f"{directory / MANIFEST}: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UsageError(f"{directory}: not the results of an experiment")
    if manifest.get("version") not in READ:
        raise UsageError(f"{directory}: its format has version "
                         f"{manifest.get('version')}; this mssab reads "
                         f"versions {READ[0]} to {READ[-1]}")
    return manifest


def read_samples(directory: Path) -> list[Record]:
    """All complete lines."""
    try:
        data = (directory / SAMPLES).read_bytes()
    except FileNotFoundError:
        return []
    records = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise MssabError(f"{directory / SAMPLES}:{number}: damaged: "
                             f"{error}") from error
        records.append(record)
    return records


class Journal:
    """The samples of one directory, open to append."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        path = directory / SAMPLES
        fresh = not path.exists()
        self._file = open(  # noqa: SIM115 (close() closes it)
            _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "ab")
        self.records = read_samples(directory)
        # An incomplete line belongs to a block that is measured again.
        whole = path.read_bytes().rfind(b"\n") + 1
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)
        os.fsync(self._file.fileno())
        if fresh:
            _sync(directory)
        #: How often mssab has been started here, this time included.
        self.session = 1 + max((r["session"] for r in self.records), default=0)

    def add(self, record: Record) -> None:
        """Append a record; it is on disk when this returns."""
        record = {"session": self.session} | record
        line = json.dumps(record, allow_nan=False) + "\n"
        self._file.write(line.encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records.append(json.loads(line))

    def close(self) -> None:
        self._file.close()


@contextmanager
def opened(directory: Path, manifest: Record, resume: bool) \
        -> Iterator[Journal]:
    """A new directory with this manifest, or one of the same experiment to
    resume; locked against a second mssab."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(_open(directory / "lock", os.O_WRONLY | os.O_CREAT), "w",
              encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise MssabError(f"{directory}: another mssab is writing "
                             "there") from error
        if (directory / MANIFEST).exists():
            if not resume:
                raise UsageError(f"{directory} holds results; --resume "
                                 "continues them, -o DIR starts elsewhere")
            old = read_manifest(directory)
            for key, what in (("version", "version of the format"),
                              ("plan", "experiment file"),
                              ("kernel", "kernel"), ("module", "module"),
                              ("mssab", "version of mssab")):
                if old.get(key) != manifest.get(key):
                    raise UsageError(
                        f"{directory}: begun with another {what}; results "
                        "of two cannot be combined: start elsewhere with "
                        "-o DIR")
        else:
            write_whole(directory / MANIFEST,
                        json.dumps(manifest, indent=1) + "\n")
        journal = Journal(directory)
        try:
            yield journal
        finally:
            journal.close()
