# SPDX-License-Identifier: GPL-2.0-only
"""tests/readme: which commands it takes from README.rst, and what it judges."""
import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]


def load():
    loader = importlib.machinery.SourceFileLoader(
        "readme", str(TOP / "tests/readme"))
    spec = importlib.util.spec_from_loader("readme", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


readme = load()
PAGE = """\
Words.

.. run

::

  make demo             # why
  echo a#b

More words.

.. output

::

  make nothing

.. guest

::

  pathprof --top
"""


def test_commands_in_order_and_without_comments():
    assert [(c.kind, c.line) for c in readme.commands(PAGE)] == [
        ("run", "make demo"), ("run", "echo a#b"), ("guest", "pathprof --top")]


def test_a_block_without_a_kind_is_refused():
    with pytest.raises(ValueError, match="README.rst:3: no kind"):
        readme.commands("Words.\n\n::\n\n  make demo\n")


def test_the_readme_names_the_two_commands():
    found = [c.line for c in readme.commands((TOP / "README.rst").read_text())
             if c.kind == "run"]
    assert found.index("make demo") < found.index("make check")


@pytest.mark.parametrize("line, why", [
    ("true", ""),
    ("exit 3", "exit status 3"),
    ("no-such-program; true", "it prints 'command not found'"),
    ("cat /nowhere; true", "it prints 'No such file or directory'"),
    ("python3 -c 'import nowhere'; true",
     "it prints 'Traceback (most recent call last)'"),
])
def test_a_fault_is_found(line, why):
    assert readme.fault(*readme.run(line)) == why


def test_a_full_screen_command_gets_its_q(monkeypatch, tmp_path):
    program = tmp_path / "pathprof"
    program.write_text("#!/bin/bash\n[ -t 0 ] && [ -t 1 ] || exit 5\n"
                       "read -rn1 key; [ \"$key\" = q ]\n")
    program.chmod(0o755)
    monkeypatch.setattr(readme, "SCREEN", 0)
    assert readme.fault(*readme.run(f"{program} --top")) == ""


def test_a_command_that_takes_too_long_fails_and_the_next_runs(
        monkeypatch, capsys):
    monkeypatch.setattr(readme, "LIMIT", 1)
    assert readme.judge(["sleep 60", "true"]) == 1
    out = capsys.readouterr().out
    assert "not ok 1 sleep 60 # it takes over 1 s" in out
    assert "ok 2 true" in out
