# SPDX-License-Identifier: GPL-2.0-only
"""Rules that make a block void, and rules that make it failed.  They examine
how it was measured, never its arm.

A void block was disturbed from outside.  In a failed block the load did not do
its work, which may be the arm's doing.  Both stay in the samples with the
reason.  Pure.  A reason is "rule: observation".
"""
from __future__ import annotations

import math
from typing import Any

from ..experiment.experiment import CONNECTION, Arm, Plan
from ..experiment.metrics import value
from . import connections


def ceiling(plan: Plan, arm: Arm) -> float:
    """Bit/s that the path cannot exceed; 0: not known.  For a link with a rate
    it is the payload's share, plus 2 % because the rate holds only on
    average."""
    if plan.ceiling_mbit:
        return plan.ceiling_mbit * 1e6
    if arm.cell and arm.cell.rate_mbit:
        cell = arm.cell
        # The MTU of an interface that keeps its own is not known here.
        share = cell.payload / cell.mtu if cell.mtu else 1.0
        return cell.rate_mbit * 1e6 * share * 1.02
    return 0.0


def failed(plan: Plan, raw: dict[str, Any]) -> str:
    """Why the load failed in this block; "" if it worked."""
    if "dead_guest" in raw:
        return f"dead guest: {raw['dead_guest']}"
    if "failed" in raw:
        return f"load failed: {raw['failed']}"
    if plan.assign == CONNECTION:
        return connections.failed(raw)
    if raw.get("bytes_per_s", 1) <= 0:
        return "stalled: nothing was delivered"
    for metric in plan.metrics:
        try:
            seen = value(metric.name, raw)
        except KeyError as error:
            return f"no figure: the load does not report {error.args[0]}"
        except ZeroDivisionError:
            return f"no figure: {metric.name} is per byte, and nothing arrived"
        if not math.isfinite(seen):
            return f"no figure: {metric.name} is {seen}"
        if metric.scale == "log" and seen <= 0:
            return (f"no figure: {metric.name} is {seen:g}, which has no "
                    "ratio; use a linear scale if 0 is a measurement")
    return ""


def void(plan: Plan, arm: Arm, raw: dict[str, Any]) -> str:
    """Why this block does not count; "" if it does."""
    if plan.assign == CONNECTION and (why := connections.void(raw)):
        return why
    bits = 8 * raw.get("bytes_per_s", 0)
    limit = ceiling(plan, arm)
    if limit and bits > limit:
        return (f"above the ceiling: {bits / 1e6:.4g} Mbit/s, but the "
                f"path carries {limit / 1e6:.4g}")
    host = raw.get("host", {})
    if plan.stolen_percent and host.get("stolen_percent", 0) \
            > plan.stolen_percent:
        return (f"stolen CPU: {host['stolen_percent']:.3g} % of the time "
                f"went to other machines; the limit is "
                f"{plan.stolen_percent:g} %")
    if plan.generator_percent and host.get("generator_percent", 0) \
            > plan.generator_percent:
        return (f"saturated load: it used {host['generator_percent']:.3g} % of "
                f"a CPU; the limit is {plan.generator_percent:g} %")
    if raw.get("lost_events", 0):
        return f"dropped trace: {raw['lost_events']} events were lost"
    return ""
