# SPDX-License-Identifier: GPL-2.0-only
"""bisect-packaged with a fake step: it must find what was planted, wherever,
go round what cannot be told, and never name a release it has no verdict on."""
import importlib.machinery
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/bisect-packaged"
LIST = """\
6.1.0-9-amd64          6.1.170-3
6.1.0-10-amd64         6.1.172-1
6.12.90+deb13-amd64    6.12.90-1
6.12.90+deb13.1-amd64  6.12.90-2
6.12.100+deb12-amd64   6.12.100-1~deb12u1
6.12.100+deb13-amd64   6.12.100-1
6.18.5+deb13-amd64     6.18.5-1~bpo13+1
6.18.15+deb13-amd64    6.18.15-1~bpo13+1
7.2.12+deb13-amd64     7.2.12-1~bpo13+1
7.3.4+deb13-amd64      7.3.4-1~bpo13+1   here
"""
RELEASES = [line.split()[0] for line in LIST.splitlines()]
OF_DEB13 = [r for r in RELEASES if "deb12" not in r]
GOOD, BAD = RELEASES[0], RELEASES[-1]


def load():
    loader = importlib.machinery.SourceFileLoader("bisect_packaged",
                                                  str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Tree:
    """A tree with the script in it, and fakes of what it calls."""

    def __init__(self, top):
        self.top = top
        (top / "scripts").mkdir()
        shutil.copy(SCRIPT, top / "scripts")
        (top / "list").write_text(LIST)
        self.base = top / "base"
        self.base.mkdir()
        self.program("packaged-kernels", f"""
            case $1 in
            list) cat {top}/list ;;
            fetch) ! grep -qx "$2" {top}/lost 2>/dev/null &&
                echo /nowhere/boot/vmlinuz-$2 ;;
            esac""")

    def program(self, name, text):
        path = self.top / "scripts" / name
        path.write_text("#!/bin/bash\n" + text + "\n")
        path.chmod(0o755)

    def step(self, verdicts, before="", default=0):
        """The step ends with the status that verdicts has for a release."""
        lines = "".join(f"*/vmlinuz-{release}) exit {status} ;;\n"
                        for release, status in verdicts.items())
        self.program("bisect-step", f"""
            [ "$1" != --good ] || {{
                echo "$*" >>{self.top}/recorded
                exit; }}
            echo "$*" >>{self.top}/asked
            release=${{*##*/vmlinuz-}}
            echo moved: ${{release##* }}
            {before}
            case ${{*: -1}} in
            {lines}*) exit {default} ;;
            esac""")

    def first_bad(self, release, skip=(), **more):
        bad = RELEASES[RELEASES.index(release):]
        self.step({**dict.fromkeys(skip, 125),
                   **{r: 1 for r in bad if r not in skip}}, **more)

    def words(self, *words):
        return [str(self.top / "scripts/bisect-packaged"), *words]

    def run(self, *words, base=True):
        if base:
            words = ("--base", str(self.base), *words)
        return subprocess.run(self.words(*words), capture_output=True,
                              text=True, check=False)

    def found(self, *words, status=0):
        done = self.run("--json", *words)
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout)

    def asked(self):
        return [line.rsplit("vmlinuz-")[-1]
                for line in (self.top / "asked").read_text().splitlines()]


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    return Tree(tmp_path)


@pytest.mark.parametrize("planted", OF_DEB13[1:])
def test_found_wherever_it_is(tree, planted):
    tree.first_bad(planted)
    found = tree.found(GOOD, BAD)
    assert found["first_bad"] == planted
    assert found["last_good"] == OF_DEB13[OF_DEB13.index(planted) - 1]
    assert found["untold"] == []
    assert found["moved"] == [f"moved: {planted}"]
    assert len(tree.asked()) == len(set(tree.asked())) <= 2 + 3


