# SPDX-License-Identifier: GPL-2.0-only
"""What limits one connection: an ordered list of tests, the first that matches is
the answer.  Pure.

Shares of time come from the kernel (TCP_INFO busy_time, rwnd_limited,
sndbuf_limited); thresholds decide which share is a limit.
"""
from __future__ import annotations

from typing import Any

from . import loss as rules_loss, order, queue, recovery, route, wait
from .. import units
from ..facts.collect import Facts
from .diagnosis import Diagnosis
from ..sockdiag import OPT_SACK, OPT_WSCALE, UNLIMITED

Flow = dict[str, Any]
NOT_FULL = 0.75      # of a send buffer whose fill level is not what blocks a writer
LIMITED = 0.3        # share of busy time that is a limit,
ALWAYS = 0.9         # and from which nothing else is one
IDLE = 0.7           # busy share of the interval below which too little is sent
SELDOM = 0.5         # busy share below which no other limit counts
USED = 0.6           # share of the window received per round trip that is a limit
WASTE = 1 / 24       # unused share of a window worth acting on, as in mssfrac
FEW = 16             # segments in a window below which granularity matters
HEAVY = 0.1          # the same, beyond which no window is the limit
GROWN = 30           # segments, three times the initial congestion window
SMALL, MANY = 0.25, 500  # share of the MSS, and segments/s, of small writes
LEAST_BUFFER = 536   # bytes, of which the least SO_RCVBUF (2304) offers twice
UNSCALED = 65535     # bytes, the largest window without scaling
LEAST = 20_000       # bytes below which a connection is not judged,
FEW_SENT = 8         # unless so many segments met a queue of the path
MOST = 50.0          # weight of a limit of all bytes,
FACTOR = {"high": 1.0, "medium": 0.8, "low": 0.5}   # and of one that is a guess


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
    weight = MOST * max(sent, received) / total
    stopped = wait.stopped(flow, facts)
    waits = stopped or wait.held_back(flow, facts)
    little = max(sent, received) < LEAST and not (
        flow["wqueue"] > LEAST or flow["rqueue"] > LEAST)
    bloated = queue.is_bloated(flow) and flow["d_data_segs_out"] >= FEW_SENT
    if little and not waits and not bloated:
        return None
    answer = waits or (_sender if sent >= received and not flow["rqueue"] > sent
                       else _receiver)(flow, facts)
    limit, confidence, why, change, numbers = answer
    if stopped:
        weight = wait.STOPPED * (1.0 if confidence == "high" else 0.95)
        if limit in wait.READERS and not wait.blocked(flow):
            weight = wait.HELD    # it holds nobody back yet
        return Diagnosis(name(flow), limit, confidence, why, change, weight, numbers)
    if waits:
        weight = max(weight, wait.HELD)   # it moves little: that is the fault
    factor = FACTOR[confidence]
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
    if busy < SELDOM and not f["d_total_retrans"]:
        return _restarted(f, facts, numbers) or _idle(busy, numbers)
    thinned = _thinned(f, facts, numbers)
    if thinned:
        return thinned
    if rwnd >= LIMITED and loss < HEAVY:
        return _window(f, rwnd, numbers)
    if sndbuf >= LIMITED and 0 < f.get("high_wmem_queued", 0) \
            < NOT_FULL * numbers["sndbuf"]:
        low = facts["sysctl"].get("net.ipv4.tcp_notsent_lowat", "")
        return ("send-buffer", "medium",
                f"for {sndbuf:.0%} of its busy time the program could not write, "
                f"though the send buffer ({units.size(numbers['sndbuf'])}) held "
                f"{units.size(f['high_wmem_queued'])} at most: TCP_NOTSENT_LOWAT of "
                "the program, or tcp_notsent_lowat" + (f" ({low})" if low else "")
                + ", allows little unsent data", "more unsent data waits in a dump",
                numbers | {"notsent_lowat": low or None})
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
    shaped = queue.maxrate(facts, rate)
    if shaped:
        return ("pacing", "high", shaped[0], "the limit is raised and the rate "
                "stays", numbers | {"maxrate": shaped[1]})
    paced = _paced(f, facts, rate)
    if paced:
        return ("pacing", "medium", paced, "it sends more at once with the kernel's "
                "own ratios", numbers | {"pacing_rate": f["pacing_rate"]})
    disordered = order.needless(f, facts, numbers)
    if disordered:
        return disordered
    least = 2 if f["options"] & OPT_SACK else 1
    if loss >= rules_loss.LOSS and f["d_total_retrans"] >= least \
            and not rules_loss.probes(f, facts):
        return rules_loss.diagnose(f, facts, loss, numbers)
    size = f["d_bytes_acked"] / max(1, f["d_data_segs_out"])
    if f["snd_mss"] < LEAST_BUFFER <= f.get("pmtu", 0) / 2 \
            and f["d_data_segs_out"] > MANY * interval:
        return ("small-writes", "high",
                f"{f['d_data_segs_out'] / interval:,.0f} segments/s of at most "
                f"{f['snd_mss']} bytes, though the path takes packets of {f['pmtu']}: "
                "its program (TCP_MAXSEG), or the MSS that the peer advertises, "
                "limits them", "segments grow in a new connection without that limit",
                numbers | {"bytes_per_segment": size, "pmtu": f["pmtu"]})
    if size < SMALL * f["snd_mss"] and f["d_data_segs_out"] > MANY * interval \
            and f["high_unacked"] > 8:
        return ("small-writes", "medium",
                f"{f['d_data_segs_out'] / interval:,.0f} segments/s of {size:.0f} "
                f"bytes, {f['high_unacked']} in flight: each write is a packet",
                "larger writes, or writes without TCP_NODELAY, change nothing",
                numbers | {"bytes_per_segment": size})
    limited = route.sender(f, facts, numbers)
    if limited:
        return limited
    # Also what its program sends now and then, or what another one sends.
    if queue.is_bloated(f):
        return queue.bloated(f, facts, "without loss", numbers)
    # After a path that stood still, as many ACKs come as ever.
    if queue.is_scattered(f) \
            and f["d_data_segs_out"] > FEW_SENT * max(1, f.get("d_segs_in", 0)):
        return ("ack-loss", "low",
                f"its round trips take {units.duration(f['rtt'] / 1e6)}, at least "
                f"{units.duration(f['min_rtt'] / 1e6)}, and vary by more than that; "
                "little was sent again: ACKs are lost, and a later one takes their "
                "place", "the peer sends as few ACKs (its TcpOutSegs)",
                numbers | {"rttvar_us": f["rttvar"]})
    if busy < IDLE or f["app_limited"] and idle:
        return _idle(busy, numbers)
    held = queue.full(facts) or queue.held(f, facts)
    if held:    # its queue makes the round trip long
        return ("shaper", "high", held, "the rate stays the same with a higher "
                "limit", numbers)
    if f["rtt"] >= queue.FULL_RTT * f["min_rtt"] > 0 \
            and f["rtt"] - f["min_rtt"] > 500:
        return ("path", "medium",
                f"the round trip is {f['rtt'] / f['min_rtt']:.1f} times its "
                "minimum without loss: the bottleneck has a queue",
                "the rate is below what the link can carry", numbers)
    disordered = order.slow(f, facts, numbers)
    if disordered:
        return disordered
    if f["high_unacked"] >= 0.7 * f["snd_cwnd"] and f["snd_ssthresh"] < 2**31 - 1 \
            and f.get("total_retrans", 1):
        return _recovering(f, numbers)
    return ("unknown", "low",
            "neither window, buffer, loss, pacing nor the application explains "
            "its rate", "a longer --interval, or a pathprof --profile", numbers)


