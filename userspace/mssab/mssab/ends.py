# SPDX-License-Identifier: GPL-2.0-only
"""The two ends that a load runs between.  Pure."""
from __future__ import annotations

from dataclasses import dataclass

from .cell import LOOPBACK, Cell

SENDER, RECEIVER = "mssab-tx", "mssab-rx"


@dataclass(frozen=True)
class Ends:
    """Namespaces of the sender and the receiver, and the receiver's address.
    On loopback both ends are in one namespace.  A receiver on another machine
    has no namespace here ("")."""

    sender: str
    receiver: str
    address: str

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that mssab makes."""
        if self.receiver in (self.sender, ""):
            return (self.sender,)
        return (self.sender, self.receiver)


def of(cell: Cell) -> Ends:
    """The ends of a cell."""
    if cell.link == LOOPBACK:
        return Ends(SENDER, SENDER, "::1" if cell.ipv6 else "127.0.0.1")
    if cell.remote:
        return Ends(SENDER, "", cell.receiver_address)
    return Ends(SENDER, RECEIVER, "fd09::2" if cell.ipv6 else "10.9.0.2")
