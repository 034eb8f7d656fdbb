# SPDX-License-Identifier: GPL-2.0-only
"""Faults that msstune names from what the kernel counts of programs, CPUs and
timeouts, and loads that look like them."""
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune_facts import CPU, DEVICE, RECEIVER, facts  # noqa: E402
from test_paths import BUSY, SPLIT, path, seen  # noqa: E402
from msstune.causes import diagnose, plan, wait  # noqa: E402
from msstune.facts import collect, perf_events  # noqa: E402
from msstune.errors import TuneError  # noqa: E402


def found(**more):
    return diagnose.diagnose(facts(**more))


def named(limit, diagnoses):
    return next((d for d in diagnoses if d.limit == limit), None)


# --- Reads of a few bytes ---------------------------------------------------

CALLS = {"reads": 6000, "writes": 0, "seconds": .3, "bytes_read": 140_000,
         "bytes_written": 0}
READER = {"pid": 7, "cpu": 0, "comm": "reader", "cgroup": "/", "user": .5,
          "system": .45, "sleeps_per_s": 0, "written_per_s": 0, "queued": 0,
          "calls": CALLS}
UNREAD = RECEIVER | {"low_rqueue": 58_000, "high_rqueue": 122_000, "rqueue": 90_000,
                     "d_bytes_received": 1_300_000, "rcv_ssthresh": 94_000,
                     "owner": READER}


def test_reads_of_a_few_bytes_are_counted():
    some = facts(flow=UNREAD)
    diagnoses = diagnose.diagnose(some)
    first = diagnoses[0]
    assert (first.limit, first.confidence) == ("tiny-reads", "high")
    assert round(first.numbers["bytes_per_read"]) == 23
    assert [p.setting for p in plan.propose(some, diagnoses, plan.Wish())
            if "64 KiB" in p.reason] == [""]
    # What it looks like is no longer the answer, and is not certain.
    late = named("application-receive", diagnoses)
    assert late.weight < 5 and late.confidence != "high"


@pytest.mark.parametrize("owner, flow", [
    (READER | {"calls": CALLS | {"bytes_read": 6000 * 16384}}, {}),     # large reads
    (READER | {"user": .1, "system": .2}, {}),              # it rests
    (READER | {"user": .9, "system": .1}, {}),              # it works on its data
    (READER, {"low_rqueue": 0}),                            # it waits for data
    (READER, {"low_rqueue": 50}),                           # there is no more to read
    (READER | {"written_per_s": 10**6}, {}),                # it writes what it reads
    (READER, {"d_bytes_acked": 10**6})])                    # it sends it on
def test_no_tiny_reads(owner, flow):
    assert not named("tiny-reads", found(flow=UNREAD | flow | {"owner": owner}))


def test_counted_calls_overrule_the_time_of_a_copy():
    """A reader that spends long in the kernel for other reasons."""
    slow = path(netif=200, estab=300, wait_done=10**7, copy=30_000)
    calls = CALLS | {"reads": 500, "bytes_read": 500 * 32768}
    assert named("tiny-reads", diagnose.diagnose(seen(
        slow, flow=UNREAD | {"owner": READER | {"calls": {}}})))
    assert not named("tiny-reads", diagnose.diagnose(seen(
        slow, flow=UNREAD | {"owner": READER | {"calls": calls}})))


# --- Writes of a few bytes that become large segments ------------------------

WRITER = READER | {"calls": {"reads": 0, "writes": 4000, "seconds": .3,
                             "bytes_read": 0, "bytes_written": 64_000}}
WRITES = {"owner": WRITER, "high_notsent_bytes": 3000}


def test_small_writes_that_are_merged():
    first = next(d for d in found(flow=WRITES) if d.wrong)
    assert (first.limit, first.confidence) == ("small-writes", "medium")
    assert first.numbers["bytes_per_write"] == 16


@pytest.mark.parametrize("flow", [
    {"owner": WRITER | {"calls": WRITER["calls"] | {"bytes_written": 10**8}}},
    {"owner": WRITER | {"calls": {}}}, {"owner": WRITER | {"user": .1, "system": .1}},
    {"owner": WRITER | {"user": .9, "system": .1}}, {"d_sndbuf_limited": 10**5},
    {"d_rwnd_limited": 10**5}, {"high_notsent_bytes": 3 << 20},
    {"d_bytes_received": 20 * 10**6}])
def test_no_small_writes(flow):
    assert not named("small-writes", found(flow=WRITES | flow))


