#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The table of the overhead benchmark: instructions added per packet, in
percent of the unprofiled cost, next to the limits for pathprof.

usage: table.py RESULTS.json
Exit status: 0, or 1 if a limit is missed.
"""
import itertools
import json
import sys
from pathlib import Path
from statistics import median

#: Percent, by arm and workload.
LIMITS = {
    "pathprof default": {"ping-pong": 2, "veth 1500": 2, "64 KB writes": 0.5},
    "pathprof --sample 1": {"ping-pong": 20, "veth 1500": 45,
                            "64 KB writes": 4},
    "pathprof detached": {"ping-pong": 0.5, "veth 1500": 0.5,
                          "64 KB writes": 0.5},
}

#: Runs whose numbers of packets differ by no more have one packet pattern.
SAME_PACKETS = 0.02


def cost(run):
    return (run["ns"] + run["after_ns"]) / run["packets"]


def of_length(arm, workload, rounds):
    """Runs of one length: the share of ACKs among the packets depends on it."""
    return [run for run in arm["runs"]
            if (run["workload"], run["rounds"]) == (workload, rounds)]


def added(base, arm, workload, rounds):
    """Instructions that an arm adds to a packet, the cost without it, and
    whether they can be compared: the median over pairs of runs.  The cost of a
    packet also depends on how many ACKs flow, so only runs of one pattern make a
    pair, unless the arm has none of them."""
    without = of_length(base, workload, rounds)
    runs = of_length(arm, workload, rounds)
    pairs = [(one, other) for one in without for other in runs
             if abs(other["packets"] - one["packets"])
             <= SAME_PACKETS * one["packets"]]
    compared = pairs or list(itertools.product(without, runs))
    return (median(cost(other) - cost(one) for one, other in compared),
            median(cost(one) for one, _ in compared), bool(pairs))


def lengths(arm, workload):
    return {run["rounds"] for run in arm["runs"]
            if run["workload"] == workload}


def main():
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    arms = document["arms"]
    base = arms[0]
    workloads = list(dict.fromkeys(run["workload"] for run in base["runs"]))
    status = 0
    print(f"kernel {document['kernel']}; instructions a packet, unprofiled, "
          "then added by each tool")
    print(f"{'':<20}" + "".join(f"{w:>19}" for w in workloads)
          + f"{'start+stop ms':>15}{'MiB':>5}{'lost':>7}")
    for arm in arms:
        print(f"{arm['arm']:<20}", end="")
        for workload in workloads:
            rounds = max(lengths(arm, workload))
            more, without, alike = added(base, arm, workload, rounds)
            if arm is base:
                print(f"{without:19.0f}", end="")
                continue
            percent = 100 * more / without
            limit = LIMITS.get(arm["arm"], {}).get(workload)
            bad = alike and limit is not None and percent > limit
            status |= bad
            print(f"{f'{more:+.0f} ({percent:+.2f} %)':>18}"
                  + ("~" if not alike else "!" if bad else " "), end="")
        ms = (arm["start_ns"] + arm["stop_ns"]) / 1e6
        print(f"{ms:15.0f}{arm['memory_kib'] / 1024:5.0f}"
              f"{'' if arm['lost'] is None else arm['lost']:>7}")
    print("! misses its limit" if status else "all within their limits")
    print("~ other numbers of packets than unprofiled: not judged")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
