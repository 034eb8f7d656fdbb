# SPDX-License-Identifier: GPL-2.0-only
"""Limits that a connection brings from its beginning, or that keep it from beginning:
the scale of its window, ACKs that are lost, a rule for what comes too often."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "userspace/msstune"))

from msstune.causes import diagnose, plan  # noqa: E402
from msstune.facts import host  # noqa: E402
from msstune_facts import RECEIVER, facts  # noqa: E402


def first(**more):
    return diagnose.diagnose(facts(**more))[0]


# --- The scale of a window ----------------------------------------------------

#: 65535 bytes per round trip of 67 ms; the kernel would accept 288 kB.
CAPPED = RECEIVER | {
    "local": "10.4.0.1:45610", "remote": "10.9.0.2:21748", "rcv_wscale": 0,
    "rcv_ssthresh": 288_000, "rcvbuf": 578_000, "rcv_rtt": 67_000, "min_rtt": 67_000,
    "rtt": 67_000, "d_bytes_received": 1_900_000}


@pytest.mark.parametrize("window, limit", [
    (17_326, "route-window"),       # the scale was chosen for it
    (200_000, "receive-buffer-fixed"),  # it allows more than the scale does
    (None, "receive-buffer-fixed"),
])
def test_a_window_cannot_exceed_its_scale(window, limit):
    route = {"dst": "default"} | ({"window": window} if window else {})
    found = first(flows=[CAPPED], routes=[route])
    assert found.limit == limit
    assert "64 KiB" in found.why


def test_a_larger_scale_is_no_limit():
    found = first(flows=[CAPPED | {"rcv_wscale": 7}], routes=[
        {"dst": "default", "window": 17_326}])
    assert found.limit == "unknown"


# --- Round trips that vary by more than they take -------------------------------

LONG = {"rtt": 2_870_000, "min_rtt": 75_000, "rttvar": 400_000}


def test_a_queue_makes_round_trips_long():
    assert first(flow=LONG).limit == "bufferbloat"


def test_lost_acks_make_them_vary():
    found = first(flow=LONG | {"rttvar": 3_290_000, "d_segs_in": 5})
    assert (found.limit, found.confidence) == ("ack-loss", "low")


def test_a_path_that_stood_still_lost_no_acks():
    found = first(flow=LONG | {"rttvar": 3_290_000, "d_segs_in": 8600})
    assert found.limit not in ("ack-loss", "bufferbloat")


def test_a_short_round_trip_may_vary():
    assert first(flow={"rttvar": 20_000}).limit != "ack-loss"


# --- A rule for what comes too often -----------------------------------------------

PLACE = "inet guard first handle 4"
REFUSED = {"flows": [], "flows_total": 0,
           "firewall": {f"{PLACE}: drop": 24}, "firewall_limits": {PLACE: [80, 443]},
           "listeners": [{"local": "[::]:443", "waiting": 0, "most": 5}]}


def test_a_rule_refuses_clients_of_an_own_port():
    found = first(**REFUSED)
    assert (found.limit, found.confidence) == ("own-firewall", "medium")
    assert "port 443" in found.why and "24 packets" in found.why


@pytest.mark.parametrize("more", [
    {"listeners": [{"local": "[::]:22", "waiting": 0, "most": 5}]},
    {"firewall": {f"{PLACE}: drop": 0}},
    {"firewall_limits": {}},
    {"flows": facts()["flows"]},     # others are served
])
def test_strangers_are_refused_rightly(more):
    assert all(d.limit != "own-firewall" or d.confidence == "low"
               for d in diagnose.diagnose(facts(**REFUSED | more)))


def rule(*expr, handle=4):
    return {"rule": {"family": "inet", "table": "guard", "chain": "first",
                     "handle": handle, "expr": list(expr)}}


def dport(right, op="==", protocol="tcp"):
    return {"match": {"op": op, "left": {"payload": {
        "protocol": protocol, "field": "dport"}}, "right": right}}


OFTEN = {"limit": {"rate": 23, "burst": 3, "per": "minute", "inv": True}}


def xt(name, kind="match"):
    return {"xt": {"type": kind, "name": name}}


@pytest.mark.parametrize("expr, ports", [
    ([dport(443), OFTEN, {"drop": None}], [443]),
    ([dport({"set": [80, 443]}), OFTEN, {"reject": {}}], [80, 443]),
    ([dport({"set": [{"range": [1, 9]}]}), OFTEN, {"drop": None}], None),
    ([dport(443, protocol="th"), OFTEN, {"drop": None}], [443]),
    ([dport(443, protocol="udp"), OFTEN, {"drop": None}], None),
    ([dport(443, "!="), OFTEN, {"drop": None}], None),
    ([dport(443), OFTEN, {"accept": None}], None),
    ([dport(443), {"drop": None}], None),
    ([dport(443), {"limit": {"rate": 9, "per": "second"}}, {"drop": None}], None),
    ([dport(443), {"ct count": {"val": 3, "inv": True}}, {"drop": None}], [443]),
    ([dport(443), {"ct count": {"val": 3}}, {"drop": None}], None),
    ([dport(443), {"set": {"op": "add", "stmt": [OFTEN]}}, {"drop": None}], [443]),
    ([dport(443), {"set": {"op": "add"}}, {"drop": None}], None),
    ([dport(443), {"meter": {"name": "m", "stmt": OFTEN}}, {"drop": None}], [443]),
    ([dport(443), xt("connlimit"), xt("tcpmss"), {"drop": None}], [443]),
    ([dport(443), xt("hashlimit"), xt("REJECT", "target")], [443]),
    ([dport(443), xt("tcpmss"), {"drop": None}], None),
    ([dport(443), {"xt": None}, {"drop": None}], None),
    ([dport(443), {"limit": "a-name"}, {"drop": None}], [443]),
])
def test_rules_that_limit_connections(monkeypatch, expr, ports):
    monkeypatch.setattr(host, "_ruleset", lambda: [rule(*expr)])
    assert host.firewall_limits() == ({PLACE: ports} if ports else {})


BELOW = {"limit": {"rate": 9, "burst": 5, "per": "second"}}


@pytest.mark.parametrize("accepts, drops, ports", [
    ([dport(443), BELOW], [dport(443)], [443]),
    ([dport(443), xt("hashlimit")], [dport({"set": [443, 80]})], [443]),
    ([dport(443), BELOW], [dport(80)], None),
    ([dport(443)], [dport(443)], None),
    ([dport(443), OFTEN], [dport(443)], None),
    ([dport(443), BELOW], [dport(443), BELOW], None),
    ([dport(443), BELOW], [], None),    # the others are everybody's
])
def test_a_rule_accepts_what_is_below_its_limit(monkeypatch, accepts, drops, ports):
    monkeypatch.setattr(host, "_ruleset", lambda: [
        rule(*accepts, {"accept": None}, handle=3), rule(*drops, {"drop": None})])
    assert host.firewall_limits() == ({PLACE: ports} if ports else {})


def test_another_chain_accepts(monkeypatch):
    accepts = rule(dport(443), BELOW, {"accept": None}, handle=3)
    accepts["rule"]["chain"] = "second"
    monkeypatch.setattr(host, "_ruleset", lambda: [
        accepts, rule(dport(443), {"drop": None})])
    assert not host.firewall_limits()


def test_a_counter_with_a_name_is_read(monkeypatch):
    counter = {"family": "inet", "table": "guard", "name": "seen", "packets": 24}
    monkeypatch.setattr(host, "_ruleset", lambda: [
        {"counter": counter}, {"counter": counter | {"table": "other", "packets": 9}},
        rule({"counter": "seen"}, {"drop": None}),
        rule({"counter": {"packets": 5, "bytes": 1}}, {"drop": None}, handle=5),
        rule({"counter": "gone"}, {"drop": None}, handle=6),
        rule({"counter": "seen"}, {"accept": None}, handle=7)])
    assert host.firewall() == {
        f"{PLACE}: drop": 24, "inet guard first handle 5: drop": 5}


def test_a_rule_that_counts_explains_attempts_without_an_answer():
    found = first(flows=[], flows_total=0, firewall={f"{PLACE}: drop": 2},
                  unanswered=[{"remote": "10.9.0.2:80", "retransmits": 1}])
    assert found.limit == "own-firewall"


# --- Routes of two families -----------------------------------------------------------

def test_default_routes_of_both_families(monkeypatch):
    said = {("-4", "-j"): '[{"dst": "default", "metrics": [{"window": 9000}]}]',
            ("-6", "-j"): '[{"dst": "default", "metrics": [{"cwnd": 4}]},'
                          ' {"dst": "fd09::/64"}]',
            ("-4", "route"): "default via 10.0.0.1 dev eth0 window 9000\n",
            # Another table has a default route as well.
            ("-6", "route"): "default via fe80::1 dev eth0 metric 9 cwnd lock 4\n"
                             "default via fe80::2 dev eth1 table 7 metric 9\n"}
    monkeypatch.setattr(host.system, "run",
                        lambda _, family, what, *more: said[family, what])
    found = host.routes()
    assert found == [{"dst": "default", "window": 9000, "locked": []},
                     {"dst": "::/0", "cwnd": 4, "locked": ["cwnd"]}]


CLAMPED = facts({
    "remote": "[fd04::1]:39138", "snd_cwnd": 4, "high_snd_cwnd": 4, "low_snd_cwnd": 4,
    "high_unacked": 4, "unacked": 4})


@pytest.mark.parametrize("dst, limited", [("::/0", True), ("default", False)])
def test_a_default_route_limits_its_family(dst, limited):
    found = diagnose.diagnose(CLAMPED | {"routes": [{"dst": dst, "cwnd": 4}]})
    assert (found[0].limit == "cwnd-clamp") == limited


@pytest.mark.parametrize("locked, old", [([], "4"), (["cwnd"], "lock 4")])
def test_the_old_metric_is_spelled_as_apply_reads_it(locked, old):
    given = CLAMPED | {"routes": [{"dst": "::/0", "locked": locked, "cwnd": 4}]}
    assert [(p.setting, p.old, p.new) for p in plan.propose(
        given, diagnose.diagnose(given), plan.Wish()) if p.setting] == [
            ("route:::/0:cwnd", old, "none")]
