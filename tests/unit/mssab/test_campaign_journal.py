# SPDX-License-Identifier: GPL-2.0-only
"""The results of a campaign on disk: being killed anywhere loses nothing and
counts nothing twice, results are not overwritten, damage is reported, and links
are not followed."""
import json
import os
import random
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from campaigns import Load, manifest, plan, records, run  # noqa: E402
from mssab import errors  # noqa: E402
from mssab.run import journal  # noqa: E402
from mssab.statistics import outcomes  # noqa: E402


# --- Killed anywhere --------------------------------------------------------

class Fixed(Load):
    """The same value for the same block, however often it is measured."""

    def __call__(self, arm, seed, share=0):
        self.calls.clear()
        return super().__call__(arm, seed, share)


def killed(tmp_path, the_plan, where):
    """Run until the write to disk number @where; False if it ended before."""
    child = os.fork()
    if not child:
        count = 0

        def counted(call):
            def wrapper(*args, **kwargs):
                nonlocal count
                count += 1
                if count == where:
                    os.kill(os.getpid(), signal.SIGKILL)
                return call(*args, **kwargs)
            return wrapper
        os.fsync = counted(os.fsync)
        Path.replace = counted(Path.replace)
        add = journal.Journal.add

        def torn(self, record):
            nonlocal count
            count += 1
            if count == where:  # half a line reaches the disk
                self._file.write(b'{"session": 1, "ph')
                self._file.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            add(self, record)
        journal.Journal.add = torn
        try:
            run(tmp_path, the_plan, Fixed(0.05), resume=True)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def plain(result):
    result = json.loads(json.dumps(result))
    result["void"].pop("interrupted_pairs")
    # Which blocks are adjacent, and how many there were.
    result.pop("carry_over")
    result.pop("failures")
    return result


@pytest.mark.parametrize("seed", range(6))
def test_killed_again_and_again(tmp_path, seed):
    """Every session lives for a few system calls; the result is that of a run
    that nobody disturbed."""
    the_plan = plan()
    whole = run(tmp_path / "whole", the_plan, Fixed(0.05))
    rng = random.Random(seed)
    kills = 0
    while killed(tmp_path, the_plan, rng.randrange(1, 16)):
        kills += 1
        path = tmp_path / "r" / journal.SAMPLES
        if path.exists():
            for line in path.read_bytes().split(b"\n")[:-1]:
                json.loads(line)
        assert kills < 300
    assert kills > 5
    result = run(tmp_path, the_plan, Fixed(0.05), resume=True)
    assert plain(result) == plain(whole)
    counted = outcomes.pairs(records(tmp_path), "ab")
    assert [stock["pair"] for stock, _ in counted] == list(range(12))


def test_half_a_pair_is_measured_again_as_a_pair(tmp_path):
    """Blocks of two sessions are not adjacent, and so no pair."""
    the_plan = plan()
    run(tmp_path, the_plan, Fixed(0.05))
    path = tmp_path / "r" / journal.SAMPLES
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:17]))  # the first block of the first pair
    result = run(tmp_path, the_plan, Fixed(0.05), resume=True)
    assert result["void"]["interrupted_pairs"] == 1
    assert len(records(tmp_path)) == 17 + 24
    assert records(tmp_path)[16]["session"] == 1  # nothing is lost


# --- The directory ----------------------------------------------------------

def test_results_are_not_overwritten(tmp_path):
    run(tmp_path, plan(), Load())
    with pytest.raises(errors.UsageError, match="holds results"):
        run(tmp_path, plan(), Load())
    for changed in (plan(seed=2), plan(effect_percent=4.0)):
        with pytest.raises(errors.UsageError, match="another experiment"):
            run(tmp_path, changed, Load(), resume=True)


def test_a_finished_run_measures_nothing_more(tmp_path):
    first = run(tmp_path, plan(), Load(0.05))
    load = Load(0.05)
    assert run(tmp_path, plan(), load, resume=True) == first
    assert not load.calls


def test_two_at_once_are_refused(tmp_path):
    with journal.opened(tmp_path / "r", manifest(plan()), False):
        with pytest.raises(errors.MssabError, match="another mssab"):
            run(tmp_path, plan(), Load(), resume=True)


def test_damage_is_reported(tmp_path):
    run(tmp_path, plan(), Load())
    path = tmp_path / "r" / journal.SAMPLES
    path.write_text("{}}\n" + path.read_text())
    with pytest.raises(errors.MssabError, match="samples.jsonl:1: damaged"):
        run(tmp_path, plan(), Load(), resume=True)


# --- Files ------------------------------------------------------------------

@pytest.mark.parametrize("name", ["lock", "samples.jsonl"])
def test_symbolic_links_are_not_followed(tmp_path, name):
    other = tmp_path / "other"
    other.write_text("precious\n")
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / name).symlink_to(other)
    with pytest.raises(errors.MssabError, match="symbolic link"):
        run(tmp_path, plan(), Load())
    assert other.read_text() == "precious\n"


def test_what_is_no_file_is_not_replaced(tmp_path):
    other = tmp_path / "other"
    other.write_text("precious\n")
    link = tmp_path / "result.json"
    link.symlink_to(other)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in link, pipe:
        with pytest.raises(errors.MssabError, match="not a regular file"):
            journal.write_whole(path, "x")
    (tmp_path / "new.json.new").symlink_to(other)
    journal.write_whole(tmp_path / "new.json", "x")
    assert other.read_text() == "precious\n"
