#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a guest: record the named workloads, each in namespaces of its own.
Each round is one run without pathprof, for the total cost, and one under
`pathprof record --sample 1`, for the cost of each path and stage.  Writes
FOLDER/WORKLOAD-SEED.json for each round: a profile, with the result of the
unprofiled run as its member "load" (profile-format.rst).

With "functions" instead of "no" it also writes FOLDER/WORKLOAD.functions, the
calls of each function of the kernel in a shortened run.

A workload can be a user's: NAME=COMMAND.  The command runs in a shell in one
namespace, the name of the other is in PEER, its address in PEER_ADDRESS.

usage: measure.py LOAD PATHPROF FOLDER FIRST-SEED ROUNDS no|functions WORKLOAD...
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from workloads import named

# Seconds of guest time that the kernel has to remove namespaces.
TEARDOWN = 2


def first_come(pid):
    """It runs until it must wait."""
    os.sched_setscheduler(pid, os.SCHED_FIFO, os.sched_param(1))


@contextmanager
def all_first_come():
    """Both ends and the softirq thread run until they must wait, so that the
    scheduler's own clock does not decide who runs.  Not while namespaces are
    made and removed: a writer of disable_ipv6 would spin forever on a lock held
    by a kernel thread that never runs."""
    Path("/proc/sys/kernel/sched_rt_runtime_us").write_text("-1")
    for task in Path("/proc").glob("[0-9]*/comm"):
        if task.read_text().startswith("ksoftirqd/"):
            first_come(int(task.parent.name))
    first_come(0)
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def run(*argv, **options):
    done = subprocess.run([str(word) for word in argv], capture_output=True,
                          text=True, check=False, **options)
    if done.returncode:
        sys.exit(f"record: {' '.join(map(str, argv))}: "
                 f"{done.stderr or done.stdout}")
    return done.stdout


class Bed:
    """Namespaces a and b, joined by veth, set up for a workload."""

    def __init__(self, workload):
        for ns in "ab":
            run("ip", "netns", "add", ns)
            run("ip", "-n", ns, "link", "set", "lo", "up")
            run("ip", "netns", "exec", ns, "sysctl", "-qw",
                "net.ipv4.tcp_no_metrics_save=1",
                "net.ipv6.conf.default.disable_ipv6=1")
        run("ip", "link", "add", "veth0", "netns", "a", "address",
            "02:00:00:00:00:01", "type", "veth", "peer", "name", "veth0",
            "netns", "b", "address", "02:00:00:00:00:02")
        for n, ns in enumerate("ab", 1):
            run("ip", "-n", ns, "addr", "add", f"10.9.0.{n}/24", "dev",
                "veth0")
            run("ip", "netns", "exec", ns, "ethtool", "-K", "veth0",
                *workload.features.split())
            run("ip", "-n", ns, "link", "set", "veth0", "mtu", workload.mtu,
                "up")
            # A stale neighbour entry costs 95 instructions per packet.
            run("ip", "-n", ns, "neigh", "add", f"10.9.0.{3 - n}", "lladdr",
                f"02:00:00:00:00:0{3 - n}", "nud", "permanent", "dev", "veth0")
            if workload.delay_us:
                run("tc", "-n", ns, "qdisc", "add", "dev", "veth0", "root",
                    "netem", "limit", 10000, "delay",
                    f"{workload.delay_us}us")
        if workload.drop_each:
            # Every N-th packet, not a random one: equally many in each run.
            # Dropped at the receiver: TCP notices drops of its own host.
            run("tc", "-n", "b", "qdisc", "add", "dev", "veth0", "clsact")
            run("tc", "-n", "b", "filter", "add", "dev", "veth0", "ingress",
                "matchall", "action", "gact", "ok", "random", "determ",
                "drop", workload.drop_each)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for ns in "ab":
            run("ip", "netns", "del", ns)
        time.sleep(TEARDOWN)


