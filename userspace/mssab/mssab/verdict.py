# SPDX-License-Identifier: GPL-2.0-only
"""The verdict on a metric, the safety of a guardrail, and the decision on the
treatment: their words, and the rules that pick one.

Pure.  stats.py computes what the rules look at.
"""
from __future__ import annotations

from dataclasses import dataclass

IMPROVED, REGRESSED = "improved", "regressed"
EQUIVALENT, INCONCLUSIVE = "equivalent", "inconclusive"
ALL = (IMPROVED, REGRESSED, EQUIVALENT, INCONCLUSIVE)
#: Of a guardrail.  Only the first lets a treatment be kept.
SAFE, HARMED, UNPROVEN = "safe", "harmed", "not shown"
#: On the treatment.  Only the first recommends it.
KEEP, REJECT, NO_GAIN, UNDECIDED = "keep", "reject", "no gain", "undecided"
#: Fewer pairs support no claim.
MIN_PAIRS = 8
#: Differences closer than this are equal: a sum of doubles, or a nanosecond in
#: a second, cannot resolve less.
SAME = 1e-9


@dataclass(frozen=True)
class Rule:
    """What a verdict requires.  Margin and estimate are on the scale of the
    differences, positive where the treatment is better."""

    margin: float                   # smallest effect of interest
    level: float = 0.05             # of the test for a difference, two-sided
    level_equivalent: float = 0.05  # of each of the two one-sided tests
    power: float = 0.8              # for the pairs needed

    def verdict(self, point: float, p: float, p_equivalent: float,
                exact: bool) -> tuple[str, str]:
        """The verdict, and why it is inconclusive.

        equivalent  both one-sided tests reject an effect as large as the
                    margin (@p_equivalent: the larger p-value of the two)
        improved    else, the interval lies above 0 (@p), and the estimate
                    @point is at least the margin; regressed: likewise, below

        @exact: all pairs have the same difference.
        """
        if p_equivalent <= self.level_equivalent:
            return EQUIVALENT, ""
        if p <= self.level and abs(point) >= self.margin - SAME:
            return (IMPROVED if point > 0 else REGRESSED), ""
        if p <= self.level:
            return INCONCLUSIVE, ("there is an effect, but it is not shown to be "
                                  "as large as the margin, nor to be smaller")
        if exact:
            return INCONCLUSIVE, ("the pairs repeat exactly, and are too few "
                                  "for this level")
        return INCONCLUSIVE, "neither an effect nor its absence is shown"


def safety(word: str, p_harm: float, level: float) -> str:
    """Of a guardrail: what its verdict @word, and the one-sided test of "worse
    by the margin or more" (@p_harm) at its level, show together."""
    if word == REGRESSED:
        return HARMED
    return SAFE if p_harm <= level else UNPROVEN


def decision(word: str, harmed: bool, unproven: bool) -> str:
    """On the treatment, from the verdict of the primary metrics; @harmed: harm
    is shown, @unproven: safety is not."""
    if harmed or word == REGRESSED:
        return REJECT
    if word == EQUIVALENT:
        return NO_GAIN
    return KEEP if word == IMPROVED and not unproven else UNDECIDED
