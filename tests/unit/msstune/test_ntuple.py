# SPDX-License-Identifier: GPL-2.0-only
"""Steering rules as a setting of msstune, at a card that takes them: no emulated
card does."""
import ctypes
import errno
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "userspace/msstune"))

from msstune.settings import ntuple, settings  # noqa: E402
from msstune.transaction import export  # noqa: E402
from msstune.errors import NotSupported, TuneError, UsageError  # noqa: E402
from msstune.transaction.journal import Entry  # noqa: E402

NAME = "ntuple:eth0:tcp4 dst-port 5201"
LOC_SPECIAL, LOC_ANY = 0x80000000, 0xffffffff


class Ext(ctypes.Structure):
    _fields_ = [("padding", ctypes.c_uint8 * 2), ("h_dest", ctypes.c_uint8 * 6),
                ("vlan_etype", ctypes.c_uint16), ("vlan_tci", ctypes.c_uint16),
                ("data", ctypes.c_uint32 * 2)]


class Spec(ctypes.Structure):
    """struct ethtool_rx_flow_spec of linux/ethtool.h."""

    _fields_ = [("flow_type", ctypes.c_uint32), ("h_u", ctypes.c_uint8 * 52),
                ("h_ext", Ext), ("m_u", ctypes.c_uint8 * 52), ("m_ext", Ext),
                ("ring_cookie", ctypes.c_uint64), ("location", ctypes.c_uint32)]


class Rxnfc(ctypes.Structure):
    """struct ethtool_rxnfc, without the places that follow it."""

    _fields_ = [("cmd", ctypes.c_uint32), ("flow_type", ctypes.c_uint32),
                ("data", ctypes.c_uint64), ("fs", Spec), ("rule_cnt", ctypes.c_uint32)]


class Card:
    """The ethtool ioctl of a card with two rings and eight places for rules."""

    def __init__(self, chooses=False):
        self.rules, self.chooses, self.spoils = {}, chooses, False

    def __call__(self, _device, words):
        raw = (ctypes.c_uint32 * len(words))(*words)
        nfc = Rxnfc.from_buffer(raw)
        place = nfc.fs.location
        if nfc.cmd == 0x2e:
            nfc.rule_cnt = len(self.rules)
            nfc.data = LOC_SPECIAL if self.chooses else 0
        elif nfc.cmd == 0x30:
            assert nfc.rule_cnt >= len(self.rules)
            assert len(words) >= 48 + len(self.rules)
            nfc.data, nfc.rule_cnt = 8, len(self.rules)
            raw[47:47 + len(self.rules)] = sorted(self.rules)
        elif nfc.cmd == 0x2f:
            nfc.fs = Spec.from_buffer_copy(self.rules[place])
        elif nfc.cmd == 0x31:
            del self.rules[place]
        elif nfc.cmd == 0x32:
            if nfc.fs.ring_cookie > 1:
                raise OSError(errno.EINVAL, "Invalid argument")
            if self.chooses:
                assert place == LOC_ANY
                place = nfc.fs.location = 77
            else:
                assert place < 8
            if self.spoils:
                nfc.fs.m_u[10] = 0
            self.rules[place] = bytes(nfc.fs)
        else:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return list(raw)


@pytest.fixture(name="card")
def _card(monkeypatch):
    card = Card()
    monkeypatch.setattr(ntuple, "call", card)
    return card


def test_the_structure_is_the_kernel_s():
    assert ctypes.sizeof(Rxnfc) == 4 * ntuple.RXNFC
    assert Rxnfc.fs.offset == 4 * ntuple.FLOW_SPEC
    assert Rxnfc.fs.offset + Spec.ring_cookie.offset == 4 * ntuple.RING
    assert Rxnfc.fs.offset + Spec.location.offset == 4 * ntuple.LOCATION
    assert Rxnfc.rule_cnt.offset == 4 * ntuple.COUNT == 4 * ntuple.LOCATIONS - 4


