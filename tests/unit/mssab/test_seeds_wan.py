# SPDX-License-Identifier: GPL-2.0-only
"""The wide-area rows of Documentation/results/seeds-arithmetic.rst: the buffers
that `msstune plan` proposes on the papers' paths, and what a loss costs there."""
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
PAGE = (TOP / "Documentation/results/seeds-arithmetic.rst").read_text()
sys.path.insert(0, str(TOP / "userspace/msstune"))
sys.path.insert(0, str(TOP / "tests/unit/lib"))

from msstune import units  # noqa: E402
from msstune.causes import plan_values, recovery  # noqa: E402
from msstune_facts import RECEIVER, facts  # noqa: E402

GB = 2**30

#: Path, bit/s, RTT in us, RAM of the paper's host, the product of both in bytes,
#: the buffer that the paper sets, and the one proposed.  SDSC/GIAC: findings and
#: tables 15 to 26; SC2003: section 4.
PATHS = [
    ("Los Angeles", 10e9, 4_040, 16 * GB, 5_050_000, 134_217_728, 2**24),
    ("Houston", 10e9, 36_100, 16 * GB, 45_125_000, 134_217_728, 2**27),
    ("Washington", 10e9, 72_900, 16 * GB, 91_125_000, 134_217_728, 2**28),
    ("Chicago", 1e9, 62_700, 16 * GB, 7_837_500, 33_554_432, 2**24),
    ("New York", 1e9, 80_300, 16 * GB, 10_037_500, 33_554_432, 2**25),
    ("Geneva, OC-48", 2.5e9, 180_000, 2 * GB, 56_250_000, 128_388_607, 2**26),
    ("Geneva, 16 GB", 2.5e9, 180_000, 16 * GB, 56_250_000, 128_388_607, 2**27),
    ("Geneva, 10G", 10e9, 180_000, 16 * GB, 225_000_000, 128_388_607, 2**29),
]


