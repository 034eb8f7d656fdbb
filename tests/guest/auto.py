# SPDX-License-Identifier: GPL-2.0
"""What msstune auto gets back of the throughput that a planted fault takes.

Programs that connect again every three seconds send over a path of 5 Mbit/s and
200 ms.  Their goodput is measured before a fault, with it, and after auto ran in
the namespace of one end.  Prints "ok NAME" or "not ok NAME" for each, and a row
of the table in Documentation/experiments/faults.rst.

usage: auto.py [NAME...]     only these cases
RESULTS=DIR in the environment keeps auto's reports there.
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

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "userspace/msstune"))
sys.path.insert(0, str(TOP / "userspace/mssab"))
sys.path.insert(0, str(TOP / "tests/guest"))

from faults import A, B, ADDRESS, PORT, children, facts_of, put, sh  # noqa: E402
from mssab.system import inside  # noqa: E402
from msstune import cli, traffic  # noqa: E402

LIFE = 2.5      # seconds that a connection sends
MEASURE = 6.0
SHARE = 0.9     # of what was lost, that is to come back
traffic.STEP = 0.5  # looks cost the only CPU


def path(mtu=1500, ingress=""):
    """Two namespaces: the bottleneck at A's end, its queue of a round trip; all of
    the delay at B's."""
    sh(f"""
    for ns in {A} {B}; do ip netns del $ns 2>/dev/null || true; ip netns add $ns
        ip -n $ns link set lo up; done
    ip link add va netns {A} type veth peer name vb netns {B}
    ip -n {A} addr add 10.9.0.1/24 dev va; ip -n {B} addr add {ADDRESS}/24 dev vb
    ip -n {A} link set va mtu {mtu} up; ip -n {B} link set vb mtu {mtu} up
    tc -n {A} qdisc add dev va root netem rate 5mbit limit 40 {ingress}
    tc -n {B} qdisc add dev vb root netem delay 200ms limit 10000""")


@contextmanager
def service(rcvbuf=0):
    """One that sends and one that reads, until the block ends."""
    with inside(B):
        listener = socket.create_server((ADDRESS, PORT))
    if rcvbuf:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)

    def reader():
        while True:
            peer = listener.accept()[0]
            while peer.recv(1 << 18):
                pass
            peer.close()

    def writer():
        with inside(A):
            while True:
                with socket.create_connection((ADDRESS, PORT)) as sock:
                    end = time.monotonic() + LIFE
                    while time.monotonic() < end:
                        sock.sendall(bytes(1 << 15))
                    sock.shutdown(socket.SHUT_WR)
                    sock.recv(1)  # all of it is read
    pids = children(reader, writer)
    listener.close()
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, 9)
            os.waitpid(pid, 0)


def rate():
    """Bytes/s that B got."""
    with inside(B):
        time.sleep(2 * LIFE)  # connections of before are gone
        return traffic.watch(lambda t: t >= MEASURE, set())["bytes_per_s"]


def auto(end, directory):
    """msstune auto, in this process: Python starts slowly in a guest."""
    sys.argv = ["msstune", "--state", f"{directory}/state", "auto", "--yes",
                "--pairs", "8", "--block", "3s", "--settle", f"{2 * LIFE}s",
                "--interval", "3s", "--rate", "5M", "--allow-disruptive",
                "--no-report", "-o", f"{directory}/results"]
    with inside(end):
        return cli.main()


#: name: sysctls of A and B, commands, what path() and service() get, and where auto
#: runs.
CASES = {
    "receive buffer too small": dict(
        b={"net.ipv4.tcp_rmem": "4096 16384 16384"}, at="B"),
    "window scaling off at the receiver": dict(
        b={"net.ipv4.tcp_window_scaling": 0}, at="B"),
    "send buffer too small": dict(
        a={"net.ipv4.tcp_wmem": "4096 8192 8192"}, at="A"),
}


def run(name, a=(), b=(), after="", path_=None, service_=None, at="A",
        share=SHARE):
    path(**(path_ or {}))
    keep = os.environ.get("RESULTS")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(keep or temporary, name.replace(" ", "-"))
        directory.mkdir()
        with service(**(service_ or {})):
            healthy = rate()
        put(A, dict(a))
        put(B, dict(b))
        if after:
            sh(after)
        with service(**(service_ or {})):
            faulty = rate()
            if keep:
                (directory / "facts.json").write_text(
                    json.dumps(facts_of(A if at == "A" else B)))
            start = time.monotonic()
            status = auto(A if at == "A" else B, directory)
            took = time.monotonic() - start
            cured = rate()
    back = (cured - faulty) / (healthy - faulty)
    print(f"{name}: {healthy * 8e-6:.2f} Mbit/s, {faulty * 8e-6:.2f} with the fault, "
          f"{cured * 8e-6:.2f} after auto in {took:.0f} s: {back:.0%} came back\n"
          f"{'ok' if status == 0 and back >= share else 'not ok'} {name}",
          flush=True)


def main():
    names = sys.argv[1:] or list(CASES)
    for name, case in CASES.items():
        if name in names:
            try:
                run(name, **case)
            except (OSError, subprocess.CalledProcessError) as error:
                print(f"{error!r}\nnot ok {name}", flush=True)
    for end in (A, B):
        subprocess.run(["ip", "netns", "del", end], check=False,
                       capture_output=True)


if __name__ == "__main__":
    main()
