# SPDX-License-Identifier: GPL-2.0-only
"""Measures pair after pair until there is a verdict: A/A first, then the arms.
A coin decides the order in each pair, and only planned looks are taken.

Gets the measuring of a block as a function, so that tests can run all of it.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ..errors import LoadFailed
from ..experiment.experiment import CONNECTION, Arm, Plan, draw
from ..experiment.metrics import rounded, value
from ..statistics import analysis, connections, outcomes, sanity
from ..statistics.outcomes import AA, AB
from .journal import Journal

#: Measures one block: arm, nuisance seed, share of connections with the
#: treatment (0: all have the arm's settings) -> what load and host reported.
Measure = Callable[[Arm, int, int], dict[str, Any]]
#: Receives the blocks done, their total, and what comes next.
Progress = Callable[[int, int, str], None]
#: Waits between blocks; tests replace it.
pause = time.sleep


def _values(plan: Plan, raw: dict[str, Any]) -> dict[str, float]:
    return {metric.name: rounded(metric, value(metric.name, raw),
                                 plan.resolution_percent)
            for metric in plan.metrics}


def _pair(plan: Plan, journal: Journal, phase: str, pair: int,
          measure: Measure, announce: Callable[[str], None]) -> None:
    """One new attempt at a pair; it ends early if a block is void."""
    tries = outcomes.attempts(journal.records, phase).get(pair, {})
    attempt = 1 + max(tries, default=-1)
    # An interrupted attempt is repeated with the same draw.
    void = sum(any(map(outcomes.unusable, blocks))
               for blocks in tries.values())
    chance = draw(plan, phase, pair, void)
    for place, side in enumerate(chance.order):
        if plan.assign == CONNECTION:
            arm = plan.arms[phase == AB]
            share = plan.allocations[side] if phase == AB else plan.share
        else:
            arm = plan.arms[0 if phase == AA else side]
            share = 0
        name = f"{share} % {arm.name}" if share else arm.name
        announce(f"{'A/A ' if phase == AA else ''}pair {pair + 1}, {name}")
        if plan.wash_out_s and journal.records:
            pause(plan.wash_out_s)
        started = time.monotonic()
        raw = measure(arm, chance.seed, share)
        record = {
            "phase": phase, "pair": pair, "attempt": attempt, "place": place,
            "of": len(chance.order), "side": side, "arm": arm.name,
            "share": share, "seed": chance.seed,
            "time": {"start_s": round(started, 3),
                     "elapsed_s": round(time.monotonic() - started, 3)},
            "failed": sanity.failed(plan, raw)}
        # What failed is no accident, whatever else was the matter.
        record["void"] = "" if record["failed"] else sanity.void(
            plan, arm, raw)
        if record["void"] or record["failed"]:
            journal.add(record | {"values": {}, "raw": raw})
            if record["void"]:
                return
            continue
        values = connections.values(raw) if share else _values(plan, raw)
        journal.add(record | {"values": values, "raw": raw})
    why = outcomes.failed(journal.records[-1])
    if why and not any(r["values"] for r in journal.records):
        raise LoadFailed(f"no block has worked yet: {why}")


def run(plan: Plan, journal: Journal, measure: Measure, progress: Progress,
        only_aa: bool = False) -> dict[str, Any]:
    """Continue from what the journal holds to the end."""
    phases = [(AA, plan.aa_pairs)]
    if not only_aa:
        phases.append((AB, plan.looks[-1]))
    total = sum(count * plan.blocks(phase) for phase, count in phases)
    before = 0
    for phase, count in phases:
        for pair in range(count):
            if phase == AB and pair in plan.looks and analysis.result(
                    plan, journal.records)["finished"]:
                break
            while not _done(journal, phase, pair):
                if outcomes.out_of_attempts(plan, journal.records, phase):
                    return analysis.result(plan, journal.records, only_aa)
                _pair(plan, journal, phase, pair, measure,
                      partial(progress, before + pair * plan.blocks(phase),
                              total))
        before += count * plan.blocks(phase)
        found = analysis.result(plan, journal.records, only_aa)
        if found["finished"]:
            break
    return found


def _done(journal: Journal, phase: str, pair: int) -> bool:
    tries = outcomes.attempts(journal.records, phase).get(pair, {})
    return any(map(outcomes.complete, tries.values()))
