# SPDX-License-Identifier: GPL-2.0-only
"""A second set of held-out faults of the kinds of path_faults.py, by someone who knew
of the rules of msstune what its manual page says, and not their code.  Topologies,
programs and causes differ from both earlier sets.  Parameters are drawn from the
ranges stated here.  Where a counter of the kernel shows the fault, the case fails
unless that counter grows meanwhile.  Prints "ok NAME" or "not ok NAME" for each case,
and remarks.

usage: held_out_path_faults_2.py list|faults|healthy|all|NAME...
MSSTUNE_SEED=N in the environment: the seed of the parameters, 1 by default.
FACTS=DIR in the environment: store the facts of each case in DIR.

Do not change a rule until one of these cases passes: write new ones then.
"""
import json
import os
import select
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import held_out_path_faults as held  # noqa: E402
import faults  # noqa: E402
import held_out_loads as loads  # noqa: E402
import path_faults  # noqa: E402
from faults import ADDRESS, sh  # noqa: E402
from held_out_loads import IPV6, MIDDLE, NODELAY, dial, stream, upload  # noqa: E402
from held_out_path_faults import SINGLE, bridged, case, load, rest, six  # noqa: E402
from held_out_path_faults import summing, vlan  # noqa: E402
from mssab.netns import inside  # noqa: E402
from path_faults import A, B, pinned, steered, veth  # noqa: E402
from wide_faults import discard  # noqa: E402

# The command line is that of the first set, without its cases.
held.FAULTS.clear()
held.HEALTHY.clear()


# --- Topologies -----------------------------------------------------------------

def sending_bridge(offloads):
    """A's address is on a bridge; @offloads: of the veth that is its port."""
    veth(offloads)
    sh("""
    ip -n $A addr flush dev va
    ip -n $A link add br-a type bridge forward_delay 0
    ip -n $A link set va master br-a; ip -n $A link set br-a up
    ip -n $A addr add 10.9.0.1/24 dev br-a""")
    time.sleep(1.5)     # the kernel may let a new bridge send only after a second


def macvlan(offloads=""):
    """B's address is on a macvlan, which takes over @offloads of its veth."""
    veth("", offloads)
    sh(f"""
    ip -n $B addr flush dev vb
    ip -n $B link add link vb name mv-b type macvlan mode bridge
    ip -n $B link set mv-b up; ip -n $B addr add {ADDRESS}/24 dev mv-b""")


def split_by_router(gro):
    """A router sends single segments, as to a wire."""
    held.routed()
    sh(f"ip netns exec {MIDDLE} ethtool -K mb {SINGLE}; "
       f"ip netns exec $B ethtool -K vb gro {gro}")


def several_queues(queues, length):
    """A's packets pass an ifb with @queues queues.  Each stops after @length packets
    and then wakes, often in the middle of a packet that software splits."""
    six()
    sh(f"""
    ip -n $A link add ifb-a numtxqueues {queues} numrxqueues {queues} \
        txqueuelen {length} type ifb
    ip -n $A link set ifb-a up
    ip netns exec $A ethtool -K ifb-a tso off
    tc -n $A qdisc add dev ifb-a root handle 1: mq
    for n in $(seq {queues}); do
        tc -n $A qdisc add dev ifb-a parent 1:$n pfifo limit 2000; done
    tc -n $A qdisc add dev va clsact
    tc -n $A filter add dev va egress matchall action mirred egress redirect dev ifb-a
    """)


def polling_thread(cpu):
    """A thread on that CPU handles what B's veth receives (threaded NAPI)."""
    sh("ip netns exec $B sh -c 'echo 1 > /sys/class/net/vb/threaded'")
    for path in Path("/proc").glob("[0-9]*/comm"):
        with suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().startswith("napi/vb-"):
                os.sched_setaffinity(int(path.parent.name), {cpu})


