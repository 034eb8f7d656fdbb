# SPDX-License-Identifier: GPL-2.0-only
"""The runner must call a failure a failure: canned output of tests that
crashed, stopped half-way, hung or did not run at all."""
import importlib.machinery
import importlib.util
import signal
import time
from pathlib import Path

import ktap
import plan
import pytest
from ktap import FAILED, PASSED, SKIPPED, Case

TESTS = Path(__file__).resolve().parents[2]

GOOD = "KTAP version 1\n1..2\nok 1 first\nok 2 - second\n"


def load_runner():
    loader = importlib.machinery.SourceFileLoader("run", str(TESTS / "run"))
    spec = importlib.util.spec_from_loader("run", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def outcomes(output, status):
    return [case.outcome for case in ktap.judge(output, status)]


def why(output, status):
    return [case.reason for case in ktap.judge(output, status)
            if case.outcome == FAILED]


def test_good():
    assert outcomes(GOOD, 0) == [PASSED, PASSED]


def test_remarks_between_cases_do_not_count():
    noisy = GOOD.replace("ok 2", "# ok 7 is no case\nnoise not ok 3\nok 2")
    assert outcomes(noisy, 0) == [PASSED, PASSED]


@pytest.mark.parametrize("output, status, reason", [
    (GOOD, None, "did not end"),
    (GOOD, 124, "ran into its time limit"),
    (GOOD, 139, "unexpected exit status 139"),
    (GOOD, 2, "unexpected exit status 2"),
    (GOOD, 4, "unexpected exit status 4"),
    (GOOD, 1, "exit status 1 although no case failed"),
    (GOOD.replace("1..2", "1..3"), 0, "planned 3 cases, reported 2"),
    (GOOD.replace("1..2", "1..1"), 0, "planned 1 cases, reported 2"),
    (GOOD.replace("1..2\n", ""), 0, "no plan"),
    (GOOD + "1..2\n", 0, "two plans"),
    (GOOD.replace("ok 2", "ok 1"), 0, "case 1 is out of order"),
    (GOOD + "Bail out! no memory\n", 0, "Bail out! no memory"),
    ("1..0\n", 0, "planned no case"),
    ("", 0, "no plan"),
    ("", 4, "skipped without a reason"),
])
def test_whole_test_fails(output, status, reason):
    assert reason in why(output, status)


def test_failed_case():
    assert outcomes(GOOD.replace("ok 2", "not ok 2"), 1) == [PASSED, FAILED]


def test_failed_case_with_good_status():
    bad = GOOD.replace("ok 2", "not ok 2")
    assert "exit status 0 although a case failed" in why(bad, 0)


def test_skips_need_a_reason():
    skip = "1..1\nok 1 deep # SKIP no tracefs\n"
    assert ktap.judge(skip, 0) == [Case("deep", SKIPPED, "no tracefs")]
    assert outcomes("1..1\nok 1 deep # SKIP\n", 0) == [FAILED]
    meant = "1..1\nok 1 stalls without the module # XFAIL a stock kernel\n"
    assert ktap.judge(meant, 0) == [Case("stalls without the module", PASSED)]
    whole = ktap.judge("1..0 # SKIP no BTF\n", 4)
    assert whole == [Case("(whole test)", SKIPPED, "no BTF")]


def in_guest(*sections):
    return "".join(f"# begin {name}\n{text}\n# end {name} {rest}\n"
                   if rest else f"# begin {name}\n{text}"
                   for name, text, rest in sections)


def failed_tests(verdict):
    return {name for name, cases in verdict.items()
            if any(case.outcome == FAILED for case in cases)}


def test_guest_good():
    text = in_guest(("test_a.sh", GOOD, "status=0 seconds=3"),
                    ("test_b.sh", GOOD, "status=0 seconds=4"))
    verdict = ktap.judge_guest(text, 0, ["test_a.sh", "test_b.sh"])
    assert not failed_tests(verdict)
    assert ktap.sections(text)["test_b.sh"].seconds == 4


def test_guest_crash_in_the_middle():
    text = in_guest(("test_a.sh", GOOD, "status=0 seconds=3"),
                    ("test_b.sh", "KTAP version 1\n1..9\nok 1 x\n", ""))
    verdict = ktap.judge_guest(text, 125, ["test_a.sh", "test_b.sh",
                                           "test_c.sh"])
    assert failed_tests(verdict) == {"test_b.sh", "test_c.sh", "kernel"}
    assert verdict["test_c.sh"][0].reason == "did not run"
    assert verdict["kernel"][0].reason == "the guest crashed"


@pytest.mark.parametrize("status", [1, 2, 124, 125, 130])
def test_guest_verdict_counts_when_all_scripts_passed(status):
    text = in_guest(("test_a.sh", GOOD, "status=0 seconds=3"))
    verdict = ktap.judge_guest(text, status, ["test_a.sh"])
    assert failed_tests(verdict) == {"kernel"}


def test_guest_script_left_something_behind():
    text = in_guest(("test_a.sh", GOOD,
                     "status=0 seconds=3 left=namespace x;"))
    verdict = ktap.judge_guest(text, 0, ["test_a.sh"])
    assert failed_tests(verdict) == {"test_a.sh"}


def test_guest_cannot_claim_another_end():
    text = "# begin test_a.sh\n1..1\nok 1 x\n# end test_b.sh status=0 seconds=1\n"
    verdict = ktap.judge_guest(text, 0, ["test_a.sh", "test_b.sh"])
    assert failed_tests(verdict) == {"test_a.sh", "test_b.sh"}


def test_report_counts_and_closes(capsys):
    report = load_runner().Report()
    report.add("a", [Case("x", PASSED), Case("y", SKIPPED, "no tracefs")])
    assert report.close() == 0
    assert capsys.readouterr().out.endswith("1 passed, 0 failed, 1 skipped\n")
    report.add("b", [Case("z", FAILED, "broke")], "its output\n")
    assert report.close() == 1
    printed = capsys.readouterr().out
    assert "| its output" in printed and "broke" in printed
    assert printed.endswith("1 passed, 1 failed, 1 skipped\n")


def test_nothing_ran_is_a_failure(capsys):
    run = load_runner()
    assert run.Report().close() == 1
    only_skips = run.Report()
    only_skips.add("a", [Case("x", SKIPPED, "why")])
    assert only_skips.close() == 1
    silent = run.Report()
    silent.add("a", [])
    assert silent.close() == 1


def test_warnings_and_status_of_builds():
    run = load_runner()

    def outcome(text, status):
        return run.one_case("x", text, status, run.WARNING)[0].outcome

    assert outcome("  CC main.o\n", 0) == PASSED
    assert outcome("main.c:3:1: warning: unused\n", 0) == FAILED
    assert outcome("WARNING: modpost: missing\n", 0) == FAILED
    assert outcome("", 2) == FAILED


@pytest.fixture(name="runner")
def _runner(tmp_path, monkeypatch):
    run = load_runner()
    monkeypatch.setattr(run, "LOGS", tmp_path)
    return run


def test_a_program_that_is_missing_fails_its_test_only(runner):
    output, status = runner.call("unit/x", ["/nonexistent/gcc", "x.c"])
    assert (output, status) == ("/nonexistent/gcc: No such file or directory\n", 127)


def test_a_program_started_after_the_signal_is_ended(runner):
    runner.stopping.set()
    begun = time.monotonic()
    assert runner.call("unit/x", ["sleep", "60"])[1] == -signal.SIGTERM
    assert time.monotonic() - begun < 20 and not runner.running


def test_pytest_without_results(tmp_path):
    run = load_runner()
    cases = run.pytest_cases(tmp_path / "none.xml", 3)
    assert [case.outcome for case in cases] == [FAILED]


def test_debug_kernel_runs_module_tests_only():
    assert set(plan.DEBUG.values()) == {"6.12", "7.2"}
    for debug in plan.DEBUG:
        paths = plan.scripts(debug, "fast", "check-all")
        names = {path.name for path in paths}
        assert {"test_module.sh", "test_stress.sh", "test_kunit.sh"} <= names
        assert {path.parent.name for path in paths} == {"kmod"}
        assert not plan.scripts(debug, "deterministic", "check")
        assert debug not in plan.kernels()


def scripts_of(level, *kernels):
    return {path.name for _, _, path in plan.tests(level, kernels).values()}


def test_levels_add_to_one_another():
    check, kernels, every = (set(plan.tests(level)) for level in plan.LEVELS)
    assert check < kernels < every
    assert {name for name in check if name.startswith("guest-6.1-")} == {
        f"guest-6.1-fast/scripts/{plan.SMOKE}"}
    long = {"test_tracers.sh", "test_rss.sh"}
    assert long <= scripts_of("check-all")
    assert not long & scripts_of("check-kernels")
    assert not {"test_kunit.sh"} & scripts_of("check-all")


def test_a_kernel_that_is_named_is_tested_in_full():
    assert "test_module.sh" in scripts_of("check", "6.1")
    assert scripts_of("check", "6.1") == scripts_of("check", "6.12")


@pytest.fixture(name="script")
def _script(tmp_path, monkeypatch):
    monkeypatch.setattr(plan, "GUEST", tmp_path)

    def write(name, comment=""):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n# Opening.\n{comment}\n# long: no mark\n")
        return path
    return write


def test_marks_of_the_opening_comment_choose_the_guest(script):
    paths = [script("test_a.sh"), script("test_b.sh"),
             script("test_c.sh", "# guest: --cpus 3\n# alone: it measures\n"),
             script("test_d.sh", "# alone: it measures\n"),
             script("test_long.sh", "# long: minutes\n"),
             script("test_kunit.sh", "# kernel: debug\n"),
             script("det_a.sh"), script("pathprof/test_a.sh")]
    assert plan.scripts("6.1", "fast", "check") == [paths[7], *paths[:4]]
    assert paths[4] in plan.scripts("6.1", "fast", "check-all")
    boots = plan.boots(plan.tests("check", ["6.1"]))
    assert [(boot.mode, boot.paths, boot.options, boot.alone)
            for boot in boots] == [
        ("fast", (paths[7],), (), False),
        ("fast", (paths[0], paths[1]), (), False),
        ("fast", (paths[2],), ("--cpus", "3"), True),
        ("fast", (paths[3],), (), True),
        ("deterministic", (paths[6],), (), False)]
    assert len({boot.tag for boot in boots if boot.mode == "fast"}) == 4


def test_a_name_that_no_test_has(monkeypatch, capsys):
    run = load_runner()
    monkeypatch.setattr(run.sys, "argv", ["tests/run", "--only", "mssab/test_rss"])
    with pytest.raises(SystemExit) as end:
        run.main()
    assert end.value.code == 2
    assert "mssab/test_rss: no test has such a name" in capsys.readouterr().err


def test_no_debug_kernel_is_no_kernel(tmp_path, monkeypatch):
    """It builds nothing without being asked: it prints this and ends."""
    run = load_runner()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for debug in plan.DEBUG:
        with pytest.raises(SystemExit) as end:
            run.image_of(debug)
        assert end.value.code == 1


def test_what_each_command_runs(tmp_path, monkeypatch):
    """check takes its own kernels, the others take them all; check-all, DKMS."""
    run = load_runner()
    monkeypatch.setattr(plan, "TOP", tmp_path)
    (tmp_path / "KERNELS").write_text(
        "# series image headers suite tested by\n"
        "6.1  i h bookworm smoke\n6.12  i h bookworm check\n"
        "7.2  i h trixie-backports check-kernels\n")
    assert list(plan.kernels("check")) == ["6.1", "6.12"]
    assert list(plan.kernels()) == ["6.1", "6.12", "7.2"]
    monkeypatch.setattr(run, "dkms_stage", lambda: [("dkms/bookworm", None)])
    assert "dkms/bookworm" not in run.names("check-kernels")
    assert "dkms/bookworm" in run.names("check-all")
    assert "build/kmod-7.2" in run.names("check-kernels")
    assert "build/kmod-7.2" not in run.names("check")


def test_after_leaves_out_what_ran_before(monkeypatch, capsys):
    run = load_runner()

    def listed(*args):
        monkeypatch.setattr(run.sys, "argv", ["tests/run", "--list", *args])
        assert run.main() == 0
        return set(capsys.readouterr().out.split())

    check, kernels = listed(), listed("--level", "check-kernels")
    assert check < kernels
    assert listed("--level", "check-kernels", "--after", "check") == kernels - check


def test_one_pair_of_guests():
    """The newest kernel of make check, with the oldest as its peer."""
    assert plan.pair() == ("6.12", "6.1")
    peers = [name for name in plan.tests("check-all") if "-peer/" in name]
    assert peers == ["guest-6.12-peer/kmod/peer_stall.sh"]
