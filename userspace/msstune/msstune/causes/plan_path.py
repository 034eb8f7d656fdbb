# SPDX-License-Identifier: GPL-2.0-only
"""Proposals for what the paths of packets show.  Pure.

Each answers one diagnosis of rules_path.  A setting is proposed only if the device
has it and the facts show that it acts there; all else is advice with its evidence.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator

from ..facts import path_sums
from ..facts.collect import Facts
from .diagnosis import Diagnosis
from .plan_values import Proposal

NFT = "wiki.nftables.org; nft(8)"
SCALING = "docs.kernel.org/networking/scaling"
COPIES = "Trapeze 1999, figure 2; docs.kernel.org/networking/msg_zerocopy"
#: Share of all work below which a copy saved is not noticed.
NOTICED = 0.2
#: Part of the work on received packets that RPS leaves on the CPU of the interrupt.
LEFT = ("gro", "netif")


def _netfilter(d: Diagnosis, _facts: Facts) -> Iterator[Proposal]:
    rules = d.numbers.get("rules") or {}
    yield Proposal("", "", "", "let packets of known connections pass first (ct state "
                   "established accept as the first rule), and compare addresses and "
                   "ports by a set or a map instead of one rule each", d.why
                   + (f"; rules by hook: {rules}" if rules else ""), NFT,
                   "rules behind it no longer see these packets")
    if d.numbers.get("conntrack", 0) >= path_sums.COSTLY:
        yield Proposal("", "", "", "leave traffic that needs no connection tracking "
                       "out of it (notrack in a raw chain); what is only forwarded can "
                       "take a flowtable", d.why, NFT, "rules on ct state and NAT do "
                       "not act on these packets")


def _reads(d: Diagnosis, _facts: Facts) -> Iterator[Proposal]:
    yield Proposal("", "", "", f"in the program of {d.subject}: read into a buffer of "
                   "64 KiB and take messages from it", d.why, "recv(2)", "none")


def _wakes(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    yield Proposal("", "", "", f"in the program of {d.subject}: SO_RCVLOWAT of a "
                   "message, or read all that is there and sleep only then; at its "
                   "peer: one write for several messages", d.why,
                   "socket(7), tcp(7)", "delay until so much has arrived")
    for name, device in facts["devices"].items():
        held = device["coalesce"].get("rx-usecs")
        if device["kind"] == "" and held is not None and held.isdecimal() \
                and int(held) < 20:
            yield Proposal(f"coalesce:{name}:rx-usecs", held, "50",
                           "packets that come in rows wake the reader once", d.why,
                           "ethtool(8)", "up to 50 us of delay")


def _requeues(d: Diagnosis, _facts: Facts) -> Iterator[Proposal]:
    name, ring = d.subject.split()[0], d.numbers.get("ring") or {}
    if ring.get("tx", 0) < ring.get("tx_max", 0):
        yield Proposal(f"ring:{name}:tx", str(ring["tx"]),
                       str(min(ring["tx"] * 4, ring["tx_max"])),
                       "the driver's ring is full while packets wait", d.why,
                       "ethtool(8)", "the link may go down for a moment; a longer "
                       "queue below the queueing discipline")
        return
    yield Proposal("", "", "", f"{name}: its driver takes few packets at a time, and "
                   "no setting changes that; where it is a tunnel or a serial line, "
                   "the line is the limit", d.why, "tc(8)", "none")


def _queue(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    name, kind = d.subject.split()[:2]
    if kind in ("pfifo_fast", "pfifo", "bfifo") and not d.numbers.get("parent"):
        limit = (d.numbers.get("options") or {}).get("limit")
        yield Proposal(f"qdisc:{name}", f"{kind} limit {limit}" if limit
                       and kind != "pfifo_fast" else "default", "fq_codel",
                       "it keeps the wait near 5 ms and lets short flows pass", d.why,
                       "RFC 8290; tc-fq_codel(8)", "waiting packets are lost once")
    yield Proposal("", "", "", f"{name}: send less at once (SO_MAX_PACING_RATE, "
                   "net.ipv4.tcp_limit_output_bytes), and see that its driver has byte "
                   "queue limits (/sys/class/net/*/queues/tx-*/byte_queue_limits)",
                   d.why, "tc-fq(8)", "none")


def steer(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    """RPS, where one CPU does the work on all that one queue receives."""
    cpu = d.subject.split()[-1]
    idle = [other for other, spent in facts["cpus"].items() if other != cpu
            and spent["idle"] > 0.5 * max(1, sum(spent.values()))]
    mine = path_sums.data(facts, "rx")
    moved = path_sums.share(facts, path_sums.spent(mine, stages=[
        stage for stage in path_sums.PER_PACKET if stage not in LEFT]))
    if not idle or facts.get("paths") and moved < path_sums.COSTLY:
        return
    for name, device in facts["devices"].items():
        if device["kind"] or name == "lo" or device["rx_queues"] != 1:
            continue
        mask = sum(1 << int(other) for other in idle)
        yield Proposal(f"queue:{name}:rx-0/rps_cpus", facts["placement"].get(
            "steering", {}).get(f"{name}/rx-0/rps_cpus", "0"), f"{mask:x}",
            "one receive queue uses one CPU: RPS moves the work after GRO to those "
            "that are idle", d.why, SCALING,
            "an inter-processor interrupt for each group of packets",
            gain=f"{moved:.0%} of the work moves to another CPU" if moved else "")


def copies(facts: Facts) -> tuple[float, str] | None:
    """Share of the copy to readers in all work, with its path; None: not known."""
    mine = path_sums.passing(path_sums.data(facts, "rx"), "copy")
    if path_sums.packets(mine) < path_sums.ENOUGH:
        return None
    return (path_sums.share(facts, path_sums.spent(mine, stages=("copy",))),
            path_sums.label(mine, "rx"))


def reader(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    """Zero copy only where the copy is known to be a part of the work."""
    known = copies(facts)
    share, path = known or (0.0, "")
    of = "work" if known else ""
    if share < NOTICED:
        yield Proposal("", "", "", "the reader is the limit"
                       + (", and not the copy to it" if known else "")
                       + ": profile the program", d.why, "perf-top(1)", "none",
                       path=path, share=share, of=of)
        return
    yield Proposal("", "", "", "the reader is the limit: profile it; larger reads and "
                   "TCP_ZEROCOPY_RECEIVE save copies", d.why, COPIES, "none", path,
                   share, of, f"up to {share:.0%} of the work")


ANSWERS: dict[str, Callable[[Diagnosis, Facts], Iterator[Proposal]]] = {
    "netfilter-cost": _netfilter, "tiny-reads": _reads, "wake-ups": _wakes,
    "requeues": _requeues, "transmit-queue": _queue,
    "application-receive": reader, "peer-application": reader,
}