def search(module, length, first, skipped=()):
    """bisect() over numbers."""
    asked = []

    def judge(index):
        asked.append(index)
        return (module.SKIP if index in skipped else
                module.BAD if index >= first else module.GOOD)
    return module.bisect(list(range(length)), judge), asked


def test_every_place_of_every_length():
    module = load()
    for length in range(2, 40):
        for first in range(1, length):
            (low, high, untold), asked = search(module, length, first)
            assert (low, high, untold) == (first - 1, first, [])
            assert len(asked) <= 2 + (length - 2).bit_length()
            assert len(asked) == len(set(asked))


def test_every_place_with_every_skip():
    """With skips the answer holds the right one, and is as narrow as the
    verdicts allow: between two that were told apart all are skipped."""
    module = load()
    for first in range(1, 8):
        for mask in range(1 << 6):
            skipped = {i + 1 for i in range(6) if mask >> i & 1}
            (low, high, untold), _ = search(module, 8, first, skipped)
            assert low < first <= high
            assert low not in skipped and high not in skipped
            assert set(untold) <= skipped
            assert untold == list(range(low + 1, high))


def test_skips_go_to_a_neighbour(tree):
    tree.first_bad("6.18.5+deb13-amd64", skip=["6.12.100+deb13-amd64"])
    done = tree.run(GOOD, BAD)
    assert done.returncode == 125
    assert ("The first bad release is one of 6.12.100+deb13-amd64, "
            "6.18.5+deb13-amd64 (last good: 6.12.90+deb13.1-amd64)"
            in done.stdout)


def test_what_cannot_be_fetched_is_skipped(tree):
    (tree.top / "lost").write_text("6.12.100+deb13-amd64\n")
    tree.first_bad("6.18.15+deb13-amd64")
    found = tree.found(GOOD, BAD)
    assert found["first_bad"] == "6.18.15+deb13-amd64"
    assert [s["release"] for s in found["steps"]
            if s["verdict"] == "skip"] == ["6.12.100+deb13-amd64"]


@pytest.mark.parametrize("verdicts, status, sentence", [
    ({GOOD: 1, BAD: 1}, 1, f"{GOOD} is bad, and was given as good"),
    ({GOOD: 0, BAD: 0}, 1, f"{BAD} is good, and was given as bad"),
    ({GOOD: 125, BAD: 1}, 125, f"{GOOD}, given as good, cannot be judged"),
    ({GOOD: 0, BAD: 125}, 125, f"{BAD}, given as bad, cannot be judged"),
    ({GOOD: 2}, 2, "ended with status 2"),
    ({GOOD: 3}, 3, "ended with status 3"),
    ({GOOD: 124}, 125, "ended with status 124"),
    ({GOOD: 0, BAD: 137}, 125, "ended with status 137"),
])
def test_ends_are_verified(tree, verdicts, status, sentence):
    tree.step(verdicts)
    done = tree.run(GOOD, BAD)
    assert done.returncode == status
    assert sentence in done.stderr
    assert set(tree.asked()) <= {GOOD, BAD}
    assert "First bad" not in done.stdout


def test_one_sentence_and_where_to_read_on(tree):
    tree.first_bad("6.18.15+deb13-amd64")
    said = tree.run("6.12", BAD).stdout
    assert ("First bad release: 6.18.15+deb13-amd64 (last good: "
            "6.18.5+deb13-amd64), workload ping-pong.") in said
    assert "git log --oneline v6.18.5..v6.18.15 -- net include/net" in said
    assert "moved: 6.18.15+deb13-amd64" in said
    tree.first_bad("6.12.90+deb13.1-amd64")
    assert "Both are upstream's 6.12.90" in tree.run(GOOD, BAD).stdout


def test_the_step_is_asked_as_told(tree):
    tree.first_bad(BAD)
    tree.run("--workload", "churn", "7.2", "7.3", "--", "--tolerance", "1%")
    assert ((tree.top / "asked").read_text().splitlines()[0] ==
            f"-w churn -b {tree.base} --tolerance 1% "
            "/nowhere/boot/vmlinuz-7.2.12+deb13-amd64")


