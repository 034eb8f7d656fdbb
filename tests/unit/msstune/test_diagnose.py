# SPDX-License-Identifier: GPL-2.0-only
"""Diagnoses from facts, each limit next to a case just without it; and facts
collected from real connections in a network namespace."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
sys.path[:0] = [str(TOP / "userspace/msstune"), str(TOP / "tests/unit/lib")]

from msstune_facts import CPU, DEVICE, RECEIVER, SENDER, facts  # noqa: E402
from msstune import sockdiag, units  # noqa: E402
from msstune.causes import diagnose, plan_host  # noqa: E402
from msstune.facts import profile_facts  # noqa: E402


def first(given):
    return diagnose.diagnose(given)[0]


def device(**more):
    return {"eth0": DEVICE | more}


RWND = {"d_rwnd_limited": 1_900_000}
BLOCKED = {"app_limited": True, "high_notsent_bytes": 1000,
           "low_wmem_queued": 3 << 20, "high_wmem_queued": 4 << 20}
LOSSY = {"d_total_retrans": 100}
QUEUE = {"rtt": 25000}


@pytest.mark.parametrize("flow, limit", [
    (RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 65000}, "receive-window"),
    (RWND | {"high_snd_wnd": 65000, "low_snd_wnd": 65000, "options": 3},
     "window-scaling"),
    (RWND | {"high_snd_wnd": 26052, "low_snd_wnd": 26052, "snd_mss": 8948},
     "mss-granularity"),
    (RWND | {"high_snd_wnd": 2304, "low_snd_wnd": 2304, "snd_mss": 8948},
     "mss-granularity"),
    (RWND | {"high_snd_wnd": 27000, "low_snd_wnd": 27000, "snd_mss": 8948},
     "receive-window"),
    # Four segments, rounded up to units of 512.
    (RWND | {"high_snd_wnd": 35840, "low_snd_wnd": 35840, "snd_mss": 8948,
             "snd_wscale": 9}, "mss-granularity"),
    (RWND | {"high_snd_wnd": 36352, "low_snd_wnd": 36352, "snd_mss": 8948,
             "snd_wscale": 9}, "receive-window"),
    (RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 0}, "peer-application"),
    (RWND | {"high_snd_wnd": 18432, "low_snd_wnd": 15360, "snd_wnd": 15360},
     "peer-application"),
    (RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 40000, "snd_wnd": 65536},
     "receive-window"),
    ({"d_sndbuf_limited": 1_500_000}, "send-buffer"),
    (BLOCKED, "send-buffer"),
    (BLOCKED | {"d_busy_time": 1_500_000}, "application-send"),
    (RWND | {"high_snd_wnd": 17896, "low_snd_wnd": 17896, "snd_mss": 8948},
     "mss-granularity"),
    (RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 65536, "rtt": 190000}, "path"),
    (RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 65536, "rtt": 90000},
     "receive-window"),
    (BLOCKED | {"high_wmem_queued": (4 << 20) - 1}, "application-send"),
    ({"max_pacing_rate": 13 * 10**6}, "pacing"),
    (LOSSY | {"options": 5}, "sack-off"),
    (LOSSY, "loss"),
    (LOSSY | {"d_dsack_dups": 90}, "ack-loss"),
    ({"d_data_segs_out": 60_000, "d_segs_in": 250}, "ack-loss"),
    # A busy reader over veth was seen to acknowledge 123 together.
    ({"d_data_segs_out": 60_000, "d_segs_in": 490}, "unknown"),
    ({"d_data_segs_out": 60_000, "d_segs_in": 250, "min_rtt": 200}, "path"),
    (LOSSY | {"d_dsack_dups": 90, "d_reord_seen": 20}, "reordering"),
    (LOSSY | QUEUE, "path"),
    # Three retransmissions are no evidence of reordering.
    ({"d_total_retrans": 3, "d_dsack_dups": 3, "d_reord_seen": 3,
      "d_data_segs_out": 2000} | QUEUE, "path"),
    # A window below what the least buffer offers: the reader is slow.
    (RWND | {"high_snd_wnd": 256, "low_snd_wnd": 0}, "peer-application"),
    (LOSSY | QUEUE | {"d_dsack_dups": 90}, "path"),
    (QUEUE, "path"),
    ({"d_busy_time": 500_000}, "application-send"),
    ({"d_busy_time": 20_000, "d_rwnd_limited": 20_000}, "application-send"),
    ({"app_limited": True, "high_notsent_bytes": 0}, "application-send"),
    ({"snd_ssthresh": 60}, "recovery"),
    ({"d_total_retrans": 9, "options": 5}, "sack-off"),
    ({"unacked": 10, "retransmits": 5, "d_bytes_acked": 0}, "mtu"),
    ({"high_unacked": 20}, "unknown"),
])
def test_sender(flow, limit):
    found = first(facts(flow))
    assert found.limit == limit
    assert found.why and found.would_change and found.numbers


@pytest.mark.parametrize("flow, limit", [
    ({"low_rqueue": 2 << 20, "high_rqueue": 3 << 20}, "application-receive"),
    ({"rcv_ssthresh": 131072, "rcvbuf": 6 << 20}, "receive-window"),
    ({"rcv_ssthresh": 131072, "rcvbuf": 262144}, "receive-buffer-fixed"),
    ({"rcv_ssthresh": 131072, "rcvbuf": 262144, "options": 3},
     "window-scaling"),
    # From a guest: rcv_ssthresh grows beyond what can be advertised.
    ({"rcv_ssthresh": 428520, "rcvbuf": 859392, "options": 3, "rcv_rtt": 153178,
      "d_bytes_received": 741376}, "window-scaling"),
    # It keeps its value if SO_RCVBUF is set later.
    ({"rcv_ssthresh": 64088, "rcvbuf": 16384, "rcv_rtt": 153909,
      "d_bytes_received": 99008}, "receive-buffer-fixed"),
    ({}, "unknown"),
])
def test_receiver(flow, limit):
    assert first(facts(RECEIVER | flow)).limit == limit


@pytest.mark.parametrize("more, limit", [
    ({"softnet": [{"cpu": 0, "processed": 9, "dropped": 7, "squeezed": 0}]},
     "backlog-drops"),
    ({"sockstat": {"mem": 2000}}, "memory-pressure"),
    ({"pressure": True}, "memory-pressure"),
    ({"snmp": {"TcpExt.TCPMemoryPressures": 1}}, "memory-pressure"),
    ({"devices": device(qdiscs=[{"kind": "pfifo_fast", "drops": 50,
                                 "packets": 9999, "options": {}}])},
     "qdisc-drops"),
    ({"devices": device(rx={"packets": 9, "missed_errors": 5})}, "ring-drops"),
    ({"devices": device(rx={"packets": 9, "crc_errors": 5})}, "link-errors"),
])
def test_host_explains_losses(more, limit):
    assert first(facts(LOSSY, **more)).limit == limit


#: A shaper at ingress, with AQM in its class.
INGRESS = [
    {"kind": "htb", "handle": "1:", "parent": None, "drops": 72, "packets": 17000,
     "bytes": 25 * 10**6, "overlimits": 919, "backlog": 9084, "options": {}},
    {"kind": "fq_codel", "handle": "8012:", "parent": "1:1", "drops": 72,
     "packets": 17000, "bytes": 25 * 10**6, "overlimits": 0, "backlog": 9084,
     "options": {}}]


def test_a_shaper_before_the_receiver():
    some = facts(RECEIVER | {"rcv_rtt": 400},
                 devices=device(qdiscs=INGRESS, txqueuelen=32))
    assert first(some).limit == "shaper"
    drops = [d for d in diagnose.diagnose(some) if d.limit == "qdisc-drops"]
    assert [(d.subject, d.confidence) for d in drops] == [("eth0 fq_codel", "low")]
    assert not [p for d in drops for p in plan_host.ANSWERS["qdisc-drops"](d, some)
                if p.setting]
    # What another class drops is no signal.
    more = [INGRESS[0] | {"drops": 99}, INGRESS[1]]
    assert "eth0 htb" in [d.subject for d in diagnose.diagnose(facts(
        RECEIVER, devices=device(qdiscs=more))) if d.limit == "qdisc-drops"]


@pytest.mark.parametrize("kind", ["red", "fq_codel"])
@pytest.mark.parametrize("drops, first_is", [(40, "qdisc-drops"), (2, "loss")])
def test_losses_by_a_queue_that_signals(kind, drops, first_is):
    """Its drops are as many as were sent again, and the round trip shows no queue."""
    queue = INGRESS[1] | {"kind": kind, "drops": drops, "backlog": 0}
    some = facts(LOSSY | {"d_total_retrans": 50}, devices=device(qdiscs=[queue]))
    found = first(some)
    assert found.limit == first_is
    if drops > 9:
        assert found.confidence == "medium"
        assert not [p for p in plan_host.ANSWERS["qdisc-drops"](found, some)
                    if p.setting]


@pytest.mark.parametrize("handle, parent", [("0:", ":1"), ("8001:", "8001:1")])
def test_a_card_of_several_queues(handle, parent):
    """mq counts what its queues drop; tc writes :1 for a class of 0:."""
    queues = [INGRESS[0] | {"kind": "mq", "handle": handle},
              INGRESS[1] | {"handle": "0:", "parent": parent}]
    drops = [d.subject for d in diagnose.diagnose(facts(LOSSY, devices=device(
        qdiscs=queues))) if d.limit == "qdisc-drops"]
    assert drops == ["eth0 fq_codel"]


@pytest.mark.parametrize("text, numbers", [
    ("\n", set()), ("8080\n", {8080}), ("7,9-11,8080\n", {7, 9, 10, 11, 8080})])
def test_lists_of_numbers(text, numbers):
    assert units.numbers(text) == numbers


def test_an_earlier_drop_explains_recovery():
    queue = {"kind": "pfifo", "drops": 0, "drops_ever": 6, "packets": 9999,
             "options": {"limit": 2}}
    cut = {"snd_ssthresh": 60}
    assert first(facts(cut, devices=device(qdiscs=[queue]))
                 ).limit == "qdisc-drops"
    assert first(facts(cut, devices=device(qdiscs=[queue | {"drops_ever": 0}]))
                 ).limit == "recovery"


WORKING = {"cpus": {"0": CPU | {"idle": 90, "system": 80}, "1": CPU}}


@pytest.mark.parametrize("more, limit", [
    (WORKING | {"devices": device(offload={"gro": "off"},
                                  rx={"packets": 100000, "bytes": 15 * 10**7})},
     "offload-off"),
    (WORKING | {"devices": device(offload={"gro": "on", "tso": "off"},
                                  tx={"packets": 100000, "bytes": 15 * 10**7})},
     "offload-off"),
    ({"devices": device(coalesce={"rx-usecs": "3000"})}, "coalescing"),
    (WORKING | {"devices": device(rx={"packets": 200000, "bytes": 3 * 10**8}),
                "irqs": {"24 eth0-rx-0": {"0": 180000}}}, "interrupt-rate"),
    ({"cpus": {"0": CPU | {"idle": 5, "softirq": 180}, "1": CPU}},
     "cpu-softirq"),
    ({"softnet": [{"cpu": 0, "processed": 9, "dropped": 0, "squeezed": 106}],
      "flows": [SENDER | {"high_unacked": 20, "d_bytes_acked": 30000,
                          "d_data_segs_out": 21}]},
     "budget"),
    ({"mssfrac": {"treated_tx_sized": 20, "treated_tx_reverted": 19}}, "mssfrac"),
])
def test_host_where_no_connection_has_a_limit(more, limit):
    assert first(facts({"high_unacked": 20}, **more)).limit == limit


def test_a_shaper_at_its_rate():
    for share, limit in ((0.99, "shaper"), (0.5, "unknown")):
        queue = {"kind": "tbf", "drops": 0, "packets": 9, "bytes": 2 * 10**6 * share,
                 "options": {"rate": 10**6}}
        assert first(facts({"high_unacked": 20}, devices=device(qdiscs=[queue]))
                     ).limit == limit


def test_a_connection_shorter_than_the_interval():
    """Rate and idle time are over its own lifetime."""
    half = {"seconds": 1.0, "d_busy_time": 10**6, "d_rwnd_limited": 9 * 10**5,
            "high_snd_wnd": 10**5, "low_snd_wnd": 10**5}
    found = first(facts(half))
    assert found.limit == "receive-window"
    assert found.numbers["bits_per_second"] == 8 * SENDER["d_bytes_acked"]


def test_reader_on_the_interrupts_cpu():
    flow = RECEIVER | {"owner": {"cpu": 0, "pid": 7, "comm": "reader"}}
    busy = {"0": CPU | {"idle": 4, "softirq": 60, "user": 100}, "1": CPU}
    assert first(facts(flow, cpus=busy)).limit == "placement"
    elsewhere = flow | {"owner": {"cpu": 1, "pid": 7, "comm": "reader"}}
    assert first(facts(elsewhere, cpus=busy)).limit != "placement"


@pytest.mark.parametrize("system, limit", [(0.6, "placement"),
                                           (0.0, "application-receive")])
def test_unread_data_on_the_interrupts_cpu(system, limit):
    """Of a reader that works there, not of one that rests."""
    flow = RECEIVER | {"low_rqueue": 90_000, "high_rqueue": 100_000,
                       "rcv_ssthresh": 10**5, "owner": {
                           "cpu": 0, "pid": 7, "comm": "reader", "system": system,
                           "user": 0.1}}
    busy = {"0": CPU | {"idle": 4, "softirq": 60, "user": 100}, "1": CPU}
    assert first(facts(flow, cpus=busy)).limit == limit


@pytest.mark.parametrize("more", [
    {"devices": device(qdiscs=[{"kind": "netem", "drops": 50, "packets": 9999,
                                "options": {}}])},
    {"devices": device(qdiscs=[{"kind": "pfifo", "drops": 0, "packets": 9999,
                                "options": {"limit": 2}}])},
    {"devices": device(offload={"gro": "off"})},
    {"devices": device(kind="veth", offload={"gro": "off"},
                       rx={"packets": 10**6, "bytes": 15 * 10**8})},
    {"mssfrac": {"treated_tx_sized": 20, "treated_tx_reverted": 5}},
    {"cpus": {"0": CPU | {"idle": 5, "user": 300}, "1": CPU}},
    {"softnet": [{"cpu": 0, "processed": 5260, "dropped": 0, "squeezed": 106}]},
])
def test_nothing_is_wrong(more):
    """A full path, with oddities that harm no connection."""
    found = diagnose.diagnose(facts(QUEUE, **more))
    assert diagnose.verdict(found) == "nothing wrong"
    assert found[0].limit == "path"


def test_verdicts():
    assert diagnose.verdict(diagnose.diagnose(facts(flow=None, flows=[]))
                            ).startswith("nothing moves")
    assert diagnose.verdict(diagnose.diagnose(
        facts({"high_unacked": 20}))).startswith("unknown")
    assert "receive-window" in diagnose.verdict(diagnose.diagnose(
        facts(RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 65000})))


def test_the_more_specific_end_is_kept():
    """Both ends are here: the reader's queue is more specific than the window."""
    sender = SENDER | RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 65000}
    receiver = RECEIVER | {"local": SENDER["remote"], "remote": SENDER["local"],
                           "low_rqueue": 2 << 20, "high_rqueue": 3 << 20}
    found = diagnose.diagnose(facts(flows=[sender, receiver]))
    assert [d.limit for d in found] == ["application-receive"]


