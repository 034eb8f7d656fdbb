# SPDX-License-Identifier: GPL-2.0-only
"""Whether a change is shown not to harm a guardrail: a one-sided non-inferiority
test at the full level, on the pairs of blocks that mssab counted.  Pure but for
reading mssab's samples.

mssab's verdict of a guardrail answers another question, whether harm is shown.
Where the traffic is noisy, neither harm nor its absence is shown; such a change is
not kept.
"""
from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ALPHA = 0.05
EXACT = 14          # pairs up to which all signs are enumerated
DRAWS = 20_000      # draws above


@dataclass(frozen=True)
class Safety:
    """The result for one guardrail."""

    safe: bool
    p: float        # of harm as large as the margin
    why: str        # empty if safe


def judge(differences: Sequence[float], margin: float) -> Safety:
    """@differences: one for each pair, positive where the change is better.  A
    change that costs @margin passes in at most ALPHA of experiments."""
    if len(differences) < 2:
        return Safety(False, 1.0, "no pairs of blocks")
    p = p_value([d + margin for d in differences])
    if p <= ALPHA:
        return Safety(True, p, "")
    return Safety(False, p, f"not shown to be safe (p = {p:.2g} for harm as large as "
                  "the margin)")


def p_value(values: Sequence[float]) -> float:
    """Sign-flip test of a mean above 0: the share of signs whose sum is at least
    that of @values."""
    enough = sum(values) - 1e-12 * sum(abs(v) for v in values)  # up to rounding
    if len(values) <= EXACT:
        sums = [0.0]
        for value in values:
            sums = [s + value for s in sums] + [s - value for s in sums]
        return sum(1 for s in sums if s >= enough) / len(sums)
    draw = random.Random(len(values))
    hits = sum(1 for _ in range(DRAWS) if sum(
        v if draw.random() < .5 else -v for v in values) >= enough)
    return (1 + hits) / (1 + DRAWS)


def guardrails(folder: Path, result: dict[str, Any],
               names: Sequence[str]) -> dict[str, Safety]:
    """The guardrails @names of one experiment of mssab in @folder."""
    pairs = counted(folder)
    found = {}
    for name in names:
        metric = result["metrics"].get(name)
        if metric is None:
            found[name] = Safety(False, 1.0, "not measured")
            continue
        log = metric["scale"] == "log"
        sign = 1 if metric["better"] == "higher" else -1
        differences = []
        for control, treatment in pairs:
            one, other = control[name], treatment[name]
            differences.append(sign * (math.log(other / one) if log else other - one))
        found[name] = judge(differences, math.log1p(metric["margin"] / 100) if log
                            else metric["margin"])
    return found


def counted(folder: Path) -> list[tuple[dict[str, float], dict[str, float]]]:
    """The values of control and treatment in each pair that counts: the first
    attempt of which no block is void."""
    tries: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for line in (folder / "samples.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        if record["phase"] == "ab":
            tries.setdefault((record["pair"], record["attempt"]), []).append(record)
    found: dict[int, tuple[dict[str, float], dict[str, float]]] = {}
    for (pair, _), blocks in sorted(tries.items()):
        sides = {block["side"]: block["values"] for block in blocks
                 if not block["void"]}
        if pair not in found and len(sides) == len(blocks) == 2 \
                and len({block["session"] for block in blocks}) == 1:
            found[pair] = sides[0], sides[1]
    return list(found.values())
