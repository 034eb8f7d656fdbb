# SPDX-License-Identifier: GPL-2.0-only
"""The experiment: what it consists of, and what chance decides for each pair.

Pure.  experiment_file.py reads one from a file with [design];
mssab-experiment(5) is the reference.
"""
from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from . import metrics
from .cell import Cell
from .device import Settings
from .keys import Key, entry, table
from .metrics import Metric

#: Where blocks are measured: here, or each in a guest of its own.
HOST, RUNS = "host", ("host", "fast", "deterministic")
#: What assign may be: who has an arm.
BLOCK, CONNECTION = "block", "connection"
#: Nuisance seeds: the last starts a third of a second later than the first.
NUISANCES = 1000
#: Pairs up to this number share no nuisance seed with a repeated one.
RETRY = 211
#: Pairs in a permuted block.
PERMUTED = 4


@dataclass(frozen=True)
class Arm:
    """One side of the comparison, with all its settings resolved."""

    name: str
    settings: dict[str, Any]            # as the file gives them
    cell: Cell | None                   # the experiment's with the arm's keys
    module: dict[str, int]              # net.mssfrac.*, both ends
    sysctl_sender: dict[str, str]
    sysctl_receiver: dict[str, str]
    device: Settings            # of both ends' devices
    env: dict[str, str]                 # of the program
    kernel: str = ""                    # of its guests; "": this machine's


def _key(default: Any, low: float | None = None, high: float | None = None,
         choices: tuple[str, ...] = (), unit: str = "") -> Any:
    return entry(Key(default, low, high, choices, unit))


@dataclass(frozen=True)
class Plan:
    """A checked experiment.  Fields with a key are those of [design]."""

    title: str
    question: str
    expect: str                 # a verdict, or ""
    arms: tuple[Arm, Arm]       # control, treatment
    program: tuple[str, ...]    # the user's own load; (): the cell's
    primary: tuple[Metric, ...]
    guardrails: tuple[Metric, ...]
    effect_percent: float = _key(3.0, 0.01, 1000, unit="%")
    alpha: float = _key(0.05, 0.0001, 0.2)
    power: float = _key(0.8, 0.5, 0.99)
    looks: tuple[int, ...] = _key((12,), 8, 1000, unit="pairs")
    aa_pairs: int = _key(8, 0, 1000)
    seed: int = _key(0, 0, 2**32 - 1)   # 0: drawn when it starts
    nuisance: bool = _key(True)
    ceiling_mbit: float = _key(0.0, 0, 1000000, unit="Mbit/s")
    generator_percent: float = _key(95.0, 0, 100, unit="%")
    stolen_percent: float = _key(2.0, 0, 100, unit="%")
    attempts: int = _key(5, 1, 100)
    wash_out_s: float = _key(0.0, 0, 86400, unit="s")
    # A program that takes longer has failed; 0: from the blocks before.
    limit_s: float = _key(0.0, 0, 86400, unit="s")
    accept_noise: bool = _key(False)
    resolution_percent: float = _key(0.0, 0, 5, unit="%")
    run: str = HOST
    # pathprof follows 1 in so many packets.
    profile_sample: int = _key(1, 1, 1000000)
    assign: str = _key(BLOCK, choices=(BLOCK, CONNECTION))
    connections: int = _key(32, 4, 500)
    allocations: tuple[int, ...] = _key((10, 50, 90), 1, 99, unit="%")

    def blocks(self, phase: str) -> int:
        """Blocks in one pair; with arms per connection, one at each share."""
        if self.assign == BLOCK:
            return 2
        return 1 if phase == "aa" else len(self.allocations)

    @property
    def share(self) -> int:
        """The share that the headline reports, %: the one nearest to half."""
        return min(self.allocations, key=lambda share: abs(share - 50))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return self.primary + self.guardrails

    @property
    def profiled(self) -> bool:
        """Does a metric need pathprof?"""
        return any(m.name in metrics.PROFILED for m in self.metrics)

    @property
    def module_keys(self) -> list[str]:
        """Settings of the module that any arm names."""
        return sorted({key for arm in self.arms for key in arm.module})


#: The keys of [design], but for primary, guardrails and pairs.
DESIGN: dict[str, Key] = table(Plan)


@dataclass(frozen=True)
class Draw:
    """What chance decided for one attempt at a pair."""

    order: tuple[int, ...]      # sides: 0 control, 1 treatment; or shares
    seed: int                   # nuisance, the same for both blocks


def _first_sides(plan: Plan, phase: str, block: int) -> list[int]:
    """Which arm goes first in each pair of a permuted block: each of them
    equally often, in random order."""
    sides = [0, 1] * (PERMUTED // 2)
    random.Random(f"{plan.seed}/{phase}/order/{block}").shuffle(sides)
    return sides


def draw(plan: Plan, phase: str, pair: int, attempt: int) -> Draw:
    """Depends on the seed alone: the same on any machine, in any order."""
    if plan.assign == CONNECTION:
        rng = random.Random(f"{plan.seed}/{phase}/{pair}/{attempt}")
        order = list(range(plan.blocks(phase)))
        rng.shuffle(order)
        # The key of the split.  A new one each time: with the same key an arm
        # that had no connection would never have one.
        return Draw(tuple(order), rng.getrandbits(32))
    # No two of a thousand pairs share a nuisance seed.
    of_phase = random.Random(f"{plan.seed}/{phase}")
    seeds = of_phase.sample(range(1, NUISANCES + 1), NUISANCES)
    # A pair that is measured again keeps its order, and so the balance.  It
    # gets another nuisance seed: what fails with one need not fail with all.
    first = _first_sides(plan, phase, pair // PERMUTED)[pair % PERMUTED]
    return Draw((first, 1 - first),
                seeds[(pair + RETRY * attempt) % NUISANCES] if plan.nuisance else 0)
