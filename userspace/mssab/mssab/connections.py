# SPDX-License-Identifier: GPL-2.0-only
"""Arms that the module draws per connection: the arm of each, and the effect
within a block.

Pure.  A block is several connections at once, a share of them with the
treatment.  interference.py examines all blocks together.
"""
from __future__ import annotations

import math
import statistics
from typing import Any

from . import arm
from .metrics import LEAST

Record = dict[str, Any]
ADDRESSES = "10.9.0.1", "10.9.0.2"


def arm_of(connection: Record, seed: int, share: int) -> str:
    """treated (treatment) or stock (control), from the endpoints."""
    ends = (arm.endpoint(f"{ADDRESSES[0]}:{connection['sender_port']}"),
            arm.endpoint(f"{ADDRESSES[1]}:{connection['port']}"))
    return arm.arm(*ends, seed, share)


def void(raw: Record) -> str:
    """Why a block does not count; "" if it does."""
    arms = [c["arm"] for c in raw["connections"]]
    for name in ("treated", "stock"):
        if name not in arms:
            return f"empty arm: none of {len(arms)} connections is {name}"
    return ""


def values(raw: Record) -> dict[str, float]:
    """Values of one block: the mean logarithm of goodput per arm."""
    logs: dict[str, list[float]] = {"stock": [], "treated": []}
    for connection in raw["connections"]:
        logs[connection["arm"]].append(
            math.log(8 * max(connection["bytes_per_s"], LEAST)))
    means = {name: statistics.fmean(some) for name, some in logs.items()}
    # goodput: of the average connection, for the plot over time.
    return {"goodput": math.exp(statistics.fmean(
        logs["stock"] + logs["treated"])),
        "stock": means["stock"], "treated": means["treated"],
        "effect": means["treated"] - means["stock"],
        "count": len(raw["connections"]), "count_treated":
        len(logs["treated"])}
