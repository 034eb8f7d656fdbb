# SPDX-License-Identifier: GPL-2.0-only
"""The decisions of a campaign: verdicts, what does not count, what fails,
guardrails, carry-over, the A/A gate and deterministic samples.  Blocks come from
a function with an effect and noise of the test's choosing."""
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from campaigns import TEXT, TOP, Book, Load, plan, records, run  # noqa: E402
from processes import has_ended  # noqa: E402
from mssab import errors  # noqa: E402
from mssab.experiment import experiment, experiment_file  # noqa: E402
from mssab.run import block, campaign, journal  # noqa: E402
from mssab.statistics import outcomes, sanity  # noqa: E402
from mssab.testbed import host  # noqa: E402


@pytest.mark.parametrize("gain, latency, verdict, keep", [
    (0.05, 0, "improved", True),
    (-0.05, 0, "regressed", False),
    (0, 0, "equivalent", False),
    (0.05, 0.2, "improved", False),      # a guardrail regressed
])
def test_verdict(tmp_path, gain, latency, verdict, keep):
    result = run(tmp_path, plan(), Load(gain, latency=latency))
    assert result["verdict"] == verdict and result["keep"] == keep
    assert result["finished"] and result["aa"]["verdict"] == "equivalent"
    metric = result["metrics"]["goodput"]
    assert metric["low"] < 100 * gain < metric["high"]
    assert any("latency" in n for n in result["notes"]) == (latency > 0)
    assert result["decision"] == {
        "regressed": "reject", "equivalent": "no gain"}.get(
            verdict, "keep" if keep else "reject")
    assert len(records(tmp_path)) == 2 * (8 + 12)


def test_arms_that_are_secretly_equal():
    """Many A/A campaigns hardly ever claim a difference."""
    the_plan = plan(aa_pairs=0, guardrails=())
    claimed = 0
    for seed in range(200):
        book = Book()
        result = campaign.run(the_plan, book, Load(0, 0.03, seed=seed),
                              lambda *_: None)
        claimed += result["verdict"] in ("improved", "regressed")
    assert claimed <= 14  # 7 %


def test_noise_beyond_the_plan_stops_after_aa(tmp_path):
    result = run(tmp_path, plan(), Load(0.05, noise=0.3))
    assert result["finished"] and result["verdict"] == "inconclusive"
    assert "too noisy" in result["why"] and result["aa"]["pairs_needed"] > 100
    assert len(records(tmp_path)) == 16


def test_a_drifting_testbed_fails_aa(tmp_path):
    """The same arm, but the first block of a pair and the second differ by who
    is asked: a load that knows more than it should."""
    load = Load(noise=0.001)
    the_plan = plan()

    def unfair(arm, seed, _):
        raw = load(arm, seed)
        pair, place = divmod(len(load.calls) - 1, 2)
        side = experiment.draw(the_plan, "aa", pair, 0).order[place]
        raw["bytes_per_s"] *= 1 + 0.1 * side
        return raw
    result = run(tmp_path, the_plan, unfair)
    assert result["verdict"] == "inconclusive"
    assert "same arm" in result["why"]


def test_looks(tmp_path):
    """A large effect ends at the first look, none at the last."""
    looks = plan(looks=(12, 20, 32))
    result = run(tmp_path, looks, Load(0.3))
    assert [look["pairs"] for look in result["looks"]] == [12]
    assert result["metrics"]["goodput"]["level"] == pytest.approx(
        0.00137, rel=0.01)
    book = Book()
    result = campaign.run(looks, book, Load(0.015, 0.02), lambda *_: None)
    assert [look["pairs"] for look in result["looks"]][:2] == [12, 20]
    assert len(book.records) == 2 * (8 + result["looks"][-1]["pairs"])


def test_only_aa_then_all(tmp_path):
    result = run(tmp_path, plan(), Load(), only_aa=True)
    assert result["finished"] and result["verdict"] == "equivalent"
    assert len(records(tmp_path)) == 16
    result = run(tmp_path, plan(), Load(0.05), resume=True)
    assert result["verdict"] == "improved"
    assert len(records(tmp_path)) == 16 + 24


