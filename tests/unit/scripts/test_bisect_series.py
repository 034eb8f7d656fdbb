# SPDX-License-Identifier: GPL-2.0-only
"""The search of `bisect-step --series`, with numbers in place of kernels."""
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import bisect_series as series  # noqa: E402


class Costs:
    """A cost for each place; @broken places cannot be recorded; a difference
    of @noise pairs is not confirmed."""

    def __init__(self, costs, broken=(), noise=()):
        self.costs, self.broken, self.noise = costs, broken, noise
        self.asked = []

    def usable(self, place):
        self.asked.append(place)
        return place not in self.broken

    def worse(self, before, after):
        return ["cost"] if self.costs[after] > self.costs[before] else []

    def confirmed(self, before, after):
        return [] if (before, after) in self.noise else \
            self.worse(before, after)

    def found(self, points):
        search = series.Search(self.usable, self.worse, self.confirmed)
        return [(f.before, f.after) for f in search.run(len(self.costs) - 1,
                                                        points)]


@pytest.mark.parametrize("last, number, places", [
    (8, 3, [0, 4, 8]), (8, 9, [0, 1, 2, 3, 4, 5, 6, 7, 8]), (1, 9, [0, 1]),
    (3, 9, [0, 1, 2, 3]), (100, 2, [0, 100]), (5, 1, [0, 5])])
def test_places_are_spaced_evenly(last, number, places):
    assert series.spaced(last, number) == places


@pytest.mark.parametrize("points", range(2, 20))
def test_every_rise_is_found_if_nothing_cancels_it(points):
    rng = random.Random(points)
    for _ in range(50):
        steps = [rng.choice([0, 0, 0, 1]) for _ in range(rng.randrange(1, 40))]
        costs = [sum(steps[:n]) for n in range(len(steps) + 1)]
        assert Costs(costs).found(points) == [
            (n, n + 1) for n, step in enumerate(steps) if step]


def test_every_rise_is_found_if_all_are_recorded():
    rng = random.Random(1)
    for _ in range(200):
        costs = [rng.randrange(4) for _ in range(rng.randrange(2, 30))]
        assert Costs(costs).found(len(costs)) == [
            (n, n + 1) for n in range(len(costs) - 1)
            if costs[n + 1] > costs[n]]


def test_a_loss_that_takes_back_a_gain():
    costs = [5] * 10 + [3] * 20 + [5] * 11
    assert Costs(costs).found(3) == [(29, 30)]
    assert not Costs(costs).found(2)    # both ends cost the same


def test_few_commits_are_recorded():
    it = Costs([0] * 500 + [1] * 501)
    assert it.found(5) == [(499, 500)]
    assert len(it.asked) == len(set(it.asked)) <= 5 + 9


def test_what_cannot_be_recorded_is_left_out():
    costs = [0] * 6 + [1] * 5
    assert Costs(costs, broken=[5, 6, 7]).found(2) == [(4, 8)]
    assert Costs(costs, broken=[0, 10]).found(3) == []  # one is left
    assert Costs(costs, broken=range(1, 10)).found(5) == [(0, 10)]


def test_what_other_seeds_do_not_confirm_is_no_finding():
    assert not Costs([0, 0, 1], noise=[(1, 2)]).found(3)


def test_halves_within_their_bounds_leave_the_whole():
    it = Costs([0, 1, 2])
    it.worse = it.confirmed = lambda before, after: \
        ["cost"] if after - before == 2 else []
    assert it.found(2) == [(0, 2)]


def test_bounds_of_several_recordings_hold_for_single_ones():
    figures = [{"name": "a", "change": 0.003, "bound": 0.002},
               {"name": "b", "change": -0.003, "bound": 0.002},
               {"name": "c", "change": 0.003, "bound": 0.002}]
    kept = series.beyond(figures, {"a": 0.004, "b": 0.0025})
    assert [f["name"] for f in kept] == ["b", "c"]
