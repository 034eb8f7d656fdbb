# SPDX-License-Identifier: GPL-2.0-only
"""The heat map of table.py beside it: utilisation of every cell of the base
grid, stock beside treated, one panel per RTT.  It draws what table.py judged.
"""
from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import matplotlib
matplotlib.use("agg")
from matplotlib import patches  # noqa: E402
from matplotlib import pyplot as plt  # noqa: E402

# Distinguishable with any colour vision, and in grey.
COLOURS = matplotlib.colormaps["cividis"]
ALARM = "#c1121f"
INK, SOFT, FAINT = "#1b1b1b", "#666666", "#c9c9c9"

#: Inches; a column is 45 pixels in a picture 1200 pixels wide.
COLUMN, LINE, GROUP_GAP = 0.45, 0.27, 0.07
LEFT, RIGHT, BETWEEN = 1.25, 0.15, 0.2
TOP, PANEL_GAP, BOTTOM = 1.12, 0.62, 0.78
DPI = 160


def places(rows: list[Any]) -> dict[tuple[Any, bool], float]:
    """(path, scaling) -> top edge in inches; paths keep a distance."""
    y, out, last = 0.0, {}, None
    for path, off in sorted({(row.path, not row.scaling) for row in rows}):
        y += GROUP_GAP if last not in (None, path) else 0
        out[path, not off] = y
        y, last = y + LINE, path
    return out


def number(value: float) -> str:
    """Percent, rounded down: a cell below 95 must not read 95."""
    value = math.floor(value * 1000 + 1e-6) / 10
    return f"{value:.1f}" if value < 10 else f"{math.floor(value)}"


def ink(value: float) -> str:
    """Readable on the colour of that value."""
    red, green, blue, _ = COLOURS(min(value, 1.0))
    return INK if 0.3 * red + 0.59 * green + 0.11 * blue > 0.45 else "white"


def box(axes: Any, x: float, y: float, inset: float, **style: Any) -> None:
    axes.add_patch(patches.Rectangle(
        (x + inset, y + inset), COLUMN - 2 * inset, LINE - 2 * inset,
        **{"fill": False, "linewidth": 0, **style}))


def mark_of(verdict: str) -> str:
    """The frame of a cell that missed; "": none."""
    if verdict in ("", "reached", "short", "unknown"):
        return verdict.replace("reached", "")
    return "ceiling"


def flags(axes: Any, x: float, y: float, mark: str, worse: bool) -> None:
    """How the cell was judged, if it missed."""
    if mark == "short":
        box(axes, x, y, 0.022, edgecolor=ALARM, linewidth=1.6)
    elif mark == "unknown":
        box(axes, x, y, 0.022, edgecolor=INK, linewidth=0.9)
    elif mark == "ceiling":
        box(axes, x, y, 0.022, edgecolor=INK, linewidth=0.9,
            linestyle=(0, (2, 2)))
    if worse:
        tip = 0.12
        axes.add_patch(patches.Polygon(
            [(x + 0.012, y + LINE - 0.012), (x + tip, y + LINE - 0.012),
             (x + 0.012, y + LINE - tip)], color=ALARM, linewidth=0,
            zorder=3))


def panel(axes: Any, rows: list[Any], arm: str, at: dict[Any, float],
          windows: list[float], impossible: set[Any]) -> None:
    """One arm at one RTT."""
    found = {(row.path, row.scaling, row.segments): row for row in rows}
    for (path, scaling), y in at.items():
        for i, window in enumerate(windows):
            x = i * COLUMN
            row = found.get((path, scaling, window))
            if row is None:
                hatch = (path, scaling, window) in impossible
                box(axes, x, y, 0.01, hatch="/////" if hatch else None,
                    edgecolor=FAINT, linewidth=0 if hatch else 0.6)
                continue
            used = getattr(row, arm)
            box(axes, x, y, 0.01, fill=True, facecolor=COLOURS(min(used, 1.0)))
            axes.text(x + COLUMN / 2, y + LINE / 2, number(used), ha="center",
                      va="center_baseline", fontsize=8.5, color=ink(used))
            if arm == "treated":
                flags(axes, x, y, mark_of(row.verdict), row.worse)
    high = max(at.values()) + LINE
    axes.set_xlim(0, len(windows) * COLUMN)
    axes.set_ylim(high, 0)
    axes.set_axis_off()
    for i, window in enumerate(windows):
        axes.text((i + 0.5) * COLUMN, high + 0.05, f"{window:g}", ha="center",
                  va="top", fontsize=8.5, color=SOFT)


