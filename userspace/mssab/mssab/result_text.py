# SPDX-License-Identifier: GPL-2.0-only
"""The result of an experiment as text of 80 columns: headline, advice, table.

Pure.  The page of report.py uses the same sentences.
"""
from __future__ import annotations

import math
from typing import Any

Result = dict[str, Any]


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


def headline(result: Result) -> str:
    """One sentence, the verdict first."""
    word = ("A/A: " if result["only_aa"] else "") \
        + str(result["verdict"]).upper()
    effects = []
    for name in result["primary"]:
        metric = result["metrics"].get(name)
        if metric and metric["effect"] is not None:
            effects.append(
                f"{name} {signed(metric['effect'])} {unit_of(metric)} "
                f"({percent_of(metric['level'])} % interval "
                f"{interval(metric)})")
    return word + (": " + "; ".join(effects) if effects else "")


def advice(result: Result) -> str:
    """What to do with the treatment."""
    if result["only_aa"] and not result["why"]:
        return "The testbed shows no difference where there is none." \
            if result["verdict"] == "equivalent" else \
            "The testbed is noisy; see the pairs needed."
    if not result["finished"]:
        return "Not finished: --resume continues."
    harmed = [name for name in result["guardrails"]
              if result["metrics"].get(name, {}).get("verdict") == "regressed"]
    if harmed:
        return ("Do not keep it: a guardrail regressed ("
                + ", ".join(harmed) + ").")
    if result["keep"]:
        return "Keep it; confirm it in another session."
    return {"improved": "", "regressed": "Do not keep it.",
            "equivalent": "It makes no difference that matters: keep the "
            "control.",
            "inconclusive": "Nothing is shown: keep the control."}[
                result["verdict"]]


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
                     f"{interval(metric):>18}  {metric['verdict']}")
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
        pairs = next(iter(result["metrics"].values()))["pairs"]
        lines += [*table(result), "", f"Pairs: {pairs}."]
    needed = max((m["pairs_needed"] for m in result["metrics"].values()),
                 default=0)
    if result["verdict"] == "inconclusive" and needed:
        lines.append(f"Pairs needed for a verdict: about {needed}.")
    lines += [aa_line(result), void_line(result), *interference_lines(result)]
    lines += [f"Note: {note}." for note in result["notes"]]
    if result["expect"] and result["finished"]:
        met = result["expect"] == result["verdict"]
        lines.append(f"Expected: {result['expect']}"
                     + ("." if met else f", but it is {result['verdict']}."))
    return "\n".join(line for line in lines if line is not None) + "\n"
