# SPDX-License-Identifier: GPL-2.0-only
"""From the command line to the page: a program with a known effect is run by
mssab, killed and resumed, and its report is looked at in a browser."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
MSSAB = [str(TOP / "userspace/mssab/mssab.sh")]

PROGRAM = '''
import json, os, random, sys
gain, seed = float(os.environ.get("GAIN", 0)), os.environ["MSSAB_SEED"]
rng = random.Random(seed + str(gain))
print(json.dumps({"bytes_per_s": 1e6 * (1 + gain) * rng.uniform(.99, 1.01),
                  "pause": 5 + gain}))
'''

EXPERIMENT = '''title = "A gain of 10 % <b>&"
question = "Does it gain?"
expect = "improved"
[design]
pairs = 8
seed = 1
stolen_percent = 0
guardrails = ["pause"]
[metrics.pause]
unit = "ms"
better = "lower"
scale = "linear"
margin = 1
[program]
argv = ["/usr/bin/python3", "load.py"]
[arms]
stock = {}
treated = { env = { GAIN = "0.1" } }
'''


def mssab(*arguments, status=0):
    done = subprocess.run([*MSSAB, *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout if not status else done.stdout + done.stderr


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """One experiment, run once."""
    folder = tmp_path_factory.mktemp("ab")
    os.chdir(folder)
    (folder / "load.py").write_text(PROGRAM)
    (folder / "e.toml").write_text(EXPERIMENT)
    out = mssab("run", "e.toml", "-o", "whole")
    assert "KEEP: improved: goodput +" in out and "Expected: improved." in out
    return folder / "whole"


def test_the_same_again_and_through_kills(results):
    """Same seed, same result, byte for byte; SIGTERM and SIGKILL in between."""
    for number, kill in enumerate((signal.SIGKILL, signal.SIGTERM,
                                   signal.SIGKILL)):
        process = subprocess.Popen(
            [*MSSAB, "run", "e.toml", "-o", "killed", "--no-report",
             "--resume"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        samples = results.parent / "killed/samples.jsonl"
        while process.poll() is None:
            lines = samples.read_bytes().count(b"\n") if samples.exists() \
                else 0
            if lines >= 7 * (number + 1):
                break
            time.sleep(0.01)  # polling interval
        assert process.poll() is None
        process.send_signal(kill)
        assert process.wait() == (-kill if kill == signal.SIGKILL else 130)
    mssab("run", "e.toml", "-o", "killed", "--no-report", "--resume")
    one, other = (json.loads((results.parent / name / "result.json")
                             .read_text()) for name in ("whole", "killed"))
    assert other["void"].pop("interrupted_pairs") >= 1
    one["void"].pop("interrupted_pairs")
    for result in one, other:   # which blocks are adjacent, how many there were
        result.pop("carry_over")
        result.pop("failures")
    assert one == other
    mssab("run", "e.toml", "-o", "again", "--no-report")
    assert (results.parent / "again/result.json").read_bytes() == \
        (results / "result.json").read_bytes()


def test_the_manifest_records_what_was_run(results):
    manifest = json.loads((results / "manifest.json").read_text())
    assert manifest["text"] == EXPERIMENT
    assert manifest["kernel"] == os.uname().release
    assert len(manifest["schedule"]) == 16
    there = manifest["environment"]
    for key in ("started", "host", "processor", "CPUs", "distribution",
                "kernel build", "commit"):
        assert there.get(key), key
    samples = [json.loads(line) for line in
               (results / "samples.jsonl").read_text().splitlines()]
    assert [s["arm"] for s in samples[-2:]] == \
        manifest["schedule"][-1]["order"]


class Page(HTMLParser):
    """Tags that are opened are closed; what is linked."""

    VOID = {"meta", "br", "path", "use", "rect"}

    def __init__(self):
        super().__init__()
        self.open, self.links, self.words = [], [], ""

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)
        self.links += [value for name, value in attrs
                       if name in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        self.links += [value for name, value in attrs
                       if name in ("src", "href", "xlink:href")]

    def handle_data(self, data):
        self.words += data


def test_the_page_is_whole_and_alone(results):
    text = (results / "report.html").read_text()
    page = Page()
    page.feed(text)
    assert not page.open
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"@import|<script|url\((?!#)", text)
    assert "<b>&</" not in text and "A gain of 10 % <b>&" in page.words
    assert page.words.index("KEEP") < page.words.index("Effects")
    for word in ("Keep it", "A/A (8 pairs): equivalent", "Void blocks: none",
                 'argv = ["/usr/bin/python3", "load.py"]', "95 % interval"):
        assert word in page.words, word
    assert text.count("<svg") == 1 + 2 * 2
    manifest = json.loads((results / "manifest.json").read_text())
    for value in manifest["environment"].values():
        assert value in page.words, value
    before = text
    mssab("report", str(results))
    assert (results / "report.html").read_text() == before


def test_the_page_in_a_browser(results):
    """A verdict in its colour at the top, plots below, nothing cut off."""
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("no chromium; apt-get install chromium (350 MB) to have "
                    "the page looked at")
    pyplot = pytest.importorskip("matplotlib.image")
    picture = results / "page.png"
    subprocess.run(
        [browser, "--headless", "--no-sandbox", "--disable-gpu",
         "--hide-scrollbars", f"--user-data-dir={results}/profile",
         "--window-size=900,2600", f"--screenshot={picture}",
         f"file://{results}/report.html"], check=True, capture_output=True,
        timeout=120)
    pixels = pyplot.imread(picture)[:, :, :3]

    def coloured(part, rgb):
        return (abs(part - [c / 255 for c in rgb]).max(axis=2) < 0.03).sum()
    green, blue = (0x1a, 0x7f, 0x37), (0x00, 0x72, 0xb2)
    assert coloured(pixels[:300], green) > 500      # the verdict
    assert coloured(pixels[300:900], green) > 100   # its interval
    assert coloured(pixels[900:], blue) > 100       # samples of an arm
    for edge in (pixels[:, :8], pixels[:, -8:]):    # nothing beyond the page
        assert (edge > 0.99).all()


def test_version_1_is_read(results, tmp_path):
    """Results of version 1 of the format: no failed blocks, no decision."""
    old = tmp_path / "old"
    shutil.copytree(results, old)
    manifest = json.loads((old / "manifest.json").read_text())
    del manifest["environment"]
    manifest["version"] = 1
    (old / "manifest.json").write_text(json.dumps(manifest))
    result = json.loads((old / "result.json").read_text())
    for key in ("decision", "failures", "carry_over"):
        del result[key]
    for metric in result["metrics"].values():
        metric.pop("safe", None)
        del metric["p_harm"]
    result["version"] = 1
    (old / "result.json").write_text(json.dumps(result))
    samples = [json.loads(line) for line in
               (old / "samples.jsonl").read_text().splitlines()]
    for sample in samples:
        del sample["failed"]
    (old / "samples.jsonl").write_text("".join(
        json.dumps(sample) + "\n" for sample in samples))
    assert "KEEP: improved: goodput +" in mssab("report", str(old))
    assert re.search(r"^old +keep +improved", mssab("list", str(tmp_path)),
                     re.M)
    assert "the same" in mssab("compare", str(results), str(old))
    assert "another version of the format" in mssab(
        "run", "e.toml", "-o", str(old), "--resume", status=2)


def test_the_page_leads_with_the_decision(results, tmp_path):
    """A gain with a guardrail that regressed: nothing is green above "Do not
    keep it", and the exit status carries it."""
    (results.parent / "e4.toml").write_text(
        EXPERIMENT.replace("margin = 1", "margin = 0.01"))
    out = mssab("run", "e4.toml", "-o", "e4", status=1)
    assert "DO NOT KEEP: improved: goodput +" in out
    assert "Do not keep it: a guardrail regressed (pause)." in out
    assert "Expected: improved, but it is not to be kept." in out
    text = (results.parent / "e4/report.html").read_text()
    assert "<strong>DO NOT KEEP</strong>" in text
    assert "--decision: var(--regressed)" in text
    assert re.search(r"^e4 +do not keep +improved", mssab(
        "list", str(results.parent)), re.M)


