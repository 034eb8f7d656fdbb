# SPDX-License-Identifier: GPL-2.0-only
"""A third set of held-out faults, by someone who knew of the rules of msstune what its
manual page says, and not their code.  It covers applications, windows, paths and hosts;
many loads are programs of Debian.  Parameters are drawn from the ranges stated here.
Where a counter of the kernel shows the fault, the case fails unless that counter grows
meanwhile.  Prints "ok NAME" or "not ok NAME" for each case, and remarks.

usage: held_out_path_faults_3.py list|faults|healthy|all|NAME...
MSSTUNE_SEED=N in the environment: the seed of the parameters, 1 by default.
FACTS=DIR in the environment: store the facts of each case in DIR.

Clients start when the recording of the profile has started: a slow start of pathprof
then makes no connection older.

Do not change a rule until one of these cases passes: write new ones then.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import held_out_path_faults as held  # noqa: E402
import faults  # noqa: E402
import held_out_loads_3 as own  # noqa: E402
import path_faults  # noqa: E402
from faults import sh  # noqa: E402
from held_out_loads import IPV6, MIDDLE, stream  # noqa: E402
from held_out_loads_3 import BEYOND, POD, curl, file, gateway, program  # noqa: E402
from held_out_loads_3 import iperf3, receiver, sending_macvlan, switched, url  # noqa: E402
from held_out_loads_3 import web_server  # noqa: E402
from held_out_path_faults import case  # noqa: E402
from mssab.netns import inside, snmp  # noqa: E402
from path_faults import A, B  # noqa: E402

# The command line is that of the first set, without its cases.
held.FAULTS.clear()
held.HEALTHY.clear()


# --- Counters of the kernel -------------------------------------------------------

def answered(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          check=True).stdout


def extended(end, *words):
    """A sum of counters of /proc/net/netstat."""
    def counter():
        with inside(end):
            lines = Path("/proc/thread-self/net/netstat").read_text().splitlines()
        names, values = (line.split() for line in lines if line.startswith("TcpExt:"))
        return sum(int(dict(zip(names, values))[word]) for word in words)
    return counter


def counted(end, *name):
    """Packets of a named counter of nft."""
    def counter():
        seen = answered("ip", "netns", "exec", end, "nft", "-j", "list", "counter",
                        *name)
        return json.loads(seen)["nftables"][1]["counter"]["packets"]
    return counter


def limited(end, what, cwnd=0):
    """Milliseconds for which connections with data were busy (@what) or limited.
    @cwnd: the congestion window that the busy ones must have."""
    def counter():
        seen = answered("ip", "netns", "exec", end, "ss", "-tinH", "state",
                        "established")
        windows = {int(n) for n in re.findall(r" cwnd:(\d+).* busy:", seen)}
        if cwnd and windows != {cwnd}:
            raise ValueError(f"congestion windows of {windows}, {cwnd} expected")
        return sum(int(n) for n in re.findall(rf" {what}:(\d+)ms", seen))
    return counter


def single(device):
    """Grows if A's packets have fewer than 1600 bytes on average."""
    def counter():
        seen = answered("ip", "-n", A, "-s", "-j", "link", "show", "dev", device)
        sent = json.loads(seen)[0]["stats64"]["tx"]
        return 1600 * sent["packets"] - sent["bytes"]
    return counter


def long_queue(kbit):
    """Packets over the limit of the router's link, whose queue lasts 450 ms."""
    def counter():
        seen = json.loads(answered("tc", "-n", MIDDLE, "-s", "-j", "qdisc", "show",
                                   "dev", "mb"))[0]
        if (lasts := seen["backlog"] * 8 / kbit) < 450:
            raise ValueError(f"the queue lasts {lasts:.0f} ms")
        return seen["overlimits"]
    return counter


def throttled():
    """Milliseconds for which the group waited for its quota."""
    return int(re.search(r"throttled_usec (\d+)",
                         (POD / "cpu.stat").read_text())[1]) // 1000


def segments():
    return snmp(B)["Tcp.InSegs"]


def opens():
    return snmp(A)["Tcp.ActiveOpens"]


