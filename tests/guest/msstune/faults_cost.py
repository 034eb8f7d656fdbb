# SPDX-License-Identifier: GPL-2.0-only
"""Injected faults of work, waits and CPUs that only the paths of packets show: each
needs a recording.  Twins are healthy loads over the same topology."""
import socket
from functools import partial

import driver
import programs as own
import testbed as bed
from clients import (
    ask,
    crowd,
    datagrams,
    fetches,
    file_sender,
    iperf3,
    stream,
    writev,
)
from programs import NODELAY, answer, pinned, receiver, upload
from testbed import (
    ADDRESS,
    IPV6,
    SINGLE,
    A,
    B,
    below,
    cable,
    guard,
    long_chain,
    office,
    over,
    queue,
    sh,
    steered,
)

fault = partial(driver.fault, "cost", record=True)


# --- Offloads -------------------------------------------------------------------

@fault("checksum in software", cure="auto")
def _(draw):
    port = draw.port
    return dict(topology=lambda: cable("tx off"), want=["offload-off"], number="tx",
                servers=lambda: [receiver(port)], clients=lambda: [stream(port)])


@fault("GRO off", cure="plan")
def _(draw):
    port = draw.port
    return dict(topology=lambda: cable(SINGLE, "gro off"), want=["offload-off"],
                number="gro", at=B, servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)])


@fault("GRO off below a device", twin="a device over GRO")
def _(draw, fault):
    port, size, gro = draw.port, draw("kB", 16, 64) * 1024, "off" if fault else "on"
    kind, how = draw.one("kind", "bridge", "ipvlan", "router"), draw("splice", 0, 1)

    def topology():
        if kind == "router":
            office()
            sh(f"ip netns exec $M ethtool -K mb {SINGLE}; "
               f"ip netns exec $B ethtool -K vb gro {gro}")
        else:
            over(kind, B, SINGLE, f"gro {gro}")
    handle = own.splicing(size) if how else own.discard
    client = stream(port, size, draw.rest(15, 30, fault), address=draw.either())
    return dict(topology=topology, want=["offload-off"], at=B,
                servers=lambda: [receiver(port, handle)],
                clients=lambda: [client] * draw("connections", 2, 3),
                **(dict(proof=(below(1600, B, "vb", "rx"), 10**5)) if fault else {}))


@fault("segmentation or checksums in software below a device",
       twin="a device with its offloads")
def _(draw, fault):
    port, size = draw.port, draw("kB", 48, 256) * 1024
    kind = draw.one("kind", "vlan", "bridge", "macvlan", "cable")
    off = draw.one("off", "tx off", SINGLE, "sg off") if fault else ""
    if fault and kind == "cable" and draw("IPv6 only", 0, 1):
        off = "tx-tcp6-segmentation off"
    number, address = draw("vlan", 2, 4000), draw.either()
    if "tcp6" in off:
        address = IPV6
    pause, by = draw.rest(12, 30, fault), draw("sendfile", 0, 1)
    back = [receiver(port + 1, upload(size, pause))] if draw("both ways", 0, 1) else []

    def topology():
        if kind == "cable":
            cable(off)
        elif kind == "vlan":
            over(kind, A, offloads=off, number=number)
        else:
            over(kind, A, off)
    client = file_sender(port, size, pause, (), address) if by else stream(
        port, size, pause, address=address)
    return dict(topology=topology, want=["offload-off"],
                servers=lambda: [receiver(port), *back],
                clients=lambda: [client] * draw("connections", 1, 2)
                + [fetches(port + 1, address)] * bool(back))


@fault("iperf3 without scatter-gather")
def _(draw):
    port, count, size = draw.port, draw("connections", 1, 3), draw("kB", 16, 128)
    return dict(topology=lambda: over("macvlan", A, "sg off"), want=["offload-off"],
                servers=lambda: [iperf3(port)],
                clients=lambda: [iperf3(port, "-P", count, "-l", f"{size}K")],
                proof=(below(1600, A, "va", "tx"), 10**5))


@fault("a GRE tunnel without segmentation")
def _(draw):
    port, count = draw.port, draw("connections", 2, 4)
    return dict(topology=lambda: bed.tunnelled("gre", segments=65535),
                before="ip netns exec $A ethtool -K tun-a tso off gso off",
                want=["offload-off"], servers=lambda: [receiver(port)],
                clients=lambda: [stream(port)] * count,
                proof=(below(1600, A, "tun-a", "tx"), 10**5))


# --- CPUs: three, of which one is idle ----------------------------------------------

@fault("packets are steered to the CPU of their reader",
       twin="packets are steered to another CPU")
