# SPDX-License-Identifier: GPL-2.0-only
"""Instructions that the recording of msstune diagnose, and its samples and counts of
calls, add to a packet of a load.  Runs in the deterministic guest, where a nanosecond
is an instruction and the load keeps the one CPU busy: its time is all that was
executed, also pathprof's own threads.

Observing changes how many acknowledgements flow, and with them the mean cost of a
packet: runs with as many packets are compared, as by tests/bench/overhead.
Starting and stopping pathprof is not part of the load's time, and is printed.  Samples
are taken all the time.  Calls are counted until there are enough, which the loads here
reach in one slice of an interval of 3 s: their part is weighted so.
"""
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune.facts import (calls as collect_calls, collect, perf_events,  # noqa: E402
                           profile_recorder, samples)

#: Share of the load's instructions.
LIMIT = 0.01
RUNS = int(os.environ.get("MSSTUNE_RUNS", "3"))
#: How long the loads last, s.  The limit is for 2 s: in 1 s the first burst, which
#: begins at once, weighs more.
SECONDS = int(os.environ.get("MSSTUNE_SECONDS", "2"))
INTERVAL = 3.0      # s, the default of diagnose
SAMPLES, CALLS = "samples", "counts of calls"
#: Arguments of tcpload rounds.
LOADS = {
    "ping-pong": ["--answers", "--size", "1", "--count", str(30_000 * SECONDS)],
    "64 KB writes": ["--size", "65536", "--count", str(10_000 * SECONDS)],
}
PACKETS = Path("/sys/class/net/lo/statistics/rx_packets")


def table():
    """The benchmark's comparison of runs."""
    path = TOP / "tests/bench/overhead/table.py"
    spec = importlib.util.spec_from_file_location("table", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load(words, prepare=lambda pid: None):
    """A run, as the benchmark stores it.  @prepare: takes the load's id before it
    begins."""
    # Stopped by its own shell until all is prepared.
    with subprocess.Popen(["sh", "-c", 'kill -STOP $$; exec tcpload rounds "$@"', "sh",
                           *words], stdout=subprocess.DEVNULL) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)
        prepare(process.pid)
        packets, start = int(PACKETS.read_text()), time.monotonic_ns()
        process.send_signal(signal.SIGCONT)
        if process.wait():
            raise subprocess.CalledProcessError(process.returncode, "tcpload")
    return {"ns": time.monotonic_ns() - start, "after_ns": 0, "workload": "",
            "rounds": 1, "packets": int(PACKETS.read_text()) - packets}


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def recorded(words):
    """A run, its profile's facts, and CPU seconds of pathprof, all in."""
    recorder = profile_recorder.Recorder()
    recorder.start()
    assert not recorder.missing, recorder.missing
    run = load(words)
    before = children()
    document = json.loads(recorder.stop().read_text())
    used = children() - before
    recorder.close()
    return run, document, used


def probed(words, what):
    """A run with samples or counts, and how many there are."""
    sampler = samples.Sampler([0], {os.getpid()}) if what == SAMPLES else None
    counters = []

    def prepare(pid):
        if what == CALLS:
            counters.extend(perf_events.calls(function, pid)
                            for function in collect_calls.FUNCTIONS.values())
    run = load(words, prepare)
    counted = sum(map(perf_events.count, counters))
    for counter in counters:
        os.close(counter)
    if sampler:
        counted = sum(samples.joined(sampler.counted()).values())
        sampler.close()
    return run, counted


def probes(added_to):
    for name, words in LOADS.items():
        load(words)
        plain, total = [load(words) for _ in range(RUNS)], 0.0
        for what, part in ((SAMPLES, 1.0), (CALLS, collect.SLICE / INTERVAL)):
            runs = [probed(words, what) for _ in range(RUNS)]
            added, base, alike = added_to({"runs": plain}, {"runs": [
                run for run, _ in runs]}, "", 1)
            total += added / base * part
            print(f"{name}: {runs[0][1]:,} {what} add {added / base:+.2%} to "
                  f"{base:,.0f} ns a packet, {added / base * part:+.2%} in a diagnosis")
        print("ok" if alike and total <= LIMIT else "not ok",
              f"samples and counts in a load: {name}")


def main():
    added_to = table().added
    probes(added_to)
    for name, words in LOADS.items():
        load(words)     # the first one also waits for the host's files
        plain, profiled = [], []
        for _ in range(RUNS):
            plain.append(load(words))
            run, document, used = recorded(words)
            profiled.append(run)
        added, base, alike = added_to({"runs": plain}, {"runs": profiled}, "", 1)
        # A guest that waits for its host's disk has a clock that leaps.
        took = sorted(run["ns"] / run["packets"] for run in plain)
        if took[-1] > 1.05 * took[0]:
            alike = False
            print(f"{name}: runs without differ by {took[-1] / took[0] - 1:.0%}")
        print(f"{name}: {base:,.0f} ns a packet, recorded {added / base:+.2%} (packets "
              + ", ".join(f"{p['packets']:,}" for p in plain) + " without, "
              + ", ".join(f"{p['packets']:,}" for p in profiled)
              + f" with); {document['account']['sampled']} packets in "
              f"{document['counters']['windows']} bursts; pathprof used {used:.2f} s "
              "of CPU time with start and stop")
        print("ok" if alike and added <= LIMIT * base else "not ok",
              f"recording a load: {name}")
    # It must last longer than pathprof takes to start.
    with subprocess.Popen(["tcpload", "rounds", "--answers", "--size", "1", "--count",
                           "100000000"], stdout=subprocess.DEVNULL) as running:
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
