# SPDX-License-Identifier: GPL-2.0-only
"""netem: delay, rate, loss, marking, reordering and corruption on the way between
the ends.

The only module that sets queueing disciplines.
"""
from __future__ import annotations

from ..experiment.cell import KEYS, Cell
from ..netns import command

#: Takes what a device has received, so that a qdisc can act on it.
RECEIVED = "ifb-received"
Device = tuple[str, str]        # namespace, name


def _add(namespace: str, device: str, cell: Cell, delay_ms: float,
         *more: str) -> None:
    command("tc", "-n", namespace, "qdisc", "add", "dev", device, "root",
            "netem", "limit", str(cell.queue_packets),
            "delay", f"{round(delay_ms * 1000)}us", *more)


def _impairments(cell: Cell) -> list[str]:
    """What netem does to the data beside the delay and the rate."""
    # Directly behind the delay, as netem reads it.
    jitter = [f"{round(cell.jitter_ms * 1000)}us"] if cell.jitter_ms else []
    return jitter + [word for name, key in KEYS.items() if key.netem
                     for word in key.words(key.netem, getattr(cell, name))]


def on_loopback(cell: Cell, namespace: str) -> None:
    """Half of the round trip, which every packet on lo passes twice."""
    if cell.window_segments and cell.rtt_ms:
        _add(namespace, "lo", cell, cell.rtt_ms / 2)


def _rate(cell: Cell) -> list[str]:
    return ["rate", f"{cell.rate_mbit:g}mbit"] if cell.rate_mbit else []


def on_bridge(cell: Cell, senders: list[Device], ports: list[Device],
              receivers: list[Device]) -> None:
    """Each link has the rate.  Delay and impairments of the data are those of
    @ports, the bridge's towards the receivers, where the data queues."""
    rate = _rate(cell)
    for devices, share, more in (
            (senders, 0.0, rate), (ports, 0.5, _impairments(cell) + rate),
            (receivers, 0.5, rate)):
        for namespace, device in devices:
            if cell.rtt_ms * share or more:
                _add(namespace, device, cell, cell.rtt_ms * share, *more)


def on_received(cell: Cell, namespace: str, device: str) -> None:
    """Corrupt data after the receiver's device has checked it.  A qdisc acts on
    sent packets only, so they take the way over another device."""
    if not cell.corrupt_rx_percent:
        return
    where = "-n", namespace
    command("ip", *where, "link", "add", RECEIVED, "type", "ifb")
    command("ip", *where, "link", "set", RECEIVED, "up")
    command("tc", *where, "qdisc", "add", "dev", device, "ingress")
    command("tc", *where, "filter", "add", "dev", device, "parent", "ffff:",
            "matchall", "action", "mirred", "egress", "redirect", "dev", RECEIVED)
    command("tc", *where, "qdisc", "add", "dev", RECEIVED, "root", "netem",
            "limit", str(cell.queue_packets), "corrupt",
            f"{cell.corrupt_rx_percent:g}%")


def on_devices(cell: Cell, ends: list[Device]) -> None:
    """@ends: namespace and device of the sender, and of the receiver if it is
    on this machine.  The impairments act on the data only."""
    namespace, device = ends[0]
    # fq needs the sender's device for itself, and a receiver on another
    # machine has no device here: then one end has the whole delay.
    shares = (0.0, 1.0) if cell.qdisc else (1.0,) if len(ends) == 1 \
        else (0.5, 0.5)
    if cell.qdisc:
        command("tc", "-n", namespace, "qdisc", "add", "dev", device, "root",
                cell.qdisc)
    rate = _rate(cell)
    words = (_impairments(cell) + rate, rate)
    # The receiver may have no device here.
    for (namespace, device), share, more in zip(ends, shares, words,
                                                strict=False):
        if (share and cell.rtt_ms) or more:
            _add(namespace, device, cell, cell.rtt_ms * share, *more)