def _restarted(f: Flow, facts: Facts, numbers: dict[str, Any]) -> Answer | None:
    """Bursts that begin with the initial window after each pause, though the window
    had grown.  The kernel reduces it when the next burst begins, so dumps do not
    show it."""
    pause = 1000 * f.get("high_last_data_sent", 0)
    if facts["sysctl"].get("net.ipv4.tcp_slow_start_after_idle") != "1" \
            or f["cc"] == "bbr" or f.get("total_retrans", 1) \
            or not 0 < f.get("rto", 0) <= pause or f["snd_cwnd"] < GROWN \
            or f["min_rtt"] < NEAR \
            or f["d_data_segs_out"] < GROWN:
        return None
    return ("idle-restart", "medium",
            f"it sends in bursts, with pauses of {units.duration(pause / 1e6)} or "
            f"more; after {units.duration(f['rto'] / 1e6)} (RTO) the kernel forgets "
            f"its congestion window of {f['snd_cwnd']} segments",
            "bursts take as long with tcp_slow_start_after_idle=0",
            numbers | {"pause_us": pause, "rto_us": f["rto"]})


#: Bytes that a receiver merges at most (gro_max_size of Linux), and merged packets
#: that it acknowledges together (RFC 1122, section 4.2.3.2).
MERGED, TOGETHER = 65536, 2
#: Times as many are no longer acknowledged together by a busy reader; one on the
#: same host or link may do even that (us).
THINNED, NEAR = 2, 1000


