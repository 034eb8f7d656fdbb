# SPDX-License-Identifier: GPL-2.0-only
"""The path that goes with a diagnosis from other facts, where the profile has it;
and where the profile and the counters of the kernel disagree.  Pure."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ..facts import path_sums
from .diagnosis import Diagnosis
from ..facts.path_sums import ENOUGH, Evidence, Path

Facts = dict[str, Any]
#: Times by which a share may differ from that of the kernel's counters.
APART = 3
#: Packets of a profile that a comparison of shares needs.
MANY = 500


def _of_packets(facts: Facts, way: str, some: list[Path]) -> Evidence | None:
    """These paths, by their share of the packets of a direction."""
    every = path_sums.packets(p for p in facts["paths"] if p["direction"] == way)
    if not path_sums.packets(some):
        return None
    return Evidence(path_sums.label(some, way), path_sums.packets(some) / every,
                    f"{way} packets")


def _flagged(way: str, flag: str) -> Callable[[Facts], Evidence | None]:
    return lambda facts: _of_packets(facts, way, [
        p for p in facts["paths"] if p["direction"] == way and flag in p["flags"]])


def _dropped(way: str, *reasons: str) -> Callable[[Facts], Evidence | None]:
    return lambda facts: _of_packets(facts, way, [
        p for p in facts["paths"] if p["direction"] == way and p["end"] == "dropped"
        and (not reasons or p["reason"] in reasons)])


def _waiting(way: str, stage: str) -> Callable[[Facts], Evidence | None]:
    def evidence(facts: Facts) -> Evidence | None:
        mine = path_sums.passing(path_sums.data(facts, way), stage)
        if path_sums.packets(mine) < ENOUGH:
            return None
        return Evidence(path_sums.label(mine, way), path_sums.share(
            facts, path_sums.spent(mine, "wait", (stage,)), "wait"), "wait")
    return evidence


def _small(facts: Facts) -> Evidence | None:
    """Sent packets of the smallest size class."""
    mine = path_sums.data(facts, "tx")
    return _of_packets(facts, "tx", [
        p for p in mine if p["segments"] == p["packets"]
        and p["bytes"] < 500 * p["packets"]])


def _received(facts: Facts) -> Evidence | None:
    """The work on received packets before they wait for their reader."""
    mine = path_sums.data(facts, "rx")
    if path_sums.packets(mine) < ENOUGH:
        return None
    return Evidence(path_sums.label(mine, "rx"), path_sums.share(
        facts, path_sums.spent(mine, stages=path_sums.PER_PACKET)))


#: limit: what the profile shows of it.
_SHOWN: dict[str, Callable[[Facts], Evidence | None]] = {
    "loss": _flagged("tx", "retransmit"), "policer": _flagged("tx", "retransmit"),
    "ack-loss": _flagged("tx", "retransmit"), "sack-off": _flagged("tx", "retransmit"),
    "shaper": _waiting("tx", "qdisc"), "reordering": _flagged("tx", "retransmit"),
    "ecn-black-hole": _flagged("tx", "retransmit"),
    "backlog-drops": _dropped("rx", "cpu_backlog"),
    "own-firewall": _dropped("rx", "netfilter_drop"),
    "qdisc-drops": _dropped("tx"), "pacing": _waiting("tx", "qdisc"),
    "application-receive": _waiting("rx", "done"),
    "cpu-quota": _waiting("rx", "done"), "placement": _waiting("rx", "done"),
    "small-writes": _small, "cpu-softirq": _received, "budget": _received,
}


def shown(diagnosis: Diagnosis, facts: Facts) -> Diagnosis:
    """The diagnosis with what the profile shows of it."""
    if diagnosis.evidence or diagnosis.limit not in _SHOWN or not facts.get("paths"):
        return diagnosis
    return replace(diagnosis, evidence=_SHOWN[diagnosis.limit](facts))


def disagreements(facts: Facts) -> Iterator[str]:
    """Where /proc, sock_diag, ethtool and the paths do not fit together."""
    if "recorded" not in facts:
        return
    paths = facts["paths"]
    moved = sum(f["d_bytes_acked"] + f["d_bytes_received"] for f in facts["flows"])
    if not path_sums.packets(paths):
        if moved:
            yield (f"connections moved {moved} bytes, and the profile has no packet: "
                   "they moved between its bursts")
        return
    sent = path_sums.data(facts, "tx")
    again = path_sums.packets(p for p in sent if "retransmit" in p["flags"])
    seen = again / max(1, path_sums.packets(sent))
    out = sum(f.get("d_data_segs_out", 0) for f in facts["flows"])
    counted = sum(f["d_total_retrans"] for f in facts["flows"]) / max(1, out)
    if path_sums.packets(sent) >= MANY and max(seen, counted) > 0.01 and not (
            1 / APART <= (seen + 1e-9) / (counted + 1e-9) <= APART):
        yield (f"{counted:.1%} of the segments were retransmitted by TCP_INFO, "
               f"{seen:.1%} of the packets that the profile saw")
    received = path_sums.data(facts, "rx")
    bare = path_sums.packets(p for p in received if "no gro" in p["facts"])
    on = [name for name, device in facts["devices"].items() if name != "lo"
          and device["rx"].get("packets", 0) > ENOUGH
          and device["offload"].get("gro") == "on"]
    if on and path_sums.packets(received) >= ENOUGH \
            and bare > 0.9 * path_sums.packets(received):
        yield (f"GRO is on ({on[0]}), and the driver hands packets to the stack "
               "without it")
    lost = facts["recorded"].get("lost", 0)
    if lost > 0.01 * max(1, facts["recorded"]["packets"]):
        yield f"pathprof lost {lost} of {facts['recorded']['packets']} packets"
