# SPDX-License-Identifier: GPL-2.0-only
"""What devices, queues, memory and CPUs delay or lose.  Pure.

A finding needs a counter that increased or traffic that is affected.  A setting
alone is for lint.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import re

from . import flow as rules_flow
from .. import units
from ..facts.collect import Facts
from .confidence import PACKETS, QUEUED
from .diagnosis import Diagnosis
from ..facts.path_sums import BUSY, busy, others, packet_share, span

BUSY_PPS = 20_000        # packets/s at which the cost per packet matters
NO_IDLE = 0.1            # idle share of a CPU below which it is a limit
WORKS = 0.5              # share of a CPU that a reader uses which does not rest,
RUNS = 0.8               # and with its wait for a CPU
RESTS = 0.1              # share below which neither matters
#: Weight of work that another CPU could do: below that of work which need not be done.
MOVED = 56
SQUEEZES = 50            # per second
DAMAGED = 1e-4           # share of segments with a wrong checksum
HELD_US = 200            # rx-usecs that lengthen a short round trip


def diagnose(facts: Facts) -> Iterator[Diagnosis]:
    yield from _softnet(facts)
    yield from _memory(facts)
    for name, device in facts["devices"].items():
        yield from _queues(name, device, facts)
        yield from _device(name, device, facts)
    queued = list(_queued(facts))
    named = {d.subject for d in queued}
    yield from queued
    yield from (d for d in _cpus(facts) if d.subject not in named)
    yield from _mssfrac(facts)
    yield from _timestamps(facts)
    yield from _damaged(facts)


def _damaged(facts: Facts) -> Iterator[Diagnosis]:
    """Packets that no device refused, and whose checksum was wrong."""
    wrong = facts["snmp"].get("Tcp.InCsumErrors", 0)
    segments = facts["snmp"].get("Tcp.InSegs", 0)
    if wrong > 0 and wrong > DAMAGED * segments:
        yield Diagnosis(
            "host", "link-errors", "medium",
            f"{wrong} of {segments} TCP segments arrived with a wrong checksum: a "
            "device or a link on the way damages them", "the counter stops with "
            "another link, or with receive checksums in software (ethtool -K rx off)",
            87, {"csum_errors": wrong, "segments": segments})


def _softnet(facts: Facts) -> Iterator[Diagnosis]:
    limit = facts["sysctl"].get("net.core.netdev_max_backlog", "?")
    for row in facts["softnet"]:
        if row.get("dropped", 0) + row.get("flow_limit", 0) > 0:
            share = row["dropped"] / max(1, row["dropped"] + row["processed"])
            yield Diagnosis(
                f"cpu {row['cpu']}", "backlog-drops", "high",
                f"{row['dropped']} packets dropped: more than "
                f"netdev_max_backlog ({limit}) waited for this CPU",
                "drops continue with a longer backlog; then the CPU is too slow",
                90, {"dropped": row["dropped"], "processed": row["processed"],
                     "netdev_max_backlog": limit, "share": share})
        if row.get("squeezed", 0) > SQUEEZES * facts["interval"]:
            yield Diagnosis(
                f"cpu {row['cpu']}", "budget", "low",
                f"receive work stopped {row['squeezed']} times while packets were "
                "left", "the number stays after netdev_budget is doubled", 8,
                {"squeezed": row["squeezed"], "processed": row["processed"]})


def _memory(facts: Facts) -> Iterator[Diagnosis]:
    pages = [int(word) for word in
             facts["sysctl"].get("net.ipv4.tcp_mem", "").split()]
    used = facts["sockstat"].get("mem", 0)
    snmp = facts["snmp"]
    entered = snmp.get("TcpExt.TCPMemoryPressures", 0)
    pruned = snmp.get("TcpExt.PruneCalled", 0) + snmp.get("TcpExt.RcvPruned", 0)
    if entered > 0 or facts.get("pressure") or pages and used >= pages[1]:
        yield Diagnosis(
            "host", "memory-pressure", "high",
            f"TCP uses {used} pages ({units.size(used * facts['page'])}) of "
            + (f"tcp_mem {facts['sysctl']['net.ipv4.tcp_mem']}" if pages else
               "tcp_mem, which only the initial network namespace can read")
            + f"; entered pressure {entered} times, pruned {pruned} times"
            + (", and was under it when read" if facts.get("pressure") else ""),
            "the numbers stay with a larger tcp_mem; then memory leaks", 95,
            {"pages": used, "tcp_mem": pages, "pressures": entered,
             "pruned": pruned})


#: Qdiscs that drop packets before their queue is full.
AQM = ("fq_codel", "codel", "cake", "red", "fq_pie")


def _queues(name: str, device: dict[str, Any], facts: Facts) -> Iterator[Diagnosis]:
    for qdisc in device["qdiscs"]:
        if _path(qdisc) or not (
                qdisc["drops"] > 0 or qdisc.get("drops_ever", 0) and _cut(facts)):
            continue
        sent = qdisc["packets"] + qdisc["drops"]
        share = qdisc["drops"] / max(1, sent)
        if qdisc["drops"] and share < 1e-4:
            continue
        # A classful qdisc counts what its classes drop as well.
        if qdisc["drops"] and qdisc["drops"] <= sum(
                one["drops"] for one in device["qdiscs"] if _below(one, qdisc)):
            continue
        # AQM drops to signal congestion; tail drop of a short queue is a fault.
        signal = qdisc["kind"] in AQM
        yield Diagnosis(
            f"{name} {qdisc['kind']}", "qdisc-drops",
            "low" if signal else "high",
            f"{qdisc['drops']} of {sent} packets dropped in this host's own queue, "
            f"{qdisc.get('drops_ever', 0)} since it was created (txqueuelen "
            f"{device['txqueuelen']})",
            "no connection retransmits", 5 if signal else 85,
            {"drops": qdisc["drops"], "dropped": qdisc["drops"] or qdisc.get(
                "drops_ever", 0), "share": share, "kind": qdisc["kind"],
             "parent": qdisc.get("parent"), "handle": qdisc.get("handle"),
             "txqueuelen": device["txqueuelen"],
             "options": qdisc.get("options") or {}})


def _below(qdisc: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether @qdisc is in a class of @other."""
    parent, handle = qdisc.get("parent") or "", str(other.get("handle")).rstrip(":")
    # Default qdiscs have the handle 0: mq, and those in its classes (:1), too.
    if handle == "0" and other.get("parent"):
        return False
    return ":" in parent and (parent.partition(":")[0] or "0") == handle


