# SPDX-License-Identifier: GPL-2.0
"""Arms drawn per connection by the module: the effect within a block, whether
the split is the one asked for, and whether treated connections lived off the
others.

Pure.  A block is some connections at once, a share of them treated.  With a
share of 10 % and one of 90 % an effect of the treatment itself is the same; one
that is taken from the neighbours is not, nor are the neighbours.
"""
from __future__ import annotations

import math
import statistics
from typing import Any

from . import arm, stats, verdicts
from .metrics import LEAST

Record = dict[str, Any]
ADDRESSES = "10.9.0.1", "10.9.0.2"


def arm_of(connection: Record, seed: int, share: int) -> str:
    """treated or stock, from the endpoints."""
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
    """Of one block: means of the logarithms of goodput per arm."""
    logs: dict[str, list[float]] = {"stock": [], "treated": []}
    for connection in raw["connections"]:
        logs[connection["arm"]].append(
            math.log(8 * max(connection["bytes_per_s"], LEAST)))
    means = {name: statistics.fmean(some) for name, some in logs.items()}
    # goodput: what a connection of the block got, for the plot over time.
    return {"goodput": math.exp(statistics.fmean(
        logs["stock"] + logs["treated"])),
        "stock": means["stock"], "treated": means["treated"],
        "effect": means["treated"] - means["stock"],
        "count": len(raw["connections"]), "count_treated":
        len(logs["treated"])}


def sample_ratio(blocks: list[Record]) -> list[dict[str, Any]]:
    """At each share: how many connections were treated, and how likely that
    is."""
    out = []
    for share in sorted({b["share"] for b in blocks}):
        some = [b["values"] for b in blocks if b["share"] == share]
        treated = int(sum(v["count_treated"] for v in some))
        total = int(sum(v["count"] for v in some))
        out.append({"share": share, "treated": treated, "total": total,
                    "p": stats.sample_ratio_p(treated, total, share / 100)})
    return out


def interference(counted: list[tuple[Record, ...]], rule: stats.Rule,
                 effect: float) -> dict[str, Any]:
    """From the smallest share to the largest: how far the effect moves, and
    how far the untreated do.  @effect: what is to be headlined."""
    moves = {
        "effect": [p[-1]["values"]["effect"] - p[0]["values"]["effect"]
                   for p in counted],
        "stock": [p[-1]["values"]["stock"] - p[0]["values"]["stock"]
                  for p in counted]}
    out: dict[str, Any] = {"refused": ""}
    for name, differences in moves.items():
        found = stats.finding(differences, rule)
        out[name] = {key: 100 * math.expm1(value) if math.isfinite(value)
                     else None for key, value in
                     (("shift", found.point), ("low", found.low),
                      ("high", found.high))} | {"verdict": found.verdict}
        if found.verdict in (verdicts.IMPROVED, verdicts.REGRESSED):
            out["refused"] = out["refused"] or (
                f"the {'effect moves' if name == 'effect' else 'untreated move'}"
                f" by {100 * math.expm1(found.point):+.1f} % as more "
                "connections are treated: they live off one another")
        reach = max(abs(found.low), abs(found.high))
        if name == "stock" and effect and reach >= abs(effect):
            out["refused"] = out["refused"] or (
                "how far the untreated move with the share is known so badly "
                "that it could be the whole effect")
    return out
