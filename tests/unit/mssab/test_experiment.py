# SPDX-License-Identifier: GPL-2.0-only
"""An experiment file is checked whole before anything runs: each mistake is
reported in one sentence with its line."""
import sys
import tomllib
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import cli, errors  # noqa: E402
from mssab.commands import experiment as cmd_experiment  # noqa: E402
from mssab.experiment import experiment, experiment_file  # noqa: E402

GOOD = '''title = "Windows"
expect = "improved"

[design]
effect_percent = 3
looks = [12, 20]
guardrails = ["retransmits"]

[cell]
load = "tcpload"
rtt_ms = 10
mtu = 9000

[arms]
stock = {}

[arms.treated]
rx_frac = 64
mtu = 1500
sysctl = { "net.ipv4.tcp_timestamps" = 0 }
'''

PROGRAM = '''
[program]
argv = ["true"]
[design]
primary = "speed"
[metrics.speed]
unit = "m/s"
[arms]
a = {}
b = { env = { X = "1" } }
'''


def parse(text):
    return experiment_file.parse(Path("e.toml"), text)


def test_good():
    plan = parse(GOOD)
    stock, treated = plan.arms
    assert (stock.name, treated.name) == ("stock", "treated")
    assert treated.module == {"rx_frac": 64} and plan.module_keys == ["rx_frac"]
    assert (stock.cell.mtu, treated.cell.mtu) == (9000, 1500)
    assert treated.sysctl_sender == {"net.ipv4.tcp_timestamps": "0"}
    assert [m.name for m in plan.metrics] == ["goodput", "retransmits"]
    assert [m.margin for m in plan.metrics] == [3, 1]
    assert plan.looks == (12, 20) and plan.aa_pairs == 8
    assert parse(PROGRAM).primary[0].unit == "m/s"


@pytest.mark.parametrize("old, new, line, sentence", [
    ("rtt_ms = 10", "rtt = 10", 11, "unknown key rtt in .cell.; did you mean rtt_ms"),
    ("rtt_ms = 10", 'rtt_ms = "10ms"', 11, "rtt_ms = '10ms' is not a"),
    ("rtt_ms = 10", "rtt_ms = -1", 11, "outside"),
    ("rtt_ms = 10", "rtt_ms = [1, 2]", 11, "has one cell"),
    ("mtu = 9000", "repeat = 3", 12, "how many pairs"),
    ('"tcpload"', '"magic"', 10, "not one of"),
    ("rx_frac = 64", "rx_fraq = 64", 18, "unknown key rx_fraq"),
    ("rx_frac = 64", "rx_frac = 65", 18, "outside 0..64"),
    ("rx_frac = 64", "rx_frac = true", 18, "is not a whole number"),
    ("rx_frac = 64", "ipv6 = true", 18, "unknown key ipv6"),
    ("mtu = 1500", "mtu = 15", 19, "outside"),
    ("net.ipv4.tcp_timestamps", "kernel.panic", 20, "not a setting below net"),
    ('timestamps" = 0', 'timestamps" = 0.5', 20, "neither a whole"),
    ("effect_percent = 3", "effect = 3", 5, "did you mean effect_percent"),
    ("effect_percent = 3", 'effect_percent = "3 %"', 5, "unit is in the name"),
    ("looks = [12, 20]", "resolution_percent = 2", 6, "rounding would hide"),
    ("looks = [12, 20]", "looks = [20, 12]", 6, "must rise"),
    ("looks = [12, 20]", "looks = []", 6, "must rise"),
    ("looks = [12, 20]", "pairs = 7", 6, "outside 8"),
    ("looks = [12, 20]", "looks = [12]\npairs = 12", 7, "give one of them"),
    ("looks = [12, 20]", "aa_pairs = 3", 6, "support no claim"),
    ('["retransmits"]', '["retransmit"]', 7, "did you mean retransmits"),
    ('["retransmits"]', '["goodput"]', 7, "named twice"),
    ('"improved"', '"better"', 2, "not one of improved"),
    ("stock = {}\n", "", 14, "here are 1"),
    ("[arms.treated]", "[arms.b]\n[arms.c]", 14, "here are 3"),
    ("[cell]", "[cel]", 9, "did you mean cell"),
    ("[cell]", "[metrics.goodput]\nmargin = -1\n[cell]", 10, "not above 0"),
    ("[cell]", "[metrics.goodput]\nbetter = 'more'\n[cell]", 10, "not one of hig"),
    ("[cell]", "[metrics.cpu]\n[cell]", 9, "neither primary nor"),
    ("[cell]", "[[cells]]", 9, "for grids"),
    ("rtt_ms = 10", "rtt_ms = 10 ms", 11, "not TOML"),
    ("rtt_ms = 10", "qdisc = 'fq'\nrate_mbit = 10", 9, "choose one"),
])
def test_refused(old, new, line, sentence):
    assert old in GOOD
    with pytest.raises(errors.UsageError, match=sentence) as refusal:
        parse(GOOD.replace(old, new))
    assert str(refusal.value).startswith(f"e.toml:{line}: ")
    assert "\n" not in str(refusal.value)


