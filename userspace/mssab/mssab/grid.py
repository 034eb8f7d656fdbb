# SPDX-License-Identifier: GPL-2.0
"""The experiment file: TOML in, checked cells and arms out.

Pure: reads the file and nothing else of the machine.  The whole file is
checked before anything starts; Documentation/reference/mssab-grid.5.rst is the
reference for every key.
"""
from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import nics
from .errors import UsageError

#: Settings of net.mssfrac.* an arm may hold, with their ranges.
ARM_KEYS = {
    "rx_frac": (0, 64),
    "tx_frac": (0, 64),
    "rx_mss_est": (0, 1),
    "tx_steady": (0, 1),
    "seg_max": (2, 256),
    "ab_percent": (0, 100),
    "ab_seed": (0, 2**32 - 1),
}
CELL_KEYS = {
    "link": str,
    "mtu": int,
    "rtt_ms": float,
    "rcvbuf_max": int,
    "rcvbuf_after_accept": int,
    "window_segments": float,
    "window_scaling": bool,
    "write": int,
    "request": int,
    "nagle": bool,
    "zerocopy": bool,
    "sender_cpu": int,
    "receiver_cpu": int,
    "congestion_control": str,
    "cwnd_max": int,
    "gso": bool,
    "gro": bool,
    "qdisc": str,
    "ecn_mark_percent": float,
    "rate_mbit": float,
    "loss_percent": float,
    "reorder_percent": float,
    "queue_packets": int,
    "ipv6": bool,
    "seed": int,
    "load": str,
    "offered_mbit": float,
    "sender_interface": str,
    "sender_address": str,
    "receiver_interface": str,
    "receiver_address": str,
    "gateway": str,
    "server_port": int,
    "warmup_ms": int,
    "measure_ms": int,
    "warmup_rounds": int,
    "measure_rounds": int,
    "repeat": int,
}
RANGES = {
    "mtu": (576, 65536),
    "rtt_ms": (0, 10000),
    "rcvbuf_max": (4096, 2**30),
    "rcvbuf_after_accept": (1, 2**30),
    "window_segments": (0.01, 10000),
    "write": (1, 1 << 24),
    "request": (1, 1 << 17),
    "sender_cpu": (-1, 1023),
    "receiver_cpu": (-1, 1023),
    "cwnd_max": (1, 65535),
    "ecn_mark_percent": (0, 100),
    "rate_mbit": (0, 400000),
    "offered_mbit": (0, 400000),
    "server_port": (1, 65535),
    "loss_percent": (0, 100),
    "reorder_percent": (0, 100),
    "queue_packets": (1, 1000000),
    "seed": (0, 9999),
    "warmup_rounds": (1, 1000000),
    "measure_rounds": (1, 1000000),
    "warmup_ms": (0, 3600000),
    "measure_ms": (1, 3600000),
    "repeat": (1, 1000),
}
CHOICES = {
    "link": ("veth", "loopback", "interfaces"),
    "load": ("iperf3", "iperf3-udp", "nuttcp", "nuttcp-udp", "netpipe",
             "mssab-load"),
    "qdisc": ("", "fq"),
}
#: What only mssab-load can do; of these NetPIPE takes request.
OWN_LOAD_ONLY = ("rcvbuf_after_accept", "window_segments", "ipv6", "seed",
                 "request", "zerocopy", "warmup_rounds", "measure_rounds")
#: Bytes of TCP and timestamp option; of the IPv4 and IPv6 headers.
TCP_HEADER, IPV4_HEADER, IPV6_HEADER = 32, 20, 40
IP_MAX = 65535
#: A stall (RTO) and a delayed acknowledgement, twice.
LONGEST_WAIT_MS = 500.0
#: Of UDP: its header, and the most that one datagram holds.
UDP_HEADER, DATAGRAM_MAX = 8, 65507


