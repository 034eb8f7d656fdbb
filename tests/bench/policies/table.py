#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judges the arms of measure.py against the stock arms of the same cells.

  table.py [--only REGEX] RESULTS.jsonl...

Files are parts of one measurement; a cell may be in several.  --only judges the
cells of that name.  An arm is worse in a cell where it delivers less than 0.99 of
the slowest stock arm.  Utilisation is goodput x RTT over the largest window that a
stock arm was advertised."""
import argparse
import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

STOCK = ("stock", "again")
WORSE = 0.99


def read(paths):
    """{cell: {"rtt": s, "stock": [arm, ...], "arms": {name: arm}}}"""
    cells = defaultdict(lambda: {"rtt": [], "stock": [], "arms": {}})
    for path in paths:
        for line in Path(path).read_text("utf-8").splitlines():
            found = json.loads(line)
            cell = cells[found["cell"]]
            cell["rtt"].append(found["rtt"])
            for name, arm in found["arms"].items():
                if name in STOCK:
                    cell["stock"].append(arm)
                else:
                    cell["arms"][name] = arm
    return cells


def used(cell, rate):
    window = max(arm.get("usable_window", 0) for arm in cell["stock"])
    return rate * min(cell["rtt"]) / window if window else None


def main(paths, only):
    cells = {name: cell for name, cell in read(paths).items()
             if re.search(only, name)}
    if not cells:
        sys.exit(f"table.py: no cell of {only!r}")
    names = list(dict.fromkeys(name for cell in cells.values()
                               for name in cell["arms"]))
    spread = [max(rates) / min(rates) for rates in (
        [arm["bytes_per_s"] for arm in cell["stock"]] for cell in cells.values())]
    print(f"{len(cells)} cells; stock arms differ by a median of "
          f"{100 * (statistics.median(spread) - 1):.1f} %, in "
          f"{sum(s > 1.01 for s in spread)} by more than 1 %, at most "
          f"{100 * (max(spread) - 1):.0f} %")
    print(f"{'arm':10} cells worse  least median   used  acted")
    for name in names:
        ratios, share, worse, acted = [], [], [], 0
        for title, cell in cells.items():
            if name not in cell["arms"]:
                continue
            arm = cell["arms"][name]
            rates = [stock["bytes_per_s"] for stock in cell["stock"]]
            ratios.append(arm["bytes_per_s"] / statistics.median(rates))
            acted += bool(arm["acted"])
            use = used(cell, arm["bytes_per_s"])
            if use is not None:
                share.append(use)
            if arm["bytes_per_s"] < WORSE * min(rates):
                worse.append((arm["bytes_per_s"] / min(rates), title,
                              arm["acted"]))
        print(f"{name:10} {len(ratios):5} {len(worse):5}  {min(ratios):.3f}  "
              f"{statistics.median(ratios):.3f} {100 * statistics.fmean(share):5.1f} %"
              f" {acted:5}")
        for ratio, title, acts in sorted(worse):
            print(f"    {ratio:.3f}  {title}{'' if acts else ' (did not act)'}")
    share = [use for cell in cells.values() for use in [used(
        cell, statistics.median(a["bytes_per_s"] for a in cell["stock"]))]
        if use is not None]
    print(f"stock used {100 * statistics.fmean(share):.1f} %")


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--only", default=".", metavar="REGEX")
parser.add_argument("results", nargs="+")
args = parser.parse_args()
main(args.results, args.only)
