# SPDX-License-Identifier: GPL-2.0-only
"""mssab arm: the arm of one connection, and the slot it follows from."""
from __future__ import annotations

import argparse

from ..experiment import arm


def run(args: argparse.Namespace) -> int:
    one, other = arm.endpoint(args.one), arm.endpoint(args.other)
    print(arm.arm(one, other, args.seed, args.percent),
          arm.slot(one, other, args.seed))
    return 0
