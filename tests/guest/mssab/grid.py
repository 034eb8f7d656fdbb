# SPDX-License-Identifier: GPL-2.0-only
"""Judges cells of the window grid by what the module is to reach.

  grid.py RESULTS.json CELLS [SHORT LEAST]

CELLS: the names of the cells that RESULTS.json must have, one a line.  SHORT: one
of them that is known to use less of its window, but LEAST of it."""
import json
import sys

# Utilisation, in windows of two segments and more, and below.
WHOLE, BELOW = 0.95, 0.90
# Goodput of treated in that of stock.
WORST = 0.99


def good(cell):
    used = cell["arms"]["treated"].get("utilisation")
    print(f"utilisation {used}, ratio {cell['ratio']}")
    if cell["ratio"] < WORST:
        return False
    if cell["settings"]["request"]:
        return True  # its window is not meant to be full
    if cell["cell"] in sys.argv[3:4]:
        return used >= float(sys.argv[4])
    return used >= (WHOLE if cell["settings"]["window_segments"] >= 2
                    else BELOW)


with open(sys.argv[1], encoding="utf-8") as file:
    measured = {cell["cell"]: cell for cell in json.load(file)["cells"]}
with open(sys.argv[2], encoding="utf-8") as file:
    for name in file.read().splitlines():
        passed = name in measured and good(measured[name])
        print("ok" if passed else "not ok", name)