def test_waste_as_in_the_paper():
    """Section 3.5.1: 26,844 bytes advertised, 17,920 used at MSS 8960."""
    found = first(facts(RWND | {"high_snd_wnd": 26844, "low_snd_wnd": 26844,
                                "snd_mss": 8960}))
    assert round(found.numbers["waste"], 3) == round(1 - 17920 / 26844, 3)


# --- Collected --------------------------------------------------------------

def test_layout_of_tcp_info():
    assert sockdiag._INFO.size == 232 and sockdiag._MESSAGE.size == 72
    assert len(sockdiag._FIELDS) == len(
        sockdiag._INFO.unpack(bytes(232)))


LIVE = r"""
import json, socket, sys, threading, time
sys.path.insert(0, sys.argv[1])
from msstune.facts import collect
listener = socket.socket(socket.AF_INET6)
listener.bind(("::", 0)); listener.listen(200)
port = listener.getsockname()[1]
held = []
for _ in range(150):
    c = socket.create_connection(("127.0.0.1", port)); s, _a = listener.accept()
    held += [c, s]
c, s = held[-2:]
stop = threading.Event()
sent = 0
def send():
    global sent
    while not stop.is_set():
        c.sendall(bytes(65536)); sent += 65536; time.sleep(0.01)
def read():
    while s.recv(1 << 20):
        pass
threading.Thread(target=send, daemon=True).start()
threading.Thread(target=read, daemon=True).start()
facts = collect.collect(1.0)
stop.set()
time.sleep(0.1)  # the sender's last write
facts["sent"] = sent
facts["port"] = port
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def live():
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    if subprocess.run([*unshare, "true"], check=False,
                      capture_output=True).returncode:
        pytest.skip("no right to make a network namespace")
    done = subprocess.run(
        [*unshare, "sh", "-c", "ip link set lo up && exec /usr/bin/python3 -c "
         '"$0" "$1"', LIVE, str(TOP / "userspace/msstune")],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_collected(live):
    assert live["missing"] == []
    assert live["flows_total"] == 300 and len(live["flows"]) == 2
    one, = [f for f in live["flows"] if f["remote"].endswith(f":{live['port']}")]
    two, = [f for f in live["flows"] if f["local"] == one["remote"]]
    assert one["local"].startswith("127.0.0.1:") and one["local"] == two["remote"]
    assert 0 < one["d_bytes_acked"] <= live["sent"]
    assert abs(one["d_bytes_acked"] - two["d_bytes_received"]) <= 4 * 65536
    assert one["advmss"] == 65483 and one["owner"]["comm"].startswith("python")
    assert live["devices"]["lo"]["mtu"] == 65536
    assert live["devices"]["lo"]["rx"]["bytes"] >= one["d_bytes_acked"]
    assert live["snmp"]["Tcp.OutSegs"] >= one["d_data_segs_out"] > 0
    assert sum(row["processed"] for row in live["softnet"]) > 0


def test_no_end_of_a_live_connection_is_judged_twice(live):
    """How, and whether each end has a limit of its own, depends on the
    machine's load; guest/msstune judges in a guest."""
    found = [d.subject for d in diagnose.diagnose(live)
             if d.subject.count(":") == 2]
    assert found and len(set(found)) == len(found)


