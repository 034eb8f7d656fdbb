# SPDX-License-Identifier: GPL-2.0-only
"""Faults that the paths of packets show, and loads over the same topologies where
nothing is wrong.  Root's default recording runs in each case.  Prints "ok NAME" or
"not ok NAME" for each case, and remarks.

usage: path_faults.py list|faults|healthy|NAME...
FACTS=DIR in the environment: store the facts of each case in DIR.

These injections were written, and run once, before the rules of rules_path.py.
"""
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/guest"))

import faults  # noqa: E402
import wide_faults as wide  # noqa: E402
from faults import ADDRESS, put, sh  # noqa: E402
from mssab.netns import inside  # noqa: E402
from msstune import collect, plan, profile_recorder, settings  # noqa: E402
from wide_faults import bulk, discard, echo, requests, serve  # noqa: E402

faults.A, faults.B = wide.A, wide.B = A, B = "path-a", "path-b"
INTERVAL, WARM_UP = 3.0, 1.5


# --- Topologies -----------------------------------------------------------------

def namespaces():
    sh("""for ns in $A $B; do ip netns del $ns 2>/dev/null || true
        ip netns add $ns; ip -n $ns link set lo up; done""")


def veth(a="", b=""):
    """veth without queue disciplines; @a, @b: offloads, as ethtool takes them."""
    namespaces()
    sh(f"""
    ip link add va netns $A type veth peer name vb netns $B
    ip -n $A addr add 10.9.0.1/24 dev va; ip -n $B addr add {ADDRESS}/24 dev vb
    ip -n $A link set va up; ip -n $B link set vb up
    [ -z '{a}' ] || ip netns exec $A ethtool -K va {a}
    [ -z '{b}' ] || ip netns exec $B ethtool -K vb {b}""")


def wire(gro):
    """Packets of one segment arrive, as from a wire."""
    veth("tso off gso off", f"gro {gro}")


def delayed(rtt_ms=20):
    veth()
    sh(f"tc -n $A qdisc add dev va root netem limit 10000 delay {rtt_ms / 2}ms; "
       f"tc -n $B qdisc add dev vb root netem limit 10000 delay {rtt_ms / 2}ms")


def stopping():
    """A's packets pass an ifb, whose driver stops its queue after four packets, and
    which must split large ones itself."""
    veth()
    sh("""
    ip -n $A link add ifb-a txqueuelen 4 type ifb; ip -n $A link set ifb-a up
    ip netns exec $A ethtool -K ifb-a tso off
    tc -n $A qdisc add dev ifb-a root pfifo limit 1000
    tc -n $A qdisc add dev va clsact
    tc -n $A filter add dev va egress matchall action mirred egress redirect dev ifb-a
    """)


# --- Programs -------------------------------------------------------------------

def pinned(cpu, function):
    def run(*args):
        os.sched_setaffinity(0, {cpu})
        return function(*args)
    return run


def working(peer):
    """A reader that works on its data."""
    while data := peer.recv(1 << 16):
        sum(data[:10000])


def bit_by_bit(peer):
    while peer.recv(16):
        pass


def messages(size, pause):
    """Small messages, one packet each."""
    def run():
        sock = wide.connected(nodelay=True)
        while True:
            sock.sendall(bytes(size))
            time.sleep(pause)
    return run


def chain(rules):
    """@rules of B's firewall that match nothing."""
    lines = ["table inet slow {", "chain in {",
             "type filter hook input priority 0; policy accept;"]
    lines += [f"ip saddr 192.0.2.{n % 250} tcp dport {1000 + n} drop"
              for n in range(rules)]
    with inside(B):
        subprocess.run(["nft", "-f", "-"], input="\n".join([*lines, "}", "}"]),
                       text=True, check=True)


def steered(cpu):
    """B's softirqs on one CPU."""
    with inside(B):
        subprocess.run(["ip", "netns", "exec", B, "sh", "-c", f"echo {1 << cpu:x} > "
                        "/sys/class/net/vb/queues/rx-0/rps_cpus"], check=True)


