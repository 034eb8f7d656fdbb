# SPDX-License-Identifier: GPL-2.0-only
"""What benchmarks conclude from their measurements: the cost table's verdict,
and the time that redis-benchmark reports."""
import importlib.util
import itertools
import json
import sys
import tomllib
from pathlib import Path
from unittest.mock import MagicMock

import pytest

TOP = Path(__file__).resolve().parents[3]


def load(name):
    path = TOP / "tests/bench" / name
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def document(**percent):
    """Results of one guest in which each arm adds so many percent.  Transfers
    differ: a packet costs 500 instructions, and the rest is an error of 100,
    which does not go with the packets."""
    arms = {"absent": 0, "observe": 0, "treated": 0, "removed": 0} | percent
    return {
        "kernel": "6.12", "seed": 1, "retransmitted": {"lo": 0},
        "runs": [{"workload": "lo", "arm": arm, "segments": 1000,
                  "packets": 1500 + turn,
                  "instructions": 10_000_000 * (1 + p / 100) + 500 * turn
                  + (100 if turn in (0, 3, 5, 6) else -100)}
                 for arm, p in arms.items() for turn in range(8)],
        "calls": [{"workload": "lo", "arm": arm, "segments": 1000,
                   "tcp_current_mss": 100, "__tcp_select_window": 900}
                  for arm in ("absent", "observe", "treated")]}


def table(tmp_path, monkeypatch, *documents):
    cost = load("cost/table.py")
    names = []
    for n, data in enumerate(documents):
        names.append(tmp_path / f"{n}.json")
        names[-1].write_text(json.dumps(data))
    monkeypatch.setattr(sys, "argv", ["table", *map(str, names)])
    return cost.main()


@pytest.mark.parametrize("wanted, percent", [
    (0, {"observe": 0.4, "treated": 1.4, "removed": 0.01}),
    (1, {"observe": 0.6}),
    (1, {"treated": 1.6}),
    (1, {"removed": 0.03}),
    (1, {"removed": -0.03}),        # cheaper than before is not the same
    (2, {"observe": 0.6, "treated": 1.6}),
    (0, {"observe": -0.3}),
])
def test_cost_verdict(tmp_path, monkeypatch, capsys, wanted, percent):
    assert table(tmp_path, monkeypatch, document(**percent)) == bool(wanted)
    assert f"{wanted} missed, 0 undecided" in capsys.readouterr().out


def test_cost_is_that_of_equally_many_packets(tmp_path, monkeypatch, capsys):
    """More packets by chance are no cost of the module."""
    more = document(observe=0.3)
    for run in more["runs"]:
        if run["arm"] == "observe":
            run["packets"] += 100
            run["instructions"] += 100 * 500
    assert table(tmp_path, monkeypatch, more) == 0
    out = capsys.readouterr().out
    assert "+0.30 +- 0.02" in out
    assert "+0.80 (+0.80..+0.80)" in out


