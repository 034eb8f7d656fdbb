# SPDX-License-Identifier: GPL-2.0-only
"""From the recorded blocks to the result of the experiment.

Pure, and a function of the records alone: the same blocks give the same result,
however often mssab was killed in between.
"""
from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import Any

from .. import verdict
from ..experiment.experiment import BLOCK, CONNECTION, Plan
from ..experiment.metrics import Metric
from ..verdict import Rule
from . import carryover, interference, outcomes, stats
from .outcomes import AA, AB, Record
from .stats import Finding

VERSION = 2     # of the result's format
#: An A/A run without a difference reports one in this share of cases.
AA_LEVEL = 0.01
ESTIMANDS = {
    BLOCK: "total effect: the whole path changes its arm from block to block",
    CONNECTION: "effect on one connection among others of either arm"}


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
        "p_equivalent": found.p_equivalent, "p_harm": found.p_harm,
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
    found = stats.finding(differences(counted, metric), rule)
    return {"unit": metric.unit, "better": metric.better,
            "scale": metric.scale, "margin": metric.margin,
            **_shown(metric, found),
            "arms": {name: _summary(values)
                     for name, values in
                     zip(names, sides(counted, metric.name), strict=True)}}


@dataclass(frozen=True)
class Look:
    """Pairs; the level of the test for a difference, of each test for
    equivalence, and of the test that a guardrail is not worse."""

    pairs: int
    level: float
    level_equivalent: float
    level_guardrail: float


def looks_of(plan: Plan) -> list[Look]:
    """The planned looks.  Guardrails have a budget of their own.  It is spent
    evenly, because the primary metrics decide at which look the experiment
    ends: a guardrail with the whole level at that look would pass too often
    where their noise is correlated."""
    return [Look(*row) for row in zip(
        plan.looks, stats.look_levels(plan.looks, plan.alpha),
        stats.look_levels(plan.looks, plan.alpha, 1),
        stats.look_levels(plan.looks, plan.alpha, 1, early=True),
        strict=True)]


def judge_metrics(plan: Plan, counted: list[tuple[Record, ...]],
                  look: Look) -> dict[str, dict[str, Any]]:
    """Every metric at one look; Holm over the primary ones.  Each guardrail is
    tested at the guardrails' level, since all of them must pass."""
    held = [look.level] * len(plan.primary)
    if len(plan.primary) > 1 and len(counted) >= verdict.MIN_PAIRS:
        p = [float(stats.p_two_sided(stats.subset_means(
            differences(counted, metric)))) for metric in plan.primary]
        held = stats.holm_levels(p, look.level)
    names = plan.arms[0].name, plan.arms[1].name
    found = {metric.name: _metric(names, metric, counted, Rule(
        metric.log_margin(), level, look.level_equivalent, plan.power))
        for metric, level in zip(plan.primary, held, strict=True)}
    level = look.level_guardrail
    for metric in plan.guardrails:
        # The lower end of this interval is that of the one-sided test.
        one = _metric(names, metric, counted, Rule(
            metric.log_margin(), 2 * level, level, plan.power))
        found[metric.name] = one | {"safe": verdict.safety(
            one["verdict"], one["p_harm"], level)}
    return found


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
    counted = outcomes.pairs(records, AA)
    name = plan.arms[0].name
    names = f"{name}, one", f"{name}, other"
    found = {m.name: _metric(names, m, counted, Rule(
        m.log_margin(), AA_LEVEL, plan.alpha, plan.power))
        for m in plan.metrics}
    stopped = accepted = ""
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
            reach = _shown_value(metric, metric.shown(metric.sign * width))
            noisy = (f"A/A: {metric.name} is too noisy: {plan.looks[-1]} "
                     f"pairs would measure it to within {reach}, and the "
                     "effect of interest is "
                     f"{_shown_value(metric, metric.margin)}; {advice} pairs "
                     "would be enough")
            if plan.accept_noise:
                accepted = noisy
            else:
                stopped = f"{noisy}, or accept_noise in [design] goes on"
    words = [found[m.name]["verdict"] for m in plan.primary]
    word = next((w for w in (verdict.REGRESSED, verdict.IMPROVED,
                             verdict.INCONCLUSIVE) if w in words),
                verdict.EQUIVALENT)
    return {"pairs": len(counted), "verdict": word, "stopped": stopped,
            "accepted": accepted, "pairs_needed": advice, "metrics": found}


def _shown_value(metric: Metric, value: float | None) -> str:
    if value is None:
        return "without bound"
    return f"{value:.3g} %" if metric.scale == "log" \
        else f"{value:.3g} {metric.unit}"


