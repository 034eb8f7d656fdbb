# SPDX-License-Identifier: GPL-2.0-only
"""Settings of a device in an experiment file, in ethtool's groups: coalescing,
rings, channels, features, which rings RSS spreads packets over, and steering rules
(ntuple.py).  Pure; ethtool.py reads and sets them.
"""
from __future__ import annotations

import re
from typing import Any

from . import ntuple

#: Settings of one device: group, name, value (digits, on or off).
Settings = dict[str, dict[str, str]]
#: ethtool's options that show a group and change it.
GROUPS = {"coalesce": ("-c", "-C"), "ring": ("-g", "-G"),
          "channels": ("-l", "-L"), "features": ("-k", "-K"),
          # After channels: a driver that gets others resets the table.
          "rss": ("-x", "-X"),
          # After features: most drivers take rules only with ntuple-filters on.
          "ntuple": ("-n", "-N")}
#: As ethtool and the kernel spell them: words joined by hyphens.
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


def check(name: str, table: Any) -> str:
    """What is wrong with a group in an experiment file, or ""."""
    if name == "ntuple":
        return ntuple.check(table)
    if not isinstance(table, dict):
        return "must be a table: { rx-usecs = 100 }"
    for key, value in table.items():
        if not NAME.fullmatch(key):
            return f"{key!r} is not a name as ethtool spells them: rx-usecs"
        if type(value) is not bool and not (type(value) is int
                                            and 0 <= value < 2**31):
            return f"{key} = {value!r} is not true, false or a number from " \
                   "0 on"
    return ""


def words(table: dict[str, Any]) -> dict[str, str]:
    """A group of an experiment file, in ethtool's words."""
    return {name: ("off", "on")[value] if type(value) is bool else str(value)
            for name, value in table.items()}