def _path(qdisc: dict[str, Any]) -> bool:
    """Whether its drops are those of a simulated path: netem, unless all it does is
    to delay packets in a queue that is too short for that, and drops some now."""
    options = qdisc.get("options") or {}
    model = any(key.startswith(("loss", "corrupt", "rate")) for key in options)
    return qdisc["kind"] == "netem" and (
        model or not qdisc["drops"] or "limit" not in options)


def _cut(facts: Facts) -> bool:
    """Whether a sender is recovering from a loss, with no queue on its path."""
    return any(f["d_bytes_acked"] and f["snd_ssthresh"] < 2**31 - 1
               and f["high_unacked"] >= 0.7 * f["snd_cwnd"]
               and f["rtt"] < 1.5 * f["min_rtt"] for f in facts["flows"])


def _device(name: str, device: dict[str, Any], facts: Facts) -> Iterator[Diagnosis]:
    rx, tx = device["rx"], device["tx"]
    missed = rx.get("missed_errors", 0) + rx.get("fifo_errors", 0) \
        + rx.get("over_errors", 0)
    if missed > 0:
        yield Diagnosis(
            name, "ring-drops", "high",
            f"{missed} packets found the receive ring full "
            f"({device['ring'] or 'of unknown size'})",
            "drops continue with a larger ring; then the CPU is too slow", 88,
            {"missed": missed, "dropped": missed, "share": missed / max(
                1, missed + rx.get("packets", 0)), **device["ring"]})
    flaps = tx.get("carrier_changes", 0)
    if flaps > 1:
        yield Diagnosis(
            name, "link-errors", "high", f"the link lost or found its carrier {flaps} "
            "times: check cable, optics and the other end", "the counter stops", 98,
            {"carrier_changes": flaps})
    broken = rx.get("crc_errors", 0) + rx.get("frame_errors", 0)
    if broken > 0:
        yield Diagnosis(
            name, "link-errors", "high", f"{broken} packets arrived corrupted: check "
            "cable, "
            "optics and duplex", "the counter stops", 92,
            {"crc_errors": rx.get("crc_errors", 0), "dropped": broken,
             "share": broken / max(1, broken + rx.get("packets", 0)),
             "frame_errors": rx.get("frame_errors", 0)})
    seconds = span(facts, "devices")
    pps = rx.get("packets", 0) / seconds
    size = rx.get("bytes", 0) / max(1, rx.get("packets", 0))
    if device["offload"].get("gro") == "off" and device["kind"] != "veth" \
            and pps > BUSY_PPS and size > device["mtu"] / 2 and _works(facts):
        yield Diagnosis(
            name, "offload-off", "medium",
            f"GRO is off and {pps:,.0f} packets/s of {size:.0f} bytes are "
            "handled one by one", "all CPUs have idle time", 40,
            {"gro": "off", "pps": pps})
    out = tx.get("bytes", 0) / max(1, tx.get("packets", 0))
    if "off" in (device["offload"].get("gso"), device["offload"].get("tso")) \
            and tx.get("packets", 0) / seconds > BUSY_PPS \
            and out <= device["mtu"] + 50 and _works(facts):
        # A device that computes no checksums cannot segment either.
        off = {key: "off" for key in ("tx", "sg", "tso", "gso")
               if device["offload"].get(key) == "off"}
        yield Diagnosis(
            name, "offload-off", "medium",
            f"TSO or GSO is off and {tx['packets'] / seconds:,.0f} packets/s leave "
            "one by one", "all CPUs have idle time", 40, off)
    yield from _interrupts(name, device, facts, pps)
    bus = device["bus"]
    for key in ("link_width", "link_speed"):
        now, most = bus.get(f"current_{key}"), bus.get(f"max_{key}")
        if now and most and now != most and max(
                device["bits_per_second"].values()) > 1e9:
            yield Diagnosis(
                name, "bus", "low", f"its slot runs at {key} {now} of {most}",
                "the capacity of the slot (lspci -vv) is well above the traffic", 15,
                dict(bus))


