# SPDX-License-Identifier: GPL-2.0-only
"""Each key of an arm changes what it names, by the kernel's own account: two
transfers in fresh namespaces, one with the key, one without, and what sock_diag,
SNMP counters, qdiscs, devices and the socket's options report of both.  Prints
"ok NAME" or "not ok NAME" for each case, and what was read.

usage: cell_keys.py [KEY...]     only these cases
"""
import contextlib
import ctypes
import json
import os
import re
import socket
import sys
import threading
from dataclasses import replace
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import netns  # noqa: E402
from mssab.experiment import experiment_file, module  # noqa: E402
from mssab.run import loads, servers, trial  # noqa: E402
from mssab.testbed import bridge, ethtool  # noqa: E402
from mssab.experiment.cell import Cell  # noqa: E402
from mssab.testbed.ends import RECEIVER, SENDER  # noqa: E402
from mssab.errors import MssabError  # noqa: E402
from mssab.experiment.experiment import Arm  # noqa: E402
from mssab.testbed.testbed import Testbed  # noqa: E402
from msstune import sockdiag  # noqa: E402
from msstune.facts import collect  # noqa: E402

BASE = Cell(load="tcpload", warmup_ms=300, measure_ms=700)
EVERY = 0.05                # seconds between looks at the sockets
PIDFD_OPEN, PIDFD_GETFD = 434, 438
TCP_NODELAY, SO_ZEROCOPY = 1, 60
LIBC = ctypes.CDLL(None, use_errno=True)


def run_command(*words):
    return netns.command(*words)


def arm_of(cell, **more):
    empty = dict(settings={}, module={}, sysctl_sender={}, sysctl_receiver={},
                 device={}, env={})
    return Arm(name="one", cell=cell, **(empty | more))


def held(inode):
    """Process and number of the descriptor of that socket."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            for entry in os.scandir(folder / "fd"):
                if os.readlink(entry.path) == f"socket:[{inode}]":
                    return int(folder.name), int(entry.name)
        except OSError:
            continue
    return None


def options(inode):
    """Options of a socket of another process, by a copy of its descriptor; the
    CPUs of the thread that works in this thread's namespace.  Nothing if the
    process has ended."""
    where = held(inode)
    if not where:
        return {}
    pid, number = where
    pidfd = LIBC.syscall(PIDFD_OPEN, pid, 0)
    copy = LIBC.syscall(PIDFD_GETFD, pidfd, number, 0)
    os.close(pidfd)
    if copy < 0:
        return {}
    with socket.socket(fileno=copy) as sock:
        return {"nodelay": sock.getsockopt(socket.IPPROTO_TCP, TCP_NODELAY),
                "zerocopy": sock.getsockopt(socket.SOL_SOCKET, SO_ZEROCOPY),
                "cpus": sorted(os.sched_getaffinity(pid)),
                "program": Path(f"/proc/{pid}/comm").read_text().strip(),
                "mapped": f"socket:[{inode}]" in Path(
                    f"/proc/{pid}/maps").read_text()}


class Writes:
    """The sizes that programs pass to write() of a socket, by the kernel's
    tracepoint."""

    TRACING = Path("/sys/kernel/tracing")
    TRIGGER = "hist:keys=count if comm == \"tcpload\""

    def __init__(self):
        if not (self.TRACING / "events").exists():
            run_command("mount", "-t", "tracefs", "tracefs", str(self.TRACING))
        self.event = self.TRACING / "events/syscalls/sys_enter_write"

    def __enter__(self):
        (self.event / "trigger").write_text(self.TRIGGER + "\n")
        return self

    def sizes(self, least):
        """Sizes that at least so many writes had."""
        rows = re.findall(r"count: +(\d+) } hitcount: +(\d+)",
                          (self.event / "hist").read_text())
        return {int(size) for size, number in rows if int(number) >= least}

    def __exit__(self, *_):
        (self.event / "trigger").write_text(f"!{self.TRIGGER}\n")


class Watch(threading.Thread):
    """Looks at the sockets of one end while a transfer runs."""

    def __init__(self, end):
        super().__init__()
        self.end, self.done = end, threading.Event()
        self.looks, self.options = [], {}

    def run(self):
        with netns.inside(self.end):
            while not self.done.wait(EVERY):
                flows = [sockdiag.unpack(look)
                         for look in sockdiag.looks().values()]
                flows = [f for f in flows if f["bytes_acked"] > 1000
                         or f["bytes_received"] > 1000]
                self.looks += flows
                # The process may end at any moment.
                for flow in flows:
                    with contextlib.suppress(ProcessLookupError,
                                             FileNotFoundError):
                        self.options = self.options or options(flow["inode"])

    def values(self, key):
        return [f[key] for f in self.looks]


class Account:
    """What the kernel reports of one transfer."""

    def __init__(self, testbed, arm):
        testbed.tear_down()
        between = testbed.prepare(arm, arm.module, arm.cell)
        before = {end: self._counts(end) for end in between.namespaces}
        watches = [Watch(end) for end in between.namespaces]
        for watch in watches:
            watch.start()
        try:
            with Writes() as writes:
                self.raw = loads.run(arm.cell, between)
                self.writes = writes.sizes(20)
        finally:
            for watch in watches:
                watch.done.set()
                watch.join()
        self.tx, self.rx = watches[0], watches[-1]
        self.grown = [{key: value - before[end].get(key, 0) for key, value in
                       self._counts(end).items()} for end in between.namespaces]
        self.qdiscs = {end: json.loads(run_command(
            "tc", "-n", end, "-s", "-j", "qdisc", "show", "dev", "veth0"))
            for end in between.namespaces}
        self.links = {end: json.loads(run_command(
            "ip", "-n", end, "-s", "-j", "link", "show", "veth0"))[0]
            for end in between.namespaces}
        self.features = {end: ethtool.read("veth0", "ip", "netns", "exec", end)
                         for end in between.namespaces}
        self.switched = sum(
            port["stats64"]["tx"]["packets"] for port in json.loads(run_command(
                "ip", "-n", bridge.SWITCH, "-s", "-j", "link", "show", "master",
                "switch"))) if arm.cell.bridge else 0
        testbed.tear_down()

    @staticmethod
    def _counts(end):
        with netns.inside(end):
            return collect.snmp(Path("/proc/thread-self/net"))

    @property
    def accepted(self):
        """Connections that each end accepted."""
        return [end["Tcp.PassiveOpens"] for end in self.grown]

    @property
    def per_packet(self):
        """TCP segments for each packet that left the sender's device."""
        segments = self.grown[0]["Tcp.OutSegs"] + self.grown[0]["Tcp.RetransSegs"]
        return segments / self.links[SENDER]["stats64"]["tx"]["packets"]

    def drops(self, end=SENDER):
        return sum(q["drops"] for q in self.qdiscs[end])


