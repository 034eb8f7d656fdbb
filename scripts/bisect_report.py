# SPDX-License-Identifier: GPL-2.0-only
"""Text of a comparison for scripts/bisect-step: one sentence with the change
that matters most, and a table of the metrics that moved.  Pure; the comparison
is that of `pathprof check --json`."""
import math

SHOWN = 5   # functions, or metrics, in a sentence


def number(value, like=None):
    """Four digits or all before the point, no exponent; as many decimals as a
    value @like has."""
    size = abs(value if like is None else like)
    decimals = max(0, 3 - math.floor(math.log10(size))) if size else 0
    return f"{value:,.{min(decimals, 8)}f}"


def signed(value, like):
    text = number(abs(value), like)
    return ("-" if value < 0 else "+") + text


def improved(figure):
    return (figure["moved"] and not figure["worse"]
            and figure["kind"] == "cost" and figure["change"] < 0)


def rank(figure):
    """Which metric explains the others: a stage, then a share, then the data of
    the whole load, then kinds of packets; in each the largest change."""
    name = figure["name"]
    if ".at." in name:
        return 0, -abs(figure["new"] - figure["base"])
    if figure["kind"] == "share":
        return 1, -abs(figure["change"])
    group = {"load.packets": 2, "load.byte": 3, "load.time": 4}.get(name, 5)
    return group, -abs(figure["change"])


def describe(figure):
    """The change of one metric in words."""
    name, base, new = figure["name"], figure["base"], figure["new"]
    if figure["kind"] == "share":
        return (f"{name.removesuffix('.share')} packets: {100 * new:.2f} % "
                f"instead of {100 * base:.2f} %")
    values = f"({number(base)} to {number(new, base)})"
    delta = signed(new - base, base)
    if ".at." in name:
        direction, stage = name.split(".at.")
        return (f"{direction} packets: {delta} instructions in stage {stage} "
                f"{values}")
    percent = f"{100 * figure['change']:+.2f} %"
    if name == "load.packets":
        return f"{percent} packets for the same bytes {values}"
    if name == "load.byte":
        return f"{percent} instructions per byte of the load {values}"
    if name == "load.time":
        return f"{delta} instructions per packet of the load {values}"
    kind, _, what = name.rpartition(".")
    per = "byte" if what == "byte" else "packet"
    return f"{kind} packets: {delta} instructions per {per} {values}"


def some(names):
    text = ", ".join(names[:SHOWN])
    more = len(names) - SHOWN
    return text + (f" and {more} more" if more > 0 else "")


def headline(figures, changed=()):
    """One sentence for the metrics of interest; @changed: names of changed
    functions that the workload runs."""
    if not figures:
        return "no metric outside its bound"
    first = min(figures, key=rank)
    text = describe(first)
    if changed:
        text += f"; changed functions that run: {some(list(changed))}"
    return text


def folded(figures):
    """(rows to show, names of those that only contain them): where a stage of
    a direction moved, the kinds of packets of that direction moved with it."""
    moved = {f["name"].split(".")[0] for f in figures if ".at." in f["name"]}
    rows, nested = [], []
    for figure in sorted(figures, key=rank):
        name = figure["name"]
        if name.split(".")[0] in moved and figure["kind"] == "cost" \
                and ".at." not in name:
            nested.append(name)
        else:
            rows.append(figure)
    return rows, nested


def table(figures):
    """The metrics that moved, in lines."""
    figures = [f for f in figures if f["moved"]]
    rows, nested = folded(figures)
    if not rows:
        return []
    lines = [f"{'':<6} {'METRIC':<22} {'BASE':>10} {'NEW':>10} {'CHANGE':>9} "
             f"{'%':>8} {'BOUND':>6}"]
    for f in rows:
        word = ("worse" if f["worse"] else
                "better" if improved(f) else "moved")
        if f["kind"] == "share":
            values = [f"{100 * f['base']:.2f} %", f"{100 * f['new']:.2f} %",
                      f"{100 * f['change']:+.2f}", ""]
        else:
            values = [number(f["base"]), number(f["new"], f["base"]),
                      signed(f["new"] - f["base"], f["base"]),
                      f"{100 * f['change']:+.2f}"]
        base, new, delta, percent = values
        lines.append(f"{word:<6} {f['name']:<22} {base:>10} {new:>10} "
                     f"{delta:>9} {percent:>8} {100 * f['bound']:6.2f}")
    if nested:
        lines.append(f"These contain such a stage, and moved with it: "
                     f"{', '.join(nested)}")
    return lines
