#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judge the cells of a window grid that mssab measured, and write the result: a
heat map, a table, and the counts at the end of a page.  It measures nothing.
Documentation/results/grid.rst defines the words.

usage: tests/bench/window/table.py [-o DIR] RESULTS.json...
"""
from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parents[3] / "Documentation/results"
#: The page from here on is generated.
MARK = ".. The remainder is written by tests/bench/window/table.py.\n"

#: Utilisation to reach with windows of two segments and more, and below.
TARGET, TARGET_BELOW_TWO = 0.95, 0.90
NEVER_WORSE = 0.99      # treated / stock
NEAR_CEILING = 0.98     # of the ceiling: as good as it gets
HEADERS = {False: 52, True: 72}  # bytes of IPv4 and IPv6, timestamps in use

REACHED, PROCESSOR, CWND, SHORT, UNKNOWN = VERDICTS = (
    "reached", "processor-bound", "cwnd-bound", "short", "unknown")

#: Setting of a cell -> its value in the base grid, and the words for another.
FACTORS = {
    "nagle": (True, "Nagle off"),
    "congestion_control": ("", "{}"),
    "ecn_mark_percent": (0.0, "{:g} % marked"),
    "write": (65536, "write {}"),
    "gso": (True, "GSO off"),
    "gro": (True, "GRO off"),
    "qdisc": ("", "{}"),
    "cwnd_max": (0, "cwnd {}"),
    "ipv6": (False, "IPv6"),
    "seed": (0, "seed {}"),
    "request": (0, "request {}"),
}
BASE = "base grid"


@dataclass(frozen=True)
class Row:
    """One judged cell."""

    name: str
    factor: str             # what differs from the base grid; BASE: nothing
    link: str               # veth or loopback
    mtu: int
    rtt_ms: float           # as set
    scaling: bool
    segments: float         # window; 0: not set
    window: float           # usable by stock, bytes; 0: not known
    stock: float | None     # utilisation; None: the window is not the limit
    treated: float | None
    ratio: float
    ceiling: float | None   # utilisation; None: not known
    verdict: str            # of VERDICTS; "": there is nothing to reach
    acted: bool             # a policy changed a size or a window

    @property
    def worse(self) -> bool:
        return self.ratio < NEVER_WORSE and self.acted

    @property
    def chance(self) -> bool:
        """Less, though all sizes and windows were the kernel's own."""
        return self.ratio < NEVER_WORSE and not self.acted

    @property
    def listed(self) -> bool:
        """Worth a look: a ceiling does not explain it."""
        return self.verdict in (SHORT, UNKNOWN) or self.worse or self.chance

    @property
    def path(self) -> tuple[bool, int]:
        return self.link == "loopback", self.mtu

    @property
    def order(self) -> tuple[Any, ...]:
        return self.path, self.rtt_ms, not self.scaling, self.segments


# --- Judging: pure ----------------------------------------------------------

def factor(settings: dict[str, Any]) -> str:
    """What differs from the base grid, in words."""
    known = dict(FACTORS)
    words = []
    if not settings["window_segments"]:
        # Such cells choose the write size to be no limit.
        del known["write"]
        words.append("no window set")
    for key, (usual, word) in known.items():
        value = settings.get(key, usual)
        if value != usual:
            words.append(word.format(value))
    return ", ".join(words) or BASE


def seconds_per_byte(cells: list[dict[str, Any]]) -> dict[
        tuple[str, int], float]:
    """(link, MTU) -> what a byte costs the processor: bulk without a delay
    and without a window, the faster arm."""
    costs: dict[tuple[str, int], float] = {}
    for cell in cells:
        is_ = cell["settings"]
        if is_["rtt_ms"] or factor(is_) != "no window set" or any(
                is_.get(key) for key in ("rcvbuf_max", "rcvbuf_after_accept")):
            continue
        best = max(arm["bytes_per_s"] for arm in cell["arms"].values())
        costs[is_["link"], is_["mtu"]] = 1 / best
    return costs


def ceiling(settings: dict[str, Any], rtt: float, window: float,
            cost: float | None) -> tuple[float | None, str]:
    """The utilisation that is possible, and what is in the way.  A window
    takes the round trip and the time to process it: W / (RTT + W c); a
    locked congestion window is all that may be in flight of it."""
    segment = min(settings["mtu"], 65535) - HEADERS[settings.get("ipv6", False)]
    flight = min(window, (settings.get("cwnd_max") or 2**30) * segment)
    if cost is None and flight == window:
        return None, UNKNOWN
    most = flight / window * rtt / (rtt + flight * (cost or 0))
    return most, CWND if flight < window else PROCESSOR


