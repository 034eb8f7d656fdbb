# SPDX-License-Identifier: GPL-2.0
"""mssab block: set up one arm of an experiment where this runs, and measure one
block of it.  What guests.py has its guests do.

Needs nothing but Python's standard library: a guest may boot on a root file
system that has no more.
"""
from __future__ import annotations

import argparse
import dataclasses
import json

from . import block, experiment_file, grid, host
from .errors import UsageError


def run(args: argparse.Namespace) -> int:
    plan = experiment_file.parse(args.file, grid.read(args.file))
    arm = next((arm for arm in plan.arms if arm.name == args.arm), None)
    if not arm:
        raise UsageError(f"{args.file}: no arm {args.arm} (arms: "
                         f"{', '.join(arm.name for arm in plan.arms)})")
    # The other arm may be one that this kernel cannot have.
    place = block.Runner(dataclasses.replace(plan, arms=(arm, arm)),
                         plan.module_keys, warm=True)
    with host.alone(), place:
        if args.output:
            raw = place.measure(arm, args.seed, 0)
            args.output.write_text(json.dumps(raw) + "\n", "utf-8")
    return 0