def sysctl(end, key):
    with netns.inside(end):
        return Path("/proc/sys", key.replace(".", "/")).read_text().split()


#: key: its value, other keys of both transfers, and two numbers of an account, of
#: which the first must be true with the key and false without it.
CASES = {
    "mtu": (1500, {}, lambda a: (max(a.tx.values("snd_mss")) == 1448,
                                 a.links[SENDER]["mtu"])),
    "rtt_ms": (80.0, {}, lambda a: (80_000 <= min(a.tx.values("min_rtt")),
                                    min(a.tx.values("min_rtt")))),
    "rcvbuf_max": (65536, {}, lambda a: (set(a.rx.values("rcvbuf")) == {65536},
                                         max(a.rx.values("rcvbuf")))),
    "rcvbuf_after_accept": (30000, {}, lambda a: (
        set(a.rx.values("rcvbuf")) == {60000}, max(a.rx.values("rcvbuf")))),
    # A scaled window is rounded up to the unit of its field.
    "window_segments": (3.0, {"warmup_ms": 1000}, lambda a: (
        3 * 8948 <= a.tx.values("snd_wnd")[-1] <= 3 * 8948 + 2048,
        a.tx.values("snd_wnd")[-1])),
    "window_scaling": (False, {}, lambda a: (
        not a.tx.looks[-1]["options"] & sockdiag.OPT_WSCALE
        and max(a.tx.values("snd_wnd")) <= 65535, max(a.tx.values("snd_wnd")))),
    "write": (1000, {}, lambda a: (a.writes == {1000}, a.writes)),
    "request": (4000, {}, lambda a: (
        max(a.tx.values("wqueue")) <= 4000
        and a.tx.looks[-1]["bytes_sent"] == 4000 * a.tx.looks[-1]["data_segs_out"],
        max(a.tx.values("wqueue")))),
    "nagle": (False, {}, lambda a: (a.tx.options["nodelay"] == 1,
                                    a.tx.options["nodelay"])),
    "zerocopy": (True, {}, lambda a: (a.tx.options["zerocopy"] == 1,
                                      a.tx.options["zerocopy"])),
    "load": ("nuttcp", {}, lambda a: (a.tx.options["program"] == "nuttcp",
                                      a.tx.options["program"])),
    "zerocopy_rx": (True, {}, lambda a: (a.rx.options["mapped"],
                                         a.rx.options["mapped"])),
    "bridge": (True, {}, lambda a: (a.switched > 20, a.switched)),
    "senders": (3, {"bridge": True}, lambda a: (a.accepted == [0, 0, 0, 3],
                                                a.accepted)),
    "receivers": (3, {"bridge": True}, lambda a: (a.accepted == [0, 1, 1, 1],
                                                  a.accepted)),
    "streams": (4, {}, lambda a: (a.accepted == [0, 4], a.accepted)),
    "txqueuelen": (77, {"qdisc": "pfifo_fast"}, lambda a: (
        a.links[SENDER]["txqlen"] == 77, a.links[SENDER]["txqlen"])),
    "corrupt_percent": (5.0, {"measure_ms": 2000}, lambda a: (
        a.grown[1]["Tcp.InCsumErrors"] > 0, a.grown[1]["Tcp.InCsumErrors"])),
    "corrupt_rx_percent": (5.0, {"measure_ms": 2000}, lambda a: (
        a.grown[1]["Tcp.InCsumErrors"] > 0, a.grown[1]["Tcp.InCsumErrors"])),
    "sender_cpu": (1, {}, lambda a: (a.tx.options["cpus"] == [1],
                                     a.tx.options["cpus"])),
    "receiver_cpu": (1, {}, lambda a: (a.rx.options["cpus"] == [1],
                                       a.rx.options["cpus"])),
    "congestion_control": ("reno", {}, lambda a: (
        set(a.tx.values("cc")) == {"reno"}, a.tx.looks[-1]["cc"])),
    "cwnd_max": (4, {}, lambda a: (max(a.tx.values("snd_cwnd")) <= 4,
                                   max(a.tx.values("snd_cwnd")))),
    "gso": (False, {}, lambda a: (
        a.per_packet < 1.01 and a.features[SENDER]["features"]
        ["generic-segmentation-offload"] == "off", a.per_packet)),
    "qdisc": ("fq", {}, lambda a: (
        [q["kind"] for q in a.qdiscs[SENDER] if q.get("root")] == ["fq"]
        and sum(q["packets"] for q in a.qdiscs[SENDER]) > 10,
        [q["kind"] for q in a.qdiscs[SENDER]])),
    "ecn_mark_percent": (5.0, {"measure_ms": 2000}, lambda a: (
        a.grown[1]["IpExt.InCEPkts"] > 0 and a.tx.looks[-1]["delivered_ce"] > 0,
        a.grown[1]["IpExt.InCEPkts"])),
    "rate_mbit": (20.0, {}, lambda a: (
        a.raw["bytes_per_s"] * 8 < 20e6 * 1.02, a.raw["bytes_per_s"] * 8e-6)),
    "loss_percent": (5.0, {"measure_ms": 2000}, lambda a: (
        a.drops() > 0 and a.grown[0]["Tcp.RetransSegs"] > 0, a.drops())),
    "reorder_percent": (30.0, {}, lambda a: (
        a.grown[1]["TcpExt.TCPOFOQueue"] > 20 and not a.drops(),
        a.grown[1]["TcpExt.TCPOFOQueue"])),
    "queue_packets": (6, {"rate_mbit": 20.0, "measure_ms": 2000}, lambda a: (
        a.drops() > 0 and a.qdiscs[SENDER][0]["options"]["limit"] == 6,
        a.drops())),
    "offered_mbit": (4.0, {"load": "iperf3-udp", "warmup_ms": 0,
                           "measure_ms": 2000}, lambda a: (
        a.links[SENDER]["stats64"]["tx"]["bytes"] * 8 < 4e6 * 2 * 1.3,
        a.links[SENDER]["stats64"]["tx"]["bytes"])),
}