def run(name, servers, clients, proof=None, warm=2.0, late=None, after=0.0, **given):
    """path_faults.run(), whose clients start with the recording.  @warm: seconds from
    the first connection until @late, which takes the ids of all programs.  @after:
    seconds from there until the tool looks.  @proof: a counter, and by how much it
    grows at least while the tool looks.  Without one, the load must move."""
    counter, least = proof or (segments, 30)
    ready, go = os.pipe()
    started, kept_look = [], path_faults.look

    def gated(function):
        def wait():
            os.read(ready, 1)
            function()
        return wait

    def load():
        started.extend(clients())
        return [*servers(), *map(gated, started)]

    def look(end, pids):
        before = []

        class Recorder(path_faults.profile_recorder.Recorder):
            def start(self):
                super().start()
                opened, until = opens(), time.monotonic() + 20
                os.write(go, bytes(len(started)))
                while opens() == opened and time.monotonic() < until:
                    time.sleep(0.1)     # a program loads slowly the first time
                time.sleep(warm)
                if late:
                    late(pids)
                    time.sleep(after)
                before.append(counter())
        path_faults.collect.profile_recorder.Recorder, kept = (
            Recorder, path_faults.profile_recorder.Recorder)
        try:
            with inside(end):
                facts = path_faults.collect.collect(path_faults.INTERVAL, record=True)
        finally:
            path_faults.collect.profile_recorder.Recorder = kept
        grown = counter() - before[0]
        faults.tell(f"{name}: the counter grew by {grown}, at least {least} expected")
        if grown < least:
            raise ValueError("the fault or the load is not there")
        return facts
    path_faults.look = look
    try:
        return path_faults.run(name, load=load, **given)
    finally:
        path_faults.look = kept_look
        os.close(ready)
        os.close(go)
        for group in (POD / "one", POD):
            with suppress(OSError):
                group.rmdir()


def healthy(name):
    """The function that follows makes the arguments of run() where nothing is wrong."""
    def keep(function):
        held.HEALTHY[name] = function
        return function
    return keep


# --- Faults ---------------------------------------------------------------------

# The server writes the head and the body of an answer one after the other.
@case("python's http.server keeps connections")
def _(draw):
    port, size, count = draw.port, draw("bytes", 150, 1200), draw("connections", 1, 3)
    file(size)
    return dict(topology=switched, at=B, want=["nagle"],
                servers=lambda: [web_server(port, IPV6, "HTTP/1.1")],
                clients=lambda: [curl(url(port, "file?[1-1000000]", IPV6))] * count,
                proof=(extended(A, "DelayedACKs"), 20))


@case("curl writes to a stopped program")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 0, 20)
    file(1 << 34)

    def clients():
        source, sink = os.pipe()
        return [program(A, "cat", reads=source), curl(url(port), writes=sink)]
    return dict(topology=lambda: gateway(number, rtt), at=B,
                want=["peer-stopped"], servers=lambda: [web_server(port)],
                clients=clients, after=2.5, warm=draw("ms", 1500, 4000) / 1000,
                late=lambda pids: os.kill(pids[1], signal.SIGSTOP),
                proof=(extended(B, "TCPWinProbe"), 1))


@case("curl with a limit of its rate")
def _(draw):
    port, number, rate = draw.port, draw("vlan", 2, 4000), draw("kB/s", 60, 300)
    rtt = draw("rtt", 0, 10)
    file(1 << 34)
    return dict(topology=lambda: gateway(number, rtt), at=A,
                want=["application-receive"],
                servers=lambda: [web_server(port, IPV6)], warm=4.0,
                clients=lambda: [curl("--limit-rate", f"{rate}k",
                                      url(port, address=IPV6))],
                proof=(limited(B, "rwnd_limited"), 900))


@case("a buffer set after accept")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 20, 60)
    size, count = draw("kB buffer", 40, 80) * 1024, draw("connections", 1, 3)
    return dict(topology=lambda: gateway(number, rtt), at=B,
                want=["receive-buffer-fixed"],
                servers=lambda: [receiver(port, own.buffered(size), IPV6)],
                clients=lambda: [stream(port, address=IPV6)] * count,
                proof=(limited(A, "rwnd_limited"), 900))


