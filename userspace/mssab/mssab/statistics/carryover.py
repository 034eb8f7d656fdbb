# SPDX-License-Identifier: GPL-2.0-only
"""Does a block change the next one?  Two diagnoses of a metric's differences.

Pure.  A treatment that slows the block after it seems better than it is: the
control suffers from it wherever a pair starts with the control and the pair
before ended with the treatment.
"""
from __future__ import annotations

import math
import statistics
from typing import Any

from ..experiment.metrics import Metric
from . import stats

Record = dict[str, Any]
#: A carry-over is found where there is none in this share of experiments.
LEVEL = 0.01
#: A bias of the estimate matters from this share of the margin on.
MATTERS = 0.25


def _first_side(pair: tuple[Record, ...]) -> int:
    """0 if the control ran first."""
    return int(pair[0]["place"] > pair[1]["place"])


def _split(values: list[tuple[bool, float]]) -> tuple[list[float], list[float]]:
    return [d for yes, d in values if yes], [d for yes, d in values if not yes]


def _gap(metric: Metric, yes: list[float], no: list[float]) -> dict[str, Any]:
    """Mean of some differences minus that of the others."""
    gap = statistics.fmean(yes) - statistics.fmean(no) if yes and no else 0.0
    return {"percent" if metric.scale == "log" else "gap":
            100 * math.expm1(gap) if metric.scale == "log" else gap,
            "p": stats.same_mean_p(yes, no), "pairs": [len(yes), len(no)]}


def diagnose(metric: Metric, counted: list[tuple[Record, ...]],
             differences: list[float]) -> dict[str, Any]:
    """@counted: the pairs of @differences, two blocks each.

    "previous": pairs that start with the other arm than the block before them
    had, against pairs that start with the same one.  In the latter a
    carry-over hits both blocks or none; in the former it biases the
    difference.  "order": pairs with the treatment first against the others.
    "bias": what the carry-over adds to the estimate; "found": it is certain,
    and matters."""
    orders = [_first_side(pair) for pair in counted]
    after = []
    for i in range(1, len(counted)):
        adjacent = counted[i][0]["pair"] == counted[i - 1][0]["pair"] + 1 \
            and counted[i][0]["session"] == counted[i - 1][0]["session"] \
            and not counted[i][0]["attempt"]
        if adjacent:
            after.append((orders[i] == orders[i - 1], differences[i]))
    same, switched = _split(after)
    first, second = _split(list(zip(map(bool, orders), differences,
                                    strict=True)))
    previous = _gap(metric, same, switched)
    bias = (statistics.fmean(same) - statistics.fmean(switched)) \
        * len(same) / len(after) if same and switched else 0.0
    return {"previous": previous, "order": _gap(metric, first, second),
            "bias": metric.shown(bias),
            "found": previous["p"] <= LEVEL
            and abs(bias) >= MATTERS * metric.log_margin()}
