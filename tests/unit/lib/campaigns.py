# SPDX-License-Identifier: GPL-2.0-only
"""Campaigns without a kernel, for the tests: an experiment, loads whose effect
and noise the test chooses, and a journal in memory or on disk."""
import dataclasses
import json
import math
import random
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab.experiment import experiment_file  # noqa: E402
from mssab.run import campaign, journal  # noqa: E402

TEXT = '''[design]
pairs = 12
guardrails = ["latency"]
[program]
argv = ["true"]
[metrics.latency]
better = "lower"
[arms]
stock = {}
treated = {}
'''


def plan(**changes):
    return dataclasses.replace(
        experiment_file.parse(Path("e.toml"), TEXT), **changes)


class Load:
    """Blocks with an effect of the treatment, noise, and what a test adds."""

    def __init__(self, gain=0.0, noise=0.01, latency=0.0, seed=1, extra=None):
        self.gain, self.noise, self.latency = gain, noise, latency
        self.seed, self.extra, self.calls = seed, extra or {}, []

    def __call__(self, arm, seed, share=0):
        self.calls.append((arm.name, seed))
        # Whichever call it is: what counts is block, arm and try.
        tries = self.calls.count((arm.name, seed))
        rng = random.Random(f"{self.seed}/{arm.name}/{seed}/{tries}")
        treated = arm.name == "treated"
        raw = {"bytes_per_s": 1e6 * math.exp(
            treated * math.log1p(self.gain) + rng.gauss(0, self.noise)),
            "latency": 10 * (1 + treated * self.latency)
            * math.exp(rng.gauss(0, self.noise))}
        raw |= self.extra.get(arm.name, {})
        if callable(self.extra.get("each")):
            raw |= self.extra["each"](len(self.calls))
        return raw


def run(tmp_path, the_plan, load, resume=False, only_aa=False):
    with journal.opened(tmp_path / "r", manifest(the_plan), resume) as book:
        return campaign.run(the_plan, book, load, lambda *_: None, only_aa)


def manifest(the_plan):
    return {"format": journal.FORMAT, "version": 2, "mssab": "0",
            "kernel": "k", "module": "", "plan": json.loads(json.dumps(
                dataclasses.asdict(the_plan)))}


def records(tmp_path):
    return journal.read_samples(tmp_path / "r")


class Book:
    """A journal in memory."""

    session = 1

    def __init__(self):
        self.records = []

    def add(self, record):
        self.records.append({"session": 1} | record)