def result(plan: Plan, records: list[Record], only_aa: bool = False) \
        -> dict[str, Any]:
    """The result so far; "finished" is false while blocks are to come."""
    out: dict[str, Any] = {
        "format": "mssab-result", "version": VERSION, "title": plan.title,
        "question": plan.question, "expect": plan.expect,
        "arms": [arm.name for arm in plan.arms],
        "primary": [m.name for m in plan.primary],
        "guardrails": [m.name for m in plan.guardrails],
        "estimand": ESTIMANDS[plan.assign],
        "verdict": verdict.INCONCLUSIVE, "why": "",
        "decision": verdict.UNDECIDED, "keep": False,
        "finished": False, "only_aa": only_aa, "looks": [], "metrics": {},
        "notes": [], "carry_over": {},
        "void": outcomes.voids(plan, records),
        "failures": outcomes.failures(plan, records)}
    if plan.aa_pairs:
        aa = out["aa"] = judge_aa(plan, records)
        ended = outcomes.out_of_attempts(plan, records, AA)
        if aa["pairs"] < plan.aa_pairs and not ended:
            out["why"] = "the A/A run is not finished"
            return out
        if aa["pairs"] < plan.aa_pairs:
            aa["stopped"] = "A/A: a pair was void or had a failed block " \
                f"{plan.attempts} times"
        if only_aa or aa["stopped"]:
            out |= {"finished": True, "verdict": aa["verdict"] if only_aa
                    and not aa["stopped"] else verdict.INCONCLUSIVE,
                    "why": aa["stopped"]}
            return out
        if aa["accepted"]:
            out["notes"].append(aa["accepted"]
                                + "; accept_noise lets it go on")
    counted = outcomes.pairs(records, AB)
    _take_looks(plan, out, records, counted)
    if not out["finished"] and outcomes.out_of_attempts(plan, records, AB):
        word, why = _with_failures(
            verdict.INCONCLUSIVE, "a pair was void or had a failed block "
            f"{plan.attempts} times", out["failures"])
        out |= {"finished": True, "verdict": word, "why": why}
        if not out["metrics"]:
            none = plan.alpha / 100
            out["metrics"] = judge_metrics(
                plan, counted, Look(len(counted), none, none, none))
    if out["finished"]:
        if plan.assign == CONNECTION:
            _check_interference(plan, out, counted)
        else:
            _check_carry_over(plan, out, counted)
        _check_whole(plan, out)
    elif not out["why"]:
        out["why"] = f"{len(counted)} of {plan.looks[-1]} pairs are measured"
    return out


def _take_looks(plan: Plan, out: dict[str, Any], records: list[Record],
                counted: list[tuple[Record, ...]]) -> None:
    """Look after look, to the first that settles the decision.  Once the
    primary metrics have a verdict it stands; further looks are for
    guardrails that are not shown to be safe yet."""
    decided: tuple[str, str] | None = None
    for look in looks_of(plan):
        if len(counted) < look.pairs:
            break
        found = judge_metrics(plan, counted[:look.pairs], look)
        if decided:
            found |= {m.name: out["metrics"][m.name] for m in plan.primary}
        else:
            word, why = _headline(plan, found)
            decided = (word, why) if word != verdict.INCONCLUSIVE else None
        word, why = _with_failures(*(decided or (word, why)), outcomes.failures(
            plan, records, look.pairs))
        out["looks"].append({
            "pairs": look.pairs, "level": look.level,
            "level_guardrail": look.level_guardrail, "verdict": word})
        out |= {"metrics": found, "verdict": word, "why": why,
                "decision": _decision(plan, found, word)}
        settled = word != verdict.INCONCLUSIVE \
            and out["decision"] != verdict.UNDECIDED
        if settled or look.pairs == plan.looks[-1]:
            out["finished"] = True
            break


def _with_failures(word: str, why: str,
                   failures: dict[str, Any]) -> tuple[str, str]:
    """The verdict if failed blocks count.  The metrics come from pairs in
    which both arms worked, so they are silent about an arm that fails."""
    sentence = outcomes.failures_sentence(failures)
    if failures["harm"]:
        return verdict.REGRESSED, sentence
    if failures["more"] and word in (verdict.IMPROVED, verdict.EQUIVALENT):
        return verdict.INCONCLUSIVE, (
            f"{sentence}: where both worked the verdict would be {word}, but "
            "the treatment is not shown to work as reliably")
    return word, why


def _decision(plan: Plan, found: dict[str, dict[str, Any]],
              word: str) -> str:
    safe = [found[m.name]["safe"] for m in plan.guardrails]
    return verdict.decision(word, verdict.HARMED in safe,
                            verdict.UNPROVEN in safe)


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


def _check_carry_over(plan: Plan, out: dict[str, Any],
                      counted: list[tuple[Record, ...]]) -> None:
    """Withhold the verdict if the treatment changes the block after it."""
    for metric in plan.metrics:
        one = out["carry_over"][metric.name] = carryover.diagnose(
            metric, counted, differences(counted, metric))
        bias = _shown_value(metric, one["bias"])
        if one["found"]:
            _withhold(out, f"carry-over: the arm of the previous block changes "
                      f"{metric.name}, and adds {bias} to the effect; give "
                      "wash_out_s in [design], or reset what lasts")
        elif one["order"]["p"] <= carryover.LEVEL:
            out["notes"].append(
                f"{metric.name}: the effect depends on which arm runs first; "
                "the balanced order removes that from the estimate")


def _check_whole(plan: Plan, out: dict[str, Any]) -> None:
    """Uneven void blocks, guardrails and notes; the decision."""
    if out["void"]["uneven"]:
        _withhold(out, "more blocks were void in one arm than in the other: "
                  "the arms differ in what can be measured at all")
    for metric in plan.guardrails:
        safe = out["metrics"][metric.name]["safe"]
        if safe != verdict.SAFE:
            out["notes"].append(
                f"guardrail regressed: {metric.name}"
                if safe == verdict.HARMED else
                f"guardrail not shown to be safe: {metric.name} could be worse "
                f"by {_shown_value(metric, metric.margin)} or more")
    if sentence := outcomes.failures_sentence(out["failures"]):
        out["notes"].append(sentence)
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
    out["decision"] = _decision(plan, out["metrics"], out["verdict"])
    out["keep"] = out["decision"] == verdict.KEEP
