# SPDX-License-Identifier: GPL-2.0-only
"""Each diagnosis leads to its settings with calculated values; nothing is proposed
where nothing is wrong; every proposal can be applied."""
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
sys.path[:0] = [str(TOP / "userspace/msstune"), str(TOP / "tests/unit/lib")]

from msstune_facts import CPU, DEVICE, RECEIVER, facts  # noqa: E402
from msstune.causes import diagnose, plan, plan_values  # noqa: E402
from msstune.settings import settings  # noqa: E402

LOSSY = {"d_total_retrans": 100}
RWND = {"d_rwnd_limited": 1_900_000}
WINDOW = RECEIVER | {"rcv_ssthresh": 131072, "rcvbuf": 6 << 20}
ODD = {"high_unacked": 20}  # a connection without a limit


def proposed(given, rate=0.0, goal=""):
    """Proposals as setting: new value; advice has an empty name."""
    found = plan.propose(given, diagnose.diagnose(given),
                         plan.Wish(rate, goal))
    for p in found:
        assert p.reason and p.figure and p.source and p.risk
    return {p.setting: p.new for p in found}


def with_sysctl(flow, **keys):
    given = facts(flow)
    for key, value in keys.items():
        given["sysctl"]["net.ipv4." + key] = value
    return given


def with_core(given, **keys):
    given["sysctl"] |= {f"net.core.{key}": value for key, value in keys.items()}
    return given


def without_tcp_mem(given):
    del given["sysctl"]["net.ipv4.tcp_mem"]
    return given


OVERFLOWS = {"cpu": 0, "processed": 9, "dropped": 7, "squeezed": 0}


def device(**more):
    return {"eth0": DEVICE | more}


@pytest.mark.parametrize("given, wanted", [
    # 10 Gbit/s x 10.4 ms = 13 MB in flight; twice that, a power of two.
    (facts(WINDOW), {"sysctl:net.ipv4.tcp_rmem": "4096 131072 33554432"}),
    # Where it starts, too, if that is below the kernel's own.
    (with_sysctl(WINDOW, tcp_rmem="4096 16384 131072"),
     {"sysctl:net.ipv4.tcp_rmem": "4096 131072 33554432"}),
    (with_sysctl(WINDOW, tcp_moderate_rcvbuf="0"),
     {"sysctl:net.ipv4.tcp_rmem": "4096 131072 33554432",
      "sysctl:net.ipv4.tcp_moderate_rcvbuf": "1"}),
    (with_sysctl({"d_sndbuf_limited": 1_500_000},
                 tcp_wmem="4096 16384 4194304"),
     {"sysctl:net.ipv4.tcp_wmem": "4096 16384 33554432"}),
    (with_sysctl(RWND | {"high_snd_wnd": 65000, "low_snd_wnd": 65000,
                         "options": 3}, tcp_window_scaling="0"),
     {"sysctl:net.ipv4.tcp_window_scaling": "1"}),
    (with_sysctl(LOSSY | {"options": 5}, tcp_sack="0"),
     {"sysctl:net.ipv4.tcp_sack": "1"}),
    (with_sysctl({"unacked": 9, "retransmits": 5, "d_bytes_acked": 0},
                 tcp_mtu_probing="0"),
     {"sysctl:net.ipv4.tcp_mtu_probing": "1", "": ""}),
    (with_core(facts(LOSSY, softnet=[OVERFLOWS]), netdev_max_backlog="1000"),
     {"sysctl:net.core.netdev_max_backlog": "4000"}),
    # Another network namespace than the first one cannot read it.
    (facts(LOSSY, softnet=[OVERFLOWS]), {"": ""}),
    # Memory that TCP may use is the whole host's, too.
    (without_tcp_mem(facts(LOSSY, pressure=True)), {"": ""}),
    (facts(LOSSY, sockstat={"mem": 2000}),
     {"sysctl:net.ipv4.tcp_mem": "131072 196608 262144"}),
    (facts(LOSSY, devices=device(txqueuelen=2, qdiscs=[
        {"kind": "pfifo", "drops": 50, "packets": 9999,
         "options": {"limit": 2}}])),
     {"txqueuelen:eth0": "1000", "qdisc:eth0": "fq"}),
    (facts(LOSSY, devices=device(rx={"packets": 9, "missed_errors": 5})),
     {"ring:eth0:rx": "1024"}),
    (facts(ODD, cpus={"0": CPU | {"idle": 90, "system": 80}}, devices=device(
        offload={"gro": "off"}, rx={"packets": 10**5, "bytes": 15 * 10**7})),
     {"offload:eth0:gro": "on"}),
    (facts(ODD, devices=device(coalesce={"rx-usecs": "3000"})),
     {"coalesce:eth0:rx-usecs": "20"}),
    (facts(ODD, devices=device(rx={"packets": 2 * 10**5, "bytes": 3 * 10**8}),
           irqs={"24 eth0-rx-0": {"0": 180000}}),
     {}),  # 50 us is what is set
    (facts(RECEIVER | {"owner": {"cpu": 0, "pid": 7, "comm": "reader"}},
           cpus={"0": CPU | {"idle": 4, "softirq": 60, "user": 100}, "1": CPU},
           placement={"last_level_cache": {"0": "0-1"}, "steering": {}}),
     {"": "", "queue:eth0:rx-0/rps_cpus": "2"}),
    (facts(ODD, mssfrac={"treated_tx_sized": 20, "treated_tx_reverted": 19}), {}),
])
def test_settings(given, wanted):
    given.setdefault("placement", {"steering": {}})
    got = proposed(given, rate=10e9)
    assert got == wanted


