#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Instructions that msstune's samples and counts of calls add to a packet of a load,
as profile_budget.py measures those of its recording.

Samples are taken all the time.  Calls are counted until there are enough, which the
loads here reach in one slice of an interval of 3 s: their part is weighted so.
"""
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import profile_budget as budget  # noqa: E402
from msstune import collect, collect_calls, collect_samples, perf_events  # noqa: E402

INTERVAL = 3.0      # s, the default of diagnose
SAMPLES, CALLS = "samples", "counts of calls"


def load(words, what):
    """A run of the load with samples, counts or neither."""
    sampler = collect_samples.Sampler([0], {os.getpid()}) if what == SAMPLES else None
    packets, start = int(budget.PACKETS.read_text()), time.monotonic_ns()
    counters = []
    # Stopped by its own shell until the counters are there.
    with subprocess.Popen(["sh", "-c", 'kill -STOP $$; exec tcpload rounds "$@"', "sh",
                           *words], stdout=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        if what == CALLS:
            counters = [perf_events.calls(function, process.pid)
                        for function in collect_calls.FUNCTIONS.values()]
        packets, start = int(budget.PACKETS.read_text()), time.monotonic_ns()
        process.send_signal(18)     # SIGCONT
        assert process.wait() == 0
    ns = time.monotonic_ns() - start
    counted = sum(map(perf_events.count, counters))
    for counter in counters:
        os.close(counter)
    if sampler:
        counted = sum(collect_samples.joined(sampler.counted()).values())
        sampler.close()
    return {"ns": ns, "after_ns": 0, "workload": "", "rounds": 1, "packets": int(
        budget.PACKETS.read_text()) - packets}, counted


def main():
    added_to = budget.table().added
    for name, words in budget.LOADS.items():
        load(words, "")
        runs = {what: [load(words, what) for _ in range(budget.RUNS)]
                for what in ("", SAMPLES, CALLS)}
        total = 0.0
        for what, part in ((SAMPLES, 1.0), (CALLS, collect.SLICE / INTERVAL)):
            added, base, alike = added_to(
                {"runs": [run for run, _ in runs[""]]},
                {"runs": [run for run, _ in runs[what]]}, "", 1)
            total += added / base * part
            print(f"{name}: {runs[what][0][1]:,} {what} add {added / base:+.2%} to "
                  f"{base:,.0f} ns a packet, {added / base * part:+.2%} in a diagnosis")
        print("ok" if alike and total <= budget.LIMIT else "not ok",
              f"samples and counts in a load: {name}")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
