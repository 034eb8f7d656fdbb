# SPDX-License-Identifier: GPL-2.0-only
"""tests/bisect/draw-planted: where it adds instructions, that it takes them back,
and which verdicts of bisect-step it accepts.  The outputs are bisect-step's."""
import importlib.machinery
import importlib.util
import json
import random
import re
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]


def load():
    loader = importlib.machinery.SourceFileLoader(
        "draw_planted", str(TOP / "tests/bisect/draw-planted"))
    spec = importlib.util.spec_from_loader("draw_planted", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


planted = load()
SOURCE = """\
static int seen;

/* words(of a comment) */
static int
first(struct sock *sk,
      int (*call)(void))
{
\treturn 0;
}

void second(void);
void second(void)
{
}
"""
WORSE = """\
worse: tx packets: +43 instructions in stage transmit (1,775 to 1,818); changed \
functions that run: second
worse  load.time                  14,270     14,314       +44    +0.31   0.06
"""
ELSEWHERE = """\
bisect-step: 1 functions differ from the baseline's, none of them runs in \
ping-pong: second
bisect-step: -w loss runs second 1 times
bisect-step: ping-pong on .: not exercised
"""
NOWHERE = ELSEWHERE.replace("-w loss runs second 1 times", "no workload runs them")


@pytest.fixture
def tree(tmp_path):
    for folder in "core", "ipv4", "sched":
        (tmp_path / "net" / folder).mkdir(parents=True)
    (tmp_path / "net/core/a.c").write_text(SOURCE)
    (tmp_path / "net/ipv4/b.c").write_text("int twice(void)\n{\n}\n")
    (tmp_path / "net/sched/c.c").write_text("int twice(int a)\n{\n}\n")
    return tmp_path


def test_functions_that_occur_once(tree):
    found = planted.functions(tree)
    assert set(found) == {"first", "second"}
    assert SOURCE[found["second"][1]:] == "}\n"


def test_the_change_is_in_the_body_and_is_taken_back(tree):
    command = ["cat", "net/core/a.c"]
    status, output = planted.step(command, tree, "second", 43)
    assert not status
    assert '{\n\tasm volatile(".rept 43; nop; .endr");\n}\n' in output
    assert (tree / "net/core/a.c").read_text() == SOURCE
    with pytest.raises(FileNotFoundError):
        planted.step(["/no/such/step"], tree, "second", 43)
    assert (tree / "net/core/a.c").read_text() == SOURCE


def test_draws_are_of_their_kind(tree, tmp_path):
    (tmp_path / "ping-pong.baseline").write_text(json.dumps({"functions_run": {
        "ping-pong": {"tcp_sendmsg": 400, "first": 404}, "loss": {"first": 1}}}))
    (tmp_path / "ping-pong.functions.json").write_text(json.dumps(
        {"net/core/a.o first": "0", "net/core/a.o second": "0"}))
    drawn = planted.draw(random.Random(1), 2, tree, tmp_path)
    assert [(kind, name, calls) for kind, name, _, calls in drawn] == [
        ("worse", "first", 1.01), ("worse", "first", 1.01)]


@pytest.mark.parametrize("kind, status, output", [
    ("worse", 1, WORSE), ("elsewhere", 125, ELSEWHERE), ("nowhere", 125, NOWHERE)])
def test_right_verdicts(kind, status, output):
    assert planted.judge(kind, "second", 43, status, output) is None


@pytest.mark.parametrize("kind, status, output, why", [
    ("worse", 0, WORSE, "status 0"),
    ("worse", 1, WORSE.replace("second", "second_half"), "second is not named"),
    ("worse", 1, WORSE.replace("that run: second", "that run: other")
     + "second", "no line"),
    ("worse", 1, WORSE.replace("+44", "+62"), r"\+62, expected \+43"),
    ("worse", 1, WORSE.replace("+44", "+34"), r"\+34, expected \+43"),
    ("elsewhere", 0, ELSEWHERE, "status 0"),
    ("elsewhere", 125, NOWHERE, "no line"),
    ("nowhere", 125, ELSEWHERE, "no line")])
def test_wrong_verdicts(kind, status, output, why):
    assert re.search(why, planted.judge(kind, "second", 43, status, output))
