# SPDX-License-Identifier: GPL-2.0-only
"""Facts that are missing, late or harmless, and evidence that names the wrong cause:
what msstune must not conclude from them."""
import copy
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune_facts import CPU, DEVICE, RECEIVER, SENDER, facts  # noqa: E402
from msstune.causes import diagnose, plan  # noqa: E402
from msstune.facts import (collect, device, host, profile_recorder,  # noqa: E402
                           tasks as collect_tasks)
from msstune.errors import TuneError, UsageError  # noqa: E402


def found(**more):
    return diagnose.diagnose(facts(**more))


def first(**more):
    return found(**more)[0]


def named(limit, **more):
    return next((d for d in found(**more) if d.limit == limit), None)


def wrong(diagnoses):
    """Faults that the answer would name."""
    return [d.limit for d in diagnoses if d.wrong and d.weight >= 5]


# --- Facts that are missing or late -------------------------------------------

@pytest.fixture
def quick(monkeypatch):
    """Facts of 0.3 s, where one collector fails the first time it is asked."""
    def collected(module, name):
        real, asked = getattr(module, name), []

        def read(*words):
            asked.append(words)
            if len(asked) == 1:
                raise OSError("not now")
            return real(*words)
        monkeypatch.setattr(module, name, read)
        return collect.collect(0.3, looks=2)
    return collected


@pytest.mark.parametrize("module, name, key", [
    (collect, "snmp", "snmp"), (collect, "softnet", "softnet"),
    (device, "devices", "devices"), (host, "firewall", "firewall")])
def test_counters_since_boot_are_no_difference(quick, module, name, key):
    """Else what a host counted since its boot happened in these seconds."""
    some = quick(module, name)
    assert not some[key] and any("not now" in line for line in some["missing"])


def test_a_late_reading_of_devices_has_its_own_time():
    """A tbf that sends at half of its limit, read twice as far apart."""
    queue = {"kind": "tbf", "drops": 0, "packets": 9, "bytes": 2 * 10**6,
             "options": {"rate": 10**6}}
    slow = {"devices": {"eth0": DEVICE | {"qdiscs": [queue]}}}
    odd = {"high_unacked": 20}
    assert first(flow=odd, **slow).limit == "shaper"
    assert first(flow=odd, spans={"devices": 4.0}, **slow).limit == "unknown"
    quota = {"throttled": {"/slow": 300_000}}
    owner = {"owner": {"pid": 1, "cpu": 0, "comm": "app", "cgroup": "/slow/x"}}
    assert named("cpu-quota", flow=owner, **quota)
    assert not named("cpu-quota", flow=owner, spans={"counters": 9.0}, **quota)


def test_a_profile_that_cannot_be_read_costs_no_other_fact(monkeypatch, tmp_path):
    class Broken:
        pid, missing = 0, ""

        def start(self):
            pass

        close = start

        def stop(self):
            return tmp_path / "profile"
    (tmp_path / "profile").write_text("{")
    monkeypatch.setattr(profile_recorder, "Recorder", Broken)
    monkeypatch.setattr(collect, "_collect", lambda *_: {"missing": [], "flows": []})
    some = collect.collect(0.1, record=True)
    assert some["flows"] == [] and "profile" in some["missing"][0]
    with pytest.raises(UsageError):     # one that the user names is an error
        collect.profile_facts.read(tmp_path / "profile")


def test_a_recorder_without_setpriv_or_end(monkeypatch, tmp_path):
    tool = tmp_path / "pathprof"
    tool.write_text("""#!/usr/bin/python3
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.write(int(sys.argv[sys.argv.index("--ready-fd") + 1]), b"\\n")
time.sleep(60)
""")
    tool.chmod(0o755)
    monkeypatch.setattr(profile_recorder.os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path))
    one = profile_recorder.Recorder()
    one.start()
    assert one.missing == "no setpriv on PATH" and one.stop() is None
    one.close()
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    two = profile_recorder.Recorder()
    two.start()
    monkeypatch.setattr(profile_recorder, "PATIENCE", 0.5)
    assert two.stop() is None and two.missing == "pathprof did not end in 0.5 s"
    two.close()