def test_command(live, tmp_path):
    path = tmp_path / "facts.json"
    path.write_text(json.dumps(live))

    def call(*arguments):
        return subprocess.run([TOOL, "diagnose", "--no-profile", *arguments], text=True,
                              capture_output=True, check=False)
    done = call("--facts", path, "--json")
    document = json.loads(done.stdout)
    assert document["flows"] == 300
    assert document["diagnoses"] and document["verdict"]
    assert "Would change this" in call("--facts", path).stdout
    path.write_text('{"format": "other", "version": 1}')
    wrong = call("--facts", path)
    assert wrong.returncode == 2 and "not facts of msstune" in wrong.stderr
    assert call("--profile", path, "--interval", "1ms").returncode == 2


def test_profile(tmp_path):
    path = tmp_path / "p.json"
    path.write_text(json.dumps({
        "format": "pathprof-profile", "version": 1,
        "stages": [{"id": 1, "name": "tcp"}, {"id": 2, "name": "copy"}],
        "paths": [{"direction": "rx", "flags": ["slow"], "packets": 10,
                   "work_ns": 900, "stages": [1, 2], "stage_ns": [300, 600]},
                  {"direction": "tx", "flags": [], "packets": 1, "work_ns": 100,
                   "stages": [1], "stage_ns": [100]}]}))
    top = profile_facts.read(path)["profile"][0]
    assert top["share"] == .9 and top["stage"] == "copy"
    assert top["ns_per_packet"] == 90
