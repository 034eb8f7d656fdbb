# SPDX-License-Identifier: GPL-2.0-only
"""The one writer of files that a user names.  It replaces plain files only, and a
reader finds either the old contents or all of the new ones.
"""
from __future__ import annotations

import os
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from .errors import TuneError, UsageError

_KINDS = {stat.S_IFCHR: "a device node", stat.S_IFBLK: "a device node",
          stat.S_IFIFO: "a FIFO", stat.S_IFLNK: "a symbolic link",
          stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}


def check(path: Path) -> None:
    """Raise unless @path is new, a plain file, or - for stdout."""
    if str(path) == "-":
        return
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise UsageError(f"{path}: no folder {path.parent}") from None
        return
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path}: is {_KINDS.get(stat.S_IFMT(mode), 'no file')}; only "
                         "a plain file is replaced")


def store(path: Path, text: str) -> None:
    """Write @text to @path, or to stdout for -."""
    check(path)
    if str(path) == "-":
        print(text)
        sys.stdout.flush()
        return
    name = ""
    try:
        fd, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with open(fd, "w", encoding="utf-8") as file:
            os.fchmod(fd, _mode(path))
            file.write(text)
            file.flush()
            os.fsync(fd)
        os.rename(name, path)
    except OSError as error:
        with suppress(OSError):
            os.unlink(name)
        raise TuneError(f"{path}: {error.strerror}") from error
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def _mode(path: Path) -> int:
    """The mode of the file that is replaced, or that of a new one."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