WINDOW = {"d_rwnd_limited": 10**6, "high_snd_wnd": 200_000, "snd_wnd": 200_000,
          "low_snd_wnd": 200_000}
CALLS = {"reads": 500, "writes": 0, "seconds": .25, "bytes_read": 500 * 65536,
         "bytes_written": 0}
OWNER = {"pid": 7, "cpu": 0, "comm": "reader", "cgroup": "/", "user": .5,
         "system": .45, "queued": 0.01, "sleeps_per_s": 0, "written_per_s": 0,
         "calls": CALLS}
UNREAD = RECEIVER | {"low_rqueue": 10**6, "high_rqueue": 2 * 10**6, "rqueue": 10**6}


@pytest.mark.parametrize("flow, more, limit", [
    (WINDOW, {"cpus": {}}, "receive-window"),
    (WINDOW | {"min_rtt": 2**32 - 1}, {}, "receive-window"),
    (UNREAD | {"owner": OWNER}, {"cpus": {}}, "application-receive")])
def test_a_missing_fact_rules_nothing_out(flow, more, limit):
    assert first(flow=flow | {"min_rtt": 10000}).confidence == "high"
    one = first(flow=flow, **more)
    assert (one.limit, one.confidence) == (limit, "medium")


RECORDED = {"gro-off": "offload-off", "checksum": "offload-off",
            "netfilter": "netfilter-cost", "wake-ups": "wake-ups",
            "small-writes": "small-writes", "backlog": "backlog-drops"}


@pytest.mark.parametrize("name", RECORDED)
def test_without_one_fact_no_other_cause_is_certain(name):
    """What a collector that fails leaves: {}, or nothing."""
    kept = json.loads((Path(__file__).with_name("paths")
                       / f"{name}.json").read_text())
    for key in ("cpus", "devices", "snmp", "softnet", "sockstat", "irqs", "mssfrac",
                "samples", "firewall", "firewall_rules", "routes", "tcp_metrics",
                "neighbours", "gateways", "listeners", "unanswered", "throttled",
                "paths", "stages", "drops", "recorded", "owner", "calls"):
        some = copy.deepcopy(kept)
        if key in some:
            some[key] = type(some[key])()
        for flow in some["flows"]:
            if key in flow:
                del flow[key]
            flow.get("owner", {}).pop(key, None)
        diagnoses = diagnose.diagnose(some)
        plan.propose(some, diagnoses, plan.Wish())
        answer = next((d for d in diagnoses if d.wrong and d.weight >= 5), None)
        assert answer is None or answer.limit == RECORDED[name] \
            or answer.confidence != "high", key


def test_a_reader_whose_writes_are_not_counted():
    """They may be what takes its time."""
    few = OWNER | {"calls": CALLS | {"bytes_read": 500 * 16}}
    flow = UNREAD | {"d_bytes_received": 10**6}
    assert first(flow=flow | {"owner": few}).confidence == "high"
    less = {key: value for key, value in few.items() if key != "written_per_s"}
    one = first(flow=flow | {"owner": less})
    assert (one.limit, one.confidence) == ("tiny-reads", "medium")


def test_usage_without_the_file_of_bytes(monkeypatch):
    monkeypatch.setattr(host, "_written", lambda _: None)
    used = host.usage({1})
    spent = host.usage_since(used)[1]
    assert "system" in spent and "written_per_s" not in spent


SAMPLED = {"samples": {"kernel": 900, "nf_tables": 100}, "samples_of": {
    "0": {"kernel": 150, "nf_tables": 100}, "1": {"kernel": 750}}}
WORKS = {"cpus": {"0": CPU | {"idle": 20, "system": 150}, "1": CPU}}


def test_the_share_of_the_cpu_that_is_busy():
    """Others do other work, so netfilter's share of all is small."""
    rules = {"firewall_rules": {"input": 60}}
    assert named("netfilter-cost", **SAMPLED, **WORKS, **rules).numbers["share"] == .4
    one = {"samples": SAMPLED["samples"]}
    assert not named("netfilter-cost", **one, **WORKS, **rules)
    # On an idle CPU it limits nothing; of rules that were not seen it may be.
    assert not named("netfilter-cost", **SAMPLED, **rules)
    assert not named("netfilter-cost", **SAMPLED, **WORKS)
    assert named("netfilter-cost", **SAMPLED, **WORKS, missing=[
        "firewall_rules: no nft on PATH"]).confidence == "medium"


