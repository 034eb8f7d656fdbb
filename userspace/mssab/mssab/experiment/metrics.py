# SPDX-License-Identifier: GPL-2.0-only
"""Metrics: names, units, which direction is better, and how each is computed
from what a load reported.

Pure.  A metric on a logarithmic scale is compared by ratio, one that may be
zero (retransmits) by difference in its own unit.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .cell import Cell

Raw = dict[str, Any]


@dataclass(frozen=True)
class Metric:
    """margin: the smallest effect of interest, % (log) or in the unit (linear);
    0: the experiment's."""

    name: str
    unit: str
    better: str = "higher"      # or lower
    scale: str = "log"          # or linear
    margin: float = 0.0

    @property
    def sign(self) -> int:
        return 1 if self.better == "higher" else -1

    def log_margin(self) -> float:
        """The margin on the scale of the differences."""
        return math.log1p(self.margin / 100) if self.scale == "log" \
            else self.margin

    def difference(self, control: float, treatment: float) -> float:
        """Positive where the treatment is better."""
        if self.scale == "log":
            return self.sign * math.log(treatment / control)
        return self.sign * (treatment - control)

    def shown(self, difference: float) -> float:
        """A difference as reported: % of the control, or in the unit."""
        if self.scale == "log":
            return math.expm1(self.sign * difference) * 100 \
                if abs(difference) < 700 else math.copysign(
                    math.inf, self.sign * difference)
        return self.sign * difference


def rounded(metric: Metric, number: float, percent: float) -> float:
    """To steps of so many % on a log scale; 0: unchanged."""
    if not percent or metric.scale != "log":
        return number
    step = math.log1p(percent / 100)
    return math.exp(round(math.log(number) / step) * step)


#: Bytes/s that a block in which nothing arrived counts as.
LEAST = 1.0


def _recorded(key: str) -> Callable[[Raw], Any]:
    """A number of a profile; a program reports it beside its others."""
    return lambda raw: raw.get("profile", raw)[key]


KNOWN: dict[str, tuple[Metric, Callable[[Raw], Any]]] = {
    "goodput": (Metric("goodput", "bit/s"),
                lambda raw: 8 * max(raw["bytes_per_s"], LEAST)),
    "utilisation": (Metric("utilisation", "of the window"),
                    lambda raw: raw["utilisation"]),
    "requests": (Metric("requests", "1/s"),
                 lambda raw: max(raw["bytes_per_s"], LEAST) / raw["request"]),
    "rtt": (Metric("rtt", "us", "lower"), lambda raw: raw["rtt_us"]),
    "latency_p50": (Metric("latency_p50", "us", "lower"),
                    lambda raw: raw["latency_p50_ns"] / 1e3),
    "latency_p99": (Metric("latency_p99", "us", "lower"),
                    lambda raw: raw["latency_p99_ns"] / 1e3),
    "cpu": (Metric("cpu", "ns/byte", "lower"),
            lambda raw: raw["cpu_ns"] / raw["received"]),
    "retransmits": (Metric("retransmits", "per 1000", "lower",
                           "linear", 1.0),
                    lambda raw: 1000 * raw["retransmits"]
                    / max(raw["sent_segments"], 1)),
    "fairness": (Metric("fairness", "Jain's index"),
                 lambda raw: raw["fairness"]),
    "wrong": (Metric("wrong", "per million", "lower", "linear", 1.0),
              lambda raw: 1e6 * raw["wrong_bytes"] / raw["received"]),
    "csum_errors": (Metric("csum_errors", "per 1000", "lower",
                           "linear", 1.0),
                    lambda raw: 1000 * raw["csum_errors"]
                    / max(raw["packets"], 1)),
    "segments": (Metric("segments", "per MB", "lower"),
                 lambda raw: 1e6 * raw["segments"] / raw["received"]),
    "softirqs": (Metric("softirqs", "per MB", "lower"),
                 lambda raw: 1e6 * max(raw["softirqs"], 1)
                 / raw["received"]),
    "rx_softirqs": (Metric("rx_softirqs", "per packet", "lower"),
                    lambda raw: max(raw["softirqs"], 1)
                    / max(raw["packets"], 1)),
    "interrupts": (Metric("interrupts", "per packet", "lower"),
                   lambda raw: max(raw["interrupts"], 1)
                   / max(raw["packets"], 1)),
    "lost": (Metric("lost", "per 1000", "lower", "linear", 1.0),
             lambda raw: 1000 * raw["lost_datagrams"]
             / max(raw["sent_datagrams"], 1)),
    "jitter": (Metric("jitter", "us", "lower"),
               lambda raw: raw["jitter_ns"] / 1e3),
    "message": (Metric("message", "us", "lower"),
                lambda raw: raw["message_ns"] / 1e3),
    "rx_cost": (Metric("rx_cost", "ns/packet", "lower"),
                _recorded("rx_ns_per_packet")),
    "tx_cost": (Metric("tx_cost", "ns/packet", "lower"),
                _recorded("tx_ns_per_packet")),
    "stack_cost": (Metric("stack_cost", "ns/byte", "lower"),
                   _recorded("ns_per_byte")),
}

#: Metrics of pathprof: it records a block if the experiment has one of them.
PROFILED = ("rx_cost", "tx_cost", "stack_cost")
#: Metrics of every load: the kernel counts them in the ends' namespaces.
_HOST = ("rx_softirqs", "interrupts", "csum_errors", *PROFILED)
_BYTES = ("goodput", "cpu", "softirqs")
_TCP = (*_BYTES, "utilisation", "retransmits", *_HOST)
_UDP = (*_BYTES, "lost", *_HOST)
#: What each load reports; other metrics would make every block void.
REPORTED = {
    "iperf3": _TCP,
    "iperf3-udp": (*_UDP, "jitter"),
    "nuttcp": tuple(name for name in _TCP if name != "utilisation"),
    "nuttcp-udp": _UDP,
    "netpipe": ("goodput", "message", "retransmits", *_HOST),
    "tcpload": (*_TCP, "segments", "rtt", "requests", "latency_p50",
                "latency_p99", "fairness", "wrong"),
}
#: What tcpload reports for requests only.
OF_REQUESTS = ("requests", "latency_p50", "latency_p99")


def unmet(name: str, cell: Cell) -> str:
    """What a metric of a load needs and the cell lacks; ""."""
    if name in OF_REQUESTS and not cell.request:
        return "needs requests: give request in [cell]"
    if name == "fairness" and cell.transfers < 2:
        return "compares several transfers: give streams, senders or receivers"
    if name == "utilisation" and cell.transfers > 1:
        return "is that of one window, and each transfer has its own"
    if name == "wrong" and not cell.verify:
        return "counts bytes that were compared: give verify = true"
    if name == "cpu" and cell.remote:
        return "counts both ends of the load, and one is on another machine"
    return ""


def value(name: str, raw: Raw) -> float:
    """The metric in one block; KeyError if the load does not report it."""
    if name in KNOWN:
        return float(KNOWN[name][1](raw))
    return float(raw[name])
