#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Plot a payload sweep: goodput against the size of one write, stock and
treated, one panel for each delay and window.

usage: plot.py OUT RESULTS.json... (writes OUT.png)
"""
import json
import sys
from pathlib import Path

import matplotlib
matplotlib.use("agg")
from matplotlib import pyplot as plt  # noqa: E402

# Shape and line differ too, for greyscale and for colour-blind readers.
STYLE = {"stock": {"color": "#d55e00", "marker": "o", "linestyle": "--"},
         "treated": {"color": "#0072b2", "marker": "s", "linestyle": "-"}}
DIP = (7436, 8948)  # bytes; as in figure 3 of the paper


def panels(documents):
    """(rtt_ms, rcvbuf_max) -> arm -> [(write, Mbit/s, window)], sorted."""
    found = {}
    for document in documents:
        for cell in document["cells"]:
            settings = cell["settings"]
            key = settings["rtt_ms"], settings["rcvbuf_max"]
            for arm, figures in cell["arms"].items():
                runs = figures["runs"]
                window = sum(run["rcv_ssthresh"] for run in runs) / len(runs)
                found.setdefault(key, {}).setdefault(arm, []).append(
                    (settings["write"], figures["bytes_per_s"] * 8e-6, window))
    return {key: {arm: sorted(points) for arm, points in arms.items()}
            for key, arms in sorted(found.items(),
                                    key=lambda kv: (-kv[0][0], kv[0][1]))}


def draw(axes, key, arms):
    rtt, _ = key
    for arm, points in arms.items():
        writes, rates, windows = zip(*points)
        axes.plot(writes, rates, label=arm, markersize=4, linewidth=1.2,
                  **STYLE[arm])
        if arm == "stock":
            # The window varies with the size of the first segments.
            usual = sorted(windows)[len(windows) // 2]
    axes.axvspan(*DIP, color="0.88", zorder=0)
    if rtt:
        writes, _, windows = zip(*arms["stock"])
        axes.plot(writes, [w * 8e-3 / rtt for w in windows], color="0.3",
                  linewidth=0.9, linestyle=":", label="window / RTT")
    axes.set_title(f"{f'RTT {rtt:g} ms' if rtt else 'no delay'}, window "
                   f"{usual / 1000:.1f} kB = {usual / 8948:.2f} segments",
                   fontsize=9)
    axes.set_xlim(0, 16800)
    axes.set_ylim(0, 1.2 * axes.get_ylim()[1])
    axes.set_xticks(range(0, 16385, 4096))
    axes.grid(color="0.92", linewidth=0.6)
    axes.tick_params(labelsize=8)


def main():
    out = sys.argv[1]
    documents = [json.loads(Path(name).read_text()) for name in sys.argv[2:]]
    found = panels(documents)
    rows = (len(found) + 1) // 2
    figure, grid = plt.subplots(rows, 2, figsize=(9, 2.7 * rows),
                                squeeze=False)
    for axes, (key, arms) in zip(grid.flat, found.items()):
        draw(axes, key, arms)
    for axes in grid[-1]:
        axes.set_xlabel("bytes a write (payload)", fontsize=9)
    for axes in grid[:, 0]:
        axes.set_ylabel("goodput, Mbit/s", fontsize=9)
    grid.flat[0].legend(fontsize=8, loc="lower right")
    figure.suptitle(f"Payload sweep, MTU 9000, Linux {documents[0]['kernel']}"
                    " (grey: the dip of SC2003's figure 3)", fontsize=10)
    figure.tight_layout()
    figure.savefig(f"{out}.png", dpi=110,
                   metadata={"Software": None})


if __name__ == "__main__":
    main()
