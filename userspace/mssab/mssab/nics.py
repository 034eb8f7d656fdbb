# SPDX-License-Identifier: GPL-2.0-only
"""Named interfaces of the host as the link of a cell: which keys go together.

Pure; nic_move.py moves the interfaces.
"""
from __future__ import annotations

import ipaddress
import re
from typing import Any

from .cell import INTERFACES, OWN_LOAD, Cell

#: A name that the kernel takes; a slash would make it a path of /sys.
NAME = re.compile(r"[^\s/:]{1,15}")


def defaults(table: dict[str, Any]) -> dict[str, Any]:
    """Defaults that differ for named interfaces: the link stays as it is."""
    if table.get("link") in (INTERFACES, [INTERFACES]):
        return {"mtu": 0, "rtt_ms": 0.0}
    return {}


def unmet(cell: Cell) -> str:
    """What is wrong with a cell over named interfaces; ""."""
    if cell.link != INTERFACES:
        return ""
    if not cell.sender_interface:
        return f'link = "{INTERFACES}" needs sender_interface'
    if bool(cell.receiver_interface) == bool(cell.receiver_address):
        return ("give one of receiver_interface (the other interface of this "
                "host) and receiver_address (of a server that you run)")
    for key in ("sender_interface", "receiver_interface"):
        name = getattr(cell, key)
        if name and not NAME.fullmatch(name) or name in ("lo", ".", ".."):
            return (f"{key} = {name!r} is not the name of an interface that "
                    "can be moved")
    if cell.sender_interface == cell.receiver_interface:
        return ("sender_interface and receiver_interface are the same; a "
                'packet to itself never reaches the wire: link = "loopback"')
    if cell.ipv6:
        return f'link = "{INTERFACES}" is IPv4 only'
    if cell.window_segments and not cell.mtu:
        return "window_segments counts segments of the link: give mtu"
    if cell.remote:
        return _unmet_remote(cell)
    for key in ("sender_address", "gateway", "server_port"):
        if getattr(cell, key):
            return (f"{key} needs receiver_address; mssab itself gives "
                    "addresses to two interfaces of this host")
    return ""


def _unmet_remote(cell: Cell) -> str:
    try:
        sender = ipaddress.IPv4Interface(cell.sender_address)
        receiver = ipaddress.IPv4Address(cell.receiver_address)
        gateway = ipaddress.IPv4Address(cell.gateway) if cell.gateway else None
    except ValueError as error:
        return ("receiver_address and gateway are IPv4 addresses, "
                "sender_address has a prefix length too, as in "
                f'"192.0.2.5/24": {error}')
    if "/" not in cell.sender_address:
        return f'sender_address needs its prefix length, as in "{sender.ip}/24"'
    if receiver == sender.ip:
        return "sender_address and receiver_address are the same"
    if (gateway or receiver) not in sender.network:
        return (f"{gateway or receiver} is not in {sender.network}, the "
                "network of sender_address"
                + ("" if gateway else "; name the gateway"))
    if cell.load in OWN_LOAD:
        return (f"{cell.load} runs both ends itself; with a server on another "
                "machine use iperf3, nuttcp or netpipe")
    if cell.cwnd_max:
        return ("cwnd_max is set on a route that mssab makes, and it makes "
                "none to a receiver on another machine")
    return ""


def unmet_by_arm(cell: Cell, settings: dict[str, Any]) -> str:
    """A key of an arm that cannot be set with a receiver elsewhere; ""."""
    if not cell.remote:
        return ""
    return next((key for key in ("sysctl", "sysctl_receiver")
                 if key in settings), "")
