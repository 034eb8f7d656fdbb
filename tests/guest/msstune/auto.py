# SPDX-License-Identifier: GPL-2.0-only
"""How much of the goodput lost to an injected fault msstune auto restores.

Programs that connect repeatedly send over a path of 5 Mbit/s and 150 ms.  Their
goodput is measured before the fault, with it, and after auto ran in the namespace
of one end.  Prints "ok NAME" or "not ok NAME" for each case, and the numbers of the
table in Documentation/results/faults.rst.

usage: auto.py [NAME...]     only these cases
RESULTS=DIR in the environment: store auto's reports in DIR.
"""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from programs import listening, running  # noqa: E402
from testbed import ADDRESS, A, B, inside, put, sh  # noqa: E402
from msstune import cli  # noqa: E402
from msstune.facts import collect, throughput  # noqa: E402

PORT = 5201
LIFE = 1.2      # seconds that a connection sends
PATIENCE = 3.0  # seconds that it waits for progress
LOST = 0.1      # share of the goodput that a fault must cost to count
SHARE = 0.9     # share of the loss that must be restored
throughput.STEP = 0.5  # dumps use the only CPU

NETEM = "tc -n $A qdisc add dev va root netem rate 5mbit limit 40 "
#: Neither a rate nor GSO: a burst arrives as a burst.
BURSTS = ("tc -n $A qdisc add dev va root netem delay 1ms limit 10000; "
          "ip netns exec $A ethtool -K va gso off tso off")
TBF = ("tc -n $A qdisc add dev va root handle 1: tbf rate 5mbit burst 20kb limit 1mb; "
       "tc -n $A qdisc add dev va parent 1:1 ")


def path(mtu=1500, egress=NETEM, host="", delay="150ms"):
    """Make two namespaces with the bottleneck at A's end and all of the @delay at B's.
    @host: the end that is the guest's first namespace, for settings of the host."""
    take_away()
    for end in (A, B):
        sh(f"ip netns attach {end} $$" if end == host else
           f"ip netns add {end}; ip -n {end} link set lo up")
    sh(f"""
    ip link add va netns {A} type veth peer name vb netns {B}
    ip -n {A} addr add 10.9.0.1/24 dev va; ip -n {B} addr add {ADDRESS}/24 dev vb
    ip -n {A} link set va mtu {mtu} up; ip -n {B} link set vb mtu {mtu} up
    {egress}
    tc -n {B} qdisc add dev vb root netem delay {delay} limit 10000""")
    for end in (A, B):
        put(end, {"net.ipv4.tcp_no_metrics_save": 1})  # connections are independent


def take_away():
    for command in ("ip link del va", "ip link del vb", f"ip netns del {A}",
                    f"ip netns del {B}"):
        subprocess.run(command.split(), check=False, capture_output=True)


@contextmanager
def service(rcvbuf=0, pairs=1, life=LIFE):
    """Run @pairs of senders and readers until the block ends.  A connection sends for
    @life seconds."""
    listener = listening(PORT)

    def reader():
        while True:
            with listener.accept()[0] as peer:
                if rcvbuf:
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
                peer.settimeout(PATIENCE)
                try:
                    while peer.recv(1 << 18):
                        pass
                except OSError:
                    continue

    def writer():
        with inside(A):
            while True:
                try:
                    with socket.create_connection((ADDRESS, PORT), PATIENCE) as sock:
                        end = time.monotonic() + life
                        while time.monotonic() < end:
                            sock.sendall(bytes(1 << 14))
                        sock.shutdown(socket.SHUT_WR)
                        sock.recv(1)  # until all is read
                except OSError:
                    continue
    # More readers than senders: one may still be busy with an earlier connection.
    with listener, running(*[reader] * 3 * pairs, *[writer] * pairs):
        yield


def rate(seconds):
    """Bytes/s that B received."""
    with inside(B):
        time.sleep(2 * LIFE)  # until earlier connections are gone
        return throughput.watch(lambda t: t >= seconds, set())["bytes_per_s"]


def auto(end, directory, block, wish):
    """Run msstune auto in this process: Python starts slowly in a guest."""
    sys.argv = ["msstune", "--state", f"{directory}/state", "auto", "--yes",
                "--pairs", "8", "--block", block, "--settle", "2s", "--interval",
                "3s", "--rate", wish, "--allow-disruptive", "--no-report",
                "--no-profile", "-o", f"{directory}/results"]
    with inside(end):
        return cli.main()