def chain(count):
    """@count rules of B's bridge that match nothing, then a counter."""
    lines = ["table bridge long {", "counter passed { }", "chain first {",
             "type filter hook prerouting priority 0;",
             *[f"ether saddr 02:00:5e:00:{n // 256:02x}:{n % 256:02x} drop"
               for n in range(count)], "counter name passed", "}", "}", ""]
    with inside(B):
        subprocess.run(["nft", "-f", "-"], input="\n".join(lines), text=True,
                       check=True)


# --- Programs -------------------------------------------------------------------

def file_sender(port, size, pause=0.0, options=(), address=ADDRESS):
    """Sends a file of @size again and again by sendfile()."""
    def run():
        sock, file = dial(port, options, address), os.memfd_create("data")
        os.write(file, bytes(size))
        while True:
            os.sendfile(sock.fileno(), file, 0, size)
            if pause:
                time.sleep(pause)
    return run


def splicing(size):
    """A reader that moves its data into a pipe, without a copy."""
    def handle(peer):
        source, sink = os.pipe()
        null = os.open("/dev/null", os.O_WRONLY)
        while got := os.splice(peer.fileno(), sink, size):
            os.splice(source, null, got)
    return handle


def scattering(parts, size):
    """A reader by recvmsg() into @parts buffers."""
    def handle(peer):
        buffers = [bytearray(size) for _ in range(parts)]
        while peer.recvmsg_into(buffers)[0]:
            pass
    return handle


def watcher(port, count, work=0, address=ADDRESS):
    """One program that reads @count connections as epoll names them, and works on so
    many bytes of each read."""
    with inside(B):
        listener = socket.create_server((address, port), backlog=count, family=(
            socket.AF_INET6 if ":" in address else socket.AF_INET))

    def run():
        events, peers = select.epoll(), {}
        for _ in range(count):
            peer = listener.accept()[0]
            peers[peer.fileno()] = peer
            events.register(peer, select.EPOLLIN)
        while True:
            for number, _ in events.poll():
                sum(peers[number].recv(1 << 16)[:work])
    return run


def crowd(port, count, size, pause=0.0, address=ADDRESS):
    """One program that writes to @count connections in turn."""
    def run():
        socks, data = [dial(port, NODELAY, address) for _ in range(count)], bytes(size)
        while True:
            for sock in socks:
                sock.sendall(data)
                if pause:
                    time.sleep(pause)
    return run


def busy():
    while True:
        sum(range(1000))


# --- Counters of the kernel: functions of the programs' ids -----------------------

def answered(*command):
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True,
                                     check=True).stdout)


def below(size, end, device, way):
    """Grows if the packets of a device have fewer bytes than that on average."""
    def counter(_):
        seen = answered("ip", "-n", end, "-s", "-j", "link", "show", "dev", device)
        return size * seen[0]["stats64"][way]["packets"] \
            - seen[0]["stats64"][way]["bytes"]
    return counter


def queue(end, device, what):
    def counter(_):
        return sum(qdisc[what] for qdisc in answered(
            "tc", "-n", end, "-s", "-j", "qdisc", "show", "dev", device))
    return counter


def passed(_):
    """Packets that met every rule of chain()."""
    seen = answered("ip", "netns", "exec", B, "nft", "-j", "list", "counter", "bridge",
                    "long", "passed")
    return seen["nftables"][1]["counter"]["packets"]


def backlog_drops(_):
    return sum(int(line.split()[1], 16) for line in
               Path("/proc/net/softnet_stat").read_text().splitlines())


def sleeps(pids):
    """How often the first program slept."""
    status = Path(f"/proc/{pids[0]}/status").read_text().split()
    return int(status[status.index("voluntary_ctxt_switches:") + 1])


def waited(pids):
    """Milliseconds for which the first program waited for its CPU."""
    return int(Path(f"/proc/{pids[0]}/schedstat").read_text().split()[1]) // 10**6


def segments(_):
    """TCP segments that B received."""
    with inside(B):
        lines = Path("/proc/net/snmp").read_text().splitlines()
    tcp = [line.split() for line in lines if line.startswith("Tcp:")]
    return int(dict(zip(*tcp, strict=True))["InSegs"])


