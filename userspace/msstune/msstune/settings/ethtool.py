# SPDX-License-Identifier: GPL-2.0-only
"""Rings, channels, coalescing, offloads and pause frames, by the ethtool ioctl.

The structures of the ioctl never change, but the output of ethtool(8) does, and
pyroute2 of Debian 12 cannot set rings.
"""
from __future__ import annotations

import array
import fcntl
import socket
import struct
from pathlib import Path
from typing import ClassVar

from ..errors import NotSupported, TuneError, UsageError
from .link import DeviceSetting

SIOCETHTOOL = 0x8946
IFNAMSIZ = 16
GSTRINGS, GSSET_INFO, GFEATURES = 0x1b, 0x37, 0x3a
FEATURES = 4    # the set of strings that names them


def call(device: str, words: list[int]) -> list[int]:
    """Run one ethtool command on its structure of 32-bit words."""
    if len(device.encode()) >= IFNAMSIZ:
        raise UsageError(f"{device}: too long for the name of a device")
    buffer = array.array("I", words)
    request = struct.pack("16sP", device.encode(), buffer.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCETHTOOL, request)
    return list(buffer)


def features(device: str) -> dict[str, tuple[bool, bool]]:
    """Each feature of the device: whether it is on, and whether it can be changed."""
    count = call(device, [GSSET_INFO, 0, 1 << FEATURES, 0, 0])[4]
    words = call(device, [GSTRINGS, FEATURES, count] + [0] * (count * 8))[3:]
    names = array.array("I", words).tobytes()
    blocks = (count + 31) // 32
    # Of each 32 features: available, requested, active, never changed.
    bits = call(device, [GFEATURES, blocks] + [0] * (4 * blocks))[2:]
    found = {}
    for at in range(count):
        name = names[32 * at:32 * at + 32].split(b"\0")[0].decode("ascii", "replace")
        available, _, active, fixed = (
            bool(word >> at % 32 & 1) for word in bits[at // 32 * 4:][:4])
        found[name] = active, available and not fixed
    return found


class _Words(DeviceSetting):
    """Fields of one structure, read and written by a pair of commands."""

    get: ClassVar[int]
    set: ClassVar[int]
    size: ClassVar[int]               # in words, including the command
    fields: ClassVar[dict[str, int]]  # name: index of the word
    switch: ClassVar[bool] = False    # values are on and off, not numbers
    hint: ClassVar[str] = ""          # to a refusal of the driver

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        device, _, self.field = target.partition(":")
        if not device or self.field not in self.fields:
            raise UsageError(
                f"{self.kind}:{target}: a setting is {self.kind}:DEVICE:NAME="
                f"VALUE, NAME one of {', '.join(self.fields)}")

    def _words(self) -> list[int]:
        try:
            return call(self.device, [self.get] + [0] * (self.size - 1))
        except OSError as error:
            raise NotSupported(f"{self.name}: {self.device} does not report it: "
                               f"{error.strerror}") from error

    def read(self) -> str:
        value = self._words()[self.fields[self.field]]
        return ("off", "on")[bool(value)] if self._is_switch() else str(value)

    def _is_switch(self) -> bool:
        return self.switch or self.field.startswith("adaptive")

    def write(self, value: str) -> None:
        words = self._words()
        words[0] = self.set
        words[self.fields[self.field]] = (int(value == "on")
                                          if self._is_switch() else int(value))
        try:
            call(self.device, words)
        except OSError as error:
            raise TuneError(f"{self.name}={value}: {error.strerror}"
                            f"{self.hint}") from error

    def check(self, value: str) -> None:
        if self._is_switch():
            if value not in ("on", "off"):
                raise UsageError(f"{self.name}={value}: must be on or off")
        elif not value.isdecimal() or int(value) >= 2**31:
            raise UsageError(f"{self.name}={value}: not a whole number")


class _Limited(_Words):
    """Numbers up to one that the driver reports beside them."""

    most: ClassVar[dict[str, int]]    # name: index of the word
    disruptive = True

    def maximum(self) -> int:
        """The largest value the driver allows."""
        return self._words()[self.most[self.field]]

    def check(self, value: str) -> None:
        super().check(value)
        if int(value) > self.maximum():
            raise UsageError(f"{self.name}={value}: the driver allows "
                             f"{self.maximum()}")


class Ring(_Limited):
    kind = "ring"
    get, set, size = 0x10, 0x11, 9
    fields = {"rx": 5, "tx": 8}
    most = {"rx": 1, "tx": 4}
    rounds = True


class Channels(_Limited):
    kind = "channels"
    get, set, size = 0x3c, 0x3d, 9
    fields = {"rx": 5, "tx": 6, "combined": 8}
    most = {"rx": 1, "tx": 2, "combined": 4}
    hint = "; a table of RSS that was set by hand (ethtool -x) keeps its rings"


class Coalesce(_Words):
    kind = "coalesce"
    get, set, size = 0x0e, 0x0f, 23
    fields = {"rx-usecs": 1, "rx-frames": 2, "tx-usecs": 5, "tx-frames": 6,
              "adaptive-rx": 10, "adaptive-tx": 11}
    rounds = True


class Pause(_Words):
    kind = "pause"
    get, set, size = 0x12, 0x13, 4
    fields = {"autoneg": 1, "rx": 2, "tx": 3}
    switch = disruptive = True


class Offload(_Words):
    """Offloads with their own pair of commands and a structure of one word."""

    kind = "offload"
    size = 2
    #: name: (get, set)
    commands = {"rx": (0x14, 0x15), "tx": (0x16, 0x17), "sg": (0x18, 0x19),
                "tso": (0x1e, 0x1f), "gso": (0x23, 0x24), "gro": (0x2b, 0x2c)}
    fields = dict.fromkeys(commands, 1)
    switch = True

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        # Six pairs of commands share this class.
        self.get, self.set = self.commands[self.field]  # type: ignore[misc]