@dataclass(frozen=True)
class Cell:
    """One point of the grid: where and how one transfer runs."""

    link: str = "veth"
    mtu: int = 9000                # bytes; 0 (interfaces): as it is
    rtt_ms: float = 10.0           # netem, half of it each way
    rcvbuf_max: int = 0            # tcp_rmem, bytes; 0: the kernel's default
    rcvbuf_after_accept: int = 0   # SO_RCVBUF, bytes; 0: not set
    window_segments: float = 0.0   # receiver's window, MSS; 0: not set
    window_scaling: bool = True
    write: int = 65536             # bytes a write
    request: int = 0               # request/response of so many; 0: bulk
    nagle: bool = True             # else TCP_NODELAY
    zerocopy: bool = False         # bulk with MSG_ZEROCOPY
    sender_cpu: int = -1           # the sending program's; -1: any
    receiver_cpu: int = -1
    congestion_control: str = ""   # of the sender; "": the kernel's default
    cwnd_max: int = 0              # segments, locked on the route; 0: none
    gso: bool = True               # of the sender's device
    gro: bool = True               # of the receiver's device
    qdisc: str = ""                # of the sender's device; "": none but netem
    ecn_mark_percent: float = 0.0  # netem, of the data; ECN is negotiated
    rate_mbit: float = 0.0         # netem, each way; 0: no limit
    loss_percent: float = 0.0      # netem, of the data
    reorder_percent: float = 0.0   # netem, of the data: sent without the delay
    queue_packets: int = 10000     # netem's limit, with rate or delay
    ipv6: bool = False
    seed: int = 0                  # nuisance: port and start phase
    load: str = "iperf3"           # one of CHOICES
    offered_mbit: float = 0.0      # of UDP; 0: as fast as the sender can
    sender_interface: str = ""     # link "interfaces", down to server_port
    sender_address: str = ""       # with prefix length; with receiver_address
    receiver_interface: str = ""
    receiver_address: str = ""     # of a server that the user runs
    gateway: str = ""              # on the way there
    server_port: int = 0           # of that server; 0: the load's own
    warmup_ms: int = 2000          # not counted
    measure_ms: int = 4000
    warmup_rounds: int = 0         # round trips, instead of warmup_ms
    measure_rounds: int = 0        # round trips, instead of measure_ms
    repeat: int = 1                # transfers of each arm, in turn

    @property
    def mss(self) -> int:
        """Bytes of payload a segment has, timestamps in use."""
        headers = TCP_HEADER + (IPV6_HEADER if self.ipv6 else IPV4_HEADER)
        return min(self.mtu, IP_MAX) - headers

    @property
    def udp(self) -> bool:
        return self.load.endswith("-udp")

    @property
    def remote(self) -> bool:
        """Is the receiver elsewhere?"""
        return bool(self.receiver_address)

    @property
    def payload(self) -> int:
        """The most of it that a packet holds."""
        if self.udp:
            return min(self.mtu or 1500, IP_MAX) - IPV4_HEADER - UDP_HEADER
        return self.mss

    @property
    def datagram(self) -> int:
        """Bytes of payload; by default what one packet holds."""
        return self.write if self.write <= DATAGRAM_MAX else self.payload

    @property
    def window(self) -> int:
        """Bytes the receiver is to offer; 0: not set."""
        return round(self.window_segments * self.mss)

    @property
    def warmup(self) -> float:
        """Milliseconds before the measurement."""
        if self.warmup_rounds:
            return max(self.warmup_rounds * self.rtt_ms, LONGEST_WAIT_MS)
        return float(self.warmup_ms)

    @property
    def measure(self) -> float:
        """Milliseconds measured."""
        if self.measure_rounds:
            return max(self.measure_rounds * self.rtt_ms, 1.0)
        return float(self.measure_ms)

    @property
    def name(self) -> str:
        scaling = "on" if self.window_scaling else "off"
        if self.window_segments:
            link = "lo" if self.link == "loopback" else f"mtu {self.mtu}"
            name = (f"{link} rtt {self.rtt_ms:g} window "
                    f"{self.window_segments:g} ws {scaling}")
        elif self.link == "loopback":
            name = f"loopback SO_RCVBUF {self.rcvbuf_after_accept}"
        else:
            name = f"rtt {self.rtt_ms:g} rcvbuf {self.rcvbuf_max} ws {scaling}"
        return name + self._factors()

    def _factors(self) -> str:
        """What differs from the default, for the name."""
        named_mtu = self.window_segments or self.link == "loopback"
        changed = {self.sender_interface: True,
                   f"to {self.receiver_interface or self.receiver_address}":
                       self.sender_interface,
                   self.load: self.load not in ("iperf3", "mssab-load"),
                   f"offered {self.offered_mbit:g} Mbit/s":
                       self.offered_mbit,
                   f"mtu {self.mtu}": not named_mtu and self.mtu not in
                       (0, 9000),
                   f"request {self.request}": self.request,
                   "nodelay": not self.nagle, "zerocopy": self.zerocopy,
                   f"sender on CPU {self.sender_cpu}": self.sender_cpu >= 0,
                   f"receiver on CPU {self.receiver_cpu}":
                       self.receiver_cpu >= 0,
                   self.congestion_control: True,
                   f"cwnd {self.cwnd_max}": self.cwnd_max,
                   "gso off": not self.gso, "gro off": not self.gro,
                   self.qdisc: True,
                   f"mark {self.ecn_mark_percent:g} %":
                       self.ecn_mark_percent,
                   f"rate {self.rate_mbit:g} Mbit/s": self.rate_mbit,
                   f"loss {self.loss_percent:g} %": self.loss_percent,
                   f"reorder {self.reorder_percent:g} %":
                       self.reorder_percent,
                   f"queue {self.queue_packets}":
                       self.queue_packets != 10000,
                   "ipv6": self.ipv6, f"seed {self.seed}": self.seed,
                   # Larger ones hold several segments: it hardly matters.
                   f"write {self.write}":
                       self.write < 65536}
        return "".join(f", {word}" for word, is_so in changed.items()
                       if word and is_so)