# --- Cases ----------------------------------------------------------------------

#: name: the topology, what follows it, programs, a fault while they run, where to
#: look, the right limits.
CASES = {
    "checksum in software": dict(
        topology=lambda: veth("tx off"), load=lambda: [*serve(discard), bulk()],
        want=["offload-off"], number="tx", cure=True),
    "GRO off": dict(
        topology=lambda: wire("off"), load=lambda: [*serve(discard), bulk()], at=B,
        want=["offload-off"], number="gro", cure=True),
    "softirq and reader on one CPU": dict(
        topology=veth, before=lambda: steered(0), cpus=3, at=B, load=lambda: [
            *[pinned(0, one) for one in serve(working)], pinned(1, bulk())],
        want=["placement"]),
    "a slow netfilter chain": dict(
        topology=lambda: wire("off"), before=lambda: chain(600), at=B,
        load=lambda: [*serve(discard), bulk()], want=["netfilter-cost"]),
    "tiny reads": dict(
        topology=veth, at=B, load=lambda: [*serve(bit_by_bit), bulk()],
        want=["tiny-reads"]),
    "small writes": dict(
        topology=veth, load=lambda: [*serve(discard), bulk(write=64, nodelay=True)],
        want=["small-writes"]),
    "lost ACKs only": dict(
        topology=delayed, load=lambda: [*serve(discard), bulk()], fault="tc -n $B "
        "qdisc change dev vb root netem limit 10000 delay 10ms loss 60%",
        want=["ack-loss"]),
    "drops in the backlog": dict(
        topology=lambda: wire("off"), host={"net.core.netdev_max_backlog": 3}, at=B,
        load=lambda: [*serve(discard), bulk()], want=["backlog-drops"]),
    "a storm of wake-ups": dict(
        topology=veth, at=B, load=lambda: [
            *serve(discard, count=3), *[messages(200, 0.0002)] * 3],
        want=["wake-ups"]),
    "requeues": dict(
        topology=stopping, load=lambda: [*serve(discard), bulk()], want=["requeues"]),
}

HEALTHY = {
    "a transfer over veth": dict(
        topology=veth, load=lambda: [*serve(discard), bulk()]),
    "its receiver": dict(
        topology=veth, load=lambda: [*serve(discard), bulk()], at=B),
    "GRO on": dict(
        topology=lambda: wire("on"), load=lambda: [*serve(discard), bulk()], at=B),
    "a short netfilter chain": dict(
        topology=lambda: wire("on"), before=lambda: chain(4), at=B,
        load=lambda: [*serve(discard), bulk()]),
    "requests": dict(
        topology=veth, at=B, load=lambda: [*serve(echo(500)), requests(500, 0.005)]),
    "requests over a path": dict(
        topology=delayed, load=lambda: [*serve(echo(20000)), requests(20000)]),
    "a stream of messages": dict(
        topology=veth, at=B, load=lambda: [*serve(discard), messages(200, 0.02)]),
    "a transfer over a path": dict(
        topology=lambda: delayed(40), load=lambda: [*serve(discard), bulk(
            pause=0.02)]),
}


def look(end, pids):
    """The facts of a namespace.  The programs rest while pathprof starts: beside them
    that takes an emulated guest most of a minute."""
    class Recorder(profile_recorder.Recorder):
        def start(self):
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            super().start()
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
    collect.profile_recorder.Recorder, kept = Recorder, profile_recorder.Recorder
    try:
        with inside(end):
            return collect.collect(INTERVAL, record=True)
    finally:
        collect.profile_recorder.Recorder = kept


def rate(facts):
    """Bytes/s of all connections."""
    return sum(max(f["d_bytes_acked"], f["d_bytes_received"])
               for f in facts["flows"]) / facts["interval"]


