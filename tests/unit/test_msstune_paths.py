# SPDX-License-Identifier: GPL-2.0-only
"""What msstune reads from a profile: costs, evidence of a diagnosis, and where the
profile and the kernel's counters disagree.  Real faults: guest/path_faults.py."""
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune_facts import facts  # noqa: E402
from msstune import (diagnose, path_evidence, path_sums,  # noqa: E402
                     profile_costs, profile_facts)

KEPT = Path(__file__).parent / "test_profile/sample.json"


def path(way="rx", packets=1000, size=1448, segments=1, flags=(), facts_=(),
         end="delivered", **stages):
    """A path; of @stages each has its ns for a packet, "wait_NAME" waits."""
    return {"direction": way, "flags": ["data", *flags], "facts": list(facts_),
            "end": end, "packets": packets, "segments": packets * segments,
            "bytes": packets * size, "reason": "cpu_backlog", "stages": [
                [name.removeprefix("wait_"),
                 "wait" if name.startswith("wait_") else "work", ns * packets]
                for name, ns in stages.items()] + [["read", "end", 0]]}


def seen(*paths, **more):
    return facts(**({"paths": list(paths), "recorded": {
        "packets": path_sums.packets(paths), "bursts": 3, "lost": 0,
        "seconds": 0.1}} | more))


# --- The profile ------------------------------------------------------------

def test_the_probes_are_not_part_of_the_times():
    document = json.loads(KEPT.read_text())
    raw = sum(sum(p["stage_ns"]) for p in document["paths"])
    own = sum(sum(p["stage_probe_ns"]) for p in document["paths"])
    found = profile_facts.paths_of(document)
    net = sum(ns for p in found for _, _, ns in p["stages"])
    assert raw - own <= net < raw
    document["probe"]["subtracted"] = True
    assert sum(ns for p in profile_facts.paths_of(document)
               for _, _, ns in p["stages"]) == raw


def test_a_drop_is_placed_at_the_stage_before_it():
    document = {"format": "pathprof-profile", "reasons": {"9": "cpu_backlog"},
                "stages": [{"id": 3, "name": "netif"}, {"id": 23, "name": "drop"}],
                "paths": [{"direction": "rx", "flags": [], "end": "dropped",
                           "reason": 9, "packets": 7, "stages": [3, 23],
                           "stage_ns": [70, 0]}]}
    assert profile_facts.facts(document)["drops"] == [
        {"direction": "rx", "stage": "netif", "reason": "cpu_backlog", "packets": 7}]


@pytest.mark.parametrize("name, value", [
    ("stack_cost", 2.0), ("rx_cost", 2000.0), ("rx.at.netif", 1500.0),
    ("rx.wait.done", 3.0), ("tx_cost", None), ("rx.at.copy", None)])
def test_costs(name, value):
    document = {"stages": [{"id": 3, "name": "netif"}, {"id": 9, "name": "estab"},
                           {"id": 19, "name": "done", "kind": "wait"}],
                "paths": [{"direction": "rx", "flags": ["data"], "end": "delivered",
                           "packets": 50, "segments": 50, "bytes": 50000,
                           "stages": [3, 9, 19], "stage_ns": [75000, 25000, 150000],
                           "stage_probe_ns": [0, 0, 0]}]}
    found = profile_costs.measured(document, [name])
    assert found == ({} if value is None else {profile_costs.reported(name): value})
    document["paths"][0]["packets"] = profile_costs.LEAST - 1
    assert not profile_costs.measured(document, [name])


@pytest.mark.parametrize("name", ["rx", "rx.at", "rx.p50.done", "xx.at.done",
                                  "rx.at.Done", "goodput"])
def test_no_metric_of_a_profile(name):
    assert not profile_costs.known(name)


# --- Evidence ---------------------------------------------------------------

def test_a_diagnosis_shows_its_path():
    some = seen(path(end="dropped", packets=200, netif=10), path(packets=600),
                softnet=[{"cpu": 0, "processed": 9, "dropped": 200, "squeezed": 0}])
    first = diagnose.diagnose(some)[0]
    assert first.limit == "backlog-drops"
    assert first.evidence.share == .25 and first.evidence.of == "rx packets"
    assert diagnose.diagnose(seen(softnet=some["softnet"]))[0].evidence is None


# --- Where facts disagree ---------------------------------------------------

def told(*paths, **more):
    return list(path_evidence.disagreements(seen(*paths, **more)))


def test_what_agrees_is_not_reported():
    assert not told(path("tx", end="sent")) and not list(
        path_evidence.disagreements(facts()))


@pytest.mark.parametrize("paths, more, sentence", [
    ((), {}, "the profile has no packet"),
    ((path("tx", packets=900, end="sent"),
      path("tx", packets=100, flags=["retransmit"], end="sent")), {},
     "0.0% of the segments were retransmitted by TCP_INFO, 10.0%"),
    ((path(facts_=["no gro"]),), {}, "the driver hands packets to the stack"),
    ((path(),), {"recorded": {"packets": 1000, "lost": 30}}, "pathprof lost 30")])
def test_disagreements(paths, more, sentence):
    assert any(sentence in line for line in told(*paths, **more))
