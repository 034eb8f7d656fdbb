# SPDX-License-Identifier: GPL-2.0-only
"""Named interfaces, loads and kernels in an experiment file: what goes together,
and that an interface comes back as it was."""
import json
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import errors  # noqa: E402
from mssab.experiment import experiment_file  # noqa: E402
from mssab.statistics import sanity  # noqa: E402
from mssab.testbed import ethtool, nic_move  # noqa: E402
from mssab.experiment.cell import Cell  # noqa: E402
from mssab.testbed.ends import Ends  # noqa: E402

TWO = '''[design]
guardrails = ["retransmits"]
[cell]
load = "nuttcp"
link = "interfaces"
sender_interface = "eth1"
receiver_interface = "eth2"
[arms]
a = {}
b = { sysctl = { "net.ipv4.tcp_timestamps" = 0 } }
'''
REMOTE = '''[design]
[cell]
load = "iperf3"
link = "interfaces"
sender_interface = "eth1"
sender_address = "192.0.2.5/24"
receiver_address = "192.0.2.7"
[arms]
a = {}
b = { mtu = 1000, sysctl_sender = { "net.ipv4.tcp_timestamps" = 0 } }
'''
GUESTS = '''run = "fast"
kernel = "6.1"
[design]
[cell]
load = "tcpload"
[arms]
a = {}
b = { kernel = "6.12" }
'''


def parse(text):
    return experiment_file.parse(Path("e.toml"), text)


def test_good():
    cell = parse(TWO).arms[0].cell
    assert (cell.rtt_ms, cell.mtu, cell.remote) == (0, 0, False)
    stock, treated = parse(REMOTE).arms
    assert stock.cell.remote and (stock.cell.mtu, treated.cell.mtu) == (0, 1000)
    plan = parse(GUESTS)
    assert plan.run == "fast" and [a.kernel for a in plan.arms] == [
        "6.1", "6.12"]
    assert not parse(TWO).profiled
    assert parse(TWO.replace('"retransmits"', '"rx_cost"')).profiled


@pytest.mark.parametrize("old, new, line, sentence", [
    ('sender_interface = "eth1"\n', "", 3, "needs sender_interface"),
    ('"eth1"', '"lo"', 3, "not the name of an interface"),
    ('"eth1"', '"a/b"', 3, "not the name of an interface"),
    ('"eth1"', '"an-interface-of-16"', 3, "not the name of an interface"),
    ('"eth1"', '"eth2"', 3, "never reaches the wire"),
    ('"eth1"', "1", 6, "is not a string"),
    ('receiver_interface = "eth2"', "", 3, "give one of"),
    ('"eth2"', '"eth2"\nreceiver_address = "192.0.2.7"', 3, "give one of"),
    ('"eth2"', '"eth2"\nsender_address = "192.0.2.7/24"', 3, "needs receiver_address"),
    ('"eth2"', '"eth2"\nserver_port = 5201', 3, "needs receiver_address"),
    ('"interfaces"', '"veth"', 3, "needs link = .interfaces."),
    ('load = "nuttcp"', 'load = "tcpload"\nwindow_segments = 2', 3,
     "give mtu"),
    ('load = "nuttcp"', 'load = "tcpload"\nipv6 = true', 3, "IPv4 only"),
    ("a = {}", 'a = { sender_interface = "eth3" }', 9, "unknown key"),
    ('["retransmits"]', '["latency_p99"]', 2, "nuttcp does not report latency"),
    ('["retransmits"]', '["utilisation"]', 2, "does not report utilisation"),
    ('load = "nuttcp"', 'load = "nuttcp-udp"', 2, "does not report retransmits"),
    ('load = "nuttcp"', 'load = "nuttcp"\noffered_mbit = 5', 3, "is for UDP only"),
    ('load = "nuttcp"', 'load = "iperf3-udp"\nnagle = false', 3, "is for TCP only"),
    ('load = "nuttcp"', 'load = "netpipe"\nmeasure_ms = 5', 5,
     "measure_ms: NetPIPE itself"),
    ('load = "nuttcp"', 'load = "nuttcp"\nrequest = 5', 3, "nuttcp cannot"),
    ('["retransmits"]', '["rx_cost"]\nprofile_sample = 0', 3, "outside 1"),
    ("[design]\n", "[design]\n[metrics.rx_costs]\n", 2, "neither primary"),
])
def test_refused(old, new, line, sentence):
    refuse(TWO, old, new, line, sentence)


