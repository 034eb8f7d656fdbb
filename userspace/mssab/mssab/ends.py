# SPDX-License-Identifier: GPL-2.0
"""Where a load runs: the two ends.  Pure."""
from __future__ import annotations

from dataclasses import dataclass

SENDER, RECEIVER = "mssab-tx", "mssab-rx"


@dataclass(frozen=True)
class Ends:
    """Two namespaces to send between, of one host; one namespace twice for
    loopback; or one, and a receiver elsewhere whose server the user runs."""

    sender: str
    receiver: str       # "": elsewhere
    address: str

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces that are ours."""
        if self.receiver in (self.sender, ""):
            return (self.sender,)
        return (self.sender, self.receiver)