def test_mssfrac_is_switched_on_and_off():
    few = RWND | {"high_snd_wnd": 26052, "low_snd_wnd": 26052, "snd_mss": 8948}
    given = facts(few)
    assert "" in proposed(given)  # without the module: advice
    given["sysctl"]["net.mssfrac.tx_frac"] = "0"
    assert proposed(given)["sysctl:net.mssfrac.tx_frac"] == "64"
    harmed = facts(ODD, mssfrac={"treated_tx_sized": 20, "treated_tx_reverted": 19})
    harmed["sysctl"]["net.mssfrac.tx_frac"] = "64"
    assert proposed(harmed) == {"sysctl:net.mssfrac.tx_frac": "0"}


def test_a_fraction_at_one_end_only_is_switched_off():
    """If the sender sends full-sized segments, but not if it fills the window."""
    few = RECEIVER | {"rcv_ssthresh": 17800, "rcv_mss": 8948, "rcvbuf": 26500}
    for mss, wanted in ((8948, "0"), (4450, None)):
        given = facts(few | {"rcv_mss": mss}, mssfrac={"treated_rx_raised": 40})
        given["sysctl"] |= {"net.mssfrac.rx_frac": "64", "net.mssfrac.tx_frac": "8"}
        got = proposed(given)
        assert got.get("sysctl:net.mssfrac.rx_frac") == wanted
        assert "sysctl:net.mssfrac.tx_frac" not in got


@pytest.mark.parametrize("place, setting", [
    ({"root": True, "handle": "1:"}, "qdisc:eth0"),
    ({"parent": "1:1", "handle": "8001:"}, "qdisc:eth0:1:1")])
def test_queues_are_replaced_where_they_are(place, setting):
    """At the root, or in the class of a shaper."""
    queue = {"kind": "pfifo", "drops": 50, "packets": 9999, "bytes": 10**6,
             "options": {"limit": 2}} | place
    assert proposed(facts(LOSSY, devices=device(qdiscs=[queue]))) == {setting: "fq"}
    paced = queue | {"kind": "fq", "drops": 0, "options": {
        "limit": 100, "maxrate": 13 * 10**6}}
    assert proposed(facts(devices=device(qdiscs=[paced]))) == {
        setting: "fq limit 100"}


def test_the_default_of_a_class_is_not_replaced():
    queue = {"kind": "pfifo", "drops": 50, "packets": 9999, "bytes": 10**6,
             "options": {"limit": 2}, "parent": "1:1", "handle": "0:"}
    assert proposed(facts(LOSSY, devices=device(qdiscs=[queue]))) == {}