def _works(facts: Facts) -> bool:
    """Whether work matters: a CPU is busy with the kernel's, or that is not known."""
    return not facts["cpus"] or busy(facts) >= BUSY


def _through(flow: dict[str, Any], facts: Facts) -> bool:
    """Whether it leaves the host: its other end is not here."""
    local, remote = (flow[end].rpartition(":")[0] for end in ("local", "remote"))
    return local != remote and not remote.startswith("127.") and not any(
        f["local"] == flow["remote"] for f in facts["flows"])


def _interrupts(name: str, device: dict[str, Any], facts: Facts,
                pps: float) -> Iterator[Diagnosis]:
    count = sum(sum(line.values()) for key, line in facts["irqs"].items()
                if re.split(r"[-@:.]", key.split()[-1])[0] == name)
    rate = count / span(facts, "counters")
    if pps > 2 * BUSY_PPS and rate > 0.5 * pps and _works(facts):
        yield Diagnosis(
            name, "interrupt-rate", "medium",
            f"{rate:,.0f} interrupts/s for {pps:,.0f} packets/s",
            "low latency is required here", 45, {"irqs": rate, "pps": pps})
    held = device["coalesce"].get("rx-usecs", "0")
    fast = [f["min_rtt"] for f in facts["flows"] if f["min_rtt"] and _through(f, facts)]
    if held.isdecimal() and int(held) >= HELD_US and fast and \
            min(fast) < 4 * int(held):
        yield Diagnosis(
            name, "coalescing", "medium",
            f"interrupts wait up to {held} us; the shortest round trip is "
            f"{min(fast)} us", "the round trip stays the same with a smaller "
            "rx-usecs", 45,
            {"rx-usecs": int(held), "min_rtt_us": min(fast)})


