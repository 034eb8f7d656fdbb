# SPDX-License-Identifier: GPL-2.0-only
"""From the recorded blocks to the result of the experiment.

Pure, and a function of the records alone: the same blocks give the same result,
however often mssab was killed in between.
"""
from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import Any

from . import finding, interference, stats, verdict
from .experiment import BLOCK, CONNECTION, Plan
from .finding import Finding
from .metrics import Metric
from .verdict import Rule

Record = dict[str, Any]
AA, AB = "aa", "ab"
#: An A/A run without a difference reports one in this share of cases.
AA_LEVEL = 0.01
#: Chance makes the void blocks of the arms so uneven in this share of cases.
VOID_LEVEL = 0.01
ESTIMANDS = {
    BLOCK: "total effect: the whole path changes its arm from block to block",
    CONNECTION: "effect on one connection among others of either arm"}


def attempts(records: Iterable[Record], phase: str) \
        -> dict[int, dict[int, list[Record]]]:
    """pair -> attempt -> its blocks."""
    out: dict[int, dict[int, list[Record]]] = {}
    for record in records:
        if record["phase"] == phase:
            out.setdefault(record["pair"], {}).setdefault(
                record["attempt"], []).append(record)
    return out


def complete(blocks: list[Record]) -> bool:
    """Are all blocks of a pair there, none void, all of one session?"""
    count = blocks[0]["of"]
    return len(blocks) == count and not any(b["void"] for b in blocks) \
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


def differences(counted: list[tuple[Record, ...]],
                metric: Metric) -> list[float]:
    """One per pair, positive where the treatment is better."""
    return [metric.difference(*values) for values in
            zip(*sides(counted, metric.name), strict=True)]


def sides(counted: list[tuple[Record, ...]], name: str) -> list[list[float]]:
    """Values of the control and of the treatment, pair by pair.  With arms per
    connection both are from one block, at the share nearest to half."""
    if not counted or not counted[0][0]["share"]:
        return [[pair[side]["values"][name] for pair in counted]
                for side in (0, 1)]
    blocks = [min(pair, key=lambda b: abs(int(b["share"]) - 50))["values"]
              for pair in counted]
    return [[math.exp(block[side]) for block in blocks]
            for side in ("stock", "treated")]


def _shown(metric: Metric, found: Finding) -> dict[str, Any]:
    """A finding as reported: % of the control or the metric's unit, with the
    metric's own sign."""
    ends = sorted((metric.shown(found.low), metric.shown(found.high)))
    boot = sorted(map(metric.shown, found.bootstrap))
    return {
        "verdict": found.verdict, "why": found.why,
        "effect": _number(metric.shown(found.point)),
        "low": _number(ends[0]), "high": _number(ends[1]),
        "level": found.level, "p": found.p,
        "p_equivalent": found.p_equivalent,
        "typical": _number(metric.shown(found.typical)),
        "bootstrap_low": _number(boot[0]), "bootstrap_high": _number(boot[1]),
        "bootstrap_agrees": found.agrees,
        "spread": _number(found.spread), "lag_correlation": found.lag,
        "exact": found.exact, "pairs": found.pairs,
        "pairs_needed": found.needed}


