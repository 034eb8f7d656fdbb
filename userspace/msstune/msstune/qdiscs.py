# SPDX-License-Identifier: GPL-2.0-only
"""Reads queue disciplines, by tc(8).

Some disciplines print their options as text in the middle of tc's JSON (hfsc, cbq),
so that none of the output can be read.  Its text is read then; "options" is None.
"""
from __future__ import annotations

import json
import re
from typing import Any

from . import system

_HEAD = re.compile(r"qdisc (\S+) (\S+:)(?: dev (\S+))?(?: (root)| parent (\S+))?")
_COUNTS = {
    "bytes": r"^ Sent (\d+) bytes", "packets": r"^ Sent .* (\d+) pkt",
    "drops": r"\(dropped (\d+),", "overlimits": r"overlimits (\d+)",
    "requeues": r"overlimits \d+ requeues (\d+)\)", "qlen": r"^ backlog .* (\d+)p"}


def _number(text: str) -> int:
    """A size as tc prints it: 4500b, 12Kb."""
    unit = text[-2:-1] if text[-2:-1] in "KMG" else ""
    return int(text.rstrip("KMGb")) << {"": 0, "K": 10, "M": 20, "G": 30}[unit]


def parsed(text: str) -> list[dict[str, Any]]:
    """The text of "tc -s qdisc show", as the fields that its JSON would have."""
    found: list[dict[str, Any]] = []
    for block in re.split(r"^(?=qdisc )", text, flags=re.M):
        head = _HEAD.match(block)
        if not head:
            continue
        kind, handle, device, root, parent = head.groups()
        one: dict[str, Any] = {"kind": kind, "handle": handle, "options": None}
        one |= {key: value for key, value in
                (("dev", device), ("root", bool(root)), ("parent", parent)) if value}
        for key, pattern in _COUNTS.items():
            count = re.search(pattern, block, re.M)
            if count:
                one[key] = int(count[1])
        backlog = re.search(r"^ backlog (\S+)", block, re.M)
        if backlog:
            one["backlog"] = _number(backlog[1])
        found.append(one)
    return found


def show(*where: str) -> list[dict[str, Any]]:
    """The disciplines of "tc qdisc show @where", with counters."""
    output = system.run("tc", "-j", "-s", "qdisc", "show", *where)
    try:
        return list(json.loads(output or "[]"))
    except ValueError:
        return parsed(system.run("tc", "-s", "qdisc", "show", *where))