def judge(cell: dict[str, Any], costs: dict[tuple[str, int], float]) -> Row:
    settings = cell["settings"]
    stock, treated = list(cell["arms"].values())[:2]
    used, segments = treated.get("utilisation"), settings["window_segments"]
    window = stock.get("usable_window", 0)
    most, verdict = None, ""
    if not segments or settings.get("request") or used is None:
        stock = {}
        used = None
    else:
        most, bound = ceiling(settings, cell["rtt"], window, costs.get(
            (settings["link"], settings["mtu"])))
        if used >= (TARGET if segments >= 2 else TARGET_BELOW_TWO):
            verdict = REACHED
        elif most is None or used >= NEAR_CEILING * most:
            verdict = bound
        else:
            verdict = SHORT
    return Row(cell["cell"], factor(settings), settings["link"],
               settings["mtu"], settings["rtt_ms"],
               settings["window_scaling"], segments, window,
               stock.get("utilisation"), used, cell["ratio"], most, verdict,
               treated["acted"])


def rows_of(cells: list[dict[str, Any]]) -> dict[str, list[Row]]:
    """Factor -> its rows, the base grid first, then as measured."""
    costs = seconds_per_byte(cells)
    groups: dict[str, list[Row]] = {BASE: []}
    for cell in cells:
        row = judge(cell, costs)
        groups.setdefault(row.factor, []).append(row)
    return {name: sorted(rows, key=lambda row: row.order)
            for name, rows in groups.items() if rows}


# --- Text: pure -------------------------------------------------------------

def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value * 100:.{digits}f}"


# Between the columns of a page, whose lines are short.
PAGE_GAP = " "


def table(head: list[str], lines: list[list[str]], left: int = 1,
          gap: str = "  ") -> str:
    """A table of reStructuredText; the first @left columns and the last are
    words, the others numbers."""
    wide = [max(map(len, column)) for column in zip(head, *lines)]
    border = gap.join("=" * width for width in wide)

    def line(cells: list[str]) -> str:
        return gap.join(
            text.ljust(width) if i < left or i == len(wide) - 1
            else text.rjust(width)
            for i, (text, width) in enumerate(zip(cells, wide))).rstrip()
    return "\n".join([border, line(head), border, *map(line, lines), border])


def cell_line(row: Row) -> list[str]:
    words = [row.verdict] * bool(row.verdict) + ["slower"] * row.worse + \
        ["chance"] * row.chance
    ratio = f"{row.ratio:.3f}" if row.ratio < 100 else f"{row.ratio:.0f}"
    return ["lo" if row.link == "loopback" else str(row.mtu),
            "on" if row.scaling else "off", f"{row.rtt_ms:g}",
            f"{row.segments:g}" if row.segments else "-",
            f"{row.window:.0f}" if row.window else "-", percent(row.stock),
            percent(row.treated), percent(row.ceiling), ratio,
            ", ".join(words) or "-"]


CELL_HEAD = ["MTU", "scaling", "RTT", "window", "bytes", "stock", "treated",
             "ceiling", "ratio", "verdict"]


def cell_table(rows: list[Row], gap: str = "  ") -> str:
    return table(CELL_HEAD, [cell_line(row) for row in rows], left=2, gap=gap)


def counts(groups: dict[str, list[Row]]) -> str:
    """A line for each factor: how many cells, and how they were judged."""
    every = [row for rows in groups.values() for row in rows]
    # A verdict that no cell has needs no column.
    shown = [word for word in VERDICTS
             if word in (REACHED, SHORT) or any(row.verdict == word
                                                for row in every)]
    short = {PROCESSOR: "proc.", CWND: "cwnd"}
    lines = []
    for name, rows in [*groups.items(), ("all", every)]:
        judged = [row for row in rows if row.verdict]
        middle = [statistics.median([getattr(row, arm) for row in judged])
                  if judged else None for arm in ("stock", "treated")]
        lines.append([name, str(len(rows)),
                      *(percent(value, 0) for value in middle),
                      *(str(sum(row.verdict == word for row in judged))
                        for word in shown),
                      f"{min(row.ratio for row in rows):.3f}",
                      str(sum(row.worse for row in rows)),
                      str(sum(row.chance for row in rows))])
    return table(["factor", "cells", "stock", "treated",
                  *(short.get(word, word) for word in shown), "least",
                  "slower", "chance"], lines, gap=PAGE_GAP)


def series(kernel: str) -> str:
    """6.12 of 6.12.117+deb12-amd64."""
    found = re.match(r"\d+\.\d+", kernel)
    return found[0] if found else kernel


