# SPDX-License-Identifier: GPL-2.0-only
"""How cells of the window grid are judged: a made-up grid whose verdicts
follow from arithmetic, and the counts and lists made of them."""
import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]


def load():
    loader = importlib.machinery.SourceFileLoader(
        "grid_report", str(TOP / "tests/bench/window/table.py"))
    spec = importlib.util.spec_from_loader("grid_report", loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["grid_report"] = module  # dataclasses look themselves up
    loader.exec_module(module)
    return module


REPORT = load()
W = 100_000


def cell(used=0.99, ratio=1.0, name=None, rtt=0.001, window=W, acted=True,
         **settings):
    """A cell whose treated arm used so much, by default of MTU 9000."""
    settings = {"link": "veth", "mtu": 9000, "rtt_ms": rtt * 1e3,
                "rcvbuf_max": 0, "rcvbuf_after_accept": 0,
                "window_segments": 5.5, "window_scaling": True,
                "write": 65536, "request": 0, "nagle": True,
                "congestion_control": "", "cwnd_max": 0, "gso": True,
                "gro": True, "qdisc": "", "ecn_mark_percent": 0.0,
                "ipv6": False, "seed": 0} | settings
    rate = used * window / (rtt or 1)
    arms = {arm: {"bytes_per_s": rate / by, "utilisation": used / by,
                  "usable_window": window, "acted": acted}
            for arm, by in (("stock", ratio), ("treated", 1))}
    return {"cell": name or json.dumps(settings), "settings": settings,
            "rtt": rtt, "arms": arms, "ratio": ratio}


def bulk(bytes_per_s, ratio=1.0, **settings):
    """Calibration: no delay, no window."""
    made = cell(rtt_ms=0, window_segments=0, write=131072, ratio=ratio,
                **settings)
    made["arms"] = {"stock": {"bytes_per_s": bytes_per_s / ratio},
                    "treated": {"bytes_per_s": bytes_per_s, "acted": True}}
    return made


def judged(made, *others):
    row, = [row for rows in REPORT.rows_of([made, *others]).values()
            for row in rows if row.name == made["cell"]]
    return row


# 1 GB/s: a window of 100 kB takes 0.1 ms, a tenth of the RTT: 1 / 1.1.
FAST = bulk(1e9)
CEILING = 1 / 1.1


@pytest.mark.parametrize("verdict, used, settings", [
    ("reached", 0.95, {}),
    ("processor-bound", 0.949, {"rtt": 0.0019}),    # ceiling 0.95
    ("processor-bound", CEILING + 0.01, {}),        # above its ceiling
    ("processor-bound", 0.9801 * CEILING, {}),
    ("short", 0.9799 * CEILING, {}),
    ("short", 0.949, {"rtt": 0.05}),                # ceiling 0.998
    ("reached", 0.90, {"window_segments": 1.9}),
    ("short", 0.85, {"window_segments": 1.9}),
    ("processor-bound", 0.895, {"window_segments": 1.9}),
    ("processor-bound", 0.90, {"window_segments": 2}),
    ("unknown", 0.90, {"mtu": 1500}),               # no calibration of it
    ("unknown", 0.90, {"link": "loopback"}),
    ("", 0.01, {"request": 1}),                     # the window is no limit
    ("", 0.01, {"window_segments": 0}),
])
def test_verdict(verdict, used, settings):
    assert judged(cell(used, **settings), FAST).verdict == verdict


def test_ceiling_is_the_processors_part():
    assert judged(cell(), FAST).ceiling == pytest.approx(CEILING)


def test_the_faster_arm_calibrates():
    slower_treated = bulk(0.5e9, ratio=0.5)
    assert judged(cell(), slower_treated).ceiling == pytest.approx(CEILING)


@pytest.mark.parametrize("other", [
    {"gso": False}, {"rcvbuf_max": 50000}, {"rtt_ms": 1.0},
    {"window_segments": 3.7}, {"nagle": False}])
def test_only_plain_bulk_calibrates(other):
    made = bulk(1e9) | {"cell": "no calibration"}
    made["settings"] = made["settings"] | other
    assert judged(cell(0.9), made).verdict == "unknown"


def test_cwnd_below_the_window():
    """4 segments of 8948 bytes in flight, of 49214; 2 % of slack."""
    most = 4 * 8948 / 49214
    for used, verdict in ((most * 0.99, "cwnd-bound"), (most * 0.97, "short")):
        made = cell(used, window=49214, cwnd_max=4)
        assert judged(made).verdict == verdict
    # A cwnd beyond the window is no limit.
    assert judged(cell(0.9, cwnd_max=40), FAST).verdict == "processor-bound"
    assert judged(cell(0.9, cwnd_max=40)).verdict == "unknown"


@pytest.mark.parametrize("ratio, worse", [(0.99, False), (0.9899, True)])
@pytest.mark.parametrize("settings", [{}, {"request": 16384},
                                      {"window_segments": 0}])
def test_never_worse_counts_in_every_cell(ratio, worse, settings):
    row = judged(cell(ratio=ratio, **settings), FAST)
    assert (row.worse, row.chance) == (worse, False)
    # Where no policy did anything the two arms are one.
    row = judged(cell(ratio=ratio, acted=False, **settings), FAST)
    assert (row.worse, row.chance) == (False, worse)


@pytest.mark.parametrize("words, settings", [
    ("base grid", {}),
    ("base grid", {"mtu": 1500, "window_scaling": False, "window_segments": 9}),
    ("Nagle off", {"nagle": False}),
    ("dctcp, 1 % marked", {"congestion_control": "dctcp",
                           "ecn_mark_percent": 1.0}),
    ("write 1024", {"write": 1024}),
    ("no window set", {"window_segments": 0, "write": 131072}),
    ("seed 3", {"seed": 3}),
    ("request 1", {"request": 1}),
])
def test_factor(words, settings):
    assert judged(cell(**settings)).factor == words


def grid():
    return [FAST, cell(0.97), cell(0.90, mtu=1500), cell(0.905, seed=1),
            cell(0.5, ratio=0.8, seed=2), cell(0.99, ratio=9, seed=1, mtu=1500)]


def numbers(text, factor):
    line, = [line for line in text.splitlines() if line.startswith(factor)]
    return line.split()[len(factor.split()):]


def test_counts():
    text = REPORT.counts(REPORT.rows_of(grid()))
    # cells, medians of stock and treated; reached, processor, short, unknown;
    # the least ratio, cells that got slower, and those by chance
    assert numbers(text, "all") == ["6", "90", "90", "2", "1", "1", "1",
                                    "0.800", "1", "0"]
    assert numbers(text, "base grid") == ["2", "94", "94", "1", "0", "0", "1",
                                          "1.000", "0", "0"]
    assert numbers(text, "no window set")[:4] == ["1", "-", "-", "0"]
    text = REPORT.counts(REPORT.rows_of([cell(ratio=0.9, acted=False)]))
    assert numbers(text, "all")[-2:] == ["0", "1"]


def test_page_lists_what_no_ceiling_explains_and_nothing_else():
    text = REPORT.page_part("6.12.1-amd64", REPORT.rows_of(grid()))
    listed = text.partition("Cells to look at")[2]
    found = [line.split() for line in listed.splitlines()
             if line[:1].isdigit()]
    assert [(line[0], line[6], line[7], " ".join(line[9:]))
            for line in found] == [
        ("1500", "90.0", "-", "unknown"),
        ("9000", "50.0", "90.9", "short, slower")]
    slow = cell(0.97, ratio=0.98)
    assert "slower" in REPORT.page_part(
        "6.12.1", REPORT.rows_of([slow])).partition("Cells to look at")[2]
    clean = REPORT.page_part("6.12.1-amd64", REPORT.rows_of([cell()]))
    assert clean.endswith("None.\n")


def test_page_leaves_a_long_table_to_the_text_file():
    for cells, left in ((REPORT.MOST_LISTED, False),
                        (REPORT.MOST_LISTED + 1, True)):
        rows = REPORT.rows_of([cell(0.5, name=str(i)) for i in range(cells)])
        words = f"Base grid: {cells} cells, in *grid-6.12.txt*.\n"
        assert (words in REPORT.page_part("6.12.1", rows)) == left
        assert REPORT.text_table("6.12.1", rows).count("\n9000") == cells


def results(path, cells, **other):
    path.write_text(json.dumps(
        {"format": "mssab-results", "version": 2, "kernel": "6.12.1",
         "arms": {"stock": {}, "treated": {}}, "cells": cells} | other))
    return path


def test_parts_of_one_grid(tmp_path):
    one = results(tmp_path / "1", [FAST])
    two = results(tmp_path / "2", [cell()])
    other = results(tmp_path / "3", [cell()], kernel="6.1.0")
    assert {kernel: len(cells) for kernel, cells in
            REPORT.load([one, two, other]).items()} == {"6.12.1": 2,
                                                        "6.1.0": 1}
    for bad in (one, results(tmp_path / "4", [], arms={"a": {}}),
                results(tmp_path / "5", [], format="other"),
                results(tmp_path / "6", [], version=1),
                tmp_path / "none"):
        with pytest.raises(SystemExit, match="bench-window: .*: "):
            REPORT.load([one, bad])


def test_the_pages_own_text_stays(tmp_path):
    page = tmp_path / "grid.rst"
    page.write_text("Own.\n\n" + REPORT.MARK + "\nOld.\n")
    REPORT.write_page(page, ["New.\n"])
    assert page.read_text() == "Own.\n\n" + REPORT.MARK + "\nNew.\n"
    shipped = (TOP / "Documentation/results/grid.rst").read_text()
    assert shipped.count(REPORT.MARK) == 1
