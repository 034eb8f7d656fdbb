# SPDX-License-Identifier: GPL-2.0-only
"""Arms per connection: a gain of the treatment itself is reported.  A gain at the
expense of other connections is withheld, and so is one with a wrong split."""
import math
import random
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import errors  # noqa: E402
from mssab.experiment import experiment_file  # noqa: E402
from mssab.run import campaign  # noqa: E402
from mssab.statistics import connections, outcomes  # noqa: E402

TEXT = '''[design]
seed = 1
assign = "connection"
connections = 20
[cell]
load = "tcpload"
[arms]
stock = {}
treated = { tx_frac = 64 }
'''


class Book:
    session = 1

    def __init__(self):
        self.records = []

    def add(self, record):
        self.records.append({"session": 1} | record)


class Path20:
    """Twenty connections at once, with arms as the module draws them."""

    def __init__(self, gain=1.0, shared=False, wrong=0.0, noise=0.02):
        self.gain, self.shared = gain, shared
        self.wrong, self.noise = wrong, noise

    def __call__(self, arm, seed, share):
        rng = random.Random(f"{arm.name}/{seed}/{share}")
        gain = self.gain if arm.module else 1.0
        some = []
        for number in range(20):
            one = {"port": 5201 + number,
                   "sender_port": 40000 + 2 * rng.randrange(4000)}
            one["arm"] = connections.arm_of(one, seed, share)
            if rng.random() < self.wrong:
                one["arm"] = "treated"
            some.append(one)
        weights = [gain if c["arm"] == "treated" else 1.0 for c in some]
        pie = sum(weights) / 20 if self.shared else 1.0
        for one, weight in zip(some, weights):
            one["bytes_per_s"] = 1e6 * weight / pie * math.exp(
                rng.gauss(0, self.noise))
        return {"connections": some,
                "bytes_per_s": sum(c["bytes_per_s"] for c in some)}


def run(load, text=TEXT):
    book = Book()
    plan = experiment_file.parse(Path("e.toml"), text)
    return campaign.run(plan, book, load, lambda *_: None), book.records


def test_a_gain_of_its_own():
    result, records = run(Path20(1.1))
    assert result["verdict"] == "improved" and result["keep"]
    metric = result["metrics"]["goodput"]
    assert metric["low"] < 10 < metric["high"]
    assert [s["share"] for s in result["sample_ratio"]] == [10, 50, 90]
    assert all(s["p"] > 0.0005 for s in result["sample_ratio"])
    assert result["interference"]["stock"]["verdict"] == "equivalent"
    counted = outcomes.pairs(records, "ab")
    assert [[b["share"] for b in pair] for pair in counted] == \
        12 * [[10, 50, 90]]
    assert len({tuple(b["place"] for b in pair) for pair in counted}) > 2
    # 20 connections at 10 %: sometimes an arm has none, and the result shows it.
    void = [r["void"] for r in records if r["void"]]
    assert all(v.startswith("empty arm") for v in void)


def failing(name, rate, all_of=False):
    """A load in which this share of the connections of one arm fails."""
    path = Path20(1.1)

    def load(arm, seed, share):
        raw = path(arm, seed, share)
        rng = random.Random(f"{seed}/{share}")
        for one in raw["connections"]:
            if one["arm"] == name and arm.module and (
                    all_of or rng.random() < rate):
                del one["bytes_per_s"]
                one["failed"] = "connection refused"
        return raw
    return load


def test_failing_connections_are_their_arms_failures():
    """Where they work they are faster; but one in ten does not work."""
    result, _ = run(failing("treated", 0.1))
    found = result["failures"]
    assert found["unit"] == "connections" and found["harm"]
    assert found["arms"]["treated"]["failed"] > 20
    assert found["arms"]["stock"]["failed"] == 0
    assert result["verdict"] == "regressed" and not result["keep"]
    assert "of" in result["why"] and "connections" in result["why"]
    # The split is still judged by all of them.
    assert all(s["p"] > 0.0005 for s in result["sample_ratio"])
    assert run(failing("stock", 0.1))[0]["keep"]


def test_an_arm_without_a_working_connection():
    result, _ = run(failing("treated", 1, all_of=True))
    assert result["verdict"] == "regressed" and result["failures"]["harm"]


def test_a_connection_that_failed_before_it_had_a_port_is_in_no_arm():
    assert connections.arm_of({"port": 5201, "sender_port": 0}, 1, 50) == "unknown"
    raw = Path20()(type("Arm", (), {"name": "a", "module": {}}), 1, 50)
    raw["connections"][0] |= {"arm": "unknown", "failed": "no namespace"}
    assert connections.void(raw).startswith("unknown arm")


def test_no_gain_and_a_loss():
    assert run(Path20(1.0))[0]["verdict"] == "equivalent"
    assert run(Path20(0.9))[0]["verdict"] == "regressed"


def test_a_gain_at_the_neighbours_cost_is_refused():
    """Spang et al., IMC 2021: +50 % for each that has it, nothing for all."""
    result, _ = run(Path20(1.5, shared=True))
    assert result["metrics"]["goodput"]["verdict"] == "improved"
    assert result["verdict"] == "inconclusive" and not result["keep"]
    assert "at each other's expense" in result["why"]
    assert result["interference"]["stock"]["shift"] < -20


def test_a_split_that_is_not_the_one_asked_for():
    result, _ = run(Path20(1.1, wrong=0.2))
    assert result["verdict"] == "inconclusive"
    assert "was requested" in result["why"]


def test_the_change_of_control_connections_must_be_known_well():
    """Control connections that vary by more than the effect prove nothing."""
    class Wild(Path20):
        def __call__(self, arm, seed, share):
            raw = super().__call__(arm, seed, share)
            level = math.exp(random.Random(f"w{seed}{share}").gauss(0, 0.5))
            for one in raw["connections"]:
                one["bytes_per_s"] *= level
            return raw
    result, _ = run(Wild(1.1))
    assert result["metrics"]["goodput"]["verdict"] == "improved"
    assert result["verdict"] == "inconclusive"
    assert "known so poorly" in result["why"]


@pytest.mark.parametrize("old, new, sentence", [
    ("stock = {}", "stock = { tx_frac = 0 }", "must be empty"),
    ("tx_frac = 64", "mtu = 1500", "cannot differ between connections"),
    ("tx_frac = 64", "ab_percent = 5", "cannot differ between connections"),
    ("connections = 20", 'guardrails = ["cpu"]', "the only metric"),
    ('"tcpload"', '"iperf3"', "needs a .cell."),
    ("connections = 20", "connections = 3", "outside 4"),
    ("connections = 20", "allocations = [50]", "must rise"),
    ("connections = 20", "allocations = [90, 10]", "must rise"),
    ('"connection"', '"flow"', "not one of block, connection"),
    ('assign = "connection"\n', "", "needs assign"),
])
def test_refused(old, new, sentence):
    assert old in TEXT
    with pytest.raises(errors.UsageError, match=sentence) as refusal:
        experiment_file.parse(Path("e.toml"), TEXT.replace(old, new))
    assert str(refusal.value).startswith("e.toml:")
