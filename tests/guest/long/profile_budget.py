#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Instructions that the recording of msstune diagnose adds to a load.  Runs in the
deterministic guest, where a nanosecond is an instruction and the load keeps the one
CPU busy: its time is all that was executed, also pathprof's own threads.

Starting and stopping pathprof is not part of the load's time, and is printed.
"""
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune import profile_recorder  # noqa: E402

#: Share of the load's instructions.
LIMIT = 0.01
RUNS = int(os.environ.get("MSSTUNE_RUNS", "1"))
#: Arguments of tcpload rounds, for some 1 s each: the first burst, which begins at
#: once, then weighs more than in a diagnosis of 2 s.
LOADS = {
    "ping-pong": ["--answers", "--size", "1", "--count", "30000"],
    "64 KB writes": ["--size", "65536", "--count", "10000"],
}


def load(words):
    """Its time, ns."""
    start = time.monotonic_ns()
    subprocess.run(["tcpload", "rounds", *words], check=True,
                   stdout=subprocess.DEVNULL)
    return time.monotonic_ns() - start


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def recorded(words):
    """The load's time, its profile's facts, and CPU seconds of pathprof, all in."""
    recorder = profile_recorder.Recorder()
    recorder.start()
    assert not recorder.missing, recorder.missing
    took = load(words)
    before = children()
    document = json.loads(recorder.stop().read_text())
    used = children() - before
    recorder.close()
    return took, document, used


def main():
    for name, words in LOADS.items():
        plain, profiled = [], []
        for _ in range(RUNS):
            plain.append(load(words))
            took, document, used = recorded(words)
            profiled.append(took)
        base = statistics.median(plain)
        added = statistics.median(profiled) / base - 1
        print(f"{name}: {base / 1e9:.2f} s, recorded {added:+.2%} (runs "
              + ", ".join(f"{p / base - 1:+.2%}" for p in [*plain, *profiled])
              + f"); {document['account']['sampled']} packets in "
              f"{document['counters']['windows']} bursts; pathprof used {used:.2f} s "
              "of CPU time with start and stop")
        print("ok" if added <= LIMIT else "not ok", f"recording a load: {name}")
    with subprocess.Popen(["tcpload", "rounds", *LOADS["ping-pong"]],
                          stdout=subprocess.DEVNULL) as running:
        done = subprocess.run(
            [TOP / "userspace/msstune/msstune.sh", "diagnose", "--interval", "2s",
             "--json"], capture_output=True, text=True, check=False)
        running.kill()
    document = json.loads(done.stdout or "{}")
    print(done.stderr, document.get("profile"), document.get("disagree"))
    good = document.get("profile") and document["profile"]["packets"] > 0
    print("ok" if good else "not ok", "diagnose has a profile of its traffic")


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