# --- What does not count ----------------------------------------------------

@pytest.mark.parametrize("extra, reason", [
    ({"bytes_per_s": 2e9}, "above the ceiling"),
    ({"host": {"stolen_percent": 3}}, "stolen CPU"),
    ({"host": {"generator_percent": 99}}, "saturated load"),
    ({"lost_events": 1}, "dropped trace"),
])
def test_void(tmp_path, extra, reason):
    """Once: the pair is measured again, and the block is listed."""
    def each(call):
        return extra if call == 21 else {}
    result = run(tmp_path, plan(ceiling_mbit=1000.0),
                 Load(0.05, extra={"each": each}))
    assert result["verdict"] == "improved"
    void = [r for r in records(tmp_path) if r["void"]]
    assert len(void) == 1 and void[0]["void"].startswith(reason)
    counts = result["void"]["arms"][void[0]["arm"]]
    assert counts == {reason: 1}
    assert len(records(tmp_path)) in (41, 42)


def test_an_arm_that_is_always_void_ends_it(tmp_path):
    load = Load(extra={"treated": {"bytes_per_s": 2e9}})
    result = run(tmp_path, plan(ceiling_mbit=1000.0), load)
    assert result["finished"] and result["verdict"] == "inconclusive"
    assert "5 times" in result["why"]
    assert result["void"]["arms"]["treated"] == {"above the ceiling": 5}
    assert result["void"]["arms"]["stock"] == {}


def test_uneven_voids_withhold_the_verdict(tmp_path):
    def each(call):
        treated = [name for name, _ in load.calls[16:]].count("treated")
        mine = call > 16 and load.calls[-1][0] == "treated"
        return {"host": {"stolen_percent": 50}} if mine and treated % 2 else {}
    load = Load(0.05, extra={"each": each})
    result = run(tmp_path, plan(), load)
    assert result["void"]["uneven"] and result["void"]["p"] < 0.05
    assert result["verdict"] == "inconclusive" and not result["keep"]
    assert any("withheld" in note for note in result["notes"])


# --- What fails -------------------------------------------------------------

@pytest.mark.parametrize("extra, reason", [
    ({"failed": "status 1"}, "load failed"),
    ({"dead_guest": "no end marker"}, "dead guest"),
    ({"bytes_per_s": 0}, "stalled"),
    ({"latency": 0}, "no figure"),
])
def test_a_failed_block_is_an_outcome_of_its_arm(tmp_path, extra, reason):
    """One block in twelve of the treatment: it gains where it works, and is not
    shown to work as reliably.  One of the control: that is no reason."""
    for arm, decision in (("treated", "undecided"), ("stock", "keep")):
        def each(call, arm=arm):
            return extra if call > 16 and load.calls[-1] == (arm, chosen) \
                else {}
        the_plan = plan()
        chosen = experiment.draw(the_plan, "ab", 3, 0).seed
        load = Load(0.05, extra={"each": each})
        result = run(tmp_path / arm, the_plan, load)
        assert result["decision"] == decision
        failed = result["failures"]["arms"]
        assert failed[arm] == {
            "failed": 1, "of": 13, "reasons": {reason: 1},
            "at_most_percent": pytest.approx(31.6, abs=0.1)}
        assert result["void"]["arms"] == {"stock": {}, "treated": {}}
        assert any("1 of 13" in n for n in result["notes"])
        assert len(journal.read_samples(tmp_path / arm / "r")) == 42


def test_failures_in_a_quarter_of_the_blocks_are_not_kept():
    """Of many treatments that gain where they work."""
    decisions = {}
    for seed in range(40):
        rng = random.Random(seed)

        def each(call, rng=rng):
            return {"failed": "status 1"} if rng.random() < 0.25 \
                and load.calls[-1][0] == "treated" else {}
        load = Load(0.1, seed=seed, extra={"each": each})
        result = campaign.run(plan(aa_pairs=0, guardrails=()), Book(), load,
                              lambda *_: None)
        word = result["decision"]
        decisions[word] = decisions.get(word, 0) + 1
    assert decisions.get("keep", 0) <= 4
    assert decisions["undecided"] >= 20


