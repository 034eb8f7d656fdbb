# SPDX-License-Identifier: GPL-2.0-only
"""Arms per connection, over all blocks: is the split the requested one, and do
treatment connections gain at the expense of the others?

Pure.  An effect of the treatment itself is the same at a share of 10 % and at
one of 90 %, and so is the goodput of control connections.  An effect at the
expense of others changes both.
"""
from __future__ import annotations

import math
from typing import Any

from .. import verdict
from . import stats
from .connections import Record


def sample_ratio(blocks: list[Record]) -> list[dict[str, Any]]:
    """At each share: how many connections had the treatment, and the p-value
    of that split."""
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
    """From the smallest share to the largest: the change of the effect, and of
    the goodput of control connections.  @effect: the one to be reported, 0 if
    none."""
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
        if found.verdict in (verdict.IMPROVED, verdict.REGRESSED):
            out["refused"] = out["refused"] or (
                ("the effect changes" if name == "effect" else
                 "the goodput of control connections changes")
                + f" by {100 * math.expm1(found.point):+.1f} % as more "
                "connections have the treatment: they gain at each other's "
                "expense")
        reach = max(abs(found.low), abs(found.high))
        if name == "stock" and effect and reach >= abs(effect):
            out["refused"] = out["refused"] or (
                "the change in the goodput of control connections with the "
                "share is known so poorly that it could be the whole effect")
    return out
