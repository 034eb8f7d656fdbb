# SPDX-License-Identifier: GPL-2.0-only
"""The two ends that a load runs between.  Pure."""
from __future__ import annotations

from dataclasses import dataclass

from ..experiment.cell import LOOPBACK, Cell

SENDER, RECEIVER = "mssab-tx", "mssab-rx"


@dataclass(frozen=True)
class Ends:
    """Namespaces of the sender and the receiver, and the receiver's address.
    On loopback both ends are in one namespace.  A receiver on another machine
    has no namespace here ("")."""

    sender: str
    receiver: str
    address: str
    more: tuple[Ends, ...] = ()     # further senders or receivers of the cell

    @property
    def pairs(self) -> tuple[Ends, ...]:
        """Every sender with its receiver."""
        return (self, *self.more)

    @property
    def senders(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(pair.sender for pair in self.pairs))

    @property
    def receivers(self) -> tuple[str, ...]:
        """Those on this machine."""
        return tuple(dict.fromkeys(pair.receiver for pair in self.pairs
                                   if pair.receiver))

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that mssab makes, the senders first."""
        return tuple(dict.fromkeys((*self.senders, *self.receivers)))


def host_address(number: int, ipv6: bool = False) -> str:
    """Address of an end on a veth link: the senders have 1, 3, 5 ..., the
    receivers 2, 4, 6 ..."""
    return f"fd09::{number:x}" if ipv6 else f"10.9.0.{number}"


def of(cell: Cell) -> Ends:
    """The ends of a cell."""
    if cell.link == LOOPBACK:
        return Ends(SENDER, SENDER, "::1" if cell.ipv6 else "127.0.0.1")
    if cell.remote:
        return Ends(SENDER, "", cell.receiver_address)

    def name(base: str, number: int) -> str:
        return f"{base}-{number + 1}" if number else base
    first, *more = [
        Ends(name(SENDER, s), name(RECEIVER, r),
             host_address(2 * r + 2, cell.ipv6))
        for s in range(cell.senders) for r in range(cell.receivers)]
    return Ends(first.sender, first.receiver, first.address, tuple(more))
