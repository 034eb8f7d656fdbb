# SPDX-License-Identifier: GPL-2.0-only
"""The rings over which a card spreads received packets by the hash of their flow
(RSS): the indirection table, by the ethtool ioctl."""
from __future__ import annotations

import re
from pathlib import Path

from ..errors import NotSupported, TuneError, UsageError
from .ethtool import call
from .link import DeviceSetting

GRXFHINDIR, SRXFHINDIR, GRXRINGS = 0x38, 0x39, 0x2d
#: Words of struct ethtool_rxnfc, of which the third is a number of rings.
RXNFC = 48


def pattern(table: list[int]) -> list[int]:
    """The shortest row of rings that, repeated, is the table."""
    return next(table[:n] for n in range(1, len(table) + 1)
                if all(ring == table[i % n] for i, ring in enumerate(table)))


def rings(value: str) -> list[int]:
    return [int(ring) for ring in value.split(",")]


class Rss(DeviceSetting):
    """rss:DEV, rings as numbers with commas; the table repeats them."""

    kind = "rss"

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        if not re.fullmatch(r"[\w.@-]+", target):
            raise UsageError(f"rss:{target}: a setting is rss:DEVICE=RING,RING...")

    def _table(self) -> list[int]:
        try:
            # Without room for it, the kernel returns its size only.
            size = call(self.device, [GRXFHINDIR, 0])[1]
            return call(self.device, [GRXFHINDIR, size] + [0] * size)[2:]
        except OSError as error:
            raise NotSupported(f"{self.name}: {self.device} has no table of RSS: "
                               f"{error.strerror}") from error

    def read(self) -> str:
        return ",".join(map(str, pattern(self._table())))

    def write(self, value: str) -> None:
        row, size = rings(value), len(self._table())
        table = [row[i % len(row)] for i in range(size)]
        try:
            # The kernel's own table, made by the kernel, no longer counts as set by
            # hand, which would forbid fewer channels.
            there = call(self.device, [GRXRINGS] + [0] * (RXNFC - 1))[2]
            if row == list(range(there)):
                size, table = 0, []
            call(self.device, [SRXFHINDIR, size, *table])
        except OSError as error:
            raise TuneError(f"{self.name}={value}: {error.strerror}; ethtool -x "
                            f"{self.device} names its rings") from error

    def check(self, value: str) -> None:
        if not re.fullmatch(r"\d{1,5}(,\d{1,5})*", value):
            raise UsageError(f"{self.name}={value}: must be rings such as 0,1,2,3")
        if value.count(",") >= (size := len(self._table())):
            raise UsageError(f"{self.name}={value}: the table has {size} places")

    def same(self, one: str, other: str) -> bool:
        """A row may be written more than once: 0,1,0,1 is 0,1."""
        return pattern(rings(one)) == pattern(rings(other))
