#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Draw goodput against the usable window, stock and fractional, from a table of
the window grid: the picture of README.  Reads results, measures nothing.

usage: tests/bench/window/goodput.py [GRID.txt [STEM]]
"""
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

RESULTS = Path(__file__).resolve().parents[3] / "Documentation/results"
MTU = "9000"
MSS = 8948          # bytes; MTU less 40 of headers and 12 of timestamps
RTT_MS = 10
LARGEST = 50000     # bytes; larger windows are nearly full in both arms


class Point(NamedTuple):
    window: float   # bytes
    stock: float    # Mbit/s
    treated: float


def points(text: str) -> list[Point]:
    """The cells of the base grid with that MTU and RTT, scaling on."""
    found = []
    base = text.split("base grid\n", 1)[1].split("\n\n\n")[0]
    for line in base.splitlines():
        cells = line.split()
        if cells[:3] != [MTU, "on", str(RTT_MS)]:
            if found and not line:
                break
            continue
        window, treated, ratio = (float(cells[i]) for i in (4, 6, 8))
        # utilisation = goodput x RTT / window; ratio is that of goodputs.
        goodput = treated / 100 * window * 8 / (RTT_MS * 1000)
        found.append(Point(window, goodput / ratio, goodput))
    return sorted(point for point in found if point.window <= LARGEST)


def draw(stem: Path, kernel: str, cells: list[Point]) -> None:
    pyplot.rcParams.update({"svg.hashsalt": "goodput", "font.size": 10,
                            "svg.fonttype": "none"})
    figure, axes = pyplot.subplots(figsize=(7.2, 3.6))
    windows = [cell.window / 1000 for cell in cells]
    edge = LARGEST / 1000
    axes.plot([0, edge], [0, edge * 8 / RTT_MS], color="0.75", lw=6,
              solid_capstyle="butt", label="what the window allows")
    axes.plot(windows, [cell.treated for cell in cells], "o-",
              color="#1a7f37", label="fractional segments (tx_frac, rx_frac)")
    axes.plot(windows, [cell.stock for cell in cells], "s-",
              color="#cf222e", label="stock: full-sized segments")
    for count in range(1, int(LARGEST / MSS) + 1):
        axes.axvline(count * MSS / 1000, color="0.85", lw=0.8, zorder=0)
    axes.annotate("below one segment stock Linux\nsends one window per 200 ms",
                  (windows[1], cells[1].stock), (13, 2.2), fontsize=9,
                  va="center", bbox={"color": "white", "pad": 1},
                  arrowprops={"arrowstyle": "->", "color": "0.3"})
    axes.set(xlim=(0, edge), ylim=(0, edge * 8 / RTT_MS + 1),
             xlabel="usable window, kB (vertical lines: multiples of the MSS, "
             f"{MSS} bytes)", ylabel="goodput, Mbit/s")
    axes.set_title(f"Linux {kernel}, MTU {MTU}, RTT {RTT_MS} ms, one connection",
                   fontsize=10)
    axes.legend(loc="upper left", frameon=False, fontsize=9)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    figure.savefig(f"{stem}.svg", facecolor="white",
                   metadata={"Date": None, "Creator": None})


def main() -> int:
    if len(sys.argv) > 3 or sys.argv[1:2] == ["-h"]:
        print(__doc__.split("usage: ")[1], end="", file=sys.stderr)
        return 2
    table = Path(sys.argv[1] if sys.argv[1:] else RESULTS / "grid-6.1.txt")
    stem = Path(sys.argv[2] if sys.argv[2:] else RESULTS / "goodput-window")
    text = table.read_text()
    kernel = text.split(maxsplit=4)[3]
    cells = points(text)
    if not cells:
        print(f"goodput.py: {table}: no cell of MTU {MTU}, RTT {RTT_MS} ms",
              file=sys.stderr)
        return 1
    draw(stem, kernel, cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
