# SPDX-License-Identifier: GPL-2.0-only
"""Reads and sets what ethtool shows of a device, group by group (device.py), and
reads it back.

The ethtool of Debian 12 prints most settings as text only; functions without side
effects parse it.
"""
from __future__ import annotations

import re

from ..errors import MssabError
from ..experiment import ntuple
from ..experiment.device import GROUPS, Settings
from ..netns import command

_LINE = re.compile(r"(\s*)([A-Za-z][A-Za-z0-9 -]*):\s+(\d+|on|off)\b([^:]*)$")
_ADAPTIVE = re.compile(r"Adaptive RX: (on|off)  TX: (on|off)")
_TABLE_LINE = re.compile(r"^ +\d+:((?: +\d+)+)$", re.M)


def parse(text: str) -> dict[str, str]:
    """Names and values from one --show command, of settings that can change.
    For rings and channels these are the current values, which come after the
    maxima."""
    found: dict[str, str] = {}
    above = ""
    for line in text.splitlines():
        if both := _ADAPTIVE.match(line):
            found |= {"adaptive-rx": both[1], "adaptive-tx": both[2]}
        if not (matched := _LINE.match(line)):
            continue
        indent, name, value, fixed = matched.groups()
        name = name.lower().replace(" ", "-")
        if indent:
            # The line above stands for several, and would set them all.
            found.pop(above, None)
        else:
            above = name
        if "[fixed]" not in fixed:
            found[name] = value
    return found


def parse_rss(text: str) -> dict[str, str]:
    """The rings of an indirection table, from ethtool -x: how many take turns, and
    the first one.  Nothing for a table that ethtool -X start S equal N cannot
    make, which could not be put back."""
    table = [int(ring) for line in _TABLE_LINE.findall(text)
             for ring in line.split()]
    for count in range(1, len(set(table)) + 1):
        if table == [table[0] + n % count for n in range(len(table))]:
            return {"equal": str(count), "start": str(table[0])}
    return {}


_PARSERS = {"rss": parse_rss, "ntuple": ntuple.parse}


def _parse(name: str, text: str) -> dict[str, str]:
    return _PARSERS.get(name, parse)(text)


def _commands(name: str, text: str, values: dict[str, str]) -> list[list[str]]:
    """What follows the option and the device in each command that changes a group.
    @text: what the device shows now."""
    if name == "ntuple":
        return ntuple.changes(text, values)
    have = _parse(name, text)
    different = {key: value for key, value in values.items() if have[key] != value}
    if different and name == "rss":
        # ethtool takes both.  A table that is the driver's own again no longer
        # counts as set by hand, which would forbid fewer channels.
        both = have | values
        if both["start"] == "0" and f" with {both['equal']} RX ring" in text:
            return [["default"]]
        return [["start", both["start"], "equal", both["equal"]]]
    return [[word for pair in different.items() for word in pair]] \
        if different else []


def on(device: str, *where: str) -> set[str]:
    """Features that are on, also those that stand for several."""
    return set(re.findall(r"^\s*([a-z0-9-]+): on", command(
        *where, "ethtool", "-k", device), re.M))


def read(device: str, *where: str) -> Settings:
    """All settings of the device, without groups that its driver lacks.
    @where: words before the command, to run it in a namespace."""
    found = {}
    for name, (show, _) in GROUPS.items():
        try:
            found[name] = _parse(name, command(*where, "ethtool", show, device))
        except MssabError:
            continue
    return found


def write(device: str, wanted: Settings, *where: str) -> None:
    """Set what differs and read it back.  MssabError if the device cannot do
    it, or silently did something else."""
    for name, values in wanted.items():
        show, change = GROUPS[name]
        text = _shown(name, device, *where)
        have = _parse(name, text)
        if name == "rss" and not have and _TABLE_LINE.search(text):
            raise MssabError(f"{device}: its table of RSS could not be put back, as "
                             "it is not made by ethtool -X start S equal N; make "
                             f"one first: ethtool -X {device} default")
        unknown = [key for key in values if key not in have]
        if unknown and name != "ntuple":
            raise MssabError(f"{device}: its driver has no {name} "
                             f"{unknown[0]}, or cannot change it; see ethtool "
                             f"{show} {device}")
        if not (commands := _commands(name, text, values)):
            continue
        said = [command(*where, "ethtool", change, device, *words)
                for words in commands]
        have = _parse(name, command(*where, "ethtool", show, device))
        for key, value in values.items():
            if name == "ntuple" and have.get(key, ntuple.NONE) != value:
                # A rule in another form would not be found again.
                for number in filter(None, map(ntuple.added, said)):
                    command(*where, "ethtool", change, device, "delete", number)
                raise MssabError(f"{device}: the rule {key} = {value} was accepted, "
                                 "but ethtool -n shows another one; it was removed")
            if name != "ntuple" and have.get(key) != value:
                raise MssabError(f"{device}: {name} {key} = {value} was "
                                 f"accepted but is {have.get(key)}; use that")


def _shown(name: str, device: str, *where: str) -> str:
    """The text of a group.  MssabError if the device has none."""
    try:
        return command(*where, "ethtool", GROUPS[name][0], device)
    except MssabError as error:
        if name != "ntuple" or "not supported" not in str(error):
            raise
        raise MssabError(f"{device}: its driver takes no steering rules (n-tuple "
                         f"filters); see ethtool -n {device}") from error


def changed(was: Settings, now: Settings) -> Settings:
    """What to set to restore the former settings."""
    back = {}
    for name, values in was.items():
        have = now.get(name, values)
        back[name] = ntuple.changed(values, have) if name == "ntuple" else {
            key: value for key, value in values.items()
            if have.get(key, value) != value}
    return {name: some for name, some in back.items() if some}
