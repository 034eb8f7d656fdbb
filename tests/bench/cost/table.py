#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tables of the cost benchmark: instructions per segment, instructions that
each arm adds to transfers of the same packets and to all transfers, and calls
of the diverted functions.

usage: table.py RESULTS.json...
Exit status: 0, or 1 if a limit is missed.
"""
import json
import sys
from pathlib import Path
from statistics import fmean, median

#: Most that an arm may add, in percent of the instructions without the module;
#: "removed" must also not save more.
LIMITS = {"observe": 0.5, "treated": 1.5, "removed": 0.02}
HOOKS = ["tcp_current_mss", "__tcp_select_window"]


def mean(document, workload, arm, key):
    return fmean(run[key] for run in document["runs"]
                 if (run["workload"], run["arm"]) == (workload, arm))


def base_cost(document, workload):
    """Instructions per segment without the module."""
    return (mean(document, workload, "absent", "instructions")
            / mean(document, workload, "absent", "segments"))


def added(document, workload, arm):
    """Percent the arm adds, within one guest, for the same bytes: more and
    smaller segments must not make an arm look cheaper."""
    return 100 * (mean(document, workload, arm, "instructions")
                  / mean(document, workload, "absent", "instructions") - 1)


def same_packets(document, workload, arm):
    """Percent the arm adds to transfers of equally many packets, one value per
    number of packets, from the minimum of each arm.  This removes differences
    of the packet pattern and leaves those of the code."""
    least = {}
    for run in document["runs"]:
        if run["workload"] == workload:
            key = run["arm"], run["packets"]
            least[key] = min(run["instructions"], least.get(key, float("inf")))
    return [100 * (ns / least["absent", packets] - 1)
            for (of, packets), ns in least.items()
            if of == arm and ("absent", packets) in least]


def missed(arm, percent):
    return (abs(percent) if arm == "removed" else percent) > LIMITS[arm]


def table(documents, workloads, average, percents_of):
    """Print what each arm adds; how many miss their limit or have no value."""
    misses = 0
    print(f"{'workload':<18} {'instr/seg':>9}", end="")
    for arm in LIMITS:
        print(f" {arm + f' <{LIMITS[arm]:g}':>23}", end="")
    print()
    for workload in workloads:
        base = fmean(base_cost(d, workload) for d in documents)
        print(f"{workload:<18} {base:9.0f}", end="")
        for arm in LIMITS:
            percents = percents_of(workload, arm)
            if not percents:
                print(f" {'none!':>23}", end="")
                misses += 1
                continue
            bad = missed(arm, average(percents))
            misses += bad
            text = (f"{average(percents):+.2f} ({min(percents):+.2f}"
                    f"..{max(percents):+.2f}){'!' if bad else ' '}")
            print(f" {text:>23}", end="")
        print()
    return misses


def main():
    documents = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    workloads = list(dict.fromkeys(
        run["workload"] for run in documents[0]["runs"]))
    print(f"kernel {documents[0]['kernel']}; added, percent, {len(documents)} "
          "seeds: to transfers of the same packets, median (least..most)")
    same = {(workload, arm): [percent for d in documents for percent in
                              same_packets(d, workload, arm)]
            for workload in workloads for arm in LIMITS}
    misses = table(documents, workloads, median,
                   lambda workload, arm: same[workload, arm])
    print("\nto all transfers: mean (least..most) of the seeds; packet "
          "patterns differ by chance")
    table(documents, workloads, fmean, lambda workload, arm: [
        added(d, workload, arm) for d in documents])
    print("\ncalls per segment of the diverted functions, and instructions "
          "each call adds")
    print(f"{'workload':<18} {'arm':<8} "
          + " ".join(f"{hook:>19}" for hook in HOOKS) + f" {'added/call':>11}")
    for workload in workloads:
        for arm in ("absent", "observe", "treated"):
            counted = [c for d in documents for c in d["calls"]
                       if (c["workload"], c["arm"]) == (workload, arm)]
            rates = [fmean(c[hook] / c["segments"] for c in counted)
                     for hook in HOOKS]
            base = fmean(base_cost(d, workload) for d in documents)
            percents = same.get((workload, arm))
            print(f"{workload:<18} {arm:<8} "
                  + " ".join(f"{rate:19.3f}" for rate in rates)
                  + (f" {median(percents) / 100 * base / sum(rates):11.0f}"
                     if percents else ""))
    # Of all arms together; a few at the end of slow start are normal.
    for document in documents:
        lost = {k: v for k, v in document["retransmitted"].items() if v}
        if lost:
            print(f"seed {document['seed']}: segments retransmitted: {lost}")
    print("! misses the limit in the heading; judged by the first table: "
          + (f"{misses} missed" if misses else "all within"))
    return int(misses > 0)


if __name__ == "__main__":
    sys.exit(main())
