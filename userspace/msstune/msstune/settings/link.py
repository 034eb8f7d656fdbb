# SPDX-License-Identifier: GPL-2.0-only
"""MTU and queue length of a network device, by ip(8)."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

from .. import system
from ..errors import UsageError
from .setting import Setting


IPV6_MIN_MTU = 1280     # RFC 8200


def show(device: str) -> dict[str, Any]:
    """One device as ip(8) prints it."""
    found = json.loads(system.run("ip", "-j", "-d", "link", "show", "dev",
                                  device) or "[]")
    return dict(found[0])


class DeviceSetting(Setting):
    """A setting of a device; the target is DEVICE or DEVICE:..."""

    @property
    def device(self) -> str:
        return self.target.partition(":")[0]

    def identity(self) -> str:
        link = show(self.device)
        return f"{link['ifindex']} {link.get('address', '')}"


class _Number(DeviceSetting):
    key: ClassVar[str]
    word: ClassVar[str]
    low: ClassVar[int]
    high: ClassVar[int]

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        if not target or ":" in target or target.startswith("-"):
            raise UsageError(f"{self.kind}:{target}: a setting is "
                             f"{self.kind}:DEVICE=NUMBER")

    def read(self) -> str:
        return str(show(self.device).get(self.key, 0))  # ip(8) leaves out a 0

    def write(self, value: str) -> None:
        system.run("ip", "link", "set", "dev", self.device, self.word, value)

    def check(self, value: str) -> None:
        if not value.isdecimal() or not self.low <= int(value) <= self.high:
            raise UsageError(f"{self.name}={value}: not a whole number in "
                             f"{self.low}..{self.high}")


class Mtu(_Number):
    kind, key, word, low, high = "mtu", "mtu", "mtu", 68, 65536
    disruptive = True

    def check(self, value: str) -> None:
        super().check(value)
        if int(value) < IPV6_MIN_MTU and has_ipv6(self.device):
            raise UsageError(f"{self.name}={value}: below {IPV6_MIN_MTU} the kernel "
                             "removes the device's IPv6 addresses, which undo does "
                             "not restore")


def has_ipv6(device: str) -> bool:
    found = json.loads(system.run("ip", "-6", "-j", "addr", "show", "dev", device)
                       or "[]")
    return any(link.get("addr_info") for link in found)


class TxQueueLen(_Number):
    kind, key, word, low, high = "txqueuelen", "txqlen", "txqueuelen", 0, 10**6
