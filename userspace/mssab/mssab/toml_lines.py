# SPDX-License-Identifier: GPL-2.0-only
"""The line of a key in a TOML file, which the standard library's parser does not
report.

Pure, and exact enough for messages: a key that is not found (in a string over
several lines, say) gets the line of its table, or 1.
"""
from __future__ import annotations

import re
from collections.abc import Sequence

_HEADER = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')
                      (?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)
                      \s*=""", re.X)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"([^"]*)"|'([^']*)'""")


def _parts(dotted: str) -> list[str]:
    return [found[1] or found[2] or found[0]
            for found in _PART.finditer(dotted)]


def line_of(text: str, path: Sequence[str]) -> int:
    """Line (from 1) of the key with these names from the top: the line that
    matches most of them, in order."""
    wanted = list(path)
    best, at = 0, 1
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _parts(header[1])
            names = table
        elif key := _KEY.match(line):
            names = table + _parts(key[1])
        else:
            # A further line of a value: an inline table or a list.
            names = []
        common = 0
        while common < min(len(names), len(wanted)) \
                and names[common] == wanted[common]:
            common += 1
        # Further names may be in an inline table on the same line.
        if common == len(names):
            for name in wanted[common:]:
                if not re.search(rf"""[{{,]\s*["']?{re.escape(name)}["']?\s*=""",
                                 line):
                    break
                common += 1
        if common > best and common >= min(len(names), len(wanted)):
            best, at = common, number
    return at
