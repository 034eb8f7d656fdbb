# SPDX-License-Identifier: GPL-2.0-only
"""Tables of the host that are full or drop: accept and SYN queues, conntrack, local
ports, the firewall, CPU quotas.  Pure.

Each finding is a counter of the kernel that grew over the interval.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..facts.collect import Facts
from .diagnosis import Diagnosis
from ..facts.path_sums import span
from .wait import STOPPED, unrouted

FULL = 0.95         # share of a table that is full,
HALF = 0.5          # and that may have been, if something was dropped
LOST_HERE = 0.05    # share of the bytes sent that a drop of this host explains
WAITED = 0.1        # share of the interval that a quota may hold up unnoticed


def diagnose(facts: Facts) -> Iterator[Diagnosis]:
    yield from _accept(facts)
    yield from _syn(facts)
    yield from _conntrack(facts)
    yield from _ports(facts)
    yield from _firewall(facts)
    yield from _quota(facts)
    yield from _memory(facts)


def _accept(facts: Facts) -> Iterator[Diagnosis]:
    lost = facts["snmp"].get("TcpExt.ListenOverflows", 0)
    if lost <= 0:
        return
    full = [one for one in facts.get("listeners") or []
            if one["waiting"] >= one["most"]]
    where = full[0]["local"] if full else "host"
    most = full[0]["most"] if full else 0
    yield Diagnosis(
        where, "accept-queue", "high",
        f"{lost} connections refused: the queue of accept() was full"
        + (f" ({full[0]['waiting']} wait, {most} may)" if full else ""),
        "ListenOverflows stops once the program accepts faster", 98,
        {"overflows": lost, "backlog": most, "waiting": full[0]["waiting"]
         if full else 0, "somaxconn": facts["sysctl"].get("net.core.somaxconn", "")})


def _syn(facts: Facts) -> Iterator[Diagnosis]:
    snmp = facts["snmp"]
    # What is not for a full queue of accept() is for that of half-open connections.
    dropped = max(snmp.get("TcpExt.TCPReqQFullDrop", 0),
                  snmp.get("TcpExt.ListenDrops", 0)
                  - snmp.get("TcpExt.ListenOverflows", 0))
    cookies = snmp.get("TcpExt.TCPReqQFullDoCookies", 0)
    if dropped > 0 or cookies > 0:
        yield Diagnosis(
            "host", "syn-queue",
            "high" if snmp.get("TcpExt.TCPReqQFullDrop", 0) > 0 else "medium",
            f"the queue of half-open connections was full: {dropped} SYNs dropped, "
            f"{cookies} answered with a cookie",
            "the counters stop with a longer backlog; then it is a SYN flood",
            94 if dropped else 60, {"dropped": dropped, "cookies": cookies})


def _conntrack(facts: Facts) -> Iterator[Diagnosis]:
    grown, size = facts.get("conntrack") or {}, facts.get("conntrack_size") or {}
    lost = grown.get("drop", 0) + grown.get("early_drop", 0)
    share = size.get("count", 0) / (size.get("max") or 1 << 62)     # 0: no limit
    # Some entries may have expired since.
    if lost > 0 and share >= HALF:
        yield Diagnosis(
            "host", "conntrack-full", "high" if share >= FULL else "medium",
            f"{lost} packets of new connections dropped: conntrack holds "
            f"{size['count']} of {size['max']} entries",
            "drops continue with a larger nf_conntrack_max", 98,
            {"dropped": lost, **size})


def _ports(facts: Facts) -> Iterator[Diagnosis]:
    ports = facts.get("ports") or {}
    if ports.get("used", 0) >= FULL * ports.get("range", 1 << 62):
        yield Diagnosis(
            ports["remote"], "ports-used-up", "high",
            f"{ports['used']} of {ports['range']} local ports are in use for "
            f"{ports['remote']}, also by connections in TIME-WAIT",
            "connect() succeeds", 96, dict(ports))


def _firewall(facts: Facts) -> Iterator[Diagnosis]:
    counted = False
    refused = facts["snmp"].get("TcpExt.IPReversePathFilter", 0)
    if refused > 0:
        doubt = _doubt(refused, facts)
        # Where it refuses much, connections may not even begin.
        much = refused > NOISE * facts["snmp"].get("Ip.InReceives", 0)
        yield Diagnosis(
            "host", "own-firewall",
            "high" if not doubt else "medium" if much else "low",
            f"the reverse path filter (rp_filter) refused {refused} packets: the "
            "route back to their sender leaves through another device" + doubt,
            "the counter grows with rp_filter=2", 4 if doubt and not much else 91,
            {"rp_filter": refused})
    for rule, packets in (facts.get("firewall") or {}).items():
        if packets > 0:
            doubt = _doubt(packets, facts)
            counted = counted or not doubt
            yield Diagnosis(
                rule.partition(":")[0], "own-firewall", "low" if doubt else "high",
                f"a rule of this host's firewall stopped {packets} packets{doubt}",
                "the counter grows and nothing is retransmitted",
                4 if doubt else STOPPED if facts.get("unanswered") else 93,
                {"packets": packets})
    yield from _limited(facts)
    failed = facts["snmp"].get("TcpExt.TCPRetransFail", 0)
    hooks = {"output", "postrouting"} & {*(facts.get("firewall_rules") or {})}
    if failed > 0 and hooks and not counted and not unrouted(facts) and not any(
            qdisc["drops"] for device in facts["devices"].values()
            for qdisc in device["qdiscs"]):
        counted = True
        yield Diagnosis(
            "output", "own-firewall", "medium",
            f"{failed} segments could not be sent again: this host refused them before "
            "its device, and its firewall has rules for output",
            "the counter TCPRetransFail grows without these rules", STOPPED,
            {"failed": failed})
    for drop in facts.get("drops") or []:
        # A rule without a counter: pathprof saw what it dropped.
        if drop["reason"] == "netfilter_drop" and not counted \
                and _suffering(facts):
            yield Diagnosis(
                f"{drop['direction']} {drop['stage']}", "own-firewall", "high",
                f"of the packets that pathprof followed, netfilter dropped "
                f"{drop['packets']} after the stage {drop['stage']}",
                "no packet ends there with reason netfilter_drop", 93, dict(drop))


def _limited(facts: Facts) -> Iterator[Diagnosis]:
    """Connections that a rule refuses for coming too often never begin, so nothing
    here misses them.  Without other connections that is what this host does."""
    if facts["flows"]:
        return
    listening = {int(one["local"].rpartition(":")[2])
                 for one in facts.get("listeners") or []}
    for place, ports in (facts.get("firewall_limits") or {}).items():
        served = sorted(listening.intersection(ports))
        packets = sum(count for rule, count in (facts.get("firewall") or {}).items()
                      if rule.partition(":")[0] == place)
        if served and packets > 0:
            yield Diagnosis(
                place, "own-firewall", "medium",
                f"a rule that limits new connections to port {served[0]}, where a "
                f"program listens, stopped {packets} packets",
                "those were attempts of strangers", 60,
                {"packets": packets, "port": served[0]})


NOISE = 0.1         # share of all packets that this filter refuses on a healthy host
#: Packets that a rule stops for one that a connection misses, and the reverse, beyond
#: which they are not the same.
MANY, SEGMENTS = 8, 64


def _doubt(packets: int, facts: Facts) -> str:
    """Why what this host stopped is not what its connections miss, as text."""
    if not _suffering(facts):
        return "; no connection suffers"
    # Tries to connect, sent again by either end, and segments sent again or early.
    again = max(facts["snmp"].get("Tcp.RetransSegs", 0), sum(
        f["d_total_retrans"] for f in facts["flows"]))
    missed = again + sum(max(f.get("d_rcv_ooopack", 0), f["retransmits"],
                             _lost_here(f)) for f in facts["flows"]) \
        + sum(1 + one["retransmits"] for one in facts.get("unanswered") or [])
    if packets > MANY * missed:
        return f"; connections miss {missed}: the others are of other traffic"
    if SEGMENTS * packets < again:
        return f"; that does not explain {again} segments that were sent again"
    return ""


def _suffering(facts: Facts) -> bool:
    """Whether a connection lost packets, or is not answered."""
    return bool(facts["snmp"].get("Tcp.RetransSegs", 0) or facts.get("unanswered")
                or any(f["d_total_retrans"] or f["retransmits"]
                       or f.get("d_rcv_ooopack", 0) or _lost_here(f)
                       for f in facts["flows"]))


def _lost_here(f: dict[str, Any]) -> int:
    """Segments that left the connection and never the host, if they are many: they
    are neither acknowledged nor in flight nor sent again, since the kernel knows of
    the drop."""
    gone = f.get("d_bytes_sent", 0) - f.get("d_bytes_retrans", 0) \
        - f["d_bytes_acked"] - f["high_unacked"] * f["snd_mss"]
    if gone <= LOST_HERE * max(1, f.get("d_bytes_sent", 0)):
        return 0
    return int(gone / max(1, f["snd_mss"])) + 1


def _owners(path: str, facts: Facts) -> set[str]:
    """Processes of a cgroup that have a busy connection here."""
    return {f["owner"]["comm"] for f in facts["flows"]
            if (f.get("owner", {}).get("cgroup", "") + "/").startswith(
                path.rstrip("/") + "/")}


def _memory(facts: Facts) -> Iterator[Diagnosis]:
    for path, times in (facts.get("out_of_memory") or {}).items():
        owners = _owners(path, facts)
        if times > 0 and owners:
            yield Diagnosis(
                path, "memory-pressure", "high",
                f"it reached its limit of memory {times} times; the buffers of its "
                f"connections count ({', '.join(sorted(owners))})",
                "the rate stays the same with a larger memory.max", 93,
                {"times": times})


def _quota(facts: Facts) -> Iterator[Diagnosis]:
    for path, waited in (facts.get("throttled") or {}).items():
        share = waited / 1e6 / span(facts, "counters")
        if share < WAITED:
            continue
        owners = _owners(path, facts)
        yield Diagnosis(
            path, "cpu-quota", "high" if owners else "low",
            f"its CPU quota held it up for {share:.0%} of the time"
            + (f" ({', '.join(sorted(owners))})" if owners else
               "; none of its processes has a busy connection here"),
            "the rate stays the same with a larger cpu.max", 92 if owners else 4,
            {"throttled_us": waited, "share": share})