def heading(text: str, line: str) -> str:
    return f"{text}\n{line * len(text)}\n"


def text_table(kernel: str, groups: dict[str, list[Row]]) -> str:
    parts = [f"Window grid on {kernel}\n"
             "RTT: ms, as set; window: segments; stock, treated, ceiling: "
             "utilisation, %;\nratio: goodput, treated / stock.\n"]
    parts += [f"{heading(name, '-')}\n{cell_table(rows)}\n"
              for name, rows in groups.items()]
    return "\n".join(parts)


# Longer tables are left to the text file: the page holds those of all kernels.
MOST_LISTED = 24


def page_part(kernel: str, groups: dict[str, list[Row]]) -> str:
    """The page's part for one kernel."""
    name = f"grid-{series(kernel)}"
    out = [heading(kernel, "="),
           f".. image:: {name}.png\n   :alt: heat map of utilisation\n",
           f"All cells: *{name}.txt*.  Medians of utilisation in %; least: "
           "the smallest\nratio.\n",
           counts(groups) + "\n"]
    listed = {name: [row for row in rows if row.listed]
              for name, rows in groups.items()}
    out += [heading("Cells to look at", "-"),
            "Short, of an unknown ceiling, slower, or less by chance.\n"]
    if not any(listed.values()):
        out.append("None.\n")
    for factor_name, rows in listed.items():
        title = f"{factor_name[0].upper()}{factor_name[1:]}"
        if len(rows) > MOST_LISTED:
            out.append(f"{title}: {len(rows)} cells, in *{name}.txt*.\n")
        elif rows:
            out += [f"{title}:\n", cell_table(rows, PAGE_GAP) + "\n"]
    return "\n".join(out)


# --- Files ------------------------------------------------------------------

def load(paths: list[Path]) -> dict[str, list[dict[str, Any]]]:
    """Kernel -> cells; files of one kernel are parts of one grid."""
    kernels: dict[str, dict[str, Any]] = {}
    arms: dict[str, Any] = {}
    for path in paths:
        try:
            document = json.loads(path.read_text())
        except OSError as error:
            sys.exit(f"bench-window: {path}: {error.strerror}; name a file "
                     "that mssab run --json wrote")
        except ValueError as error:
            sys.exit(f"bench-window: {path}: not JSON: {error}")
        if document.get("format") != "mssab-results" \
                or document.get("version") != 2:
            sys.exit(f"bench-window: {path}: not a results file of this "
                     "mssab run, version 2")
        kernel = document["kernel"]
        if arms.setdefault(kernel, document["arms"]) != document["arms"]:
            sys.exit(f"bench-window: {path}: the arms are not those of the "
                     "files before it")
        cells = kernels.setdefault(kernel, {})
        for cell in document["cells"]:
            if cell["cell"] in cells:
                sys.exit(f"bench-window: {path}: cell {cell['cell']} is in an "
                         "earlier file too")
            cells[cell["cell"]] = cell
    return {kernel: list(cells.values()) for kernel, cells in kernels.items()
            if cells}


def write_page(page: Path, parts: list[str]) -> None:
    """Keep the page's own text, replace everything after the mark."""
    text = page.read_text() if page.exists() else ""
    own = text.partition(MARK)[0] if MARK in text else text + "\n" * bool(text)
    page.write_text(own + MARK + "\n" + "\n".join(parts))


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests/bench/window/table.py",
        description="Judge a window grid; heat maps, tables and counts.")
    parser.add_argument("-o", "--output", type=Path, default=OUT,
                        metavar="DIR",
                        help="where to; Documentation/results")
    parser.add_argument("results", type=Path, nargs="+",
                        metavar="RESULTS.json", help="of mssab run --json")
    args = parser.parse_args()
    kernels = load(args.results)
    if not kernels:
        sys.exit("bench-window: the results hold no cell")
    # Only drawing needs the packages of scripts/setup plot.
    sys.dont_write_bytecode = True
    import plot
    args.output.mkdir(parents=True, exist_ok=True)
    parts = []
    for kernel, cells in sorted(kernels.items(), key=lambda item: [
            int(number) for number in series(item[0]).split(".")]):
        groups = rows_of(cells)
        stem = args.output / f"grid-{series(kernel)}"
        Path(f"{stem}.txt").write_text(text_table(kernel, groups))
        if BASE in groups:
            plot.draw(stem, kernel, groups[BASE])
        parts.append(page_part(kernel, groups))
        print(f"{kernel}\n{counts(groups)}\n")
    write_page(args.output / "grid.rst", parts)
    print(f"written: {args.output}/grid.rst, grid-*.txt, .png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
