# SPDX-License-Identifier: GPL-2.0
"""Measures pair after pair until the verdict is in: A/A first, then the arms,
each pair's order by coin, no look but the planned ones.

Knows no kernel: what a block is comes as a function, so that all of this runs
in the tests as well.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from . import analysis, sanity
from .analysis import AA, AB
from .design import Arm, Plan, draw
from .journal import Journal
from .metrics import value

#: Measures one block: arm, nuisance seed -> what the load and the host said.
Measure = Callable[[Arm, int], dict[str, Any]]
#: Is told how many of how many blocks are done, and what comes next.
Tell = Callable[[int, int, str], None]


def _values(plan: Plan, raw: dict[str, Any]) -> dict[str, float]:
    return {metric.name: value(metric.name, raw) for metric in plan.metrics}


def _pair(plan: Plan, journal: Journal, phase: str, pair: int,
          measure: Measure, tell: Callable[[str], None]) -> None:
    """Both blocks once, in a new attempt; the second not if the first is
    void."""
    tries = analysis.attempts(journal.records, phase).get(pair, {})
    attempt = 1 + max(tries, default=-1)
    # What was only interrupted is done again just so.
    void = sum(any(b["void"] for b in blocks) for blocks in tries.values())
    chance = draw(plan, phase, pair, void)
    for place, side in enumerate(chance.order):
        arm = plan.arms[0 if phase == AA else side]
        tell(f"{'A/A ' if phase == AA else ''}pair {pair + 1}, {arm.name}")
        started = time.monotonic()
        raw = measure(arm, chance.seed)
        record = {
            "phase": phase, "pair": pair, "attempt": attempt, "place": place,
            "side": side, "arm": arm.name, "seed": chance.seed,
            "time": {"start_s": round(started, 3),
                     "elapsed_s": round(time.monotonic() - started, 3)},
            "void": sanity.void(plan, arm, raw)}
        if record["void"]:
            journal.add(record | {"values": {}, "raw": raw})
            return
        journal.add(record | {"values": _values(plan, raw), "raw": raw})


def run(plan: Plan, journal: Journal, measure: Measure, tell: Tell,
        only_aa: bool = False) -> dict[str, Any]:
    """Go on from what the journal holds to the end."""
    phases = [(AA, plan.aa_pairs)]
    if not only_aa:
        phases.append((AB, plan.looks[-1]))
    total = 2 * sum(count for _, count in phases)
    before = 0
    for phase, count in phases:
        for pair in range(count):
            if phase == AB and pair in plan.looks and analysis.result(
                    plan, journal.records)["finished"]:
                break
            while not _done(journal, phase, pair):
                if analysis.out_of_attempts(plan, journal.records, phase):
                    return analysis.result(plan, journal.records, only_aa)
                _pair(plan, journal, phase, pair, measure,
                      partial(tell, before + 2 * pair, total))
        before += 2 * count
        found = analysis.result(plan, journal.records, only_aa)
        if found["finished"]:
            break
    return found


def _done(journal: Journal, phase: str, pair: int) -> bool:
    tries = analysis.attempts(journal.records, phase).get(pair, {})
    return any(map(analysis.complete, tries.values()))