# --- Netfilter, by samples of the CPUs' time ---------------------------------

HOT = {"cpus": {"0": CPU | {"idle": 5, "system": 165}, "1": CPU}}
RULES = {"firewall_rules": {"output": 1500}}


@pytest.mark.parametrize("samples, rules, confident", [
    ({"kernel": 655, "nf_tables": 274}, RULES, "high"),
    ({"kernel": 800, "nf_tables": 129}, RULES, "medium"),
    ({"kernel": 600, "ip_tables": 150, "xt_tcpudp": 120}, RULES, "high"),
    ({"kernel": 600, "nf_conntrack": 260}, {}, "medium"),
    ({"kernel": 600, "ip_tables": 260}, {"legacy_tables": ["filter"]}, "medium"),
    ({"kernel": 600, "nf_tables": 260}, {"firewall_rules": {"input": 9}}, "medium")])
def test_netfilter_by_samples(samples, rules, confident):
    first = found(samples=samples, **HOT, **rules)[0]
    assert (first.limit, first.confidence) == ("netfilter-cost", confident)
    assert first.evidence.of == "time in the kernel"


@pytest.mark.parametrize("samples, more", [
    ({"kernel": 940, "nf_tables": 60}, HOT | RULES),        # little time
    ({"kernel": 70, "nf_tables": 25}, HOT | RULES),         # few samples
    ({"kernel": 600, "nf_tables": 260}, RULES),             # an idle CPU
    ({"kernel": 600, "nf_tables": 260}, HOT),               # rules of another netns
    ({"kernel": 600, "nfs": 300, "nvme": 200}, HOT | RULES)])
def test_no_netfilter_by_samples(samples, more):
    assert not named("netfilter-cost", found(samples=samples, **more))


def test_samples_rule_out_what_a_profile_suspects():
    suspected = path(netif=3000, estab=300, copy=50)
    rules = {"firewall_rules": {"input": 600}}
    for samples, limit in (({}, True), ({"kernel": 950, "nf_tables": 70}, True),
                           ({"kernel": 1000, "nf_tables": 10}, False)):
        some = seen(suspected, flow=RECEIVER, samples=samples, **BUSY | rules)
        assert bool(named("netfilter-cost", diagnose.diagnose(some))) == limit


# --- Parts of an offload ----------------------------------------------------

def lacking(*parts, **more):
    return {"devices": {"eth0": DEVICE | {"parts_off": list(parts), "offload": DEVICE[
        "offload"] | {"tx": "on", "sg": "on"}}}} | more


SIX = {"local": "[fd00::1]:40000", "remote": "[fd00::2]:5201"}


def test_segmentation_that_is_off_for_ipv6_alone():
    some = seen(SPLIT, flow=SIX, **BUSY | lacking("tx-tcp6-segmentation"))
    diagnoses = diagnose.diagnose(some)
    first = next(d for d in diagnoses if d.wrong)
    assert (first.limit, first.subject) == ("offload-off", "eth0")
    assert "tx-tcp6-segmentation is off" in first.why
    proposals = plan.propose(some, diagnoses, plan.Wish())
    assert [p.setting for p in proposals] == [""]
    assert any("ethtool -K eth0 tx-tcp6-segmentation on" in str(p) for p in proposals)


@pytest.mark.parametrize("flow, parts", [
    ({}, ["tx-tcp6-segmentation"]), (SIX, ["tx-tcp-segmentation"]), (SIX, [])])
def test_a_part_that_no_connection_needs(flow, parts):
    some = seen(SPLIT, flow=flow, **BUSY | lacking(*parts))
    assert not named("offload-off", diagnose.diagnose(some))


# --- A reader that waits for its CPU ----------------------------------------

PACKETS = {"cpus": {"0": CPU | {"idle": 30, "softirq": 140}, "1": CPU}}
SHARED = RECEIVER | {"owner": READER | {"user": .1, "system": .3, "queued": .5,
                                        "calls": {}}}


def test_a_reader_that_waits_for_the_cpu_of_its_packets():
    first = next(d for d in found(flow=SHARED, **PACKETS) if d.wrong)
    assert (first.limit, first.confidence) == ("placement", "medium")
    assert first.numbers["queued"] == .5