@pytest.mark.parametrize("old, new, line, sentence", [
    ('"192.0.2.5/24"', '"192.0.2.5"', 2, "needs its prefix length"),
    ('"192.0.2.5/24"', '"192.0.2/24"', 2, "are IPv4 addresses"),
    ('sender_address = "192.0.2.5/24"\n', "", 2, "are IPv4 addresses"),
    ('"192.0.2.7"', '"192.0.2.5"', 2, "are the same"),
    ('"192.0.2.7"', '"198.51.100.7"', 2, "name the gateway"),
    ('"192.0.2.7"', '"198.51.100.7"\ngateway = "198.51.100.1"', 2,
     "198.51.100.1 is not in"),
    ('load = "iperf3"', 'load = "tcpload"', 2, "runs both ends itself"),
    ('load = "iperf3"', 'load = "iperf3"\ngro = false', 2, "set it there"),
    ('load = "iperf3"', 'load = "iperf3"\ncwnd_max = 4', 2, "cwnd_max"),
    ('load = "iperf3"', 'load = "iperf3"\nserver_port = 0', 4, "outside"),
    ("sysctl_sender", "sysctl", 10, "sysctl would be set at the receiver"),
    ("sysctl_sender", "sysctl_receiver", 10, "sysctl_receiver would be set"),
    ("mtu = 1000", "rcvbuf_max = 9999", 10, "set it there"),
    ("[design]", '[design]\nprimary = "cpu"', 2, "one is on another machine"),
])
def test_refused_remote(old, new, line, sentence):
    refuse(REMOTE, old, new, line, sentence)


@pytest.mark.parametrize("old, new, line, sentence", [
    ('"fast"', '"quick"', 1, "not one of host, fast, deterministic"),
    ('"fast"', '"host"', 2, "a host has one kernel"),
    ('run = "fast"\nkernel = "6.1"', "", 7, "a host has one kernel"),
    ('kernel = "6.1"\n', "", 6, "arm a has no kernel"),
    ('kernel = "6.1"\n', "kernel = 6.1\n", 2, "6.10 is not 6.1"),
    ('kernel = "6.12"', "kernel = 6.12", 8, "6.10 is not 6.1"),
    ('kernel = "6.12"', 'kernel = "6;12"', 8, "neither a series"),
    ('kernel = "6.12"', 'kernel = "--release"', 8, "neither a series"),
    ("[cell]", 'assign = "connection"\n[cell]', 4, "leave out run"),
    ('load = "tcpload"', 'load = "nuttcp"\nlink = "interfaces"\n'
     'sender_interface = "a"\nreceiver_interface = "b"', 1, "belong to this host"),
    ("[cell]\n", '[program]\nargv = ["x"]\n[cell]\n', 4, "leave out run"),
])
def test_refused_kernels(old, new, line, sentence):
    refuse(GUESTS, old, new, line, sentence)


def refuse(text, old, new, line, sentence):
    assert old in text
    with pytest.raises(errors.UsageError, match=sentence) as refusal:
        parse(text.replace(old, new, 1))
    assert str(refusal.value).startswith(f"e.toml:{line}: "), refusal.value
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("cell, share", [
    ('mtu = 576\nload = "iperf3"', 524 / 576),
    ('mtu = 576\nload = "iperf3-udp"', 548 / 576),
    ('link = "interfaces"\nsender_interface = "a"\n'
     'receiver_interface = "b"', 1),
    ('link = "interfaces"\nsender_interface = "a"\nmtu = 1500\n'
     'receiver_interface = "b"', 1448 / 1500),
])
def test_what_a_path_carries(cell, share):
    plan = parse(f"[design]\n[cell]\nrate_mbit = 100\n{cell}\n"
                 "[arms]\na = {}\nb = {}\n")
    assert sanity.ceiling(plan, plan.arms[0]) == pytest.approx(
        100e6 * share * 1.02)


# --- The interfaces themselves, played --------------------------------------

class Host:
    """ip and ethtool of a host with two interfaces."""

    def __init__(self):
        self.links = {name: {"netns": "", "mtu": 1500, "flags": [],
                             "addr_info": [], "offloads": {
                                 "generic-segmentation-offload": "on",
                                 "tx-nocache-copy": "off"}}
                      for name in ("eth1", "eth2")}
        self.links["eth1"]["flags"] = ["UP", "LOWER_UP"]

    def __call__(self, *argv):
        words = list(argv)
        where = ""
        if words[:2] == ["ip", "-j"]:
            words.remove("-j")
        if words[:2] == ["ip", "-n"]:
            where = words[2]
            del words[1:3]
        if words[:2] == ["ethtool", "-k"]:
            return "".join(f"{k}: {v}\n" for k, v in
                           self.links[words[2]]["offloads"].items()) \
                + "generic-receive-offload: on [fixed]\n"
        if words[0] == "ethtool" and words[1] in ("-c", "-g", "-l", "-n", "-x"):
            raise errors.MssabError("netlink error: Operation not supported")
        if words[:2] == ["ethtool", "-K"]:
            self.links[words[2]]["offloads"] |= dict(
                zip(words[3::2], words[4::2]))
            return ""
        name = words[words.index("dev") + 1] if "dev" in words else words[3]
        link = self.links.get(name)
        if not link or link["netns"] != where:
            raise errors.MssabError(f'Device "{name}" does not exist')
        self.act(link, words)
        return json.dumps([{}, link | {"flags": list(link["flags"])}])

    @staticmethod
    def act(link, words):
        if words[1] == "addr" and words[2] == "add":
            link["addr_info"] = [{"scope": "global", "local": words[3]}]
        if words[1] == "addr" and words[2] == "flush":
            link["addr_info"] = []
        if "netns" in words:
            there = words[words.index("netns") + 1]
            link |= {"netns": "" if there.isdigit() else there, "flags": []}
        if "mtu" in words:
            link["mtu"] = int(words[words.index("mtu") + 1])
        if words[-1] in ("up", "down"):
            link["flags"] = ["UP", "LOWER_UP"] if words[-1] == "up" else []


