# SPDX-License-Identifier: GPL-2.0-only
"""The rows of Documentation/results/seeds.rst: each has a state, measured numbers
stand on the page that the row names, files exist, and the counts agree."""
import re
from collections import Counter
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
RESULTS = TOP / "Documentation/results"
TEXT = (RESULTS / "seeds.rst").read_text()
STATES = ["measured", "computed", "not measured", "nothing to measure"]
PAPERS = ["SC2003", "Trapeze", "SDSC/GIAC", "Baker and Feng", "CESNET"]
PAGES = dict(re.findall(r"^\.\. _(\w+): (\S+)$", TEXT, re.M))


def rows(paper):
    """[item, paper, today, why] of each row of a paper's table."""
    lines = TEXT[TEXT.index(f"\n{paper}\n---"):].splitlines()
    borders = [n for n, line in enumerate(lines) if line.startswith("===")]
    spans = [match.span() for match in re.finditer("=+", lines[borders[0]])]
    found = []
    for line in lines[borders[1] + 1:borders[2]]:
        cells = [line[a:b].strip() for a, b in spans]
        if cells[0]:
            found.append(cells)
        else:
            found[-1] = [f"{old} {new}".strip()
                         for old, new in zip(found[-1], cells, strict=True)]
    return found


ROWS = [(paper, *row) for paper in PAPERS for row in rows(paper)]


def state(today):
    return re.match(r"\*\*([a-z ]+)\*\*", today)[1]


def test_counts():
    for paper in PAPERS:
        got = Counter(state(row[2]) for row in rows(paper))
        line = re.search(rf"^{paper}((?: +\d+)+)$", TEXT, re.M)
        assert [int(n) for n in line[1].split()] == [got[s] for s in STATES], paper
    got = Counter(state(row[3]) for row in ROWS)
    line = re.search(r"^all((?: +\d+)+)$", TEXT, re.M)
    assert [int(n) for n in line[1].split()] == [got[s] for s in STATES]
    assert len(ROWS) == sum(got.values()) and set(got) == set(STATES)


def files(today):
    for name in re.findall(r"\*([\w-]+\.toml)\*", today):
        place, = [folder for folder in ("experiments", "tests/bench/datagrams")
                  if (TOP / folder / name).is_file()]
        yield TOP / place / name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}, {row[1]}")
def test_row(row):
    _, item, paper, today, _ = row
    assert item and paper
    pages = [(RESULTS / PAGES[name]).read_text()
             for name in re.findall(r"`(\w+)`_", today)]
    whole = " ".join(" ".join(pages).split())
    for path in files(today):
        not_run = "Not run yet" in re.sub(r"\n# |\s+", " ", path.read_text())
        assert not_run == (state(today) == "not measured") or \
            path.name == "capture-reader.toml", path
    if state(today) == "measured":
        assert len(pages) == 1 and "arithmetic" not in today
        bare = re.sub(r"\*+[^*]+\*+|`[^`]+`", "", today)
        for number in re.findall(r"\d[\d,.]*\d|\d", bare):
            assert re.search(rf"(?<![\d.,]){re.escape(number)}(?![\d])", whole), \
                f"{item}: {number} is not on the page"
    elif state(today) == "computed":
        assert len(pages) == 1
    else:
        assert re.search("w(as|ere) not run", today) or not list(files(today)), item
