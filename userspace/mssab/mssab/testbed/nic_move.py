# SPDX-License-Identifier: GPL-2.0-only
"""Moves named interfaces of the host into mssab's namespaces for a transfer, and
back after it.

An interface with addresses is in use, and refused.  What a move can change (MTU,
up or down, settings of ethtool) is written to RECORD before the first move and
restored from there: by the same mssab, or by the next one if this is killed.
"""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import MssabError
from ..experiment.cell import Cell
from ..netns import command
from . import ethtool
from .ends import Ends

RECORD = Path("/run/mssab-interfaces.json")
#: A link must be up by then; two ends need seconds to agree on a speed.
CARRIER_S = 15


def names(cell: Cell) -> list[str]:
    return [name for name in (cell.sender_interface, cell.receiver_interface)
            if name]


def _show(name: str, *where: str) -> dict[str, Any]:
    try:
        shown = json.loads(command("ip", "-j", *where, "addr", "show", "dev",
                                   name))
    except MssabError as error:
        raise MssabError(f"no interface {name} here; ip link lists "
                         "them") from error
    found: dict[str, Any] = next(filter(None, shown))
    return found


def check(cell: Cell) -> None:
    """MssabError unless the interfaces exist and are free to be moved."""
    for name in names(cell):
        shown = _show(name)
        used = [f"{a['local']}/{a['prefixlen']}" for a in shown["addr_info"]
                if a.get("scope") != "link"]
        if used:
            raise MssabError(
                f"{name} has address {used[0]}, and mssab would cut it off by "
                "moving it into a namespace; name an interface without "
                f"addresses, or remove them: ip addr flush dev {name}")
        if shown.get("master"):
            raise MssabError(f"{name} is part of {shown['master']}; name one "
                             "that is in no bridge or bond")


def keep(cell: Cell) -> None:
    """Record the interfaces' state, before anything is moved."""
    record = {}
    for name in names(cell):
        shown = _show(name)
        record[name] = {"mtu": shown["mtu"], "up": "UP" in shown["flags"],
                        "device": ethtool.read(name)}
    new = RECORD.with_name(RECORD.name + ".new")
    new.write_text(json.dumps(record) + "\n", "ascii")
    new.replace(RECORD)


def move(cell: Cell, ends: Ends) -> None:
    """Move the interfaces to the ends and add addresses; they stay down."""
    for end, name, address in _ours(cell, ends):
        command("ip", "link", "set", name, "netns", end)
        command("ip", "-n", end, "addr", "add", address, "dev", name)
        if cell.mtu:
            command("ip", "-n", end, "link", "set", name, "mtu", str(cell.mtu))


def bring_up(cell: Cell, ends: Ends) -> None:
    """Bring the interfaces up and wait for the link."""
    ours = _ours(cell, ends)
    for end, name, _ in ours:
        command("ip", "-n", end, "link", "set", name, "up")
    for end, name, _ in ours:
        _await_carrier(end, name)
    if cell.gateway:
        command("ip", "-n", ends.sender, "route", "add", cell.receiver_address,
                "via", cell.gateway)


def _ours(cell: Cell, ends: Ends) -> list[tuple[str, str, str]]:
    """Namespace, interface and address of each end on this machine."""
    ours = [(ends.sender, cell.sender_interface,
             cell.sender_address or "10.9.0.1/24")]
    if ends.receiver:
        ours.append((ends.receiver, cell.receiver_interface, "10.9.0.2/24"))
    return ours


def _await_carrier(end: str, name: str) -> None:
    # Counts polls, not time: an emulated clock may jump while the host is slow.
    for _ in range(5 * CARRIER_S):
        if "LOWER_UP" in _show(name, "-n", end)["flags"]:
            return
        time.sleep(0.2)  # polling interval: one poll takes 20 ms in a guest
    raise MssabError(f"{name} has no link after {CARRIER_S} s; is a cable "
                     "connected, and the other end up?")


def put_back(ends: Iterable[str]) -> None:
    """Return the interfaces in RECORD, from any of the namespaces, to their
    former state; then remove RECORD."""
    try:
        record = json.loads(RECORD.read_text("ascii"))
    except FileNotFoundError:
        return
    except ValueError as error:
        raise MssabError(f"{RECORD}: damaged: {error}; move the interfaces "
                         "in mssab-tx and mssab-rx back, then remove it") from error
    there = [end for end in ends if Path("/run/netns", end).exists()]
    for name, was in record.items():
        for end in there:
            # mssab's namespace need not be that of process 1.
            if _has(end, name):
                command("ip", "-n", end, "addr", "flush", "dev", name)
                command("ip", "-n", end, "link", "set", name, "netns",
                        str(os.getpid()))
        command("ip", "link", "set", name, "mtu", str(was["mtu"]),
                "up" if was["up"] else "down")
    # First return all interfaces: a driver may refuse a setting.  Twice, because
    # one setting may reset another (channels and the table of RSS).
    for name, was in [*record.items()] * 2:
        ethtool.write(name, ethtool.changed(was["device"], ethtool.read(name)))
    RECORD.unlink()


def _has(end: str, name: str) -> bool:
    try:
        command("ip", "-n", end, "link", "show", "dev", name)
    except MssabError:
        return False
    return True