def test_a_peers_setting_is_advice():
    got = proposed(facts(RWND | {"high_snd_wnd": 65536, "low_snd_wnd": 65000}))
    assert list(got) == [""]


@pytest.mark.parametrize("given", [
    facts({"rtt": 25000}), facts({"d_busy_time": 500_000}),
    facts({"high_unacked": 20}),
    facts({"rtt": 25000}, devices=device(offload={"gro": "off"}))])
def test_nothing_is_proposed_where_nothing_is_wrong(given):
    assert proposed(given, rate=10e9) == {}


def test_a_buffer_holds_the_window_and_ram_holds_the_buffer():
    given = facts()
    for need in (1, 10**5, 2**20, 2**20 + 1, 10**7):
        size, note = plan_values.buffer_for(need, given)
        assert size >= 2 * need and not note and size & size - 1 == 0
    size, note = plan_values.buffer_for(10**12, given)
    assert size <= given["memory"] // 32 and "RAM" in note


def test_blocks_as_in_the_paper():
    """Figure 5: 8160 fits a block of 8192; 9000 wastes some 7,000 of 16384."""
    assert plan_values.block(8160) == (8192, 14)
    assert plan_values.block(9000) == (16384, 7366)


@pytest.mark.parametrize("goal, wanted", [
    ("", set()),
    ("throughput", {"qdisc:eth0"}),
    ("latency", {"coalesce:eth0:rx-usecs", "sysctl:net.core.busy_poll"}),
    ("capture", {"coalesce:eth0:rx-usecs", "offload:eth0:gro", "ring:eth0:rx"})])
def test_goals(goal, wanted):
    given = facts({"rtt": 25000}, devices=device(
        qdiscs=[{"kind": "pfifo_fast", "handle": "0:", "root": True, "drops": 0,
                 "packets": 9, "options": {}}]))
    given["sysctl"]["net.core.busy_poll"] = "0"
    assert set(proposed(given, goal=goal)) == wanted


def test_busy_polling_needs_a_card_to_poll():
    given = facts(devices=device(kind="veth"))
    given["sysctl"]["net.core.busy_poll"] = "0"
    assert "sysctl:net.core.busy_poll" not in proposed(given, goal="latency")


def test_every_proposal_can_be_applied():
    """Every value passes the check of its setting."""
    for given, _ in test_settings.pytestmark[0].args[1]:
        for name, new in proposed(given, rate=10e9).items():
            if name and not name.startswith("ring:"):  # that asks the driver
                settings.parse(f"{name}={new}")


def test_command_and_apply(tmp_path):
    """apply reads the output of plan --json."""
    given = facts(WINDOW, missing=[], congestion_controls="cubic")
    given |= {"format": "msstune-facts", "version": 1,
              "placement": {"steering": {}}}
    (tmp_path / "facts.json").write_text(json.dumps(given))

    def call(*arguments):
        return subprocess.run([TOOL, *arguments], text=True, check=False,
                              capture_output=True)
    text = call("plan", "--facts", tmp_path / "facts.json", "--rate", "10G")
    assert "4096 131072 6291456 -> 4096 131072 33554432" in text.stdout
    for label in ("reason", "figure", "source", "risk"):
        assert f"    {label:7} " in text.stdout
    done = call("plan", "--facts", tmp_path / "facts.json", "--rate", "10G",
                "--json")
    (tmp_path / "plan.json").write_text(done.stdout)
    rmem = tmp_path / "root/proc/sys/net/ipv4/tcp_rmem"
    rmem.parent.mkdir(parents=True)
    rmem.write_text("4096 131072 6291456\n")
    root = ["--root", tmp_path / "root", "--state", tmp_path / "state"]
    done = call(*root, "apply", "--yes", tmp_path / "plan.json")
    assert done.returncode == 0, done.stderr
    assert rmem.read_text() == "4096 131072 33554432\n"
    call(*root, "confirm")
    assert "ip-sysctl" in call(
        *root, "export").stdout
    done = call(*root, "rollback", "--all")
    assert done.returncode == 0
    assert rmem.read_text() == "4096 131072 6291456\n"
