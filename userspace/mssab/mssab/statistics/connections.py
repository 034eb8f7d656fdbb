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

from ..experiment import arm
from ..experiment.metrics import LEAST

Record = dict[str, Any]
ADDRESSES = "10.9.0.1", "10.9.0.2"


def arm_of(connection: Record, seed: int, share: int) -> str:
    """treated (treatment) or stock (control), from the endpoints; unknown if it
    failed before it had a port."""
    if not connection["sender_port"]:
        return "unknown"
    ends = (arm.endpoint(f"{ADDRESSES[0]}:{connection['sender_port']}"),
            arm.endpoint(f"{ADDRESSES[1]}:{connection['port']}"))
    return arm.arm(*ends, seed, share)


def failed(raw: Record) -> str:
    """Why a block has no goodput of an arm: all of its connections failed."""
    for name in ("treated", "stock"):
        mine = [c for c in raw["connections"] if c["arm"] == name]
        if mine and all("failed" in c for c in mine):
            return f"all {len(mine)} connections failed, {name}: " \
                f"{mine[0]['failed']}"
    return ""


def void(raw: Record) -> str:
    """Why a block does not count; "" if it does."""
    arms = [c["arm"] for c in raw["connections"]]
    if "unknown" in arms:
        why = next(c["failed"] for c in raw["connections"]
                   if c["arm"] == "unknown")
        return f"unknown arm: of a connection that failed at once: {why}"
    for name in ("treated", "stock"):
        if name not in arms:
            return f"empty arm: none of {len(arms)} connections is {name}"
    return ""


def values(raw: Record) -> dict[str, float]:
    """Values of one block: the mean logarithm of goodput per arm."""
    logs: dict[str, list[float]] = {"stock": [], "treated": []}
    worked = [c for c in raw["connections"] if "failed" not in c]
    for connection in worked:
        logs[connection["arm"]].append(
            math.log(8 * max(connection["bytes_per_s"], LEAST)))
    means = {name: statistics.fmean(some) for name, some in logs.items()}
    # goodput: of the average connection, for the plot over time.
    return {"goodput": math.exp(statistics.fmean(
        logs["stock"] + logs["treated"])),
        "stock": means["stock"], "treated": means["treated"],
        "effect": means["treated"] - means["stock"],
        "count": len(raw["connections"]), "count_treated":
        sum(c["arm"] == "treated" for c in raw["connections"])}