def cured(name, facts, end):
    """Write what is proposed where the fault is: the same connections are faster."""
    proposals = [p for p in plan.propose(facts, faults.first(facts)[2], plan.Wish())
                 if p.setting]
    with inside(end):
        before = rate(collect.collect(INTERVAL))    # without a recording
        for p in proposals:
            setting, value = settings.parse(f"{p.setting}={p.new}")
            setting.write(value)
        time.sleep(1.0)     # the connections settle
        after = rate(collect.collect(INTERVAL))
    faults.tell(f"{name}: {before / 1e6:.2f} MB/s, {after / 1e6:.2f} with "
                + ", ".join(f"{p.setting}={p.new}" for p in proposals),
                f"{'ok' if proposals and after > 1.1 * before else 'not ok'} {name}: "
                "the plan removes it")


def without_profile(facts):
    """The same facts as if nothing had been recorded."""
    return {key: value for key, value in facts.items() if key not in (
        "paths", "stages", "drops", "recorded")} | {"profile": []}


def run(name, topology, load, want=(), before=None, fault="", host=(), at=A, cpus=1,
        number="", cure=False, healthy=False):
    if os.cpu_count() < cpus:
        return faults.tell(f"{name}: needs {cpus} CPUs", f"not ok {name}")
    with ExitStack() as stack:
        stack.callback(sh, "for ns in $A $B; do ip netns del $ns || true; done")
        topology()
        for key, value in dict(host).items():
            path = Path("/proc/sys", key.replace(".", "/"))
            stack.callback(path.write_text, path.read_text())
            path.write_text(f"{value}\n")
        for end in (A, B):
            put(end, {"net.ipv4.tcp_no_metrics_save": 1})
        if before:
            before()
        pids = stack.enter_context(wide.programs(*load()))
        time.sleep(WARM_UP)
        if fault:
            sh(fault)       # it works first
            time.sleep(WARM_UP)
        begun = time.monotonic()
        facts = look(at, pids)
        took = time.monotonic() - begun
        if cure:
            cured(name, facts, at)
    if os.environ.get("FACTS"):
        Path(os.environ["FACTS"], name.replace(" ", "-") + ".json").write_text(
            json.dumps(facts))
    return judge(name, facts, want, number, healthy, took)


def judge(name, facts, want=(), number="", healthy=False, took=0.0):
    """@number: what the first diagnosis must name among its numbers."""
    verdict, answer, found = faults.first(facts)
    other = faults.first(without_profile(facts))[1]
    proposals = plan.propose(facts, found, plan.Wish())
    got = answer.limit if answer else "nothing"
    if healthy:
        # Where a load has the whole CPU, that is what limits it.
        right = not any(d.wrong and d.weight >= 5 and d.limit != "cpu"
                        for d in found) and not proposals
    else:
        right = got in want and (not number or number in answer.numbers)
    seen = facts.get("recorded", {})
    told = [f"{name}: {verdict}" + (f", {answer.confidence}" if answer else "")
            + f"; proposes {', '.join(p.setting or 'advice' for p in proposals)}",
            f"    without the profile: {other.limit if other else 'nothing'}; "
            f"{seen.get('packets', 0)} packets in {seen.get('bursts', 0)} bursts, "
            f"{took:.1f} s; missing {facts['missing']}"]
    if not right:
        told += [f"    {d.weight:.1f} {d.subject} {d.limit}: {d.why}"
                 for d in found[:5]]
    faults.tell(*told, f"{'ok' if right else 'not ok'} {name}")
    return right


def cases(words):
    every = CASES | {name: case | {"healthy": True} for name, case in HEALTHY.items()}
    kinds = {"faults": list(CASES), "healthy": list(HEALTHY), "all": list(every)}
    names = [name for word in words for name in kinds.get(word, [word])]
    return {name: every[name] for name in names}


def main():
    if sys.argv[1] == "list":
        for name, case in cases(sys.argv[2:]).items():
            print(name)
            if case.get("cure"):
                print(f"{name}: the plan removes it")
        return
    for name, case in cases(sys.argv[1:]).items():
        try:
            run(name, **case)
        except (OSError, subprocess.CalledProcessError, KeyError,
                ValueError) as error:
            faults.tell(repr(error), f"not ok {name}")


if __name__ == "__main__":
    main()
