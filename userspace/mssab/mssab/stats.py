# SPDX-License-Identifier: GPL-2.0
"""What paired differences say: intervals, tests, and one of four verdicts.

Pure: numbers in, numbers out, the same ones each time.  A difference is that of
one pair of adjacent blocks, treated less stock, mostly of logarithms, and
positive where treated is better.  All rests on one fact: who went first was
drawn by coin, so that without an effect each difference was as likely to have
the other sign.  Nothing is assumed of the noise: not its shape, and not that
one pair knows nothing of the next.

Only scipy.special is used of scipy: in an emulated guest scipy.stats takes
longer to start than an experiment.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from scipy import special

from .verdict import EQUIVALENT, IMPROVED, INCONCLUSIVE, MIN_PAIRS, REGRESSED

#: Up to so many pairs all subsets are looked at, beyond it a draw of them.
EXACT_PAIRS = 16
DRAWN = 20_000
BOOTSTRAPS = 9999
#: Differences that spread less repeat exactly: below what a sum of doubles and
#: a nanosecond in a second can tell.
SAME = 1e-9
#: A split of connections less likely than this is not the one that was asked
#: for (Fabijan et al., KDD 2019, use the same).
RATIO_P = 0.0005


# --- The sign-flip test, and its interval -----------------------------------

@functools.lru_cache(maxsize=8)
def _subsets(pairs: int) -> Any:
    """Weights of the non-empty subsets: each row gives a mean."""
    if pairs <= EXACT_PAIRS:
        number = np.arange(1, 2**pairs)[:, None]
        chosen = (number >> np.arange(pairs) & 1).astype(float)
    else:
        drawn = min(DRAWN, 4_000_000 // pairs)  # bounds the memory
        chosen = np.random.default_rng(pairs).integers(
            0, 2, (drawn - 1, pairs)).astype(float)
        chosen = chosen[chosen.any(axis=1)]
    return chosen / chosen.sum(axis=1, keepdims=True)


def subset_means(differences: Any) -> Any:
    """Means of the subsets of the last axis (Hartigan's typical values, JASA
    1969).  Flipping the signs of a subset makes the sum larger
    just where its mean is negative: so the sign-flip test rejects an effect
    outside all but k of these, and its interval is read off at both ends."""
    d = np.asarray(differences, float)
    return d @ _subsets(d.shape[-1]).T


def interval_of(means: Any, level: float) -> tuple[Any, Any]:
    """Where the two-sided test at @level does not reject; infinite where so
    few pairs cannot reject at all."""
    total = means.shape[-1] + 1
    k = math.floor(level / 2 * total + 1e-9)
    if k < 1:
        none = np.full(means.shape[:-1], math.inf)
        return -none, none
    ends = np.partition(means, (k - 1, total - 1 - k), axis=-1)
    return ends[..., k - 1], ends[..., total - 1 - k]


def p_values(means: Any, effect: float) -> tuple[Any, Any]:
    """One-sided p of "no more than @effect" and of "no less than it"."""
    total = means.shape[-1] + 1
    return ((1 + (means <= effect).sum(axis=-1)) / total,
            (1 + (means >= effect).sum(axis=-1)) / total)


def p_two_sided(means: Any, effect: float = 0.0) -> Any:
    """p of "exactly @effect"; the interval at level p ends there."""
    above, below = p_values(means, effect)
    return np.minimum(1.0, 2 * np.minimum(above, below))


# --- Beside it --------------------------------------------------------------

def hodges_lehmann(differences: Any) -> float:
    """Median of the means of all twos: what one odd pair cannot move."""
    d = np.asarray(differences, float)
    i, j = np.triu_indices(len(d))
    return float(np.median((d[i] + d[j]) / 2))


def bootstrap_interval(differences: Any, level: float) \
        -> tuple[float, float]:
    """BCa bootstrap over pairs (Efron 1987): another way to the interval, as a
    check on the first.  With a dozen pairs it is a little too narrow."""
    d = np.asarray(differences, float)
    n = len(d)
    if n < 2 or np.ptp(d) <= SAME:
        return float(d.mean()), float(d.mean())
    draw = np.random.default_rng(n).integers(0, n, (BOOTSTRAPS, n))
    means = np.sort(d[draw].mean(axis=1))
    below = (means < d.mean()).mean() + (means == d.mean()).mean() / 2
    bias = special.ndtri(np.clip(below, 1e-4, 1 - 1e-4))
    left_out = (d.sum() - d) / (n - 1)
    skew = left_out.mean() - left_out
    accel = (skew**3).sum() / (6 * (skew**2).sum()**1.5)
    z = special.ndtri(np.array([level / 2, 1 - level / 2])) + bias
    low, high = np.quantile(means, special.ndtr(bias + z / (1 - accel * z)))
    return float(low), float(high)


def lag_correlation(values: Any) -> float:
    """Of each value with the next; 0 if it cannot be told."""
    x = np.asarray(values, float)
    x = x - x.mean() if len(x) else x
    square = float((x**2).sum())
    if len(x) < 3 or square <= (SAME * len(x))**2:
        return 0.0
    return float((x[1:] * x[:-1]).sum() / square)


# --- Planning ---------------------------------------------------------------

def half_width(spread: float, pairs: int, level: float) -> float:
    """What half of the interval will be, by Student's t."""
    if pairs < 2:
        return math.inf
    return float(special.stdtrit(pairs - 1, 1 - level / 2)) * spread \
        / math.sqrt(pairs)


