#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a deterministic guest: count the instructions of one data segment
without the module, with the module idle, with it active, and after rmmod.

One guest nanosecond is one instruction, and nothing delays the packets.  The
time of a transfer that is limited by the CPU is therefore the work of both
ends.  Writes one JSON document; the script run boots the guest and makes the
table.

usage: measure.py MODULE.ko SEED REPEAT WRITE [WORKLOAD-REGEX]
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

# Arm: insmod's parameters; None: no module.
ARMS = {"absent": None, "observe": [], "treated": ["rx_frac=64", "tx_frac=64"],
        "removed": None}
TRACING = Path("/sys/kernel/tracing")
HOOKS = ["tcp_current_mss", "__tcp_select_window"]

#: MTU (0: loopback), segmentation offload, receive buffer, bytes to send.
#: The buffer is fixed, since with autotuning transfers would differ.  It holds
#: more segments than seg_max, and fewer packets than the 1000 that a veth end
#: queues before it drops.
WORKLOADS = {
    "veth 1500 gso on": (1500, True, 1 << 20, 48 << 20),
    "veth 1500 gso off": (1500, False, 1 << 20, 32 << 20),
    "veth 9000 gso on": (9000, True, 1 << 20, 64 << 20),
    "veth 9000 gso off": (9000, False, 1 << 20, 64 << 20),
    "loopback 65536": (0, True, 6 << 20, 128 << 20),
}


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"measure: {' '.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


def first_come():
    """Each end runs until it must wait, so that the scheduler's own clock does
    not decide how much is sent between two switches."""
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


class Bed:
    """The ends of one workload; they stay for all arms."""

    def __init__(self, name):
        self.name = name
        mtu, offload, buffer, self.size = WORKLOADS[name]
        tag = name.replace(" ", "-")
        self.ends = [f"{tag}-tx", f"{tag}-rx"] if mtu else [tag]
        self.address = "10.9.0.2" if mtu else "127.0.0.1"
        for end in self.ends:
            run("ip", "netns", "add", end)
            # No tail loss probes: a closed window looks like a lost tail, and
            # the amount retransmitted would differ between transfers.
            run("ip", "netns", "exec", end, "sysctl", "-qw",
                "net.ipv4.tcp_no_metrics_save=1",
                "net.ipv4.tcp_moderate_rcvbuf=0",
                "net.ipv4.tcp_early_retrans=0",
                f"net.ipv4.tcp_rmem=4096 {buffer} {buffer}")
            run("ip", "-n", end, "link", "set", "lo", "up")
        if mtu:
            self.join(mtu, offload)

    def join(self, mtu, offload):
        run("ip", "link", "add", "veth0", "netns", self.ends[0], "type",
            "veth", "peer", "name", "veth0", "netns", self.ends[1])
        for n, end in enumerate(self.ends, 1):
            run("ip", "-n", end, "addr", "add", f"10.9.0.{n}/24", "dev",
                "veth0")
            if not offload:
                run("ip", "netns", "exec", end, "ethtool", "-K", "veth0",
                    "gso", "off", "tso", "off", "gro", "off")
            run("ip", "-n", end, "link", "set", "veth0", "mtu", str(mtu), "up")

    def transfer(self, port, write, share=1):
        sent = self.counter("OutSegs")
        result = json.loads(run(
            "tcpload", "bulk", "--from", self.ends[0], "--to", self.ends[-1],
            "--address", self.address, "--port", str(port),
            "--write", str(write), "--writes", str(self.size // share // write),
            preexec_fn=first_come))
        # CPU time includes start and end of two processes.
        return {"workload": self.name, "instructions": result["ns"],
                "cpu": result["cpu_ns"], "segments": result["segments"],
                "bytes": result["bytes"],
                "packets": self.counter("OutSegs") - sent}

    def counter(self, name):
        """One TCP counter of the kernel, the sum of both ends."""
        total = 0
        for end in self.ends:
            text = run("ip", "netns", "exec", end, "cat", "/proc/net/snmp")
            names, values = re.findall(r"^Tcp: (.*)$", text, re.M)
            total += int(dict(zip(names.split(), values.split()))[name])
        return total


def counted(bed, port, write):
    """A transfer under kprobes on the diverted functions: the calls of each.
    Separate from the timed transfers, since counting costs instructions."""
    (TRACING / "kprobe_events").write_text(
        "".join(f"p:cost_{n} {hook}\n" for n, hook in enumerate(HOOKS)))
    events = [TRACING / f"events/kprobes/cost_{n}" for n in range(len(HOOKS))]
    for event in events:
        (event / "trigger").write_text("hist:keys=common_type")
    result = bed.transfer(port, write, share=16)
    for hook, event in zip(HOOKS, events):
        hist = (event / "hist").read_text()
        result[hook] = int(re.search(r"Hits: (\d+)", hist).group(1))
        (event / "trigger").write_text("!hist:keys=common_type")
    (TRACING / "kprobe_events").write_text("")
    return result


def measure(beds, module, seed, repeat, write):
    runs, calls = [], []
    for arm, parameters in ARMS.items():
        if parameters is not None:
            run("insmod", module, *parameters)
        for bed in beds:  # warm-up: the first use after a change
            bed.transfer(6000, write, share=16)
        for turn in range(repeat):
            for bed in beds:
                # The same ports in every arm: the same hash chains.
                port = 6000 + 16 * seed + turn
                done = {"arm": arm, "turn": turn,
                        **bed.transfer(port, write)}
                print(f"{bed.name:<18} {arm:<8} "
                      f"{done['instructions'] / done['segments']:9.1f}",
                      flush=True)
                runs.append(done)
        if arm != "removed":
            for bed in beds:
                calls.append({"arm": arm, **counted(bed, 6000, write)})
        if parameters is not None:
            run("rmmod", "mssfrac")
    return runs, calls


def main():
    module, results = sys.argv[1:3]
    seed, repeat, write = map(int, sys.argv[3:6])
    only = sys.argv[6] if len(sys.argv) > 6 else ""
    if not (TRACING / "kprobe_events").exists():
        run("mount", "-t", "tracefs", "tracefs", str(TRACING))
    # Otherwise the real-time class is paused for 5 % of each second.
    Path("/proc/sys/kernel/sched_rt_runtime_us").write_text("-1")
    beds = [Bed(name) for name in WORKLOADS if re.search(only, name)]
    runs, calls = measure(beds, module, seed, repeat, write)
    Path(results).write_text(json.dumps({
        "kernel": os.uname().release, "seed": seed, "write": write,
        "runs": runs, "calls": calls,
        "retransmitted": {b.name: b.counter("RetransSegs") for b in beds}},
        indent=1) + "\n")


if __name__ == "__main__":
    main()
