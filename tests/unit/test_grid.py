# SPDX-License-Identifier: GPL-2.0-only
"""A grid file is checked whole before anything runs: what is refused, and the
names and windows of cells."""
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import errors, grid  # noqa: E402

ARMS = "[arms]\nstock = {}\ntreated = { tx_frac = 64 }\n[[cells]]\n"


def load(tmp_path, cells):
    path = tmp_path / "e.toml"
    path.write_text(ARMS + 'load = "tcpload"\n' + cells)
    return grid.load(path).cells


@pytest.mark.parametrize("cells, sentence", [
    ("mtu = 65536", "only for loopback"),
    ('qdisc = "fq"\necn_mark_percent = 1', "choose one"),
    ('link = "loopback"\ncwnd_max = 4', "needs link = .veth. or .interfaces."),
    ('link = "loopback"\ngso = false', "needs link = .veth. or .interfaces."),
    ('load2 = "x"', "unknown key load2"),
    ("request = 0", "outside"),
    ("rtt_ms = 2\njitter_ms = 1.5", "half of rtt_ms"),
    ("pause_bytes = 9", "needs pause_ms"),
    ("pause_ms = 1\nrequest = 1", "bulk reader"),
])
def test_refused(tmp_path, cells, sentence):
    with pytest.raises(errors.UsageError, match=sentence):
        load(tmp_path, cells)


def test_a_window_that_cannot_be_advertised_is_left_out(tmp_path):
    cells = load(tmp_path, "mtu = 9000\nwindow_segments = [2.6, 9]\n"
                 "window_scaling = [true, false]")
    assert [c.name for c in cells] == [
        "mtu 9000 rtt 10 window 2.6 ws on", "mtu 9000 rtt 10 window 2.6 ws off",
        "mtu 9000 rtt 10 window 9 ws on"]
    assert cells[0].window == round(2.6 * 8948)


def test_rounds_are_round_trips(tmp_path):
    cell, = load(tmp_path, "rtt_ms = 10\nwarmup_rounds = 160\n"
                 "measure_rounds = 60")
    assert (cell.warmup, cell.measure) == (1600, 600)
    short, = load(tmp_path, "rtt_ms = 1\nwarmup_rounds = 160")
    assert short.warmup == 500  # a stall and a delayed ACK, twice


def test_what_ships_is_valid():
    for path in sorted([*(TOP / "experiments").glob("*.toml"),
                        *(TOP / "tests/bench/policies").glob("*.toml")]):
        if "[design]" not in path.read_text():  # see test_experiment.py
            assert grid.load(path).cells, path
