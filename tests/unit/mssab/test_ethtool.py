# SPDX-License-Identifier: GPL-2.0-only
"""What ethtool prints about a device, and how mssab reads and sets it."""
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import errors  # noqa: E402
from mssab.experiment import experiment_file, ntuple  # noqa: E402
from mssab.testbed import ethtool  # noqa: E402

COALESCE = """\
Coalesce parameters for eth0:
Adaptive RX: off  TX: on
stats-block-usecs: n/a

rx-usecs: 3
rx-frames: n/a
"""
RING = """\
Ring parameters for eth0:
Pre-set maximums:
RX:\t\t4096
RX Mini:\tn/a
TX:\t\t4096
Current hardware settings:
RX:\t\t256
RX Mini:\tn/a
TX:\t\t512
"""
FEATURES = """\
Features for eth0:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
\ttx-checksum-ip-generic: on
tcp-segmentation-offload: on
\ttx-tcp-segmentation: on
\ttx-tcp-mangleid-segmentation: off
generic-receive-offload: on [requested off]
highdma: on [fixed]
"""


@pytest.mark.parametrize("text, wanted", [
    (COALESCE, {"adaptive-rx": "off", "adaptive-tx": "on", "rx-usecs": "3"}),
    (RING, {"rx": "256", "tx": "512"}),
    # A feature that stands for several is left out: setting it would set all.
    (FEATURES, {"rx-checksumming": "on", "tx-checksum-ip-generic": "on",
                "tx-tcp-segmentation": "on",
                "tx-tcp-mangleid-segmentation": "off",
                "generic-receive-offload": "on"}),
    ("", {}),
])
def test_what_ethtool_shows(text, wanted):
    assert ethtool.parse(text) == wanted


def rss(*rings):
    """What ethtool -x prints of a card with four rings."""
    lines = ["RX flow hash indirection table for eth0 with 4 RX ring(s):"]
    lines += [f"{n:5}:" + "".join(f"  {ring:4}" for ring in rings[n:n + 8])
              for n in range(0, len(rings), 8)]
    return "\n".join([*lines, "RSS hash key:", "6d:5a:56:da", "RSS hash function:",
                      "    toeplitz: on", "    xor: off"]) + "\n"


@pytest.mark.parametrize("text, wanted", [
    (rss(*[0, 1] * 64), {"equal": "2", "start": "0"}),
    (rss(*[0] * 128), {"equal": "1", "start": "0"}),
    (rss(*[3] * 16), {"equal": "1", "start": "3"}),
    (rss(*[2, 3, 4] * 4), {"equal": "3", "start": "2"}),
    # The last turn may be cut short.  Weights; a swap; no table at all.
    (rss(0, 1, 2, 0), {"equal": "3", "start": "0"}),
    (rss(0, 0, 0, 1), {}),
    (rss(1, 0, 1, 0), {}),
    ("RX flow hash indirection table for eth0 with 1 RX ring(s):\n"
     "Operation not supported\nRSS hash key:\nOperation not supported\n", {}),
])
def test_the_rings_of_rss(text, wanted):
    assert ethtool.parse_rss(text) == wanted


class Rings:
    """ethtool of a card with a table of 8 rings of four."""

    def __init__(self):
        self.table, self.asked = [0, 1, 2, 3] * 2, []

    def __call__(self, *argv):
        option, _, *words = argv[1:]
        if option == "-X":
            self.asked.append(words)
            given = {"start": 0, "equal": 4} if words == ["default"] else dict(
                zip(words[::2], map(int, words[1::2]), strict=True))
            self.table = [given["start"] + n % given["equal"] for n in range(8)]
        elif option != "-x":
            raise errors.MssabError("netlink error: Operation not supported")
        return rss(*self.table)