def _spare(facts: Facts, cpu: str) -> bool:
    """Whether another CPU is idle for half of the time.  What the watching itself
    uses would be idle, and it runs where there is room."""
    own = facts.get("own", 0.0)
    return any(s["idle"] > (0.5 - min(own, 1 - s["idle"] / max(1, sum(s.values()))))
               * max(1, sum(s.values()))
               for other, s in facts["cpus"].items() if other != cpu)


def _cpus(facts: Facts) -> Iterator[Diagnosis]:
    processed = {str(row["cpu"]): row["processed"] for row in facts["softnet"]}
    for cpu, spent in facts["cpus"].items():
        ticks = sum(spent.values())
        if ticks < 20:
            continue  # interval too short for a share
        idle = (spent["idle"] + spent["iowait"]) / ticks
        soft = packet_share(facts, cpu) or 0.0
        if idle >= NO_IDLE:
            continue
        numbers: dict[str, Any] = {"idle": idle, "softirq": soft,
                                   "steal": spent["steal"] / ticks,
                                   "packets": processed.get(cpu, 0)}
        here = [f for f in facts["flows"]
                if str(f.get("owner", {}).get("cpu")) == cpu
                and f["d_bytes_received"] > f["d_bytes_acked"]
                and not _rests(f["owner"])]
        others_idle = _spare(facts, cpu)
        if facts["profile"]:
            top = facts["profile"][0]
            numbers["costliest_path"] = (
                f"{top['direction']} {' '.join(top['flags'])}: {top['stage']}")
            numbers["stages"] = [
                f"{s['direction']} {s['stage']} {s['share']:.0%} of the {s['kind']}"
                for s in facts.get("stages", [])[:3]]
        # Data waits for a reader that works: it has too little of this CPU.
        numbers["starved"] = any(
            f["low_rqueue"] and WORKS < _wants(f["owner"]) for f in here)
        # Busy processes leave softirqs little time, so 20 % is much.
        if here and soft > PACKETS and others_idle:
            yield Diagnosis(
                f"cpu {cpu}", "placement", "medium",
                f"packets ({soft:.0%} of the time) and their reader "
                f"({here[0]['owner']['comm']}) share a CPU without idle time, while "
                "another one is idle", "the rate stays the same after the reader "
                "moves", MOVED,
                numbers)
        elif soft > 0.5:
            yield Diagnosis(
                f"cpu {cpu}", "cpu-softirq", "high",
                f"packets use {soft:.0%} of its time, {idle:.0%} is idle",
                "fewer or larger packets (GRO, MTU) change nothing", 55, numbers)
        elif any(str(f.get("owner", {}).get("cpu")) == cpu
                 for f in facts["flows"]):
            yield Diagnosis(
                f"cpu {cpu}", "cpu", "low",
                f"{idle:.0%} idle, {soft:.0%} for packets; the process of a busy "
                "connection runs here", "a profile shows no network work", 20,
                numbers | {"starved": False})


def _wants(owner: dict[str, Any]) -> float:
    """The share of a CPU that a program uses or waits for."""
    return float(owner.get("system", 0.0) + owner.get("user", 0.0)
                 + owner.get("queued", 0.0))


def _rests(owner: dict[str, Any]) -> bool:
    """Whether it hardly needs its CPU.  Without numbers it may."""
    return "queued" in owner and _wants(owner) < RESTS