def test_the_load_of_an_arm_must_report_the_metrics():
    text = GOOD.replace('["retransmits"]', '["rtt"]')
    assert parse(text)
    with pytest.raises(errors.UsageError, match="iperf3 does not report rtt"):
        parse(text.replace("mtu = 1500", 'load = "iperf3"'))


@pytest.mark.parametrize("old, new, line, sentence", [
    ('argv = ["true"]', "argv = []", 3, "list of strings"),
    ('argv = ["true"]', 'argv = "true"', 3, "argv = 'true' is not a list"),
    ("[metrics.speed]", "[metrics.sped]", 5, "unknown metric speed"),
    ('unit = "m/s"', 'scale = "linear"', 6, "needs a margin"),
    ("env", "rx_frac", 10, "unknown key rx_frac"),
    ('X = "1"', "X = []", 10, "env must be a table"),
])
def test_refused_program(old, new, line, sentence):
    assert old in PROGRAM
    with pytest.raises(errors.UsageError, match=sentence) as refusal:
        parse(PROGRAM.replace(old, new))
    assert str(refusal.value).startswith(f"e.toml:{line}: ")


def test_lines():
    text = 'a = 1\n[b."c.d"]\n# e = 0\ne = { f = 1, "g" = 2 }\n[[h]]\ni = 3\n'
    for path, line in ((["a"], 1), (["b"], 2), (["b", "c.d", "e"], 4),
                       (["b", "c.d", "e", "g"], 4), (["h", "i"], 6),
                       (["nothing"], 1)):
        assert experiment_file.line_of(text, path) == line, path


def test_the_coin_is_fair_and_follows_from_the_seed():
    plan = parse(GOOD)
    orders = [experiment.draw(plan, "ab", pair, 0).order[0]
              for pair in range(2000)]
    assert sum(orders) == 1000
    assert orders == [experiment.draw(plan, "ab", pair, 0).order[0]
                      for pair in range(2000)]
    again = [experiment.draw(plan, "ab", pair, 1) for pair in range(50)]
    assert [d.order[0] for d in again] == orders[:50]
    assert not {d.seed for d in again} & {
        experiment.draw(plan, "ab", pair, 0).seed for pair in range(50)}


def test_a_grid_is_not_an_experiment():
    for path in sorted([*(TOP / "experiments").glob("*.toml"),
                        *(TOP / "tests/bench/datagrams").glob("*.toml")]):
        text = path.read_text()
        assert experiment_file.is_experiment(text) == (
            "cells" not in tomllib.loads(text)), path
        if experiment_file.is_experiment(text):
            plan = experiment_file.parse(path, text)
            assert plan.expect, f"{path}: what is to come out?"
            whole = cmd_experiment.manifest(plan, path, text)
            assert len(whole["schedule"]) == plan.aa_pairs + plan.looks[-1]


@pytest.mark.parametrize("arguments, sentence", [
    (["run", "e.toml", "--only", "x"], "--only is for grids"),
    (["run", "e.toml", "--json", "x"], "--json is for grids"),
    (["run", "e.toml", "--part", "1/2"], "--part is for grids"),
    (["run", "g.toml", "-o", "x"], "-o is for experiments"),
    (["aa", "g.toml"], "no \\[design\\]"),
    (["run", "none.toml"], "No such file"),
    (["report", "none"], "no results"),
    (["list", "none"], "no such folder"),
])
def test_command_line(tmp_path, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    Path("e.toml").write_text(GOOD)
    Path("g.toml").write_text("[arms]\na = {}\nb = {}\n[[cells]]\n")
    monkeypatch.setattr(sys, "argv", ["mssab", *arguments])
    assert cli.main() == 2
    out, err = capsys.readouterr()
    assert not out and err.count("\n") == 1
    assert __import__("re").search(sentence, err)