def test_packets_that_take_the_cpu_of_a_reader_whose_data_waits():
    full = {"cpus": {c: CPU | {"idle": 0, "softirq": 140} for c in "01"}}
    owner = READER | {"user": .2, "system": .7, "calls": {}}
    late = UNREAD | {"owner": owner}
    assert next(d for d in found(flow=late, **full) if d.wrong).limit == "cpu-softirq"
    rests = UNREAD | {"owner": owner | {"system": .1}}
    assert next(d for d in found(flow=rests, **full) if d.wrong).limit == \
        "application-receive"


def test_a_cpu_that_only_the_watching_uses_is_idle():
    used = {"cpus": PACKETS["cpus"] | {"1": CPU | {"idle": 80, "system": 90}}}
    for own, limit in ((0, False), (.3, True)):
        assert bool(named("placement", found(flow=SHARED, own=own, **used))) == limit


@pytest.mark.parametrize("flow, more", [
    (SHARED | {"owner": READER | {"queued": .1}}, PACKETS),
    (SHARED | {"owner": {k: v for k, v in READER.items() if k != "queued"}}, PACKETS),
    (SHARED, {"cpus": {"0": CPU, "1": CPU}}),               # few packets there
    (SHARED, {"cpus": {c: CPU | {"idle": 30, "softirq": 140} for c in "01"}}),
    (SHARED | {"d_bytes_acked": 10**9}, PACKETS)])          # it is a sender
def test_no_shared_cpu(flow, more):
    assert not named("placement", found(flow=flow, **more))


def test_work_that_need_not_be_done_comes_before_work_that_moves():
    """GRO is off, and the reader waits for the CPU that is busy for that reason."""
    alone = path(facts_=["gro off"], netif=500, estab=900, wait_done=10**6, copy=100)
    offload = DEVICE["offload"] | {"gro": "off"}
    off = {"devices": {"eth0": DEVICE | {"offload": offload}}}
    busy = {"cpus": {"0": CPU | {"idle": 20, "softirq": 150}, "1": CPU}}
    limits = [d.limit for d in diagnose.diagnose(seen(alone, flow=SHARED, **busy | off))
              if d.wrong]
    assert limits[:2] == ["offload-off", "placement"]


# --- Time, not packets per second -------------------------------------------

MESSAGES = RECEIVER | {"d_data_segs_in": 500, "d_data_segs_out": 0,
                       "d_bytes_received": 50_000}
SMALL = path(size=100, packets=90, netif=200, estab=300, wake=500, wait_done=900,
             copy=50)


def test_few_wake_ups_matter_where_they_take_time():
    for time, limit in ((.3, True), (.1, False)):
        owner = READER | {"user": 0, "system": time, "sleeps_per_s": 100, "calls": {}}
        some = seen(SMALL, flow=MESSAGES | {"owner": owner})
        assert bool(named("wake-ups", diagnose.diagnose(some))) == limit
    few = MESSAGES | {"d_data_segs_in": 80, "d_bytes_received": 8000, "owner": owner
                      | {"system": .3}}
    assert not named("wake-ups", diagnose.diagnose(seen(SMALL, flow=few)))


# --- Lost ACKs --------------------------------------------------------------

TIMEOUTS = {"Tcp.RetransSegs": 3, "TcpExt.TCPTimeouts": 3, "TcpExt.TCPLossUndo": 1}
AGAIN = {"d_total_retrans": 3, "d_data_segs_out": 900, "rtt": 90_000,
         "d_bytes_acked": 900_000}


def test_timeouts_that_cost_one_segment_each():
    first = next(d for d in found(flow=AGAIN, snmp=TIMEOUTS) if d.wrong)
    assert (first.limit, first.confidence) == ("ack-loss", "medium")
    two = {"Tcp.RetransSegs": 2, "TcpExt.TCPTimeouts": 2, "TcpExt.TCPLossUndo": 1}
    first = next(d for d in found(flow=AGAIN | {"d_total_retrans": 2}, snmp=two)
                 if d.wrong)
    assert (first.limit, first.confidence) == ("ack-loss", "low")


@pytest.mark.parametrize("flow, snmp", [
    ({"d_total_retrans": 40}, {"Tcp.RetransSegs": 40}),     # the flight was lost
    ({"high_unacked": 4}, {}),                              # there was none
    ({}, {"TcpExt.TCPSackRecovery": 2}),                    # there were holes
    ({}, {"TcpExt.TCPLossUndo": 0}),                        # nothing was undone
    ({}, {"Tcp.RetransSegs": 90}),                          # others' timeouts
    ({}, {"TcpExt.TCPTimeouts": 0})])