def _(draw, fault):
    port, cpu, step = draw.port, draw("CPU", 0, 2), draw("step", 1, 2)
    kind, work = draw.one("kind", "bridge", "ipvlan"), draw.graded(
        "bytes of work", (1000, 2000), (4000, 8000)) * fault
    reader, writer = cpu + step * (not fault), cpu + step * (2 - fault)
    device = "overb" if kind == "bridge" else "vb"
    client = stream(port, draw("kB", 32, 128) * 1024, draw.rest(8, 20, fault))
    return dict(topology=lambda: over(kind, B), cpus=3, at=B,
                before=lambda: steered(cpu, device), want=["placement", "cpu-softirq"],
                servers=lambda: [pinned(reader, receiver(port, own.reads(
                    1 << 15, work=work)))],
                clients=lambda: [pinned(writer, client)] * (1 + fault))


@fault("a polling thread on the CPU of the reader",
       twin="a polling thread on a CPU of its own")
def _(draw, fault):
    port, cpu, step = draw.port, draw("CPU", 0, 2), draw("step", 1, 2)
    reader, writer = cpu + step * (not fault), cpu + step * (2 - fault)
    work, count = draw("bytes of work", 500, 3000), draw("connections", 2, 6)
    write, pause = draw("kB", 8, 64) * 1024, draw.rest(10, 25, fault)
    return dict(topology=lambda: over("bridge", B, SINGLE, "gro on"), cpus=3, at=B,
                before=lambda: bed.polling_thread(cpu),
                servers=lambda: [pinned(reader, own.eager(port, work, False))],
                clients=lambda: [pinned(writer, crowd(port, count, write, pause,
                                                      IPV6))],
                want=["placement", "cpu-softirq"],
                **(dict(proof=(bed.waited, 300)) if fault else {}))


# Another program takes half of the reader's CPU or more.
@fault("a reader beside a busy program")
def _(draw):
    port, cpu, step = draw.port, draw("CPU", 0, 2), draw("step", 1, 2)
    others, work = draw("busy programs", 1, 2), draw("bytes of work", 1000, 4000)
    return dict(topology=lambda: over("macvlan", B), cpus=3, at=B,
                want=["cpu", "placement"],
                servers=lambda: [pinned(cpu, own.one_reader(port, own.reads(
                    1 << 15, work=work))), *[pinned(cpu, own.busy)] * others],
                clients=lambda: [pinned(cpu + step, stream(port))],
                proof=(bed.waited, 500))


# Programs are on the other CPUs.  The kernel splits what the flood sends at its
# receiver, so the flood costs that CPU more than it costs its sender.
@fault("a flood of datagrams, and one CPU for all packets")
def _(draw):
    port, cpu, each = draw.port, draw("CPU", 0, 2), draw.graded(
        "datagrams", (30, 40), (55, 63))
    count, write = draw("connections", 2, 4), draw("kB", 16, 64) * 1024
    return dict(topology=lambda: over("ipvlan", B), before=lambda: steered(cpu), cpus=3,
                at=B, warm=3.0, want=["cpu-softirq"],
                servers=lambda: [pinned(cpu + 2, receiver(port))],
                clients=lambda: [*[pinned(cpu + 2, stream(port, write))] * count,
                                 pinned(cpu + 1, datagrams(A, B, ADDRESS, each=each))],
                proof=(bed.softirqs(cpu), 180))


# --- Firewalls ------------------------------------------------------------------

# All offloads are on but for single packets at input: rules cost more than other work.
@fault("a long chain of the firewall", twin="a short chain of the firewall")
def _(draw, fault):
    port, count = draw.port, draw("connections", 1, 3)
    kind = draw.one("hook", "input", "output", "bridge", "ingress")
    rules = draw("rules", *((900, 1600) if fault else (3, 12)))
    write, pause = draw("kB", 16, 64) * 1024, draw.rest(12, 30, fault)
    topology = {"bridge": lambda: over("bridge", B), "output": cable}.get(
        kind, lambda: cable(SINGLE))
    end = A if kind == "output" else B
    tables, hook = {"bridge": ("bridge", "prerouting"), "ingress": (
        "netdev", "ingress device vb")}.get(kind, ("inet", kind))
    address = IPV6 if kind == "ingress" else ADDRESS
    return dict(topology=topology, at=end, want=["netfilter-cost"],
                before=lambda: long_chain(end, tables, hook, rules),
                servers=lambda: [receiver(port)], clients=lambda: [stream(
                    port, write, pause, address=address)] * count,
                proof=(guard(end, tables), 20))


@fault("requests past many rules", twin="requests past few rules")
def _(draw, fault):
    port, clients = draw.port, draw("connections", 2, 3)
    rules = draw("rules", *((700, 1200) if fault else (4, 16)))
    size, pause = draw("bytes", 100, 900), draw.rest(5, 12, fault)
    return dict(topology=lambda: over("bridge", B), at=B, want=["netfilter-cost"],
                before=lambda: long_chain(B, "inet", "prerouting priority -300", rules),
                servers=lambda: [receiver(port, answer(size, size))], clients=lambda: [
                    ask(port, size, size, pause)] * clients)


# --- Calls of programs --------------------------------------------------------------

