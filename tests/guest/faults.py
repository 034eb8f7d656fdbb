# SPDX-License-Identifier: GPL-2.0-only
"""Injected faults: real transfers between two network namespaces with one fault
each, and the first diagnosis of msstune.  Prints "ok NAME" or "not ok NAME" for
each case, and remarks.

usage: faults.py [NAME...]     only these cases
FACTS=DIR in the environment: store the facts of each case in DIR.

Two cases run at a time, because each mostly waits.  A fault of the whole host
runs alone.
"""
import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "userspace/msstune"))
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab.netns import inside  # noqa: E402
from msstune import collect, diagnose, plan, settings  # noqa: E402

A, B = "tune-a", "tune-b"      # plus the number of a slot
ADDRESS, PORT = "10.9.0.2", 5201
WARM_UP, INTERVAL = 1.2, 1.5
LONG = 4.0          # for autotuning, and for cubic between two losses
WISH = 8e6          # bit/s
SO_MAX_PACING_RATE = 47


def sh(text):
    subprocess.run(["sh", "-ec", text], check=True,
                   env={**os.environ, "A": A, "B": B})


def put(end, settings):
    with inside(end):
        for key, value in settings.items():
            Path("/proc/sys", key.replace(".", "/")).write_text(f"{value}\n")


# Round trips are long, so that the emulated CPU is never the limit.
def pair(mtu=1500, rtt_ms=50, egress="", ingress=""):
    """Make two fresh namespaces.  @egress: root qdisc of the sender instead of half
    of the delay; @ingress: more arguments of the sender's netem."""
    sh(f"""
    for ns in {A} {B}; do ip netns del $ns 2>/dev/null || true; ip netns add $ns
        ip -n $ns link set lo up; done
    ip link add va netns {A} type veth peer name vb netns {B}
    ip -n {A} addr add 10.9.0.1/24 dev va
    ip -n {B} addr add {ADDRESS}/24 dev vb
    ip -n {A} link set va mtu {mtu} up; ip -n {B} link set vb mtu {mtu} up""")
    here, there = (0, rtt_ms) if egress else (rtt_ms / 2, rtt_ms / 2)
    sh(f"tc -n {B} qdisc add dev vb root netem limit 10000 delay {there}ms")
    if egress:
        sh(egress)
    else:
        sh(f"tc -n {A} qdisc add dev va root netem delay {here}ms {ingress}")


def children(*functions):
    """Start a process for each of @functions."""
    pids = []
    for function in functions:
        pid = os.fork()
        if pid == 0:
            try:
                function()
            finally:
                os._exit(0)
        pids.append(pid)
    return pids


@contextmanager
def transfer(rcvbuf=0, pacing=0, read_every=0.0, write_every=0.0, write=1 << 16,
             address=ADDRESS, connections=1):
    with inside(B):
        listener = socket.create_server((address, PORT))
    if rcvbuf:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)

    def reader():
        peer = listener.accept()[0]
        while peer.recv(16384 if read_every else 1 << 18):
            time.sleep(read_every)

    def writer():
        with inside(A):
            sock = socket.socket()
        if pacing:
            sock.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, pacing)
        sock.connect((address, PORT))
        data = bytes(write)
        while True:
            sock.sendall(data)
            time.sleep(write_every)

    pids = children(*[reader] * connections, *[writer] * connections)
    listener.close()
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def facts_of(end, interval=INTERVAL):
    """The facts that msstune collects in that namespace."""
    with inside(end):
        return collect.collect(interval)


def first(facts):
    """Verdict, the first diagnosis of a fault (else the first), all diagnoses."""
    found = diagnose.diagnose(facts)
    verdict = diagnose.verdict(found)
    wrong = [d for d in found if d.wrong and d.weight >= 5]
    return verdict, (wrong or found or [None])[0], found


RATE = "tc -n $A qdisc add dev va root handle 1: tbf rate 5mbit burst 20kb "
SMALL = "4096 65536 65536"
# A single connection has at most two packets in the queue (TSQ).
CROWD = {"connections": 3}

