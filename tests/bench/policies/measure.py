#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Measures every arm of a grid file in each cell, in a guest with the module.

  measure.py GRID.toml RESULTS.jsonl [REGEX]

mssab run measures two arms.  This uses its testbed for all of them, in the same
namespaces, one line of JSON per cell.  Cells that RESULTS.jsonl has are skipped."""
import json
import re
import sys
import time
from pathlib import Path

from mssab.experiment import grid
from mssab.run import transfers, trial
from mssab.testbed import testbed
from mssab.errors import MssabError

KEEP = ("bytes_per_s", "rcv_ssthresh", "window_clamp", "min_rtt_us", "rates",
        "latency_p50_ns", "retransmits", "sent_segments", "snd_cwnd", "rcv_mss")


def measure(bed, plan, cell):
    keys = sorted({key for arm in plan.arms.values() for key in arm})
    runs = {}
    for name, arm in plan.arms.items():
        try:
            runs[name] = [trial.transfer(bed, cell, arm, keys)]
        except MssabError as error:
            runs[name] = []
            print(f"# {cell.name}, {name}: {error}", flush=True)
    rtt = transfers.round_trip(cell, [raw for raws in runs.values() for raw in raws])
    window = transfers.mean_window(cell, next(iter(runs.values())))
    return {"cell": cell.name, "rtt": rtt, "arms": {
        name: transfers.averages(cell, raws, rtt, window)
        | {key: raws[0][key] for key in KEEP if key in raws[0]}
        | {"counters": {key: value for end in raws[0]["counters"].values()
                        for key, value in end.items()
                        if key.startswith("treated_tx") and value}}
        for name, raws in runs.items() if raws}}


def main(file, results, only="."):
    plan = grid.load(Path(file))
    done = set()
    if Path(results).exists():
        done = {json.loads(line)["cell"]
                for line in Path(results).read_text("utf-8").splitlines()}
    with testbed.Testbed() as bed, open(results, "a", encoding="utf-8") as out:
        for cell in plan.cells:
            if cell.name in done or not re.search(only, cell.name):
                continue
            start = time.monotonic()
            result = measure(bed, plan, cell)
            print(json.dumps(result), file=out, flush=True)
            stock = next(iter(result["arms"].values()))
            print(f"{cell.name:50}", *(
                f"{name} {arm['bytes_per_s'] / stock['bytes_per_s']:.3f}"
                for name, arm in result["arms"].items()),
                f"({100 * stock.get('utilisation', 0):.0f} %, "
                f"{time.monotonic() - start:.1f} s)", flush=True)


main(*sys.argv[1:])
