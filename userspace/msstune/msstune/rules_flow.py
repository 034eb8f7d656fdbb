# SPDX-License-Identifier: GPL-2.0-only
"""What limits one connection: an ordered list of tests, the first that matches is
the answer.  Pure.

Shares of time come from the kernel (TCP_INFO busy_time, rwnd_limited,
sndbuf_limited); thresholds decide which share is a limit.
"""
from __future__ import annotations

import math
from typing import Any

from . import recovery, units
from .collect import Facts
from .diagnosis import Diagnosis
from .sockdiag import OPT_SACK, OPT_WSCALE, UNLIMITED

Flow = dict[str, Any]
LIMITED = 0.3        # share of busy time that is a limit
IDLE = 0.7           # busy share of the interval below which too little is sent
SELDOM = 0.5         # busy share below which no other limit counts
USED = 0.6           # share of the window received per round trip that is a limit
WASTE = 1 / 24       # unused share of a window worth acting on, as in mssfrac
FEW = 16             # segments in a window below which granularity matters
LOSS = 5e-4          # retransmitted share of segments that counts as loss
FULL_RTT = 1.5       # round trip over its minimum that shows a queue
UNSCALED = 65535     # bytes, the largest window without scaling
LEAST = 20_000       # bytes below which a connection is not judged


def name(flow: Flow) -> str:
    return f"{flow['local']} > {flow['remote']}"


def waste(window: float, mss: int) -> float:
    """Share of a window that full-sized segments leave unused."""
    return 1 - window // mss * mss / window if window and mss else 0.0


def moved(facts: Facts) -> int:
    """Bytes of all connections, of which a connection has a share."""
    return sum(max(f["d_bytes_acked"], f["d_bytes_received"])
               for f in facts["flows"]) or 1


def diagnose(flow: Flow, facts: Facts, total: int) -> Diagnosis | None:
    """None: too little data moved.  @total: moved()."""
    sent, received = flow["d_bytes_acked"], flow["d_bytes_received"]
    stuck = flow["unacked"] and flow["retransmits"] > 1
    if max(sent, received) < LEAST and not (stuck or flow["wqueue"] > LEAST
                                            or flow["rqueue"] > LEAST):
        return None
    weight = 50 * max(sent, received) / total
    answer = (_sender if stuck or sent >= received and not flow["rqueue"] > sent
              else _receiver)(flow, facts)
    limit, confidence, why, change, numbers = answer
    if stuck:
        weight = max(weight, 40.0)  # a stuck connection has no share of the bytes
    factor = 1.0 if confidence == "high" else 0.8
    return Diagnosis(name(flow), limit, confidence, why, change,
                     weight * factor, numbers)


Answer = tuple[str, str, str, str, dict[str, Any]]


