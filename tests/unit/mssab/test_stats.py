# SPDX-License-Identifier: GPL-2.0-only
"""The statistics keep what they promise, shown by simulation: how often they
see an effect where none is, how often they miss one, and how often the truth
lies in the interval; and what they say of samples that repeat exactly."""
import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab.statistics import stats  # noqa: E402
from mssab.verdict import Rule  # noqa: E402

TRIALS = 2000
MARGIN = math.log(1.03)


def independent(rng, trials, blocks, cv):
    return rng.normal(0, cv, (trials, blocks))


def correlated(rng, trials, blocks, cv):
    """AR(0.5), and a level that shifts once, by several times the noise."""
    steps = rng.normal(0, cv * math.sqrt(1 - 0.25), (trials, blocks))
    noise = np.empty_like(steps)
    noise[:, 0] = rng.normal(0, cv, trials)
    for i in range(1, blocks):
        noise[:, i] = 0.5 * noise[:, i - 1] + steps[:, i]
    at = rng.integers(0, blocks, (trials, 1))
    return noise + (np.arange(blocks) >= at) * rng.normal(
        0, 3 * cv, (trials, 1))


def skewed(rng, trials, blocks, cv):
    """One-sided: most blocks undisturbed, some far slower."""
    return -cv * (rng.exponential(1, (trials, blocks)) - 1)


NOISES = (independent, correlated, skewed)


def differences(noise, pairs, effect=0.0, cv=0.1, trials=TRIALS, seed=1):
    """Pairs of adjacent blocks, who goes first by coin."""
    rng = np.random.default_rng(seed)
    level = noise(rng, trials, 2 * pairs, cv)
    coin = rng.choice([-1, 1], (trials, pairs))
    return effect + coin * (level[:, ::2] - level[:, 1::2])


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("pairs", [8, 12, 20])
def test_false_positives(noise, pairs):
    trials = TRIALS if pairs <= 12 else TRIALS // 4
    means = stats.subset_means(differences(noise, pairs, trials=trials))
    rate = (stats.p_two_sided(means) <= 0.05).mean()
    assert 0.03 <= rate <= 0.07


def test_without_the_coin_correlated_noise_is_taken_for_an_effect():
    """The check above can fail: all of one arm first, then the other."""
    rng = np.random.default_rng(1)
    level = correlated(rng, TRIALS, 24, 0.1)
    means = stats.subset_means(level[:, :12] - level[:, 12:])
    assert (stats.p_two_sided(means) <= 0.05).mean() > 0.3


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("effect", [0, math.log(1.05), -0.2])
def test_the_truth_is_in_the_interval(noise, effect):
    means = stats.subset_means(differences(noise, 12, effect, seed=2))
    low, high = stats.interval_of(means, 0.05)
    assert 0.93 <= ((low <= effect) & (effect <= high)).mean() <= 0.97


@pytest.mark.parametrize("noise", [independent, correlated])
def test_an_effect_of_five_percent_is_found(noise):
    """At the number of pairs that the noise of an A/A run requires."""
    effect = math.log(1.05)
    cv = 0.03
    aa = differences(noise, 12, cv=cv, seed=3)
    spread = float(np.sqrt(aa.var(axis=1, ddof=1).mean()))
    pairs = stats.pairs_needed(spread, effect, 0.05, 0.8)
    assert 8 <= pairs <= 16
    means = stats.subset_means(differences(noise, pairs, effect, cv))
    assert (stats.p_two_sided(means) <= 0.05).mean() >= 0.8


def test_equivalence_is_claimed_wrongly_at_most_at_its_level():
    """With a true effect equal to the margin."""
    means = stats.subset_means(differences(correlated, 12, MARGIN, cv=0.02))
    claimed = np.maximum(stats.p_values(means, -MARGIN)[0],
                         stats.p_values(means, MARGIN)[1]) <= 0.05
    assert claimed.mean() <= 0.065
    none = stats.subset_means(differences(independent, 12, 0, cv=0.02))
    claimed = np.maximum(stats.p_values(none, -MARGIN)[0],
                         stats.p_values(none, MARGIN)[1]) <= 0.05
    assert claimed.mean() >= 0.8


def verdicts(effect, cv, pairs=12, trials=150):
    rule = Rule(MARGIN)
    found = [stats.finding(d, rule) for d in differences(
        correlated, pairs, effect, cv, trials, seed=4)]
    return {word: sum(f.verdict == word for f in found) / trials
            for word in ("improved", "regressed", "equivalent",
                         "inconclusive")}


def test_verdicts():
    assert verdicts(math.log(1.05), 0.01)["improved"] >= 0.8
    assert verdicts(-math.log(1.05), 0.01)["regressed"] >= 0.8
    assert verdicts(0, 0.01)["equivalent"] >= 0.8
    quiet = verdicts(0, 0.1)
    assert quiet["inconclusive"] >= 0.9
    assert quiet["improved"] + quiet["regressed"] <= 0.07


