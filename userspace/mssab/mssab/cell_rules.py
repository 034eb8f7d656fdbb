# SPDX-License-Identifier: GPL-2.0-only
"""Which keys of a cell go together.  Pure."""
from __future__ import annotations

from typing import Any

from . import nics
from .cell import IP_MAX, TCP, VETH, Cell, CellKey, changed
from .errors import UsageError


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
    if (why := _unmet_together(cell)) or (why := nics.unmet(cell)):
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
