# SPDX-License-Identifier: GPL-2.0-only
"""How sure a diagnosis of msstune may be: what keeps it from "high"."""
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune_facts import CPU, RECEIVER, SENDER, facts  # noqa: E402
from msstune.causes import confidence, diagnose  # noqa: E402
from msstune.causes.diagnosis import Diagnosis  # noqa: E402

NAME = "10.0.0.1:40000 > 10.0.0.2:5201"
LARGE = {"reads": 500, "writes": 0, "seconds": .25, "bytes_read": 500 * 65536,
         "bytes_written": 0}
OWNER = {"pid": 7, "cpu": 0, "comm": "reader", "user": .5, "system": .45,
         "queued": 0.01, "sleeps_per_s": 0, "written_per_s": 0, "calls": LARGE}
UNREAD = RECEIVER | {"low_rqueue": 10**6, "high_rqueue": 2 * 10**6, "rqueue": 10**6}


def first(**more):
    return diagnose.diagnose(facts(**more))[0]


# --- Bounds -----------------------------------------------------------------

@pytest.mark.parametrize("share", [0, .01, .1, .5, .97, 1])
def test_bounds_hold_the_share_and_close_in(share):
    widths = []
    for count in (1, 5, 50, 500, 50_000):
        low, high = confidence.lower(share, count), confidence.upper(share, count)
        assert 0 <= low <= share + 1e-9 and share - 1e-9 <= high <= 1
        widths.append(high - low)
    assert widths == sorted(widths, reverse=True) and widths[-1] < .01
    assert confidence.lower(share, 0) == 0 and confidence.upper(share, 0) == 1


def test_few_packets_are_no_proof():
    assert confidence.lower(1, 5) < .7 < confidence.lower(1, 50)


# --- What looks alike -------------------------------------------------------

def test_a_reader_whose_calls_are_large_and_whose_cpu_is_its_own_is_certain():
    found = first(flow=UNREAD | {"owner": OWNER})
    assert (found.limit, found.confidence) == ("application-receive", "high")


@pytest.mark.parametrize("owner, reason", [
    ({}, "reads of a few bytes"),                       # nothing is known of it
    (OWNER | {"calls": {}}, "reads of a few bytes"),    # its calls were not counted,
    (OWNER | {"calls": LARGE | {"reads": 50}}, "reads of a few bytes"),  # or too few
    (OWNER | {"calls": LARGE | {"bytes_read": 5000}}, "reads of a few bytes"),
    (OWNER | {"queued": .4}, "a CPU that it has to wait for")])
def test_what_keeps_a_reader_from_being_certain(owner, reason):
    flow = UNREAD | ({"owner": owner} if owner else {})
    found = next(d for d in diagnose.diagnose(facts(flow=flow))
                 if d.limit == "application-receive")
    assert found.confidence == "medium" and f"not ruled out: {reason}" in found.why


def test_packets_on_the_readers_cpu_may_be_what_slows_it():
    busy = {"cpus": {"0": CPU | {"softirq": 90}, "1": CPU}}
    found = next(d for d in diagnose.diagnose(facts(
        flow=UNREAD | {"owner": OWNER}, **busy)) if d.limit == "application-receive")
    assert found.confidence == "medium" and "packets that take its CPU" in found.why


@pytest.mark.parametrize("unread, owner, answer", [
    (200, {"sleeps_per_s": 0.0}, ("reader-stopped", "medium")),
    (2 * 10**6, {"sleeps_per_s": 0.0}, ("reader-stopped", "high")),
    (2 * 10**6, {"sleeps_per_s": 1.1}, ("application-receive", "medium")),
    (2 * 10**6, {}, ("reader-stopped", "medium"))])
def test_neither_a_part_of_a_message_nor_a_pause_stops_a_reader(unread, owner, answer):
    still = {"d_bytes_acked": 0, "d_bytes_received": 0, "low_rqueue": unread,
             "high_rqueue": unread, "rqueue": unread, "seconds": 2, "unacked": 0,
             "owner": owner}
    found = first(flow=RECEIVER | still | {
        "notsent_bytes": 0, "retransmits": 0, "wqueue": 0})
    assert (found.limit, found.confidence) == answer


def test_a_reader_that_rests_does_not_suffer_from_its_calls():
    owner = OWNER | {"user": .1, "system": .1, "calls": {}}
    assert first(flow=UNREAD | {"owner": owner}).confidence == "high"


WINDOW = {"d_rwnd_limited": 10**6, "high_snd_wnd": 200_000, "snd_wnd": 200_000,
          "low_snd_wnd": 200_000}


@pytest.mark.parametrize("more, confident", [
    ({}, "high"),
    ({"cpus": {"0": CPU | {"idle": 5, "system": 165}}}, "medium"),
    ({"flow": WINDOW | {"rtt": 17000}}, "medium")])
def test_a_window_limits_where_the_round_trip_is_the_paths(more, confident):
    found = next(d for d in diagnose.diagnose(facts(**{"flow": WINDOW} | more))
                 if d.limit == "receive-window")
    assert found.confidence == confident


# --- Margin and dumps -------------------------------------------------------

ONE = Diagnosis(NAME, "receive-window", "high", "why", "change", 50)


@pytest.mark.parametrize("limit, weight, confident", [
    ("receive-window", 30, "high"), ("receive-window", 45, "medium"),
    ("memory-pressure", 45, "high")])
def test_a_second_diagnosis_that_holds_back_as_much(limit, weight, confident):
    other = Diagnosis("eth0", "offload-off", "medium", "", "", weight)
    judged = confidence.judged([replace(ONE, limit=limit), other], facts())
    assert judged[0].confidence == confident and judged[1] == other
    # What is no fault is no rival.
    assert confidence.judged([ONE, replace(other, limit="unknown")], facts())[0] == ONE


@pytest.mark.parametrize("limit", ["qdisc-drops", "backlog-drops", "ring-drops"])
@pytest.mark.parametrize("flow, confident", [
    ({}, "medium"), ({"d_total_retrans": 1}, "high"), ({"d_rcv_ooopack": 1}, "high"),
    ({"snd_ssthresh": 70}, "high")])
def test_drops_limit_a_connection_that_lost_data(limit, flow, confident):
    judged = confidence.judged([replace(ONE, limit=limit)], facts(flow=flow))
    assert judged[0].confidence == confident


def test_a_symptom_is_never_certain():
    assert confidence.judged([replace(ONE, limit="cpu-softirq")], facts())[
        0].confidence == "medium"


def test_two_dumps_are_no_habit():
    for looks, confident in ((2, "medium"), (3, "high")):
        some = facts(flow={"looks": looks})
        assert confidence.judged([ONE], some)[0].confidence == confident


def test_only_high_is_lowered():
    low = replace(ONE, confidence="low")
    assert confidence.judged([low, replace(low, limit="loss")], facts()) == [
        low, replace(low, limit="loss")]


def test_bytes_per_call_need_calls():
    flow = SENDER | {"owner": {"calls": LARGE}}
    assert confidence.each(flow, "read") == 65536
    assert confidence.each(flow, "write") is None
    assert confidence.each(SENDER, "read") is None
