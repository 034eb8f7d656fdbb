# SPDX-License-Identifier: GPL-2.0-only
"""Turns facts into diagnoses, the one with the greatest weight first.  Pure."""
from __future__ import annotations

from dataclasses import replace

from . import (confidence, flow, host as rules_host, path, path_evidence, program,
               route, tables, wait)
from ..facts.collect import Facts
from .diagnosis import Diagnosis

MOST = flow.MOST
#: limit of a connection: findings of the host that explain it better.
_CAUSES = {
    "loss": ("qdisc-drops", "backlog-drops", "ring-drops", "link-errors",
             "memory-pressure", "own-firewall"),
    "policer": ("qdisc-drops", "backlog-drops", "ring-drops", "link-errors",
                "memory-pressure", "own-firewall"),
    "ack-loss": ("backlog-drops", "ring-drops", "own-firewall"),
    "ecn-black-hole": ("own-firewall",),
    "path-down": ("own-firewall", "accept-queue", "conntrack-full"),
    "no-answer": ("own-firewall", "accept-queue", "syn-queue", "conntrack-full",
                  "path-down"),
    "mtu": ("own-firewall", "accept-queue", "path-down"),
    "peer-accept-queue": ("accept-queue",),
    "application-receive": ("cpu-quota", "memory-pressure", "tiny-reads",
                            "placement", "cpu"),
    "reader-stopped": ("cpu-quota", "memory-pressure"),
    "application-send": ("cpu-quota",),
    "path": ("qdisc-drops", "backlog-drops", "ring-drops", "link-errors"),
    "sack-off": (),
    "recovery": ("qdisc-drops", "backlog-drops", "ring-drops", "link-errors"),
    "receive-window": ("memory-pressure",),
    "mss-granularity": ("memory-pressure",),
    "peer-application": ("memory-pressure", "cpu-quota"),
    "peer-stopped": ("cpu-quota",),
    "unknown": ("cpu-softirq", "placement", "cpu", "interrupt-rate",
                "coalescing", "offload-off", "netfilter-cost", "wake-ups"),
}


#: Packets that this host or its link lost.
_DROPS = ("qdisc-drops", "backlog-drops", "ring-drops", "link-errors")
#: Segments of a packet at most, and the share of packets that no connection feels.
_SEGMENTS, _HARMLESS = 64, 1e-3
#: Share of what was sent again that a queue must have dropped to be its cause.  A
#: packet can be several segments.
_EXPLAINED = 0.3
#: Work that limits no connection which has a limit of its own.
_WORK = ("offload-off", "netfilter-cost", "wake-ups", "small-writes")
#: Findings of the host that matter only if a connection has no limit of its own.
_CPU = ("cpu", "cpu-softirq", "placement", "budget")


def _joined(flows: list[Diagnosis]) -> list[Diagnosis]:
    """Of a connection with both ends here, keep the more specific diagnosis."""
    ends = {d.subject: d for d in flows}
    dull = ("unknown",)
    vague = (*dull, "receive-window", "peer-application", "peer-stopped")
    kept = []
    for d in flows:
        local, _, remote = d.subject.partition(" > ")
        other = ends.get(f"{remote} > {local}")
        if other and (
                d.limit in dull and other.limit not in dull
                or d.limit in vague and other.limit in (
                    "application-receive", "reader-stopped", "route-window",
                    "adv-win-scale", "receive-buffer-fixed",
                    "window-scaling")
                or d.limit == other.limit and d.subject > other.subject):
            continue
        kept.append(d)
    return kept


