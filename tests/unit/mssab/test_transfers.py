# SPDX-License-Identifier: GPL-2.0-only
"""From raw transfers to goodput and utilisation: of which window."""
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab.experiment import grid  # noqa: E402
from mssab.run import transfers  # noqa: E402

IDLE = {"counters": {}}


def cell(tmp_path, text):
    path = tmp_path / "e.toml"
    path.write_text('[arms]\nstock = {}\ntreated = {}\n[[cells]]\n'
                    'load = "tcpload"\n' + text)
    made, = grid.load(path).cells
    return made


def raw(rate, ssthresh, clamp=0):
    return IDLE | {"bytes_per_s": rate, "rcv_ssthresh": ssthresh,
                   "window_clamp": clamp}


def test_utilisation_is_of_the_controls_window(tmp_path):
    """The treatment lowered its window by a fifth, and fills the rest."""
    made = cell(tmp_path, "rtt_ms = 10")
    stock, treated = [raw(90e3, 1000)], [raw(80e3, 800)]
    window = transfers.mean_window(made, stock)
    assert window == 1000
    assert transfers.averages(made, stock, 0.01, window)["utilisation"] \
        == pytest.approx(0.9)
    found = transfers.averages(made, treated, 0.01, window)
    assert found["utilisation"] == pytest.approx(0.8)
    assert found["usable_window"] == 800
    # One arm alone has only its own.
    assert transfers.averages(made, treated, 0.01)["utilisation"] \
        == pytest.approx(1.0)


@pytest.mark.parametrize("text, ssthresh, clamp, window", [
    ("", 5000, 3000, 3000),
    ("", 5000, 0, 5000),
    ("", 0, 0, 0),
    ("", 70000, 80000, 70000),
    ("window_scaling = false", 70000, 80000, 65535),
])
def test_usable_window(tmp_path, text, ssthresh, clamp, window):
    made = cell(tmp_path, text)
    assert transfers.mean_window(made, [raw(1, ssthresh, clamp)]) == window


def test_a_window_not_known_in_one_run_is_not_known(tmp_path):
    made = cell(tmp_path, "")
    runs = [raw(1, 5000), raw(1, 0)]
    assert transfers.mean_window(made, runs) == 0
    assert "utilisation" not in transfers.averages(made, runs, 0.01)
    assert transfers.mean_window(made, [raw(1, 4000), raw(1, 5000)]) == 4500
    assert transfers.mean_window(made, []) == 0


def test_no_utilisation_without_a_round_trip(tmp_path):
    made = cell(tmp_path, "rtt_ms = 0\nwrite = 131072")
    assert "utilisation" not in transfers.averages(made, [raw(1, 5000)], 0)