@pytest.mark.parametrize("chooses", [False, True])
def test_a_rule_is_set_moved_and_removed(card, chooses):
    card.chooses = chooses
    setting, value = settings.parse(f"{NAME}=1")
    assert setting.read() == "none"
    setting.write(value)
    assert setting.read() == "1"
    (place, raw), = card.rules.items()
    rule = Spec.from_buffer_copy(raw)
    assert place == (77 if chooses else 7)
    assert (rule.flow_type, rule.ring_cookie) == (1, 1)
    # Addresses (8 bytes), source port, destination port, all big-endian.
    assert bytes(rule.h_u)[:13] == bytes(10) + (5201).to_bytes(2, "big") + b"\0"
    assert bytes(rule.m_u)[:13] == bytes(10) + b"\xff\xff\0"
    setting.write("0")
    assert setting.read() == "0" and len(card.rules) == 1
    setting.write("none")
    assert setting.read() == "none" and not card.rules


def test_other_rules_stay(card):
    first, _ = settings.parse("ntuple:eth0:udp4 src-ip 10.0.0.1 dst-ip 10.0.0.2=1")
    second, _ = settings.parse(f"{NAME}=0")
    first.write("1")
    second.write("0")
    assert sorted(card.rules) == [6, 7]
    rule = Spec.from_buffer_copy(card.rules[7])
    assert bytes(rule.h_u)[:8] == bytes([10, 0, 0, 1, 10, 0, 0, 2])
    assert bytes(rule.m_u)[:12] == b"\xff" * 8 + bytes(4) and rule.flow_type == 2
    second.write("none")
    assert first.read() == "1" and list(card.rules) == [7]
    # The same flow, but only for a VLAN: another rule.
    rule.m_ext.vlan_tci = 0xffff
    card.rules[7] = bytes(rule)
    assert first.read() == "none"


def test_a_refused_move_leaves_the_rule(card):
    setting, _ = settings.parse(f"{NAME}=1")
    setting.write("1")
    with pytest.raises(TuneError, match="Invalid argument; ethtool -n eth0.*ntuple on"):
        setting.write("2")
    assert setting.read() == "1"


def test_a_rule_that_the_card_spoils_is_removed(card):
    card.spoils = True
    setting, _ = settings.parse(f"{NAME}=1")
    with pytest.raises(TuneError, match="another rule of it, which was removed"):
        setting.write("1")
    assert not card.rules


def test_a_full_card(card):
    for port in range(8):
        settings.parse(f"ntuple:eth0:tcp4 dst-port {port + 1}=0")[0].write("0")
    with pytest.raises(TuneError, match="all 8 places for rules are taken"):
        settings.parse(f"{NAME}=1")[0].write("1")


def test_a_card_that_takes_no_rules():
    # A true refusal: loopback has no rings.
    with pytest.raises(NotSupported, match="lo takes no steering rules .n-tuple "
                       "filters.: Operation not supported"):
        settings.named("ntuple:lo:tcp4 dst-port 5201").read()


@pytest.mark.parametrize("text, sentence", [
    ("ntuple:eth0=1", "ntuple:DEVICE:FLOW=RING"),
    ("ntuple:eth0:tcp4=1", "at least one"),
    ("ntuple::tcp4 dst-port 1=1", "at least one"),
    ("ntuple:eth0:tcp6 dst-port 1=1", "tcp4 or udp4"),
    ("ntuple:eth0:tcp4 dst-port 65536=1", "in this order"),
    ("ntuple:eth0:tcp4 dst-port 1 src-port 1=1", "in this order"),
    ("ntuple:eth0:tcp4 src-ip 10.0.0=1", "in this order"),
    (f"{NAME}=-1", "must be the number of a ring, or none"),
    (f"{NAME}=on", "must be the number of a ring, or none"),
])
def test_refused(text, sentence):
    with pytest.raises(UsageError, match=sentence):
        settings.parse(text, Path("/"))


def test_export():
    lines = export.script([Entry(NAME, "none", "1")]).splitlines()
    assert lines[-1] == "ethtool -N eth0 flow-type tcp4 dst-port 5201 action 1"
    with pytest.raises(UsageError, match="no script can know"):
        export.script([Entry(NAME, "1", "none")])
    with pytest.raises(UsageError, match="cannot hold"):
        export.link([Entry(NAME, "none", "1")])
