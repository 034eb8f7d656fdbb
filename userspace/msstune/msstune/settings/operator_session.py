# SPDX-License-Identifier: GPL-2.0-only
"""The connections that a remote operator works through, and the devices and routes
that carry them.  Reads only.

sudo drops SSH_CONNECTION, so the sockets decide: those of our ancestors, and those
of every ssh server, because tmux and screen detach a shell from its sshd.
"""
from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import sockdiag, system
from ..errors import TuneError

SERVERS = ("sshd", "dropbear", "in.telnetd")


@dataclass(frozen=True)
class Carriers:
    """What must not be disturbed; empty at a local console."""

    devices: frozenset[str] = field(default_factory=frozenset)
    routes: frozenset[str] = field(default_factory=frozenset)   # prefixes, default


def _stat(pid: int) -> tuple[str, int]:
    """Name and parent of a process."""
    text = Path(f"/proc/{pid}/stat").read_text("ascii", errors="replace")
    head, _, tail = text.rpartition(")")
    return head.partition("(")[2], int(tail.split()[1])


def _processes() -> Iterator[int]:
    """Our ancestors, and all servers."""
    pid = os.getppid()
    while pid > 1:
        yield pid
        try:
            pid = _stat(pid)[1]
        except OSError:
            break
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if _stat(int(folder.name))[0].startswith(SERVERS):
                yield int(folder.name)
        except OSError:
            continue  # it ended


def _sockets(pid: int) -> Iterator[int]:
    """Inodes of the sockets of a process."""
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            link = os.readlink(entry.path)
            if link.startswith("socket:["):
                yield int(link[8:-1])
    except OSError:
        return  # it ended, or belongs to another user


def connections() -> set[tuple[str, str]]:
    """Local and remote address of each connection of an operator."""
    held = {inode for pid in set(_processes()) for inode in _sockets(pid)}
    found = set()
    for look in sockdiag.looks().values():
        flow = sockdiag.unpack(look)
        if flow["inode"] in held:
            found.add((sockdiag.host(flow["local"]), sockdiag.host(flow["remote"])))
    words = os.environ.get("SSH_CONNECTION", "").split()
    if len(words) == 4:
        found.add((words[2], words[0]))
    return found


def below(names: set[str], links: Sequence[dict[str, Any]]) -> set[str]:
    """@names, and the devices that carry them: parents of VLANs, ports of bonds and
    bridges.  @links: ip -j link."""
    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        waiting += [link["link"] for link in links
                    if link.get("ifname") == name and link.get("link")]
        waiting += [link["ifname"] for link in links if link.get("master") == name]
    return found


def carriers() -> Carriers:
    """The devices and routes of all connections()."""
    pairs = connections()
    if not pairs:
        return Carriers()
    devices, routes = set(), set()
    for address in json.loads(system.run("ip", "-j", "addr", "show")):
        if {info.get("local") for info in address.get("addr_info", [])} & {
                local for local, _ in pairs}:
            devices.add(str(address["ifname"]))
    for local, remote in pairs:
        for words in (["from", local], ["from", local, "fibmatch"]):
            try:
                route, = json.loads(system.run("ip", "-j", "route", "get", remote,
                                               *words))
            except (TuneError, ValueError):
                continue  # the address is gone
            devices.add(str(route.get("dev", "")))
            if "fibmatch" in words:
                routes.add(prefix(str(route.get("dst", ""))))
    links = json.loads(system.run("ip", "-j", "-d", "link", "show"))
    return Carriers(frozenset(below(devices - {""}, links)), frozenset(routes))


def prefix(text: str) -> str:
    """One spelling of a prefix: 10.0.0.0/8, 10.0.0.1/32, default."""
    if text in ("default", "0.0.0.0/0", "::/0", "all", "any"):
        return "default"
    try:
        return str(ipaddress.ip_network(text, strict=False))
    except ValueError:
        return text