def test_failures_survive_resumes(tmp_path):
    """mssab is killed after each failed block, and resumed."""
    the_plan = plan(aa_pairs=0, attempts=20)
    rng = random.Random(3)

    class Killed(Exception):
        pass

    def flaky(arm, seed, share):
        raw = load(arm, seed, share)
        if arm.name == "treated" and rng.random() < 0.25:
            return {"failed": "status 1"}
        return raw
    add = journal.Journal.add

    def add_and_die(self, record):
        add(self, record)
        if record.get("failed"):
            raise Killed
    load = Load(0.1)
    failed = 0
    while True:
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(journal.Journal, "add", add_and_die)
                result = run(tmp_path, the_plan, flaky, resume=True)
            break
        except Killed:
            failed += 1
    assert failed and result["failures"]["arms"]["treated"]["failed"] == failed
    assert not result["keep"] and result["verdict"] != "improved"


def test_a_treatment_that_always_fails_regressed(tmp_path):
    load = Load(extra={"treated": {"failed": "status 1"}})
    result = run(tmp_path, plan(), load)
    assert result["verdict"] == "regressed"
    assert result["decision"] == "reject" and result["failures"]["harm"]


def test_a_load_that_never_worked_ends_it(tmp_path):
    with pytest.raises(errors.LoadFailed, match="worked yet: load failed: no"):
        run(tmp_path, plan(), Load(extra={
            "stock": {"failed": "no"}, "treated": {"failed": "no"}}))
    assert len(records(tmp_path)) == 2


# --- Guardrails -------------------------------------------------------------

def test_a_guardrail_that_is_not_shown_to_be_safe_is_not_kept(tmp_path):
    """A harm of 8 % with a noise of 5 %: the gain is certain, safety is not."""
    for seed in range(6):
        load = Load(0.3, noise=0.05, latency=0.08, seed=seed)
        result = campaign.run(plan(aa_pairs=0, looks=(12, 20, 32)), Book(),
                              load, lambda *_: None)
        assert result["verdict"] == "improved"
        assert result["decision"] in ("reject", "undecided")
        assert result["metrics"]["latency"]["safe"] in ("harmed", "not shown")


def test_an_unproven_guardrail_gets_the_further_looks():
    """The primary metric has its verdict at 24 pairs; that of the guardrail
    needs more, and the verdict at 24 stands."""
    load = Load(0.3, noise=0.06, seed=2)
    result = campaign.run(plan(aa_pairs=0, looks=(24, 40, 60)), Book(),
                          load, lambda *_: None)
    assert result["decision"] == "keep"
    assert result["metrics"]["goodput"]["pairs"] == 24
    assert result["metrics"]["latency"]["pairs"] > 24
    assert [look["verdict"] for look in result["looks"]] == \
        len(result["looks"]) * ["improved"]


# --- Carry-over -------------------------------------------------------------

class Lasting(Load):
    """A block after one of the treatment is slower."""

    before = ""

    def __call__(self, arm, seed, share=0):
        raw = super().__call__(arm, seed, share)
        raw["bytes_per_s"] *= 0.85 if self.before == "treated" else 1
        self.before = arm.name
        return raw


def test_a_carry_over_withholds_the_verdict():
    for seed in range(1, 9):
        result = campaign.run(plan(seed=seed, guardrails=()), Book(),
                              Lasting(seed=seed), lambda *_: None)
        one = result["carry_over"]["goodput"]
        assert one["found"] and one["bias"] > 1, one
        assert result["verdict"] == "inconclusive"
        assert "wash_out_s" in result["why"]


def test_no_carry_over_is_found_where_there_is_none():
    found = 0
    for seed in range(1, 101):
        result = campaign.run(
            plan(seed=seed, aa_pairs=0, guardrails=()), Book(),
            Load(0.05, 0.02, seed=seed), lambda *_: None)
        found += result["carry_over"]["goodput"]["found"]
    assert found <= 4