def test_rules_without_nft(monkeypatch, tmp_path):
    path = tmp_path / "modules"
    path.write_text("nf_tables 360448 0 - Live 0x0\n")
    monkeypatch.setattr(host.shutil, "which", lambda _: None)
    with pytest.raises(TuneError, match="no nft"):
        host.firewall_rules(path)
    path.write_text("")
    assert host.firewall_rules(path) == {}


# --- A program that waits for its CPU -----------------------------------------

WAITS = UNREAD | {"owner": OWNER | {"user": .4, "system": .1, "queued": .45}}
TAKEN = {"cpus": {"0": CPU | {"user": 160, "idle": 0}, "1": CPU}}


def test_a_cpu_that_other_programs_use():
    one = first(flow=WAITS, **TAKEN, tasks={"0": [
        {"pid": 9, "comm": "busy", "kernel": False, "used": .5},
        {"pid": 7, "comm": "reader", "kernel": False, "used": .5}]})
    assert (one.limit, one.confidence) == ("cpu", "medium")
    assert "beside busy (50%)" in one.why
    assert "see cpu" in named("application-receive", flow=WAITS, **TAKEN).why
    # One that does not wait, or for which nothing waits.
    rests = WAITS | {"owner": WAITS["owner"] | {"queued": .05}}
    assert first(flow=rests, **TAKEN).limit == "application-receive"
    idle = RECEIVER | {"owner": WAITS["owner"]}
    assert named("cpu", flow=idle, **TAKEN).confidence == "low"


def test_a_polling_thread_handles_packets():
    """The kernel counts its time as a program's."""
    napi = {"pid": 20, "comm": "napi/eth0-8193", "kernel": True, "used": .45}
    busy = {"cpus": {"0": CPU | {"idle": 1, "system": 90, "user": 90}, "1": CPU}}
    assert first(flow=WAITS, **busy, tasks={"0": [napi]}).limit == "placement"
    named_so = napi | {"kernel": False}     # a program may call itself anything
    assert first(flow=WAITS, **busy, tasks={"0": [named_so]}).limit == "cpu"


def test_a_reader_that_rests_is_no_reason_to_move_it():
    busy = {"cpus": {"0": CPU | {"idle": 1, "softirq": 60, "user": 120}, "1": CPU}}
    rests = OWNER | {"user": .01, "system": .02, "queued": 0.0}
    flow = RECEIVER | {"owner": rests}
    assert named("placement", flow=flow | {"owner": OWNER}, **busy)
    assert not named("placement", flow=flow, **busy)


def test_a_reader_that_catches_up_is_not_what_limits():
    """It waits for its CPU, and no data waits for it: the work per packet counts."""
    busy = {"cpus": {"0": CPU | {"idle": 50, "system": 50, "softirq": 70}, "1": CPU}}
    waits = OWNER | {"queued": .3, "user": .02, "system": .4}
    assert named("placement", flow=UNREAD | {"owner": waits}, **busy).weight > 50
    assert not named("placement", flow=RECEIVER | {"owner": waits}, **busy)


def test_a_symptom_does_not_push_the_work_aside():
    """A CPU explains why the reader is late, so the packets' work is not less."""
    rules = {"samples": {"kernel": 500, "nf_tables": 500},
             "firewall_rules": {"input": 600}}
    full = {"cpus": {"0": CPU | {"idle": 2, "system": 90, "softirq": 90}, "1": CPU}}
    flow = UNREAD | {"owner": OWNER | {"user": .1, "system": .5, "queued": .4}}
    one = first(flow=flow, **rules, **full)
    assert one.limit == "netfilter-cost" and "placement" in [
        d.limit for d in found(flow=flow, **rules, **full)]
    rests = UNREAD | {"owner": OWNER | {"user": .1, "system": .1}}
    assert first(flow=rests, **rules, **WORKS).limit == "application-receive"