@case("a route with a locked congestion window")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 30, 80)
    window, count = draw("segments", 6, 20), draw("connections", 1, 3)
    return dict(topology=lambda: gateway(number, rtt), want=["cwnd-clamp"],
                before=lambda: own.remembered(port + 1, window),
                servers=lambda: [receiver(port, address=IPV6)],
                clients=lambda: [curl("-H", "Expect:", "-T", "/dev/zero",
                                      url(port, address=IPV6))] * count,
                proof=(limited(A, "busy", window), 1500))


@case("a policer of IPv6 on a router")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 20, 60)
    rate, burst = draw("kB/s", 300, 900), draw("kB burst", 8, 20)
    count = draw("connections", 1, 2)
    return dict(topology=lambda: gateway(number, rtt, 1), want=["policer"],
                before=lambda: own.policed(rate, burst),
                servers=lambda: [receiver(port, address=IPV6)],
                clients=lambda: [stream(port, address=IPV6)] * count, warm=3.0,
                proof=(counted(MIDDLE, "ip6", "police", "over"), 20))


@case("two links of a bond with unlike delays")
def _(draw):
    port, fast, slow = draw.port, draw("ms fast", 2, 5), draw("ms slow", 30, 60)
    count = draw("connections", 1, 2)
    return dict(topology=lambda: own.two_ways(fast, slow), want=["reordering"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)] * count,
                proof=(extended(B, "TCPOFOQueue"), 30))


@case("uploads through a long queue of a slow link")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 10, 30)
    kbit, lasts = draw("kbit/s", 500, 1000), draw("ms of queue", 1200, 2500)
    count = draw("connections", 2, 4)
    return dict(topology=lambda: gateway(number, rtt), want=["bufferbloat"], warm=7.0,
                before=lambda: sh(
                    f"tc -n {MIDDLE} qdisc replace dev mb root tbf rate {kbit}kbit "
                    f"burst 5kb limit {kbit * lasts // 8}"),
                servers=lambda: [receiver(port)],
                clients=lambda: [curl("-H", "Expect:", "-T", "/dev/zero",
                                      url(port))] * count,
                proof=(long_queue(kbit), 20))


@case("a narrow link whose answers are filtered")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 2, 30)
    mtu, count = draw("mtu", 1280, 1440), draw("connections", 1, 3)
    path = file(draw("kB", 100, 900) * 1024)
    return dict(topology=lambda: gateway(number, rtt), want=["mtu"],
                before=lambda: own.narrowed(mtu), warm=draw("ms", 500, 1200) / 1000,
                servers=lambda: [receiver(port, address=IPV6)],
                clients=lambda: [curl("-H", "Expect:", "--data-binary", f"@{path}",
                                      url(port, address=IPV6))] * count,
                proof=(counted(MIDDLE, "ip6", "silence", "hidden"), 1))


@case("a next hop behind a dead port of a switch")
def _(draw):
    port, delay, write = draw.port, draw("delay", 1, 20), draw("kB", 16, 64) * 1024
    pause, count = draw("ms", 5, 20) / 1000, draw("connections", 2, 4)
    return dict(topology=lambda: switched(delay), want=["path-down"],
                before=own.behind, servers=lambda: [receiver(port, address=BEYOND)],
                clients=lambda: [stream(port, write, pause, address=BEYOND)] * count,
                late=lambda _: sh(f"ip -n {MIDDLE} link set dev mb nomaster"),
                after=draw("ms after", 300, 1000) / 1000,
                proof=(extended(A, "TCPTimeouts"), 2))


# Its clients wait for a greeting and send nothing, so no data waits for it.
@case("a server that greets is stopped")
def _(draw):
    port, pause = draw.port, draw("ms", 30, 120) / 1000
    return dict(topology=switched, at=B, want=["accept-queue"],
                servers=lambda: [receiver(port, own.greets, IPV6)],
                clients=lambda: [own.visitors(port, pause, IPV6)],
                late=lambda pids: os.kill(pids[0], signal.SIGSTOP), after=2.5,
                proof=(extended(B, "ListenOverflows"), 10))