def _weighed(d: Diagnosis, facts: Facts, flows: list[Diagnosis]) -> Diagnosis:
    """Drops that no connection felt, or too few for what was sent again, are not
    what limits.  Those by which a queue signals congestion are, where connections see
    losses and no queue."""
    again = sum(f["d_total_retrans"] for f in facts["flows"])
    lost = d.numbers.get("dropped", again)
    if d.numbers.get("kind") in rules_host.AQM and 0 < again \
            and d.numbers["drops"] >= _EXPLAINED * again \
            and any(f.limit in ("loss", "policer") for f in flows):
        return replace(
            d, weight=85, confidence="medium",
            why=f"{d.why}; it drops before it is full, and connections lost as many "
            f"({again} segments sent again)")
    if 0 < _SEGMENTS * lost < again:
        return replace(
            d, weight=d.weight / 20, confidence="low",
            why=f"{d.why}; that does not explain {again} segments that were sent again")
    if not confidence.felt(facts) and (
            d.limit == "qdisc-drops" or d.numbers.get("share", 1) < _HARMLESS):
        return replace(d, weight=d.weight / 20, confidence="low")
    return d


def _together(flows: list[Diagnosis]) -> list[Diagnosis]:
    """A limit weighs as much as all connections that have it: the heaviest stands for
    them."""
    kept, seen = [], set[str]()
    for d in sorted(flows, key=lambda one: -one.weight):
        if d.limit not in seen and d.weight < MOST:
            d = replace(d, weight=max(d.weight, min(MOST, sum(
                one.weight for one in flows if one.limit == d.limit
                and one.weight < MOST))))
        seen.add(d.limit)
        kept.append(d)
    return kept


def diagnose(facts: Facts) -> list[Diagnosis]:
    """One diagnosis for each connection that moved enough data, and one for each
    finding of the host.  The first is the answer."""
    total = flow.moved(facts)
    flows = [d for d in (flow.diagnose(f, facts, total)
                         for f in facts["flows"]) if d]
    flows = _together(_joined(flows))
    unknown = any(d.limit == "unknown" for d in flows)
    host = [*rules_host.diagnose(facts), *tables.diagnose(facts),
            *route.initial(facts), *wait.unanswered(facts),
            *wait.repeated(facts), *path.diagnose(facts),
            *program.diagnose(facts)]
    kept = []
    for d in host:
        if d.limit in _DROPS:
            d = _weighed(d, facts, flows)
        if d.limit in _CPU and not unknown and not d.numbers.get("starved"):
            # The CPU is busy, but every connection has another limit.
            d = replace(d, weight=d.weight / 15)
        kept.append(d)
    there = {d.limit for d in kept if d.weight >= 20
             and (d.limit != "cpu" or d.numbers["starved"])}
    # A guess is no limit, and what a CPU explains is a symptom of its work.
    if flows and all(f.wrong and f.confidence != "low" and not (
            there & {*_CPU} & {*_CAUSES.get(f.limit, ())}) for f in flows):
        kept = [replace(d, weight=d.weight / 3) if d.evidence and d.limit in _WORK
                else d for d in kept]
        there = {limit for limit in there if any(
            d.limit == limit and d.weight >= 20 for d in kept)}
    for i, d in enumerate(flows):
        causes = sorted(there & set(_CAUSES.get(d.limit, ())))
        if causes:
            flows[i] = replace(d, weight=d.weight / 20,
                               why=f"{d.why}; see {', '.join(causes)}")
        elif d.limit == "sack-off":
            flows[i] = replace(d, weight=max(d.weight, 86))
        elif not d.wrong:
            flows[i] = replace(d, weight=d.weight / 5)
    ordered = sorted((path_evidence.shown(d, facts) for d in kept + flows),
                     key=lambda d: -d.weight)
    return confidence.judged(ordered, facts)


def verdict(diagnoses: list[Diagnosis]) -> str:
    """The answer, in one line."""
    if not diagnoses:
        return "nothing moves, or only in connections too short to be seen"
    wrong = [d for d in diagnoses if d.wrong and d.weight >= 5]
    if wrong:
        return f"limited by {wrong[0].limit}: {wrong[0].subject}"
    if all(d.limit == "unknown" for d in diagnoses):
        return "unknown: no rule explains what is seen"
    return "nothing wrong"
