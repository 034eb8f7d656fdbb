# SPDX-License-Identifier: GPL-2.0-only
"""Facts and diagnoses as OpenMetrics: base units, and labels with few values
(limit, device, CPU, arm), never an address.  Pure except for the library's types."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ..facts.collect import Facts
from ..causes.diagnosis import LIMITS, Diagnosis


class Totals:
    """Counters over all rounds, because facts hold differences only."""

    def __init__(self) -> None:
        self.values: Counter[tuple[str, str]] = Counter(
            {(key, ""): 0 for key, entry in _COUNTERS.items() if not entry[2]})

    def add(self, facts: Facts) -> None:
        for flow in facts["flows"]:
            self.values["sent", ""] += max(0, flow["d_bytes_acked"])
            self.values["received", ""] += max(0, flow["d_bytes_received"])
            self.values["retransmits", ""] += max(0, flow["d_total_retrans"])
            for key in ("busy_time", "rwnd_limited", "sndbuf_limited"):
                self.values[key, ""] += max(0, flow[f"d_{key}"])
        for row in facts["softnet"]:
            self.values["backlog_drops", str(row["cpu"])] += row["dropped"]
        for name, device in facts["devices"].items():
            # A container host has thousands of them.
            label = "virtual" if device["kind"] else name
            self.values["queue_drops", label] += sum(
                max(0, q["drops"]) for q in device["qdiscs"])


#: name in Totals: metric, help, label, divisor to the base unit.
_COUNTERS = {
    "sent": ("msstune_sent_bytes", "Acknowledged by peers.", "", 1),
    "received": ("msstune_received_bytes", "Received in order.", "", 1),
    "retransmits": ("msstune_retransmitted_segments", "Retransmitted segments.",
                    "", 1),
    "busy_time": ("msstune_busy_seconds", "Time that connections had data "
                  "unacknowledged or waiting, summed over connections.", "", 1e6),
    "rwnd_limited": ("msstune_receive_window_limited_seconds",
                     "Part of it limited by the peer's window.", "", 1e6),
    "sndbuf_limited": ("msstune_send_buffer_limited_seconds",
                       "Part of it limited by the send buffer.", "", 1e6),
    "backlog_drops": ("msstune_backlog_dropped_packets",
                      "Dropped in the per-CPU backlog.", "cpu", 1),
    "queue_drops": ("msstune_queue_dropped_packets",
                    "Dropped by queue disciplines.", "device", 1),
}


def metrics(facts: Facts, diagnoses: list[Diagnosis],
            totals: Totals) -> Iterator[Metric]:
    """All metrics of one round."""
    for key, (name, text, label, unit) in _COUNTERS.items():
        counter = CounterMetricFamily(name, text, labels=[label] if label else [])
        for (kind, value), count in totals.values.items():
            if kind == key:
                counter.add_metric([value] if label else [], count / unit)
        yield counter
    yield GaugeMetricFamily("msstune_connections", "Established connections.",
                            value=facts["flows_total"])
    yield GaugeMetricFamily("msstune_moving_connections",
                            "Connections that moved data in the last round.",
                            value=len(facts["flows"]))
    found = Counter(d.limit for d in diagnoses)
    limits = GaugeMetricFamily("msstune_diagnoses", "Diagnoses of the last round, "
                               "by limit.", labels=["limit", "wrong"])
    for limit, (_, wrong) in LIMITS.items():
        limits.add_metric([limit, str(wrong).lower()], found[limit])
    yield limits
    window = [f for f in facts["flows"]
              if f["d_rwnd_limited"] and f["high_snd_wnd"]]
    if window:
        used = sum(f["d_bytes_acked"] / f.get("seconds", facts["interval"])
                   * f["rtt"] / 1e6
                   for f in window)
        yield GaugeMetricFamily(
            "msstune_window_utilisation_ratio", "Bytes per round trip over the "
            "window, of connections that the peer's window limited.",
            value=used / sum(f["high_snd_wnd"] for f in window))
    yield from _mssfrac(facts)
    if facts["profile"]:
        cost = GaugeMetricFamily(
            "msstune_path_cost_ratio", "Share of all work time in the "
            "profile.", labels=["direction", "flags", "stage"])
        shares: Counter[tuple[str, str, str]] = Counter()
        for path in facts["profile"]:
            shares[path["direction"], " ".join(path["flags"]),
                   path["stage"]] += path["share"]
        for labels, share in shares.items():
            cost.add_metric(list(labels), share)
        yield cost


def _mssfrac(facts: Facts) -> Iterator[Metric]:
    """Window bytes lost to alignment in the last round, by arm."""
    for way in ("tx", "rx"):
        lost = GaugeMetricFamily(
            f"msstune_mssfrac_{way}_lost_ratio", "Share of the window's bytes lost "
            "to alignment in the last round.", labels=["arm"])
        for arm in ("stock", "treated"):
            offered = facts["mssfrac"].get(f"{arm}_{way}_bytes_available", 0)
            if offered > 0:
                lost.add_metric([arm], facts["mssfrac"].get(
                    f"{arm}_{way}_bytes_lost", 0) / offered)
        if lost.samples:
            yield lost