def test_wash_out(monkeypatch):
    """A pause before every block but the first."""
    paused = []
    monkeypatch.setattr(campaign, "pause", paused.append)
    campaign.run(plan(aa_pairs=0, wash_out_s=2.5), Book(), Load(0.05),
                 lambda *_: None)
    assert paused == [2.5] * 23


def test_the_order_is_balanced_in_every_four_pairs():
    for seed in range(1, 50):
        first = [experiment.draw(plan(seed=seed), "ab", pair, 0).order[0]
                 for pair in range(32)]
        assert all(sum(first[i:i + 4]) == 2 for i in range(0, 32, 4))
    assert len({tuple(experiment.draw(plan(seed=seed), "ab", pair, 0).order[0]
                      for pair in range(4)) for seed in range(50)}) == 6


# --- The A/A gate -----------------------------------------------------------

def test_noise_can_be_accepted():
    result = campaign.run(plan(accept_noise=True, guardrails=()), Book(),
                          Load(1.0, noise=0.2), lambda *_: None)
    assert result["decision"] == "keep"
    assert any("too noisy" in n and "accept_noise" in n
               for n in result["notes"])


def test_nothing_delivered_is_a_loss_and_no_accident(tmp_path):
    load = Load(extra={"treated": {"bytes_per_s": 0}})
    assert run(tmp_path, plan(), load)["verdict"] == "regressed"


# --- Deterministic samples --------------------------------------------------

@pytest.mark.parametrize("gain, verdict", [
    (0, "equivalent"), (0.05, "improved"), (-0.05, "regressed"),
    (0.01, "equivalent")])
def test_exact(tmp_path, gain, verdict):
    result = run(tmp_path, plan(), Load(gain, noise=0))
    assert result["verdict"] == verdict
    assert any("repeat exactly, for every" in n for n in result["notes"])


def test_exact_with_one_seed_is_said(tmp_path):
    result = run(tmp_path, plan(nuisance=False), Load(0.05, noise=0))
    assert any("one measurement" in n for n in result["notes"])
    assert {r["seed"] for r in records(tmp_path)} == {0}


def test_resolution(tmp_path):
    """Jitter well below it leaves no trace, an effect above it stays."""
    load = Load(0.05, noise=1e-5)
    result = run(tmp_path, plan(resolution_percent=1.0), load)
    assert result["verdict"] == "improved"
    metric = result["metrics"]["goodput"]
    assert abs(metric["effect"] - 5) <= 1 and metric["exact"]
    raw = {r["raw"]["bytes_per_s"] for r in records(tmp_path)}
    assert len(raw) == 40


def test_a_pair_shares_its_seed_and_pairs_do_not(tmp_path):
    run(tmp_path, plan(), Load())
    seeds = {}
    for record in records(tmp_path):
        seeds.setdefault((record["phase"], record["pair"]), set()).add(
            record["seed"])
    assert all(len(s) == 1 for s in seeds.values())
    assert len(set().union(*seeds.values())) >= 18


# --- Pairs and blocks -------------------------------------------------------

def record(side, attempt=0, session=1, void=""):
    return {"phase": "ab", "pair": 0, "attempt": attempt, "of": 2,
            "side": side, "session": session, "void": void, "n": attempt}


@pytest.mark.parametrize("blocks, attempts", [
    ([record(0), record(1)], [0]),
    ([record(0), record(1), record(0, 1), record(1, 1)], [0]),   # counted once
    ([record(0), record(1, session=2)], []),                   # not adjacent
    ([record(0, void="x"), record(0, 1), record(1, 1)], [1]),
    ([record(0), record(0)], []),
    ([record(0), record(1, void="x")], []),
])
def test_what_is_a_pair(blocks, attempts):
    counted = outcomes.pairs(blocks, "ab")
    assert [stock["attempt"] for stock, _ in counted] == attempts
    assert all((a["side"], b["side"]) == (0, 1) for a, b in counted)


