# SPDX-License-Identifier: GPL-2.0-only
"""Held-out faults of the kinds of path_faults.py, by someone who knew of the rules
of msstune what its manual page says, and not their code: other topologies, loads and
ways to cause them, with parameters drawn from the ranges stated here.  Prints
"ok NAME" or "not ok NAME" for each case, and remarks.

usage: held_out_path_faults.py list|faults|healthy|all|NAME...
MSSTUNE_SEED=N in the environment: the seed of the parameters, 1 by default.
FACTS=DIR in the environment: store the facts of each case in DIR.

Do not change a rule until one of these cases passes: write new ones then.
"""
import os
import random
import select
import socket
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

# path_faults is first: it names the namespaces, and held_out_loads copies a name.
import path_faults  # noqa: E402
import faults  # noqa: E402
import held_out_loads as loads  # noqa: E402
from faults import ADDRESS, sh  # noqa: E402
from held_out_loads import IPV6, NODELAY, dial, stream, upload  # noqa: E402
from mssab.netns import inside  # noqa: E402
from path_faults import A, B, pinned, veth  # noqa: E402
from wide_faults import discard  # noqa: E402

SEED = int(os.environ.get("MSSTUNE_SEED", "1"))
#: One segment is one packet, as on a wire.
SINGLE = "tso off gso off"
FAULTS, HEALTHY = {}, {}


class Draw(loads.Draw):
    def __init__(self, name):
        super().__init__(name)
        self.source = random.Random(f"{SEED} {name}")


def case(name, twin=""):
    """The function that follows makes the arguments of path_faults.run() from a Draw.
    It draws at once, so that the parameters can be told before the case runs.
    @twin: a healthy load over the same topology."""
    def keep(function):
        FAULTS[name] = function
        if twin:
            FAULTS[name] = partial(function, fault=True)
            HEALTHY[twin] = partial(function, fault=False)
        return function
    return keep


# --- Topologies -----------------------------------------------------------------

def six(a="", b=""):
    """veth with IPv6 as well."""
    veth(a, b)
    sh(f"ip -n $A addr add fd09::1/64 dev va nodad; "
       f"ip -n $B addr add {IPV6}/64 dev vb nodad")


def vlan(number, offloads=""):
    """The addresses are on VLANs; @offloads: of A's VLAN only, not of its veth."""
    veth()
    sh(f"""
    ip -n $A addr flush dev va; ip -n $B addr flush dev vb
    ip -n $A link add link va name va.{number} type vlan id {number}
    ip -n $B link add link vb name vb.{number} type vlan id {number}
    ip -n $A link set va.{number} up; ip -n $B link set vb.{number} up
    ip -n $A addr add 10.9.0.1/24 dev va.{number}
    ip -n $B addr add {ADDRESS}/24 dev vb.{number}
    [ -z '{offloads}' ] || ip netns exec $A ethtool -K va.{number} {offloads}""")


def bridged(a="", b=""):
    """B's addresses are on a bridge, and its veth is a port of it."""
    veth(a, b)
    sh(f"""
    ip -n $B addr flush dev vb
    ip -n $B link add br-b type bridge forward_delay 0
    ip -n $B link set vb master br-b; ip -n $B link set br-b up
    ip -n $B addr add {ADDRESS}/24 dev br-b
    ip -n $A addr add fd09::1/64 dev va nodad
    ip -n $B addr add {IPV6}/64 dev br-b nodad""")
    time.sleep(1.5)     # the kernel may let a new bridge send only after a second


def routed(rtt_ms=0):
    veth()
    loads.routed(rtt_ms)


def at_ingress(length, offloads, limit):
    """B's packets arrive through an ifb; its driver stops after @length packets."""
    six()
    sh(f"""
    ip -n $B link add ifb-b txqueuelen {length} type ifb; ip -n $B link set ifb-b up
    [ -z '{offloads}' ] || ip netns exec $B ethtool -K ifb-b {offloads}
    tc -n $B qdisc add dev ifb-b root pfifo limit {limit}
    tc -n $B qdisc add dev vb clsact
    tc -n $B filter add dev vb ingress matchall action mirred egress redirect dev ifb-b
    """)


def steered(cpu):
    """What the bridge passes up is handled on that CPU."""
    sh(f"ip netns exec $B sh -c 'echo {1 << cpu:x} > "
       "/sys/class/net/br-b/queues/rx-0/rps_cpus'")


