# SPDX-License-Identifier: GPL-2.0-only
"""Prints settings as a file that survives a reboot: sysctl.d fragment, systemd
.link or shell script.  Pure.  A setting that the format cannot hold is an error."""
from __future__ import annotations

from collections.abc import Sequence

from ..errors import UsageError
from .journal import Entry

_LINK = {
    "mtu": "MTUBytes={value}", "txqueuelen": "TransmitQueueLength={value}",
    "ring:rx": "RxBufferSize={value}", "ring:tx": "TxBufferSize={value}",
    "channels:rx": "RxChannels={value}", "channels:tx": "TxChannels={value}",
    "channels:combined": "CombinedChannels={value}",
    "coalesce:rx-usecs": "RxCoalesceSec={value}us",
    "coalesce:tx-usecs": "TxCoalesceSec={value}us",
    "coalesce:rx-frames": "RxMaxCoalescedFrames={value}",
    "coalesce:tx-frames": "TxMaxCoalescedFrames={value}",
    "coalesce:adaptive-rx": "UseAdaptiveRxCoalesce={value}",
    "coalesce:adaptive-tx": "UseAdaptiveTxCoalesce={value}",
    "offload:tso": "TCPSegmentationOffload={value}",
    "offload:gso": "GenericSegmentationOffload={value}",
    "offload:gro": "GenericReceiveOffload={value}",
    "offload:rx": "ReceiveChecksumOffload={value}",
    "offload:tx": "TransmitChecksumOffload={value}",
    "pause:rx": "RxFlowControl={value}", "pause:tx": "TxFlowControl={value}",
    "pause:autoneg": "AutoNegotiationFlowControl={value}",
}
_SCRIPT = {
    "mtu": "ip link set dev {device} mtu {value}",
    "txqueuelen": "ip link set dev {device} txqueuelen {value}",
    "ring": "ethtool -G {device} {field} {value}",
    "channels": "ethtool -L {device} {field} {value}",
    "coalesce": "ethtool -C {device} {field} {value}",
    "offload": "ethtool -K {device} {field} {value}",
    "pause": "ethtool -A {device} {field} {value}",
    "queue": "echo {value} >{path}",
    "irq": "echo {value} >/proc/irq/{device}/smp_affinity_list",
    "qdisc": "tc qdisc replace dev {device} root {value}",
}


def _comment(entry: Entry) -> str:
    old = " ".join(entry.old.split())
    return f"# was: {old}" + (f"; {entry.reason}" if entry.reason else "")


def _value(entry: Entry) -> str:
    return " ".join(entry.new.split())


def _refuse(entry: Entry, form: str, better: str) -> UsageError:
    return UsageError(f"{entry.name}: {form} cannot hold it; use --format "
                      f"{better}")


def sysctl_d(entries: Sequence[Entry]) -> str:
    lines = []
    for entry in entries:
        kind, _, key = entry.name.partition(":")
        if kind != "sysctl":
            raise _refuse(entry, "a sysctl.d file", "script")
        lines += [_comment(entry), f"{key} = {_value(entry)}"]
    return "\n".join(lines) + "\n"


def link(entries: Sequence[Entry]) -> str:
    """One .link file; all settings must belong to one device."""
    devices = {entry.name.split(":")[1] for entry in entries}
    if len(devices) > 1:
        raise UsageError("a .link file holds one device; these settings belong to "
                         + ", ".join(sorted(devices)))
    addresses = {entry.identity.partition(" ")[2] for entry in entries}
    lines = ["[Match]"] + [f"PermanentMACAddress={a}" for a in addresses if a]
    lines += ["", "[Link]"]
    for entry in entries:
        kind, _, target = entry.name.partition(":")
        form = _LINK.get(":".join([kind, *target.split(":")[1:]]))
        if not form:
            raise _refuse(entry, "a .link file", "script")
        lines += [_comment(entry), form.format(value=_value(entry))]
    return "\n".join(lines) + "\n"


def script(entries: Sequence[Entry]) -> str:
    lines = ["#!/bin/sh", "set -eu"]
    for entry in entries:
        kind, _, target = entry.name.partition(":")
        device, _, field = target.partition(":")
        lines.append(_comment(entry))
        if kind == "sysctl":
            lines.append(f"sysctl -q -w '{target}={_value(entry)}'")
        elif kind == "rss":
            lines.append(_rss(entry, device))
        elif kind == "ntuple":
            lines.append(_ntuple(entry, device, field))
        elif kind in _SCRIPT:
            lines.append(_SCRIPT[kind].format(device=device, field=field,
                                              value=_value(entry),
                                              path=_path(device, field)))
        else:
            lines += _route(target, _value(entry))
    return "\n".join(lines) + "\n"


def _rss(entry: Entry, device: str) -> str:
    """ethtool sets rings in a row only."""
    rings = [int(ring) for ring in entry.new.split(",")]
    if rings != list(range(rings[0], rings[0] + len(rings))):
        raise UsageError(f"{entry.name}={entry.new}: ethtool cannot make this table, "
                         "so no script can hold it")
    return f"ethtool -X {device} start {rings[0]} equal {len(rings)}"


def _ntuple(entry: Entry, device: str, flow: str) -> str:
    """ethtool deletes a rule by its number, which another boot has not."""
    if entry.new == "none":
        raise UsageError(f"{entry.name}=none: ethtool deletes a rule by a number that "
                         "no script can know")
    return f"ethtool -N {device} flow-type {flow} action {entry.new}"


def _path(device: str, field: str) -> str:
    """The sysfs file of a device or of its queues."""
    return f"/sys/class/net/{device}/{'queues/' * ('/' in field)}{field}"


def _route(target: str, value: str) -> list[str]:
    prefix, _, attribute = target.rpartition(":")
    family = "-6" if ":" in prefix else "-4"
    # The route at that time, with the attribute (and its lock) replaced.
    return [f"route=$(ip {family} route show exact '{prefix}' |",
            f"\tsed 's/ {attribute} \\(lock \\)\\{{0,1\\}}[^ ]*//')",
            "# shellcheck disable=SC2086 # words of a route",
            f"ip {family} route change $route"
            + ("" if value == "none" else f" {attribute} {value}")]


FORMATS = {"sysctl.d": sysctl_d, "link": link, "script": script}