def section(title):
    """The rows of the table below @title: lists of cells."""
    lines = PAGE[PAGE.index(f"\n{title}\n---"):].splitlines()
    borders = [n for n, line in enumerate(lines) if line.startswith("===")]
    starts = [n for n, c in enumerate(lines[borders[0]])
              if c == "=" and (n == 0 or lines[borders[0]][n - 1] == " ")]
    ends = [*(start - 1 for start in starts[1:]), None]
    return [[line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
            for line in lines[borders[1] + 1:borders[2]]]


def proposal(tmp_path, rate, rtt, memory):
    """The third value of tcp_rmem, and its calculation, as `msstune plan` prints
    them for a receiver whose window is the limit."""
    flow = RECEIVER | {"rcv_ssthresh": 131072, "rcvbuf": 6 << 20,
                       "rcv_rtt": rtt, "rtt": rtt, "min_rtt": rtt,
                       "d_bytes_received": 131072 * 2 * 1_000_000 // rtt}
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(facts(flow, memory=memory, missing=[]) | {
        "format": "msstune-facts", "version": 1, "congestion_controls": "cubic",
        "placement": {"steering": {}}}))
    done = subprocess.run(
        [TOOL, "plan", "--facts", path, "--rate", f"{rate:.0f}", "--json"],
        capture_output=True, text=True, check=True)
    found, = [p for p in json.loads(done.stdout)["settings"]
              if p["setting"] == "sysctl:net.ipv4.tcp_rmem"]
    low, _, high = found["new"].split()
    assert low == "4096"
    return int(high), found["figure"]


@pytest.mark.parametrize("row", PATHS, ids=lambda row: row[0])
def test_buffer(tmp_path, row):
    _, rate, rtt, memory, product, _, wanted = row
    size, figure = proposal(tmp_path, rate, rtt, memory)
    assert size == wanted
    assert f"= {product} B" in figure
    assert ("limited to 1/32 of RAM" in figure) == (size < 2 * product)
    assert rate * rtt / 8e6 == product


@pytest.mark.parametrize("name, rtt", [
    ("4ms", 4.04), ("36ms", 36.1), ("73ms", 72.9), ("180ms", 180)])
def test_experiments_have_these_buffers(name, rtt):
    """At a hundredth of 10 Gbit/s."""
    text = (TOP / f"experiments/wan-{name}.toml").read_text()
    wan = tomllib.loads(text)
    assert (wan["cell"]["rtt_ms"], wan["cell"]["rate_mbit"]) == (rtt, 100)
    assert wan["arms"]["default"] == {"rcvbuf_max": 174_760}
    size, _ = plan_values.buffer_for(100e6 / 8 * rtt / 1e3, facts())
    assert wan["arms"]["tuned"] == {"rcvbuf_max": size}
    # Only at 4 ms does the default hold the product.
    assert (wan["expect"] == "equivalent") == (100e6 / 8 * rtt / 1e3 < 174_760 / 2)


def test_the_table_of_buffers():
    rows = section("Buffers")
    assert [row[0] for row in rows] == [path[0] for path in PATHS]
    for row, path in zip(rows, PATHS, strict=True):
        _, rate, rtt, _, product, paper, wanted = path
        assert row[1:3] == [f"{rate / 1e9:g} Gbit/s", f"{rtt / 1000:g} ms"]
        assert row[3:6] == [f"{n:,}" for n in (product, paper, wanted)]
        assert row[6] == f"{paper / product:.1f}"


def test_the_papers_buffers():
    assert 134_217_728 == 2**27 and 33_554_432 == 2**25
    # SC2003's number ends in the digits of 2^23 - 1.
    assert str(128_388_607).endswith(str(2**23 - 1))
    # Half of 128 MiB is window: short of Washington's product.
    assert 2**26 < 91_125_000
    assert round(2**26 * 8 / 0.0729 / 1e9, 2) == 7.36
    # A host of 2 GB: a 32nd of it is the buffer, half of that the window.
    assert round(100 * 2 * GB / 32 / 2 / 56_250_000) == 60
    assert round(1e12 * 8 / 2.38e9 / 60) == 56
    for number in ("7.36 Gbit/s", "60 %", "56 minutes"):
        assert number in " ".join(PAGE.split())


#: Path, bit/s, s, MSS: what table 1 of SC2003 lacks.
LOSSES = [
    ("record, as set up", 2.5e9, 0.180, 8948),
    ("record, as reached", 2.38e9, 0.180, 8948),
    ("Los Angeles", 10e9, 0.00404, 8948),
    ("Houston", 10e9, 0.0361, 8948),
    ("Washington", 10e9, 0.0729, 8948),
    ("Washington", 10e9, 0.0729, 1448),
]


def test_the_table_of_losses():
    rows = section("One loss")
    for row, (name, rate, rtt, mss) in zip(rows, LOSSES, strict=True):
        full = recovery.window(rate, rtt, mss)
        assert row == [
            name, f"{rate / 1e9:g} Gbit/s", f"{rtt * 1000:g} ms", str(mss),
            f"{full:,.0f}",
            units.duration(recovery.reno(full, rtt).seconds),
            units.duration(recovery.cubic(full, rtt).seconds),
            units.duration(recovery.bbr(full, rtt).seconds)]


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row[0])
def test_recovery_from_first_principles(row):
    """Reno: half the window, a segment per round trip.  CUBIC: the curve
    0.4 (t - K)^3 + W starts at 0.7 W, and is at W again after K."""
    _, rate, rtt, mss = row
    full = rate * rtt / 8 / mss
    window, rounds = full / 2, 0
    while window < full:
        window, rounds = window + 1, rounds + 1
    told = recovery.reno(full, rtt).seconds
    assert 0 <= rounds * rtt - told < rtt + 1e-9
    k = recovery.cubic(full, rtt)
    if "4.2" in k.source:
        assert 0.4 * (0 - k.seconds) ** 3 + full == pytest.approx(0.7 * full)
    # In its Reno-friendly region it grows by 9/17 from 0.7 of the window.
    assert k.seconds <= told * 0.3 / (9 / 17) / 0.5 + 1e-9
