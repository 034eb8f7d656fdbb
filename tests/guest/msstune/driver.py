# SPDX-License-Identifier: GPL-2.0-only
"""Injects faults of the catalogue (faults_*.py, loads_healthy.py) into traffic between
two namespaces, one at a time, and judges the first diagnosis of msstune.  Prints
"ok NAME" or "not ok NAME" for each case, and remarks.

usage: driver.py list|run GROUP [--only PATTERN] [--seed N] [--draws N]
  GROUP     ends, path, host, cost, loss or healthy
  --only    cases whose name matches this pattern
  --seed    of all parameters; default: MSSTUNE_SEED, or 1
  --draws   of each case of the group loss (8)
FACTS=DIR in the environment: store the facts of each case in DIR.
MSSTUNE_APPLY=1 in the environment: apply what msstune proposes in each case, and undo
it: a case then fails if the load is harmed, or if something is not as before.

A case is a function of a Draw.  It draws its parameters at once and returns a dict:
topology     makes the namespaces (testbed.py)
before       a function or shell commands that follow
a, b, host   sysctls of an end, or of the host
servers, clients
             lists of programs.  Clients start when a recording has started: a slow
             start of pathprof then makes no connection older.
warm, late, after
             seconds from the first connection until @late (commands, or a function of
             the programs' ids), and from there until the tool looks
at           the namespace in which it looks
want         the right limits of the first diagnosis; none: no fault, no proposal
unsure       limits that are right but for confidence "high"
never        parts of settings that must not be proposed
number       what the first diagnosis must name among its numbers
proof        a counter and by how much it grows at least meanwhile: the fault is there
cpus         how many the case needs
"""
import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import programs  # noqa: E402
import testbed  # noqa: E402
from testbed import A, B, inside, put, sh  # noqa: E402
from msstune.causes import diagnose, plan  # noqa: E402
from msstune.facts import collect, profile_recorder, throughput  # noqa: E402

GROUPS = ("ends", "path", "host", "cost", "loss", "healthy")
MODULES = """act_mirred act_police bonding bridge cls_matchall dummy 8021q ifb ip_gre
ipvlan macvlan nf_conntrack nf_tables nft_chain_nat nft_connlimit nft_ct nft_limit
nft_masq nft_nat nft_numgen nft_reject_inet sch_cake sch_fq sch_fq_codel sch_hfsc
sch_htb sch_ingress sch_netem sch_prio sch_red sch_tbf tcp_diag veth vxlan"""
#: Seconds that the tool looks, with a recording and without.
RECORDED, PLAIN = 3.0, 2.0
#: What an injected fault that is removed gains at least.
GAIN = 1.1
AUTO = ("auto --yes --pairs 8 --block 2s --settle 500ms --rounds 1 "
        "--allow-disruptive --no-report").split()
SHELL_ENV = {"PATH": f"{testbed.TOP}/build/bin:{os.environ['PATH']}"}
#: Group: entries of the catalogue.
CATALOGUE = {group: [] for group in GROUPS}


class Draw:
    """Parameters of one case, at random from a stated range.  They depend on the seed
    and on the name of the case only, so that another case changes none of them."""

    def __init__(self, name, seed):
        self.source, self.drawn = random.Random(f"{seed} {name}"), {}

    def __call__(self, what, low, high):
        """An integer from @low to @high."""
        if what not in self.drawn:
            self.drawn[what] = self.source.randint(low, high)
        return self.drawn[what]

    def one(self, what, *choices):
        return choices[self(what, 0, len(choices) - 1)]

    def graded(self, what, mild, strong):
        """An integer from the range of the severity, which is drawn as well."""
        return self(what, *self.one("strong", mild, strong))

    def either(self):
        return self.one("IPv6", testbed.ADDRESS, testbed.IPV6)

    def seen(self, sender, receiver, source=A, target=B):
        """Where to look, at the end that sends or receives, and what is right there."""
        at, want = self.one("seen", (source, sender), (target, receiver))
        return dict(at=at, want=want)

    def rest(self, low, high, fault):
        """A pause of writers of a healthy load, so that no CPU is full."""
        return 0.0 if fault else self("ms of rest", low, high) / 1000

    @property
    def port(self):
        return self("port", 2000, 30000)