def pairs_needed(spread: float, margin: float, level: float,
                 power: float) -> int:
    """Pairs that tell an effect of @margin from none, and none from @margin,
    each with probability @power."""
    if spread <= SAME:
        return MIN_PAIRS
    for n in range(MIN_PAIRS, 1_000_000):
        # Student's t at both ends, instead of the noncentral one: close, and
        # on the safe side.
        other = special.stdtrit(n - 1, np.array(
            [1 - level / 2, power, 1 - level, 1 - (1 - power) / 2]))
        wanted = max(other[0] + other[1], other[2] + other[3])
        if n >= (wanted * spread / margin)**2:
            return n
        if n > 1000:  # t is normal here: no need to count up
            return math.ceil((wanted * spread / margin)**2)
    raise AssertionError("not reached")


def look_levels(looks: Sequence[int], level: float,
                sides: int = 2) -> list[float]:
    """Nominal level of the test at each look, so that all looks together
    reject a true "no effect" with probability @level (Lan and DeMets 1983,
    the spending function of O'Brien and Fleming's kind)."""
    if len(looks) == 1:
        return [level]
    from scipy.optimize import brentq

    time = np.asarray(looks, float) / looks[-1]
    spent = 2 - 2 * special.ndtr(special.ndtri(1 - level / 2)
                                 / np.sqrt(time))
    nominal: list[float] = []
    grid = density = None
    for k, t in enumerate(time):
        step = math.sqrt(t - time[k - 1]) if k else math.sqrt(t)
        spend = spent[k] - (spent[k - 1] if k else 0)

        def leaving(bound: float) -> float:
            """Probability to cross at this look and not before."""
            def outside(x: Any) -> Any:
                up = special.ndtr((x - bound) / step)
                return up + special.ndtr((-bound - x) / step) \
                    if sides == 2 else up
            if grid is None:
                return float(outside(0.0))
            return float(np.trapz(density * outside(grid), grid))

        bound = brentq(lambda b: leaving(b) - spend, 0, 10)
        nominal.append(float(sides * special.ndtr(-bound / math.sqrt(t))))
        inside = np.linspace(-bound if sides == 2 else -8 * math.sqrt(t),
                             bound, 1601)

        def arriving(x: Any) -> Any:
            return np.exp(-x**2 / (2 * step**2)) \
                / (step * math.sqrt(2 * math.pi))
        density = arriving(inside) if grid is None else np.trapz(
            density * arriving(inside[:, None] - grid), grid)
        grid = inside
    return nominal


# --- Several questions, several arms ----------------------------------------

def holm_levels(p: Sequence[float], level: float) -> list[float]:
    """The level each of several tests is held to (Holm 1979): the smallest p
    to level/m, the next to level/(m - 1) ..., and from the first that fails on
    all to the level that it failed at."""
    levels = [level] * len(p)
    failed_at = None
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        levels[i] = failed_at or level / (len(p) - rank)
        if p[i] > levels[i]:
            failed_at = levels[i]
    return levels


