# SPDX-License-Identifier: GPL-2.0-only
"""What the paths of packets show: work and waits that a cheaper path would not have.
Pure.

A rule names the fact that keeps packets from the cheaper path.  Work matters only
where a CPU is busy, and an interface is named only if its own settings agree.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import path_sums, units
from .collect import Facts
from .diagnosis import Diagnosis
from .path_sums import COSTLY, ENOUGH, Evidence

BUSY = 0.5          # busy share of a CPU above which work per packet matters,
LIMITING = 0.8      # and from which it limits
SINGLE = 0.7        # share of packets with one full-sized segment: none is merged
FULL = 0.6          # of the MTU that is full-sized
MERGES = 4          # segments that GRO merges at least, where packets come in rows


def diagnose(facts: Facts) -> Iterator[Diagnosis]:
    if not facts.get("paths"):
        return
    yield from _not_merged(facts)
    yield from _split(facts)
    yield from _netfilter(facts)
    yield from _reads(facts)
    yield from _writes(facts)
    yield from _wakes(facts)
    yield from _requeued(facts)
    yield from _queued(facts)


def _weight(most: float, facts: Facts) -> float:
    """Less where the CPU has time left: then work is saved, and no limit removed."""
    return most if path_sums.busy(facts) >= LIMITING else most / 3


def _confidence(clear: bool, facts: Facts) -> str:
    """Of the diagnosis that this is what limits."""
    return "high" if clear and path_sums.busy(facts) >= LIMITING else "medium"


def _devices(facts: Facts, way: str, **settings: str) -> list[tuple[str, Any]]:
    """Devices with these offloads, the one that moves most packets first."""
    mine = [(name, device) for name, device in facts["devices"].items()
            if name != "lo" and device[way].get("packets", 0) > ENOUGH
            and all(device["offload"].get(key) == value
                    for key, value in settings.items())]
    return sorted(mine, key=lambda one: -int(one[1][way]["packets"]))


def _not_merged(facts: Facts) -> Iterator[Diagnosis]:
    """Full-sized segments that pass the stack one by one, as GRO is off."""
    mine = path_sums.data(facts, "rx")
    count = path_sums.packets(mine)
    if count < ENOUGH or path_sums.busy(facts) < BUSY:
        return
    off = _devices(facts, "rx", gro="off")
    if not off:
        return
    name, device = off[0]
    single = [p for p in mine if p["segments"] == p["packets"]
              and p["bytes"] > FULL * device["mtu"] * p["packets"]
              and {"gro off", "no gro"} & set(p["facts"])]
    alone = path_sums.packets(single) / count
    share = path_sums.share(facts, path_sums.spent(
        single, stages=path_sums.PER_PACKET))
    if alone < SINGLE or share < COSTLY:
        return
    gain = share * (1 - 1 / MERGES)
    yield Diagnosis(
        name, "offload-off", _confidence(alone > 0.9, facts),
        f"GRO is off, and {alone:.0%} of the packets with data pass the stack as one "
        f"segment; what is done per packet is {share:.0%} of all work",
        "packets stay as small with GRO: they do not come in rows",
        _weight(60, facts),
        {"gro": "off", "single": alone},
        Evidence(path_sums.label(single, "rx"), share, gain=(
            f"{gain:.0%} of the work, if {MERGES} segments are merged")))


def _split(facts: Facts) -> Iterator[Diagnosis]:
    """Large packets that software splits, with their checksums where the device
    computes none."""
    mine = path_sums.data(facts, "tx")
    large = [p for p in mine if p["end"] == "split" or "tso off" in p["facts"]
             or "software split" in p["facts"]]
    if path_sums.packets(large) < ENOUGH / 5 or path_sums.busy(facts) < BUSY:
        return
    share = path_sums.share(facts, path_sums.spent(large, stages=(
        "dev", "dequeue", "split")))
    sums = _devices(facts, "tx", tx="off")
    off = sums or _devices(facts, "tx", tso="off") or _devices(facts, "tx", gso="off")
    if share < COSTLY or not off:
        return
    name, device = off[0]
    large_share = path_sums.payload(large) / max(1, path_sums.payload(mine))
    yield Diagnosis(
        name, "offload-off", _confidence(large_share > 0.5, facts),
        f"{large_share:.0%} of the data is split into segments in software"
        + (", which computes their checksums (tx is off)" if sums else
           ", as TSO is off") + f": {share:.0%} of all work",
        "the work stays with the offload on: the device does it in software, too",
        _weight(60, facts),
        {key: "off" for key in ("tx", "sg", "tso", "gso")
         if device["offload"].get(key) == "off"},
        Evidence(path_sums.label(large, "tx"), share,
                 gain=f"up to {share:.0%} of the work"))


#: Stages that hold netfilter's rules alone, and those that hold them, too, where
#: they are not seen alone.
NETFILTER = ("nf_pre", "nf_in", "nf_fwd", "nf_out", "nf_post", "nf_dev", "nf_bridge",
             "conntrack")
COARSE = "netif"
RULES = 50          # rules of a hook below which their work is not suspected
HEAVY = 0.4         # share of the work from IP to TCP that is suspected


def _netfilter(facts: Facts) -> Iterator[Diagnosis]:
    paths = facts["paths"]
    alone = path_sums.spent(paths, stages=NETFILTER)
    share = path_sums.share(facts, alone)
    rules = facts.get("firewall_rules") or {}
    if alone and share >= COSTLY and path_sums.busy(facts) >= BUSY:
        tracked = path_sums.share(facts, path_sums.spent(paths, stages=("conntrack",)))
        yield Diagnosis(
            "host", "netfilter-cost", _confidence(True, facts),
            f"netfilter's rules are {share:.0%} of all work" + (
                f", connection tracking {tracked:.0%}" if tracked > COSTLY / 2 else "")
            + (f" ({sum(rules.values())} rules)" if rules else ""),
            "the work stays without the rules", _weight(65, facts),
            {"share": share, "conntrack": tracked, "rules": rules},
            Evidence(path_sums.label([p for p in paths if path_sums.spent(
                [p], stages=NETFILTER)], "rx"), share,
                gain=f"up to {share:.0%} of the work"))
        return
    mine = path_sums.data(facts, "rx")
    share = path_sums.share(facts, path_sums.spent(mine, stages=(COARSE,)))
    most = max([n for hook, n in rules.items() if hook != "output"], default=0)
    if path_sums.packets(mine) >= ENOUGH and share >= HEAVY and most >= RULES \
            and path_sums.busy(facts) >= BUSY:
        yield Diagnosis(
            "host", "netfilter-cost", "medium",
            f"from the device to TCP is {share:.0%} of all work, and a hook of "
            f"netfilter has {most} rules there", "a profile with --stages netfilter "
            "shows little work in nf_in", _weight(65, facts),
            {"share": share, "rules": rules},
            Evidence(path_sums.label(mine, "rx"), share,
                     gain=f"most of {share:.0%} of the work"))


READS = 3           # times the copy, or the stack's work, that a reader's time is,
CLEARLY = 10        # and of which it is no guess
PIECES = 6          # times the stack's work that a copy takes which is made of pieces
RUNNING = 0.8       # share of a CPU of a process that never waits
ONLY = 0.2          # of what it reads, that it sends or writes to files at most


def _softirq(facts: Facts, cpu: int) -> float:
    """The share of a CPU that softirqs take."""
    ticks: dict[str, int] = facts["cpus"].get(str(cpu), {})
    return ticks.get("softirq", 0) / max(1, sum(ticks.values()))


def _reads(facts: Facts) -> Iterator[Diagnosis]:
    """A reader that spends much more time in the kernel than moving its bytes takes,
    though it does nothing else there: it reads little at a time."""
    mine = path_sums.passing(path_sums.data(facts, "rx"), "copy")
    readers: dict[int, list[dict[str, Any]]] = {}
    for f in facts["flows"]:
        if "system" in f.get("owner", {}):
            readers.setdefault(f["owner"]["pid"], []).append(f)
    for flows in readers.values() if mine else ():
        owner, size = flows[0]["owner"], sum(f["d_bytes_received"] for f in flows)
        more = sum(f["d_bytes_acked"] for f in flows) \
            + owner["written_per_s"] * facts["interval"]
        system, user = owner["system"], owner["user"]
        busy = system + user
        # Where a softirq interrupts a process, the kernel counts it as its time.
        system -= min(system, _softirq(facts, owner["cpu"]))
        if not size or more > ONLY * size or not any(f["low_rqueue"] for f in flows) \
                or busy < RUNNING or system < user / 4:
            continue
        copy = path_sums.spent(mine, stages=("copy",)) / path_sums.payload(mine)
        every = path_sums.data(facts, "rx")
        stack = path_sums.spent(every, stages=path_sums.PER_PACKET) \
            / path_sums.payload(every)
        if copy > PIECES * stack:
            copy = stack    # from the first piece to the last, and what is between
        spent = system * facts["interval"] * 1e9 / size
        if spent < READS * copy:
            continue
        clear = spent > CLEARLY * copy
        yield Diagnosis(
            f"{flows[0]['local']} > {flows[0]['remote']}", "tiny-reads",
            "medium" if clear else "low",
            f"{owner['comm']} never waits ({busy:.0%} of a CPU), data waits "
            f"for it, and it spends {spent:,.3g} ns in the kernel for a byte, which "
            f"takes the stack {copy:,.3g}", "strace -c shows reads of many bytes",
            70 if clear else 45,
            {"system_ns_per_byte": spent, "copy_ns_per_byte": copy, "system": system,
             "user": user},
            Evidence(path_sums.label(mine, "rx"), path_sums.share(
                facts, path_sums.spent(mine, "wait", ("done",)), "wait"), "wait",
                f"up to {1 - copy / spent:.0%} of the reader's time in the kernel"))


SMALL = 0.25        # of a full-sized segment
MANY = 500          # packets/s that matter
WOKEN = 0.25        # sleeps of the readers per packet
ONE_WAY = 0.2       # data segments against, in a stream that is not request by request


def _small(f: dict[str, Any], facts: Facts, way: str) -> float:
    """Packets/s of a stream of small packets; 0: it is none."""
    there, back = ("out", "in") if way == "tx" else ("in", "out")
    there, back = f"data_segs_{there}", f"data_segs_{back}"
    moved = "bytes_acked" if way == "tx" else "bytes_received"
    count = f.get(f"d_{there}", 0)
    if not count or f[f"d_{moved}"] / count > SMALL * f["snd_mss"] \
            or f.get(f"d_{back}", 0) > ONE_WAY * count:
        return 0.0
    return float(count / f.get("seconds", facts["interval"]))


def _writes(facts: Facts) -> Iterator[Diagnosis]:
    """Small segments that a program writes one by one."""
    mine = [p for p in path_sums.data(facts, "tx") if p["segments"] == p["packets"]]
    flows = [(rate, f) for f in facts["flows"] if (rate := _small(f, facts, "tx"))]
    rate = sum(rate for rate, _ in flows)
    if rate < MANY or path_sums.packets(mine) < ENOUGH \
            or path_sums.busy(facts) < BUSY:
        return
    most = max(flows, key=lambda one: one[0])[1]
    size = path_sums.payload(mine) / path_sums.packets(mine)
    share = path_sums.share(facts, path_sums.spent(mine))
    yield Diagnosis(
        f"{most['local']} > {most['remote']}", "small-writes", "medium",
        f"{rate:,.0f} packets/s of {size:.0f} bytes on average, though "
        f"{most['snd_mss']} fit: each write is a packet", "larger writes change "
        "nothing", _weight(45, facts),
        {"bytes_per_packet": size, "packets_per_s": rate},
        Evidence(path_sums.label(mine, "tx"), share,
                 gain=f"{share * (1 - SMALL):.0%} of the work, with four times the "
                 "bytes in a packet"))


def _wakes(facts: Facts) -> Iterator[Diagnosis]:
    """A reader that sleeps and is woken for each small packet."""
    mine = path_sums.data(facts, "rx")
    flows = [(rate, f) for f in facts["flows"] if (rate := _small(f, facts, "rx"))]
    owners = {f["owner"]["pid"]: f["owner"] for _, f in flows
              if "sleeps_per_s" in f.get("owner", {})}
    sleeps = sum(owner["sleeps_per_s"] for owner in owners.values())
    rate = sum(rate for rate, _ in flows)
    if rate < MANY or sleeps < WOKEN * rate or path_sums.packets(mine) < ENOUGH \
            or path_sums.busy(facts) < BUSY:
        return
    most = max(flows, key=lambda one: one[0])[1]
    share = path_sums.share(facts, path_sums.spent(mine, stages=("estab", "wake")))
    yield Diagnosis(
        f"{most['local']} > {most['remote']}", "wake-ups", "medium",
        f"{rate:,.0f} small packets/s arrive, and their readers sleep {sleeps:,.0f} "
        "times a second: nearly every packet wakes one",
        "the reader's CPU time stays the same with SO_RCVLOWAT", _weight(50, facts),
        {"packets_per_s": rate, "sleeps_per_s": sleeps},
        Evidence(path_sums.label(mine, "rx"), share,
                 gain=f"most of {share:.0%} of the work, and of the reader's switches"))


REQUEUED = 0.05     # share of a queue's packets; a full link has some,
MOSTLY = 0.5        # and from which the driver stops more often than it sends


def _requeued(facts: Facts) -> Iterator[Diagnosis]:
    """Packets that the driver gave back."""
    for name, device in facts["devices"].items():
        for qdisc in device["qdiscs"]:
            again, sent = qdisc.get("requeues") or 0, max(1, qdisc["packets"])
            if again < ENOUGH or again < REQUEUED * sent:
                continue
            mine = path_sums.data(facts, "tx")
            wait = path_sums.spent(mine, "wait", ("qdisc", "busy"))
            share = path_sums.share(facts, wait, "wait")
            yield Diagnosis(
                f"{name} {qdisc['kind']}", "requeues", "medium" if wait else "low",
                f"the driver gave {again} of {sent} packets back: its ring was full",
                "the link is full; then it is the limit",
                65 if again > MOSTLY * sent else 40,
                {"requeues": again, "packets": sent, "ring": device["ring"]},
                Evidence(path_sums.label(mine, "tx"), share, "wait") if wait else None)


WAITED_NS = 10e6    # mean wait in a queue of this host that is too long
#: Kinds that delay on purpose.
SHAPING = ("netem", "tbf", "htb", "hfsc", "cake", "fq")


def _queued(facts: Facts) -> Iterator[Diagnosis]:
    """Packets that wait long in this host's own queue."""
    mine = path_sums.passing(path_sums.data(facts, "tx"), "qdisc")
    wait = path_sums.mean(mine, "qdisc")
    if path_sums.packets(mine) < ENOUGH or wait < WAITED_NS:
        return
    held = [(name, q) for name, device in facts["devices"].items()
            for q in device["qdiscs"] if q["packets"] > ENOUGH
            and q.get("backlog") and q["kind"] not in ("noqueue", "mq")]
    # Of several queues the profile does not know which one a packet was in.
    if len(held) != 1 or held[0][1]["kind"] in SHAPING:
        return
    name, qdisc = held[0]
    yield Diagnosis(
        f"{name} {qdisc['kind']}", "transmit-queue", "medium",
        f"packets wait {units.duration(wait / 1e9)} in this host's own queue on "
        f"average; {units.size(qdisc['backlog'])} wait now",
        "the round trip is as long with a shorter queue", 50,
        {"wait_ns": wait, "backlog": qdisc["backlog"], "parent": qdisc.get("parent"),
         "options": qdisc.get("options") or {}},
        Evidence(path_sums.label(mine, "tx"), path_sums.share(
            facts, path_sums.spent(mine, "wait", ("qdisc",)), "wait"), "wait",
            f"{units.duration(wait / 1e9)} less delay"))