def run(name, proof=None, **given):
    """path_faults.run(); @proof: a counter, and by how much it grows at least while
    the tool looks.  Without one, the load must move."""
    counter, least = proof or (segments, 50)
    look = path_faults.look

    def proven(end, pids):
        before = counter(pids)
        facts = look(end, pids)
        grown = counter(pids) - before
        faults.tell(f"{name}: the counter grew by {grown}, at least {least} expected")
        if grown < least:
            raise ValueError("the fault or the load is not there")
        return facts
    path_faults.look = proven
    try:
        return path_faults.run(name, **given)
    finally:
        path_faults.look = look


# --- Cases ----------------------------------------------------------------------

@case("sendfile through a bridge port without TSO", "sendfile through a bridge")
def _(draw, fault):
    size, count = draw("kB", 48, 256) * 1024, draw("connections", 1, 2)
    client = file_sender(draw.port, size, rest(draw, 12, 30, fault))
    return dict(topology=lambda: sending_bridge(SINGLE if fault else ""),
                load=load(draw.port, discard, client, count), want=["offload-off"],
                proof=(below(1600, A, "va", "tx"), 10**5) if fault else None)


@case("GRO off behind a router, splice", "a reader by splice behind a router")
def _(draw, fault):
    size, count = draw("kB read", 16, 64) * 1024, draw("connections", 2, 3)
    client = stream(draw.port, draw("kB", 16, 96) * 1024, rest(draw, 15, 30, fault))
    return dict(topology=lambda: split_by_router("off" if fault else "on"), at=B,
                load=load(draw.port, splicing(size), client, count),
                want=["offload-off"],
                proof=(below(1600, B, "vb", "rx"), 10**5) if fault else None)


@case("checksums of a macvlan in software, both directions",
      "both directions over a macvlan")
def _(draw, fault):
    port, write = draw.port, draw("kB", 32, 192) * 1024
    pause = rest(draw, 15, 30, fault)
    there = load(port, discard, stream(port, write, pause))
    back = load(port + 1, upload(write, pause), loads.download(port + 1))
    return dict(topology=lambda: macvlan("tx off" if fault else ""), at=B,
                load=lambda: there() + back(), want=["offload-off"],
                proof=(below(1600, B, "vb", "tx"), 10**5) if fault else None)


# All offloads are on, so a packet has up to 64 KiB.
@case("a long chain of the bridge", "a short chain of the bridge")
def _(draw, fault):
    rules = draw("rules", *((800, 1600) if fault else (3, 12)))
    write, count = draw("kB", 16, 64) * 1024, draw("connections", 1, 3)
    client = stream(draw.port, write, rest(draw, 12, 30, fault))
    return dict(topology=bridged, at=B, want=["netfilter-cost"],
                before=lambda: chain(rules), proof=(passed, 50),
                load=load(draw.port, discard, client, count))


@case("recvmsg into few bytes", "recvmsg into large buffers")
def _(draw, fault):
    number, parts = draw("vlan", 2, 4000), draw("buffers", 2, 6)
    size = draw("bytes", 6, 40) if fault else draw("kB read", 4, 16) * 1024
    client = file_sender(draw.port, draw("kB", 32, 128) * 1024,
                         rest(draw, 10, 25, fault))
    return dict(topology=lambda: vlan(number), at=B, want=["tiny-reads"],
                load=load(draw.port, scattering(parts, size), client,
                          draw("connections", 1, 2)),
                proof=(segments, 10 if fault else 50))


@case("sendfile of few bytes")
def _(draw):
    client = file_sender(draw.port, draw("bytes", 30, 200), 0, NODELAY, IPV6)
    return dict(topology=bridged, want=["small-writes"],
                load=load(draw.port, discard, client, draw("connections", 1, 2), IPV6),
                proof=(below(400, A, "va", "tx"), 10**5))