def test_cost_that_cannot_be_told_from_its_limit(tmp_path, monkeypatch, capsys):
    noisy = document(observe=0.5)
    for turn, run in enumerate(noisy["runs"]):
        run["instructions"] += 20_000 * (-1) ** (turn // 2)
    assert table(tmp_path, monkeypatch, noisy) == 0
    out = capsys.readouterr().out
    assert "?" in out and "0 undecided" not in out


def test_cost_of_one_transfer_is_undecided(tmp_path, monkeypatch, capsys):
    """Nothing says how much transfers differ."""
    one = document()
    one["runs"] = one["runs"][::8]
    assert table(tmp_path, monkeypatch, one) == 0
    assert "+- inf" in capsys.readouterr().out


def test_cost_is_a_mean_over_seeds(tmp_path, monkeypatch, capsys):
    seeds = document(observe=0.8), document(observe=0)
    assert table(tmp_path, monkeypatch, *seeds) == 0
    out = capsys.readouterr().out
    assert "+0.40 +- 0.00" in out
    # 0.4 % of 10,000 instructions in one call a segment
    row = next(line for line in out.splitlines() if "lo  " in line
               and " observe " in line)
    assert row.split()[-1] == "40"


def test_smaller_segments_are_not_cheaper(tmp_path, monkeypatch, capsys):
    smaller = document(treated=1.6)
    for run in smaller["runs"]:
        if run["arm"] == "treated":
            run["segments"] *= 2
    assert table(tmp_path, monkeypatch, smaller) == 1
    assert "+1.60" in capsys.readouterr().out


def step(title, effect, low, high):
    return {"title": title, "verdict": "improved", "metrics": {
        "goodput": {"effect": effect, "low": low, "high": high}}}


def test_steps_multiply():
    lines = list(load("steps/table.py").table(
        [step("one", 10, 9, 11), step("two", 20, 20, 20)],
        step("all", 32, 31, 33)))
    assert lines[1].split()[:2] == ["one", "+10.0"]
    assert "+32.0  +30.8 .. +33.2" in lines[3]
    assert lines[-1].endswith("by +0.0 %")
    other = list(load("steps/table.py").table(
        [step("one", 10, 9, 11), step("two", 20, 19, 21)],
        step("all", 10, 9, 11)))
    assert other[-1].endswith("by +20.0 %")


def test_each_step_begins_where_the_one_before_ended():
    tables = [tomllib.loads(path.read_text()) for path in sorted(
        (TOP / "experiments").glob("steps-*.toml"))]
    *steps, whole = [data["arms"] for data in tables]
    for one, after in itertools.pairwise(steps):
        assert one["after"] == after["before"]
    assert whole == {"before": steps[0]["before"], "after": steps[-1]["after"]}
    assert all(data["cell"] == tables[0]["cell"] for data in tables)


@pytest.mark.parametrize("wanted, completed, latency", [
    (0.024896, "0.02", "24.896"),
    (52.93, "52.93", "3000.319"),   # the histogram's end
])
def test_redis_benchmark_figure(wanted, completed, latency):
    text = (f"====== SET ======\n  1 requests completed in {completed} "
            "seconds\n  1 parallel clients\n  latency summary (msec):\n"
            "          avg       min       p50       p95       p99       max\n"
            f"       {latency}    24.896    24.911\n")
    assert load("programs/measure.py").seconds_of(text) == wanted


# --- Overhead ----------------------------------------------------------------

def arm(*runs):
    return {"runs": [{"workload": "64 KB writes", "rounds": 1, "packets": packets,
                      "ns": ns, "after_ns": 0} for packets, ns in runs]}


def test_overhead_compares_runs_of_one_packet_pattern():
    """The arm met the pattern that most unprofiled runs did not."""
    table = load("overhead/table.py")
    base = arm((338, 338 * 86_000), (245, 245 * 120_000), (338, 338 * 86_000))
    other = arm((245, 245 * 120_100), (245, 245 * 120_100))
    assert table.added(base, other, "64 KB writes", 1) == (100, 120_000, True)


def test_overhead_of_another_pattern_is_marked():
    table = load("overhead/table.py")
    added, without, alike = table.added(arm((338, 338 * 86_000)),
                                        arm((300, 300 * 90_000)),
                                        "64 KB writes", 1)
    assert (added, without, alike) == (4_000, 86_000, False)


@pytest.mark.parametrize("size", [576, 1500, 9000])
def test_frames_of_the_packet_socket(size):
    """A frame of that size on the wire, with the right checksum of its IP header."""
    data = load("datagrams/generator.py").frame(size, "02:00:00:00:00:01")
    assert len(data) == size - 4 and data[:6] == b"\x02\0\0\0\0\x01"
    total = sum(int.from_bytes(data[n:n + 2], "big") for n in range(14, 34, 2))
    assert (total & 0xffff) + (total >> 16) == 0xffff
    assert int.from_bytes(data[16:18], "big") == size - 18
    assert int.from_bytes(data[38:40], "big") == size - 38


def test_the_packet_socket_keeps_its_rate(monkeypatch):
    """Refused frames are sent again, and the time between frames is kept."""
    generator = load("datagrams/generator.py")
    clock, sent = [0], [0]

    def sendmmsg(_fd, _some, count, _flags):
        done = [-1, 1, count][len(sent) % 3]
        if done < 0:
            generator.ctypes.set_errno(105)
        sent.append(max(done, 0))
        return done

    monkeypatch.setattr(generator.socket, "socket", MagicMock())
    monkeypatch.setattr(generator.os, "sched_setscheduler", lambda *_: None)
    monkeypatch.setattr(generator.ctypes, "CDLL", lambda *_, **__: type(
        "Libc", (), {"sendmmsg": staticmethod(sendmmsg)}))
    monkeypatch.setattr(generator.time, "monotonic_ns", lambda: clock[0])
    monkeypatch.setattr(generator.time, "sleep",
                        lambda s: clock.__setitem__(0, clock[0] + round(s * 1e9)))
    took, waited = generator.send("veth0", b"x" * 60, 100, 1000)
    assert sum(sent) == 100 and took == waited and 80_000 <= took <= 100_000
