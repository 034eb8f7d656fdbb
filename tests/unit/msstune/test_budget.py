# SPDX-License-Identifier: GPL-2.0-only
"""The error budget of msstune auto: over all settings and rounds of a session, the
probability of keeping one that does not help is held.  And auto passes its levels
to mssab, with as many pairs as they need."""
import itertools
import random
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab.statistics import stats  # noqa: E402
from msstune.transaction import error_budget, verify  # noqa: E402
from msstune.transaction.error_budget import (ALPHA, Budget, pairs_for,  # noqa: E402
                                              round_level)
from msstune.transaction.switchback import Protocol  # noqa: E402

SESSIONS = 4000
HELPS = 1 / 3       # of the settings
POWER = 0.9         # of finding one that helps


def session(rng, level_of):
    """Whether a simulated auto keeps a setting that does not help.  @level_of:
    makes the levels of a round: an object with level and spend()."""
    for number in itertools.count(1):
        settings = [rng.random() < HELPS for _ in range(rng.randint(1, 5))]
        budget = level_of(number, len(settings) + (len(settings) > 1))
        kept = []
        for helps in settings:
            # A p-value of nothing is uniform.
            found = rng.random() < (POWER if helps else budget.level)
            budget.spend(found)
            kept.append(found)
            if found and not helps:
                return True
        if not any(kept) or number == 10:
            return False
    return False


class Alone:
    """Each experiment at the full level."""

    level = ALPHA

    def __init__(self, *_):
        pass

    def spend(self, kept):
        pass


def rate(level_of, seed=1):
    rng = random.Random(seed)
    return sum(session(rng, level_of) for _ in range(SESSIONS)) / SESSIONS


def test_the_error_over_a_session_is_held():
    """The simulation has a standard error of 0.35 %."""
    assert rate(Budget.of_round) < ALPHA + 3 * 0.0035
    assert rate(Alone) > 0.15


def test_it_is_not_held_by_forgetting_one_side(monkeypatch):
    """The simulation detects a budget that does not shrink with the rounds, or
    is not shared."""
    monkeypatch.setattr(error_budget, "round_level", lambda level, number: level)
    assert rate(Budget.of_round) > ALPHA + 3 * 0.0035


def test_rounds_share_a_level():
    levels = [round_level(0.05, number) for number in range(1, 5000)]
    assert levels[0] == 0.025 and levels == sorted(levels, reverse=True)
    assert 0.0499 < sum(levels) <= 0.05
    with pytest.raises(ValueError):
        round_level(0.05, 0)


def test_a_finding_passes_its_level_on():
    budget = Budget.of_round(1, 5)
    assert budget.level == pytest.approx(0.005)
    budget.spend(kept=True)
    assert budget.level == pytest.approx(0.01)
    budget.spend(kept=True)
    assert budget.level == pytest.approx(0.015)
    budget.spend(kept=False)
    assert budget.level == pytest.approx(0.005)


@pytest.mark.parametrize("level", [0.05, 0.025, 0.0083, 0.001, 0.0001])
def test_so_many_pairs_can_reject(level):
    """The smallest p-value of the test that mssab uses."""
    pairs = pairs_for(level)
    for count, enough in ((pairs, True), (pairs - 1, False)):
        means = stats.subset_means([1.0] * count)
        assert (stats.p_two_sided(means) <= level) == enough


class Session(verify.Verifier):
    """Remembers the protocols; keeps what the test names."""

    def staged(self, changes):
        self.seen = getattr(self, "seen", []) + [self.protocol]
        kept = len(changes) == 1 and changes[0] in self.kept
        return verify.Outcome([], Path(), {}, 0.0, number=int(kept))


def protocols(number, changes, kept=(), pairs=8):
    told = []
    session_ = Session(None, Protocol(pairs=pairs), Path("x"), told.append)
    session_.kept = kept
    session_.each(changes, number)
    return getattr(session_, "seen", []), told


def test_auto_passes_levels_and_pairs():
    """Three settings and all together share the level of the round."""
    seen, _ = protocols(1, ["a", "b", "c"])
    assert [p.alpha for p in seen] == pytest.approx([0.025 / 4] * 4)
    assert [p.pairs for p in seen] == [9] * 4     # 8 cannot reject
    seen, _ = protocols(2, ["a", "b", "c"], kept=["a", "b"])
    share = 0.05 / 6 / 4
    assert [p.alpha for p in seen] == pytest.approx([share, 2 * share, 3 * share])
    assert [p.pairs for p in protocols(1, ["a"], pairs=30)[0]] == [30]


def test_verify_has_a_level_for_each():
    assert {p.alpha for p in protocols(0, ["a", "b", "c"])[0]} == {ALPHA}


def test_without_budget_nothing_is_tried():
    seen, told = protocols(30, ["a"])
    assert not seen and "no error budget is left" in told[0]
