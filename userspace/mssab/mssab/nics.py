# SPDX-License-Identifier: GPL-2.0
"""Named interfaces of the host as the link of a cell: which keys go together.

Pure.  nic_move.py moves them.
"""
from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    from .grid import Cell

KIND = "interfaces"
#: Keys that only such a link has.
KEYS = ("sender_interface", "sender_address", "receiver_interface",
        "receiver_address", "gateway", "server_port")
#: What mssab sets at the receiver, and cannot where it is elsewhere.
OF_THE_RECEIVER = ("gro", "rcvbuf_max", "window_scaling", "qdisc")
#: A name that the kernel takes; the slash would be a path of /sys.
NAME = re.compile(r"[^\s/:]{1,15}")


def defaults(table: dict[str, Any]) -> dict[str, Any]:
    """Of a cell with named interfaces, where they differ: the link is as it
    is, if the file does not say otherwise."""
    if table.get("link") in (KIND, [KIND]):
        return {"mtu": 0, "rtt_ms": 0.0}
    return {}


def check(where: str, cell: Cell) -> None:
    """UsageError says what does not go together."""
    def wrong(what: str) -> UsageError:
        return UsageError(f"{where}: {what}")

    named = [key for key in KEYS if getattr(cell, key)]
    if cell.link != KIND:
        if named:
            raise wrong(f'{named[0]} needs link = "{KIND}"')
        return
    if not cell.sender_interface:
        raise wrong(f'link = "{KIND}" needs sender_interface, the name of the '
                    "one that sends")
    if bool(cell.receiver_interface) == bool(cell.receiver_address):
        raise wrong("give receiver_interface, the other interface of this "
                    "host, or receiver_address, of a server that you run: one "
                    "of them")
    for key in ("sender_interface", "receiver_interface"):
        name = getattr(cell, key)
        if name and not NAME.fullmatch(name) or name in ("lo", ".", ".."):
            raise wrong(f"{key} = {name!r} is not the name of an interface "
                        "that can be moved")
    if cell.sender_interface == cell.receiver_interface:
        raise wrong("sender_interface and receiver_interface are the same; a "
                    'packet to itself never reaches the wire: link = "loopback"')
    if cell.ipv6:
        raise wrong(f'link = "{KIND}" is IPv4 only')
    if cell.window_segments and not cell.mtu:
        raise wrong("window_segments counts segments of the link: give mtu")
    if cell.remote:
        _check_remote(wrong, cell)
    elif extra := [key for key in ("sender_address", "gateway", "server_port")
                   if getattr(cell, key)]:
        raise wrong(f"{extra[0]} goes with receiver_address; two interfaces of "
                    "this host get addresses of mssab's own")


def _check_remote(wrong: Any, cell: Cell) -> None:
    try:
        sender = ipaddress.IPv4Interface(cell.sender_address)
        receiver = ipaddress.IPv4Address(cell.receiver_address)
        gateway = ipaddress.IPv4Address(cell.gateway) if cell.gateway else None
    except ValueError as error:
        raise wrong("receiver_address and gateway are IPv4 addresses, "
                    "sender_address has the prefix length too, as in "
                    f'"192.0.2.5/24": {error}') from error
    if "/" not in cell.sender_address:
        raise wrong("sender_address wants its prefix length, as in "
                    f'"{sender.ip}/24"')
    if receiver == sender.ip:
        raise wrong("sender_address and receiver_address are the same")
    if (gateway or receiver) not in sender.network:
        raise wrong(f"{gateway or receiver} is not in {sender.network}, the "
                    "network of sender_address"
                    + ("" if gateway else "; name the gateway"))
    if cell.load == "mssab-load":
        raise wrong("mssab-load runs both ends itself; a server elsewhere is "
                    "iperf3's, nuttcp's or NetPIPE's")
    if cell.cwnd_max:
        raise wrong("cwnd_max is of a route of mssab's own, and there is none "
                    "to a receiver elsewhere")
    for key in OF_THE_RECEIVER:
        if getattr(cell, key) != type(cell).__dataclass_fields__[key].default:
            raise wrong(f"{key} is set at the receiver, which is elsewhere: "
                        "set it there")


def check_arm(cell: Cell, settings: dict[str, Any]) -> str:
    """A key of an arm that cannot be set with a receiver elsewhere; ""."""
    if not cell.remote:
        return ""
    return next((key for key in ("sysctl", "sysctl_receiver")
                 if key in settings), "")
