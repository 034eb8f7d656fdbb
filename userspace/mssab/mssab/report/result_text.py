# SPDX-License-Identifier: GPL-2.0-only
"""The result of an experiment as text of 80 columns: headline, advice, table,
and the exit status that goes with it.

Pure.  The page of report.py uses the same sentences.
"""
from __future__ import annotations

import math
from typing import Any

from .. import verdict
from ..statistics import outcomes

Result = dict[str, Any]
#: The first words of the headline, for each decision.
DECISIONS = {
    verdict.KEEP: "KEEP", verdict.REJECT: "DO NOT KEEP",
    verdict.NO_GAIN: "NO GAIN", verdict.UNDECIDED: "UNDECIDED"}
#: Exit status of mssab run for each decision: 125 is "cannot tell".
STATUS = {verdict.KEEP: 0, verdict.NO_GAIN: 0, verdict.REJECT: 1,
          verdict.UNDECIDED: 125}


def number(value: float | None, unit: str = "") -> str:
    """Four digits; k, M and G for large numbers."""
    if value is None:
        return "-"
    size = abs(value)
    for factor, letter in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if size >= factor:
            return f"{value / (1e3 if letter == ' k' else factor):.4g}{letter}"
    return f"{value:.4g}"


def signed(value: float | None, digits: int = 1) -> str:
    """As in +1.2; more digits where those would all be 0."""
    if value is None:
        return "?"
    value += 0.0  # no -0.0
    if value and abs(value) < 10**-digits:
        digits = min(6, math.ceil(-math.log10(abs(value))) + 1)
    return f"{value:+.{digits}f}"


def unit_of(metric: dict[str, Any]) -> str:
    return "%" if metric["scale"] == "log" else str(metric["unit"])


def interval(metric: dict[str, Any]) -> str:
    if metric["low"] is None or metric["high"] is None:
        return "no claim"
    for digits in (1, 2, 3):  # as many as the ends need to differ
        ends = [signed(metric[end], digits) for end in ("low", "high")]
        if ends[0] != ends[1]:
            return " .. ".join(ends)
    return f"{signed(metric['low'])} .. {signed(metric['high'])}"


def percent_of(level: float) -> str:
    """The confidence level of an interval: 95, 99.86."""
    return f"{100 * (1 - level):.4g}"


def decision(result: Result) -> str:
    """The decision in words; of an A/A run, its verdict."""
    if result["only_aa"]:
        return "A/A: " + str(result["verdict"]).upper()
    return DECISIONS[result["decision"]]


def headline(result: Result) -> str:
    """One sentence: the decision, and what it rests on."""
    effects = []
    for name in result["primary"]:
        metric = result["metrics"].get(name)
        if metric and metric["effect"] is not None:
            effects.append(
                f"{name} {signed(metric['effect'])} {unit_of(metric)} "
                f"({percent_of(metric['level'])} % interval "
                f"{interval(metric)})")
    words = decision(result)
    if not result["only_aa"]:
        words += f": {result['verdict']}"
    return words + (": " + "; ".join(effects) if effects else "")


def unsafe(result: Result, word: str) -> list[str]:
    """Guardrails of that safety."""
    return [name for name in result["guardrails"]
            if result["metrics"].get(name, {}).get("safe") == word]


def advice(result: Result) -> str:
    """What to do with the treatment."""
    if result["only_aa"] and not result["why"]:
        return "The testbed shows no difference where there is none." \
            if result["verdict"] == "equivalent" else \
            "The testbed is noisy; see the pairs needed."
    if not result["finished"]:
        return "Not finished: --resume continues."
    harmed = unsafe(result, verdict.HARMED)
    if harmed:
        return ("Do not keep it: a guardrail regressed ("
                + ", ".join(harmed) + ").")
    unproven = unsafe(result, verdict.UNPROVEN)
    if result["verdict"] == verdict.IMPROVED and unproven:
        return ("It is not shown to be safe (" + ", ".join(unproven)
                + "): keep the control.")
    return {verdict.KEEP: "Keep it; confirm it in another session.",
            verdict.REJECT: "Do not keep it.",
            verdict.NO_GAIN: "It makes no difference that matters: keep the "
            "control.",
            verdict.UNDECIDED: "Nothing is shown: keep the control."}[
                result["decision"]]


def met(result: Result) -> bool:
    """Is the result the expected one?  An improvement that is not to be kept
    is none."""
    return bool(result["expect"] == result["verdict"]
                and (result["keep"] or result["verdict"] != verdict.IMPROVED))


def status(result: Result) -> int:
    """Exit status of mssab."""
    if result["only_aa"]:
        if result["why"]:
            differs = any(m["verdict"] in (verdict.IMPROVED, verdict.REGRESSED)
                          for m in result["aa"]["metrics"].values())
            return 1 if differs else 125
        return 0
    if result["expect"]:
        return 0 if met(result) else 1
    return STATUS[result["decision"]]