def test_rss_is_set_and_put_back(monkeypatch):
    card = Rings()
    monkeypatch.setattr(ethtool, "command", card)
    was = ethtool.read("eth0")
    assert was == {"rss": {"equal": "4", "start": "0"}}
    ethtool.write("eth0", {"rss": {"equal": "1"}})
    ethtool.write("eth0", {"rss": {"equal": "2", "start": "2"}})
    assert card.table == [2, 3] * 4
    ethtool.write("eth0", ethtool.changed(was, ethtool.read("eth0")))
    assert card.table == [0, 1, 2, 3] * 2
    assert card.asked == [["start", "0", "equal", "1"], ["start", "2", "equal", "2"],
                          ["default"]]


def test_a_table_that_cannot_be_put_back_is_left_alone(monkeypatch):
    card = Rings()
    card.table = [0, 0, 0, 0, 0, 0, 0, 1]
    monkeypatch.setattr(ethtool, "command", card)
    with pytest.raises(errors.MssabError, match="could not be put back.*-X eth0 def"):
        ethtool.write("eth0", {"rss": {"equal": "2"}})
    assert not card.asked


def rule(number, flow, ring, mask=()):
    """What ethtool -n prints of a rule; @mask: fields that it compares in part."""
    kind, *words = flow.split()
    given = dict(zip(words[::2], words[1::2], strict=True))
    lines = [f"Filter: {number}",
             f"\tRule Type: {kind[:3].upper()} over IPv4"]
    for field, name, any_value, form in (
            ("src-ip", "Src IP addr", "0.0.0.0", "255.255.255.255"),
            ("dst-ip", "Dest IP addr", "0.0.0.0", "255.255.255.255"),
            ("", "TOS", "0x0", "0xff"),
            ("src-port", "Src port", "0", "0xffff"),
            ("dst-port", "Dest port", "0", "0xffff")):
        whole = "0.0.0.0" if "ip" in field else "0x0"
        lines.append(f"\t{name}: {given.get(field, any_value)} mask: " + (
            dict(mask).get(field) or (whole if field in given else form)))
    return "\n".join([*lines, f"\tAction: Direct to queue {ring}"]) + "\n"


FLOW = "tcp4 dst-ip 10.9.0.2 dst-port 5201"
DROP = rule(7, "udp4 dst-port 9", 0).replace("Direct to queue 0", "Drop")
VLAN = rule(6, FLOW, 1) + "\tVLAN EtherType: 0x0 mask: 0xffff\n" \
    "\tVLAN: 0x7 mask: 0xf000\n\tUser-defined: 0x0 mask: 0xffffffffffffffff\n"


def rules(*some):
    return "2 RX rings available\nTotal %d rules\n\n" % len(some) + "\n".join(some)


@pytest.mark.parametrize("text, wanted", [
    (rules(rule(1023, FLOW, 1)), {FLOW: "1"}),
    (rules(rule(3, "udp4 src-ip 10.0.0.1 src-port 7", 0), rule(4, FLOW, 1)),
     {"udp4 src-ip 10.0.0.1 src-port 7": "0", FLOW: "1"}),
    (rules(rule(3, FLOW, 1) + "\tVLAN EtherType: 0x0 mask: 0xffff\n"
           "\tVLAN: 0x0 mask: 0xffff\n"
           "\tUser-defined: 0x0 mask: 0xffffffffffffffff\n"), {FLOW: "1"}),
    # Part of an address, a VLAN, a drop, no field at all, another type.
    (rules(rule(3, FLOW, 1, [("dst-ip", "0.0.0.255")])), {}),
    (rules(VLAN), {}), (rules(DROP), {}), (rules(rule(3, "tcp4", 1)), {}),
    (rules("Filter: 1\n\tFlow Type: Raw Ethernet\n"
           "\tAction: Direct to queue 0\n"), {}),
    (rules(rule(3, FLOW, 1).replace("queue 1", "VF 1 queue 1")), {}),
    (rules(), {}),
])
def test_steering_rules(text, wanted):
    assert ntuple.parse(text) == wanted


