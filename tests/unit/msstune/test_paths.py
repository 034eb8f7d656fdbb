# SPDX-License-Identifier: GPL-2.0-only
"""What msstune reads from a profile: costs, evidence of a diagnosis, and where the
profile and the kernel's counters disagree.  Real faults: guest/msstune."""
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune_facts import CPU, DEVICE, RECEIVER, facts  # noqa: E402
from msstune.causes import diagnose, path_evidence, plan  # noqa: E402
from msstune.facts import (path_sums, profile_costs, profile_facts,  # noqa: E402
                           profile_recorder)

KEPT = Path(__file__).parents[1] / "test_profile/sample.json"


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


# --- The recorder -----------------------------------------------------------

PATHPROF = """#!/usr/bin/python3
import os, signal, sys, time
words = sys.argv[1:]
after = lambda name: words[words.index(name) + 1]
{before}
signal.signal(signal.SIGINT, lambda *_: (
    open(after("-o"), "w").write(" ".join(words)), sys.exit(0)))
os.write(int(after("--ready-fd")), b"\\n")
time.sleep(60)
"""


@pytest.fixture
def recorder(tmp_path, monkeypatch):
    def make(before="", user=0, **more):
        tool = tmp_path / "bin/pathprof"
        tool.parent.mkdir()
        tool.write_text(PATHPROF.format(before=before))
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")
        monkeypatch.setattr(profile_recorder.os, "geteuid", lambda: user)
        found = profile_recorder.Recorder(**more)
        made.append(found)
        return found
    made = []
    yield make
    for one in made:
        one.close()


def test_a_recording_has_a_budget_and_a_namespace(recorder):
    one = recorder(budget=1.5)
    one.start()
    assert not one.missing
    words = one.stop().read_text()
    assert words.startswith("record --budget 1.5 --netns /proc/self/ns/net ")


@pytest.mark.parametrize("more, reason", [
    ({"user": 1000}, "needs root"),
    ({"before": "sys.exit('pathprof: no BTF here')"}, "pathprof: no BTF here"),
    ({"before": "sys.exit(3)"}, "pathprof record failed"),
    ({"before": "time.sleep(9)"}, "pathprof was not ready after 3 s")])
def test_why_there_is_no_recording(recorder, monkeypatch, more, reason):
    monkeypatch.setattr(profile_recorder, "PATIENCE", 3)
    one = recorder(**more)
    one.start()
    assert one.missing == reason and one.stop() is None


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


# --- Faults -----------------------------------------------------------------

BUSY = {"cpus": {"0": CPU | {"idle": 5, "system": 165}, "1": CPU}}
STREAM = RECEIVER | {"d_data_segs_in": 4000, "d_data_segs_out": 0,
                     "d_bytes_received": 400_000}
SMALL = path(size=100, netif=200, estab=300, wake=500, wait_done=900, copy=50)
WRITES = {"d_data_segs_out": 4000, "d_bytes_acked": 400_000, "high_unacked": 0}
READER = {"pid": 7, "cpu": 0, "comm": "reader", "cgroup": "/", "user": .3,
          "system": .7, "sleeps_per_s": 0, "written_per_s": 0}
UNREAD = RECEIVER | {"low_rqueue": 90_000, "high_rqueue": 100_000, "owner": READER,
                     "d_bytes_received": 10**6, "rcv_ssthresh": 10**5}


def device(**offload):
    return {"devices": {"eth0": DEVICE | {
        "offload": DEVICE["offload"] | {"tx": "on", "sg": "on"} | offload}}}


def queue(kind="pfifo_fast", **more):
    ring = {"rx": 256, "rx_max": 4096, "tx": 256, "tx_max": 4096}
    one = {"kind": kind, "handle": "0:", "root": True, "packets": 5000, "drops": 0,
           "bytes": 10**6, "options": {}, "backlog": 0, "requeues": 0}
    return {"devices": {"eth0": DEVICE | {"ring": ring, "qdiscs": [one | more]}}}


ALONE = path(facts_=["gro off"], netif=500, estab=900, wait_done=10**6, copy=100)
SPLIT = path("tx", size=65160, segments=45, facts_=["tso off"], end="split", dev=9000)
FILTERED = path(netif=200, nf_in=900, estab=300, wait_done=900, copy=50)

