# SPDX-License-Identifier: GPL-2.0-only
"""What became of the blocks: the pairs that count, void blocks, failed blocks.

Pure.  The pair of a void or failed block is measured again.  A void block says
nothing about its arm.  A failed block is an outcome of its arm: it stays
counted, whatever comes after it.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..experiment.experiment import BLOCK, CONNECTION, Plan
from . import stats

Record = dict[str, Any]
AA, AB = "aa", "ab"
#: Chance makes the void blocks of the arms so uneven in this share of cases.
VOID_LEVEL = 0.05


def attempts(records: Iterable[Record], phase: str) \
        -> dict[int, dict[int, list[Record]]]:
    """pair -> attempt -> its blocks."""
    out: dict[int, dict[int, list[Record]]] = {}
    for record in records:
        if record["phase"] == phase:
            out.setdefault(record["pair"], {}).setdefault(
                record["attempt"], []).append(record)
    return out


def failed(record: Record) -> str:
    """Why the block failed; "".  Version 1 of the format has no failed
    blocks."""
    return str(record.get("failed", ""))


def unusable(record: Record) -> bool:
    """Must the pair be measured again?"""
    return bool(record["void"] or failed(record))


def complete(blocks: list[Record]) -> bool:
    """Are all blocks of a pair there, each usable, all of one session?"""
    count = blocks[0]["of"]
    return len(blocks) == count and not any(map(unusable, blocks)) \
        and len({b["side"] for b in blocks}) == count \
        and len({b["session"] for b in blocks}) == 1


def pairs(records: Iterable[Record], phase: str) \
        -> list[tuple[Record, ...]]:
    """The pairs that count, each (control, treatment) of its first complete
    attempt, in order."""
    out = []
    for _, tries in sorted(attempts(records, phase).items()):
        for _, blocks in sorted(tries.items()):
            if complete(blocks):
                out.append(tuple(sorted(blocks, key=lambda b: int(b["side"]))))
                break
    return out


def out_of_attempts(plan: Plan, records: Iterable[Record], phase: str) -> bool:
    """Was a pair unusable as often as the plan allows?"""
    return any(sum(any(map(unusable, blocks)) for blocks in tries.values())
               >= plan.attempts and not any(map(complete, tries.values()))
               for tries in attempts(records, phase).values())


def _rule(reason: str) -> str:
    """The rule in "rule: observation"."""
    return reason.split(":")[0]


def _count(counts: dict[str, int], reason: str) -> None:
    counts[_rule(reason)] = counts.get(_rule(reason), 0) + 1


def voids(plan: Plan, records: list[Record]) -> dict[str, Any]:
    """Blocks that do not count, by arm and reason."""
    arms: dict[str, dict[str, int]] = {arm.name: {} for arm in plan.arms}
    total = dict.fromkeys(arms, 0)
    interrupted = 0
    for phase in (AA, AB):
        for tries in attempts(records, phase).values():
            for blocks in tries.values():
                bad = [b for b in blocks if b["void"]]
                for block in bad:
                    _count(arms[block["arm"]], block["void"])
                    total[block["arm"]] += phase == AB
                if not any(map(unusable, blocks)) and not complete(blocks):
                    interrupted += 1
    one, other = total.values()
    p = stats.sample_ratio_p(one, one + other, 0.5) if one + other else 1.0
    return {"arms": arms, "interrupted_pairs": interrupted, "p": p,
            "uneven": p < VOID_LEVEL and plan.assign == BLOCK}


def failures(plan: Plan, records: list[Record],
             before: int | None = None) -> dict[str, Any]:
    """Failed blocks of each arm, of all sessions and attempts, in the pairs
    @before that number; those of the A/A run apart.  With arms per connection
    connections instead of blocks.

    "more": the treatment failed in a larger share of its blocks; "harm": in so
    many more that chance does not explain it.  "at_most_percent": failure
    rates above it are excluded."""
    arms: dict[str, dict[str, Any]] = {
        arm.name: {"failed": 0, "of": 0, "reasons": {}} for arm in plan.arms}
    in_aa = 0
    for record in records:
        if record["phase"] == AA:
            in_aa += bool(failed(record))
        elif not record["void"] and (before is None
                                     or record["pair"] < before):
            for name, why in _trials(plan, record):
                mine = arms[name]
                mine["of"] += 1
                if why:
                    mine["failed"] += 1
                    _count(mine["reasons"], why)
    for mine in arms.values():
        mine["at_most_percent"] = 100 * stats.most_failures(
            mine["failed"], mine["of"], plan.alpha)
    control, treatment = (arms[arm.name] for arm in plan.arms)
    p = stats.more_failures_p(treatment["failed"], treatment["of"],
                              control["failed"], control["of"])
    more = treatment["failed"] * control["of"] \
        > control["failed"] * treatment["of"] \
        or (treatment["failed"] > 0 and not control["of"])
    return {"arms": arms, "in_aa": in_aa, "p": p, "unit": "connections"
            if plan.assign == CONNECTION else "blocks", "more": more,
            "harm": more and p <= plan.alpha}


def _trials(plan: Plan, record: Record) -> list[tuple[str, str]]:
    """The arm of what could fail in a block, and why it did: the block, or each
    of its connections."""
    if plan.assign != CONNECTION:
        return [(record["arm"], failed(record))]
    names = {"stock": plan.arms[0].name, "treated": plan.arms[1].name}
    return [(names[c["arm"]], f"load failed: {c['failed']}"
             if "failed" in c else "")
            for c in record["raw"].get("connections", ()) if c["arm"] in names]


def failures_sentence(found: dict[str, Any]) -> str:
    """How often each arm failed; "" if none did."""
    (one, control), (other, treatment) = found["arms"].items()
    if not control["failed"] + treatment["failed"]:
        return ""
    return (f"{other} failed in {treatment['failed']} of {treatment['of']} "
            f"{found.get('unit', 'blocks')}, {one} in {control['failed']} of "
            f"{control['of']}")