def with_and_without(key):
    value, others, judge = CASES[key]
    with Testbed() as testbed:
        found = []
        for cell in (replace(BASE, **others),
                     replace(BASE, **others | {key: value})):
            account = Account(testbed, arm_of(cell))
            found.append(judge(account))
    (before, was), (after, now) = found
    print(f"{key} = {value}: {now}; without: {was}")
    return after and not before


def of_arm(testbed, **more):
    """The arm, prepared; what a transfer in it did."""
    return Account(testbed, arm_of(BASE, **more))


def sysctls():
    key = "net.ipv4.tcp_sack"
    with Testbed() as testbed:
        seen = []
        for one, other in (({}, {}), ({key: "0"}, {}), ({}, {key: "0"})):
            between = testbed.prepare(arm_of(BASE, sysctl_sender=one,
                                             sysctl_receiver=other), (), BASE)
            seen.append([sysctl(end, key)[0] for end in between.namespaces])
            testbed.tear_down()
        account = of_arm(testbed, sysctl_sender={key: "0"})
    print(seen)
    return seen == [["1", "1"], ["0", "1"], ["1", "0"]] \
        and not account.tx.looks[-1]["options"] & sockdiag.OPT_SACK


def module_keys():
    if not module.loaded():
        print("mssfrac is not loaded")
        return False
    bad = []
    with Testbed() as testbed:
        for name, key in module.SETTINGS.items():
            value = int(key.high) if key.default != key.high else int(key.low)
            between = testbed.prepare(arm_of(BASE, module={name: value}), [name],
                                      BASE)
            got = [int(sysctl(end, f"net.mssfrac.{name}")[0])
                   for end in between.namespaces]
            testbed.tear_down()
            if got != [value] * 2:
                bad.append(f"{name} = {value}: {got}")
    print("; ".join(bad) or f"{len(module.SETTINGS)} settings, both ends")
    return not bad


