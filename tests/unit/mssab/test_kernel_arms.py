# SPDX-License-Identifier: GPL-2.0-only
"""Arms that differ by kernel: what is asked of scripts/guest, which a script
plays here, and what becomes of a block whose guest dies."""
import contextlib
import functools
import json
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import cli, errors  # noqa: E402
from mssab.commands import block as cmd_block  # noqa: E402
from mssab.experiment import experiment_file  # noqa: E402
from mssab.run import guests  # noqa: E402
from mssab.statistics import sanity  # noqa: E402

GUESTS = guests.Guests

TEXT = '''run = "deterministic"
[design]
aa_pairs = 0
pairs = 8
[cell]
load = "tcpload"
[arms]
old = { kernel = "6.1" }
new = { kernel = "6.12" }
'''
GUEST = '''#!/bin/bash
# Plays scripts/guest: notes what was asked for, then does what ACT says.
echo "$*" >>"$ASKED"
kernel=$2
case $* in
*--release*)
    [ "$kernel" != "5.4" ] || { echo "guest: no kernel image for 5.4" >&2; exit 2; }
    echo "$kernel.0-x"; exit ;;
esac
while [ "$1" != -- ]; do [ "$1" != --rwdir ] || folder=$2; shift; done
[ -s "$folder/e.toml" ] || { echo "no experiment in $folder"; exit 9; }
case "$* " in *" -o "*) raw=$folder/raw ;; *) raw=/dev/null ;; esac
eval "$ACT"
'''
MEASURE = 'echo "{\\"bytes_per_s\\": ${kernel#6.}e6}" >"$raw"'


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A tree with that script, and the guests of the experiment in it."""
    def build(text=TEXT, act=MEASURE):
        script = tmp_path / "scripts/guest"
        script.parent.mkdir(exist_ok=True)
        script.write_text(GUEST)
        script.chmod(0o755)
        monkeypatch.delenv("MSSFRAC_GUEST", raising=False)
        monkeypatch.setenv("ACT", act)
        monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
        return guests.Guests(experiment_file.parse(Path("e.toml"), text),
                             Path("some/e.toml"), text, tmp_path)
    return build


def asked(tmp_path):
    return (tmp_path / "asked").read_text().splitlines()


def test_each_block_boots_the_kernel_of_its_arm(place, tmp_path):
    there = place()
    there.find()
    assert there.kernel() == "6.1.0-x v 6.12.0-x"
    assert there.module_version() == ""
    with there:
        old, new = there.plan.arms
        assert there.measure(old, 7, 0) == {"bytes_per_s": 1e6}
        assert there.measure(new, 7, 0) == {"bytes_per_s": 12e6}
    boots = [line for line in asked(tmp_path) if "--release" not in line]
    # Both arms were set up before anything was measured.
    assert len(boots) == 4 and " -o " not in boots[0] + boots[1]
    assert boots[3].startswith("--kernel 6.12 --mode deterministic ")
    assert " --seed 7 --rwdir " in boots[3]
    assert "/e.toml new --seed 7 -o /" in boots[3]
    assert "insmod" not in boots[3]
    assert not list((tmp_path / "build/guest").iterdir())


def test_the_module_of_each_kernel(place, tmp_path):
    text = TEXT.replace('old = { ', 'old = { rx_frac = 8, ')
    there = place(text)
    with pytest.raises(errors.NotSupported, match="run make kmod KERNEL=6.1$"):
        there.find()
    for release in ("6.1.0-x", "6.12.0-x"):
        module = tmp_path / f"build/kmod/{release}/mssfrac.ko"
        module.parent.mkdir(parents=True)
        module.touch()
    there.find()
    there.measure(there.plan.arms[1], 1, 0)
    assert "insmod" in asked(tmp_path)[-1]
    assert str(module) in asked(tmp_path)[-1]


@pytest.mark.parametrize("act, reason", [
    ('echo "guest: no end marker" >&2; exit 124', "guest: no end marker"),
    ('echo "guest: it ended" >&2; exit 125', "guest: it ended"),
    (MEASURE + '; echo "guest: the kernel complained" >&2; exit 1',
     "guest: the kernel complained"),
])
def test_a_dead_guest_fails_its_block(place, act, reason):
    there = place(act=act)
    there.find()
    there.tried = True
    arm = there.plan.arms[1]
    raw = there.measure(arm, 1, 0)
    assert raw == {"dead_guest": reason}
    assert sanity.failed(there.plan, raw) == f"dead guest: {reason}"


@pytest.mark.parametrize("act, kind, sentence", [
    ('echo "mssab: no nuttcp on PATH"; exit 3', errors.NotSupported,
     "arm new, kernel 6.12.0-x: no nuttcp on PATH"),
    ('echo "mssab: tc: what"; echo more; exit 1', errors.MssabError, "tc: what"),
    ("exit 0", errors.MssabError, "no output"),
    ("exit 2", errors.MssabError, "no output"),
])
def test_what_fails_is_reported(place, act, kind, sentence):
    there = place(act=act)
    there.find()
    there.tried = True
    with pytest.raises(kind, match=sentence):
        there.measure(there.plan.arms[1], 1, 0)


def test_a_guest_that_dies_when_set_up_ends_it(place):
    there = place(act='echo "guest: it hangs" >&2; exit 124')
    there.find()
    with pytest.raises(errors.MssabError, match="cannot be set up: guest: it"):
        there.measure(there.plan.arms[1], 1, 0)


def test_what_is_missing_is_reported_first(place, tmp_path, monkeypatch):
    there = place(TEXT.replace("6.12", "5.4"))
    with pytest.raises(errors.NotSupported, match="arm new: guest: no kernel"):
        there.find()
    monkeypatch.setenv("MSSFRAC_GUEST", "fast")
    with pytest.raises(errors.NotSupported, match="this is one"):
        there.find()
    monkeypatch.delenv("MSSFRAC_GUEST")
    there.script.unlink()
    with pytest.raises(errors.NotSupported, match="of the source tree"):
        there.find()


FLAKY = """
count=$(wc -l <"$ASKED")
[ $((count % 9)) != 0 ] || { echo "guest: it ended" >&2; exit 125; }
""" + MEASURE


def mssab(tmp_path, monkeypatch, text, *options):
    (tmp_path / "e.toml").write_text(text)
    monkeypatch.setattr(guests, "Guests", functools.partial(
        GUESTS, tree=tmp_path))
    monkeypatch.setattr(sys, "argv", [
        "mssab", "run", str(tmp_path / "e.toml"), "-o", str(tmp_path / "r"),
        "--no-report", *options])
    return cli.main()


def test_an_experiment(place, tmp_path, monkeypatch, capsys):
    """From the command line to the verdict, through guests that die."""
    place(act=FLAKY)
    text = TEXT.replace("[design]", "[design]\nseed = 1") \
        + "[metrics.goodput]\nmargin = 5\n"
    assert mssab(tmp_path, monkeypatch, text) == 0
    out = capsys.readouterr().out
    assert "kernel 6.1.0-x v 6.12.0-x, old v new" in out
    assert "KEEP: improved: goodput +1100.0 %" in out
    result = json.loads((tmp_path / "r/result.json").read_text())
    dead = sum(arm["reasons"].get("dead guest", 0)
               for arm in result["failures"]["arms"].values())
    # 2 look-ups and 2 rehearsals, then at least 16 blocks.
    assert dead == len(asked(tmp_path)) // 9 > 0
    manifest = json.loads((tmp_path / "r/manifest.json").read_text())
    assert manifest["run"] == "deterministic"
    assert manifest["kernel"] == "6.1.0-x v 6.12.0-x"
    boots = len(asked(tmp_path))
    assert mssab(tmp_path, monkeypatch, text, "--resume") == 0
    assert len(asked(tmp_path)) == boots + 2  # look-ups: nothing is left to do
    script = tmp_path / "scripts/guest"
    script.write_text(GUEST.replace(".0-x", ".1-x"))
    assert mssab(tmp_path, monkeypatch, text, "--resume") == 2
    assert "begun with another kernel" in capsys.readouterr().err


class Options:
    arm, seed = "new", 7

    def __init__(self, folder):
        self.file = folder / "e.toml"
        self.file.write_text(TEXT)
        self.output = folder / "raw"


def test_a_block(tmp_path, monkeypatch):
    """In the guest: the one arm, and the settings of both."""
    seen = []

    class Runner:
        def __init__(self, plan, keys, warm):
            assert warm, "each guest has one block"
            seen.append(([arm.name for arm in plan.arms], keys))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def measure(self, arm, seed, share):
            return {"is": [arm.name, seed, share]}
    monkeypatch.setattr(cmd_block.block, "Runner", Runner)
    monkeypatch.setattr(cmd_block.host, "alone", contextlib.nullcontext)
    options = Options(tmp_path)
    assert cmd_block.run(options) == 0
    assert seen == [(["new", "new"], [])]
    assert json.loads(options.output.read_text()) == {"is": ["new", 7, 0]}
    options.arm = "neu"
    with pytest.raises(errors.UsageError, match=r"no arm neu \(arms: old, new"):
        cmd_block.run(options)


def test_a_block_needs_the_standard_library_only():
    """A guest's own root may have no more."""
    import subprocess
    code = ("import sys; sys.modules['numpy'] = sys.modules['scipy'] = None; "
            "from mssab import cli\nfrom mssab.commands import block")
    subprocess.run([sys.executable, "-c", code], check=True,
                   cwd=TOP / "userspace/mssab")