class Steering:
    """ethtool of a card with two rings that takes rules."""

    def __init__(self, *rules_there, spoils=False):
        self.rules, self.spoils, self.asked = dict(rules_there), spoils, []

    def __call__(self, *argv):
        option, _, *words = argv[1:]
        if option == "-n":
            return rules(*(rule(number, *what) for number, what in self.rules.items()))
        if option != "-N":
            raise errors.MssabError("netlink error: Operation not supported")
        self.asked.append(words)
        if words[0] == "delete":
            del self.rules[int(words[1])]
            return ""
        assert words[0] == "flow-type" and words[-2] == "action"
        if int(words[-1]) > 1:
            raise errors.MssabError("rmgr: Cannot insert RX class rule: "
                                    "Invalid argument")
        number = max(self.rules, default=0) + 1
        flow = "udp4 dst-port 1" if self.spoils else " ".join(words[1:-2])
        self.rules[number] = flow, words[-1]
        return f"Added rule with ID {number}\n"


def test_steering_rules_are_set_and_put_back(monkeypatch):
    other = "udp4 dst-port 9"
    card = Steering((5, (other, "1")))
    monkeypatch.setattr(ethtool, "command", card)
    was = ethtool.read("eth0")
    assert was == {"ntuple": {other: "1"}}
    ethtool.write("eth0", {"ntuple": {FLOW: "1"}})
    ethtool.write("eth0", {"ntuple": {FLOW: "1"}})
    ethtool.write("eth0", {"ntuple": {FLOW: "0", other: "0"}})
    assert sorted(card.rules.values()) == [(FLOW, "0"), (other, "0")]
    assert card.asked == [["flow-type", *FLOW.split(), "action", "1"], ["delete", "6"],
                          ["flow-type", *FLOW.split(), "action", "0"], ["delete", "5"],
                          ["flow-type", *other.split(), "action", "0"]]
    ethtool.write("eth0", ethtool.changed(was, ethtool.read("eth0")))
    assert list(card.rules.values()) == [(other, "1")]
    assert ethtool.changed(was, ethtool.read("eth0")) == {}


def test_a_rule_that_the_card_spoils_is_removed(monkeypatch):
    card = Steering(spoils=True)
    monkeypatch.setattr(ethtool, "command", card)
    with pytest.raises(errors.MssabError, match="another one; it was removed"):
        ethtool.write("eth0", {"ntuple": {FLOW: "1"}})
    assert not card.rules


def test_a_ring_that_the_card_has_not(monkeypatch):
    card = Steering()
    monkeypatch.setattr(ethtool, "command", card)
    with pytest.raises(errors.MssabError, match="Cannot insert RX class rule"):
        ethtool.write("eth0", {"ntuple": {FLOW: "2"}})
    assert not card.rules


class Card:
    """ethtool of a device with rings of up to 512, and nothing else."""

    def __init__(self, rounds=False):
        self.rx, self.rounds, self.asked = 256, rounds, []

    def __call__(self, *argv):
        self.asked.append(argv)
        option, name, *words = argv[argv.index("ethtool") + 1:]
        if option not in ("-g", "-G"):
            raise errors.MssabError("netlink error: Operation not supported")
        if option == "-G":
            assert words[0] == "rx"
            self.rx = int(words[1]) // 8 * 8 if self.rounds else int(words[1])
        return f"Ring parameters for {name}:\nRX:\t\t512\nCurrent:\n" \
               f"RX:\t\t{self.rx}\n"


def test_what_is_so_already_is_not_set(monkeypatch):
    card = Card()
    monkeypatch.setattr(ethtool, "command", card)
    ethtool.write("eth0", {"ring": {"rx": "256"}})
    assert not [argv for argv in card.asked if "-G" in argv]
    ethtool.write("eth0", {"ring": {"rx": "64"}}, "ip", "netns", "exec", "a")
    assert card.rx == 64
    assert card.asked[-2] == ("ip", "netns", "exec", "a", "ethtool", "-G",
                              "eth0", "rx", "64")