def _thinned(f: Flow, facts: Facts, numbers: dict[str, Any]) -> Answer | None:
    """Fewer ACKs arrive than receivers send (RFC 3449, section 5.2)."""
    acks, most = f.get("d_segs_in", 0), TOGETHER * MERGED / f["snd_mss"]
    each = f["d_data_segs_out"] / max(1, acks)
    # A needless timeout, and segments that had arrived, say the same.
    again, total = f["d_dsack_dups"], f["d_total_retrans"]
    needless = again >= max(1, total / 2) and (
        facts["snmp"].get("TcpExt.TCPLossUndo", 0)
        + facts["snmp"].get("TcpExt.TCPSpuriousRTOs", 0)) > 0
    if acks < rules_loss.ENOUGH or f.get("d_data_segs_in", 0) or f["min_rtt"] < NEAR \
            or each < (1 if needless else THINNED) * most:
        return None
    return ("ack-loss", "low",
            f"each ACK that arrives is for {each:.0f} segments; a receiver sends one "
            f"for {most:.0f} or fewer, mostly: ACKs are lost or thinned out on the way "
            "back" + (f"; a timeout was needless, and the peer had {again} of {total} "
                      "segments that were sent again" if needless else ""),
            "the peer merges more than 64 KiB (gro_max_size there), or has no CPU time",
            numbers | {"segments_per_ack": each})


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
    if window < LEAST_BUFFER or window >= mss and (
            shrank or f["timer"] == 4
            or f["low_snd_wnd"] < max(mss, window // 3) and f.get("falls_snd_wnd", 1)
            and (share >= ALWAYS or f.get("sunk_snd_wnd", window) > window // 3)):
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


#: What the kernel paces to, in % of the congestion window per round trip.
PACING = {"net.ipv4.tcp_pacing_ca_ratio": 120, "net.ipv4.tcp_pacing_ss_ratio": 200}


def _paced(f: Flow, facts: Facts, rate: float) -> str:
    """It has data and room in both windows, and sends at the rate that the kernel
    paces it to, as text.  That is how BBR works, and a fault of others."""
    if f["cc"].startswith("bbr") or not f.get("low_notsent_bytes", 0) \
            or f["high_unacked"] > 0.6 * f.get("low_snd_cwnd", 0) \
            or f["d_total_retrans"] \
            or not 0 < f.get("pacing_rate", 0) <= rate / 8 / 0.6:
        return ""
    low = [f"{key.rpartition('.')[2]} is {facts['sysctl'][key]}"
           for key, normal in PACING.items()
           if int(facts["sysctl"].get(key, normal)) < normal]
    return (f"data waits with {f['high_unacked']} of {f['low_snd_cwnd']} segments in "
            f"flight, and the kernel paces it to {units.bits(f['pacing_rate'] * 8)}"
            + (f": {', '.join(low)} (percent)" if low else ""))


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


def _trickles(f: Flow, window: float, seconds: float) -> bool:
    """A sender that a window holds back has data waiting, and sends full-sized
    segments.  The round trip that a receiver estimates of others is too long."""
    count = f.get("d_data_segs_in", 0)
    # rcv_mss is that of the segments which came; the peer may send advmss.
    full = max(f["rcv_mss"], f.get("advmss", 0))
    small = count and window > 4 * full \
        and f["d_bytes_received"] / count < SMALL * full
    # A round trip longer than it was watched says nothing of the rate meanwhile.
    return bool(small or f["rcv_rtt"] / 1e6 > seconds)


def _receiver(f: Flow, facts: Facts) -> Answer:
    rate = f["d_bytes_received"] / f.get("seconds", facts["interval"])
    window, buffer = f["rcv_ssthresh"], f.get("rcvbuf", 0)
    # rcv_ssthresh grows beyond what the header can express.
    most = UNSCALED << (f["rcv_wscale"] if f["options"] & OPT_WSCALE else 0)
    window = min(window, most)
    if 0 < buffer < window:
        # rcv_ssthresh is from before SO_RCVBUF.  Half of a buffer is window.
        window = buffer // 2
    capped = window == most < f["rcv_ssthresh"]
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
    if used >= USED and not _trickles(
            f, window, f.get("seconds", facts["interval"])):
        lost = waste(window, f["rcv_mss"])
        numbers["waste"] = lost
        told = (f"{used:.0%} of the window ({units.size(window)}) arrives per "
                f"round trip of {f['rcv_rtt'] / 1e3:.3g} ms")
        limited = route.receiver(f, facts, most if capped else 0, told, numbers)
        if limited:
            return limited
        scale = int(facts["sysctl"].get("net.ipv4.tcp_adv_win_scale", "1"))
        # The kernel ignores it from 6.6 on.
        if scale < 0 and window < buffer / 2 ** -scale * 1.2:
            return ("adv-win-scale", "high", f"{told}; tcp_adv_win_scale {scale} "
                    f"makes 1/{2 ** -scale} of the buffer of {units.size(buffer)} "
                    "window", "the window stays the same with 1",
                    numbers | {"adv_win_scale": scale})
        if not f["options"] & OPT_WSCALE and window > 16384:
            return ("window-scaling", "high", f"{told}, and without scaling it "
                    f"cannot grow beyond {UNSCALED} bytes",
                    "both ends agree on scaling in a new connection", numbers)
        if capped and f["options"] & OPT_WSCALE:
            return ("receive-buffer-fixed", "medium",
                    f"{told}; with a window scale of {f['rcv_wscale']}, chosen when it "
                    f"was opened, the window cannot exceed {units.size(most)}: its "
                    "buffer was limited then (SO_RCVBUF, tcp_rmem)",
                    "a new connection has a larger scale (ss -i)",
                    numbers | {"rcv_wscale": f["rcv_wscale"]})
        top = [int(word) for word in facts["sysctl"].get(
            "net.ipv4.tcp_rmem", "4096 131072 6291456").split()][2]
        moderate = facts["sysctl"].get("net.ipv4.tcp_moderate_rcvbuf") != "0"
        if moderate and buffer > f.get("low_rcvbuf", buffer):
            return ("unknown", "low", f"{told}; the buffer grew from "
                    f"{units.size(f['low_rcvbuf'])} to {units.size(buffer)} meanwhile",
                    "it no longer grows in a longer --interval", numbers)
        if moderate and buffer < 0.9 * top:
            return ("receive-buffer-fixed", "medium",
                    f"{told}; the buffer stays at {units.size(buffer)} though "
                    f"tcp_rmem allows {units.size(top)}",
                    "the buffer grows during a longer --interval", numbers)
        return ("receive-window", "high", f"{told}; the buffer is at the limit of "
                f"tcp_rmem ({units.size(top)})" if moderate else
                f"{told}; autotuning is off (tcp_moderate_rcvbuf)",
                "a larger tcp_rmem changes nothing", numbers)
    held = queue.held(f, facts)
    if held:
        return ("shaper", "medium", held, "the rate stays the same with a higher limit",
                numbers)
    return ("unknown", "low", f"{used:.0%} of the window is used: the limit is "
            "the sender or the path", "diagnose at the sender", numbers)
