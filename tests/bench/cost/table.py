#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tables of the cost benchmark: instructions per segment, instructions that
each arm adds, and calls of the diverted functions.

Transfers of the same bytes differ by chance in their number of packets, and
their cost with it.  So the first table compares transfers as if all had equally
many (analysis of covariance: one slope within all guests and arms, that is
within what differs by chance only).  An interval is two standard errors wide on
either side, from what remains within the arms.

usage: table.py RESULTS.json...
Exit status: 0, or 1 if a limit is missed.
"""
import json
import sys
from math import sqrt
from pathlib import Path
from statistics import fmean

#: Most that an arm may add, in percent of the instructions without the module;
#: "removed" must also not save more.
LIMITS = {"observe": 0.5, "treated": 1.5, "removed": 0.02}
HOOKS = ["tcp_current_mss", "__tcp_select_window"]


class Work:
    """The transfers of one workload, by guest and arm."""

    def __init__(self, documents, workload):
        self.groups = {}
        for number, document in enumerate(documents):
            for run in document["runs"]:
                if run["workload"] == workload:
                    self.groups.setdefault((number, run["arm"]), []).append(run)
        self.guests = range(len(documents))
        squares = crosses = rests = 0
        for runs in self.groups.values():
            packets = fmean(run["packets"] for run in runs)
            cost = fmean(run["instructions"] for run in runs)
            for run in runs:
                squares += (run["packets"] - packets) ** 2
                crosses += ((run["packets"] - packets)
                            * (run["instructions"] - cost))
                rests += (run["instructions"] - cost) ** 2
        self.slope = crosses / squares if squares else 0
        free = (sum(map(len, self.groups.values())) - len(self.groups)
                - bool(squares))
        self.variance = (max(rests - self.slope * crosses, 0) / free
                         if free > 0 else float("inf"))
        self.slope_variance = self.variance / squares if squares else 0

    def mean(self, guest, arm, key):
        return fmean(run[key] for run in self.groups[guest, arm])

    def segment(self):
        """Instructions per segment without the module."""
        return fmean(self.mean(guest, "absent", "instructions")
                     / self.mean(guest, "absent", "segments")
                     for guest in self.guests)

    def added(self, arm):
        """Percent the arm adds, of each guest: for the same bytes, so that more
        and smaller segments do not make an arm look cheaper."""
        return [100 * (self.mean(guest, arm, "instructions")
                       / self.mean(guest, "absent", "instructions") - 1)
                for guest in self.guests]

    def at_equal_packets(self, arm):
        """Percent the arm adds at equally many packets, and two standard errors
        of it."""
        percents, variances = [], []
        for guest in self.guests:
            base = self.mean(guest, "absent", "instructions")
            more = (self.mean(guest, arm, "packets")
                    - self.mean(guest, "absent", "packets"))
            percents.append(100 * (self.mean(guest, arm, "instructions") - base
                                   - self.slope * more) / base)
            counts = [len(self.groups[guest, of]) for of in ("absent", arm)]
            variances.append((100 / base) ** 2 * (
                self.variance * sum(1 / count for count in counts)
                + self.slope_variance * more ** 2))
        return fmean(percents), 2 * sqrt(sum(variances)) / len(variances)


def verdict(arm, percent, error):
    """"" within the limit, "!" beyond it, "?" the interval includes it."""
    value = abs(percent) if arm == "removed" else percent
    if value - error > LIMITS[arm]:
        return "!"
    return "" if value + error <= LIMITS[arm] else "?"


def table(works, cell):
    print(f"{'workload':<18} {'instr/seg':>9}"
          + "".join(f" {f'{arm} <{LIMITS[arm]:g}':>23}" for arm in LIMITS))
    for workload, work in works.items():
        print(f"{workload:<18} {work.segment():9.0f}"
              + "".join(f" {cell(work, arm):>23}" for arm in LIMITS))


def judged(work, arm):
    percent, error = work.at_equal_packets(arm)
    return f"{percent:+.2f} +- {error:.2f}{verdict(arm, percent, error):1}"


def spread(work, arm):
    percents = work.added(arm)
    return f"{fmean(percents):+.2f} ({min(percents):+.2f}..{max(percents):+.2f})"


def calls(documents, works):
    print("\ncalls per segment of the diverted functions, and instructions "
          "each call adds")
    print(f"{'workload':<18} {'arm':<8} "
          + " ".join(f"{hook:>19}" for hook in HOOKS) + f" {'added/call':>11}")
    for workload, work in works.items():
        for arm in ("absent", "observe", "treated"):
            counted = [c for d in documents for c in d["calls"]
                       if (c["workload"], c["arm"]) == (workload, arm)]
            rates = [fmean(c[hook] / c["segments"] for c in counted)
                     for hook in HOOKS]
            row = (f"{workload:<18} {arm:<8} "
                   + " ".join(f"{rate:19.3f}" for rate in rates))
            if arm != "absent":
                percent, _ = work.at_equal_packets(arm)
                row += f" {percent / 100 * work.segment() / sum(rates):11.0f}"
            print(row)


def main():
    documents = [json.loads(Path(name).read_text()) for name in sys.argv[1:]]
    works = {workload: Work(documents, workload) for workload in dict.fromkeys(
        run["workload"] for run in documents[0]["runs"])}
    print(f"kernel {documents[0]['kernel']}; added, percent, {len(documents)} "
          "seeds: at equally many packets, +- two standard errors")
    table(works, judged)
    print("\nto all transfers: mean (least..most) of the seeds; packet "
          "patterns differ by chance")
    table(works, spread)
    calls(documents, works)
    # Of all arms together; a few at the end of slow start are normal.
    for document in documents:
        lost = {k: v for k, v in document["retransmitted"].items() if v}
        if lost:
            print(f"seed {document['seed']}: segments retransmitted: {lost}")
    verdicts = [verdict(arm, *work.at_equal_packets(arm))
                for work in works.values() for arm in LIMITS]
    print("! misses the limit in the heading, ? cannot be told from it; judged "
          f"by the first table: {verdicts.count('!')} missed, "
          f"{verdicts.count('?')} undecided")
    return int("!" in verdicts)


if __name__ == "__main__":
    sys.exit(main())
