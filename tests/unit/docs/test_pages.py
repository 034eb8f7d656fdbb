# SPDX-License-Identifier: GPL-2.0-only
"""tests/lint/pages accepts a good page, and objects to each kind of bad one."""
import os
import subprocess
from pathlib import Path

import pytest

LINT = Path(__file__).resolve().parents[2] / "lint/pages"
GOOD = """\
.. SPDX-License-Identifier: GPL-2.0-only

====
Page
====

See `other`_, *scripts/run*, *other.rst*, ``tests/*.c`` and
`this site <https://www.kernel.org/>`_.

.. image:: picture.svg

==================================  ============================================
a table may be wider                than prose: up to 100 columns, as it is here
==================================  ============================================
because it holds results            that are hard to read when they are cut into lines
==================================  ============================================

Output as printed::

  a line of output that has more than eighty columns is not an error in a block

.. _other: other.rst
"""
BAD = {
    "a link to a missing page": (3, ("_other: other.rst", "_other: none.rst")),
    "a missing picture": (3, ("picture.svg", "none.svg")),
    "a missing file in emphasis": (3, ("*scripts/run*", "*scripts/none*")),
    "a missing page in emphasis": (3, ("*other.rst*", "*none.rst*")),
    "a pattern that fits no file": (3, ("tests/*.c", "tests/*.h")),
    "an unknown target": (2, ("`other`_", "`another`_")),
    "a malformed table": (2, ("results            that",
                              "results ........... that")),
    "a wide line of prose": (4, ("See `other`_,", "See `other`_, " + "word " * 9)),
    "a wide line of a table": (4, ("cut into lines", "cut into lines" * 3)),
    "a wide line of output": (4, ("a line of", "a line of" * 4)),
}


@pytest.fixture(name="tree")
def small_tree(tmp_path):
    for name in ("scripts/run", "tests/a.c", "page/other.rst",
                 "page/picture.svg"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("Other\n=====\n" if name.endswith("rst") else "")
    return tmp_path


def objections(tree, text, where="page/page.rst"):
    """The numbers of the checks that fail."""
    page = tree / where
    page.parent.mkdir(exist_ok=True)
    page.write_text(text)
    lint = subprocess.run([LINT, page], env={**os.environ, "TREE": str(tree)},
                          capture_output=True, text=True, check=False)
    lines = lint.stdout.splitlines()
    assert lines[:2] == ["KTAP version 1", "1..4"], lint.stderr
    found = [int(line.split()[2]) for line in lines
             if line.startswith("not ok")]
    assert lint.returncode == bool(found)
    return found


def test_a_good_page_passes(tree):
    assert objections(tree, GOOD) == []


@pytest.mark.parametrize("name", BAD)
def test_objects_to(tree, name):
    check, (old, new) = BAD[name]
    assert old in GOOD
    assert objections(tree, GOOD.replace(old, new)) == [check]


def test_a_page_of_results_follows_the_template(tree):
    text = "\n".join(f"{title}\n{'=' * len(title)}\n\nText.\n" for title in (
        "Question", "Method", "Result", "Threats to validity",
        "How to reproduce"))
    assert objections(tree, text, "results/page.rst") == []
    assert objections(tree, text.replace("Method", "Manner"),
                      "results/page.rst") == [1]