def features():
    """Without checksum offload the device cannot segment either: TSO goes with
    it, and the stack segments before the device."""
    with Testbed() as testbed:
        found = []
        for device in ({}, {"features": {"tx-checksum-ip-generic": "off"}}):
            account = of_arm(testbed, device=device)
            found.append((account.features[SENDER]["features"]
                          ["tx-checksum-ip-generic"],
                          account.features[RECEIVER]["features"]
                          ["tx-checksum-ip-generic"], account.per_packet < 1.01))
    print(found)
    return found == [("on", "on", False), ("off", "off", True)]


def channels():
    with Testbed() as testbed:
        found = []
        for device in ({}, {"channels": {"rx": "2"}}):
            testbed.prepare(arm_of(BASE, device=device), (), BASE)
            found.append(ethtool.read("veth0", "ip", "netns", "exec", SENDER)
                         ["channels"]["rx"])
            testbed.tear_down()
    print(found)
    return found == ["1", "2"]


def refused():
    """What the device cannot do, or what would change nothing, is refused."""
    cells = {"coalesce": (BASE, {"coalesce": {"rx-usecs": "100"}}),
             "ring": (BASE, {"ring": {"rx": "100"}}),
             "gro": (replace(BASE, gro=False), {})}
    taken = []
    with Testbed() as testbed:
        for name, (cell, device) in cells.items():
            try:
                testbed.prepare(arm_of(cell, device=device), (), cell)
                taken.append(name)
            except MssabError as error:
                print(error)
            testbed.tear_down()
    print(f"accepted: {taken}")
    return not taken


def observer():
    """tcpdump sees the packets of the receiver's device, headers only."""
    with Testbed() as testbed:
        found = [trial.block(testbed, arm_of(replace(BASE, observer=word)), (), 1)
                 for word in ("", "tcpdump")]
    seen = [(one.get("observed", 0), one["packets"]) for one in found]
    print(seen)
    # GSO and GRO make one packet of up to 45 segments.
    return seen[0][0] == 0 and seen[1][0] > seen[1][1] / 100


def failing_connection():
    """Of four connections one is not answered: it reports why, and the port that
    decides its arm; the others are measured."""
    servers.LIMIT_START_S, servers.LIMIT_TIMES = 5, 5
    cell = replace(BASE, warmup_ms=0)
    with Testbed() as testbed:
        between = testbed.prepare(arm_of(cell), (), cell)
        run_command("ip", "netns", "exec", RECEIVER, "nft", "add table inet t; add "
                    "chain inet t c { type filter hook input priority 0; }; add rule "
                    f"inet t c tcp dport {servers.PORT + 2} drop")
        some = loads.several(cell, (between,) * 4)
    print([(one["port"], one["sender_port"], one.get("failed", one.get(
        "bytes_per_s"))) for one in some])
    return [one["port"] for one in some if "failed" in one] == [servers.PORT + 2] \
        and all(one["sender_port"] for one in some)


ARM = {"sysctl, sysctl_sender, sysctl_receiver": sysctls,
       "settings of the module": module_keys, "features": features,
       "channels": channels,
       "coalesce, ring, gro: refused on veth": refused,
       "observer": observer,
       "one of several connections fails": failing_connection}
#: Tested by refused(), by observer(), and by tests/unit/bench/test_tcpload.py.
OTHERS = ("gro", "observer", "verify")


def complete():
    missing = set(experiment_file.ARM_CELL_KEYS) - set(CASES) - set(OTHERS)
    print(f"keys without a case: {sorted(missing) or 'none'}")
    return not missing


def main():
    names = sys.argv[1:] or [*CASES, *ARM, "every key has a case"]
    checks = ARM | {"every key has a case": complete}
    sockdiag.looks()    # the first one loads modules, longer than a transfer
    for name in names:
        try:
            right = checks[name]() if name in checks else with_and_without(name)
        except (MssabError, OSError, LookupError, ValueError) as error:
            print(repr(error))
            right = False
        print(f"{'ok' if right else 'not ok'} {name}", flush=True)


if __name__ == "__main__":
    main()