def _sender(f: Flow, facts: Facts) -> Answer:
    interval = f.get("seconds", facts["interval"])
    rate = f["d_bytes_acked"] * 8 / interval
    busy = min(1.0, f["d_busy_time"] / 1e6 / interval)
    busy_us = max(1, f["d_busy_time"])
    rwnd, sndbuf = f["d_rwnd_limited"] / busy_us, f["d_sndbuf_limited"] / busy_us
    loss = f["d_total_retrans"] / max(1, f["d_data_segs_out"])
    numbers = {"bits_per_second": rate, "busy": busy, "rwnd_limited": rwnd,
               "sndbuf_limited": sndbuf, "loss": loss, "min_rtt_us": f["min_rtt"],
               "rtt_us": f["rtt"], "snd_cwnd": f["snd_cwnd"],
               "snd_mss": f["snd_mss"], "snd_wnd": f["high_snd_wnd"],
               "sndbuf": f.get("sndbuf", 0), "cc": f["cc"]}
    if f["unacked"] and f["retransmits"] > 1 and not f["d_bytes_acked"]:
        return ("mtu", "medium",
                f"{f['retransmits']} timeouts in a row with segments of "
                f"{f['snd_mss']} bytes, and no ACK arrives",
                "ping -M do with that size gets a reply; then the path has "
                "another fault", numbers)
    if busy < SELDOM and not f["d_total_retrans"]:
        return _idle(busy, numbers)
    if rwnd >= LIMITED:
        return _window(f, rwnd, numbers)
    if sndbuf >= LIMITED:
        return ("send-buffer", "high",
                f"for {sndbuf:.0%} of its busy time the send buffer "
                f"({units.size(numbers['sndbuf'])}) was full and the path was not",
                "a larger buffer changes nothing; then the application writes in "
                "bursts", numbers)
    idle = f["high_notsent_bytes"] < f["snd_mss"] and f["unacked"] < f["snd_cwnd"]
    # A blocked writer may continue when the buffer is two thirds full.
    full = f.get("high_wmem_queued", 0) >= numbers["sndbuf"] > 0
    if idle and f["app_limited"] and full and busy >= 0.9:
        always = f["low_wmem_queued"] > 0.6 * numbers["sndbuf"]
        return ("send-buffer", "high" if always else "medium",
                f"its send buffer ({units.size(numbers['sndbuf'])}) was full of "
                "unacknowledged data, and the congestion window was not",
                "a larger buffer changes nothing", numbers)
    cap = f["max_pacing_rate"]
    if cap not in UNLIMITED and rate >= 0.7 * cap * 8:
        return ("pacing", "high",
                f"SO_MAX_PACING_RATE is {units.bits(cap * 8)}, it sends "
                f"{units.bits(rate)}", "the limit is raised and the rate stays",
                numbers | {"max_pacing_rate": cap})
    shaped = _shaped(facts, rate)
    if shaped:
        return ("pacing", "high", shaped[0], "the limit is raised and the rate "
                "stays", numbers | {"maxrate": shaped[1]})
    least = 2 if f["options"] & OPT_SACK else 1
    if loss >= LOSS and f["d_total_retrans"] >= least:
        return _lossy(f, loss, rate, numbers)
    if busy < IDLE or f["app_limited"] and idle:
        return _idle(busy, numbers)
    if f["rtt"] >= FULL_RTT * f["min_rtt"] > 0 and f["rtt"] - f["min_rtt"] > 500:
        return ("path", "medium",
                f"the round trip is {f['rtt'] / f['min_rtt']:.1f} times its "
                "minimum without loss: the bottleneck has a queue",
                "the rate is below what the link can carry", numbers)
    full = _full(facts)
    if full:
        return ("path", "medium", full, "its rate limit is above that",
                numbers)
    if f["high_unacked"] >= 0.7 * f["snd_cwnd"] and f["snd_ssthresh"] < 2**31 - 1:
        return _recovering(f, numbers)
    return ("unknown", "low",
            "neither window, buffer, loss, pacing nor the application explains "
            "its rate", "a longer --interval, or a pathprof --profile", numbers)


def _idle(busy: float, numbers: dict[str, Any]) -> Answer:
    """The application provides too little data."""
    return ("application-send", "high" if busy < SELDOM else "medium",
            f"it had unacknowledged data for {busy:.0%} of the time, and none "
            "waiting",
            "data waits in the send queue (notsent) for longer", numbers)


