#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a deterministic guest: count the instructions of a packet while
nothing, pathprof, or another tracer observes it.

One guest nanosecond is one instruction, there is one CPU, and the loads keep it
busy.  The time of a load is therefore all that was executed, including the
threads of the tool.  The run time of these threads after the load, until the
tool has caught up, is added.

usage: measure.py LOAD PATHPROF LEAST RESULTS.json [ARM-REGEX [WORKLOAD-REGEX]]
LEAST, and LEAST.bpf.o beside it, are of least.c and least.bpf.c.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

#: Options of tcpload rounds; size; rounds of a short and of a long run.  A long
#: run holds many sampling windows.
WORKLOADS = {
    "ping-pong": (["--answers"], 1, 1000, 100000),
    "veth 1500": (["--to", "b", "--address", "10.9.0.2", "--device", "veth0"],
                  65536, 16, 2560),
    "64 KB writes": ([], 65536, 128, 20480),
}
#: Functions, and the name of their packet argument.
HOOKS = {"ip_output": "skb", "__dev_queue_xmit": "skb",
         "dev_hard_start_xmit": "first", "ip_rcv": "skb", "tcp_v4_rcv": "skb",
         "tcp_rcv_established": "skb"}
LATENCY = """
kfunc:tcp_v4_rcv { @at[(uint64)args->skb] = nsecs; }
kfunc:tcp_rcv_established / @at[(uint64)args->skb] /
{ @ns = hist(nsecs - @at[(uint64)args->skb]);
  delete(@at[(uint64)args->skb]); }
"""
PRINT = "".join(f"""
kfunc:{hook} {{ printf("%llx %llu %s\\n", (uint64)args->{packet}, nsecs, probe); }}
""" for hook, packet in HOOKS.items())
TRACEPOINTS = ["-e", "net:*", "-e", "skb:*", "-e", "tcp:*"]

#: Arm: command ({pp} is pathprof, {least} the program of least.c, {out} a file), and
#: how to recognise that it is attached: "fd" by --ready-fd, another text by its
#: output, a number by waiting so many seconds.  None: nothing runs.
ARMS = {
    "unprofiled": None,
    "pathprof default": (["{pp}", "record", "-o", "{out}"], "fd"),
    "pathprof --sample 1": (["{pp}", "record", "--sample", "1", "-o",
                             "{out}"], "fd"),
    "pathprof --fine": (["{pp}", "record", "--sample", "1", "--fine", "-o",
                         "{out}"], "fd"),
    "pathprof detached": None,
    **{f"least, {what}": (["{least}", "{least}.bpf.o", str(level)], "fd")
       for level, what in enumerate(("hooks", "clocks", "record", "facts", "sums"))},
    "bpftrace histogram": (["bpftrace", "-e", "BEGIN { printf(\"up\\n\"); }"
                            + LATENCY], "up"),
    "bpftrace 6 printf": (["bpftrace", "-e", "BEGIN { printf(\"up\\n\"); }"
                           + PRINT], "up"),
    "perf tracepoints": (["perf", "record", "-a", "-o", "{out}",
                          *TRACEPOINTS], 4),
    "function graph": (["trace-cmd", "record", "-p", "function_graph", "-o",
                        "{out}", "-l", "tcp_*", "-l", "ip_*", "-l", "__tcp_*",
                        "-l", "__ip_*", "-l", "skb_*", "-l", "__skb_*",
                        "-l", "dev_*", "-l", "__dev_*"], 20),
}


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"measure: {' '.join(argv)}: {done.stderr or done.stdout}")
    return done.stdout


def family(pid):
    """The process and its descendants."""
    children = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = stat.read_text()
        except OSError:
            continue
        parent = int(text.rpartition(")")[2].split()[1])
        children.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def run_time(pid):
    """Nanoseconds the threads of the family have run."""
    total = 0
    for one in family(pid):
        for thread in Path(f"/proc/{one}/task").glob("*/schedstat"):
            try:
                total += int(thread.read_text().split()[0])
            except OSError:
                pass  # it ended
    return total


class Tool:
    """A tracer that runs from start() to stop()."""

    def __init__(self, arm, tools, folder):
        self.spec = ARMS[arm]
        self.process = None
        self.out = folder / "out"
        self.log = folder / "log"
        if not self.spec:
            return
        command, ready = self.spec
        command = [word.replace("{pp}", tools["pp"]).replace("{least}", tools["least"])
                   .replace("{out}", str(self.out)) for word in command]
        keep, pipe = (), None
        if ready == "fd":
            pipe, theirs = os.pipe()
            keep = (theirs,)
            command += ["--ready-fd", str(theirs)]
        before = time.monotonic_ns()
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log,
                                            pass_fds=keep)
        if pipe:
            os.close(theirs)
            if os.read(pipe, 1) != b"\n":
                sys.exit("measure: " + self.log.read_text())
        elif isinstance(ready, str):
            while ready not in self.log.read_text():
                if self.process.poll() is not None:
                    sys.exit("measure: " + self.log.read_text())
                time.sleep(0.1)
        else:
            time.sleep(ready)  # it reports nothing
        self.start_ns = time.monotonic_ns() - before

    def still_there(self):
        """A tool that has ended would seem to cost nothing."""
        if self.process and self.process.poll() is not None:
            sys.exit("measure: it has ended: " + self.log.read_text())

    def catch_up(self):
        """Its run time after the load, until idle for 100 ms, at most 10 s."""
        if not self.process:
            return 0
        first = last = run_time(self.process.pid)
        for _ in range(100):
            time.sleep(0.1)
            now = run_time(self.process.pid)
            if now == last:
                break
            last = now
        return last - first

    def memory(self):
        """Peak resident KiB of the largest of its processes."""
        if not self.process:
            return 0
        sizes = []
        for pid in family(self.process.pid):
            try:
                text = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            sizes += [int(n) for n in re.findall(r"VmHWM:\s+(\d+)", text)]
        return max(sizes, default=0)

    def stop(self):
        """Nanoseconds until it had ended."""
        if not self.process:
            return 0
        before = time.monotonic_ns()
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        return time.monotonic_ns() - before