def rules(end, hook, count, each=0, priority=0):
    """@count rules that match nothing; @each: so many to a chain, with a jump to it."""
    own = [f"tcp dport {40000 + n} ip saddr 198.51.100.{n % 250} drop"
           for n in range(count)]
    lines = ["table ip long {"]
    if each:
        parts = [own[n:n + each] for n in range(0, count, each)]
        for number, part in enumerate(parts):
            lines += [f"chain part{number} {{", *part, "}"]
        own = [f"jump part{number}" for number in range(len(parts))]
    lines += ["chain first {", f"type filter hook {hook} priority {priority};", *own]
    with inside(end):
        subprocess.run(["nft", "-f", "-"], input="\n".join([*lines, "}", "}", ""]),
                       text=True, check=True)


# --- Programs -------------------------------------------------------------------

def load(port, handle, client, count=1, address=ADDRESS):
    """@count connections: their servers, and their clients."""
    def start():
        with inside(B):
            listener = socket.create_server((address, port), family=(
                socket.AF_INET6 if ":" in address else socket.AF_INET))

        def one():
            handle(listener.accept()[0])
        return [one] * count + [client] * count
    return start


def rest(draw, low, high, fault):
    """A pause of writers of a healthy load, so that no CPU is full."""
    return 0.0 if fault else draw("ms", low, high) / 1000


def readv(port, parts, size, every=0, pause=0.0):
    """A client that reads into @parts buffers; @every: so many calls to a pause."""
    def run():
        sock, number = dial(port), 0
        buffers = [bytearray(size) for _ in range(parts)]
        while os.readv(sock.fileno(), buffers):
            number += 1
            if every and number % every == 0:
                time.sleep(pause)
    return run


def writev(port, parts, size, pause=0.0):
    def run():
        sock, buffers = dial(port, NODELAY), [bytes(size)] * parts
        while True:
            os.writev(sock.fileno(), buffers)
            if pause:
                time.sleep(pause)
    return run


def polled(peer):
    """A reader that waits in poll() for each message."""
    poller = select.poll()
    poller.register(peer, select.POLLIN)
    while poller.poll() and peer.recv(4096):
        pass


def summing(size):
    """A reader that works on so much of what it reads."""
    def handle(peer):
        while data := peer.recv(1 << 15):
            sum(data[:size])
    return handle


# --- Cases ----------------------------------------------------------------------

@case("checksums of a VLAN in software", "a VLAN with its offloads")
def _(draw, fault):
    number, write = draw("vlan", 2, 4000), draw("kB", 32, 256) * 1024
    return dict(topology=lambda: vlan(number, "tx off" if fault else ""),
                load=load(draw.port, discard, stream(draw.port, write)),
                want=["offload-off"])


@case("TSO off for IPv6, checksums on")
def _(draw):
    write, count = draw("kB", 32, 256) * 1024, draw("connections", 1, 2)
    return dict(topology=lambda: six("tx-tcp6-segmentation off"),
                load=load(draw.port, discard, stream(draw.port, write, address=IPV6),
                          count, IPV6), want=["offload-off"])


@case("GRO off below a bridge", "a bridge over GRO")
def _(draw, fault):
    write, count = draw("kB", 16, 128) * 1024, draw("connections", 2, 3)
    client = stream(draw.port, write, rest(draw, 12, 25, fault), address=IPV6)
    return dict(topology=lambda: bridged(SINGLE, "gro off" if fault else "gro on"),
                load=load(draw.port, discard, client, count, IPV6), at=B,
                want=["offload-off"])


@case("a bridge steers to the CPU of its readers", "a bridge steers to another CPU")
def _(draw, fault):
    cpu, step = draw("CPU", 0, 2), draw("step", 1, 2)
    reader, writer = cpu + step * (not fault), cpu + step * (2 - fault)
    handle = summing(draw("bytes of work", 1000, 4000)) if fault else discard
    client = stream(draw.port, draw("kB", 32, 128) * 1024, rest(draw, 8, 20, fault))
    return dict(topology=bridged, before=lambda: steered(cpu), cpus=3, at=B,
                load=load(draw.port, pinned(reader % 3, handle),
                          pinned(writer % 3, client), 1 + fault),
                want=["placement", "cpu-softirq"])


# All offloads are on: the rules cost more than the rest of the work even so.
@case("a long output chain")
def _(draw):
    count, write = draw("rules", 900, 1800), draw("kB", 16, 64) * 1024
    return dict(topology=veth, before=lambda: rules(A, "output", count),
                load=load(draw.port, discard, stream(draw.port, write)),
                want=["netfilter-cost"])


@case("chains in prerouting, and requests", "requests past few rules")
def _(draw, fault):
    few, many = ((4, 16), (2, 5)), ((500, 1200), (40, 90))
    total, part = many if fault else few
    count, each = draw("rules", *total), draw("each", *part)
    size, clients = draw("bytes", 100, 900), draw("connections", 2, 3)
    client = loads.ask(draw.port, size, size, rest(draw, 5, 12, fault))
    return dict(topology=bridged, at=B, want=["netfilter-cost"],
                before=lambda: rules(B, "prerouting", count, each, -300),
                load=load(draw.port, loads.answer(size, size), client, clients))