def test_baseline_is_recorded_on_good(tree):
    tree.first_bad(BAD)
    done = tree.run("7.2", "7.3", base=False)
    assert done.returncode == 0, done.stderr
    folder = (tree.top / "build/bisect" /
              "ping-pong-7.2.12+deb13-amd64-7.3.4+deb13-amd64")
    assert (tree.top / "recorded").read_text() == (
        f"--good -w ping-pong -b {folder} "
        "/nowhere/boot/vmlinuz-7.2.12+deb13-amd64\n")
    assert (tree.top / "asked").read_text().count(f"-b {folder} ") == 2
    tree.run("--resume", "7.2", "7.3", base=False)
    assert len((tree.top / "recorded").read_text().splitlines()) == 1
    tree.program("bisect-step", "exit 128")
    assert tree.run("7.2", "7.3", base=False).returncode == 125


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130),
                                            (signal.SIGTERM, 143)])
def test_interrupted_it_goes_on_where_it_was(tree, number, status):
    """The third step hangs; the two verdicts before it are kept, and what
    was started does not outlive the bisection."""
    wanted = "6.18.5+deb13-amd64"
    tree.first_bad(wanted, before=f"""
        [ "$(wc -l <{tree.top}/asked)" -lt 3 ] || {{
            echo $$ >{tree.top}/hangs.new
            mv {tree.top}/hangs.new {tree.top}/hangs
            exec sleep 1000; }}""")
    words = ("--base", str(tree.base), GOOD, BAD)
    with subprocess.Popen(tree.words(*words), text=True,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not (tree.top / "hangs").exists():
            assert time.monotonic() < end and process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == status
    with pytest.raises(ProcessLookupError):
        os.kill(int((tree.top / "hangs").read_text()), 0)
    (tree.top / "asked").unlink()
    tree.first_bad(wanted)
    assert tree.found("--resume", GOOD, BAD)["first_bad"] == wanted
    assert GOOD not in tree.asked() and BAD not in tree.asked()


@pytest.mark.parametrize("words, status, sentence", [
    ([], 2, "usage:"),
    (["6.1"], 2, "usage:"),
    (["5.4", "6.12"], 2, "have no kernel 5.4"),
    (["6.18", "6.12"], 2, "is not older than"),
    (["6.18", "6.18"], 2, "is not older than"),
    (["--base", "none", "6.1", "7.3"], 2, "no such folder"),
    (["--resume", "6.1", "7.3"], 2, "nothing to resume"),
])
def test_usage_is_one_clear_sentence(tree, words, status, sentence):
    tree.step({})
    done = tree.run(*words)
    assert done.returncode == status
    assert sentence in done.stderr


@pytest.mark.parametrize("good, bad, releases", [
    # One line of a series that two Debian releases build: BAD's,
    ("6.1.0-10-amd64", "6.18.5+deb13-amd64", [
        "6.1.0-10-amd64", "6.12.90+deb13-amd64", "6.12.90+deb13.1-amd64",
        "6.12.100+deb13-amd64", "6.18.5+deb13-amd64"]),
    ("6.1.0-10-amd64", "6.12.100+deb12-amd64",
     ["6.1.0-10-amd64", "6.12.100+deb12-amd64"]),
    # but in GOOD's series that of GOOD.
    ("6.12.100+deb12-amd64", "6.18.5+deb13-amd64",
     ["6.12.100+deb12-amd64", "6.18.5+deb13-amd64"]),
    ("6.12.100+deb12-amd64", "6.12.100+deb13-amd64",
     ["6.12.100+deb12-amd64", "6.12.100+deb13-amd64"]),
])
def test_compilers_are_not_mixed(good, bad, releases):
    assert load().between(good, bad, RELEASES) == releases
