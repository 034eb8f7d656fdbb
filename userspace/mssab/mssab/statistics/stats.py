# SPDX-License-Identifier: GPL-2.0-only
"""Statistics of paired differences: intervals, tests, planning, looks, and what they
show about one metric (Finding).

Pure: the same numbers in give the same numbers out.  A difference belongs to
one pair of adjacent blocks: treatment minus control, mostly of logarithms,
positive where the treatment is better.  The tests rest on randomisation: a
coin decided which arm went first, so without an effect each difference was as
likely to have the other sign.  They assume nothing about the noise, neither
its distribution nor that pairs are independent.

scipy.stats is avoided: in an emulated guest it takes longer to import than an
experiment to run.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from ..verdict import IMPROVED, INCONCLUSIVE, MIN_PAIRS, REGRESSED, SAME, Rule

#: Up to this many pairs all subsets are used, above it a sample of them.
EXACT_PAIRS = 16
DRAWN = 20_000
BOOTSTRAPS = 9999
#: A split of connections less likely than this is not the requested one
#: (Fabijan et al., KDD 2019, use the same threshold).
RATIO_P = 0.0005


# --- The sign-flip test, and its interval -----------------------------------

@functools.lru_cache(maxsize=8)
def _subsets(pairs: int) -> Any:
    """Weights of the non-empty subsets: each row yields a mean."""
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
    1969).  Flipping the signs of a subset makes the sum larger exactly where
    the subset's mean is negative.  So the sign-flip test rejects an effect
    outside all but k of these means, and they give its interval directly."""
    d = np.asarray(differences, float)
    return d @ _subsets(d.shape[-1]).T


def interval_of(means: Any, level: float) -> tuple[Any, Any]:
    """The effects that the two-sided test at @level does not reject; infinite
    where too few pairs can reject anything."""
    total = means.shape[-1] + 1
    k = math.floor(level / 2 * total + 1e-9)
    if k < 1:
        none = np.full(means.shape[:-1], math.inf)
        return -none, none
    ends = np.partition(means, (k - 1, total - 1 - k), axis=-1)
    return ends[..., k - 1], ends[..., total - 1 - k]


def p_values(means: Any, effect: float) -> tuple[Any, Any]:
    """One-sided p-values of "at most @effect" and of "at least @effect"."""
    total = means.shape[-1] + 1
    return ((1 + (means <= effect).sum(axis=-1)) / total,
            (1 + (means >= effect).sum(axis=-1)) / total)


def p_two_sided(means: Any, effect: float = 0.0) -> Any:
    """p-value of "exactly @effect"; the interval at level p ends there."""
    above, below = p_values(means, effect)
    return np.minimum(1.0, 2 * np.minimum(above, below))


# --- Cross-checks ------------------------------------------------------------

def hodges_lehmann(differences: Any) -> float:
    """Median of the means of all twos: robust against one odd pair."""
    d = np.asarray(differences, float)
    i, j = np.triu_indices(len(d))
    return float(np.median((d[i] + d[j]) / 2))


def bootstrap_interval(differences: Any, level: float) \
        -> tuple[float, float]:
    """BCa bootstrap over pairs (Efron 1987), as a check on the sign-flip
    interval.  With a dozen pairs it is slightly too narrow."""
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
    """Correlation of each value with the next; 0 if it cannot be computed."""
    x = np.asarray(values, float)
    x = x - x.mean() if len(x) else x
    square = float((x**2).sum())
    if len(x) < 3 or square <= (SAME * len(x))**2:
        return 0.0
    return float((x[1:] * x[:-1]).sum() / square)


# --- Planning ---------------------------------------------------------------

def half_width(spread: float, pairs: int, level: float) -> float:
    """Expected half width of the interval, by Student's t."""
    if pairs < 2:
        return math.inf
    return float(special.stdtrit(pairs - 1, 1 - level / 2)) * spread \
        / math.sqrt(pairs)


def pairs_needed(spread: float, margin: float, level: float,
                 power: float) -> int:
    """Pairs that distinguish an effect of @margin from none, and none from
    @margin, each with probability @power."""
    if spread <= SAME:
        return MIN_PAIRS
    for n in range(MIN_PAIRS, 1_000_000):
        # Student's t at both ends instead of the noncentral t: close, and
        # slightly too many pairs.
        other = special.stdtrit(n - 1, np.array(
            [1 - level / 2, power, 1 - level, 1 - (1 - power) / 2]))
        wanted = float(max(other[0] + other[1], other[2] + other[3]))
        if n >= (wanted * spread / margin)**2:
            return n
        if n > 1000:  # t is close to normal here: no need to count up
            return math.ceil((wanted * spread / margin)**2)
    raise AssertionError("not reached")


def look_levels(looks: Sequence[int], level: float, sides: int = 2,
                early: bool = False) -> list[float]:
    """Nominal level of the test at each look, so that all looks together
    reject a true "no effect" with probability @level (Lan and DeMets 1983).
    The spending function is of O'Brien-Fleming type, which leaves most of the
    level to the last look; with @early of Pocock type, which spends it
    evenly."""
    if len(looks) == 1:
        return [level]
    time = np.asarray(looks, float) / looks[-1]
    spent = level * np.log1p((math.e - 1) * time) if early else \
        2 - 2 * special.ndtr(special.ndtri(1 - level / 2) / np.sqrt(time))
    nominal: list[float] = []
    state = None
    for k, t in enumerate(time):
        step = math.sqrt(t - time[k - 1]) if k else math.sqrt(t)
        spend = spent[k] - (spent[k - 1] if k else 0)
        bound, state = _boundary(spend, step, t, sides, state)
        nominal.append(float(sides * special.ndtr(-bound / math.sqrt(t))))
    return nominal