@dataclass(frozen=True)
class Experiment:
    """A checked experiment file."""

    title: str
    arms: dict[str, dict[str, int]]
    cells: list[Cell] = field(default_factory=list)


def check_value(where: str, key: str, value: Any) -> Any:
    kind = CELL_KEYS[key]
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise UsageError(f"{where}: {key} = {value!r} is not "
                         f"a {kind.__name__}")
    if key in RANGES and not RANGES[key][0] <= value <= RANGES[key][1]:
        low, high = RANGES[key]
        raise UsageError(f"{where}: {key} = {value} is outside "
                         f"{low}..{high}")
    if key in CHOICES and value not in CHOICES[key]:
        raise UsageError(f"{where}: {key} = {value!r} is none of "
                         f"{', '.join(CHOICES[key])}")
    return value


def check_cell(where: str, cell: Cell) -> None:
    """Keys that do not go together."""
    for key in OWN_LOAD_ONLY:
        if getattr(cell, key) and cell.load != "mssab-load" \
                and (key, cell.load) != ("request", "netpipe"):
            raise UsageError(f"{where}: {key} needs "
                             f"load = \"mssab-load\"; {cell.load} cannot "
                             "do it")
    if cell.offered_mbit and not cell.udp:
        raise UsageError(f"{where}: offered_mbit is of UDP: load = "
                         "\"iperf3-udp\" or \"nuttcp-udp\"")
    if cell.udp and (cell.congestion_control or not cell.nagle):
        raise UsageError(f"{where}: congestion_control and nagle are of TCP; "
                         f"{cell.load} sends datagrams")
    if cell.zerocopy and cell.request:
        raise UsageError(f"{where}: zerocopy is of bulk; leave out request")
    if cell.remote and cell.receiver_cpu >= 0:
        raise UsageError(f"{where}: receiver_cpu is of a program that runs "
                         "elsewhere")
    nics.check(where, cell)
    if cell.link == "loopback" and not (cell.gso and cell.gro):
        raise UsageError(f"{where}: gso and gro are of a veth link")
    if cell.link == "veth" and cell.mtu > IP_MAX:
        raise UsageError(f"{where}: mtu = {cell.mtu} is only for "
                         f"loopback; a veth link takes {IP_MAX}")
    netem = [key for key in ("ecn_mark_percent", "rate_mbit", "loss_percent",
                             "reorder_percent") if getattr(cell, key)]
    if cell.qdisc and netem:
        raise UsageError(f"{where}: qdisc and {netem[0]} both want "
                         "to be the sender's root qdisc; choose one")
    if cell.loss_percent and cell.ecn_mark_percent:
        raise UsageError(f"{where}: netem either loses or marks; choose one "
                         "of loss_percent and ecn_mark_percent")
    if cell.reorder_percent and not cell.rtt_ms:
        raise UsageError(f"{where}: reorder_percent sends ahead of the delay "
                         "and needs rtt_ms")
    for key in ("qdisc", "cwnd_max", *netem):
        if cell.link == "loopback" and getattr(cell, key):
            raise UsageError(f"{where}: {key} is of a veth link; loopback has "
                             "none")
    if cell.load.startswith("iperf3") and (cell.warmup_ms % 1000
                                           or cell.measure_ms % 1000):
        raise UsageError(f"{where}: iperf3 counts whole seconds; give "
                         "warmup_ms and measure_ms in thousands")