class Entry:
    """A case.  @record: the profile is needed; otherwise a recording is drawn.
    @cure: "plan" or "auto" removes the fault, which is a case of its own.  @of,
    @share: so many draws, of which this share is named."""

    def __init__(self, name, function, record=False, cure="", of=1, share=1.0):
        self.name, self.function, self.record = name, function, record
        self.cure, self.of, self.share = cure, of, share
        self.healthy = False

    def names(self):
        if self.of > 1:
            return [f"{self.name}: {self.share:.0%} are named",
                    f"{self.name}: none is wrong with high confidence"]
        return [self.name] + [f"{self.name}: msstune removes it"] * bool(self.cure)


def fault(group, name, twin="", **more):
    """The function that follows is a case.  @twin: the name of a healthy load over the
    same topology; the function then takes a second argument, @fault."""
    def keep(function):
        CATALOGUE[group].append(Entry(
            name, partial(function, fault=True) if twin else function, **more))
        if twin:
            healthy(twin, **more)(partial(function, fault=False))
        return function
    return keep


def healthy(name, record=False, **_):
    def keep(function):
        entry = Entry(name, function, record)
        entry.healthy = True
        CATALOGUE["healthy"].append(entry)
        return function
    return keep


def tell(*lines):
    print(*lines, sep="\n", flush=True)


# --- A case runs ------------------------------------------------------------------

def do(what, *args):
    if callable(what):
        what(*args)
    elif what:
        sh(what)


def look(name, at, record, go, proof, interval):
    """The facts of a namespace.  @go: starts the clients, once a recording runs."""
    counter, least = proof[:2]
    before = []

    class Recorder(profile_recorder.Recorder):
        def start(self):
            super().start()
            pids = go()
            before.extend((pids, counter(pids)))
    kept = collect.profile_recorder.Recorder
    try:
        if record:
            collect.profile_recorder.Recorder = Recorder
        else:
            pids = go()
            before.extend((pids, counter(pids)))
        with inside(at):
            facts = collect.collect(interval, record=record)
    finally:
        collect.profile_recorder.Recorder = kept
    grown = counter(before[0]) - before[1]
    tell(f"{name}: the counter grew by {grown}, at least {least} expected")
    if grown < least:
        raise ValueError("the fault or the load is not there")
    return facts


def run(entry, draw):
    """The facts of a case, and whether a removal of its fault, if asked for, works."""
    case = {"warm": 1.5, "after": 0.0, "late": None, "at": A, "want": (), "cpus": 1,
            "proof": (testbed.segments, 0 if entry.healthy else 20)} \
        | entry.function(draw)
    record = entry.record or bool(draw("recorded", 0, 1))
    tell(f"{entry.name}: " + ", ".join(f"{k} {v}" for k, v in draw.drawn.items()))
    if os.cpu_count() < case["cpus"]:
        raise ValueError(f"needs {case['cpus']} CPUs")
    applies = entry.cure or (os.environ.get("MSSTUNE_APPLY") and "plan")
    with ExitStack() as stack:
        stack.callback(testbed.clean)
        case.get("topology", testbed.pair)()
        for key, value in case.get("host", {}).items():
            path = Path("/proc/sys", key.replace(".", "/"))
            stack.callback(path.write_text, path.read_text())
            path.write_text(f"{value}\n")
        put(A, case.get("a", {}))
        put(B, case.get("b", {}))
        do(case.get("before"))
        ready, gate = os.pipe()
        stack.callback(lambda: (os.close(ready), os.close(gate)))

        def gated(function):
            def wait():
                os.read(ready, 1)
                function()
            return wait
        clients = case.get("clients", list)()
        if applies:
            clients = [*map(programs.renewed, clients)]
        pids = stack.enter_context(programs.running(
            *case.get("servers", list)(), *map(gated, clients)))

        def go():
            opened, until = testbed.opens(), time.monotonic() + 20
            os.write(gate, bytes(len(clients)))
            while clients and testbed.opens() == opened and time.monotonic() < until:
                time.sleep(0.1)     # a program loads slowly the first time
            time.sleep(case["warm"])
            do(case["late"], *[pids] * callable(case["late"]))
            time.sleep(case["after"])
            return pids
        facts = look(entry.name, case["at"], record, go, case["proof"],
                     case.get("interval", RECORDED if record else PLAIN))
        removed = removes(entry, case, facts, pids) if applies else True
    if os.environ.get("FACTS"):
        Path(os.environ["FACTS"], re.sub(r"\W+", "-", entry.name) + ".json").write_text(
            json.dumps(facts))
    return case, facts, removed


