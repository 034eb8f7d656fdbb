# SPDX-License-Identifier: GPL-2.0-only
"""A grid file is checked whole before anything runs: what is refused, and the
names and windows of cells."""
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import cli, errors  # noqa: E402
from mssab.commands import grid as cmd_grid  # noqa: E402
from mssab.experiment import grid  # noqa: E402

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


@pytest.mark.parametrize("options, windows", [
    ([], [1.3, 2.6, 3.7, 4.6, 5.5]),
    (["--part", "1/2"], [1.3, 3.7, 5.5]),
    (["--part", "2/2"], [2.6, 4.6]),
    (["--part", "3/3"], [3.7]),
    (["--part", "6/6"], []),
    (["--only", "5|7", "--part", "2/2"], [5.5]),
])
def test_parts_share_the_cells(tmp_path, options, windows):
    path = tmp_path / "e.toml"
    load(tmp_path, "window_segments = [1.3, 2.6, 3.7, 4.6, 5.5]")
    args = cli.parser().parse_args(["run", str(path), *options])
    assert [c.window_segments for c in cmd_grid._chosen(
        grid.load(path), args.only, args.part)] == windows


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "1/0", "1/2/3",
                                  "1/10000", "a/b", ""])
def test_no_such_part(capsys, text):
    with pytest.raises(SystemExit) as stopped:
        cli.parser().parse_args(["run", "e.toml", "--part", text])
    assert stopped.value.code == 2
    assert "is not K/N" in capsys.readouterr().err


def test_what_ships_is_valid():
    for path in sorted([*(TOP / "experiments").glob("*.toml"),
                        *(TOP / "tests/bench/policies").glob("*.toml")]):
        if "[design]" not in path.read_text():  # see test_experiment.py
            assert grid.load(path).cells, path