#: name: arguments of pair() and transfer(), sysctls of A and B, where to look, and
#: the right limit.
CASES = {
    "nothing is wrong": dict(
        pair={"ingress": "rate 5mbit limit 40"}, want="path"),
    "receive buffer too small": dict(
        b={"net.ipv4.tcp_rmem": SMALL}, want="receive-window"),
    "the same, seen by the receiver": dict(
        b={"net.ipv4.tcp_rmem": SMALL}, at="B", want="receive-window",
        cure=True),
    "autotuning off": dict(
        b={"net.ipv4.tcp_moderate_rcvbuf": 0}, at="B", want="receive-window",
        cure=True, interval=LONG),
    "window scaling off": dict(
        b={"net.ipv4.tcp_window_scaling": 0}, want="window-scaling"),
    "jumbo through a small window": dict(
        pair={"mtu": 9000}, b={"net.ipv4.tcp_rmem": "4096 53000 53000"},
        want="mss-granularity"),
    "send buffer too small": dict(
        a={"net.ipv4.tcp_wmem": "4096 16384 16384"}, want="send-buffer",
        cure=True),
    "SO_RCVBUF set by hand": dict(
        load={"rcvbuf": 32768}, at="B", want="receive-buffer-fixed"),
    "random loss": dict(
        pair={"ingress": "loss 2% limit 10000"}, want="loss"),
    "SACK off with loss": dict(
        pair={"ingress": "loss 2% limit 10000"}, a={"net.ipv4.tcp_sack": 0},
        b={"net.ipv4.tcp_sack": 0}, want="sack-off"),
    "pacing limit of the socket": dict(
        load={"pacing": 300_000}, want="pacing"),
    "pacing limit of fq": dict(
        pair={"egress": "tc -n $A qdisc add dev va root fq maxrate 2mbit"},
        want="pacing"),
    "slow reader": dict(
        load={"read_every": 0.06}, at="B", want="application-receive"),
    "slow reader, seen by the sender": dict(
        load={"read_every": 0.06}, want="peer-application"),
    "slow writer": dict(
        load={"write": 1000, "write_every": 0.002}, want="application-send"),
    "txqueuelen 2": dict(
        pair={"egress": f"ip -n $A link set va txqueuelen 2; {RATE} limit 1mb; "
              "tc -n $A qdisc add dev va parent 1:1 pfifo"},
        load=CROWD, want="qdisc-drops", interval=LONG),
    "a short queue": dict(
        pair={"egress": f"{RATE} limit 6kb"}, load=CROWD,
        want="qdisc-drops", interval=LONG),
    "backlog too short": dict(
        host={"net.core.netdev_max_backlog": 2}, want="backlog-drops"),
    "memory pressure": dict(
        host={"net.ipv4.tcp_mem": "4 8 4000"}, want="memory-pressure"),
    "MTU larger than the path's": dict(
        pair={"mtu": 9000}, after="ip -n $B link set vb mtu 1500; "
        f"ip -n $B route change 10.9.0.0/24 dev vb src {ADDRESS} advmss 8960; "
        "ip netns exec $A ethtool -K va gso off tso off", want="mtu"),
    "timestamps on one side": dict(
        pair={"ingress": "rate 5mbit limit 40"}, b={"net.ipv4.tcp_timestamps": 0},
        want="timestamps"),
}


def run(name, pair_=None, a=(), b=(), host=(), after="", load=None, at="A",
        want="", cure=False, interval=INTERVAL):
    kept = {}
    pair(**(pair_ or {}))
    try:
        for key, value in dict(host).items():
            path = Path("/proc/sys", key.replace(".", "/"))
            kept[path] = path.read_text()
            path.write_text(f"{value}\n")
        put(A, dict(a))
        put(B, dict(b))
        if after:
            sh(after)
        end = A if at == "A" else B
        with transfer(**(load or {})):
            time.sleep(WARM_UP)  # slow start
            facts = facts_of(end, interval)
        if cure:
            cured(name, facts, end, interval, **(load or {}))
    finally:
        for path, value in kept.items():
            path.write_text(value)
    verdict, answer, found = first(facts)
    got = answer.limit if answer else "nothing"
    right = got == want
    proposals = plan.propose(facts, found, plan.Wish())
    if want == "path":
        right = right and verdict == "nothing wrong" and not proposals
    if os.environ.get("FACTS"):
        Path(os.environ["FACTS"], name.replace(" ", "-") + ".json").write_text(
            json.dumps(facts))
    told = [f"{name}: {verdict}; proposes " + (", ".join(
        p.setting or "advice" for p in proposals) or "nothing")]
    if not right:
        told.append(f"got {got}, expected {want}")
        told += [f"{d.weight:.1f} {d.subject} {d.limit}: {d.why} "
                 f"{json.dumps(d.numbers)}" for d in found]
    tell(*told, f"{'ok' if right else 'not ok'} {name}")


def rate(facts):
    """Bytes/s of the busiest connection."""
    return max([max(f["d_bytes_acked"], f["d_bytes_received"])
                for f in facts["flows"]], default=0) / facts["interval"]


def cured(name, facts, end, interval, **load):
    """Write the plan where the fault was diagnosed.  A new transfer must be faster,
    and reach the wish or have another limit."""
    found = first(facts)[2]
    proposals = [p for p in plan.propose(facts, found, plan.Wish(rate=WISH))
                 if p.setting]
    with inside(end):
        for p in proposals:
            setting, value = settings.parse(f"{p.setting}={p.new}")
            setting.write(value)
    with transfer(**load):
        time.sleep(WARM_UP)
        after = facts_of(end, interval)
    answer = first(after)[1]
    right = proposals and rate(after) > 1.2 * rate(facts) and (
        rate(after) * 8 >= WISH or answer is None
        or answer.limit != found[0].limit)
    tell(f"{name}: {rate(facts) / 1e6:.2f} MB/s, {rate(after) / 1e6:.2f} with "
         + ", ".join(f"{p.setting}={p.new}" for p in proposals)
         + f"; then {answer.limit if answer else 'nothing'}",
         f"{'ok' if right else 'not ok'} {name}: the plan removes the fault")


def tell(*lines):
    """Print the lines in one write, because two processes print."""
    os.write(1, "".join(f"{line}\n" for line in lines).encode())


def cases(names):
    for name in names:
        case = dict(CASES[name])
        case["pair_"] = case.pop("pair", None)
        try:
            run(name, **case)
        except (OSError, subprocess.CalledProcessError, KeyError) as error:
            tell(repr(error), f"not ok {name}")
    for end in (A, B):
        subprocess.run(["ip", "netns", "del", end], check=False,
                       capture_output=True)


def slot(number, names):
    global A, B
    A, B = f"{A}{number}", f"{B}{number}"
    cases(names)


def main():
    chosen = [name for name in CASES if name in sys.argv[1:]
              or len(sys.argv) == 1]
    alone = [name for name in chosen if "host" in CASES[name]]
    shared = [name for name in chosen if name not in alone]
    for pid in children(lambda: slot(1, shared[::2]),
                        lambda: slot(2, shared[1::2])):
        os.waitpid(pid, 0)
    cases(alone)


if __name__ == "__main__":
    main()