def test_other_losses_are_no_lost_acks(flow, snmp):
    assert not named("ack-loss", found(flow=AGAIN | flow, snmp=TIMEOUTS | snmp))


SILENT = {"d_bytes_acked": 0, "d_busy_time": 2 * 10**6, "retransmits": 1,
          "bytes_acked": 10**8, "total_retrans": 6, "dsack_dups": 2, "seconds": 2,
          "d_segs_in": 0, "d_total_retrans": 1, "d_data_segs_out": 1}


@pytest.mark.parametrize("more, limit, confident", [
    ({}, "ack-loss", "low"),
    ({"dsack_dups": 0}, "path-down", "low"),
    ({"dsack_dups": 1}, "path-down", "low"),
    ({"dsack_dups": 2, "total_retrans": 40}, "path-down", "low"),
    ({"retransmits": 4}, "path-down", "medium"),
    ({"retransmits": 4, "dsack_dups": 46, "total_retrans": 50}, "ack-loss", "medium"),
    ({"retransmits": 4, "dsack_dups": 8, "total_retrans": 50}, "path-down", "medium"),
    ({"retransmits": 4, "dsack_dups": 3, "total_retrans": 7}, "path-down", "medium"),
    ({"retransmits": 5, "dsack_dups": 4, "total_retrans": 9}, "ack-loss", "medium"),
    ({"retransmits": 6, "dsack_dups": 46, "total_retrans": 50}, "path-down",
     "medium")])
def test_one_timeout_is_little_to_go_by(more, limit, confident):
    first = found(flow=SILENT | more)[0]
    assert (first.limit, first.confidence) == (limit, confident)


@pytest.mark.parametrize("other, limit", [
    ({}, "path-down"),
    ({"retransmits": 2}, "ack-loss"),
    ({"retransmits": 0, "d_bytes_acked": 10**6}, "ack-loss"),
    ({"remote": "10.7.7.7:80"}, "ack-loss")])
def test_a_path_that_silences_all_connections_is_down(other, limit):
    mine = SILENT | {"retransmits": 4, "dsack_dups": 46, "total_retrans": 50}
    some = facts(mine)
    some["flows"].append(some["flows"][0] | {"local": "10.0.0.1:4"} | other)
    assert wait.stopped(some["flows"][0], some)[0] == limit


# --- A window that is not full ----------------------------------------------

def test_small_segments_do_not_fill_a_window():
    full = RECEIVER | {"rcv_rtt": 1_900_000, "rcv_ssthresh": 64_000,
                       "d_bytes_received": 70_000, "d_data_segs_in": 50}
    assert named("receive-window", found(flow=full)).confidence == "medium"
    assert not named("receive-window", found(flow=full | {"d_data_segs_in": 700}))
    # A round trip of 4 s in an interval of 2 s.
    assert not named("receive-window", found(flow=full | {"rcv_rtt": 4_000_000}))
    # The estimate of the segment size follows the small segments.
    small = full | {"d_data_segs_in": 350, "rcv_mss": 200}
    assert named("receive-window", found(flow=small))
    assert not named("receive-window", found(flow=small | {"advmss": 1448}))


def test_a_watched_task_can_fork(monkeypatch, tmp_path):
    """With the flag "inherit" (bit 1) the kernel lets its fork() fail."""
    (tmp_path / "type").write_text("8\n")
    opened = []
    monkeypatch.setattr(perf_events, "KPROBES", tmp_path / "type")
    monkeypatch.setattr(perf_events, "_open", lambda *words: opened.append(words) or 3)
    assert perf_events.calls("tcp_recvmsg", 77) == 3
    (attributes, task, cpu), = opened
    assert (task, cpu) == (77, -1)
    assert struct.unpack("=IIQQQQQIIQQ", attributes)[6] == 0


# --- The module's counters --------------------------------------------------

def test_counters_of_the_module_that_only_root_reads(tmp_path, monkeypatch):
    """The reason is one sentence, and a user can see what to do about it."""
    assert collect.mssfrac(tmp_path) == {}
    file = tmp_path / "mssfrac"
    file.write_text("stock_tx_sized 3\ntreated_tx_sized 4\n")
    assert collect.mssfrac(tmp_path) == {"stock_tx_sized": 3, "treated_tx_sized": 4}

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied", str(file))
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(TuneError, match="^only root can read the module's counters$"):
        collect.mssfrac(tmp_path)