def _queued(facts: Facts) -> Iterator[Diagnosis]:
    """A reader that waits for its CPU, which handles packets while another one is
    idle, or which other programs use.  The scheduler counts that wait, also where the
    CPU has time left between rows of packets."""
    for f in facts["flows"]:
        owner = f.get("owner", {})
        ticks = facts["cpus"].get(str(owner.get("cpu")), {})
        # One that rests, and for which no data waits, catches up: it is not limited.
        if owner.get("queued", 0.0) < QUEUED or not ticks \
                or not f["low_rqueue"] and _wants(owner) < RUNS \
                or f["d_bytes_received"] <= f["d_bytes_acked"]:
            continue
        idle = ticks["idle"] / max(1, sum(ticks.values()))
        soft = packet_share(facts, owner["cpu"]) or 0.0
        told = (f"{owner['comm']} waits for this CPU for {owner['queued']:.0%} of the "
                "time")
        numbers = {"idle": idle, "softirq": soft, "queued": owner["queued"],
                   "starved": True}
        if soft <= PACKETS:
            # Data must wait for it, and nothing else that it does.
            if not f["low_rqueue"] or _wants(owner) < RUNS:
                continue
            beside = [one for one in others(facts, owner["cpu"])
                      if one["pid"] != owner["pid"]][:3]
            yield Diagnosis(
                f"cpu {owner['cpu']}", "cpu", "medium",
                f"{told} while data waits for it; it runs for "
                f"{_wants(owner) - owner['queued']:.0%}" + (
                    ", beside " + ", ".join(f"{one['comm']} ({one['used']:.0%})"
                                            for one in beside) if beside else ""),
                "it waits as long on another CPU, or without the other programs",
                MOVED, numbers | {"beside": beside})
            return
        if idle >= NO_IDLE and _spare(facts, str(owner["cpu"])):
            yield Diagnosis(
                f"cpu {owner['cpu']}", "placement", "medium",
                f"{told}, and packets take {soft:.0%} of it, while another one is idle",
                "it waits as long after the reader moves", MOVED, numbers)
            return


def _mssfrac(facts: Facts) -> Iterator[Diagnosis]:
    counters = facts["mssfrac"]
    sized, reverted = (counters.get(f"treated_tx_{key}", 0)
                       for key in ("sized", "reverted"))
    if sized >= 5 and 2 * reverted > sized:
        yield Diagnosis(
            "host", "mssfrac", "low",
            f"mssfrac chose {sized} segment sizes and gave {reverted} up, because the "
            "peer then advertised less", "the others carry most of the traffic", 30,
            {"sized": sized, "reverted": reverted})
    raised = counters.get("treated_rx_raised", 0)
    for f in facts["flows"]:
        window, mss = f["rcv_ssthresh"], f["rcv_mss"]
        lost = rules_flow.waste(window, mss)
        if raised >= 10 and f["d_bytes_received"] > rules_flow.LEAST \
                and window < rules_flow.FEW * mss and lost > rules_flow.WASTE:
            yield Diagnosis(
                "host", "mssfrac", "low",
                f"rx_frac raised {raised} windows; {rules_flow.name(f)} has "
                f"{window / mss:.2f} segments of {mss} bytes: its sender sends "
                "full-sized segments, and waits for the remainder",
                "its sender sizes segments to fill the window (tx_frac there)", 52,
                {"raised": raised, "waste": lost, "sides": ["rx"]})
            return


def _timestamps(facts: Facts) -> Iterator[Diagnosis]:
    if facts["sysctl"].get("net.ipv4.tcp_timestamps") == "0":
        return
    bare = [f for f in facts["flows"] if not f["options"] & 1
            and max(f["d_bytes_acked"], f["d_bytes_received"]) > 100_000]
    if bare:
        yield Diagnosis(
            bare[0]["remote"], "timestamps", "medium",
            f"{len(bare)} busy connections run without timestamps: this host "
            "supports them, but the peer does not", "the peer's setting is 1", 6,
            {"connections": len(bare)})