@case("a quota of the group above")
def _(draw):
    port, percent, period = draw.port, draw("percent", 4, 15), draw("period", 20, 100)
    size, rounds = draw("kB", 16, 64) * 1024, draw("hashes", 1, 4)
    count = draw("programs", 1, 2)
    return dict(topology=sending_macvlan, want=["cpu-quota"],
                before=lambda: own.pod(percent, period),
                servers=lambda: [receiver(port)],
                clients=lambda: [own.confined(own.hashing(port, size, rounds))] * count,
                proof=(throttled, 600))


@case("a long chain at ingress")
def _(draw):
    port, rules, merged = draw.port, draw("rules", 700, 1500), draw("segments", 2, 8)
    count, write = draw("connections", 1, 3), draw("kB", 16, 64) * 1024

    def topology():
        switched()
        sh(own.small_packets("va", merged))
    return dict(topology=topology, at=B, want=["netfilter-cost"],
                before=lambda: own.ingress(rules),
                servers=lambda: [receiver(port, address=IPV6)],
                clients=lambda: [stream(port, write, address=IPV6)] * count,
                proof=(counted(B, "netdev", "long", "passed"), 500))


@case("iperf3 over a macvlan without scatter-gather")
def _(draw):
    port, count, size = draw.port, draw("connections", 1, 3), draw("kB", 16, 128)
    return dict(topology=lambda: sending_macvlan("sg off"), want=["offload-off"],
                servers=lambda: [iperf3(port)],
                clients=lambda: [iperf3(port, "-P", count, "-l", f"{size}K")],
                proof=(single("va"), 10**5))


# --- Healthy loads ----------------------------------------------------------------

@healthy("downloads by TLS")
def _(draw):
    port, size, rate = draw.port, draw("kB", 20, 200) * 1024, draw("per second", 2, 5)
    file(size)
    return dict(topology=switched, servers=lambda: [own.secured(port, own.FOLDER)],
                clients=lambda: [curl("-k", "--rate", f"{rate}/s", url(
                    port, "file?[1-1000000]", scheme="https"))])


@healthy("iperf3 with a rate")
def _(draw):
    port, mbit, size = draw.port, draw("Mbit/s", 2, 8), draw("kB", 4, 16)
    return dict(topology=sending_macvlan,
                servers=lambda: [iperf3(port)],
                clients=lambda: [iperf3(port, "-b", f"{mbit}M", "-l", f"{size}K")])


@healthy("news to many subscribers")
def _(draw):
    port, count, size = draw.port, draw("subscribers", 10, 25), draw("bytes", 200, 2000)
    pause = draw("ms", 400, 900) / 1000
    return dict(topology=switched, at=B,
                servers=lambda: [own.publisher(port, count, size, pause)],
                clients=lambda: [own.subscribers(port, count)])


@healthy("requests in a pipeline")
def _(draw):
    port, number, rtt = draw.port, draw("vlan", 2, 4000), draw("rtt", 1, 20)
    request, reply = draw("bytes asked", 30, 120), draw("bytes answered", 50, 900)
    batch, pause = draw("batch", 4, 12), draw("ms", 20, 60) / 1000
    return dict(topology=lambda: gateway(number, rtt), at=B,
                servers=lambda: [receiver(port, own.answers_batches(request, reply))],
                clients=lambda: [own.pipelined(port, request, reply, batch, pause)])


@healthy("a control connection, and data connections back")
def _(draw):
    port, size, pause = draw.port, draw("kB", 10, 80) * 1024, draw("ms", 50, 150) / 1000
    return dict(topology=switched, at=A,
                servers=lambda: [receiver(port, own.sends_back(port + 1, size))],
                clients=lambda: [own.retrieves(port, port + 1, pause)])


@healthy("queries with a connection each")
def _(draw):
    port, number, pause = draw.port, draw("vlan", 2, 4000), draw("ms", 20, 60) / 1000
    query, reply = draw("bytes", 20, 60), draw("bytes answered", 50, 500)
    return dict(topology=lambda: gateway(number), at=B,
                servers=lambda: [receiver(port, own.name_server(reply), IPV6)],
                clients=lambda: [own.lookups(port, query, reply, pause)])


if __name__ == "__main__":
    held.main(run)