def sample_ratio_p(treated: int, total: int, share: float) -> float:
    """How likely a split at least as far from @share is: exact, two-sided, by
    twice the smaller tail."""
    if not total or share in (0.0, 1.0):
        return 1.0 if treated == round(total * share) else 0.0
    low = special.bdtr(treated, total, share)
    high = 1 - special.bdtr(treated - 1, total, share) if treated else 1.0
    return float(min(1.0, 2 * min(low, high)))


# --- The verdict ------------------------------------------------------------

@dataclass(frozen=True)
class Finding:
    """What the pairs say of one metric, on the scale of the differences."""

    pairs: int
    verdict: str = INCONCLUSIVE
    why: str = ""
    point: float = math.nan
    low: float = -math.inf
    high: float = math.inf
    level: float = 0.05         # the interval's is 1 - level
    p: float = 1.0
    p_equivalent: float = 1.0   # of two one-sided tests, the larger
    typical: float = math.nan   # Hodges-Lehmann
    bootstrap: tuple[float, float] = (-math.inf, math.inf)
    agrees: bool = True         # does the bootstrap say the same?
    spread: float = math.nan    # standard deviation of the differences
    lag: float = 0.0
    exact: bool = False         # all differences are the same
    needed: int = 0             # pairs, where inconclusive; 0: cannot be told

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Rule:
    """What it takes for a verdict."""

    margin: float               # smallest difference of interest
    level: float = 0.05         # of the test for a difference, two-sided
    level_equivalent: float = 0.05  # of each of the two one-sided tests
    power: float = 0.8
    plan: tuple[int, ...] = field(default=())


def finding(differences: Any, rule: Rule) -> Finding:
    """The verdict on one metric.

    improved    the interval lies above 0, and the estimate is at least the
                margin; regressed likewise, below
    equivalent  both one-sided tests reject an effect as large as the margin
    else inconclusive.
    """
    d = np.asarray(differences, float)
    n = len(d)
    if n and not np.isfinite(d).all():
        raise ValueError("a difference is not a number")
    if n < MIN_PAIRS:
        return Finding(n, why=f"{n} pairs; fewer than {MIN_PAIRS} carry no "
                       "claim", needed=MIN_PAIRS,
                       point=float(d.mean()) if n else math.nan)
    means = subset_means(d)
    point, spread = float(d.mean()), float(d.std(ddof=1))
    low, high = map(float, interval_of(means, rule.level))
    p = float(p_two_sided(means))
    p_equivalent = float(max(p_values(means, -rule.margin)[0],
                             p_values(means, rule.margin)[1]))
    exact = float(np.ptp(d)) <= SAME
    word, why, needed = INCONCLUSIVE, "", 0
    if p_equivalent <= rule.level_equivalent:
        word = EQUIVALENT
    elif p <= rule.level and abs(point) >= rule.margin - SAME:
        word = IMPROVED if point > 0 else REGRESSED
    elif exact and p > rule.level:
        why = "the pairs repeat exactly, and are too few for this level"
    else:
        needed = pairs_needed(spread, rule.margin, rule.level, rule.power)
        why = ("an effect, but not shown to be as large as the margin, nor "
               "smaller" if p <= rule.level else
               "neither an effect nor its absence is shown")
        if needed <= n:
            needed = 0  # bad luck, or an effect near the margin itself
    boot = bootstrap_interval(d, rule.level)
    return Finding(
        n, word, why, point, low, high, rule.level, p, p_equivalent,
        hodges_lehmann(d), boot, _agree(word, point, boot, low, high), spread,
        lag_correlation(d), exact, needed)


def _agree(word: str, point: float, boot: tuple[float, float], low: float,
           high: float) -> bool:
    """Would the bootstrap's interval have led to the same?  It need not end at
    the same places."""
    if word in (IMPROVED, REGRESSED):
        return boot[0] * point > 0 and boot[1] * point > 0
    return boot[0] <= high and low <= boot[1]
