# SPDX-License-Identifier: GPL-2.0-only
"""Several transfers at once, through a bridge or not: their ends, links and sums;
corruption on the way, and a program that watches."""
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import errors  # noqa: E402
from mssab.experiment import cell_rules, experiment_file, metrics  # noqa: E402
from mssab.run import observer, transfers  # noqa: E402
from mssab.testbed import bridge, ends, netem, testbed  # noqa: E402
from mssab.experiment.cell import Cell  # noqa: E402


def cell(**keys):
    return Cell(load="tcpload", **keys)


def test_one_pair_is_as_before():
    only = ends.of(cell())
    assert only == ends.Ends("mssab-tx", "mssab-rx", "10.9.0.2")
    assert only.pairs == (only,) and only.namespaces == ("mssab-tx", "mssab-rx")
    assert ends.of(cell(link="loopback")).namespaces == ("mssab-tx",)


def test_many_to_one_and_one_to_many():
    many = ends.of(cell(bridge=True, senders=3))
    assert many.namespaces == ("mssab-tx", "mssab-tx-2", "mssab-tx-3", "mssab-rx")
    assert {pair.address for pair in many.pairs} == {"10.9.0.2"}
    one = ends.of(cell(bridge=True, receivers=16))
    assert one.senders == ("mssab-tx",) and len(one.receivers) == 16
    assert len({pair.address for pair in one.pairs}) == 16
    assert one.pairs[-1].address == "10.9.0.32"
    assert ends.of(cell(bridge=True, receivers=8, ipv6=True)).pairs[7].address \
        == "fd09::10"
    assert cell(bridge=True, receivers=4, streams=5).transfers == 20


@pytest.fixture
def ran(monkeypatch):
    """The commands that make links and qdiscs."""
    seen = []

    def command(*words):
        seen.append(" ".join(words))
        return ""
    for place in (bridge, netem, testbed):
        monkeypatch.setattr(place, "command", command)
    return seen


@pytest.mark.parametrize("keys", [{"senders": 16}, {"receivers": 16}])
def test_every_end_has_a_port_and_an_address_of_its_own(ran, keys):
    here = cell(bridge=True, mtu=1500, **keys)
    bridge.connect(here, ends.of(here))
    addresses = [line.split()[5] for line in ran if " addr add 10." in line]
    assert len(addresses) == len(set(addresses)) == 17
    ports = [line for line in ran if "master switch" in line]
    assert len(ports) == len(set(ports)) == 17
    # The kernel's limit of a device's name.
    assert max(len(bridge.port(end)) for end in ends.of(here).namespaces) < 16


def test_data_queues_at_the_port_towards_its_receiver(ran):
    here = cell(bridge=True, senders=2, rtt_ms=10, rate_mbit=100, loss_percent=1)
    between = ends.of(here)
    testbed._set_queues(here, between, testbed.devices(here, between))
    got = [line.removeprefix("tc -n ").replace(" qdisc add dev ", " ")
           for line in ran]
    tail = "rate 100mbit"
    assert got == [
        f"mssab-tx veth0 root netem limit 10000 delay 0us {tail}",
        f"mssab-tx-2 veth0 root netem limit 10000 delay 0us {tail}",
        "mssab-sw port-rx root netem limit 10000 delay 5000us loss random 1% "
        + tail,
        f"mssab-rx veth0 root netem limit 10000 delay 5000us {tail}"]


def test_jitter_follows_the_delay_of_the_data(ran):
    here = cell(rtt_ms=10, jitter_ms=1.5, loss_percent=1)
    between = ends.of(here)
    testbed._set_queues(here, between, testbed.devices(here, between))
    assert [line.partition("netem ")[2] for line in ran] == [
        "limit 10000 delay 5000us 1500us loss random 1%",
        "limit 10000 delay 5000us"]


def test_received_data_is_corrupted_behind_the_device(ran):
    here = cell(corrupt_rx_percent=2, rtt_ms=0)
    between = ends.of(here)
    testbed._set_queues(here, between, testbed.devices(here, between))
    assert all(line.split()[2] == "mssab-rx" for line in ran)
    assert "redirect dev ifb-received" in ran[3] and "corrupt 2%" in ran[4]
    ran.clear()
    testbed._set_queues(cell(rtt_ms=0), between, testbed.devices(here, between))
    assert not ran


