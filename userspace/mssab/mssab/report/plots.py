# SPDX-License-Identifier: GPL-2.0-only
"""The plots of the report, as SVG for an HTML page.  Pure: the same numbers
give the same text."""
from __future__ import annotations

import io
import math
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402

#: Colours of the verdicts, each of which is also written out.
COLOURS = {"improved": "#1a7f37", "regressed": "#c0362c",
           "equivalent": "#4a6fa5", "inconclusive": "#8a6d1a"}
#: Colours of the arms, distinct for colour-blind readers (Okabe and Ito).
ARMS = ("#555555", "#0072b2")
STYLE = {"svg.hashsalt": "mssab", "svg.fonttype": "none", "font.size": 9,
         "font.family": "sans-serif", "axes.spines.top": False,
         "axes.spines.right": False, "axes.grid": True,
         "grid.color": "#e4e4e4", "axes.axisbelow": True,
         "axes.edgecolor": "#888888"}


def _svg(figure: Any, title: str) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight",
                   metadata={"Date": None, "Creator": None, "Title": title})
    plt.close(figure)
    text = out.getvalue()
    return text[text.index("<svg"):]


def _prefix(values: list[float]) -> tuple[float, str]:
    """One factor for an axis: 1e6, "M"."""
    size = max((abs(v) for v in values), default=0)
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= factor * 10 or (size >= factor and factor >= 1e6):
            return factor, letter
    return 1.0, ""


def effects(result: dict[str, Any]) -> str:
    """One row per metric: estimate, interval, and the margin as a band."""
    rows = [(name, m) for name, m in result["metrics"].items()
            if m["effect"] is not None]
    drawn = []
    for scale, title in (("log", "effect, %"), ("linear", "effect, own unit")):
        some = [(n, m) for n, m in rows if m["scale"] == scale]
        if some:
            drawn.append((title, some))
    if not drawn:
        return ""
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            len(drawn), 1, squeeze=False,
            figsize=(7.4, 0.75 * len(rows) + 0.75 * len(drawn)),
            gridspec_kw={"height_ratios": [len(s) + 0.6 for _, s in drawn],
                         "hspace": 0.9})
        for ax, (title, some) in zip(axes[:, 0], drawn, strict=True):
            for y, (_, metric) in enumerate(reversed(some)):
                _effect(ax, y, metric)
            ax.axvline(0, color="#333333", lw=1)
            ax.set_yticks(range(len(some)), [
                f"{n} ({m['unit']})" if m["scale"] == "linear" else n
                for n, m in reversed(some)])
            ax.set_ylim(-0.6, len(some) - 0.4)
            ax.set_xlabel(title)
            ax.grid(axis="y", visible=False)
        return _svg(figure, "Effects with intervals")


def _effect(ax: Any, y: float, metric: dict[str, Any]) -> None:
    colour = COLOURS[metric["verdict"]]
    margin = metric["margin"]
    low_margin = -margin if metric["scale"] == "linear" \
        else 100 * (1 / (1 + margin / 100) - 1)
    ax.barh(y, margin - low_margin, left=low_margin, height=0.62,
            color="#eef1f5", zorder=0)
    low, high = metric["low"], metric["high"]
    if low is not None and high is not None:
        ax.plot([low, high], [y, y], color=colour, lw=3,
                solid_capstyle="butt")
        ax.plot([low, low, high, high],
                [y - .12, y + .12, y + .12, y - .12], "none")
        for end in (low, high):
            ax.plot([end, end], [y - .14, y + .14], color=colour, lw=1.5)
    ax.plot([metric["effect"]], [y], "o", color=colour, ms=7)
    ax.annotate(f"{metric['verdict']}", (metric["effect"], y), xytext=(0, 9),
                textcoords="offset points", color=colour, fontsize=8,
                ha="center")


def series(name: str, unit: str, blocks: list[dict[str, Any]],
           arms: list[str]) -> str:
    """Every block in the order measured, void blocks marked."""
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7.4, 2.2))
        values = [b["values"][name] for b in blocks if b["values"]]
        factor, letter = _prefix(values)
        at = {id(b): i + 1 for i, b in enumerate(blocks)}
        last = [at[id(b)] for b in blocks if b["phase"] == "aa"]
        if last and len(last) < len(blocks):
            ax.axvline(last[-1] + .5, color="#999999", lw=1, ls=":")
            ax.text(last[-1] + .2, 0.9, "A/A", ha="right",
                    transform=ax.get_xaxis_transform(), color="#777777")
        for side, arm in enumerate(arms):
            some = [b for b in blocks if b["values"] and b["arm"] == arm]
            ax.plot([at[id(b)] for b in some],
                    [b["values"][name] / factor for b in some], "os"[side],
                    color=ARMS[side], ms=4, label=arm)
        void = [at[id(b)] for b in blocks if b["void"]]
        if void:
            ax.plot(void, [0.02] * len(void), "x", color="#c0362c", ms=5,
                    transform=ax.get_xaxis_transform(), label="void")
        failed = [at[id(b)] for b in blocks if not (b["values"] or b["void"])]
        if failed:
            ax.plot(failed, [0.06] * len(failed), "v", color="#c0362c", ms=5,
                    transform=ax.get_xaxis_transform(), label="failed")
        ax.set_xlabel("block, in the order measured")
        ax.set_ylabel(f"{name}, {letter}{unit}")
        _room(ax, [v / factor for v in values])
        ax.legend(frameon=False, ncol=3, loc="lower left",
                  bbox_to_anchor=(0, 1), borderpad=0)
        return _svg(figure, f"{name} over time")


def distributions(name: str, unit: str, sides: list[list[float]],
                  arms: list[str]) -> str:
    """Every block of each arm, the arm's median, and a line per pair."""
    with plt.rc_context(STYLE):
        figure, ax = plt.subplots(figsize=(7.4, 1.7))
        factor, letter = _prefix(sides[0] + sides[1])
        for pair in zip(*sides, strict=True):
            ax.plot([v / factor for v in pair], [1, 0], color="#cccccc",
                    lw=0.7, zorder=1)
        for side, values in enumerate(sides):
            ax.plot([v / factor for v in values], [1 - side] * len(values),
                    "os"[side], color=ARMS[side], ms=5, alpha=0.55, zorder=2)
            median = sorted(values)[len(values) // 2] / factor
            ax.plot([median] * 2, [1 - side - .22, 1 - side + .22],
                    color=ARMS[side], lw=2, zorder=3)
        ax.set_yticks([1, 0], arms)
        ax.set_ylim(-.5, 1.5)
        ax.set_xlabel(f"{name}, {letter}{unit}")
        return _svg(figure, f"{name} by arm")


def _room(ax: Any, values: list[float]) -> None:
    """Make the axis span at least 10 % of the level, so that noise does not
    look like an effect."""
    if not values:
        return
    low, high = min(values), max(values)
    if low == high == 0:
        ax.set_ylim(-0.5, 0.5)
        return
    least = 0.1 * max(abs(low), abs(high), 1e-12)
    if high - low < least and math.isfinite(high):
        centre = (low + high) / 2
        ax.set_ylim(centre - least / 2, centre + least / 2)
