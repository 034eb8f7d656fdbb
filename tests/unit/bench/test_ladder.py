# SPDX-License-Identifier: GPL-2.0-only
"""The ladder's table: sums of the profiles it was given, changes from one
kernel to the next, and the figures behind a step.  The profile is kept."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name)
                for name in ("lib", "")]

from kept_profile import Kept  # noqa: E402

TOP = Path(__file__).resolve().parents[3]
LADDER = TOP / "tests/bench/ladder/table.py"


def profile(factor=1, load=1000):
    """The kept profile; what the stage estab took times a factor."""
    kept = Kept()
    kept.slower("estab", factor)
    kept.profile["load"] = {"ns": load * 500, "packets": 500, "bytes": 1}
    return kept.profile


def work(made):
    return (sum(path["work_ns"] for path in made["paths"])
            / sum(path["packets"] for path in made["paths"]))


@pytest.fixture(name="ladder")
def make_ladder(tmp_path):
    def put(release, workload, made):
        folder = tmp_path / "in" / release
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{workload}.json").write_text(json.dumps(made))

    def run():
        done = subprocess.run(
            ["/usr/bin/python3", "-B", LADDER, tmp_path / "in",
             tmp_path / "out"],
            cwd=TOP, capture_output=True, text=True, check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"})
        return done, tmp_path / "out"
    return put, run


def test_rows_are_kernels_and_changes_are_from_the_row_above(ladder):
    put, run = ladder
    old, new = profile(), profile(30, load=1100)
    put("6.9.1-amd64", "bulk", old)
    put("6.12.3-amd64", "bulk", new)
    done, out = run()
    assert done.returncode == 0, done.stderr
    lines = (out / "ladder.txt").read_text().splitlines()
    rows = [line.split() for line in lines if line.startswith("6.")]
    assert [row[0] for row in rows[:4]] == ["6.9.1-amd64", "6.12.3-amd64"] * 2
    assert rows[0][1] == "1,000" and rows[1][1:3] == ["1,100", "+10.0"]
    change = 100 * (work(new) / work(old) - 1)
    assert rows[2][1] == f"{work(old):,.0f}"
    assert rows[3][1:3] == [f"{work(new):,.0f}", f"{change:+.1f}"]
    steps = [line for line in lines if "->" in line]
    assert steps[0].startswith("6.9.1-amd64 -> 6.12.3-amd64, bulk:")
    assert any(line.split()[0] == "rx.at.estab" for line in steps[1:])
    kept = json.loads((out / "ladder.json").read_text())
    stages = kept["kernels"]["6.9.1-amd64"]["bulk"]["stages"]
    assert sum(stages.values()) == pytest.approx(work(old), rel=0.001)
    assert (out / "ladder.png").stat().st_size > 1000


def test_what_did_not_move_is_no_step(ladder):
    put, run = ladder
    put("6.1.0-9-amd64", "ping-pong", profile())
    put("6.1.0-10-amd64", "ping-pong", profile())
    done, out = run()
    assert done.returncode == 0, done.stderr
    text = (out / "ladder.txt").read_text()
    assert text.rstrip().endswith("none")
    assert text.index("6.1.0-9-") < text.index("6.1.0-10-")


def test_a_load_that_waits_has_no_unprofiled_cost(ladder):
    put, run = ladder
    for release in "6.1.0-9-amd64", "6.12.3-amd64":
        put(release, "loss", profile())
    done, out = run()
    assert done.returncode == 0, done.stderr
    unprofiled = (out / "ladder.txt").read_text().split("Profiled:")[0]
    assert "1,000" not in unprofiled


def test_one_kernel_is_no_ladder(ladder):
    put, run = ladder
    put("6.1.0-9-amd64", "bulk", profile())
    done, _ = run()
    assert done.returncode == 1
    assert "fewer than two kernels" in done.stderr
