#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a deterministic guest: run programs of the distribution with small
receive buffers, without the module and with its sender's policy (tx_frac).

Each case is printed when it ends and added to one JSON file.  The first 96 bytes
of its packets go to a .pcap file beside it.

usage: measure.py MODULE.ko RESULTS.json [CASE-REGEX]
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
TX_FRAC = 64
SET_BYTES = 4_000_000
MESSAGES, MESSAGE_BYTES = 1, 4_000_000
LOCAL = "/tmp/redis.sock"
LIMIT = 600     # s, on the guest's clock
DEFAULT_RMEM = "4096 131072 6291456"


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, **options)
    if done.returncode:
        sys.exit(f"measure: {' '.join(map(str, argv))}: "
                 f"{done.stderr or done.stdout}")
    return done.stdout


def inside(namespace, *argv):
    return ["ip", "netns", "exec", namespace, *map(str, argv)]


@contextmanager
def background(*argv, ready=None):
    """A server, until the block ends; ready() is true once it answers."""
    with tempfile.TemporaryFile("w+") as log, \
            subprocess.Popen([str(word) for word in argv],
                             stdin=subprocess.DEVNULL, stdout=log,
                             stderr=log) as process:
        try:
            for _ in range(600):
                if ready is None or ready():
                    break
                if process.poll() is not None:
                    log.seek(0)
                    sys.exit(f"measure: {argv} ended: {log.read()}")
                time.sleep(0.1)  # polling interval
            else:
                sys.exit(f"measure: {argv} does not answer")
            yield process
        finally:
            process.terminate()


def listens(namespace, port):
    return lambda: run(*inside(namespace, "ss", "-Htln",
                               f"sport = {port}")).strip()


@contextmanager
def network(mtu=65536, rtt_ms=0, rmem=DEFAULT_RMEM):
    """Loopback of one namespace, or with rtt_ms two namespaces joined by veth.
    Yields the names of the two ends and the address of the first."""
    ends = ["programs-a", "programs-b"] if rtt_ms else ["programs-a"]
    for end in ends:
        run("ip", "netns", "add", end)
        run("ip", "-n", end, "link", "set", "lo", "up")
        run(*inside(end, "sysctl", "-qw", f"net.ipv4.tcp_rmem={rmem}",
                    "net.ipv4.tcp_no_metrics_save=1"))
    if rtt_ms:
        run("ip", "link", "add", "veth0", "netns", ends[0], "type", "veth",
            "peer", "name", "veth0", "netns", ends[1])
        for n, end in enumerate(ends, 1):
            run("ip", "-n", end, "addr", "add", f"10.9.0.{n}/24", "dev",
                "veth0")
            run("ip", "-n", end, "link", "set", "veth0", "mtu", str(mtu),
                "up")
            run("tc", "-n", end, "qdisc", "add", "dev", "veth0", "root",
                "netem", "limit", "10000", "delay", f"{rtt_ms * 500}us")
    else:
        run("ip", "-n", ends[0], "link", "set", "lo", "mtu", str(mtu))
    try:
        yield ends[0], ends[-1], "10.9.0.1" if rtt_ms else "127.0.0.1"
    finally:
        for end in ends:
            run("ip", "netns", "del", end)


@contextmanager
def captured(namespace, port, file):
    """Run tcpdump in that namespace; the packets go to file."""
    argv = inside(namespace, "tcpdump", "-i", "any", "-n", "-s", "96",
                  "--immediate-mode", "-U", "-c", "4000", "-w", file,
                  f"tcp port {port}")
    # tcpdump creates the file when it starts to listen.
    file.unlink(missing_ok=True)
    with background(*argv, ready=file.exists):
        yield


def seconds_of(text):
    """Seconds that redis-benchmark reports for one request."""
    took = float(re.search(r"completed in ([\d.]+) seconds", text).group(1))
    # The average is more precise, but its histogram ends at 3 s.
    average = re.search(r" max\n\s+([\d.]+)", text)
    if took < 2 and average:
        took = float(average.group(1)) / 1000
    return took


def redis_set(namespace, port):
    """One SET of SET_BYTES by redis-benchmark."""
    text = run(*inside(namespace, "redis-benchmark", "-p", port, "-t", "set",
                       "-d", SET_BYTES, "-n", 1, "-c", 1),
               timeout=LIMIT)
    return {"bytes": SET_BYTES,
            "seconds": seconds_of(text.replace("\r", "\n"))}