def own_time(table: dict[str, Any]) -> str:
    """A key that NetPIPE has no use for, in the table of a cell; ""."""
    if table.get("load") != "netpipe":
        return ""
    return next((key for key in ("warmup_ms", "measure_ms") if key in table),
                "")


def _cells(where: str, table: dict[str, Any]) -> list[Cell]:
    """The grid of one [[cells]] table: every list is an axis."""
    axes = []
    if key := own_time(table):
        raise UsageError(f"{where}: {key}: NetPIPE itself decides how long it "
                         "measures")
    for key, value in table.items():
        if key not in CELL_KEYS:
            known = ", ".join(sorted(CELL_KEYS))
            raise UsageError(f"{where}: unknown key {key} (known: {known})")
        values = value if isinstance(value, list) else [value]
        if not values:
            raise UsageError(f"{where}: {key} is an empty list")
        axes.append([(key, check_value(where, key, v)) for v in values])
    cells = [Cell(**nics.defaults(table) | dict(point))
             for point in itertools.product(*axes)]
    # Without scaling no window is larger than its header field.
    cells = [cell for cell in cells
             if cell.window_scaling or cell.window <= IP_MAX]
    for cell in cells:
        check_cell(where, cell)
    return cells


def _arms(where: str, table: Any) -> dict[str, dict[str, int]]:
    if not isinstance(table, dict) or len(table) < 2:
        raise UsageError(f"{where}: [arms] wants at least two arms; "
                         "the first is the one compared against")
    for name, settings in table.items():
        if not isinstance(settings, dict):
            raise UsageError(f"{where}: arm {name} is not a table")
        for key, value in settings.items():
            if key not in ARM_KEYS:
                known = ", ".join(ARM_KEYS)
                raise UsageError(f"{where}: arm {name}: unknown setting "
                                 f"{key} (known: {known})")
            low, high = ARM_KEYS[key]
            if type(value) is not int or not low <= value <= high:
                raise UsageError(f"{where}: arm {name}: {key} = {value!r} "
                                 f"is not a number in {low}..{high}")
    return table


def read(path: Path) -> str:
    """The text of an experiment file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name an experiment "
                         "file, such as experiments/windows.toml") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error


def load(path: Path) -> Experiment:
    """Read and check a grid's file; UsageError says what is wrong."""
    try:
        data = tomllib.loads(read(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    for key in data:
        if key not in ("title", "arms", "cells"):
            raise UsageError(f"{path}: unknown key {key} "
                             "(known: title, arms, cells)")
    tables = data.get("cells")
    if not isinstance(tables, list) or not tables:
        raise UsageError(f"{path}: no [[cells]]; say what to run")
    cells = [cell for i, table in enumerate(tables, 1)
             for cell in _cells(f"{path}: [[cells]] {i}", table)]
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path}: two cells are called {name!r}; put "
                             "what they differ in into another file")
    return Experiment(title=str(data.get("title", path.stem)),
                      arms=_arms(str(path), data.get("arms")), cells=cells)
