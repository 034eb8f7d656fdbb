# SPDX-License-Identifier: GPL-2.0-only
"""Which keys of a cell go together, also where the link is named interfaces of the
host (nic_move.py moves them).  Pure."""
from __future__ import annotations

import ipaddress
import re
from typing import Any

from ..errors import UsageError
from .cell import INTERFACES, IP_MAX, OWN_LOAD, TCP, VETH, Cell, CellKey, changed

# --- Named interfaces ---------------------------------------------------------

#: A name that the kernel takes; a slash would make it a path of /sys.
INTERFACE = re.compile(r"[^\s/:]{1,15}")


def interface_defaults(table: dict[str, Any]) -> dict[str, Any]:
    """Defaults that differ for named interfaces: the link stays as it is."""
    if table.get("link") in (INTERFACES, [INTERFACES]):
        return {"mtu": 0, "rtt_ms": 0.0}
    return {}


def _unmet_interfaces(cell: Cell) -> str:
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
        if name and not INTERFACE.fullmatch(name) or name in ("lo", ".", ".."):
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


# --- All keys -----------------------------------------------------------------

def _unmet(cell: Cell, name: str, key: CellKey) -> str:
    """The requirement of the key that this cell does not meet; ""."""
    if key.loads and cell.load not in key.loads:
        loads = " or ".join(f'"{load}"' for load in key.loads)
        return f"needs load = {loads}; {cell.load} cannot do it"
    if key.links and cell.link not in key.links:
        links = " or ".join(f'"{link}"' for link in key.links)
        return f"needs link = {links}; this one is {cell.link}"
    if key.protocol and cell.udp == (key.protocol == TCP):
        return f"is for {key.protocol} only; {cell.load} uses " \
            + ("UDP" if cell.udp else "TCP")
    if key.at_receiver and cell.remote:
        return "is set at the receiver, which is on another machine: set it " \
            "there"
    return ""


def _unmet_together(cell: Cell) -> str:
    """What is wrong with keys of several transfers, and of their data; ""."""
    if (cell.senders > 1 or cell.receivers > 1) and not cell.bridge:
        return "several senders or receivers meet at a bridge: give bridge = true"
    if cell.senders > 1 and cell.receivers > 1:
        return "either senders or receivers can be several"
    if cell.transfers > 1 and (cell.window_segments or cell.request):
        return "several transfers at once are bulk, without window_segments"
    if cell.bridge and cell.cwnd_max:
        return "cwnd_max is set on a route without a bridge"
    if cell.verify and (cell.request or cell.window_segments
                        or cell.zerocopy_rx):
        return ("verify compares the bytes of a bulk transfer that is read with "
                "a copy, without window_segments")
    if cell.zerocopy_rx and (cell.request or cell.window_segments):
        return "zerocopy_rx is for bulk transfers without window_segments"
    if cell.txqueuelen and cell.qdisc != "pfifo_fast":
        return ("txqueuelen is the limit of one qdisc only: give qdisc = "
                '"pfifo_fast"')
    return ""


def check(where: str, cell: Cell) -> None:
    """UsageError if keys do not go together; @where: what it starts with."""
    def wrong(what: str) -> UsageError:
        return UsageError(f"{where}: {what}")

    given = changed(cell)
    for name, key in given.items():
        if unmet := _unmet(cell, name, key):
            raise wrong(f"{name} {unmet}")
    if cell.zerocopy and cell.request:
        raise wrong("zerocopy is for bulk transfers; leave out request")
    if (why := _unmet_together(cell)) or (why := _unmet_interfaces(cell)):
        raise wrong(why)
    if cell.link == VETH and cell.mtu > IP_MAX:
        raise wrong(f"mtu = {cell.mtu} is only for loopback; a veth link "
                    f"takes up to {IP_MAX}")
    root = [name for name, key in given.items()
            if key.netem or name == "rate_mbit"]
    if cell.qdisc and root:
        raise wrong(f"qdisc and {root[0]} both need to be the sender's root "
                    "qdisc; choose one")
    if cell.loss_percent and cell.ecn_mark_percent:
        raise wrong("netem either drops or marks; choose one of loss_percent "
                    "and ecn_mark_percent")
    if cell.jitter_ms > cell.rtt_ms / 2:
        raise wrong("jitter_ms varies the delay of the data, which is half of "
                    "rtt_ms; it cannot be larger")
    if cell.pause_bytes > 1 and not cell.pause_ms:
        raise wrong("pause_bytes needs pause_ms")
    if cell.pause_ms and cell.request:
        raise wrong("the pauses are those of a bulk reader; leave out request")
    if cell.reorder_percent and not cell.rtt_ms:
        raise wrong("reorder_percent sends packets ahead of the delay and "
                    "needs rtt_ms")
    if cell.load.startswith("iperf3") and (cell.warmup_ms % 1000
                                           or cell.measure_ms % 1000):
        raise wrong("iperf3 measures whole seconds; give warmup_ms and "
                    "measure_ms in multiples of 1000")


def unused_time(table: dict[str, Any]) -> str:
    """Why a time in the table of a cell is refused; ""."""
    if table.get("load") != "netpipe":
        return ""
    for key in ("warmup_ms", "measure_ms"):
        if key in table:
            return f"{key}: NetPIPE itself decides how long it measures"
    return ""


def fits_header(cell: Cell) -> bool:
    """Can the window be advertised?  Without scaling the header field has 16
    bits."""
    return cell.window_scaling or cell.window <= IP_MAX