# Half to seven tenths of the ACKs are lost, several in a row.
@case("a reverse path that loses ACKs in bursts", "several flows over a router")
def _(draw, fault):
    rtt, write = draw("rtt", 10, 40), draw("kB", 32, 96) * 1024
    client = stream(draw.port, write, rest(draw, 25, 50, fault))
    lost = f"tc -n {MIDDLE} qdisc change dev ma root netem delay {rtt / 2}ms " \
        "limit 10000 loss gemodel {}% {}%"
    if fault:
        lost = lost.format(draw("percent to bad", 35, 50),
                           draw("percent to good", 20, 35))
    return dict(topology=lambda: held.routed(rtt), want=["ack-loss"],
                load=load(draw.port, discard, client, draw("connections", 2, 3)),
                fault=lost if fault else "",
                proof=(queue(MIDDLE, "ma", "drops"), 20) if fault else None)


@case("a short backlog behind RPS to one CPU")
def _(draw):
    number, cpu = draw("vlan", 2, 4000), draw("CPU", 0, 2)
    client = stream(draw.port, draw("kB", 16, 64) * 1024)
    return dict(topology=lambda: vlan(number), before=lambda: steered(cpu), cpus=3,
                host={"net.core.netdev_max_backlog": draw("limit", 2, 8)}, at=B,
                load=load(draw.port, discard, client, draw("connections", 5, 8)),
                want=["backlog-drops"], proof=(backlog_drops, 20))


@case("a polling thread on the CPU of the reader",
      "a polling thread on a CPU of its own")
def _(draw, fault):
    cpu, step = draw("CPU", 0, 2), draw("step", 1, 2)
    reader, writer = cpu + step * (not fault), cpu + step * (2 - fault)
    work, count = draw("bytes of work", 500, 3000), draw("connections", 2, 6)
    port, write = draw.port, draw("kB", 8, 64) * 1024
    pause = rest(draw, 10, 25, fault)
    return dict(topology=lambda: bridged(SINGLE, "gro on"), cpus=3, at=B,
                before=lambda: polling_thread(cpu),
                load=lambda: [pinned(reader % 3, watcher(port, count, work, IPV6)),
                              pinned(writer % 3, crowd(port, count, write, pause,
                                                       IPV6))],
                want=["placement", "cpu-softirq"],
                proof=(waited, 300) if fault else None)


# Another program takes half of the reader's CPU or more; a third CPU is idle.
@case("a reader beside a busy program")
def _(draw):
    cpu, step = draw("CPU", 0, 2), draw("step", 1, 2)
    others, work = draw("busy programs", 1, 2), draw("bytes of work", 1000, 4000)
    port, write = draw.port, draw("kB", 16, 64) * 1024
    there = load(port, pinned(cpu, summing(work)),
                 pinned((cpu + step) % 3, stream(port, write)))
    return dict(topology=macvlan, cpus=3, at=B, want=["cpu", "placement"],
                load=lambda: there() + [pinned(cpu, busy)] * others,
                proof=(waited, 500))


@case("epoll wakes for each message", "epoll and rare messages")
def _(draw, fault):
    count, clients = draw("connections", 10, 30), draw("clients", 2, 3)
    size, port = draw("bytes", 40, 400), draw.port
    pause = draw("us", 200, 500) / 1e6 if fault else rest(draw, 25, 60, fault)
    return dict(topology=bridged, at=B, want=["wake-ups"],
                load=lambda: [watcher(port, count * clients, 0, IPV6),
                              *[crowd(port, count, size, pause, IPV6)] * clients],
                proof=(sleeps, 600) if fault else None)


@case("an ifb of several queues that stop")
def _(draw):
    number, length = draw("queues", 2, 4), draw("txqueuelen", 2, 8)
    client = stream(draw.port, draw("kB", 32, 128) * 1024)
    return dict(topology=lambda: several_queues(number, length), want=["requeues"],
                load=load(draw.port, discard, client, draw("connections", 2, 3)),
                proof=(queue(A, "ifb-a", "requeues"), 50))


if __name__ == "__main__":
    held.main(run)
