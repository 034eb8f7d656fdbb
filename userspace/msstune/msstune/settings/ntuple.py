# SPDX-License-Identifier: GPL-2.0-only
"""Steering rules of a card (n-tuple filters): the ring that receives a flow, by the
ethtool ioctl.  Rules of other kinds (masks, VLANs, drops) are left alone.
"""
from __future__ import annotations

import array
import ipaddress
import re
import struct
from contextlib import suppress
from pathlib import Path

from ..errors import NotSupported, TuneError, UsageError
from .ethtool import call
from .link import DeviceSetting

GET_COUNT, GET_RULE, GET_ALL, DELETE, INSERT = 0x2e, 0x2f, 0x30, 0x31, 0x32
#: struct ethtool_rxnfc in words, and where its members are.
RXNFC, DATA, FLOW_SPEC, RING, LOCATION, COUNT, LOCATIONS = 48, 2, 4, 42, 44, 46, 47
#: The driver chooses the place of a rule, if it reports this in DATA.
SPECIAL, ANY_PLACE = 0x80000000, 0xffffffff
TYPES = {"tcp4": 1, "udp4": 2}
FIELDS = "src-ip", "dst-ip", "src-port", "dst-port"
#: struct ethtool_tcpip4_spec: addresses, ports, type of service.
TCPIP4 = "!IIHHB"
#: A rule as words: type, values (13) and 5 beyond TCP/IP, masks (13) and 5.
SPEC = 37

FLOW = re.compile(r"(?:tcp4|udp4)(?= )" + "".join(
    rf"(?: {field} (\S+))?" for field in FIELDS))
WHERE = ('ntuple:DEVICE:FLOW=RING or none, FLOW such as "tcp4 dst-port 5201": tcp4 or '
         f"udp4, then of {', '.join(FIELDS)} at least one, in this order")


def _numbers(flow: str) -> list[int | None]:
    """The values of FIELDS in a flow; ValueError if it is none."""
    if not (matched := FLOW.fullmatch(flow)):
        raise ValueError(flow)
    numbers: list[int | None] = []
    for field, value in zip(FIELDS, matched.groups(), strict=True):
        if value is None:
            numbers.append(None)
        elif field.endswith("ip"):
            numbers.append(int(ipaddress.IPv4Address(value)))
        elif re.fullmatch(r"[1-9]\d{0,4}", value) and int(value) < 2**16:
            numbers.append(int(value))
        else:
            raise ValueError(value)
    return numbers


def _words(form: str, *values: int) -> list[int]:
    """As the words of a structure's union of 52 bytes."""
    return list(array.array("I", struct.pack(form, *values).ljust(52, b"\0")))


def spec(flow: str) -> list[int]:
    """The flow in a struct ethtool_rx_flow_spec."""
    numbers = _numbers(flow)
    beyond = [0] * 5
    return [TYPES[flow.partition(" ")[0]],
            *_words(TCPIP4, *(number or 0 for number in numbers), 0), *beyond,
            *_words(TCPIP4, *(0 if number is None else (2**32 - 1, 2**16 - 1)[i > 1]
                              for i, number in enumerate(numbers)), 0), *beyond]


class Ntuple(DeviceSetting):
    """ntuple:DEV:FLOW, a ring; none: there is no such rule."""

    kind = "ntuple"

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        device, _, self.flow = target.partition(":")
        try:
            self.spec = spec(self.flow)
        except ValueError:
            self.spec = []
        if not device or not self.spec:
            raise UsageError(f"ntuple:{target}: a setting is {WHERE}")

    def _ask(self, command: int, **members: int) -> list[int]:
        words = [command] + [0] * (RXNFC - 1)
        for name, value in members.items():
            words[{"count": COUNT, "place": LOCATION}[name]] = value
        # The kernel writes the places of all rules behind the structure.
        return call(self.device, words + [0] * members.get("count", 0))

    def _rules(self) -> tuple[list[list[int]], list[int]]:
        """All rules of the card, and the answer that counts their places."""
        try:
            count = self._ask(GET_COUNT)
            every = self._ask(GET_ALL, count=count[COUNT])
            places = every[LOCATIONS:LOCATIONS + every[COUNT]]
            rules = [self._ask(GET_RULE, place=place) for place in places]
        except OSError as error:
            raise NotSupported(f"{self.name}: {self.device} takes no steering rules "
                               f"(n-tuple filters): {error.strerror}") from error
        # A driver that chooses the place itself says so with the count.
        return rules, [count[DATA] & SPECIAL, every[DATA] & ~SPECIAL]

    def _ours(self, rules: list[list[int]]) -> list[list[int]]:
        return [rule for rule in rules
                if rule[FLOW_SPEC:FLOW_SPEC + SPEC] == self.spec
                and not rule[RING + 1]]

    def read(self) -> str:
        ours = self._ours(self._rules()[0])
        return str(ours[0][RING]) if ours else "none"

    def write(self, value: str) -> None:
        rules, (chooses, size) = self._rules()
        ours = self._ours(rules)
        taken = [rule[LOCATION] for rule in rules if rule not in ours]
        try:
            for rule in ours:
                self._ask(DELETE, place=rule[LOCATION])
            if value != "none":
                self._insert(int(value),
                             ANY_PLACE if chooses else self._free(size, taken))
        except OSError as error:
            # A rule that was moved to another ring is put back.
            with suppress(OSError):
                for rule in ours:
                    self._insert(rule[RING], rule[LOCATION])
            raise TuneError(
                f"{self.name}={value}: {error.strerror}; ethtool -n {self.device} "
                "shows its rules and rings, and many drivers take none without "
                f"ethtool -K {self.device} ntuple on") from error

    def _free(self, size: int, taken: list[int]) -> int:
        """The last place that no rule has; as ethtool(8) does."""
        for place in range(size - 1, -1, -1):
            if place not in taken:
                return place
        raise TuneError(f"{self.name}: all {size} places for rules are taken")

    def _insert(self, ring: int, place: int) -> None:
        words = [INSERT] + [0] * (RXNFC - 1)
        words[FLOW_SPEC:FLOW_SPEC + SPEC] = self.spec
        words[RING], words[LOCATION] = ring, place
        place = call(self.device, words)[LOCATION]
        if not self._ours(self._rules()[0]):
            # Undo would not find it.
            self._ask(DELETE, place=place)
            raise TuneError(f"{self.name}={ring}: {self.device} made another rule of "
                            "it, which was removed")

    def check(self, value: str) -> None:
        if value != "none" and not re.fullmatch(r"\d{1,5}", value):
            raise UsageError(f"{self.name}={value}: must be the number of a ring, or "
                             "none")
