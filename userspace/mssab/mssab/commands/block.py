# SPDX-License-Identifier: GPL-2.0-only
"""mssab block: set up one arm of an experiment on this machine, and measure one
block of it.  Guests that guests.py boots run this.

Needs nothing but Python's standard library: a guest's root file system may have
no more.
"""
from __future__ import annotations

import argparse
import dataclasses
import json

from ..errors import UsageError
from ..experiment import experiment_file, grid
from ..run import block, journal
from ..testbed import host


def run(args: argparse.Namespace) -> int:
    plan = experiment_file.parse(args.file, grid.read(args.file))
    arm = next((arm for arm in plan.arms if arm.name == args.arm), None)
    if not arm:
        raise UsageError(f"{args.file}: no arm {args.arm} (arms: "
                         f"{', '.join(arm.name for arm in plan.arms)})")
    # This kernel may be unable to set up the other arm.
    place = block.Runner(dataclasses.replace(plan, arms=(arm, arm)),
                         plan.module_keys, warm=True)
    with host.alone(), place:
        if args.output:
            raw = place.measure(arm, args.seed, 0)
            journal.write_whole(args.output, json.dumps(raw) + "\n")
    return 0
