# SPDX-License-Identifier: GPL-2.0-only
"""What the paths of packets show: work and waits that a cheaper path would not have.
Pure.

A rule names the fact that keeps packets from the cheaper path.  Work matters only
where a CPU is busy, and an interface is named only if its own settings agree.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import units
from ..facts import path_sums
from ..facts.collect import Facts
from .confidence import lower, upper
from .diagnosis import Diagnosis
from ..facts.path_sums import BUSY, COSTLY, ENOUGH, Evidence

LIMITING = 0.8      # busy share of a CPU from which its work limits
SINGLE = 0.7        # share of packets with one full-sized segment: none is merged
FULL = 0.6          # of the MTU that is full-sized
MERGES = 4          # segments that GRO merges at least, where packets come in rows


def diagnose(facts: Facts) -> Iterator[Diagnosis]:
    yield from _netfilter(facts)
    yield from _requeued(facts)
    if not facts.get("paths"):
        return
    yield from _not_merged(facts)
    yield from _split(facts)
    yield from _queued(facts)


def weight(most: float, facts: Facts) -> float:
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
        # Never certain: nothing shows whether they come in rows, which GRO merges.
        name, "offload-off", "medium",
        f"GRO is off, and {alone:.0%} of the packets with data pass the stack as one "
        f"segment; what is done per packet is {share:.0%} of all work",
        "packets stay as small with GRO: they do not come in rows",
        weight(60, facts),
        {"gro": "off", "single": alone},
        Evidence(path_sums.label(single, "rx"), share, gain=(
            f"{gain:.0%} of the work, if {MERGES} segments are merged")))


def _parts(facts: Facts) -> list[tuple[str, Any]]:
    """Devices that lack a part of an offload, which the connections here need."""
    six = any(f["local"].startswith("[") for f in facts["flows"])
    four = any(not f["local"].startswith("[") for f in facts["flows"])
    found = []
    for name, device in _devices(facts, "tx"):
        needed = [part for part in device.get("parts_off", [])
                  if six and "6" in part or four and "6" not in part]
        if needed:
            found.append((name, device | {"parts_off": needed}))
    return found


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
    parts = [] if off else _parts(facts)
    if share < COSTLY or not (off or parts):
        return
    name, device = (off or parts)[0]
    large_share = path_sums.payload(large) / max(1, path_sums.payload(mine))
    # Packets are the observations; their bytes only weigh them.
    clear = lower(large_share, path_sums.packets(mine)) > 0.5
    missing = device["parts_off"][0] if parts else ""
    yield Diagnosis(
        name, "offload-off", _confidence(clear, facts),
        f"{large_share:.0%} of the data is split into segments in software"
        + (", which computes their checksums (tx is off)" if sums else
           f", as {missing} is off" if parts else ", as TSO is off")
        + f": {share:.0%} of all work",
        "the work stays with the offload on: the device does it in software, too",
        weight(60, facts),
        {key: "off" for key in ("tx", "sg", "tso", "gso")
         if device["offload"].get(key) == "off"}
        | ({"part": missing} if missing else {}),
        Evidence(path_sums.label(large, "tx"), share,
                 gain=f"up to {share:.0%} of the work"))


#: Stages that hold netfilter's rules alone, and those that hold them, too, where
#: they are not seen alone.
NETFILTER = ("nf_pre", "nf_in", "nf_fwd", "nf_out", "nf_post", "nf_dev", "nf_bridge",
             "conntrack")
COARSE = "netif"
RULES = 50          # rules of a hook below which their work is not suspected
HEAVY = 0.4         # share of the work from IP to TCP that is suspected
#: How the kernel's modules of netfilter begin.
MODULES = ("nf_", "nft_", "nfnetlink", "x_tables", "xt_", "ip_tables", "ip6_tables",
           "iptable_", "ip6table_", "ipt_", "ip6t_", "ebtable", "ebt_", "ip_set")
TRACKING = ("nf_conntrack", "nf_nat", "nf_defrag")
SAMPLES = 100       # of the CPUs' time, from which a share is known


def _netfilter(facts: Facts) -> Iterator[Diagnosis]:
    """The clock's samples need no packets, and see every hook: they name netfilter,
    or rule it out.  Between, stages of netfilter decide, then what holds it, too."""
    samples = _sampled_most(facts)
    if sum(samples.values()) >= SAMPLES:
        found = list(_sampled(samples, facts))
        share = _part(samples, MODULES)
        if found or upper(share, sum(samples.values())) < COSTLY / 2:
            yield from found
            return
    if not facts.get("paths"):
        return
    paths = facts["paths"]
    alone = path_sums.spent(paths, stages=NETFILTER)
    share = path_sums.share(facts, alone)
    rules = facts.get("firewall_rules") or {}
    if alone and share >= COSTLY and path_sums.busy(facts) >= BUSY:
        tracked = path_sums.share(facts, path_sums.spent(paths, stages=("conntrack",)))
        seen = sum(int(p["packets"]) for p in paths)
        yield _rules(share, tracked, rules, _confidence(
            lower(share, seen) > COSTLY, facts), "work", facts, Evidence(
                path_sums.label([p for p in paths if path_sums.spent(
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
            "shows little work in nf_in", weight(65, facts),
            {"share": share, "rules": rules},
            Evidence(path_sums.label(mine, "rx"), share,
                     gain=f"most of {share:.0%} of the work"))


def _sampled_most(facts: Facts) -> dict[str, int]:
    """Samples of all CPUs, or of a busy one where netfilter takes more: where others
    do other work, its share of all is small."""
    some = [facts.get("samples") or {}, *(
        samples for cpu, samples in (facts.get("samples_of") or {}).items()
        if sum(samples.values()) >= SAMPLES
        and path_sums.busy_cpu(facts, cpu) >= BUSY)]
    return max(some, key=lambda one: lower(
        _part(one, MODULES), sum(one.values())) if one else 0.0)


def _part(samples: dict[str, int], some: tuple[str, ...]) -> float:
    """The share of modules that begin so."""
    return sum(count for name, count in samples.items()
               if name.startswith(some)) / sum(samples.values())


def _sampled(samples: dict[str, int], facts: Facts) -> Iterator[Diagnosis]:
    """The CPUs' time in modules of netfilter, of all in the kernel."""
    rules = facts.get("firewall_rules") or {}
    total = sum(samples.values())
    share, tracked = _part(samples, MODULES), _part(samples, TRACKING)
    # The rules of other network namespaces take time as well.
    there = rules or facts.get("legacy_tables") or tracked > share / 2 or any(
        line.startswith("firewall_rules") for line in facts.get("missing", ()))
    if lower(share, total) < COSTLY or not there or path_sums.busy(facts) < BUSY:
        return
    clear = lower(share, total) > 2 * COSTLY and max(
        rules.values(), default=0) >= RULES
    yield _rules(share, tracked, rules, _confidence(clear, facts),
                 "time in the kernel", facts, Evidence(
                     "in netfilter's modules", share, "time in the kernel",
                     f"up to {share:.0%} of the time in the kernel"))


def _rules(share: float, tracked: float, rules: dict[str, int], confidence: str,
           of: str, facts: Facts, evidence: Evidence) -> Diagnosis:
    return Diagnosis(
        "host", "netfilter-cost", confidence,
        f"netfilter's rules are {share:.0%} of all {of}" + (
            f", connection tracking {tracked:.0%}" if tracked > COSTLY / 2 else "")
        + (f" ({sum(rules.values())} rules)" if rules else ""),
        "the work stays without the rules", weight(65, facts),
        {"share": share, "conntrack": tracked, "rules": rules}, evidence)


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
                f"{name} {qdisc['kind']}", "requeues",
                "medium" if wait or again > MOSTLY * sent else "low",
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
