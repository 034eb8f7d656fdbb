# SPDX-License-Identifier: GPL-2.0-only
"""What the pairs show about one metric: estimate, interval, p-values, verdict.

Pure.  The statistics are in stats.py, the rule for the verdict in verdict.py.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from . import stats
from .verdict import IMPROVED, INCONCLUSIVE, MIN_PAIRS, REGRESSED, SAME, Rule


@dataclass(frozen=True)
class Finding:
    """On the scale of the differences."""

    pairs: int
    verdict: str = INCONCLUSIVE
    why: str = ""
    point: float = math.nan
    low: float = -math.inf
    high: float = math.inf
    level: float = 0.05         # the interval's is 1 - level
    p: float = 1.0
    p_equivalent: float = 1.0   # of two one-sided tests, the larger
    p_harm: float = 1.0         # of "worse by the margin or more"
    typical: float = math.nan   # Hodges-Lehmann
    bootstrap: tuple[float, float] = (-math.inf, math.inf)
    agrees: bool = True         # does the bootstrap lead to the same verdict?
    spread: float = math.nan    # standard deviation of the differences
    lag: float = 0.0            # correlation of each with the next
    exact: bool = False         # all differences are the same
    needed: int = 0             # pairs, where inconclusive; 0: not known


def of(differences: Sequence[float], rule: Rule) -> Finding:
    """The finding about one metric."""
    d = np.asarray(differences, float)
    n = len(d)
    if n and not np.isfinite(d).all():
        raise ValueError("a difference is not a number")
    if n < MIN_PAIRS:
        return Finding(n, why=f"{n} pairs; fewer than {MIN_PAIRS} support no "
                       "claim", needed=MIN_PAIRS,
                       point=float(d.mean()) if n else math.nan)
    means = stats.subset_means(d)
    point, spread = float(d.mean()), float(d.std(ddof=1))
    low, high = map(float, stats.interval_of(means, rule.level))
    p = float(stats.p_two_sided(means))
    p_harm = float(stats.p_values(means, -rule.margin)[0])
    p_equivalent = float(max(p_harm, stats.p_values(means, rule.margin)[1]))
    exact = float(np.ptp(d)) <= SAME
    word, why = rule.verdict(point, p, p_equivalent, exact)
    needed = 0
    if word == INCONCLUSIVE and not (exact and p > rule.level):
        needed = stats.pairs_needed(spread, rule.margin, rule.level,
                                    rule.power)
        if needed <= n:
            needed = 0  # chance, or an effect near the margin itself
    boot = stats.bootstrap_interval(d, rule.level)
    return Finding(
        n, word, why, point, low, high, rule.level, p, p_equivalent, p_harm,
        stats.hodges_lehmann(d), boot, _agree(word, point, boot, low, high),
        spread, stats.lag_correlation(d), exact, needed)


def _agree(word: str, point: float, boot: tuple[float, float], low: float,
           high: float) -> bool:
    """Does the bootstrap interval lead to the same verdict?  It need not have
    the same ends."""
    if word in (IMPROVED, REGRESSED):
        return boot[0] * point > 0 and boot[1] * point > 0
    return boot[0] <= high and low <= boot[1]