# --- It is judged -----------------------------------------------------------------

def first(facts):
    """Verdict, the first diagnosis of a fault (else the first), all diagnoses."""
    found = diagnose.diagnose(facts)
    wrong = [d for d in found if d.wrong and d.weight >= 5]
    return diagnose.verdict(found), (wrong or found or [None])[0], found


def judge(entry, case, facts):
    """Whether the first diagnosis and the proposals are right, and the diagnosis."""
    verdict, answer, found = first(facts)
    proposals = plan.propose(facts, found, plan.Wish())
    settings = [p.setting for p in proposals if p.setting]
    got = answer.limit if answer else "nothing"
    recorded = "recorded" in facts
    if entry.healthy:
        # Where a load has the whole CPU, that is what limits it.
        right = not settings and not any(
            d.wrong and d.weight >= 5 and d.limit != "cpu" for d in found)
    else:
        bad = [s for s in settings for word in case.get("never", ()) if word in s]
        right = not bad and (
            got in case["want"] or got in case.get("unsure", ())
            and (not answer or answer.confidence != "high")) and (
                not case.get("number") or case["number"] in answer.numbers)
    proposed = ", ".join(p.setting or "advice" for p in proposals) or "nothing"
    tell(f"{entry.name}: {verdict}; {got}, {answer.confidence if answer else '-'}; "
         f"proposes {proposed}; {'with' if recorded else 'without'} a recording, from "
         f"{case['at']}")
    if not right:
        tell(f"got {got}, expected {' or '.join(case['want']) or 'no fault'}; "
             f"missing {facts['missing']}",
             *[f"{d.weight:.1f} {d.subject} {d.limit}: {d.why} {json.dumps(d.numbers)}"
               for d in found[:4]])
    return right, answer


# --- The fault is removed -----------------------------------------------------------

def rate(end):
    """Bytes/s of new connections."""
    programs.count(programs.EPOCH)
    time.sleep(2.0)     # slow start
    with inside(end):
        return throughput.watch(lambda t: t >= 3.0, set())["bytes_per_s"]


def state(end):
    """What settings can change.  The kernel numbers queue disciplines."""
    def shown(*words):
        return re.sub(r"(qdisc \S+ )[0-9a-f]+:", r"\1", subprocess.run(
            ["ip", "netns", "exec", end, *words], capture_output=True, text=True,
            check=False).stdout)
    devices = re.findall(r"^\d+: ([^:@]+)", shown("ip", "-o", "link"), re.M)
    return [shown("sysctl", "net.ipv4"), shown("tc", "qdisc"), shown("ip", "route"),
            shown("ip", "-6", "route"), shown("ip", "-o", "link"),
            *[shown("ethtool", "-k", device) for device in devices]]