def _boundary(spend: float, step: float, time: float, sides: int,
              state: tuple[Any, Any] | None) -> tuple[float, tuple[Any, Any]]:
    """The boundary that a Brownian motion first crosses at this look with
    probability @spend.  @state: grid and density of its position at the look
    before, if it crossed none; returned for this look."""
    # Only here, because importing them takes long in an emulated guest.
    from scipy.integrate import trapezoid
    from scipy.optimize import brentq

    def outside(x: Any, bound: float) -> Any:
        up = special.ndtr((x - bound) / step)
        return up + special.ndtr((-bound - x) / step) if sides == 2 else up

    def excess(bound: float) -> float:
        if state is None:
            return float(outside(0.0, bound)) - spend
        grid, density = state
        return float(trapezoid(density * outside(grid, bound), grid)) - spend

    def arriving(x: Any) -> Any:
        return np.exp(-x**2 / (2 * step**2)) / (step * math.sqrt(2 * math.pi))

    bound = float(brentq(excess, 0, 10))
    inside = np.linspace(-bound if sides == 2 else -8 * math.sqrt(time),
                         bound, 1601)
    if state is None:
        return bound, (inside, arriving(inside))
    grid, density = state
    return bound, (inside, trapezoid(
        density * arriving(inside[:, None] - grid), grid))


# --- Several questions, several arms ----------------------------------------

def holm_levels(p: Sequence[float], level: float) -> list[float]:
    """The level of each of several tests (Holm 1979): level/m for the smallest
    p-value, level/(m - 1) for the next, and so on.  From the first test that
    fails on, all have the level that it failed at."""
    levels = [level] * len(p)
    failed_at = None
    for rank, i in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        levels[i] = failed_at or level / (len(p) - rank)
        if p[i] > levels[i]:
            failed_at = levels[i]
    return levels


def more_failures_p(failed: int, of: int, control_failed: int,
                    control_of: int) -> float:
    """p-value of so many failures or more among the @of blocks of one arm, if
    the arms fail alike: Fisher's exact test, one-sided."""
    total, both = failed + control_failed, of + control_of
    ways = sum(math.comb(of, k) * math.comb(control_of, total - k)
               for k in range(failed, min(of, total) + 1))
    return ways / math.comb(both, total)


def most_failures(failed: int, of: int, level: float) -> float:
    """Upper bound of the failure rate, one-sided at @level (Clopper and
    Pearson 1934)."""
    if failed >= of:
        return 1.0
    return float(special.betaincinv(failed + 1, of - failed, 1 - level))


def same_mean_p(one: Sequence[float], other: Sequence[float]) -> float:
    """Two-sided p-value of equal means: Student's t-test, whose common
    variance lets one of the two be a single number."""
    if not one or not other or len(one) + len(other) < 4:
        return 1.0
    x, y = (np.asarray(some, float) for some in (one, other))
    freedom = len(x) + len(y) - 2
    square = float(((x - x.mean())**2).sum() + ((y - y.mean())**2).sum()) \
        / freedom * (1 / len(x) + 1 / len(y))
    gap = abs(float(x.mean() - y.mean()))
    if square <= SAME**2:
        return 1.0 if gap <= SAME else 0.0
    return float(2 * special.stdtr(freedom, -gap / math.sqrt(square)))


def sample_ratio_p(treated: int, total: int, share: float) -> float:
    """p-value of the split under the requested @share: exact binomial,
    two-sided as twice the smaller tail."""
    if not total or share in (0.0, 1.0):
        return 1.0 if treated == round(total * share) else 0.0
    low = special.bdtr(treated, total, share)
    high = 1 - special.bdtr(treated - 1, total, share) if treated else 1.0
    return float(min(1.0, 2 * min(low, high)))


# --- What the pairs show about one metric -------------------------------------

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


def finding(differences: Sequence[float], rule: Rule) -> Finding:
    """The finding about one metric."""
    d = np.asarray(differences, float)
    n = len(d)
    if n and not np.isfinite(d).all():
        raise ValueError("a difference is not a number")
    if n < MIN_PAIRS:
        return Finding(n, why=f"{n} pairs; fewer than {MIN_PAIRS} support no "
                       "claim", needed=MIN_PAIRS,
                       point=float(d.mean()) if n else math.nan)
    means = subset_means(d)
    point, spread = float(d.mean()), float(d.std(ddof=1))
    low, high = map(float, interval_of(means, rule.level))
    p = float(p_two_sided(means))
    p_harm = float(p_values(means, -rule.margin)[0])
    p_equivalent = float(max(p_harm, p_values(means, rule.margin)[1]))
    exact = float(np.ptp(d)) <= SAME
    word, why = rule.verdict(point, p, p_equivalent, exact)
    needed = 0
    if word == INCONCLUSIVE and not (exact and p > rule.level):
        needed = pairs_needed(spread, rule.margin, rule.level,
                              rule.power)
        if needed <= n:
            needed = 0  # chance, or an effect near the margin itself
    boot = bootstrap_interval(d, rule.level)
    return Finding(
        n, word, why, point, low, high, rule.level, p, p_equivalent, p_harm,
        hodges_lehmann(d), boot, _agree(word, point, boot, low, high),
        spread, lag_correlation(d), exact, needed)


def _agree(word: str, point: float, boot: tuple[float, float], low: float,
           high: float) -> bool:
    """Does the bootstrap interval lead to the same verdict?  It need not have
    the same ends."""
    if word in (IMPROVED, REGRESSED):
        return boot[0] * point > 0 and boot[1] * point > 0
    return boot[0] <= high and low <= boot[1]