def lost_events(arm, log, out):
    """Events that the tool reports as lost; None if it reports nothing."""
    if arm.startswith("pathprof") and out.exists():
        account = json.loads(out.read_text())["account"]
        return sum(account[word] for word in
                   ("no_slot", "map_full", "abandoned", "sock_clash",
                    "stale", "evicted") if word in account)
    if arm.startswith("bpftrace"):
        return sum(int(n) for n in re.findall(r"Lost (\d+) events", log))
    return None


def transfer(load, name, rounds):
    options, size, _, _ = WORKLOADS[name]
    command = [load, "rounds", "--count", str(rounds), "--size", str(size),
               *options]
    if name.startswith("veth"):
        command = ["ip", "netns", "exec", "a", *command]
    return json.loads(run(*command))


def lay_out():
    run("sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")
    for ns in "ab":
        run("ip", "netns", "add", ns)
        run("ip", "netns", "exec", ns, "sysctl", "-qw",
            "net.ipv4.tcp_no_metrics_save=1")
    run("ip", "link", "add", "veth0", "netns", "a", "type", "veth", "peer",
        "name", "veth0", "netns", "b")
    for n, ns in enumerate("ab", 1):
        run("ip", "-n", ns, "addr", "add", f"10.9.0.{n}/24", "dev", "veth0")
        run("ip", "netns", "exec", ns, "ethtool", "-K", "veth0", "gso", "off",
            "tso", "off", "gro", "off")
        run("ip", "-n", ns, "link", "set", "veth0", "mtu", "1500", "up")


def measure(arm, load, tools, folder, names):
    tool = Tool(arm, tools, folder)
    runs = []
    for name in names:
        _, _, short, long = WORKLOADS[name]
        transfer(load, name, short)  # warm-up
        tool.catch_up()
        for rounds in {"unprofiled": [short] * 3 + [long],
                       "pathprof default": [long]}.get(arm, [short] * 3):
            done = transfer(load, name, rounds)
            done["after_ns"] = tool.catch_up()
            runs.append({"workload": name, "rounds": rounds, **done})
            print(f"{arm:<20} {name:<13} {done['packets']:7} packets "
                  f"{(done['ns'] + done['after_ns']) / done['packets']:10.1f}",
                  flush=True)
    tool.still_there()
    memory = tool.memory()
    stop = tool.stop()
    log = tool.log.read_text(errors="replace") if tool.process else ""
    return {"arm": arm, "runs": runs, "memory_kib": memory,
            "start_ns": tool.start_ns if tool.process else 0, "stop_ns": stop,
            "lost": lost_events(arm, log, tool.out) if tool.process else None}


def main():
    load, pathprof, least, results = sys.argv[1:5]
    only, which = [*sys.argv[5:], "", ""][:2]
    names = [name for name in WORKLOADS if re.search(which, name)]
    folder = Path("/tmp/overhead")
    folder.mkdir()
    # Reading a program or a library over 9p takes longer than running it, and
    # the clock jumps while the guest waits for the host.
    linked = run("ldd", pathprof)
    for file in (load, pathprof, least, f"{least}.bpf.o",
                 *re.findall(r"=> (/\S+)", linked)):
        shutil.copy(file, folder)
    os.environ["LD_LIBRARY_PATH"] = ":".join(
        [str(folder), os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")
    load = str(folder / Path(load).name)
    tools = {"pp": str(folder / Path(pathprof).name),
             "least": str(folder / Path(least).name)}
    lay_out()
    time.sleep(5)  # the kernel's own start is over
    arms = []
    for arm in ARMS:
        if not re.search(only, arm):
            continue
        if ARMS[arm] and ARMS[arm][0][0][0] != "{" \
                and not shutil.which(ARMS[arm][0][0]):
            print(f"{arm:<20} not installed", flush=True)
            continue
        arms.append(measure(arm, load, tools, folder, names))
        (folder / "out").unlink(missing_ok=True)
    Path(results).write_text(json.dumps(
        {"format": "pathprof-overhead", "version": 1,
         "kernel": os.uname().release, "arms": arms}, indent=1) + "\n",
        encoding="utf-8")


if __name__ == "__main__":
    main()
