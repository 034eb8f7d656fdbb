# SPDX-License-Identifier: GPL-2.0-only
"""Shares one error probability among all experiments of auto.  Pure.

auto keeps what an experiment favours, so each setting and each round is another
chance to keep something that does not help.  All of them together do so with
probability ALPHA at most, however many rounds there are.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

ALPHA = 0.05
#: mssab takes no smaller level: then nothing more can be tried.
LEAST = 0.0001


def round_level(level: float, number: int) -> float:
    """The level of round @number (1, 2, ...): a half, a sixth, a twelfth ... of
    @level.  These add up to @level over any number of rounds."""
    if number < 1:
        raise ValueError(f"round {number}: the first is 1")
    return level / (number * (number + 1))


def pairs_for(level: float) -> int:
    """Pairs of blocks from which the sign-flip test can reject at @level: of 2^n
    assignments of signs one at each end must fit into it."""
    return math.ceil(math.log2(2 / level))


@dataclass
class Budget:
    """The levels of the experiments of one round, in their order.  Each has an
    equal share.  One that keeps its change passes its level on to the next, as in
    the fallback procedure (Wiens 2003): a budget that led to a true finding is not
    spent."""

    share: float
    carried: float = 0.0

    @classmethod
    def of_round(cls, number: int, experiments: int) -> Budget:
        return cls(round_level(ALPHA, number) / max(1, experiments))

    @property
    def level(self) -> float:
        """Of the next experiment."""
        return self.share + self.carried

    def spend(self, kept: bool) -> None:
        """The next experiment has ended."""
        self.carried = self.share + self.carried if kept else 0.0