def test_the_queue_has_its_length_before_its_discipline(ran):
    here = cell(qdisc="pfifo_fast", txqueuelen=50, rtt_ms=0)
    between = ends.of(here)
    testbed._set_queues(here, between, testbed.devices(here, between))
    assert "txqueuelen 50" in ran[0] and "root pfifo_fast" in ran[1]


@pytest.mark.parametrize("keys, sentence", [
    ({"senders": 2}, "bridge = true"),
    ({"bridge": True, "senders": 2, "receivers": 2}, "either"),
    ({"streams": 2, "request": 1}, "bulk"),
    ({"streams": 2, "window_segments": 3.0}, "without window_segments"),
    ({"bridge": True, "cwnd_max": 4}, "without a bridge"),
    ({"verify": True, "request": 1}, "verify compares"),
    ({"verify": True, "zerocopy_rx": True}, "verify compares"),
    ({"zerocopy_rx": True, "window_segments": 3.0}, "for bulk"),
    ({"txqueuelen": 100}, "pfifo_fast"),
    ({"link": "loopback", "corrupt_percent": 1.0}, "needs link"),
])
def test_refused(keys, sentence):
    with pytest.raises(errors.UsageError, match=sentence):
        cell_rules.check("e.toml", cell(**keys))


@pytest.mark.parametrize("metric, keys, other", [
    ("fairness", "rtt_ms = 1", "streams = 2"),
    ("wrong", "rtt_ms = 1", "verify = true"),
    ("requests", "rtt_ms = 1", "request = 1"),
    ("utilisation", "streams = 2", "window_segments = 3"),
])
def test_metrics_need_their_keys(metric, keys, other):
    text = ('[design]\nprimary = "{}"\n[cell]\nload = "tcpload"\n{}\n'
            "[arms]\na = {{}}\nb = {{}}\n")
    with pytest.raises(errors.UsageError, match=f"2: primary: {metric} "):
        experiment_file.parse(Path("e.toml"), text.format(metric, keys))
    assert experiment_file.parse(Path("e.toml"), text.format(metric, other))


@pytest.mark.parametrize("rates, index", [
    ([5, 5, 5, 5], 1), ([8, 0, 0, 0], 0.25), ([1, 2, 3], 36 / 42)])
def test_fairness(rates, index):
    assert transfers.fairness(rates) == pytest.approx(index)


def test_transfers_together():
    one = {"bytes_per_s": 10, "received": 100, "cpu_ns": 5, "wall_ns": 7,
           "cpu_sender_ns": 3, "rtt_us": 10, "min_rtt_us": 4, "snd_mss": 1448,
           "rcv_ssthresh": 9, "window_clamp": 9, "wrong_bytes": 1}
    other = one | {"bytes_per_s": 30, "wall_ns": 9, "rtt_us": 20, "min_rtt_us": 3}
    assert transfers.together([one, other]) == {
        "bytes_per_s": 40, "received": 200, "cpu_ns": 10, "wall_ns": 9,
        "cpu_sender_ns": 3, "rtt_us": 15, "min_rtt_us": 3, "snd_mss": 1448,
        "rcv_ssthresh": 0, "window_clamp": 0, "wrong_bytes": 2, "rates": [10, 30],
        "fairness": 0.8}
    with pytest.raises(errors.LoadFailed, match="one of 2 transfers: stuck"):
        transfers.together([one, {"failed": "stuck", "sender_port": 1}])


def test_wrong_bytes_and_checksums():
    raw = {"wrong_bytes": 3, "received": 2_000_000, "csum_errors": 1,
           "packets": 500}
    assert metrics.value("wrong", raw) == 1.5
    assert metrics.value("csum_errors", raw) == 2


def test_what_tcpdump_reports():
    text = ("tcpdump: listening on veth0, link-type EN10MB\n1 packet captured\n"
            "30 packets received by filter\n29 packets dropped by kernel\n")
    assert observer.counts(text) == {"observed": 1, "observer_dropped": 29}
    assert observer.counts("") == {"observed": 0, "observer_dropped": 0}
