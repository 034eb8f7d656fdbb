# SPDX-License-Identifier: GPL-2.0-only
"""Guardrails: a change that does harm as large as the margin is kept in at most 5 %
of experiments, whatever the noise; and one without harm is kept.

python3 test_msstune_safety.py prints the error rates of msstune(1).
"""
import json
import math
import random
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune import safety  # noqa: E402

MARGIN = math.log1p(.05)    # 5 %
NOISE = (.01, .03, .06, .15, .30)


def kept(harm, noise, pairs, tries, seed=1):
    """Share of experiments in which the guardrail is shown to be safe.  @harm and
    @noise, the standard deviation of a block, are shares of the metric."""
    draw = random.Random(seed)
    safe = 0
    for _ in range(tries):
        differences = [draw.gauss(-math.log1p(harm), noise * math.sqrt(2))
                       for _ in range(pairs)]
        safe += safety.judge(differences, MARGIN).safe
    return safe / tries


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize("harm", [.05, .08, .20])
def test_harm_is_not_kept(noise, harm):
    tries = 400
    assert kept(harm, noise, 12, tries) <= .05 + 3 * math.sqrt(.05 * .95 / tries)


def test_no_harm_is_kept_where_noise_is_small():
    assert kept(0, .01, 12, 200) > .95 and kept(0, .03, 12, 200) > .95


def test_noise_shows_nothing():
    found = safety.judge([.3, -.3] * 6, MARGIN)
    assert not found.safe and "not shown to be safe" in found.why


def test_many_pairs_are_drawn():
    """Above the limit of an enumeration the p-value is close to the exact one."""
    values = [random.Random(3).gauss(.02, .05) for _ in range(safety.EXACT)]
    exact = safety.p_value(values)
    safety.EXACT, before = 0, safety.EXACT
    try:
        assert abs(safety.p_value(values) - exact) < .02
    finally:
        safety.EXACT = before


def test_few_pairs_show_nothing():
    assert not safety.judge([0.0], MARGIN).safe
    assert not safety.judge([0.0] * 4, MARGIN).safe     # 1 / 16
    assert safety.judge([0.0] * 5, MARGIN).safe         # 1 / 32


def sample(pair, attempt, side, value, void=False, session=1):
    return {"phase": "ab", "pair": pair, "attempt": attempt, "side": side,
            "void": void, "session": session, "values": {"rtt": value}}


def test_pairs_that_count(tmp_path):
    """As mssab counts them: the first whole attempt without a void block."""
    (tmp_path / "samples.jsonl").write_text("".join(json.dumps(s) + "\n" for s in (
        sample(0, 0, 1, 2.0), sample(0, 0, 0, 1.0),
        sample(1, 0, 0, 5.0, void=True), sample(1, 0, 1, 5.0),
        sample(1, 1, 0, 3.0), sample(1, 1, 1, 4.0),
        sample(2, 0, 0, 9.0), sample(2, 0, 1, 9.0, session=2),
        sample(3, 0, 0, 9.0), {**sample(4, 0, 0, 9.0), "phase": "aa"})))
    assert safety.counted(tmp_path) == [({"rtt": 1.0}, {"rtt": 2.0}),
                                        ({"rtt": 3.0}, {"rtt": 4.0})]


def main():
    print("noise   " + "".join(f"{harm:>8.0%}" for harm in (0, .05, .08, .20)))
    for noise in NOISE:
        print(f"{noise:5.0%}   " + "".join(
            f"{kept(harm, noise, 12, 4000):8.1%}" for harm in (0, .05, .08, .20)))


if __name__ == "__main__":
    main()