@pytest.fixture
def host(tmp_path, monkeypatch):
    played = Host()
    monkeypatch.setattr(nic_move, "command", played)
    monkeypatch.setattr(ethtool, "command", played)
    monkeypatch.setattr(nic_move, "RECORD", tmp_path / "record")
    # The namespaces are there.
    monkeypatch.setattr(nic_move, "Path", lambda *_: tmp_path)
    return played


CELL = Cell(link="interfaces", sender_interface="eth1", mtu=9000, rtt_ms=0,
            receiver_interface="eth2")
ENDS = Ends("mssab-tx", "mssab-rx", "10.9.0.2")


def test_interfaces_come_back_as_they_were(host):
    before = json.dumps(host.links)
    nic_move.check(CELL)
    nic_move.keep(CELL)
    nic_move.move(CELL, ENDS)
    nic_move.bring_up(CELL, ENDS)
    assert [host.links[n]["netns"] for n in ("eth1", "eth2")] == list(ENDS.namespaces)
    assert {link["mtu"] for link in host.links.values()} == {9000}
    host("ethtool", "-K", "eth1", "generic-segmentation-offload", "off")
    assert nic_move.RECORD.exists()
    nic_move.put_back(ENDS.namespaces)
    assert json.dumps(host.links) == before
    assert not nic_move.RECORD.exists()
    nic_move.put_back(ENDS.namespaces)  # nothing is left to do


def test_a_driver_that_refuses_keeps_no_interface_away(host, monkeypatch):
    nic_move.keep(CELL)
    nic_move.move(CELL, ENDS)
    host("ethtool", "-K", "eth1", "generic-segmentation-offload", "off")

    def refuses(*_):
        raise errors.MssabError("no")
    monkeypatch.setattr(ethtool, "write", refuses)
    with pytest.raises(errors.MssabError, match="no"):
        nic_move.put_back(ENDS.namespaces)
    assert {link["netns"] for link in host.links.values()} == {""}
    assert nic_move.RECORD.exists(), "the next one tries again"


def test_half_a_move_is_put_back(host):
    """A kill between the two interfaces."""
    before = json.dumps(host.links)
    nic_move.keep(CELL)
    host("ip", "link", "set", "eth1", "netns", "mssab-tx")
    nic_move.put_back(ENDS.namespaces)
    assert json.dumps(host.links) == before


@pytest.mark.parametrize("change, sentence", [
    ({"addr_info": [{"scope": "global", "local": "192.0.2.1",
                     "prefixlen": 24}]}, "eth1 has address 192.0.2.1/24"),
    ({"master": "br0"}, "eth1 is part of br0"),
    ({"netns": "elsewhere"}, "no interface eth1 here"),
])
def test_an_interface_in_use_is_left_alone(host, change, sentence):
    host.links["eth1"] |= change
    with pytest.raises(errors.MssabError, match=sentence):
        nic_move.check(CELL)


def test_link_local_addresses_are_no_use(host):
    host.links["eth1"]["addr_info"] = [{"scope": "link", "local": "fe80::1",
                                        "prefixlen": 64}]
    nic_move.check(CELL)


def test_no_link(host, monkeypatch):
    monkeypatch.setattr(nic_move, "CARRIER_S", 0)
    monkeypatch.setattr(host, "act", lambda link, words: Host.act(
        link, words[:-1] if words[-1] == "up" else words))
    nic_move.move(CELL, ENDS)
    with pytest.raises(errors.MssabError, match="eth1 has no link"):
        nic_move.bring_up(CELL, ENDS)


def test_a_damaged_record_is_reported(host):
    nic_move.RECORD.write_text("{")
    with pytest.raises(errors.MssabError, match="damaged"):
        nic_move.put_back(ENDS.namespaces)
