# SPDX-License-Identifier: GPL-2.0-only
"""How bisect-step words a comparison: the sentence names the metric that
explains the others, and the table folds those that contain it."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "scripts"))

import bisect_report as report  # noqa: E402


def metric(name, base, new, bound=0.002, worse=None):
    share = name.endswith(".share")
    change = new - base if share else new / base - 1
    moved = abs(change) > bound
    return {"name": name, "kind": "share" if share else "cost", "base": base,
            "new": new, "change": change, "bound": bound, "moved": moved,
            "worse": moved and change > 0 if worse is None else worse}


TRANSMIT = [metric("tx.cost", 5185, 5208), metric("tx.data.cost", 5188, 5211),
            metric("tx.at.transmit", 1774, 1797), metric("rx.cost", 6500, 6501),
            metric("load.time", 14260, 14283)]
ACKS = [metric("load.time", 15000, 14047), metric("load.byte", 28.2, 29.73),
        metric("load.packets", 0.000722, 0.000812),
        metric("rx.slow.share", 0.0004, 0.1253)]


@pytest.mark.parametrize("value, like, text", [
    (14260.4, None, "14,260"), (548.31, None, "548.3"), (7.10049, None, "7.100"),
    (0.000722, None, "0.0007220"), (0, None, "0"), (23, 1774, "23"),
])
def test_numbers_have_no_exponent(value, like, text):
    assert report.number(value, like) == text


@pytest.mark.parametrize("figures, sentence", [
    (TRANSMIT, "tx packets: +23 instructions in stage transmit (1,774 to 1,797)"),
    (ACKS, "rx.slow packets: 12.53 % instead of 0.04 %"),
    (ACKS[:3], "+12.47 % packets for the same bytes (0.0007220 to 0.0008120)"),
    (ACKS[:2], "+5.43 % instructions per byte of the load (28.20 to 29.73)"),
    ([metric("rx.ack.cost", 1000, 1010)],
     "rx.ack packets: +10 instructions per packet (1,000 to 1,010)"),
    ([], "no metric outside its bound"),
])
def test_one_sentence(figures, sentence):
    worse = [f for f in figures if f["worse"]]
    assert report.headline(worse) == sentence


def test_changed_functions_are_named():
    text = report.headline(TRANSMIT[2:3], ["a", "b", "c", "d", "e", "f", "g"])
    assert text.endswith("; changed functions that run: a, b, c, d, e and 2 more")


def test_metrics_that_contain_a_stage_are_folded():
    lines = report.table(TRANSMIT)
    assert [line.split()[0] for line in lines] == ["METRIC", "worse", "These"]
    assert lines[1].startswith("worse  tx.at.transmit ")
    assert lines[2].endswith("moved with it: tx.cost, tx.data.cost")
    assert max(map(len, lines)) <= 80


def test_a_cheaper_packet_is_shown_beside_more_packets():
    lines = report.table(ACKS)
    assert [line.split()[:2] for line in lines[1:]] == [
        ["worse", "rx.slow.share"], ["worse", "load.packets"],
        ["worse", "load.byte"], ["better", "load.time"]]
    assert "-6.35" in lines[-1]


def test_nothing_moved():
    assert report.table([metric("rx.cost", 100, 100)]) == []