def test_needless_timeouts_and_few_acks_say_the_same():
    few = {"d_segs_in": 107, "d_data_segs_out": 17_602, "rtt": 15000}
    undone = {"TcpExt.TCPLossUndo": 1}
    spurious = few | {"d_total_retrans": 2, "d_dsack_dups": 2}
    assert first(flow=few).limit == "path"
    assert first(flow=spurious).limit == "path"
    assert first(flow=few, snmp=undone).limit == "path"
    one = first(flow=spurious, snmp=undone)
    assert (one.limit, one.confidence) == ("ack-loss", "low")


def test_tasks_of_this_host():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        try:
            before = collect_tasks.tasks()
            time.sleep(1)
            used = collect_tasks.since(before, set())
            mine = [one for some in used.values() for one in some
                    if one["pid"] == busy.pid]
            assert mine and mine[0]["used"] > .05 and not mine[0]["kernel"]
            assert not [one for some in collect_tasks.since(before, {busy.pid}).values()
                        for one in some if one["pid"] == busy.pid]
        finally:
            busy.kill()


# --- What is too little -------------------------------------------------------

LOST = {"d_total_retrans": 500, "d_data_segs_out": 20_000}


@pytest.mark.parametrize("more", [
    {"devices": {"eth0": DEVICE | {"rx": {"packets": 20_000, "missed_errors": 1}}}},
    {"devices": {"eth0": DEVICE | {"rx": {"packets": 20_000, "crc_errors": 1}}}},
    {"softnet": [{"cpu": 0, "processed": 20_000, "dropped": 1, "squeezed": 0}]},
    {"firewall": {"ip filter in handle 3: drop": 1}}])
def test_one_drop_does_not_explain_many_losses(more):
    assert first(flow=LOST, **more).limit == "loss"
    # Nor does it matter where no connection lost anything.
    assert not wrong(found(flow={"rtt": 25000}, **more))


def test_a_firewall_that_drops_other_traffic():
    """Any host in the Internet drops scans, and sends a segment again now and then."""
    scans = {"firewall": {"ip filter in handle 3: drop": 900}}
    assert "own-firewall" not in wrong(found(flow={"d_total_retrans": 3}, **scans))
    assert "own-firewall" in wrong(found(flow={"d_total_retrans": 300}, **scans))


def test_the_reverse_path_filter_of_a_healthy_host():
    noise = {"snmp": {"TcpExt.IPReversePathFilter": 20, "Ip.InReceives": 20_000}}
    assert not wrong(found(flow={"rtt": 25000}, **noise))


def test_a_listener_that_is_restarted_has_no_full_queue():
    assert named("syn-queue", snmp={"TcpExt.ListenDrops": 1}).confidence == "medium"
    assert named("syn-queue", snmp={"TcpExt.TCPReqQFullDrop": 1}).confidence == "high"


#: How a rate varies where losses are random.
TAKES = [1e6, 2e6, 1.2e6, 0.7e6, 1.6e6, 1e6]


def test_two_losses_are_not_certain():
    for count, confident in ((2, "medium"), (90, "high")):
        recovered = {"TcpExt.TCPSackRecovery": count, "Tcp.RetransSegs": count}
        flow = {"d_total_retrans": count, "d_data_segs_out": 3000,
                "snd_ssthresh": 60, "low_snd_ssthresh": 30, "high_snd_ssthresh": 60,
                "acked_per_s": TAKES}
        one = first(flow=flow, snmp=recovered)
        assert (one.limit, one.confidence) == ("loss", confident)
        # All at one window: a policer is not ruled out.
        same = first(flow=flow | {"low_snd_ssthresh": 58}, snmp=recovered)
        assert (same.limit, same.confidence) == ("loss", "medium")


def test_an_offload_that_is_off_on_an_idle_host():
    off = {"eth0": DEVICE | {"offload": {"gro": "off"}, "rx": {
        "packets": 10**5, "bytes": 15 * 10**7}}}
    assert not wrong(found(flow={"rtt": 25000, "high_unacked": 20}, devices=off))


def test_interrupts_of_another_device():
    """eth10 is not eth1."""
    busy = {"cpus": {"0": CPU | {"idle": 20, "system": 150}, "1": CPU}}
    many = {"packets": 2 * 10**5, "bytes": 3 * 10**8}
    for name, limit in (("eth1", "interrupt-rate"), ("eth10", "unknown")):
        one = first(flow={"high_unacked": 20}, devices={"eth1": DEVICE | {"rx": many}},
                    irqs={f"24 {name}-rx-0": {"0": 180_000}}, **busy)
        assert one.limit == limit