def row_names(axes: Any, at: dict[Any, float]) -> None:
    paths: dict[Any, list[float]] = {}
    for (path, scaling), y in at.items():
        axes.text(-0.08, y + LINE / 2, "on" if scaling else "off",
                  ha="right", va="center_baseline", fontsize=8.5, color=SOFT)
        paths.setdefault(path, []).append(y + LINE / 2)
    for (loopback, mtu), middles in paths.items():
        axes.text(-0.42, sum(middles) / len(middles),
                  "loopback" if loopback else str(mtu), ha="right",
                  va="center_baseline", fontsize=9.5, color=INK)


def legend(figure: Any, wide: float, high: float, marks: set[str]) -> None:
    """Colours, and the marks that occur, along the lower edge."""
    bar = figure.add_axes((LEFT / wide, 0.40 / high, 2.2 / wide, 0.13 / high))
    figure.colorbar(matplotlib.cm.ScalarMappable(
        matplotlib.colors.Normalize(0, 100), COLOURS), cax=bar,
        orientation="horizontal", ticks=[0, 25, 50, 75, 100])
    bar.tick_params(labelsize=8.5, colors=SOFT, length=2, width=0.6)
    bar.set_xlabel("% of the usable window in a round trip", fontsize=8.5,
                   color=SOFT, labelpad=1)
    bar.spines[:].set_visible(False)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, wide), ylim=(high, 0))
    axes.set_axis_off()
    # The third: inches the words take.
    entries = [("misses: more is possible", "short", 1.58),
               ("misses: at its ceiling", "ceiling", 1.36),
               ("misses: ceiling unknown", "unknown", 1.5),
               ("slower than stock", "slower", 1.18),
               ("no such window", "none", 1.1)]
    begin, y = LEFT + 2.2 + 0.4, high - 0.60
    x = begin
    for words, mark, width in entries:
        if mark not in marks:
            continue
        if x + COLUMN + 0.06 + width > wide:
            x, y = begin, y + 0.30
        box(axes, x, y, 0.01, fill=mark != "none",
            hatch="/////" if mark == "none" else None, edgecolor=FAINT,
            facecolor=COLOURS(0.8))
        flags(axes, x, y, mark, mark == "slower")
        axes.text(x + COLUMN + 0.06, y + LINE / 2, words, fontsize=8.5,
                  va="center_baseline", color=SOFT)
        x += COLUMN + 0.06 + width


def draw(stem: Path, kernel: str, rows: list[Any]) -> None:
    """STEM.png."""
    plt.rcParams.update({"font.family": ["DejaVu Sans"],
                         "hatch.color": FAINT, "hatch.linewidth": 0.8})
    at = places(rows)
    windows = sorted({row.segments for row in rows})
    delays = sorted({row.rtt_ms for row in rows})
    # Without scaling the header field cannot hold these windows.
    impossible = {(row.path, False, row.segments) for row in rows
                  if row.segments * (min(row.mtu, 65535) - 52) > 65535}
    across = len(windows) * COLUMN
    tall = max(at.values()) + LINE
    wide = LEFT + 2 * across + BETWEEN + RIGHT
    high = TOP + len(delays) * (tall + PANEL_GAP) - PANEL_GAP + 0.35 + BOTTOM
    figure = plt.figure(figsize=(wide, high), facecolor="white")

    def say(x: float, y: float, words: str, **style: Any) -> None:
        figure.text(x / wide, 1 - y / high, words, **style)

    say(LEFT, 0.32, "Window utilisation, whole and fractional segments",
        fontsize=15, color=INK, va="center")
    say(LEFT, 0.62, "goodput × RTT / stock's usable window, %   ·   "
        f"{kernel}   ·   "
        "rows: MTU and window scaling, columns: window in segments",
        fontsize=9.5, color=SOFT, va="center")
    for i, delay in enumerate(delays):
        top = TOP + i * (tall + PANEL_GAP)
        for j, arm in enumerate(("stock", "treated")):
            x = LEFT + j * (across + BETWEEN)
            axes = figure.add_axes((x / wide, 1 - (top + tall) / high,
                                    across / wide, tall / high))
            panel(axes, [row for row in rows if row.rtt_ms == delay], arm,
                  at, windows, impossible)
            if j == 0:
                row_names(axes, at)
            say(x, top - 0.06, f"RTT {delay:g} ms, {arm}", fontsize=11,
                color=INK, va="bottom")
    marks = {mark_of(row.verdict) for row in rows}
    if any(row.worse for row in rows):
        marks.add("slower")
    if impossible:
        marks.add("none")
    legend(figure, wide, high, marks)
    # No version: the same results give the same file.
    figure.savefig(f"{stem}.png", dpi=DPI, metadata={"Software": None})
    plt.close(figure)