# --- Sequential looks -------------------------------------------------------

LOOKS = (12, 20, 32)


def test_looks_spend_as_published():
    """O'Brien-Fleming type spending: 0.0014, 0.013, 0.05 in all."""
    first, second, third = stats.look_levels(LOOKS, 0.05)
    assert first == pytest.approx(0.00137, abs=2e-5)
    assert 0.0115 < second < 0.0132 and 0.043 < third < 0.05
    # Five equal looks, one side at 0.025 (Lan and DeMets 1983, table 1).
    wanted = stats.special.ndtr([-4.877, -3.357, -2.680, -2.290, -2.031])
    assert stats.look_levels((2, 4, 6, 8, 10), 0.025, 1) == pytest.approx(
        list(wanted), rel=0.01)
    assert stats.look_levels((12,), 0.05) == [0.05]


@pytest.mark.parametrize("noise", [independent, correlated])
def test_all_looks_together_keep_the_level(noise):
    levels = stats.look_levels(LOOKS, 0.05)
    d = differences(noise, 32, trials=700, seed=5)
    crossed = np.zeros(len(d), bool)
    for look, level in zip(LOOKS, levels):
        for part in range(0, len(d), 100):  # bounds the memory
            rows = slice(part, part + 100)
            means = stats.subset_means(d[rows, :look])
            crossed[rows] |= stats.p_two_sided(means) <= level
    assert 0.03 <= crossed.mean() <= 0.07


def test_each_look_can_fire():
    for look, level in zip(LOOKS, stats.look_levels(LOOKS, 0.05)):
        rule = Rule(MARGIN, level)
        assert stats.finding([0.2] * look, rule).verdict == "improved"


# --- The test itself --------------------------------------------------------

def test_the_interval_is_that_of_the_sign_flips():
    """By enumeration of all flips, at a few effects."""
    d = np.random.default_rng(6).normal(0.03, 0.05, 9)
    means = stats.subset_means(d)
    low, high = stats.interval_of(means, 0.05)
    for effect in (low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6, 0.0):
        rest = d - effect
        sums = [sum(s * x for s, x in zip(signs, rest))
                for signs in itertools.product((-1, 1), repeat=9)]
        more = sum(x >= rest.sum() - 1e-12 for x in sums) / len(sums)
        less = sum(x <= rest.sum() + 1e-12 for x in sums) / len(sums)
        p = min(1, 2 * min(more, less))
        assert p == pytest.approx(float(stats.p_two_sided(means, effect)))
        assert (p > 0.05) == (low <= effect <= high)


def test_order_and_sign_change_nothing():
    d = np.random.default_rng(7).normal(0.01, 0.05, 24)
    rule = Rule(MARGIN)
    one = stats.finding(d, rule)
    assert stats.finding(d, rule) == one
    turned = stats.finding(-d, rule)
    assert turned.point == pytest.approx(-one.point)
    if len(d) <= stats.EXACT_PAIRS:
        assert turned.low == pytest.approx(-one.high)
    shuffled = stats.finding(np.sort(d[:12]), rule)
    assert shuffled.low == pytest.approx(stats.finding(d[:12], rule).low)


def test_the_bootstrap_agrees_where_there_is_enough():
    d = np.random.default_rng(8).normal(0.05, 0.05, 60)
    found = stats.finding(d, Rule(MARGIN))
    assert found.agrees
    assert found.bootstrap == pytest.approx((found.low, found.high), abs=0.005)


def test_one_odd_pair_is_seen_beside_it():
    found = stats.finding([0.0] * 11 + [5.0], Rule(MARGIN))
    assert found.typical == 0 and found.point > 0.4
    assert found.verdict == "inconclusive"


# --- Samples that repeat exactly --------------------------------------------

@pytest.mark.parametrize("difference, word", [
    (0, "equivalent"), (0.2, "improved"), (-0.2, "regressed"),
    (0.01, "equivalent"), (-0.01, "equivalent"), (MARGIN, "improved"),
])
def test_exact(difference, word):
    for pairs in (8, 12, 20):
        found = stats.finding([difference] * pairs, Rule(MARGIN))
        assert found.exact and found.verdict == word
        assert found.low == pytest.approx(difference)
        assert found.high == pytest.approx(difference)
        assert found.agrees


@pytest.mark.parametrize("pairs", range(8))
def test_too_few_pairs_claim_nothing(pairs):
    found = stats.finding([0.5] * pairs, Rule(MARGIN))
    assert found.verdict == "inconclusive" and "support no claim" in found.why


def test_what_is_no_number_is_refused():
    for bad in (math.nan, math.inf):
        with pytest.raises(ValueError):
            stats.finding([0.1] * 11 + [bad], Rule(MARGIN))