def test_a_connection_within_the_host_waits_for_no_interrupt():
    held = {"eth0": DEVICE | {"coalesce": {"rx-usecs": "250"}}}
    local = SENDER | {"min_rtt": 40, "rtt": 50, "remote": "10.0.0.1:80"}
    assert named("coalescing", devices=held, flows=[SENDER | {"min_rtt": 400}])
    assert not named("coalescing", devices=held, flows=[SENDER, local])


def test_reordering_that_takes_no_time():
    """Software that splits on another CPU reorders, within a round trip of 50 us."""
    often = {"d_reord_seen": 300, "d_delivered": 17_000, "high_unacked": 20}
    assert first(flow=often).limit == "reordering"
    assert first(flow=often | {"rtt": 60, "min_rtt": 50}).limit == "unknown"
    # Nor where a queue makes the round trip longer: the bottleneck is busy meanwhile.
    again = often | {"d_total_retrans": 177, "d_dsack_dups": 102}
    assert named("reordering", flow=again).confidence == "high"
    queued = again | {"rtt": 15_600, "min_rtt": 252}
    assert named("reordering", flow=queued).confidence == "low"


def test_reordering_by_a_cpu_without_idle_time_is_a_symptom():
    again = {"d_total_retrans": 60, "d_dsack_dups": 20, "d_reord_seen": 90}
    full = {"cpus": {"0": CPU | {"idle": 2, "system": 170}, "1": CPU}}
    for more, confident in (({}, "medium"), (full, "low")):
        one = named("reordering", flow=again, **more)
        assert one.confidence == confident


# --- States that pass ---------------------------------------------------------