@fault("reads of few bytes", twin="reads of many bytes")
def _(draw, fault):
    port, parts, how = draw.port, draw("buffers", 2, 6), draw("by", 0, 2)
    size = draw("bytes", 6, 20) if fault else draw("kB", 8, 16) * 1024
    handle = own.few_bytes(size) if how == 2 else own.scattering(parts, size, bool(how))
    pause, down = draw.rest(10, 25, fault), draw("download", 0, 1)
    write = draw("kB written", 32, 128) * 1024
    load = (upload(write, pause), fetches(port, handle=handle)) if down else (
        handle, stream(port, write, pause))
    return dict(topology=lambda: over(draw.one("kind", "vlan", "macvlan"), B),
                want=["tiny-reads"], at=A if down else B,
                servers=lambda: [receiver(port, load[0])],
                clients=lambda: [load[1]] * draw("connections", 1, 2),
                proof=(bed.segments, 5))


@fault("writes of few bytes", twin="writes of many bytes")
def _(draw, fault):
    port, address = draw.port, draw.either()
    size = draw("bytes", 30, 120) if fault else draw("kB", 10, 40) * 1024
    pause = draw.rest(8, 20, fault)
    client = draw.one(
        "by", stream(port, size, pause, NODELAY, address),
        writev(port, draw("buffers", 2, 5), size // 3, pause, address),
        file_sender(port, size, pause, NODELAY, address))
    topology = draw.one("kind", office, lambda: over("bridge", B), cable)
    return dict(topology=topology, want=["small-writes"],
                servers=lambda: [receiver(port)],
                clients=lambda: [client] * draw("connections", 1, 2))


@fault("segments of few bytes")
def _(draw):
    port, mss, own_limit = draw.port, draw("mss", 90, 180), draw("TCP_MAXSEG", 0, 1)
    options = ((socket.IPPROTO_TCP, own.TCP_MAXSEG, mss),) if own_limit else ()
    return dict(topology=lambda: bed.pair(draw("rtt", 5, 20)),
                before="" if own_limit else "ip -n $B route change 10.9.0.0/24 dev vb "
                f"src {ADDRESS} advmss {mss}", want=["small-writes"],
                unsure=["unknown", "cpu", "cpu-softirq", "receive-window",
                        "send-buffer"], never=["congestion_control", "mtu_probing"],
                servers=lambda: [receiver(port)],
                clients=lambda: [stream(port, options=options)])


@fault("a wake-up for each message", twin="messages now and then")
def _(draw, fault):
    port, size, how = draw.port, draw("bytes", 40, 400), draw("by epoll", 0, 1)
    pause = draw("us", 150, 400) / 1e6 if fault else draw.rest(25, 60, fault)
    count, streams = draw("connections", 10, 30), draw("streams", 2, 4)
    server = (own.eager, (port, 0, False)) if how else (receiver, (port, own.polled))
    client = crowd(port, count, size, pause) if how else stream(
        port, size, pause, NODELAY)
    return dict(topology=lambda: over(draw.one("kind", "vlan", "bridge"), B), at=B,
                want=["wake-ups"], servers=lambda: [server[0](*server[1])],
                clients=lambda: [client] * streams)


# --- Queues of devices --------------------------------------------------------------

# Without GRO this device has no NAPI, so its packets pass the backlog.
@fault("drops in the backlog", twin="several connections")
def _(draw, fault):
    port, cpu, steer = draw.port, draw("CPU", 0, 2), draw("steered", 0, 1) * fault
    limit, count = draw("limit", 2, 8), draw("connections", 4, 7)
    client = stream(port, draw("kB", 16, 64) * 1024, draw.rest(25, 50, fault),
                    address=draw.either())
    return dict(topology=lambda: cable(SINGLE if fault else ""), cpus=1 + 2 * steer,
                host={"net.core.netdev_max_backlog": limit} if fault else {}, at=B,
                before=lambda: steered(cpu) if steer else None, want=["backlog-drops"],
                servers=lambda: [receiver(port)], clients=lambda: [client] * count,
                **(dict(proof=(bed.backlog_drops, 10)) if fault else {}))


@fault("an ifb that stops", twin="an ifb with a long queue")
def _(draw, fault):
    port, end, queues = draw.port, draw.one("at", A, B), draw("queues", 1, 4)
    length = draw("txqueuelen", *((2, 8) if fault else (500, 2000)))
    queues = queues if end == A else 1
    offloads = "tx-tcp6-segmentation off" if fault else ""
    client = stream(port, draw("kB", 32, 128) * 1024, draw.rest(12, 25, fault),
                    address=IPV6)
    return dict(topology=lambda: bed.through_ifb(
        end, "egress" if end == A else "ingress", length, queues, offloads=offloads),
        at=end, want=["requeues"], servers=lambda: [receiver(port)],
        clients=lambda: [client] * draw("connections", 1, 2),
        **(dict(proof=(queue(end, "ifb-t", "requeues"), 20)) if fault else {}))