@pytest.mark.parametrize("wanted, sentence", [
    ({"ring": {"tx": "64"}}, "no ring tx"),
    ({"coalesce": {"rx-usecs": "1"}}, "not supported"),
    ({"ntuple": {FLOW: "1"}}, "takes no steering rules .n-tuple filters.; see ethtool"),
    ({"ring": {"rx": "63"}}, "ring rx = 63 was accepted but is 56"),
])
def test_what_a_device_cannot_do_is_reported(monkeypatch, wanted, sentence):
    monkeypatch.setattr(ethtool, "command", Card(rounds=True))
    with pytest.raises(errors.MssabError, match=sentence):
        ethtool.write("eth0", wanted)


def test_only_what_changed_is_put_back(monkeypatch):
    card = Card()
    monkeypatch.setattr(ethtool, "command", card)
    was = ethtool.read("eth0")
    assert was == {"ring": {"rx": "256"}}
    card.rx = 64
    back = ethtool.changed(was, ethtool.read("eth0"))
    assert back == {"ring": {"rx": "256"}}
    ethtool.write("eth0", back)
    assert ethtool.changed(was, ethtool.read("eth0")) == {}


EXPERIMENT = """\
[design]
[cell]
load = "tcpload"
[arms]
a = {}
b = { coalesce = { rx-usecs = 100, adaptive-rx = false } }
"""


def parse(tmp_path, text):
    return experiment_file.parse(tmp_path / "e.toml", text)


def test_an_arm_with_settings_of_a_device(tmp_path):
    arms = parse(tmp_path, EXPERIMENT).arms
    assert arms[0].device == {}
    assert arms[1].device == {"coalesce": {"rx-usecs": "100",
                                           "adaptive-rx": "off"}}


def test_an_arm_with_a_steering_rule(tmp_path):
    arms = parse(tmp_path, EXPERIMENT.replace(
        "a = {}", f'a = {{ ntuple = {{ "{FLOW}" = 1 }} }}')).arms
    assert arms[0].device == {"ntuple": {FLOW: "1"}}


@pytest.mark.parametrize("old, new, sentence", [
    ("rx-usecs = 100", "rx-usecs = -1", "not true, false or a number"),
    ("rx-usecs = 100", 'rx-usecs = "1"', "not true, false or a number"),
    ("rx-usecs = 100", '"rx usecs; id" = 1', "is not a name as ethtool"),
    ("{ rx-usecs = 100, adaptive-rx = false }", "3", "must be a table"),
    ("coalesce = { rx-usecs = 100, adaptive-rx = false }", "ntuple = 1",
     "must be a table"),
    *[("coalesce = { rx-usecs = 100, adaptive-rx = false }",
       f"ntuple = {{ {rule_} }}", sentence) for rule_, sentence in [
           ('"tcp4 dst-port 5201" = true', "is not the number of a ring"),
           ('"tcp4 dst-port 5201" = -1', "is not the number of a ring"),
           *[(f'"{flow}" = 1', "is no flow such as") for flow in (
               "tcp4", "tcp4 dst-port", "tcp4 dst-port 0", "tcp4 dst-port 65536",
               "tcp4 dst-port 05", "tcp6 dst-port 1", "tcp4 dst-ip 10.0.0",
               "tcp4 dst-port 1 src-port 2", "tcp4 dst-port 1; id",
               "tcp4  dst-port 1", "tcp4 dst-ip 010.0.0.1", "ether dst-port 1")]]],
    ("coalesce", "coalesced", "did you mean coalesce"),
    ('"tcpload"', '"tcpload"\nlink = "loopback"', "loopback has none"),
    ("a = {}", "a = { sender_cpu = 2000 }", "outside -1..1023"),
    ('"tcpload"', '"iperf3"\nzerocopy = true', "zerocopy needs"),
    ('"tcpload"', '"tcpload"\nzerocopy = true\nrequest = 1',
     "zerocopy is for bulk"),
])
def test_refused(tmp_path, old, new, sentence):
    assert old in EXPERIMENT
    with pytest.raises(errors.UsageError, match=sentence):
        parse(tmp_path, EXPERIMENT.replace(old, new, 1))
