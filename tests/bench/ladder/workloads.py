# SPDX-License-Identifier: GPL-2.0-only
"""The named workloads: traffic, network and options of recording; and those of
a user, NAME=COMMAND."""
import re
import sys
from dataclasses import dataclass

SEGMENT_BY_SOFTWARE = "tso off gro on"
NO_OFFLOADS = "tso off gso off gro off"


@dataclass(frozen=True)
class Workload:
    """One load between two namespaces joined by veth."""
    about: str
    load: str           # arguments of tcpload
    mtu: int = 1500
    features: str = SEGMENT_BY_SOFTWARE  # ethtool -K, both ends
    delay_us: int = 0   # netem, each way
    drop_each: int = 0  # N: every N-th packet sent is dropped
    record: str = ""    # options of pathprof record
    command: str = ""   # of a user, for a shell, instead of tcpload

    @property
    def waits(self):
        """Does its time include waiting?"""
        return bool(self.delay_us) or "--pause" in self.load

    @property
    def warm_up(self):
        """A shortened load, so that first uses are not measured."""
        kind, *options = self.load.split()
        at = options.index("--count") + 1
        options[at] = str(max(int(options[at]) // 20, 64))
        return " ".join([kind, *options])


WORKLOADS = {
    "bulk": Workload(
        "one stream, 64 KB at a time, software GSO and GRO, MTU 1500",
        "bursts --count 400 --size 65536 --burst 1"),
    "ping-pong": Workload(
        "one byte each way between two processes",
        "ping-pong --count 4000"),
    "churn": Workload(
        "connect, 512 bytes each way, close",
        "churn --count 500 --size 512"),
    "flows": Workload(
        "64 streams in turn, 4 KB writes",
        "bursts --flows 64 --count 3200 --size 4096 --burst 64"),
    "loss": Workload(
        "one stream, 2 ms RTT, every 97th packet dropped: SACK recovery",
        "bursts --count 500 --size 65536",
        features=NO_OFFLOADS, delay_us=1000, drop_each=97),
    "jumbo": Workload(
        "one stream, MTU 9000, 1 ms RTT, a window of a few segments",
        "bursts --count 800 --size 65536 --rcvbuf 53000",
        mtu=9000, features=NO_OFFLOADS, delay_us=500),
    "udp": Workload(
        "datagrams of 1400 bytes in bursts of 1 to 8192",
        "datagrams --count 8192 --size 1400 --pause 1000",
        record="--udp"),
    "zerocopy": Workload(
        "one stream with MSG_ZEROCOPY, 64 KB at a time, MTU 9000",
        "bursts --count 800 --size 65536 --zerocopy --burst 1",
        mtu=9000),
}


#: A user's workload: its name is that of a file.
OWN = re.compile(r"([a-z][a-z0-9-]*)=(.*\S.*)", re.DOTALL)


def named(text):
    """(name, workload) of NAME or NAME=COMMAND; None if there is none."""
    own = OWN.fullmatch(text)
    if own and own[1] not in WORKLOADS:
        return own[1], Workload("a command of the user", "", command=own[2])
    return (text, WORKLOADS[text]) if text in WORKLOADS else None


def main():
    """Without an argument: list them; with one: does that workload exist?"""
    if len(sys.argv) > 1:
        return named(sys.argv[1]) is None
    for name, workload in WORKLOADS.items():
        print(f"{name:<10} {workload.about}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