#: paths, the flow, other facts, the limit, a setting or "" (advice).
FAULTS = [
    ((ALONE,), RECEIVER, BUSY | device(gro="off"), "offload-off", "offload:eth0:gro"),
    ((SPLIT,), {}, BUSY | device(tso="off"), "offload-off", "offload:eth0:tso"),
    ((SPLIT,), {}, BUSY | device(tx="off", sg="off", tso="off"), "offload-off",
     "offload:eth0:tx"),
    ((FILTERED,), RECEIVER, BUSY, "netfilter-cost", ""),
    ((path(netif=3000, estab=300, copy=50),), RECEIVER,
     BUSY | {"firewall_rules": {"input": 600}}, "netfilter-cost", ""),
    ((SMALL,), STREAM | {"owner": READER | {"sleeps_per_s": 1800}}, BUSY, "wake-ups",
     ""),
    ((path("tx", size=100, end="sent", dev=300, driver=900),), WRITES, BUSY,
     "small-writes", ""),
    ((path(netif=200, estab=300, wait_done=10**7, copy=30_000),), UNREAD, BUSY,
     "tiny-reads", ""),
    # Its own work between two reads of a packet counts as copy.
    ((path(netif=200, estab=300, wait_done=10**7, copy=4 * 10**6),), UNREAD, BUSY,
     "tiny-reads", ""),
    ((path("tx", end="sent", dev=300, wait_qdisc=10**5, driver=900),), {},
     queue(requeues=400), "requeues", "ring:eth0:tx"),
    # A driver that stops more often than it sends, above what TSO would save.
    ((path("tx", end="sent", dev=300, wait_qdisc=10**5, driver=900),), {},
     {"devices": {"eth0": queue(requeues=4000)["devices"]["eth0"] | {
         "offload": DEVICE["offload"] | {"tso": "off"},
         "tx": {"packets": 200_000, "bytes": 200_000 * 1500}}}},
     "requeues", "ring:eth0:tx"),
    ((path("tx", end="sent", dev=300, wait_qdisc=3 * 10**7, driver=900),), {},
     queue(backlog=90_000), "transmit-queue", "qdisc:eth0"),
]


@pytest.mark.parametrize("paths, flow, more, limit, setting", FAULTS)
def test_faults(paths, flow, more, limit, setting):
    some = seen(*paths, flow=flow, **more)
    found = diagnose.diagnose(some)
    first = next(d for d in found if d.wrong)
    assert first.limit == limit and 0 < first.evidence.share <= 1
    mine = [p for p in plan.propose(some, found, plan.Wish())
            if p.path == first.evidence.path]
    assert [p.setting for p in mine if p.setting] == [setting] * bool(setting)
    assert mine and all(p.share and p.of for p in mine)
    # Without its profile none of these is named so, but for what the kernel counts of
    # connections, programs and queues.
    del some["paths"]
    named = limit in [d.limit for d in diagnose.diagnose(some)]
    assert named == (limit in ("wake-ups", "small-writes", "requeues"))


@pytest.mark.parametrize("paths, flow, more", [
    # Work per packet does not matter on an idle CPU.
    ((ALONE,), RECEIVER, device(gro="off")), ((SPLIT,), {}, device(tso="off")),
    ((FILTERED,), RECEIVER, {}), ((SMALL,), STREAM, {}),
    # The interface's own setting does not agree, or the packets are small.
    ((ALONE,), RECEIVER, BUSY | device(gro="on")),
    ((SMALL | {"facts": ["gro off"]},), RECEIVER, BUSY | device(gro="off")),
    ((SPLIT,), {}, BUSY | device(tso="on", gso="on")),
    # Most packets are large; a few packets are no evidence.
    ((ALONE | {"packets": 300}, path(size=65160, segments=45, packets=700, copy=9)),
     RECEIVER, BUSY | device(gro="off")),
    ((ALONE | {"packets": 40},), RECEIVER, BUSY | device(gro="off")),
    # Few rules; a request wakes its reader, and is answered.
    ((path(netif=3000, estab=300, copy=50),), RECEIVER,
     BUSY | {"firewall_rules": {"input": 4}}),
    ((SMALL,), STREAM | {"d_data_segs_out": 4000, "d_bytes_acked": 390_000,
                         "owner": READER | {"sleeps_per_s": 1800}}, BUSY),
    # A reader that works on its data, or copies a lot.
    ((path(netif=200, estab=300, copy=30_000),),
     UNREAD | {"owner": READER | {"user": .95, "system": .05}}, BUSY),
    ((path(netif=200, estab=300, copy=1500),), UNREAD | {"d_bytes_received": 10**9},
     BUSY),
    # Half of its time is that of softirqs on its CPU.
    ((path(netif=200, estab=300, copy=1500),), UNREAD | {"d_bytes_received": 3 * 10**8},
     {"cpus": {"0": CPU | {"idle": 5, "system": 65, "softirq": 130}, "1": CPU}}),
    # One that writes what it reads to a file, or sends it on.
    ((path(netif=200, estab=300, copy=30_000),),
     UNREAD | {"owner": READER | {"written_per_s": 10**6}}, BUSY),
    ((path(netif=200, estab=300, copy=30_000),),
     UNREAD | {"d_bytes_acked": 900_000, "d_data_segs_out": 700},
     BUSY),
    # A queue that delays on purpose.
    ((path("tx", end="sent", dev=300, wait_qdisc=3 * 10**7),), {},
     queue("netem", backlog=90_000)),
])
def test_no_fault_of_the_paths(paths, flow, more):
    named = {limit for *_, limit, _ in FAULTS}
    found = diagnose.diagnose(seen(*paths, flow=flow, **more))
    assert not [d.limit for d in found if d.limit in named and d.wrong]