@pytest.mark.parametrize("text, warm, runs", [
    (TEXT, False, 2),
    ("[design]\n[cell]\n[arms]\na = {}\nb = {}\n", False, 3),
    ("[design]\n[cell]\n[arms]\na = {}\nb = {}\n", True, 2),
])
def test_the_first_block_of_a_cell_is_run_twice(monkeypatch, text, warm, runs):
    place = block.Runner(experiment_file.parse(Path("e.toml"), text), warm=warm)
    seen = []
    monkeypatch.setattr(place, "_load", lambda arm, seed: seen.append(seed)
                        or {"is": len(seen)})
    assert place.measure(place.plan.arms[0], 5, 0)["is"] == runs - 1
    assert place.measure(place.plan.arms[0], 6, 0)["is"] == runs
    assert seen == [5] * (runs - 1) + [6]


def test_nothing_received_has_a_cost_per_byte_of_none(tmp_path):
    """It fails the block; a division by zero ended mssab."""
    text = '[design]\nprimary = "cpu"\naa_pairs = 0\n[arms]\na = {}\nb = {}\n'
    text = text.replace("[arms]", '[cell]\nload = "tcpload"\n[arms]')
    the_plan = experiment_file.parse(Path("e.toml"), text)
    assert "nothing arrived" in sanity.failed(
        the_plan, {"bytes_per_s": 1, "cpu_ns": 5, "received": 0})


def test_a_congestion_control_that_is_not_there_is_found_before():
    host.check_congestion_control("reno")
    with pytest.raises(errors.NotSupported, match="no-such: .*has .*reno"):
        host.check_congestion_control("no-such")


def test_a_stalled_program_is_stopped_by_what_blocks_took(monkeypatch):
    """The limit follows the longest block that worked, or the file."""
    limits = []

    def program(argv, env, limit):
        limits.append(limit)
        time.sleep(0.02)
        if len(limits) == 3:
            raise errors.LoadFailed("true: no end")
        return {"bytes_per_s": 1.0, "latency": 1.0}
    monkeypatch.setattr(block.loads, "program", program)
    the_plan = plan()
    with block.Runner(the_plan) as runner:
        seen = [runner.measure(the_plan.arms[0], 1, 0) for _ in range(4)]
    assert limits[0] == 4000 and 120 <= limits[1] < 130
    assert "failed" in seen[2] and limits[3] < 130
    with block.Runner(plan(limit_s=7.0)) as runner:
        runner.measure(the_plan.arms[0], 1, 0)
    assert limits[-1] == 7


def test_a_program_that_hangs_has_failed(tmp_path):
    """For real: sleep a long time, limit 0.2 s."""
    text = TEXT.replace('["true"]', '["sleep", "1000"]').replace(
        "pairs = 12", "pairs = 12\nlimit_s = 0.2")
    the_plan = experiment_file.parse(Path("e.toml"), text)
    start = time.monotonic()
    with block.Runner(the_plan) as runner:
        raw = runner.measure(the_plan.arms[0], 1, 0)
    assert "no end after 0.2 s" in raw["failed"] and time.monotonic() - start < 10


def test_kill_9_leaves_no_load(tmp_path):
    """Of a load that starts another process, neither is left."""
    pids = tmp_path / "pids"
    load = (f"sleep 1000 & echo $! >>{pids}; echo $$ >>{pids}; "
            f"touch {tmp_path}/there; wait")
    code = ("import sys; sys.path.insert(0, sys.argv[1])\n"
            "from mssab.run import loads\n"
            "loads.program(('sh', '-c', sys.argv[2]), {}, 60)")
    process = subprocess.Popen([sys.executable, "-c", code,
                                str(TOP / "userspace/mssab"), load])
    end = time.monotonic() + 20

    def wait_for(condition):
        while not condition():
            assert time.monotonic() < end
            time.sleep(0.01)    # polling interval
    wait_for((tmp_path / "there").exists)
    process.kill()
    process.wait()
    for pid in pids.read_text().split():
        wait_for(lambda pid=pid: has_ended(pid))