def removes(entry, case, facts, pids):
    """msstune applies its plan, or auto one of its own, as a user runs it; the load is
    faster, or not slower; a rollback restores all."""
    end = case["at"]
    with tempfile.TemporaryDirectory() as folder:
        def msstune(*words):
            done = subprocess.run(
                ["ip", "netns", "exec", end, "msstune", "--state", f"{folder}/state",
                 *words], capture_output=True, text=True, check=False,
                env={**os.environ, **SHELL_ENV})
            if done.returncode:
                tell(f"{entry.name}: msstune {words[0]}: status {done.returncode}",
                     *(done.stderr or done.stdout).splitlines())
            return done
        was, before = state(end), [rate(end) for _ in range(3)]
        if entry.cure == "auto":
            done = msstune(*AUTO, "-o", f"{folder}/results")
        else:
            Path(folder, "facts.json").write_text(json.dumps(facts))
            with programs.resting(pids):
                made = msstune("plan", "--facts", f"{folder}/facts.json", "--json")
                Path(folder, "plan.json").write_text(made.stdout)
                if not json.loads(made.stdout or "{}").get("settings"):
                    return not entry.cure
                done = msstune("apply", "--yes", "--timeout", "900",
                               "--allow-disruptive", f"{folder}/plan.json")
        after = [rate(end) for _ in range(3)]
        with programs.resting(pids):
            undone = msstune("rollback").returncode == 0 and state(end) == was
    old, new = statistics.median(before), statistics.median(after)
    gained = new > GAIN * old if entry.cure else max(after) > min(before) / GAIN
    tell(f"{entry.name}: " + " ".join(f"{r / 1e6:.3f}" for r in before) + " MB/s, "
         + " ".join(f"{r / 1e6:.3f}" for r in after) + " with what msstune set; "
         + ("restored" if undone else "NOT restored"))
    return not done.returncode and gained and undone


# --- All of a group -----------------------------------------------------------------

def verdicts(entry, seed):
    """Of each name of the entry."""
    try:
        if entry.of == 1:
            case, facts, removed = run(entry, Draw(entry.name, seed))
            right = judge(entry, case, facts)[0]
            if entry.cure:
                return [right, removed]
            return [right and removed]
        named = counted = wrong = 0
        for turn in range(entry.of):
            case, facts, _ = run(entry, Draw(entry.name, f"{seed} {turn}"))
            good, answer = judge(entry, case, facts)
            # A drawn path may lose nothing for some seconds.
            lost = any(f["d_total_retrans"] for f in facts["flows"])
            counted += lost
            named += good and lost
            wrong += bool(answer) and not good and answer.confidence == "high"
        tell(f"{entry.name}: {named} of {counted}")
        return [bool(counted) and named >= entry.share * counted, not wrong]
    except (OSError, subprocess.CalledProcessError, KeyError, ValueError) as error:
        tell(repr(error))
        return [False] * len(entry.names())


def main():
    parser = argparse.ArgumentParser(prog="driver.py")
    parser.add_argument("what", choices=("list", "run"))
    parser.add_argument("group", choices=GROUPS)
    parser.add_argument("--only", default="", type=re.compile)
    parser.add_argument("--seed", default=os.environ.get("MSSTUNE_SEED", "1"))
    parser.add_argument("--draws", type=int)
    args = parser.parse_args()
    for entry in CATALOGUE["loss"]:
        entry.of = args.draws or entry.of
    chosen = [entry for entry in CATALOGUE[args.group] if args.only.search(entry.name)]
    if args.what == "list":
        return print(*[name for entry in chosen for name in entry.names()], sep="\n")
    subprocess.run(["modprobe", "-a", *MODULES.split()], check=True)
    if not os.path.ismount("/sys/fs/cgroup"):
        sh("mount -t cgroup2 cgroup2 /sys/fs/cgroup")
    with tempfile.TemporaryDirectory() as folder:
        programs.FOLDER = Path(folder)
        for entry in chosen:
            for name, right in zip(entry.names(), verdicts(entry, args.seed)):
                tell(f"{'ok' if right else 'not ok'} {name}")
    return 0


if __name__ == "__main__":
    sys.modules["driver"] = sys.modules["__main__"]     # where cases register
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    import faults_cost  # noqa: F401
    import faults_ends  # noqa: F401
    import faults_host  # noqa: F401
    import faults_path  # noqa: F401
    import loads_healthy  # noqa: F401
    sys.exit(main())
