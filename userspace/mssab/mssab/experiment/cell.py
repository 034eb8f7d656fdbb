# SPDX-License-Identifier: GPL-2.0-only
"""The cell: one place to measure in, and the table of its keys.

A key is described once, in Cell: its type and default, range, unit, what it
requires, its words in a cell's name, and what sets it where that is one
setting.  Everything else reads the table: the checks, the testbed, the loads
and the tests of mssab-grid(5).  Rules that involve several keys are in
cell_rules.py.  Pure.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .keys import Key, entry, table

#: Bytes of the TCP header with timestamps; of the IPv4 and IPv6 headers.
TCP_HEADER, IPV4_HEADER, IPV6_HEADER = 32, 20, 40
IP_MAX = 65535
#: Bytes of the UDP header; the most that one datagram holds.
UDP_HEADER, DATAGRAM_MAX = 8, 65507
#: Two stalls (RTO), each with a delayed acknowledgement.
LONGEST_WAIT_MS = 500.0

LOOPBACK, VETH, INTERFACES = "loopback", "veth", "interfaces"
#: Links with a network device at each end.
WITH_DEVICE = (VETH, INTERFACES)
OWN_LOAD = ("tcpload",)
TCP, UDP = "TCP", "UDP"


@dataclass(frozen=True)
class CellKey(Key):
    """A key of a cell.

    Requirements hold where the value is not the default.  Setters are applied
    by testbed.py (sysctls, offloads), netem.py and loads.py (option); a key
    without one is handled by its name there.
    """

    # Requirements.
    loads: tuple[str, ...] = ()     # only these loads; (): all
    links: tuple[str, ...] = ()     # only these links; (): all
    protocol: str = ""              # only TCP or UDP
    at_receiver: bool = False       # needs a receiver on this machine
    # May one arm have another value than the other?
    per_arm: bool = True
    # Cells that differ in it cannot share namespaces and links.
    shapes_testbed: bool = False
    # In the cell's name: a format of the value, used where it is not the
    # default, or a function of the cell.  Lower ranks come first.
    label: str | Callable[[Cell], str] = ""
    label_rank: int = 2
    # Setters.
    sysctls: Callable[[Any], dict[str, object]] | None = None
    both_ends: bool = False         # sysctls; else those of the receiver
    offloads: tuple[str, ...] = ()  # of ethtool -K, at the end's device
    netem: str = ""                 # words for netem, for the data
    option: str = ""                # of tcpload

    def words(self, form: str, value: Any) -> list[str]:
        """A format filled in, split into words; none for the default."""
        return [] if value == self.default else form.format(value).split()


def _key(default: Any, low: float | None = None, high: float | None = None,
         **more: Any) -> Any:
    return entry(CellKey(default, low, high, **more))


def _nic_key(default: Any, low: float | None = None,
             high: float | None = None, **more: Any) -> Any:
    """A key of named interfaces."""
    return _key(default, low, high, links=(INTERFACES,), per_arm=False,
                shapes_testbed=True, label_rank=0, **more)


def _mtu_label(cell: Cell) -> str:
    in_name = cell.window_segments or cell.link == LOOPBACK
    return "" if in_name or cell.mtu in (0, 9000) else f"mtu {cell.mtu}"


def _load_label(cell: Cell) -> str:
    return "" if cell.load in ("iperf3", *OWN_LOAD) else cell.load


def _receiver_label(cell: Cell) -> str:
    if not cell.sender_interface:
        return ""
    return f"to {cell.receiver_interface or cell.receiver_address}"


def _write_label(cell: Cell) -> str:
    # Larger writes hold several segments, and hardly matter.
    return f"write {cell.write}" if cell.write < 65536 else ""


def _fixed_buffer(size: int) -> dict[str, object]:
    return {"net.ipv4.tcp_moderate_rcvbuf": 0,
            "net.ipv4.tcp_rmem": f"4096 {size} {size}"} if size else {}


def _whole_window(segments: float) -> dict[str, object]:
    # The whole buffer is the window, and no transfer helps the next.
    return {"net.ipv4.tcp_app_win": 0,
            "net.ipv4.tcp_no_metrics_save": 1} if segments else {}


@dataclass(frozen=True)
class Cell:
    """Where and how one transfer runs.  0 or "" means that a key is unset,
    where its range does not exclude that."""

    link: str = _key(VETH, choices=(VETH, LOOPBACK, INTERFACES), per_arm=False,
                     shapes_testbed=True)
    # 0 (named interfaces only): as it is.
    mtu: int = _key(9000, 576, 65536, unit="bytes", shapes_testbed=True,
                    label=_mtu_label)
    rtt_ms: float = _key(10.0, 0, 10000, unit="ms", shapes_testbed=True)
    rcvbuf_max: int = _key(0, 4096, 2**30, unit="bytes", at_receiver=True,
                           shapes_testbed=True, sysctls=_fixed_buffer)
    rcvbuf_after_accept: int = _key(0, 1, 2**30, unit="bytes", loads=OWN_LOAD,
                                    option="--rcvbuf {}")
    window_segments: float = _key(0.0, 0.01, 10000, unit="segments",
                                  loads=OWN_LOAD, sysctls=_whole_window)
    window_scaling: bool = _key(
        True, at_receiver=True, shapes_testbed=True,
        sysctls=lambda on: {"net.ipv4.tcp_window_scaling": int(on)})
    write: int = _key(65536, 1, 1 << 24, unit="bytes", label=_write_label,
                      label_rank=3)
    request: int = _key(0, 1, 1 << 17, unit="bytes",
                        loads=(*OWN_LOAD, "netpipe"), label="request {}",
                        option="--size {}")
    nagle: bool = _key(True, protocol=TCP, label="nodelay",
                       option="--nodelay")
    zerocopy: bool = _key(False, loads=OWN_LOAD, label="zerocopy",
                          option="--zerocopy")
    zerocopy_rx: bool = _key(False, loads=OWN_LOAD, label="zerocopy rx",
                             option="--zerocopy-rx")
    pause_ms: float = _key(0.0, 0, 60000, unit="ms", loads=OWN_LOAD,
                           label="pause {:g} ms", option="--pause-us {:.0f}000")
    pause_bytes: int = _key(1, 1, 2**30, unit="bytes", loads=OWN_LOAD,
                            label="every {} bytes", option="--pause-every {}")
    verify: bool = _key(False, loads=OWN_LOAD, label="verify",
                        option="--verify")
    observer: str = _key("", choices=("", "tcpdump", "pathprof"),
                         at_receiver=True, label="beside {}")
    sender_cpu: int = _key(-1, -1, 1023, label="sender on CPU {}",
                           option="--sender-cpu {}")
    receiver_cpu: int = _key(-1, -1, 1023, at_receiver=True,
                             label="receiver on CPU {}",
                             option="--receiver-cpu {}")
    congestion_control: str = _key("", protocol=TCP, label="{}",
                                   option="--cc {}")
    # The veth link goes through a bridge, and may have several ends on a side.
    bridge: bool = _key(False, links=(VETH,), shapes_testbed=True,
                        label="bridge")
    senders: int = _key(1, 1, 16, links=(VETH,), loads=OWN_LOAD,
                        shapes_testbed=True, label="senders {}")
    receivers: int = _key(1, 1, 16, links=(VETH,), loads=OWN_LOAD,
                          shapes_testbed=True, label="receivers {}")
    # Transfers at once between each sender and receiver.
    streams: int = _key(1, 1, 64, loads=OWN_LOAD, label="streams {}")
    cwnd_max: int = _key(0, 1, 65535, unit="segments", links=WITH_DEVICE,
                         shapes_testbed=True, label="cwnd {}")
    gso: bool = _key(True, links=WITH_DEVICE, shapes_testbed=True,
                     label="gso off", offloads=("gso", "tso"))
    gro: bool = _key(True, links=WITH_DEVICE, at_receiver=True,
                     shapes_testbed=True, label="gro off", offloads=("gro",))
    # fq leaves no room for netem at the sender: the delay is the receiver's.
    qdisc: str = _key("", choices=("", "fq", "pfifo_fast"), links=WITH_DEVICE,
                      at_receiver=True, shapes_testbed=True, label="{}")
    txqueuelen: int = _key(0, 1, 100000, unit="packets", links=WITH_DEVICE,
                           shapes_testbed=True, label="txqueuelen {}")
    ecn_mark_percent: float = _key(
        0.0, 0, 100, unit="%", links=WITH_DEVICE, shapes_testbed=True,
        label="mark {:g} %", netem="loss random {:g}% ecn", both_ends=True,
        sysctls=lambda percent: {"net.ipv4.tcp_ecn": 1} if percent else {})
    rate_mbit: float = _key(0.0, 0, 400000, unit="Mbit/s", links=WITH_DEVICE,
                            shapes_testbed=True, label="rate {:g} Mbit/s")
    loss_percent: float = _key(0.0, 0, 100, unit="%", links=WITH_DEVICE,
                               shapes_testbed=True, label="loss {:g} %",
                               netem="loss random {:g}%")
    reorder_percent: float = _key(0.0, 0, 100, unit="%", links=WITH_DEVICE,
                                  shapes_testbed=True, label="reorder {:g} %",
                                  netem="reorder {:g}%")
    jitter_ms: float = _key(0.0, 0, 10000, unit="ms", links=WITH_DEVICE,
                            shapes_testbed=True, label="jitter {:g} ms")
    corrupt_percent: float = _key(0.0, 0, 100, unit="%", links=WITH_DEVICE,
                                  shapes_testbed=True, label="corrupt {:g} %",
                                  netem="corrupt {:g}%")
    corrupt_rx_percent: float = _key(
        0.0, 0, 100, unit="%", links=WITH_DEVICE, at_receiver=True,
        shapes_testbed=True, label="corrupt rx {:g} %")
    queue_packets: int = _key(10000, 1, 1000000, unit="packets",
                              shapes_testbed=True, label="queue {}")
    ipv6: bool = _key(False, loads=OWN_LOAD, per_arm=False,
                      shapes_testbed=True, label="ipv6")
    seed: int = _key(0, 0, 9999, loads=OWN_LOAD, per_arm=False,
                     label="seed {}")
    load: str = _key("iperf3", choices=(
        "iperf3", "iperf3-udp", "nuttcp", "nuttcp-udp", "netpipe",
        "tcpload"), label=_load_label, label_rank=1)
    offered_mbit: float = _key(0.0, 0, 400000, unit="Mbit/s", protocol=UDP,
                               label="offered {:g} Mbit/s", label_rank=1)
    sender_interface: str = _nic_key("", label="{}")
    sender_address: str = _nic_key("")
    receiver_interface: str = _nic_key("")
    receiver_address: str = _nic_key("", label=_receiver_label)
    gateway: str = _nic_key("")
    server_port: int = _nic_key(0, 1, 65535)
    warmup_ms: int = _key(2000, 0, 3600000, unit="ms", per_arm=False)
    measure_ms: int = _key(4000, 1, 3600000, unit="ms", per_arm=False)
    # Round trips, instead of the milliseconds.
    warmup_rounds: int = _key(0, 1, 1000000, unit="RTT", loads=OWN_LOAD,
                              per_arm=False)
    measure_rounds: int = _key(0, 1, 1000000, unit="RTT", loads=OWN_LOAD,
                               per_arm=False)
    repeat: int = _key(1, 1, 1000, per_arm=False)

    @property
    def mss(self) -> int:
        """Bytes of payload in a full-sized segment with timestamps."""
        headers = TCP_HEADER + (IPV6_HEADER if self.ipv6 else IPV4_HEADER)
        return min(self.mtu, IP_MAX) - headers

    @property
    def udp(self) -> bool:
        return self.load.endswith("-udp")

    @property
    def remote(self) -> bool:
        """Does the receiver run on another machine?"""
        return bool(self.receiver_address)

    @property
    def transfers(self) -> int:
        """How many run at once."""
        return self.senders * self.receivers * self.streams

    @property
    def payload(self) -> int:
        """Bytes of payload in the largest packet."""
        if self.udp:
            return min(self.mtu or 1500, IP_MAX) - IPV4_HEADER - UDP_HEADER
        return self.mss

    @property
    def datagram(self) -> int:
        """Bytes of payload in a datagram; by default a full packet."""
        return self.write if self.write <= DATAGRAM_MAX else self.payload

    @property
    def window(self) -> int:
        """Bytes the receiver is to advertise; 0: not set."""
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
        """Identifies the cell in tables and results files."""
        scaling = "on" if self.window_scaling else "off"
        if self.window_segments:
            link = "lo" if self.link == LOOPBACK else f"mtu {self.mtu}"
            name = (f"{link} rtt {self.rtt_ms:g} window "
                    f"{self.window_segments:g} ws {scaling}")
        elif self.link == LOOPBACK:
            name = f"loopback SO_RCVBUF {self.rcvbuf_after_accept}"
        else:
            name = f"rtt {self.rtt_ms:g} rcvbuf {self.rcvbuf_max} ws {scaling}"
        labels = [key.label(self) if callable(key.label)
                  else " ".join(key.words(key.label, getattr(self, name)))
                  for name, key in _BY_RANK]
        return ", ".join([name, *filter(None, labels)])


KEYS: dict[str, CellKey] = table(Cell)
_BY_RANK = sorted(KEYS.items(), key=lambda item: item[1].label_rank)


def changed(cell: Cell) -> dict[str, CellKey]:
    """The keys whose value is not the default."""
    return {name: key for name, key in KEYS.items()
            if getattr(cell, name) != key.default}
