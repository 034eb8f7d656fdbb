# SPDX-License-Identifier: GPL-2.0-only
"""What the picture of README draws of the grid's table."""
import importlib.util
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
SPEC = importlib.util.spec_from_file_location(
    "goodput", TOP / "tests/bench/window/goodput.py")
GOODPUT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(GOODPUT)

TABLE = """\
Window grid on 6.1.0-56-amd64
words

base grid
---------

MTU    scaling  RTT  window    bytes  stock  treated  ceiling   ratio  verdict
9000   on         1     2.6    23265   89.1     96.7     92.8   1.086  reached
9000   on        10     2.6    20000   50.0    100.0     99.2   2.000  reached
9000   on        10     0.9     8000    5.0    100.0     99.7  20.000  reached
9000   on        10      20   178047   95.4     98.6     94.3   1.036  reached
9000   off       10     2.6    23265   86.3     99.7     99.2   1.155  reached

bbr
---

9000   on        10     2.6    23265   80.4     93.1     92.8   1.158  short
"""


def test_goodput_follows_from_utilisation_and_ratio():
    # 20,000 bytes per 10 ms are 16 Mbit/s; sorted, without large windows.
    small, large = GOODPUT.points(TABLE)
    assert (small.window, large.window) == (8000, 20000)
    assert large.treated == pytest.approx(16)
    assert large.stock == pytest.approx(8)
    assert small.stock == pytest.approx(0.32)


def test_the_committed_table_has_the_cells():
    text = (TOP / "Documentation/results/grid-6.1.txt").read_text()
    cells = GOODPUT.points(text)
    assert len(cells) == 9
    assert all(cell.stock <= cell.treated for cell in cells)