def judged(metric: dict[str, Any]) -> str:
    """The verdict on a primary metric; the safety of a guardrail."""
    return str(metric.get("safe", metric["verdict"]))


def table(result: Result) -> list[str]:
    """One row per metric, its units below."""
    one, other = result["arms"]
    lines = [f"{'metric':<12} {one[:12]:>12} {other[:12]:>12} {'effect':>9} "
             f"{'interval':>18}  verdict"]
    for name, metric in result["metrics"].items():
        sides = list(metric["arms"].values())
        means = [number(side.get("mean")) for side in sides]
        lines.append(f"{name:<12} {means[0]:>12} {means[1]:>12} "
                     f"{signed(metric['effect']):>9} "
                     f"{interval(metric):>18}  {judged(metric)}")
        percent = "%" if metric["scale"] == "log" else metric["unit"]
        lines.append(f"{'':<12} {metric['unit']:>12} {'':>12} {percent[:9]:>9}"
                     f" {percent[:18]:>18}")
    return lines


def void_line(result: Result) -> str:
    parts = []
    for arm, reasons in result["void"]["arms"].items():
        for reason, count in sorted(reasons.items()):
            parts.append(f"{arm} {count} ({reason})")
    text = "Void blocks: " + (", ".join(parts) or "none")
    if result["void"]["interrupted_pairs"]:
        text += "; pairs repeated after an interruption: " \
                f"{result['void']['interrupted_pairs']}"
    return text + "."


def failures_lines(result: Result) -> list[str]:
    """Failed blocks, and the failure rates that are still possible."""
    found = result["failures"]
    if not found["arms"][result["arms"][1]]["of"]:
        return []
    sentence = outcomes.failures_sentence(found)
    reasons = [f"{arm} {count} ({reason})" for arm, one in found["arms"].items()
               for reason, count in sorted(one["reasons"].items())]
    most = found["arms"][result["arms"][1]]["at_most_percent"]
    lines = ["Failed blocks: " + (", ".join(reasons) or "none")
             + f"; failure rates of {result['arms'][1]} up to {most:.0f} % "
             "are possible."]
    return [f"{sentence[0].upper()}{sentence[1:]}.", *lines] if sentence \
        else lines


def aa_line(result: Result) -> str:
    aa = result.get("aa")
    if not aa:
        return "A/A: omitted."
    shown = [f"{name} {interval(aa['metrics'][name])} "
             f"{unit_of(aa['metrics'][name])}" for name in result["primary"]]
    return f"A/A ({aa['pairs']} pairs): {aa['verdict']}; {', '.join(shown)}"


def interference_lines(result: Result) -> list[str]:
    """With arms per connection: the split, and interference."""
    lines = []
    for one in result.get("sample_ratio", ()):
        lines.append(f"Share {one['share']} %: {one['treated']} of "
                     f"{one['total']} connections with the treatment "
                     f"(p {one['p']:.2g}).")
    moved = result.get("interference")
    if moved:
        for name, words in (("effect", "The effect"),
                            ("stock", "Goodput of control connections")):
            one = moved[name]
            lines.append(f"{words} changes by {signed(one['shift'])} % "
                         f"({interval(one)}) from the smallest share to the "
                         "largest.")
    return lines


def summary(result: Result, kernel: str) -> str:
    """The whole text."""
    lines = [result["title"],
             f"kernel {kernel}, {' v '.join(result['arms'])}", "",
             headline(result)]
    if result["why"]:
        lines.append(result["why"][0].upper() + result["why"][1:] + ".")
    lines += [advice(result), ""]
    if result["metrics"]:
        pairs = [m["pairs"] for m in result["metrics"].values()]
        lines += [*table(result), "", f"Pairs: {pairs[0]}" + (
            f", for guardrails {pairs[-1]}." if pairs[-1] != pairs[0]
            else ".")]
    needed = max((m["pairs_needed"] for m in result["metrics"].values()),
                 default=0)
    if result["decision"] == verdict.UNDECIDED and needed:
        lines.append(f"Pairs needed for a verdict: about {needed}.")
    lines += [aa_line(result), *failures_lines(result), void_line(result),
              *interference_lines(result)]
    lines += [f"Note: {note}." for note in result["notes"]]
    if result["expect"] and result["finished"]:
        but = f"but it is {result['verdict']}"
        if result["expect"] == result["verdict"]:
            but = "but it is not to be kept"
        lines.append(f"Expected: {result['expect']}"
                     + ("." if met(result) else f", {but}."))
    return "\n".join(line for line in lines if line is not None) + "\n"