def test_list_and_compare(results):
    out = mssab("list", str(results.parent))
    assert re.search(r"^whole +keep +improved: goodput \+", out, re.M)
    (results.parent / "e2.toml").write_text(
        EXPERIMENT.replace('GAIN = "0.1"', 'GAIN = "0.02"')
        .replace('expect = "improved"\n', ""))
    mssab("run", "e2.toml", "-o", "small", "--no-report")
    out = mssab("list", str(results.parent))
    assert re.search(r"^small +no gain +equivalent: goodput \+", out, re.M)
    out = mssab("compare", str(results), "small")
    assert "The experiments differ" in out
    assert re.search(r"^goodput .* worse$", out, re.M)
    assert re.search(r"^goodput .* the same$",
                     mssab("compare", str(results), "killed"), re.M)
    assert json.loads(mssab("report", "--json", "small"))["finished"]


def test_what_was_expected_and_is_not_is_a_failure(results):
    (results.parent / "e3.toml").write_text(
        EXPERIMENT.replace('"improved"', '"equivalent"'))
    out = mssab("run", "e3.toml", "-o", "e3", "--no-report", status=1)
    assert "Expected: equivalent, but it is improved." in out


@pytest.mark.parametrize("program, sentence", [
    ("print('nonsense')", "not a JSON object"),
    ("print('{\"bytes_per_s\": NaN}')", "NaN is not a number"),
    ("print('[1]')", "not a JSON object of numbers"),
    ("raise SystemExit('broken')", "status 1: broken"),
])
def test_a_program_that_fails_ends_it_with_a_sentence(results, program,
                                                      sentence):
    (results.parent / "load.py").rename(results.parent / "keep.py")
    try:
        (results.parent / "load.py").write_text(program)
        out = mssab("run", "e.toml", "-o", "bad", "--no-report", "--resume",
                    status=1)
    finally:
        (results.parent / "keep.py").rename(results.parent / "load.py")
    assert sentence in out and "Traceback" not in out