def test_inconclusive_reports_the_pairs_needed():
    d = differences(independent, 12, 0, 0.1, 1)[0]
    found = stats.finding(d, Rule(MARGIN))
    assert found.verdict == "inconclusive"
    assert found.needed == stats.pairs_needed(found.spread, MARGIN, 0.05, 0.8)
    pairs = stats.pairs_needed(0.05 * math.sqrt(2), MARGIN, 0.05, 0.8)
    seen = [stats.p_two_sided(stats.subset_means(d)) <= 0.05
            for d in differences(independent, pairs, MARGIN, 0.05, 300)]
    assert 0.78 <= np.mean(seen) <= 0.97


# --- Holm, sample ratio -----------------------------------------------------

def test_holm():
    assert stats.holm_levels([0.001, 0.04, 0.02], 0.05) == pytest.approx(
        [0.05 / 3, 0.05, 0.05 / 2])
    assert stats.holm_levels([0.02, 0.03], 0.05) == pytest.approx(
        [0.025, 0.05])
    held = stats.holm_levels([0.03, 0.04], 0.05)  # the first fails: all do
    assert held == pytest.approx([0.025, 0.025])
    assert stats.holm_levels([0.04], 0.05) == [0.05]


def test_holm_keeps_the_level_over_metrics():
    rng = np.random.default_rng(9)
    wrong = 0
    for _ in range(TRIALS):
        p = list(rng.uniform(size=4))
        wrong += any(x <= y for x, y in zip(p, stats.holm_levels(p, 0.05)))
    assert 0.03 <= wrong / TRIALS <= 0.07


def test_sample_ratio():
    assert stats.sample_ratio_p(500, 1000, 0.5) == 1
    assert stats.sample_ratio_p(440, 1000, 0.5) < stats.RATIO_P
    assert stats.sample_ratio_p(475, 1000, 0.5) > 0.1
    assert stats.sample_ratio_p(0, 100, 0.0) == 1
    assert stats.sample_ratio_p(1, 100, 0.0) == 0
    drawn = np.random.default_rng(10).binomial(200, 0.1, TRIALS)
    p = [stats.sample_ratio_p(int(k), 200, 0.1) for k in drawn]
    assert np.mean(np.array(p) <= 0.05) <= 0.06


def test_a_certain_gain_below_the_margin_is_no_improvement():
    noise = np.tile([-0.004, 0.004], 10)
    near = stats.finding(MARGIN * 0.97 + noise, Rule(MARGIN))
    assert near.low > 0 and near.verdict == "inconclusive"
    assert "not shown to be as large" in near.why
    small = stats.finding(MARGIN / 3 + noise, Rule(MARGIN))
    assert small.low > 0 and small.verdict == "equivalent"


# --- Guardrails, failures, rounds -------------------------------------------

def test_levels_of_guardrails_hold_for_any_stopping_rule():
    """Spent evenly (Pocock type), and all looks together keep the level: also
    where somebody stops as soon as the guardrail passes."""
    levels = stats.look_levels(LOOKS, 0.05, 1, early=True)
    assert all(0.02 < level < 0.04 for level in levels)
    # Five equal looks, one side at 0.025 (Lan and DeMets 1983, table 1).
    wanted = stats.special.ndtr([-2.438, -2.427, -2.410, -2.397, -2.386])
    assert stats.look_levels((2, 4, 6, 8, 10), 0.025, 1, early=True) == \
        pytest.approx(list(wanted), rel=0.01)
    steps = np.random.default_rng(1).normal(0, 1, (20000, LOOKS[-1]))
    sums = steps.cumsum(axis=1)

    def passed(levels):
        return np.any([sums[:, n - 1] / math.sqrt(n)
                       <= stats.special.ndtri(level)
                       for n, level in zip(LOOKS, levels)], axis=0).mean()
    assert passed(levels) <= 0.055
    # The whole level at each look does not hold.
    assert passed([0.05] * 3) > 0.08


def test_more_failures():
    """Against Fisher's exact test as published (R: fisher.test)."""
    assert stats.more_failures_p(3, 12, 0, 12) == pytest.approx(0.1087, abs=1e-4)
    assert stats.more_failures_p(5, 12, 0, 12) == pytest.approx(0.0186, abs=1e-4)
    assert stats.more_failures_p(0, 12, 3, 12) == 1
    assert stats.more_failures_p(0, 0, 0, 0) == 1
    assert stats.most_failures(0, 12, 0.05) == pytest.approx(
        1 - 0.05 ** (1 / 12))
    assert stats.most_failures(3, 3, 0.05) == 1


def test_same_mean():
    """Against Student's t: 2.776 at 4 degrees of freedom is 5 %."""
    one, other = [-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]
    shift = 2.7764 * math.sqrt(2 / 3)
    assert stats.same_mean_p(one, [x + shift for x in other]) == \
        pytest.approx(0.05, abs=1e-4)
    assert stats.same_mean_p(one, []) == 1
    assert stats.same_mean_p([1.0] * 3, [1.0] * 3) == 1
    assert stats.same_mean_p([1.0] * 3, [2.0] * 3) == 0


def test_the_simulation_decides_as_mssab_does():
    done = subprocess.run([sys.executable, TOP / "tests/bench/verdict/run", "--check"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