def test_a_window_that_grows_is_no_slow_reader():
    grows = WINDOW | {"low_snd_wnd": 50_000, "falls_snd_wnd": 0, "sunk_snd_wnd": 0}
    one = first(flow=grows)
    assert (one.limit, one.confidence) == ("receive-window", "medium")
    assert "still grows" in one.why
    most = WINDOW["high_snd_wnd"]
    # Data that lies unread for a moment closes it a little.
    little, much = {"sunk_snd_wnd": most // 20}, {"sunk_snd_wnd": most // 2}
    assert first(flow=grows | {"falls_snd_wnd": 2} | little).limit == "receive-window"
    assert first(flow=grows | {"falls_snd_wnd": 2} | much).limit == "peer-application"
    # Few dumps of a short window: it limits all the time.
    always = little | {"falls_snd_wnd": 1, "d_rwnd_limited": 2 * 10**6}
    assert first(flow=grows | always).limit == "peer-application"


def test_a_buffer_that_grows_is_not_fixed():
    flow = RECEIVER | {"rcv_ssthresh": 131072, "rcvbuf": 262144}
    assert first(flow=flow | {"low_rcvbuf": 262144}).limit == "receive-buffer-fixed"
    assert first(flow=flow | {"low_rcvbuf": 131072}).limit == "unknown"


def test_a_connection_that_never_lost_recovers_from_nothing():
    """Slow start may end early (HyStart)."""
    grows = {"snd_ssthresh": 60, "high_unacked": 90}
    assert first(flow=grows | {"total_retrans": 1}).limit == "recovery"
    assert not wrong(found(flow=grows | {"total_retrans": 0}))


def test_a_window_that_grows_from_an_old_threshold():
    flow = {"snd_ssthresh": 5, "high_unacked": 147, "snd_cwnd": 147,
            "high_snd_cwnd": 147, "low_snd_cwnd": 45, "total_retrans": 0}
    cached = {"tcp_metrics": {"10.0.0.2": {"ssthresh": 5}}}
    one = first(flow=flow, **cached)
    assert (one.limit, one.confidence) == ("stale-metrics", "medium")
    assert not wrong(found(flow=flow | {"low_snd_cwnd": 146}, **cached))
    assert not wrong(found(flow=flow, tcp_metrics={"10.0.0.2": {"ssthresh": 6}}))


STILL = {"d_bytes_acked": 0, "d_bytes_received": 0, "seconds": 2, "unacked": 0,
         "notsent_bytes": 0, "wqueue": 0, "low_rqueue": 200, "high_rqueue": 200,
         "rqueue": 200}


def test_unread_bytes_of_a_peer_that_has_gone():
    """A program that leaks connections holds nobody back."""
    busy = SENDER | {"d_rwnd_limited": 1_900_000, "high_snd_wnd": 65536,
                     "low_snd_wnd": 65000}
    for state, limits in ((8, ["receive-window"]), (1, ["receive-window",
                                                        "reader-stopped"])):
        left = RECEIVER | STILL | {"state": state, "local": "10.0.0.1:80"}
        assert wrong(found(flows=[busy, left])) == limits


def test_bursts_over_a_link_need_no_slow_start():
    pauses = {"d_busy_time": 100_000, "high_last_data_sent": 700, "rto": 210_000,
              "total_retrans": 0, "snd_cwnd": 90, "d_data_segs_out": 400}
    slow = {"sysctl": facts()["sysctl"] | {
        "net.ipv4.tcp_slow_start_after_idle": "1"}}
    assert first(flow=pauses, **slow).limit == "idle-restart"
    assert not wrong(found(flow=pauses | {"rtt": 250, "min_rtt": 200}, **slow))


# --- Several connections ------------------------------------------------------

def test_connections_with_the_same_limit_weigh_together():
    """Ten that a window limits are no less limited than one."""
    many = [SENDER | WINDOW | {"local": f"10.0.0.1:{4000 + n}"} for n in range(10)]
    one = diagnose.diagnose(facts(flow=WINDOW))[0]
    all_ = diagnose.diagnose(facts(flows=many))
    assert all_[0].limit == "receive-window"
    assert all_[0].weight == pytest.approx(one.weight)
    assert all(d.weight < 6 for d in all_[1:])


SILENT = {"unacked": 20, "retransmits": 4, "d_bytes_acked": 0, "wqueue": 50_000,
          "notsent_bytes": 0, "bytes_acked": 10**7, "seconds": 2, "dsack_dups": 1,
          "total_retrans": 6}


def test_connections_to_one_address_have_one_path():
    """DSACKs of another one say as well that ACKs are lost; and a path that carries
    others is not down."""
    moves = SENDER | {"local": "10.0.0.1:40001"}
    spurious = moves | {"total_retrans": 8, "dsack_dups": 5}
    for other, limit, confident in ((None, "path-down", "medium"),
                                    (moves, "path-down", "low"),
                                    (spurious, "ack-loss", "medium")):
        flows = [SENDER | SILENT, *([other] if other else [])]
        one = diagnose.diagnose(facts(flows=flows))[0]
        assert (one.limit, one.confidence) == (limit, confident)


def test_an_icmp_error_may_be_of_a_datagram():
    for count, confident in ((1, "medium"), (4, "high")):
        one = first(flow=SILENT, snmp={"Icmp.InDestUnreachs": count})
        assert (one.limit, one.confidence) == ("path-down", confident)


# --- Why it lost --------------------------------------------------------------------

@pytest.mark.parametrize("again, dsacks, counters, limit", [
    # Probes of the tail that found everything there are no loss.
    (2, 2, {"TCPLossProbes": 2}, "no loss"), (2, 2, {"TCPLossProbes": 1}, "ack-loss"),
    (2, 2, {"TCPLossProbes": 2, "TCPTimeouts": 1}, "ack-loss"),
    (2, 1, {"TCPLossProbes": 2}, "loss"), (9, 9, {"TCPLossProbes": 9}, "ack-loss")])
def test_needless_probes_are_no_loss(again, dsacks, counters, limit):
    answer = first(flow={"d_total_retrans": again, "d_dsack_dups": dsacks,
                         "d_data_segs_out": 1000},
                   snmp={f"TcpExt.{key}": count for key, count in counters.items()})
    got = answer.limit if answer else ""
    assert got == limit or limit == "no loss" and got not in ("ack-loss", "loss")
    if got == "ack-loss":   # a few prove little
        assert answer.confidence == ("medium" if again > 8 else "low")


@pytest.mark.parametrize("other, recoveries, limit", [
    # What one loses the other takes: a rate is shared; or each has its own losses.
    ([3e6 - rate for rate in TAKES], 20, "policer"), (TAKES, 20, "loss"),
    # As many losses for each recovery as random ones make.
    ([3e6 - rate for rate in TAKES], 55, "loss")])
def test_what_is_policed_is_the_sum(other, recoveries, limit):
    lost = SENDER | {"d_total_retrans": 30, "d_data_segs_out": 4000, "snd_cwnd": 40}
    flows = [lost | {"acked_per_s": TAKES},
             lost | {"acked_per_s": other, "local": "10.0.0.1:40001"}]
    found = diagnose.diagnose(facts(flows=flows, snmp={
        "Tcp.RetransSegs": 60, "TcpExt.TCPSackRecovery": recoveries}))
    assert {one.limit for one in found} == {limit}


def test_connections_that_hardly_send_do_not_count_as_others():
    """The rate is that of one, whatever a few bytes of others do; and one that sent
    nothing but its SYN again is no error."""
    lost = SENDER | {"d_total_retrans": 30, "d_data_segs_out": 4000, "snd_cwnd": 40}
    idle = SENDER | {"d_bytes_acked": 0, "d_busy_time": 0}
    quiet = [idle | {"local": f"10.0.0.1:{port}", "d_data_segs_out": 2,
                     "acked_per_s": [10.0, 0, 0, 0, 0, 10]} for port in range(8)]
    numbers = [diagnose.diagnose(facts(flows=[lost | {"acked_per_s": TAKES}, *more],
                                       snmp={"Tcp.RetransSegs": 30,
                                             "TcpExt.TCPSackRecovery": 28}))[0].numbers
               for more in ([], quiet, [idle | {"d_data_segs_out": 0}])]
    assert len({round(one["rate_varies"], 3) for one in numbers}) == 1
    syn = SENDER | {"d_total_retrans": 4, "d_data_segs_out": 0, "d_bytes_acked": 30_000}
    assert diagnose.diagnose(facts(flows=[syn], snmp={"TcpExt.TCPTimeouts": 4}))


@pytest.mark.parametrize("again, confident", [(30, "high"), (60, "medium")])
def test_losses_in_groups_are_no_certain_random_ones(again, confident):
    one = first(flow={"d_total_retrans": again, "d_data_segs_out": 4000, "snd_cwnd": 30,
                      "high_snd_ssthresh": 60, "low_snd_ssthresh": 30,
                      "acked_per_s": TAKES},
                snmp={"Tcp.RetransSegs": again, "TcpExt.TCPSackRecovery": 28})
    assert (one.limit, one.confidence) == ("loss", confident)


@pytest.mark.parametrize("options, again, rtt, ecn, limit, new", [
    (15, 2000, 10_400, "1", "ecn-black-hole", "2"),
    (15, 2000, 16_000, "2", "ecn-black-hole", "0"),     # the peer has asked for it
    (15, 2000, 10_400, "3", "ecn-black-hole", "2"),     # AccECN is asked for
    (15, 2000, 10_400, "5", "ecn-black-hole", "0"),     # and here accepted only
    (15, 2000, 10_400, "0", "ecn-black-hole", None),    # that was before
    (7, 2000, 16_000, "1", "loss", None), (15, 300, 16_000, "1", "path", None)])
def test_a_path_that_drops_what_ecn_could_mark(options, again, rtt, ecn, limit, new):
    some = facts(flow={"options": options, "d_total_retrans": again, "rtt": rtt,
                       "d_data_segs_out": 4100})
    some["sysctl"] |= {"net.ipv4.tcp_ecn": ecn}
    found = diagnose.diagnose(some)
    assert found[0].limit == limit
    new_values = {p.setting: p.new for p in plan.propose(some, found, plan.Wish())}
    assert new_values.get("sysctl:net.ipv4.tcp_ecn") == new


def test_segments_that_are_lost_twice_are_no_matter_of_ecn():
    one = first(flow={"options": 15, "d_total_retrans": 1900, "d_data_segs_out": 4100},
                snmp={"TcpExt.TCPLostRetransmit": 300, "Tcp.RetransSegs": 1900})
    assert one.limit == "loss"