def redis_server(namespace):
    """On port 6379 and on a local socket, keeping nothing on disk."""
    return background(
        *inside(namespace, "redis-server", "--port", 6379, "--unixsocket",
                LOCAL, "--save", "", "--appendonly", "no"),
        ready=lambda: "PONG" in subprocess.run(
            ["redis-cli", "-s", LOCAL, "ping"], capture_output=True,
            text=True).stdout)


def redis_case(file, buffer=0, **settings):
    """One big SET; behind socat if the accepted socket's buffer is set."""
    with network(**settings) as (end, _, _), redis_server(end):
        if not buffer:
            with captured(end, 6379, file):
                return redis_set(end, 6379)
        with background(
                *inside(end, "socat", f"TCP-LISTEN:6380,fork,reuseaddr,"
                        f"rcvbuf-late={buffer}", f"UNIX-CONNECT:{LOCAL}"),
                ready=listens(end, 6380)), captured(end, 6380, file):
            return redis_set(end, 6380)


def broker_case(file, buffer=0, when="before", **settings):
    """MESSAGES messages wait at the broker; a subscriber fetches them."""
    with network(**settings) as (end, other, address), \
            background(*inside(end, "mosquitto", "-c",
                               HERE / "mosquitto.conf"),
                       ready=listens(end, 1883)):
        payload = Path("/tmp/payload")
        payload.write_bytes(bytes(MESSAGE_BYTES))
        for n in range(MESSAGES):
            run(*inside(end, "mosquitto_pub", "-p", 1883, "-r", "-q", 0, "-t",
                        f"bulk/{n}", "-f", payload))
        with captured(end, 1883, file):
            return json.loads(run(*inside(
                other, "/usr/bin/python3", HERE / "subscriber.py", address,
                1883, buffer, when, MESSAGES), timeout=LIMIT))


#: name: (function, its arguments)
CASES = {
    "redis lo SO_RCVBUF 8192 after": (redis_case, {"buffer": 8192}),
    "redis lo SO_RCVBUF 16384 after": (redis_case, {"buffer": 16384}),
    "mqtt lo SO_RCVBUF 8192 after": (
        broker_case, {"buffer": 8192, "when": "after"}),
    "mqtt 9000 10 ms SO_RCVBUF 32768 before": (
        broker_case, {"buffer": 32768, "mtu": 9000, "rtt_ms": 10}),
    "mqtt 9000 10 ms SO_RCVBUF 32768 after": (
        broker_case, {"buffer": 32768, "when": "after", "mtu": 9000,
                      "rtt_ms": 10}),
    "mqtt lo SO_RCVBUF 32768 before": (broker_case, {"buffer": 32768}),
    "mqtt lo SO_RCVBUF 32768 after": (
        broker_case, {"buffer": 32768, "when": "after"}),
    "redis lo tcp_rmem 212992": (
        redis_case, {"rmem": "4096 87380 212992"}),
    "redis lo tcp_rmem 212992 mtu 16436": (
        redis_case, {"rmem": "4096 87380 212992", "mtu": 16436}),
}


def main():
    module, results = sys.argv[1], Path(sys.argv[2])
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    names = [name for name in CASES if re.search(only, name)]
    if not names:
        sys.exit(f"measure: no case matches {only}")
    document = {"kernel": os.uname().release, "tx_frac": TX_FRAC,
                "cases": {name: {} for name in names}}
    for name in names:
        case, arguments = CASES[name]
        for arm in ("stock", "treated"):
            if arm == "treated":
                run("insmod", module, f"tx_frac={TX_FRAC}")
            file = results.with_name("-".join(
                [results.stem, *name.split(), arm]) + ".pcap")
            got = case(Path("/tmp/packets.pcap"), **arguments)
            file.write_bytes(Path("/tmp/packets.pcap").read_bytes())
            document["cases"][name][arm] = got
            print(f"{name:<40} {arm:<8} {got['seconds']:10.3f} s "
                  f"{got['bytes'] / got['seconds'] / 1000:12.1f} kB/s",
                  flush=True)
            results.write_text(json.dumps(document, indent=1) + "\n")
            if arm == "treated":
                run("rmmod", "mssfrac")


if __name__ == "__main__":
    main()
