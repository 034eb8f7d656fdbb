# SPDX-License-Identifier: GPL-2.0-only
"""What the paths of packets show: work and waits that a cheaper path would not have.
Pure.

A rule names the fact that keeps packets from the cheaper path.  Work matters only
where a CPU is busy, and an interface is named only if its own settings agree.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import path_sums
from .collect import Facts
from .diagnosis import Diagnosis
from .path_sums import ENOUGH, Evidence

BUSY = 0.5          # busy share of a CPU above which work per packet matters
SINGLE = 0.7        # share of packets with one full-sized segment: none is merged
FULL = 0.6          # of the largest packet that is full-sized
MERGES = 4          # segments that GRO merges at least, where packets come in rows
COSTLY = 0.1        # share of all work that is worth a change


def diagnose(facts: Facts) -> Iterator[Diagnosis]:
    if not facts.get("paths"):
        return
    yield from _not_merged(facts)
    yield from _split(facts)
    yield from _netfilter(facts)
    yield from _reads(facts)
    yield from _wakes(facts)
    yield from _requeued(facts)
    yield from _queued(facts)


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
    largest = max(p["bytes"] / p["segments"] for p in mine)
    single = [p for p in mine if p["segments"] == p["packets"]
              and p["bytes"] > FULL * largest * p["packets"]
              and {"gro off", "no gro"} & set(p["facts"])]
    alone = path_sums.packets(single) / count
    share = path_sums.share(facts, path_sums.spent(
        single, stages=path_sums.PER_PACKET))
    off = _devices(facts, "rx", gro="off")
    if alone < SINGLE or share < COSTLY or not off:
        return
    name, _ = off[0]
    gain = share * (1 - 1 / MERGES)
    yield Diagnosis(
        name, "offload-off", "high" if alone > 0.9 else "medium",
        f"GRO is off, and {alone:.0%} of the packets with data pass the stack as one "
        f"segment; what is done per packet is {share:.0%} of all work",
        "packets stay as small with GRO: they do not come in rows", 60,
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
        name, "offload-off", "high" if large_share > 0.5 else "medium",
        f"{large_share:.0%} of the data is split into segments in software"
        + (", which computes their checksums (tx is off)" if sums else
           ", as TSO is off") + f": {share:.0%} of all work",
        "the work stays with the offload on: the device does it in software, too", 60,
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
            "host", "netfilter-cost", "high",
            f"netfilter's rules are {share:.0%} of all work" + (
                f", connection tracking {tracked:.0%}" if tracked > COSTLY / 2 else "")
            + (f" ({sum(rules.values())} rules)" if rules else ""),
            "the work stays without the rules", 65,
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
            "shows little work in nf_in", 65, {"share": share, "rules": rules},
            Evidence(path_sums.label(mine, "rx"), share,
                     gain=f"most of {share:.0%} of the work"))


def _reads(facts: Facts) -> Iterator[Diagnosis]:
    return iter(())


def _wakes(facts: Facts) -> Iterator[Diagnosis]:
    return iter(())


REQUEUED = 0.01     # share of a queue's packets


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
                f"{name} {qdisc['kind']}", "requeues", "high" if wait else "medium",
                f"the driver gave {again} of {sent} packets back: its ring was full",
                "requeues stop with a longer ring of the device", 55,
                {"requeues": again, "packets": sent, "ring": device["ring"]},
                Evidence(path_sums.label(mine, "tx"), share, "wait") if wait else None)


def _queued(facts: Facts) -> Iterator[Diagnosis]:
    return iter(())
