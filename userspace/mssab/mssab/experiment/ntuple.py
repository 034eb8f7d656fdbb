# SPDX-License-Identifier: GPL-2.0-only
"""Steering rules of a card (n-tuple filters): the ring that receives a flow.  From
the text of ethtool -n to rules, and back to words for ethtool -N.  Pure.

A rule is a flow as ethtool -N spells it ("tcp4 dst-port 5201") and a ring.  Rules
of other kinds (masks, VLANs, drops) are left alone.
"""
from __future__ import annotations

import ipaddress
import re
from typing import Any

#: The ring of a rule that is not there.
NONE = "none"
#: Fields of a flow, in this order, with the names that ethtool -n prints.
_SHOWN = {"src-ip": "Src IP addr", "dst-ip": "Dest IP addr",
          "src-port": "Src port", "dst-port": "Dest port"}
_TYPES = {"TCP over IPv4": "tcp4", "UDP over IPv4": "udp4"}
_WHOLE = {"ip": "0.0.0.0", "port": "0x0"}
_ANY = {"ip": "255.255.255.255", "port": "0xffff"}
_FLOW = re.compile(r"(?:tcp4|udp4)(?= )" + "".join(
    rf"(?: {field} (?P<{field.replace('-', '_')}>\S+))?" for field in _SHOWN))
_RULE = re.compile(r"^Filter: (\d+)\n((?:[ \t]+.*\n?)+)", re.M)
_LINE = re.compile(r"^[ \t]+([^:\n]+): (\S+)(?: mask: (\S+))?[ \t]*$", re.M)
#: What a rule may say beside its flow and its ring, if it does not compare it.
_UNUSED = {"TOS": "0xff", "VLAN EtherType": "0xffff", "VLAN": "0xffff",
           "User-defined": "0xffffffffffffffff"}


def _rule(text: str) -> tuple[str, str] | None:
    """Flow and ring of one rule; None if the flow has no such spelling."""
    kind = re.search(r"Rule Type: (.+)", text)
    ring = re.search(r"Action: Direct to queue (\d+)[ \t]*$", text, re.M)
    if not kind or not ring or kind[1].strip() not in _TYPES:
        return None
    lines = {name: (value, mask) for name, value, mask in _LINE.findall(text)
             if mask}
    words = [_TYPES[kind[1].strip()]]
    for field, shown in _SHOWN.items():
        value, mask = lines.pop(shown, ("", ""))
        form = field.partition("-")[2]
        if mask == _WHOLE[form]:
            words += [field, value]
        elif mask not in ("", _ANY[form]):
            return None
    if any(mask != _UNUSED.get(name) for name, (_, mask) in lines.items()):
        return None
    return (" ".join(words), ring[1]) if len(words) > 1 else None


def _found(text: str) -> dict[str, tuple[str, str]]:
    """Flow: number of its rule, and its ring."""
    return {rule[0]: (number, rule[1]) for number, lines in _RULE.findall(text)
            if (rule := _rule(lines))}


def parse(text: str) -> dict[str, str]:
    """Flow and ring of the rules that ethtool -n shows."""
    return {flow: ring for flow, (_, ring) in _found(text).items()}


def changes(text: str, wanted: dict[str, str]) -> list[list[str]]:
    """What follows ethtool -N DEVICE, for each command.  @text: what the device
    shows now."""
    there, commands = _found(text), []
    for flow, ring in wanted.items():
        number, present = there.get(flow, ("", NONE))
        if present == ring:
            continue
        if number:
            commands.append(["delete", number])
        if ring != NONE:
            commands.append(["flow-type", *flow.split(), "action", ring])
    return commands


def added(text: str) -> str:
    """The number of the rule that ethtool -N has added; ""."""
    found = re.search(r"Added rule with ID (\d+)", text)
    return found[1] if found else ""


def changed(was: dict[str, str], now: dict[str, str]) -> dict[str, str]:
    """What to set to have the former rules again, and no new one."""
    return {flow: was.get(flow, NONE) for flow in now | was
            if was.get(flow) != now.get(flow)}


def check(table: Any) -> str:
    """What is wrong with the rules in an experiment file, or ""."""
    if not isinstance(table, dict):
        return 'must be a table: { "tcp4 dst-port 5201" = 1 }'
    for flow, ring in table.items():
        if not is_flow(flow):
            return (f"{flow!r} is no flow such as \"tcp4 dst-port 5201\": tcp4 or "
                    f"udp4, then of {', '.join(_SHOWN)} at least one, in this order")
        if type(ring) is not int or not 0 <= ring < 2**16:
            return f"{flow!r} = {ring!r} is not the number of a ring"
    return ""


def is_flow(text: str) -> bool:
    """Is that a flow in the only spelling that it has here?"""
    if not (matched := _FLOW.fullmatch(text)):
        return False
    for field, value in matched.groupdict().items():
        if value and field.endswith("ip"):
            try:
                if str(ipaddress.IPv4Address(value)) != value:
                    return False
            except ValueError:
                return False
        elif value and not (re.fullmatch(r"[1-9]\d{0,4}", value)
                            and int(value) < 2**16):
            return False
    return True
