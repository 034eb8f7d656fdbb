# SPDX-License-Identifier: GPL-2.0-only
"""mssab compare: do two results directories show the same effect?"""
from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from scipy import special

from ..errors import UsageError
from ..experiment import experiment_file
from ..experiment.experiment import Plan
from ..experiment.metrics import Metric
from ..report import report, result_text
from ..run import journal
from ..statistics import analysis, outcomes
from ..verdict import MIN_PAIRS, SAME


def compare(one: list[float], other: list[float],
            level: float) -> tuple[float, float, float]:
    """Difference of the means, other minus one, and its interval by Welch's t.
    The two runs were not randomised against each other, so there is no
    sign-flip test."""
    parts = []
    for d in (one, other):
        mean = math.fsum(d) / len(d)
        square = math.fsum((x - mean)**2 for x in d) / (len(d) - 1)
        parts.append((mean, square / len(d), len(d)))
    (m1, v1, n1), (m2, v2, n2) = parts
    gap = m2 - m1
    if v1 + v2 <= SAME**2:
        return gap, gap, gap
    freedom = (v1 + v2)**2 / (v1**2 / (n1 - 1) + v2**2 / (n2 - 1))
    width = float(special.stdtrit(freedom, 1 - level / 2)) \
        * math.sqrt(v1 + v2)
    return gap, gap - width, gap + width


def _read(directory: Path) -> tuple[Plan, Any, Any, Any]:
    manifest, result = report.read(directory)
    plan = experiment_file.parse(directory / journal.MANIFEST, manifest["text"])
    counted = outcomes.pairs(journal.read_samples(directory), outcomes.AB)
    if len(counted) < MIN_PAIRS:
        raise UsageError(f"{directory}: {len(counted)} pairs; fewer than "
                         f"{MIN_PAIRS} support no claim")
    return plan, counted, manifest, result


def _question(manifest: Any) -> Any:
    """What was measured, whatever the draw."""
    return {key: value for key, value in manifest["plan"].items()
            if key != "seed"}


def _line(metric: Metric, gap: tuple[float, float, float]) -> str:
    factor = 100 if metric.scale == "log" else 1
    # A difference of effects: % of the treatment's value in A.
    at, low, high = (factor * (math.expm1(x) if factor > 1 else x)
                     for x in gap)
    word = "no difference shown"
    if low > 0 or high < 0:
        word = "better" if at > 0 else "worse"
    if max(abs(gap[1]), abs(gap[2])) <= metric.log_margin():
        word = "the same"
    return f"{result_text.signed(at):>9} {result_text.signed(low):>9} .. " \
        f"{result_text.signed(high):<9} {word}"


def run(args: argparse.Namespace) -> int:
    plan, one, first, result = _read(args.one)
    other_plan, other, second, other_result = _read(args.other)
    print(f"A  {args.one}: {first['kernel']}, {result_text.headline(result)}")
    print(f"B  {args.other}: {second['kernel']}, "
          f"{result_text.headline(other_result)}")
    if _question(first) != _question(second):
        print("The experiments differ, so the effects may not be comparable.")
    shared = [m for m in plan.metrics
              if m.name in [o.name for o in other_plan.metrics]]
    if not shared:
        raise UsageError("the two have no metric in common")
    print(f"\n{'metric':<12} {'A':>9} {'B':>9} {'B minus A':>9} "
          "95 % interval           B is")
    for metric in shared:
        shown = [result_text.signed(r["metrics"][metric.name]["effect"])
                 for r in (result, other_result)]
        gap = compare(analysis.differences(one, metric),
                      analysis.differences(other, metric), 0.05)
        print(f"{metric.name:<12} {shown[0]:>9} {shown[1]:>9} "
              f"{_line(metric, gap)}")
    print("\nB minus A: above 0 is better; in %, or the metric's unit.")
    return 0