#: Losses are random, and cost a connection after its first seconds.
LOSSY = {"service": {"pairs": 3, "life": 6.0}, "block": "12s", "look": 80.0}
#: name: arguments of path() and service(); sysctls of A and B before the fault; the
#: fault: sysctls of A and B, commands; where auto runs; whether the programs are
#: restarted before the last measurement, because a listener keeps its buffer; length
#: of auto's blocks, and the rate to reach; seconds of a goodput measurement.
CASES = {
    "receive buffer too small": dict(
        b={"net.ipv4.tcp_rmem": "4096 16384 16384"}, at=B, again=True),
    "autotuning off": dict(
        base_b={"net.ipv4.tcp_rmem": "4096 16384 6291456"},
        b={"net.ipv4.tcp_moderate_rcvbuf": 0}, at=B),
    "window scaling off": dict(
        path={"egress": NETEM.replace("5mbit", "10mbit")},
        b={"net.ipv4.tcp_window_scaling": 0}, at=B),
    "jumbo through a small window": dict(
        path={"mtu": 9000}, b={"net.ipv4.tcp_rmem": "4096 53000 53000"},
        at=B, again=True),
    "send buffer too small": dict(
        a={"net.ipv4.tcp_wmem": "4096 8192 8192"}, at=A),
    "txqueuelen 2": dict(
        path={"egress": TBF.replace("20kb", "4kb") + "pfifo"},
        service={"pairs": 4}, block="6s",
        after="ip -n $A link set va txqueuelen 2; "
        "tc -n $A qdisc replace dev va parent 1:1 pfifo limit 2", at=A),
    "pacing limit of fq": dict(
        path={"egress": TBF + "fq"},
        after="tc -n $A qdisc replace dev va parent 1:1 fq maxrate 1mbit", at=A),
    "SACK off with loss": dict(
        # Losses in groups of ten: without SACK each costs a round trip.
        path={"egress": NETEM + "loss gemodel 1% 10%"}, a={"net.ipv4.tcp_sack": 0},
        at=A, service={"pairs": 4, "life": 6.0}, block="12s", look=160.0),
    "random loss": dict(
        **LOSSY,
        after="tc -n $A qdisc change dev va root netem rate 5mbit limit 40 loss 2%",
        at=A),
    "SO_RCVBUF clamped": dict(
        path={"host": B}, service={"rcvbuf": 1 << 19, "pairs": 3}, block="6s",
        base_b={"net.core.rmem_max": 1 << 20}, b={"net.core.rmem_max": 8192}, at=B),
    # The kernel accounts for memory in megabytes: this needs many connections.
    "memory pressure": dict(
        path={"host": B}, service={"pairs": 8}, block="6s",
        b={"net.ipv4.tcp_mem": "4 8 16"}, at=B),
    "backlog too short": dict(
        path={"host": B, "egress": BURSTS},
        base_b={"net.ipv4.tcp_rmem": "4096 131072 131072"},
        b={"net.core.netdev_max_backlog": 1}, at=B),
    "mssfrac on one side only": dict(
        path={"mtu": 9000, "delay": "5ms",
              "egress": "tc -n $A qdisc add dev va root netem delay 5ms"},
        base_b={"net.ipv4.tcp_window_scaling": 0,
                "net.ipv4.tcp_rmem": "4096 26500 26500"},
        b={"net.mssfrac.rx_frac": 64}, wish="50M", at=B),
    "nothing is wrong": dict(at=A),
}


def run(name, base_b=(), a=(), b=(), after="", path_=None, service_=None, at=A,
        again=False, block="3s", wish="5M", look=20.0):
    path(**(path_ or {}))
    put(B, dict(base_b))
    keep = os.environ.get("RESULTS")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(keep or temporary, name.replace(" ", "-"))
        directory.mkdir()
        with service(**(service_ or {})):
            healthy = rate(look)
        put(A, dict(a))
        put(B, dict(b))
        if after:
            sh(after)
        with service(**(service_ or {})):
            faulty = rate(look)
            if keep:
                with inside(at):
                    facts = collect.collect(1.5)
                (directory / "facts.json").write_text(json.dumps(facts))
            status = auto(at, directory, block, wish)
            cured = rate(look)
        if again:
            print(f"{name}: {cured * 8e-6:.2f} Mbit/s before the programs restart")
            with service(**(service_ or {})):
                cured = rate(look)
        document = json.loads((directory / "results/auto.json").read_text())
    kept = ", ".join(f"{s['setting']}={s['new']}" for k in document["kept"] for s in k)
    told = (f"{name}: {healthy * 8e-6:.2f} Mbit/s, {faulty * 8e-6:.2f} with the fault, "
            f"{cured * 8e-6:.2f} after auto kept {kept or 'nothing'}")
    if name == "nothing is wrong":
        tried = [o for turn in document["rounds"] for o in turn["experiments"]]
        right = status == 0 and not tried
    else:
        back = (cured - faulty) / max(1, healthy - faulty)
        told += f": {back:.0%} restored"
        right = status == 0 and kept and healthy - faulty > LOST * healthy and \
            back >= SHARE
    print(f"{told}\n{'ok' if right else 'not ok'} {name}", flush=True)


def main():
    kept = {key: key.read_text() for key in (
        Path("/proc/sys", name) for name in (
            "net/core/rmem_max", "net/ipv4/tcp_mem", "net/core/netdev_max_backlog"))}
    # Import now what is imported at first use: 9p is slow while the clock runs.
    throughput.watch(lambda t: t >= throughput.STEP, set())
    for name in sys.argv[1:] or CASES:
        case = dict(CASES[name])
        for key in ("path", "service"):
            case[f"{key}_"] = case.pop(key, None)
        try:
            run(name, **case)
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            print(f"{error!r}\nnot ok {name}", flush=True)
        take_away()
        for key, value in kept.items():
            key.write_text(value)


if __name__ == "__main__":
    main()
