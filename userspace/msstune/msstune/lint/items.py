# SPDX-License-Identifier: GPL-2.0-only
"""What the readers of lint return: settings, commands and lines they cannot read."""
from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Assignment:
    """One assignment of a value to a sysctl."""

    file: str
    line: int
    key: str      # with dots
    value: str    # without repeated blanks
    optional: bool = False  # a dash before the key: no error if it is missing


@dataclass(frozen=True)
class Command:
    """One command of a script that changes a device."""

    file: str
    line: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Unreadable:
    """A line that is no setting where one must be."""

    file: str
    line: int
    text: str
    why: str


Item = Assignment | Command | Unreadable


def dotted(key: str) -> str:
    """The key with dots.  Its first separator decides how it is read, sysctl.d(5)."""
    first = re.search(r"[./]", key)
    if first and first[0] == "/":
        return key.translate(str.maketrans("./", "/."))
    return key


def squeeze(value: str) -> str:
    return " ".join(value.split())