def arguments(workload, warm_up=False):
    """One run, from namespace a to b."""
    inside = ["ip", "netns", "exec", "a"]
    if workload.command:
        return [*inside, "env", "PEER=b", "PEER_ADDRESS=10.9.0.2", "sh", "-c",
                workload.command]
    load = workload.warm_up if warm_up else workload.load
    return [*inside, "tcpload", *load.split(), "--to", "b", "--address",
            "10.9.0.2", "--device", "veth0"]


def packets():
    """IP packets in and out of namespace a, over any device."""
    lines = [line.split() for line in run(
        "ip", "netns", "exec", "a", "cat", "/proc/net/snmp").splitlines()]
    names, values = [words for words in lines if words[0] == "Ip:"]
    ip = dict(zip(names, values))
    return int(ip["InReceives"]) + int(ip["OutRequests"])


def result(output):
    """The object that a load printed last, or None."""
    try:
        load = json.loads(output.splitlines()[-1])
        return {key: load[key] for key in ("ns", "packets", "bytes")
                if key != "bytes" or key in load}
    except (IndexError, KeyError, TypeError, ValueError):
        return None


def unprofiled(workload, command, env):
    """What a run without pathprof took.  A user's command may print it as
    tcpload does; otherwise its time and packets are counted here."""
    if not workload.command:
        return json.loads(run(*command, env=env))
    before, start = packets(), time.monotonic_ns()
    output = run(*command, env=env)
    ns = time.monotonic_ns() - start
    return result(output) or {"ns": ns, "packets": packets() - before}


def record(workload, pathprof, output, seed):
    """One round: the unprofiled run, then the profiled one, one file."""
    command = arguments(workload)
    # pathprof compares recordings of one command only: no option for the seed.
    env = {**os.environ, "TCPLOAD_SEED": str(seed)}
    load = unprofiled(workload, command, env)
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile"
        run(pathprof, "record", "--sample", 1, *workload.record.split(),
            "-o", profile, "--", *command, env=env)
        content = json.loads(profile.read_text())
    content["load"] = load
    output.write_text(json.dumps(content) + "\n")
    return load


def count_functions(workload, output):
    """Calls of each function while a shortened run lasts, as {name: calls}; no
    file where the kernel cannot count them."""
    tracing = Path("/sys/kernel/tracing")
    switch = tracing / "function_profile_enabled"
    if not (tracing / "trace").exists():
        run("mount", "-t", "tracefs", "tracefs", tracing)
    if not switch.exists():
        return
    switch.write_text("1")
    run(*arguments(workload, warm_up=True))
    switch.write_text("0")
    calls = {}
    for table in (tracing / "trace_stat").glob("function*"):
        for line in table.read_text().splitlines():
            words = line.split()
            if len(words) > 1 and words[1].isdigit():
                calls[words[0]] = calls.get(words[0], 0) + int(words[1])
    output.write_text(json.dumps(calls) + "\n")


def main():
    load, pathprof, folder, first, rounds, functions, *names = sys.argv[1:]
    # Reading a program over 9p takes longer than running it.
    programs = Path(tempfile.mkdtemp())
    shutil.copy(load, programs / "tcpload")
    shutil.copy(pathprof, programs / "pathprof")
    os.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    for name, workload in map(named, names):
        with Bed(workload) as _, all_first_come():
            run(*arguments(workload, warm_up=True))
            for seed in range(int(first), int(first) + int(rounds)):
                done = record(workload, "pathprof",
                              Path(folder) / f"{name}-{seed}.json", seed)
                if not done["packets"]:
                    sys.exit(f"record: {name}: no packet in namespace a")
                print(f"{name:<10} seed {seed:3} {done['packets']:7} packets"
                      f"{done['ns'] / done['packets']:12.2f} ns each",
                      flush=True)
            if functions == "functions":
                count_functions(workload, Path(folder) / f"{name}.functions")


if __name__ == "__main__":
    main()
