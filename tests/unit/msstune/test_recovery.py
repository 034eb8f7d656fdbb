# SPDX-License-Identifier: GPL-2.0-only
"""Recovery from one loss: table 1 of the paper row by row, CUBIC against a
simulation of its growth, and refused arguments."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune import units  # noqa: E402
from msstune.causes import recovery  # noqa: E402


def call(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True,
                          check=False)


@pytest.mark.parametrize("row", recovery.TABLE_1)
def test_table_1(row):
    _, rate, rtt, mss, printed = row
    reno = recovery.reno(recovery.window(rate, rtt, mss), rtt)
    assert units.duration(reno.seconds) == printed.replace("hr", "h").replace(
        "1 h42", "1 h 42")


def test_table_1_as_in_the_paper():
    assert [row[1:] for row in recovery.TABLE_1] == [
        (10e9, .001, 1460, "428 ms"), (10e9, .120, 1460, "1 hr 42 min"),
        (10e9, .120, 8960, "17 min"), (10e9, .180, 1460, "3 hr 51 min"),
        (10e9, .180, 8960, "38 min")]
    assert [round(recovery.window(*row[1:4])) for row in recovery.TABLE_1] == [
        856, 102740, 16741, 154110, 25112]


@pytest.mark.parametrize("row", recovery.TABLE_1)
def test_cubic_agrees_with_its_simulation(row):
    """RFC 9438 round trip by round trip: the larger of curve and estimate."""
    _, rate, rtt, mss, _ = row
    full = recovery.window(rate, rtt, mss)
    curve_k = (full * 0.3 / 0.4) ** (1 / 3)
    estimate = full * 0.7
    rounds = 0
    while max(0.4 * (rounds * rtt - curve_k) ** 3 + full, estimate) < full:
        rounds += 1
        estimate += 3 * 0.3 / 1.7
    told = recovery.cubic(full, rtt).seconds
    assert abs(told - rounds * rtt) <= 1.01 * rtt


def test_only_the_lan_is_reno_friendly():
    sources = [recovery.cubic(recovery.window(*row[1:4]), row[2]).source
               for row in recovery.TABLE_1]
    assert ["4.3" in s for s in sources] == [True] + [False] * 4


def test_bbr_reports_when_v3_would_reduce():
    assert "v3 would" in recovery.bbr(49, .01).how
    assert "v3 would" not in recovery.bbr(51, .01).how
    assert recovery.bbr(100, .18).seconds == .18


def test_command():
    done = call("recovery", "--rate", "10gbit", "--rtt", "180ms", "--mss",
                "8960", "--json")
    answer, = json.loads(done.stdout)["paths"]
    assert [round(r["seconds"], 1) for r in answer["recovery"]] == [
        2260.0, 26.6, 0.2]
    only = call("recovery", "--rate", "10G", "--rtt", "1ms", "--mss", "1460",
                "--cc", "reno").stdout
    assert "428 ms" in only and "cubic" not in only
    for _, _, _, _, printed in recovery.TABLE_1:
        assert printed.replace("hr", "h") in call("recovery", "--table").stdout


@pytest.mark.parametrize("arguments, sentence", [
    ((), "needs --rate, --rtt and --mss, or --table"),
    (("--table", "--mss", "1460"), "has its own"),
    (("--rate", "10G", "--rtt", "120", "--mss", "1460"), "with its unit"),
    (("--rate", "-1", "--rtt", "1ms", "--mss", "1460"), "a rate"),
    (("--rate", "0", "--rtt", "1ms", "--mss", "1460"), "a rate"),
    (("--rate", "1e999", "--rtt", "1ms", "--mss", "1460"), "a rate"),
    (("--rate", "1.2.3", "--rtt", "1ms", "--mss", "1460"), "a rate"),
    (("--rate", "1G", "--rtt", "1ms", "--mss", "0"), "1..65535"),
    (("--rate", "1G", "--rtt", "1ms", "--mss", "9", "--cc", "x"), "choice"),
])
def test_refused(arguments, sentence):
    done = call("recovery", *arguments)
    assert done.returncode == 2
    assert sentence in done.stderr and "Traceback" not in done.stderr