@case("readv of few bytes", "a reader that pauses rarely")
def _(draw, fault):
    parts = draw("buffers", 2, 4)
    if fault:
        client, handle = readv(draw.port, parts, draw("bytes", 2, 9)), upload()
    else:
        client = readv(draw.port, parts, draw("kB", 8, 16) * 1024,
                       draw("reads", 100, 300), 0.003)
        handle = upload(draw("kB written", 32, 128) * 1024, rest(draw, 5, 15, fault))
    return dict(topology=veth, load=load(draw.port, handle, client),
                want=["tiny-reads"])


@case("writev of few bytes", "large writes by writev")
def _(draw, fault):
    size = draw("bytes", 10, 40) if fault else draw("kB", 10, 40) * 1024
    client = writev(draw.port, draw("buffers", 2, 5), size, rest(draw, 8, 20, fault))
    return dict(topology=routed, want=["small-writes"],
                load=load(draw.port, discard, client, draw("connections", 1, 2)))


@case("a router that loses ACKs", "both directions over a router")
def _(draw, fault):
    port, rtt, lost = draw.port, draw("rtt", 10, 40), 0
    if fault:
        lost = draw("percent", 50, 80)
    write, pause = draw("kB", 32, 96) * 1024, rest(draw, 15, 30, fault)
    there = load(port, discard, stream(port, write, pause))
    back = load(port + 1, upload(write, pause), loads.download(port + 1))
    # With SACK blocks an ACK is shorter than 100 bytes.
    rule = (f"ip saddr {ADDRESS} meta length < 100 "
            "tcp flags & (fin | syn | rst | psh | ack) == ack "
            f"numgen random mod 100 < {lost} drop")
    return dict(topology=lambda: routed(rtt), want=["ack-loss"],
                load=there if fault else lambda: there() + back(),
                fault=loads.filtering("forward", rule) if fault else "")


# Without GRO this device has no NAPI, so its packets pass the backlog.
@case("a short backlog, IPv6", "several connections, IPv6")
def _(draw, fault):
    count, write = draw("connections", 3, 5), draw("kB", 16, 64) * 1024
    backlog = {"net.core.netdev_max_backlog": draw("limit", 3, 10)} if fault else ()
    client = stream(draw.port, write, rest(draw, 15, 40, fault), address=IPV6)
    return dict(topology=lambda: six(SINGLE) if fault else six(), at=B, host=backlog,
                load=load(draw.port, discard, client, count, IPV6),
                want=["backlog-drops"])


@case("a poll for each message", "messages now and then")
def _(draw, fault):
    number, size = draw("vlan", 2, 4000), draw("bytes", 60, 300)
    pause = draw("us", 150, 400) / 1e6 if fault else rest(draw, 25, 60, fault)
    client = stream(draw.port, size, pause, NODELAY)
    return dict(topology=lambda: vlan(number), at=B, want=["wake-ups"],
                load=load(draw.port, polled, client, draw("streams", 2, 4)))


# The ifb splits large packets itself; its queue stops in the middle of one.
@case("an ifb at ingress that stops", "an ifb with a long queue")
def _(draw, fault):
    few, many = (2, 8), (500, 2000)
    length, limit = draw("txqueuelen", *(few if fault else many)), draw("limit", *many)
    offloads = "tx-tcp6-segmentation off" if fault else ""
    write, pause = draw("kB", 32, 128) * 1024, rest(draw, 8, 20, fault)
    return dict(topology=lambda: at_ingress(length, offloads, limit), at=B,
                want=["requeues"],
                load=load(draw.port, discard, stream(
                    draw.port, write, pause, address=IPV6), 1, IPV6))


def named(words):
    kinds = {"faults": [*FAULTS], "healthy": [*HEALTHY], "all": [*FAULTS, *HEALTHY]}
    return [name for word in words for name in kinds.get(word, [word])]


def main(run=path_faults.run):
    """@run: takes what the functions of the cases return."""
    if sys.argv[1] == "list":
        print(*named(sys.argv[2:]), sep="\n")
        return
    for name in named(sys.argv[1:]):
        draw = Draw(name)
        try:
            given = (FAULTS | HEALTHY)[name](draw)
            faults.tell(f"{name}: seed {SEED}, " + ", ".join(
                f"{what} {value}" for what, value in draw.drawn.items()))
            run(name, **given, healthy=name in HEALTHY)
        except (OSError, subprocess.CalledProcessError, KeyError,
                ValueError) as error:
            faults.tell(repr(error), f"not ok {name}")
        subprocess.run(["ip", "netns", "del", loads.MIDDLE], check=False,
                       capture_output=True)


if __name__ == "__main__":
    main()
