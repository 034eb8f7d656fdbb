# SPDX-License-Identifier: GPL-2.0
"""Arms per connection, over all blocks: whether the split is the one asked for,
and whether treated connections lived off the others.

Pure.  With a share of 10 % and one of 90 % an effect of the treatment itself is
the same; one that is taken from the neighbours is not, nor are the neighbours.
"""
from __future__ import annotations

import math
from typing import Any

from . import finding, stats, verdict
from .connections import Record


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


def across_shares(counted: list[tuple[Record, ...]], rule: verdict.Rule,
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
        found = finding.of(differences, rule)
        out[name] = {key: 100 * math.expm1(value) if math.isfinite(value)
                     else None for key, value in
                     (("shift", found.point), ("low", found.low),
                      ("high", found.high))} | {"verdict": found.verdict}
        if found.verdict in (verdict.IMPROVED, verdict.REGRESSED):
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