RECORDED = {"gro-off": "offload-off", "checksum": "offload-off",
            "netfilter": "netfilter-cost", "wake-ups": "wake-ups",
            "small-writes": "small-writes", "backlog": "backlog-drops",
            "gro-on": "cpu", "short-chain": None}


@pytest.mark.parametrize("name, limit", RECORDED.items())
def test_recorded_facts(name, limit):
    """Of a run of guest/msstune/faults_cost.py on 6.12."""
    kept = Path(__file__).with_name("paths")
    some = json.loads((kept / f"{name}.json").read_text())
    found = [d for d in diagnose.diagnose(some) if d.wrong and d.weight >= 5]
    assert (found[0].limit if found else None) == limit
    if limit not in (None, "cpu"):
        assert found[0].evidence and 0 < found[0].evidence.share <= 1


def test_work_comes_after_the_limit_that_a_connection_has():
    window = {"d_rwnd_limited": 10**6, "high_snd_wnd": 200_000, "snd_wnd": 200_000,
              "low_snd_wnd": 200_000}
    for flow, limit in (({}, "offload-off"), (window, "receive-window")):
        some = seen(SPLIT, flow=flow, **BUSY | device(tso="off"))
        assert next(d.limit for d in diagnose.diagnose(some) if d.wrong) == limit


def test_confidence_needs_a_cpu_that_limits():
    for idle, confidence in ((5, "high"), (70, "medium")):
        cpus = {"0": CPU | {"idle": idle, "system": 170 - idle}}
        some = seen(SPLIT, cpus=cpus, **device(tso="off"))
        found = next(d for d in diagnose.diagnose(some) if d.limit == "offload-off")
        assert found.confidence == confidence
    # A program that computes has no use for cheaper packets.
    cpus = {"0": CPU | {"idle": 5, "user": 170, "system": 10}}
    assert "offload-off" not in [d.limit for d in diagnose.diagnose(
        seen(SPLIT, cpus=cpus, **device(tso="off")))]


def test_rps_only_where_work_would_move():
    hot = {"cpus": {"0": CPU | {"idle": 1, "softirq": 180}, "1": CPU},
           "placement": {"steering": {}}}

    def proposed(*paths):
        some = seen(*paths, **hot)
        return {p.setting: p for p in plan.propose(some, diagnose.diagnose(some),
                                                   plan.Wish()) if p.setting}
    name = "queue:eth0:rx-0/rps_cpus"
    some = proposed(path(gro=100, netif=100, estab=600, copy=200))
    assert some[name].new == "2" and some[name].gain.startswith("60%")
    assert name not in proposed(path(gro=900, netif=100, estab=10, copy=9))


def test_zero_copy_only_where_the_copy_is_seen():
    def reasons(**stages):
        some = seen(path(netif=500, **stages), flow=UNREAD | {"owner": {
            "comm": "x", "pid": 1}})
        return [p.reason for p in plan.propose(some, diagnose.diagnose(some),
                                               plan.Wish())]
    assert any("ZEROCOPY" in text for text in reasons(copy=900))
    assert not any("ZEROCOPY" in text for text in reasons(copy=50))
    assert not any("ZEROCOPY" in text for text in reasons())


@pytest.mark.parametrize("rcvbuf, most, proposed", [
    (65536, 32768, True),       # SO_RCVBUF, doubled, is what rmem_max allows
    (65536, 212992, False),     # the program asked for that
    (131072, 32768, False)])    # TCP_WINDOW_CLAMP, or SO_RCVBUFFORCE
def test_rmem_max_only_where_it_clamps(rcvbuf, most, proposed):
    some = facts(RECEIVER | {"rcv_ssthresh": 32768, "rcvbuf": rcvbuf,
                             "low_rcvbuf": rcvbuf})
    some["sysctl"] |= {"net.core.rmem_max": str(most)}
    found = diagnose.diagnose(some)
    assert found[0].limit == "receive-buffer-fixed"
    told = [p.setting + p.reason for p in plan.propose(some, found, plan.Wish(1e9))]
    assert any("net.core.rmem_max" in text for text in told) == proposed
