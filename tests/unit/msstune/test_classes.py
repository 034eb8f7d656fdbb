# SPDX-License-Identifier: GPL-2.0-only
"""The wide classes of diagnose: each from facts of the kernel, "unknown" rather than
a guess, and no proposal that cannot help.  Real faults: guest/msstune."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune_facts import DEVICE, RECEIVER, SENDER, facts  # noqa: E402
from msstune.causes import diagnose, plan  # noqa: E402
from msstune.facts import profile_facts  # noqa: E402

#: Nothing moved in 2 s.
STILL = {"d_bytes_acked": 0, "d_bytes_received": 0, "d_busy_time": 0,
         "d_data_segs_out": 0, "notsent_bytes": 0, "unacked": 0, "timer": 0,
         "wqueue": 0, "d_segs_in": 0, "bytes_acked": 1}
SILENT = STILL | {"unacked": 10, "retransmits": 5, "wqueue": 14480}
HELD = {"d_bytes_acked": 15_000, "d_data_segs_out": 75, "looks": 8,
        "looks_corked": 0, "looks_nagle": 0, "high_unacked": 1, "unacked": 1,
        "high_notsent_bytes": 200, "notsent_bytes": 200, "app_limited": True}
FULL = {"high_unacked": 90, "high_snd_cwnd": 90, "total_retrans": 0}
PAUSES = {"d_busy_time": 500_000, "high_last_data_sent": 700, "rto": 250_000,
          "snd_ssthresh": 140, "snd_cwnd": 148, "total_retrans": 0}
SLOW_START = {"sysctl": facts()["sysctl"] | {
    "net.ipv4.tcp_slow_start_after_idle": "1"}}
LOST = {"d_total_retrans": 100}

HTB = {"devices": {"eth0": DEVICE | {"qdiscs": [
    {"kind": "htb", "drops": 0, "packets": 17000, "bytes": 25 * 10**6, "overlimits": 80,
     "backlog": 90000}]}}}
STEADY = [1e6, 1.02e6, 0.99e6, 1e6, 1.01e6, 0.98e6]
VARYING = [1e6, 2e6, 1.1e6, 0.8e6, 1.9e6, 1e6]
#: Segments come by two ways, one of which takes longer.
LATE = {"d_bytes_acked": 400_000, "d_data_segs_out": 280, "d_delivered": 280,
        "d_total_retrans": 3, "d_dsack_dups": 3, "d_reord_seen": 108, "rtt": 23_000,
        "min_rtt": 5000, "snd_cwnd": 2, "snd_ssthresh": 2, "options": 7}


def found(flow=None, **more):
    return diagnose.diagnose(facts(flow, **more))


def snmp(**counters):
    return {"snmp": {key.replace("_", ".", 1): value
                     for key, value in counters.items()}}


def proposals(flow=None, **more):
    some = facts(flow, **more)
    return [p.setting for p in plan.propose(some, diagnose.diagnose(some),
                                            plan.Wish()) if p.setting]


CLASSES = [
    (STILL | {"rqueue": 9000, "low_rqueue": 9000}, {}, "reader-stopped"),
    (STILL | {"wqueue": 99999, "notsent_bytes": 99999, "snd_wnd": 0, "timer": 4}, {},
     "peer-stopped"),
    (SILENT, {"neighbours": ["10.0.0.2"]}, "path-down"),
    (SILENT, {"neighbours": ["10.0.0.9"], "gateways": {"10.0.0.2": "10.0.0.9"}},
     "path-down"),
    (SILENT, snmp(Icmp_InDestUnreachs=3), "path-down"),
    (SILENT | {"bytes_acked": 10**6}, {}, "path-down"),
    (SILENT, {}, "mtu"),
    # Small segments are no matter of the MTU.
    (SILENT | {"wqueue": 500}, {}, "unknown"),
    (SILENT | {"d_segs_in": 3}, {}, "peer-accept-queue"),
    (STILL | {"wqueue": 208, "notsent_bytes": 208, "looks_corked": 5}, {}, "cork"),
    # More than a program can hold back; without a route, as when a device is down.
    (STILL | {"wqueue": 91_224, "notsent_bytes": 91_224}, {}, "unknown"),
    (STILL | {"wqueue": 91_224, "notsent_bytes": 91_224}, snmp(Ip_OutNoRoutes=11),
     "path-down"),
    (STILL | {"wqueue": 208, "notsent_bytes": 208}, snmp(Ip6_OutNoRoutes=11),
     "path-down"),
    (HELD | {"looks_corked": 4}, {}, "cork"),
    (HELD | {"looks_nagle": 5, "rtt": 42000, "min_rtt": 300}, {}, "nagle"),
    ({"d_bytes_acked": 10**6, "high_unacked": 60}, {}, "small-writes"),
    ({"rtt": 552_000, "min_rtt": 41_000}, {}, "bufferbloat"),
    (PAUSES, SLOW_START, "idle-restart"),
    (FULL | {"snd_cwnd": 90}, {"routes": [{"dst": "10.0.0.0/24", "cwnd": 90}]},
     "cwnd-clamp"),
    (FULL | {"snd_ssthresh": 40}, {"tcp_metrics": {"10.0.0.2": {"ssthresh": 40}}},
     "stale-metrics"),
    (LOST, snmp(Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=10), "policer"),
    (LOST, snmp(Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=95), "loss"),
    (LOST | {"rtt": 552_000, "min_rtt": 41_000}, {}, "bufferbloat"),
    (LOST | {"rtt": 152_000, "min_rtt": 41_000}, {}, "path"),
    # Of 90 recoveries none was for a loss, whatever the round trip is; then each was.
    (LATE, snmp(Tcp_RetransSegs=3, TcpExt_TCPSackRecovery=90), "reordering"),
    (LATE | {"d_total_retrans": 45}, snmp(
        Tcp_RetransSegs=45, TcpExt_TCPSackRecovery=45), "path"),
    (LATE | {"d_reord_seen": 9}, snmp(
        Tcp_RetransSegs=3, TcpExt_TCPSackRecovery=90), "path"),
    # A policer lets a rate pass, that of random losses varies.
    (LOST | {"acked_per_s": STEADY}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=50), "policer"),
    (LOST | {"acked_per_s": STEADY}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=90), "loss"),
    (LOST | {"acked_per_s": VARYING}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=50), "loss"),
    (LOST | {"acked_per_s": VARYING}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=10), "loss"),
    # BBR, or a program, keeps a rate steady as well.
    (LOST | {"acked_per_s": STEADY, "cc": "bbr"}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=50), "loss"),
    (LOST | {"acked_per_s": STEADY, "app_limited": True}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=50), "loss"),
    (LOST | {"acked_per_s": VARYING[:4]}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=10), "policer"),
    (LOST | {"d_dsack_dups": 80}, {}, "ack-loss"),
    (LOST | {"d_dsack_dups": 80, "d_reord_seen": 9}, {}, "reordering"),
    # Lost ACKs leave no holes; what they delay is sent again by a timer.
    (LOST | {"d_dsack_dups": 98}, snmp(TcpExt_TCPSackRecovery=54), "reordering"),
    (LOST | {"d_dsack_dups": 98}, snmp(
        TcpExt_TCPSackRecovery=54, TcpExt_TCPLossProbes=40), "ack-loss"),
    # The holes are those of another connection.
    (LOST | {"d_dsack_dups": 98}, snmp(
        TcpExt_TCPSackRecovery=54, Tcp_RetransSegs=300), "ack-loss"),
    (LOST | {"d_dsack_dups": 40}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=95), "loss"),
    # Few data of its own, behind that of others.
    ({"rtt": 959_000, "min_rtt": 8_200, "app_limited": True, "high_notsent_bytes": 0,
      "unacked": 1}, {}, "bufferbloat"),
    ({"rtt": 652_000, "min_rtt": 5_700, "app_limited": True, "high_notsent_bytes": 0,
      "unacked": 3, "d_bytes_acked": 11_184, "d_data_segs_out": 16, "wqueue": 2_000},
     {}, "bufferbloat"),
    # An attempt that this host refused has no answer, either.
    (None, snmp(TcpExt_TCPRetransFail=7) | {"firewall_rules": {"output": 1},
     "unanswered": [{"remote": "10.0.0.9:80", "retransmits": 1}]}, "own-firewall"),
    (None, snmp(TcpExt_TCPRetransFail=7) | {"firewall_rules": {"output": 1}},
     "own-firewall"),
    (RECEIVER | {"rcv_ssthresh": 9000, "d_bytes_received": 1_700_000},
     {"routes": [{"dst": "default", "window": 9000}]}, "route-window"),
    (None, snmp(TcpExt_ListenOverflows=16) | {"listeners": [
        {"local": "10.0.0.1:80", "waiting": 6, "most": 5}]}, "accept-queue"),
    (None, snmp(TcpExt_TCPReqQFullDrop=5), "syn-queue"),
    (None, {"conntrack": {"drop": 9}, "conntrack_size": {"count": 80, "max": 100}},
     "conntrack-full"),
    (None, {"conntrack": {"drop": 9}, "conntrack_size": {"count": 99, "max": 100}},
     "conntrack-full"),
    (None, {"ports": {"range": 100, "used": 100, "remote": "10.0.0.2:80"}},
     "ports-used-up"),
    (LOST, {"firewall": {"ip filter in handle 3: drop": 40}}, "own-firewall"),
    ({"owner": {"pid": 1, "cpu": 0, "comm": "app", "cgroup": "/slow/x"}},
     {"throttled": {"/slow": 900_000}}, "cpu-quota"),
    (None, {"flows": [], "unanswered": [{"remote": "10.0.0.7:80",
                                         "retransmits": 2}]}, "no-answer"),
    (None, {"flows": [], "neighbours": ["10.0.0.7"], "unanswered": [
        {"remote": "10.0.0.7:80", "retransmits": 2}]}, "path-down"),
    (None, snmp(Tcp_AttemptFails=3, Icmp_InDestUnreachs=3)
     | {"flows": [], "neighbours": ["10.0.0.7"]}, "path-down"),
    (None, snmp(TcpExt_ListenDrops=135, TcpExt_ListenOverflows=0), "syn-queue"),
    (None, snmp(TcpExt_IPReversePathFilter=9), "own-firewall"),
    (None, snmp(Tcp_InCsumErrors=2, Tcp_InSegs=362), "link-errors"),
    (None, {"devices": {"eth0": DEVICE | {"tx": {"carrier_changes": 4}}}},
     "link-errors"),
    (LOST, {"devices": {"eth0": DEVICE | {"qdiscs": [
        {"kind": "netem", "drops": 28, "packets": 122, "bytes": 1,
         "options": {"limit": 3, "delay": {"delay": 0.02}}}]}}}, "qdisc-drops"),
    # What leaves the connection and not the host: no retransmission tells.
    ({"d_bytes_sent": 586_000, "d_bytes_acked": 414_000, "high_unacked": 10},
     {"firewall": {"ip filter out handle 2: drop": 76}}, "own-firewall"),
    (None, snmp(Tcp_ActiveOpens=8, TcpExt_TCPSynRetrans=8), "no-answer"),
    (None, snmp(TcpExt_TCPKeepAlive=23) | {"flows": []}, "path-down"),
    # Two timeouts of one connection, while another one moves data: loss.
    (None, {"flows": [SENDER | SILENT | {"retransmits": 1, "bytes_acked": 18_000},
                      SENDER | {"d_bytes_acked": 9000}]}, "loss"),
    # An attempt and a connection that worked, both silent.
    (None, {"flows": [SENDER | SILENT | {"bytes_acked": 10**7}], "unanswered": [
        {"remote": "10.0.0.2:80", "retransmits": 1}]}, "path-down"),
    ({"low_snd_cwnd": 2, "snd_cwnd": 32, "high_unacked": 17,
      "bytes_sent": 68_000}, snmp(Tcp_PassiveOpens=14) | {
        "routes": [{"dst": "10.0.0.0/24", "initcwnd": 2}]}, "initcwnd"),
    # The same, with connections that no two dumps contain.
    (None, snmp(Tcp_ActiveOpens=12, Tcp_OutSegs=600) | {
        "flows": [], "routes": [{"dst": "10.0.0.0/24", "initcwnd": 1}]}, "initcwnd"),
    # A window that was full while segments were sent again eight times in ten.
    ({"d_total_retrans": 8, "d_data_segs_out": 10, "d_rwnd_limited": 672_000,
      "rtt": 168_000, "min_rtt": 50_000, "d_bytes_acked": 30_000}, {}, "path"),
    ({"low_notsent_bytes": 124_000, "high_notsent_bytes": 191_000,
      "low_snd_cwnd": 24, "snd_cwnd": 24, "high_unacked": 12, "unacked": 12,
      "pacing_rate": 1000, "cc": "cubic"},
     {"sysctl": facts()["sysctl"] | {"net.ipv4.tcp_pacing_ca_ratio": "18"}}, "pacing"),
    ({"snd_mss": 115, "pmtu": 1500, "d_data_segs_out": 100_000}, {}, "small-writes"),
    ({"d_reord_seen": 1174, "d_delivered": 13_812, "high_unacked": 90,
      "snd_cwnd": 90, "snd_ssthresh": 288}, {}, "reordering"),
    ({"d_sndbuf_limited": 800_000, "high_wmem_queued": 3_000_000,
      "sndbuf": 4_194_304}, {}, "send-buffer"),
    ({"owner": {"pid": 1, "cpu": 0, "comm": "app", "cgroup": "/held"}},
     {"out_of_memory": {"/held": 40}}, "memory-pressure"),
    (None, HTB, "shaper"),
    ({"rtt": 100_000, "min_rtt": 52_000}, HTB, "shaper"),   # its queue, not the path's
    ({"rtt": 100_000, "min_rtt": 52_000}, {}, "path"),
    # It holds back what other connections send.
    ({"rtt": 100_000, "min_rtt": 52_000, "d_bytes_acked": 10**8}, HTB, "path"),
]


@pytest.mark.parametrize("flow, more, limit", CLASSES)
def test_class(flow, more, limit):
    assert found(flow, **more)[0].limit == limit


#: Healthy, though a rule looks at it: what must not be called a fault.
HEALTHY = [
    # One keepalive is answered by one segment, one SYN in ten is lost.
    ({"rtt": 20000}, snmp(TcpExt_TCPKeepAlive=20, Tcp_InSegs=20)),
    ({"rtt": 20000}, snmp(Tcp_ActiveOpens=30, TcpExt_TCPSynRetrans=3)),
    # BBR paces, and its flight is below its window.
    ({"rtt": 20000, "low_notsent_bytes": 124_000, "low_snd_cwnd": 100,
      "high_unacked": 50, "pacing_rate": 1000, "cc": "bbr"}, {}),
    # A limit of memory that no connection here has reached.
    ({"rtt": 20000}, {"out_of_memory": {"/other": 40}}),
    # Requests and answers: small segments, one at a time, no wait.
    ({"d_bytes_acked": 10**5, "d_data_segs_out": 5000, "high_unacked": 1,
      "app_limited": True, "high_notsent_bytes": 0, "unacked": 0, "looks": 8,
      "looks_corked": 0, "looks_nagle": 0}, {}),
    # One dump may catch a write that is about to be sent.
    (HELD | {"looks_nagle": 1, "looks_corked": 1, "d_bytes_acked": 30_000,
             "d_busy_time": 10**5}, {}),
    # The peer has closed, and the program does not.
    (STILL | {"state": 8, "rqueue": 1, "low_rqueue": 1}, {}),
    # An open connection without work.
    (STILL, {}),
    # Traffic of the firewall that concerns no connection.
    ({"rtt": 20000}, {"firewall": {"ip filter in handle 3: drop": 4}}),
    # A quota of a cgroup that has no connection here.
    ({"rtt": 20000}, {"throttled": {"/other": 900_000}}),
    # conntrack drops little and is not full.
    ({"rtt": 20000}, {"conntrack": {"drop": 2},
                      "conntrack_size": {"count": 5, "max": 100}}),
    # It has no limit (0), and what it drops has another cause.
    ({"rtt": 20000}, {"conntrack": {"drop": 2},
                      "conntrack_size": {"count": 500, "max": 0}}),
    # A segment could not be sent again for want of a route; without a firewall.
    ({"rtt": 20000}, snmp(TcpExt_TCPRetransFail=3, Ip_OutNoRoutes=3) | {
        "firewall_rules": {"output": 4}}),
    ({"rtt": 20000}, snmp(TcpExt_TCPRetransFail=3) | {
        "firewall_rules": {"input": 4}}),
    # Few data over a path that is always long.
    ({"rtt": 652_000, "min_rtt": 600_000, "app_limited": True, "d_bytes_acked": 9_000,
      "d_data_segs_out": 16, "wqueue": 0}, {}),
    # Bursts that fit into the initial window, after pauses.
    (PAUSES | {"snd_cwnd": 12}, SLOW_START),
    # A route with a metric that is not the limit.
    ({"rtt": 20000}, {"routes": [{"dst": "10.0.0.0/24", "cwnd": 500}]}),
]


@pytest.mark.parametrize("flow, more", HEALTHY)
def test_healthy(flow, more):
    wrong = [d for d in found(flow, **more) if d.wrong and d.weight >= 5]
    assert not wrong and not proposals(flow, **more)


def test_a_stopped_connection_outweighs_a_busy_one():
    some = facts(flows=[SENDER, SENDER | STILL | {
        "local": "10.0.0.1:9", "rqueue": 9000, "low_rqueue": 9000}])
    assert diagnose.diagnose(some)[0].limit == "reader-stopped"
    assert diagnose.verdict(diagnose.diagnose(some)).startswith("limited by reader")


@pytest.mark.parametrize("flow, more, never", [
    # SO_SNDBUF of the program: tcp_wmem cannot help.
    ({"d_sndbuf_limited": 1_900_000, "sndbuf": 32768},
     {"sysctl": facts()["sysctl"] | {"net.ipv4.tcp_wmem": "4096 16384 4194304"}},
     "tcp_wmem"),
    (SILENT, {"neighbours": ["10.0.0.2"],
              "sysctl": facts()["sysctl"] | {"net.ipv4.tcp_mtu_probing": "0"}},
     "mtu_probing"),
    *((LOST | {"acked_per_s": rates}, snmp(
        Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=recoveries)
       | {"congestion_controls": "cubic bbr", "sysctl": facts()["sysctl"] | {
           "net.ipv4.tcp_congestion_control": "cubic"}}, "congestion_control")
      for rates, recoveries in ((STEADY, 95), (VARYING, 10), ([], 95))),
])
def test_no_proposal_that_cannot_help(flow, more, never):
    assert not any(never in setting for setting in proposals(flow, **more))


def test_bbr_where_losses_are_random():
    assert "sysctl:net.ipv4.tcp_congestion_control" in proposals(
        LOST | {"acked_per_s": VARYING}, congestion_controls="cubic bbr",
        sysctl=facts()["sysctl"] | {"net.ipv4.tcp_congestion_control": "cubic"},
        **snmp(Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=95))


def test_a_firewall_rule_without_a_counter_is_seen_by_the_profile():
    drops = [{"direction": "rx", "stage": "ip", "reason": "netfilter_drop",
              "packets": 30}]
    assert found(LOST, drops=drops)[0].limit == "own-firewall"
    other = [drops[0] | {"reason": "not_specified"}]
    assert found(LOST, drops=other)[0].limit == "loss"
    assert not [d for d in found(drops=drops) if d.wrong], "no connection suffers"


def test_drops_and_stages_of_a_profile():
    kept = Path(__file__).parents[1] / "test_profile/sample.json"
    read = profile_facts.read(kept)
    assert sum(d["packets"] for d in read["drops"]) == 2
    work = [s["share"] for s in read["stages"] if s["kind"] == "work"]
    assert 0.5 < sum(work) <= 1.01 and work == sorted(work, reverse=True)


def test_every_class_has_advice_or_a_setting():
    for flow, more, limit in CLASSES:
        some = facts(flow, **more)
        some["sysctl"] |= {"net.ipv4.tcp_max_syn_backlog": "128",
                           "net.ipv4.ip_local_port_range": "32768 60999",
                           "net.ipv4.tcp_no_ssthresh_metrics_save": "0"}
        if limit not in ("unknown", "path"):
            assert plan.propose(some, diagnose.diagnose(some), plan.Wish()), limit


def test_little_unsent_data_is_no_reason_for_larger_buffers():
    blocked = {"d_sndbuf_limited": 800_000, "high_wmem_queued": 3_000_000,
               "sndbuf": 4_194_304}
    assert not proposals(blocked)
    low = {"sysctl": facts()["sysctl"] | {"net.ipv4.tcp_notsent_lowat": "340"}}
    assert proposals(blocked, **low) == ["sysctl:net.ipv4.tcp_notsent_lowat"]


@pytest.mark.parametrize("flight, confidence", [(10, "medium"), (40, "high")])
def test_single_losses_of_a_small_window_may_be_a_policer(flight, confidence):
    other = snmp(Tcp_RetransSegs=100, TcpExt_TCPSackRecovery=95)
    varied = {"low_snd_ssthresh": 30, "high_snd_ssthresh": 60,
              "acked_per_s": VARYING}
    first = found({**LOST, "snd_cwnd": flight, **varied}, **other)[0]
    assert (first.limit, first.confidence) == ("loss", confidence)


@pytest.mark.parametrize("remote, limit", [
    ("10.0.0.2:5202", "policer"), ("10.0.0.3:5201", "loss")])
def test_connections_to_one_address_lose_in_groups_together(remote, limit):
    flows = [SENDER | LOST, SENDER | LOST | {
        "local": "10.0.0.1:40001", "remote": remote}]
    first = found(flows=flows, **snmp(Tcp_RetransSegs=200,
                                      TcpExt_TCPSackRecovery=20))[0]
    assert (first.limit, first.confidence) == (limit, "medium")
