# SPDX-License-Identifier: GPL-2.0-only
"""How long to wait for a program in a guest whose clock leaps.

The clock of a deterministic guest (scripts/guest) skips the time in which the guest
waits for a file of the host.  A disk that stalls for one second makes it advance by
about ten minutes.
"""
from __future__ import annotations

import os

#: Seconds to wait longer there.
HOST_S = 36000
LEAPING = ("deterministic", "ticks")


def seconds(usual: float) -> float:
    """The usual limit in seconds; with HOST_S added in such a guest."""
    leaps = os.environ.get("MSSFRAC_GUEST") in LEAPING
    return usual + HOST_S if leaps else usual
