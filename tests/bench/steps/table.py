#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print the gain of each step of a stacked campaign, with its interval; and whether
the steps together are what all of them at once gained.

usage: table.py KERNEL      reads build/results/steps-*-KERNEL
"""
import json
import math
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[3] / "build/results"
METRIC = "goodput"


def logs(result):
    """The effect and its interval, as logarithms."""
    found = result["metrics"][METRIC]
    return [math.log1p(found[key] / 100) for key in ("effect", "low", "high")]


def percent(log):
    return f"{100 * math.expm1(log):+.1f}"


def product(steps):
    """Of independent steps: the sum of logarithms, and an interval from the sum of
    the squares of both half widths."""
    point, low, high = zip(*steps, strict=True)
    total = sum(point)
    return [total, total - math.hypot(*(p - x for p, x in zip(
        point, low, strict=True))), total + math.hypot(*(x - p for p, x in zip(
            point, high, strict=True)))]


def table(steps, whole):
    """Lines: @steps and @whole are results, in order."""
    rows = [(one["title"], logs(one), one["verdict"]) for one in steps]
    together = product([row[1] for row in rows])
    rows += [("product of the steps", together, ""),
             (whole["title"], logs(whole), whole["verdict"])]
    yield f"{'step':<46} {'goodput, %':>10}  95 % interval       verdict"
    for title, (point, low, high), word in rows:
        yield f"{title[:46]:<46} {percent(point):>10}  " \
            f"{percent(low) + ' .. ' + percent(high):<18}  {word}".rstrip()
    gap = together[0] - logs(whole)[0]
    yield f"the product differs from all at once by {percent(gap)} %"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    results = [json.loads((path / "result.json").read_text("utf-8"))
               for path in sorted(RESULTS.glob(f"steps-*-{sys.argv[1]}"))]
    if len(results) < 2:
        sys.exit("table: no results of steps here; make bench-steps measures them")
    # steps-all sorts behind the numbers.
    *steps, whole = results
    print("\n".join(table(steps, whole)))


if __name__ == "__main__":
    main()