def _number(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def _summary(values: list[float]) -> dict[str, float]:
    return {"mean": statistics.fmean(values),
            "median": statistics.median(values),
            "least": min(values), "most": max(values)} if values else {}


def _metric(names: tuple[str, str], metric: Metric,
            counted: list[tuple[Record, ...]],
            rule: Rule) -> dict[str, Any]:
    found = finding.of(differences(counted, metric), rule)
    return {"unit": metric.unit, "better": metric.better,
            "scale": metric.scale, "margin": metric.margin,
            **_shown(metric, found),
            "arms": {name: _summary(values)
                     for name, values in
                     zip(names, sides(counted, metric.name), strict=True)}}


def judge_metrics(plan: Plan, counted: list[tuple[Record, ...]],
                  level: float, level_equivalent: float) \
        -> dict[str, dict[str, Any]]:
    """Every metric at one look; Holm over the primary ones.  A guardrail is
    tested at the full level: to detect harm, not to claim a gain."""
    held = [level] * len(plan.metrics)
    if len(plan.primary) > 1 and len(counted) >= verdict.MIN_PAIRS:
        p = [float(stats.p_two_sided(stats.subset_means(
            differences(counted, metric)))) for metric in plan.primary]
        held[:len(p)] = stats.holm_levels(p, level)
    names = plan.arms[0].name, plan.arms[1].name
    return {metric.name: _metric(names, metric, counted, Rule(
        metric.log_margin(), held[i], level_equivalent, plan.power))
        for i, metric in enumerate(plan.metrics)}


def _headline(plan: Plan, found: dict[str, dict[str, Any]]) \
        -> tuple[str, str]:
    """One verdict from all primary metrics, and why."""
    words = {m.name: found[m.name]["verdict"] for m in plan.primary}
    for word in (verdict.REGRESSED, verdict.INCONCLUSIVE, verdict.IMPROVED):
        named = [name for name, said in words.items() if said == word]
        if named:
            why = found[named[0]]["why"]
            return word, f"{', '.join(named)}: {why}" if why else ""
    return verdict.EQUIVALENT, ""


def judge_aa(plan: Plan, records: list[Record]) -> dict[str, Any]:
    """The result of the A/A run: do its sides agree, and is the noise small
    enough?"""
    counted = pairs(records, AA)
    name = plan.arms[0].name
    names = f"{name}, one", f"{name}, other"
    found = {m.name: _metric(names, m, counted, Rule(
        m.log_margin(), AA_LEVEL, plan.alpha, plan.power))
        for m in plan.metrics}
    stopped = ""
    advice = 0
    for metric in plan.primary:
        d = differences(counted, metric)
        one = found[metric.name]
        if one["verdict"] in (verdict.IMPROVED, verdict.REGRESSED):
            stopped = (f"A/A: {metric.name} differs between two runs of the "
                       f"same arm, by {_shown_value(metric, one['effect'])}: "
                       "something other than the arms has an effect")
            break
        if len(d) < verdict.MIN_PAIRS:
            continue
        spread = statistics.stdev(d)
        width = stats.half_width(spread, plan.looks[-1], plan.alpha)
        one["half_width_expected"] = _number(metric.shown(metric.sign * width))
        if width > metric.log_margin():
            advice = max(advice, stats.pairs_needed(
                spread, metric.log_margin(), plan.alpha, plan.power))
            stopped = (f"A/A: {metric.name} is too noisy: {plan.looks[-1]} "
                       "pairs would measure it to within "
                       + _shown_value(metric, metric.shown(
                           metric.sign * width))
                       + ", and the effect of interest is "
                       f"{_shown_value(metric, metric.margin)}; {advice} "
                       "pairs would be enough")
    words = [found[m.name]["verdict"] for m in plan.primary]
    word = next((w for w in (verdict.REGRESSED, verdict.IMPROVED,
                             verdict.INCONCLUSIVE) if w in words),
                verdict.EQUIVALENT)
    return {"pairs": len(counted), "verdict": word, "stopped": stopped,
            "pairs_needed": advice, "metrics": found}


def _shown_value(metric: Metric, value: float | None) -> str:
    if value is None:
        return "without bound"
    return f"{value:.3g} %" if metric.scale == "log" \
        else f"{value:.3g} {metric.unit}"


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
                    rule = block["void"].split(":")[0]
                    of_arm = arms[block["arm"]]
                    of_arm[rule] = of_arm.get(rule, 0) + 1
                    total[block["arm"]] += phase == AB
                if not bad and not complete(blocks):
                    interrupted += 1
    one, other = total.values()
    p = stats.sample_ratio_p(one, one + other, 0.5) if one + other else 1.0
    return {"arms": arms, "interrupted_pairs": interrupted, "p": p,
            "uneven": p < VOID_LEVEL and plan.assign == BLOCK}


def looks_of(plan: Plan) -> list[tuple[int, float, float]]:
    """At each look: pairs, level of the test for a difference, level of each
    test for equivalence."""
    return list(zip(plan.looks,
                    stats.look_levels(plan.looks, plan.alpha),
                    stats.look_levels(plan.looks, plan.alpha, 1),
                    strict=True))


def result(plan: Plan, records: list[Record], only_aa: bool = False) \
        -> dict[str, Any]:
    """The result so far; "finished" is false while blocks are to come."""
    out: dict[str, Any] = {
        "format": "mssab-result", "version": 1, "title": plan.title,
        "question": plan.question, "expect": plan.expect,
        "arms": [arm.name for arm in plan.arms],
        "primary": [m.name for m in plan.primary],
        "guardrails": [m.name for m in plan.guardrails],
        "estimand": ESTIMANDS[plan.assign],
        "verdict": verdict.INCONCLUSIVE, "why": "", "keep": False,
        "finished": False, "only_aa": only_aa, "looks": [], "metrics": {},
        "notes": [],
        "void": voids(plan, records)}
    if plan.aa_pairs:
        aa = out["aa"] = judge_aa(plan, records)
        if aa["pairs"] < plan.aa_pairs and not out_of_attempts(
                plan, records, AA):
            out["why"] = "the A/A run is not finished"
            return out
        if aa["pairs"] < plan.aa_pairs:
            aa["stopped"] = f"A/A: a pair was void {plan.attempts} times"
        if only_aa or aa["stopped"]:
            out |= {"finished": True, "verdict": aa["verdict"] if only_aa
                    and not aa["stopped"] else verdict.INCONCLUSIVE,
                    "why": aa["stopped"]}
            return out
    counted = pairs(records, AB)
    for number, level, level_equivalent in looks_of(plan):
        if len(counted) < number:
            break
        found = judge_metrics(plan, counted[:number], level, level_equivalent)
        word, why = _headline(plan, found)
        out["looks"].append({"pairs": number, "level": level, "verdict": word})
        out |= {"metrics": found, "verdict": word, "why": why}
        if word != verdict.INCONCLUSIVE or number == plan.looks[-1]:
            out["finished"] = True
            break
    if not out["finished"] and out_of_attempts(plan, records, AB):
        out |= {"finished": True, "verdict": verdict.INCONCLUSIVE,
                "why": f"a pair was void {plan.attempts} times"}
        if not out["metrics"]:
            out["metrics"] = judge_metrics(plan, counted, plan.alpha / 100,
                                           plan.alpha / 100)
    if out["finished"]:
        if plan.assign == CONNECTION:
            _check_interference(plan, out, counted)
        _check_whole(plan, out)
    elif not out["why"]:
        out["why"] = f"{len(counted)} of {plan.looks[-1]} pairs are measured"
    return out


def _withhold(out: dict[str, Any], why: str) -> None:
    """Make the verdict inconclusive."""
    out["notes"].append(f"the verdict was {out['verdict']}, and is withheld")
    out |= {"verdict": verdict.INCONCLUSIVE, "why": why}


def _check_interference(plan: Plan, out: dict[str, Any],
                        counted: list[tuple[Record, ...]]) -> None:
    """Withhold the verdict if the split is not the requested one, or if
    connections gain at each other's expense."""
    ratio = interference.sample_ratio([b for pair in counted for b in pair])
    out["sample_ratio"] = ratio
    found = out["metrics"].get("goodput", {})
    if not counted or found.get("effect") is None:
        return
    rule = Rule(math.log1p(plan.effect_percent / 100), plan.alpha,
                plan.alpha, plan.power)
    out["interference"] = interference.across_shares(
        counted, rule, math.log1p(found["effect"] / 100)
        if out["verdict"] in (verdict.IMPROVED, verdict.REGRESSED) else 0)
    wrong = [one for one in ratio if one["p"] < stats.RATIO_P]
    why = ""
    if wrong:
        why = (f"{wrong[0]['treated']} of {wrong[0]['total']} connections had "
               f"the treatment where {wrong[0]['share']} % was requested: the "
               "split is wrong")
    elif out["verdict"] != verdict.INCONCLUSIVE:
        why = out["interference"]["refused"]
    if why:
        _withhold(out, why)


def out_of_attempts(plan: Plan, records: list[Record], phase: str) -> bool:
    """Was a pair void as often as the plan allows?"""
    return any(sum(any(b["void"] for b in blocks) for blocks in tries.values())
               >= plan.attempts and not any(map(complete, tries.values()))
               for tries in attempts(records, phase).values())


def _check_whole(plan: Plan, out: dict[str, Any]) -> None:
    """Uneven void blocks, guardrails and notes; whether to keep the
    treatment."""
    harmed = [m.name for m in plan.guardrails
              if out["metrics"].get(m.name, {}).get("verdict")
              == verdict.REGRESSED]
    if out["void"]["uneven"]:
        _withhold(out, "more blocks were void in one arm than in the other: "
                  "the arms differ in what can be measured at all")
    if harmed:
        out["notes"].append("guardrail regressed: " + ", ".join(harmed))
    for name, one in out["metrics"].items():
        exact = one["exact"] and name in out["primary"]
        if exact and not plan.nuisance:
            out["notes"].append(
                f"{name}: all pairs repeat exactly, with one nuisance seed: "
                "this is one measurement, repeated")
        elif exact:
            within = " to within the resolution of " \
                f"{plan.resolution_percent:g} %" \
                if plan.resolution_percent else ""
            out["notes"].append(f"{name}: all pairs repeat exactly{within}, "
                                "for every nuisance seed")
        if not one["bootstrap_agrees"]:
            out["notes"].append(f"{name}: the bootstrap disagrees with the "
                                "sign-flip interval; look at the samples")
    out["keep"] = out["verdict"] == verdict.IMPROVED and not harmed