def _window(f: Flow, share: float, numbers: dict[str, Any]) -> Answer:
    """The peer's receive window is the limit."""
    window, mss = f["high_snd_wnd"], f["snd_mss"]
    most = window * 8e6 / max(1, f["rtt"])
    numbers = numbers | {"window_limit_bits_per_second": most}
    told = f"for {share:.0%} of its busy time the peer's window was full"
    lost = waste(window, mss)
    numbers["waste"] = lost
    # Autotuning lets a window grow; it shrinks only if data lies unread.
    shrank = f["snd_wnd"] < 0.95 * window
    if window >= mss and (shrank or f["timer"] == 4
                          or f["low_snd_wnd"] < max(mss, window // 3)):
        return ("peer-application", "medium",
                f"{told}; it was between {units.size(f['low_snd_wnd'])} and "
                f"{units.size(window)}: the peer's application reads late",
                "the peer's receive queue (ss -m there) stays near empty",
                numbers)
    if window < mss or window < FEW * mss and lost > WASTE:
        return ("mss-granularity", "high" if lost > 0.1 else "medium",
                f"{told}; {units.size(window)} hold {window / mss:.2f} segments of "
                f"{mss} bytes: full-sized segments leave {lost:.0%} unused",
                "smaller segments (mssfrac, MTU) change nothing", numbers)
    # A scaled window is rounded up to the unit of the header field.
    unit = 1 << f["snd_wscale"]
    if window <= 8 * mss + unit and window % mss < unit <= mss // 16:
        return ("mss-granularity", "medium",
                f"{told}; it is {window // mss} segments of {mss} bytes, in units of "
                f"{unit} byte{'s' * (unit > 1)}: the receiver advertises "
                "full-sized segments only, which costs up to "
                f"{mss / (window + mss):.0%} of its buffer", "its window stays "
                "the same with smaller segments (MTU)",
                numbers | {"waste": mss / (window + mss)})
    if f["rtt"] >= 10 * f["min_rtt"] > 0 and f["rtt"] - f["min_rtt"] > 5000:
        return ("path", "medium",
                f"{told}, and the round trip is {f['rtt'] / f['min_rtt']:.1f} times "
                "its minimum: a larger window would only lengthen the queue",
                "the rate is below what the link can carry", numbers)
    if not f["options"] & OPT_WSCALE and window > 16384:
        return ("window-scaling", "high",
                f"{told}, and without window scaling it cannot exceed {UNSCALED} "
                f"bytes: {units.bits(UNSCALED * 8e6 / max(1, f['min_rtt']))}",
                "both ends agree on scaling in a new connection", numbers)
    return ("receive-window", "high",
            f"{told}: {units.size(window)} in {f['rtt'] / 1e3:.3g} ms allow "
            f"{units.bits(most)}",
            "a larger window there (tcp_rmem, SO_RCVBUF) changes nothing",
            numbers)


def _shaped(facts: Facts, rate: float) -> tuple[str, float] | None:
    """A maxrate of fq that the connection nearly reaches, as text and number."""
    for name_, device in facts["devices"].items():
        for qdisc in device["qdiscs"]:
            cap = (qdisc.get("options") or {}).get("maxrate")
            if qdisc["kind"] == "fq" and isinstance(cap, (int, float)) \
                    and 0.7 * cap * 8 <= rate <= 1.1 * cap * 8:
                return (f"fq on {name_} has maxrate {units.bits(cap * 8)} per "
                        "connection", cap)
    return None


def _full(facts: Facts) -> str:
    """A device whose shaper sends at its limit, as text."""
    for name_, device in facts["devices"].items():
        for qdisc in device["qdiscs"]:
            cap = (qdisc.get("options") or {}).get("rate")
            if qdisc["kind"] == "tbf" and isinstance(cap, (int, float)) and \
                    qdisc["bytes"] >= 0.9 * cap * facts["interval"]:
                return (f"tbf on {name_} sends at its limit of "
                        f"{units.bits(cap * 8)}: that is the path")
    return ""


def _lossy(f: Flow, loss: float, rate: float, numbers: dict[str, Any]) -> Answer:
    told = f"{loss:.2%} of its segments were retransmitted"
    if not f["options"] & OPT_SACK:
        return ("sack-off", "high", f"{told}, and SACK was not negotiated: "
                "each loss in a window costs a round trip",
                "the rate stays the same with SACK", numbers)
    model = f["snd_mss"] * 8e6 / max(1, f["rtt"]) * math.sqrt(1.5 / loss)
    numbers = numbers | {"mathis_bits_per_second": model}
    queued = f["rtt"] - f["min_rtt"]
    if f["rtt"] >= FULL_RTT * f["min_rtt"] and queued > 500:
        return ("path", "medium",
                f"{told} while the round trip was {f['rtt'] / f['min_rtt']:.1f} "
                "times its minimum: the path is full",
                "losses continue at half the rate", numbers)
    if f["d_dsack_dups"] > f["d_total_retrans"] / 2:
        return ("loss", "medium", f"{told}, and the peer already had most of them "
                "(DSACK): reordering, or timeouts that are too early", "no DSACKs",
                numbers)
    return ("loss", "medium" if f["cc"] == "bbr" else "high",
            f"{told} with no queue on the path (round trip {f['rtt'] / 1e3:.3g} "
            f"ms, minimum {f['min_rtt'] / 1e3:.3g} ms); Reno would reach "
            f"{units.bits(model)}",
            "losses stop at a lower rate; then it is congestion", numbers)


def _recovering(f: Flow, numbers: dict[str, Any]) -> Answer:
    rtt = f["min_rtt"] / 1e6
    segments = f["snd_ssthresh"] / (0.7 if f["cc"] == "cubic" else 0.5)
    algorithm = recovery.ALGORITHMS.get(f["cc"], recovery.reno)
    return ("recovery", "low",
            f"the congestion window is the limit, {f['snd_cwnd']} segments after "
            f"a loss that left {f['snd_ssthresh']}; recovered in about "
            f"{units.duration(algorithm(segments, rtt).seconds)} by "
            f"{f['cc']}'s rule", "the window does not grow during --interval",
            numbers)


def _receiver(f: Flow, facts: Facts) -> Answer:
    rate = f["d_bytes_received"] / f.get("seconds", facts["interval"])
    window, buffer = f["rcv_ssthresh"], f.get("rcvbuf", 0)
    if not f["options"] & OPT_WSCALE:
        window = min(window, UNSCALED)  # rcv_ssthresh grows beyond it
    if 0 < buffer < window:
        # rcv_ssthresh is from before SO_RCVBUF.  Half of a buffer is window.
        window = buffer // 2
    rtt = f["rcv_rtt"] / 1e6
    used = rate * rtt / window if window else 0.0
    numbers = {"bits_per_second": rate * 8, "rcv_rtt_us": f["rcv_rtt"],
               "window": window, "window_used": used, "rcvbuf": buffer,
               "rqueue": f["low_rqueue"], "rcv_mss": f["rcv_mss"],
               "drops": f.get("d_drops", 0)}
    if f["low_rqueue"] > 0.2 * window and f["high_rqueue"] > 0.3 * window:
        return ("application-receive", "high",
                f"{units.size(f['low_rqueue'])} to {units.size(f['high_rqueue'])} "
                f"are unread, of a window of {units.size(window)}",
                "the queue is empty in most dumps", numbers)
    if used >= USED:
        lost = waste(window, f["rcv_mss"])
        numbers["waste"] = lost
        told = (f"{used:.0%} of the window ({units.size(window)}) arrives per "
                f"round trip of {f['rcv_rtt'] / 1e3:.3g} ms")
        if not f["options"] & OPT_WSCALE and window > 16384:
            return ("window-scaling", "high", f"{told}, and without scaling it "
                    f"cannot grow beyond {UNSCALED} bytes",
                    "both ends agree on scaling in a new connection", numbers)
        top = [int(word) for word in facts["sysctl"].get(
            "net.ipv4.tcp_rmem", "4096 131072 6291456").split()][2]
        moderate = facts["sysctl"].get("net.ipv4.tcp_moderate_rcvbuf") != "0"
        if moderate and buffer < 0.9 * top:
            return ("receive-buffer-fixed", "medium",
                    f"{told}; the buffer stays at {units.size(buffer)} though "
                    f"tcp_rmem allows {units.size(top)}",
                    "the buffer grows during a longer --interval", numbers)
        return ("receive-window", "high", f"{told}; the buffer is at the limit of "
                f"tcp_rmem ({units.size(top)})" if moderate else
                f"{told}; autotuning is off (tcp_moderate_rcvbuf)",
                "a larger tcp_rmem changes nothing", numbers)
    return ("unknown", "low", f"{used:.0%} of the window is used: the limit is "
            "the sender or the path", "diagnose at the sender", numbers)
