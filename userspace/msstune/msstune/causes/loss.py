# SPDX-License-Identifier: GPL-2.0-only
"""What makes a connection lose packets, or send again what had arrived: an ordered
list of tests, the first that matches is the answer.  Pure."""
from __future__ import annotations

import itertools
import math
import statistics
from typing import Any

from . import order, queue, recovery, route
from .. import units
from ..facts.collect import Facts
from .confidence import lower
from ..sockdiag import OPT_ECN, OPT_SACK

Flow = dict[str, Any]
Answer = tuple[str, str, str, str, dict[str, Any]]
LOSS = 5e-4          # retransmitted share of segments that counts as loss
GROUP = 4            # losses per recovery that are no single losses
ENOUGH = 8           # retransmissions below which their cause is a guess
MUCH = 0.05          # share of lost segments that a full queue alone hardly makes
VARIED = 1.3         # times by which windows differ at which losses are random
EACH = 0.4           # share of segments that are sent again if each one is,
FULL = 0.2           # and that no full path makes


def diagnose(f: Flow, facts: Facts, loss: float, numbers: dict[str, Any]) -> Answer:
    told = f"{loss:.2%} of its segments were retransmitted"
    if not f["options"] & OPT_SACK:
        return ("sack-off", "high", f"{told}, and SACK was not negotiated: "
                "each loss in a window costs a round trip",
                "the rate stays the same with SACK", numbers)
    spurious = _spurious(f, facts, told, numbers)
    if spurious:
        return spurious
    if f["options"] & OPT_ECN and f["d_total_retrans"] >= ENOUGH \
            and loss >= EACH and f["d_bytes_acked"] \
            and not facts["snmp"].get("TcpExt.TCPLostRetransmit", 0):
        return ("ecn-black-hole", "medium",
                f"{told}, about each one once, and arrived then: the connection uses "
                "ECN, and segments that are sent again are not marked for it (RFC "
                "3168, section 6.1.5)", "the same losses without ECN", numbers)
    model = f["snd_mss"] * 8e6 / max(1, f["rtt"]) * math.sqrt(1.5 / loss)
    numbers = numbers | {"mathis_bits_per_second": model}
    again, total = f["d_dsack_dups"], f["d_total_retrans"]
    disordered = order.sent_again(f, facts, told, numbers)
    if disordered:
        return disordered
    queued = f["rtt"] - f["min_rtt"]
    held = queue.full(facts) or queue.held(f, facts)
    if held:
        return ("shaper", "high", f"{told}; {held}", "the rate stays the same with a "
                "higher limit", numbers)
    if queue.is_bloated(f):
        return queue.bloated(f, facts, told, numbers)
    if f["rtt"] >= queue.FULL_RTT * f["min_rtt"] and queued > 500 \
            and (loss < FULL or total < 2 * ENOUGH):
        much = loss > MUCH
        return ("path", "low" if much else "medium",
                f"{told} while the round trip was {f['rtt'] / f['min_rtt']:.1f} "
                "times its minimum: the path is full"
                + (", or a policer drops what is above its rate" if much else ""),
                "losses continue at half the rate", numbers)
    disordered = order.late(f, facts, told, numbers)
    if disordered:
        return disordered
    if again > total / 2:
        return ("ack-loss", "medium" if total >= ENOUGH else "low",
                f"{told}, and the peer already had {again} of {total} (DSACK): ACKs "
                "are lost, or timeouts come too early",
                "no DSACKs, or reordering (reord_seen)", numbers)
    group, expected, varies = _groups(f, facts)
    numbers = numbers | {"losses_per_recovery": group, "losses_expected": expected,
                         "rate_varies": varies}
    if total >= 2 * GROUP and (
            group >= GROUP if varies is None
            else group >= GROUPED * expected and varies < STEADY):
        return ("policer", "medium",
                f"{told} with no queue on the path (round trip {f['rtt'] / 1e3:.3g} "
                f"ms, minimum {f['min_rtt'] / 1e3:.3g} ms), {group:.1f} for each "
                "recovery" + ("" if varies is None else
                              f" ({expected:.1f} if they came at random), at a rate "
                              f"that changes {varies:.1f} times as much as it would "
                              "then") + ": a policer, or a queue shorter than a burst",
                "losses come one by one; then they are random", numbers)
    # A policer is ruled out only by enough losses that come one by one, at a rate
    # which changes as it then must.  It drops one of few segments in flight, too, or
    # always at the same window.
    alone = total >= ENOUGH and 0 < group < GROUPED * expected \
        and varies is not None and varies >= STEADY
    numbers["single_losses"] = alone
    single = alone and f["snd_cwnd"] >= 2 * FLIGHT \
        and lower(loss, f["d_data_segs_out"]) >= LOSS and _varied(f)
    return ("loss", "high" if single else "medium",
            f"{told} with no queue on the path (round trip {f['rtt'] / 1e3:.3g} "
            f"ms, minimum {f['min_rtt'] / 1e3:.3g} ms)"
            + ("" if single else ": at random, or by a policer")
            + f"; Reno would reach {units.bits(model)}",
            "losses stop at a lower rate; then it is congestion", numbers)


def probes(f: Flow, facts: Facts) -> bool:
    """Whether what it sent again were a few probes of the tail (RFC 8985, section 7)
    that the peer already had: that is no loss."""
    snmp = {key: facts["snmp"].get(f"TcpExt.{key}", 0) for key in (
        "TCPLossProbes", "TCPTimeouts", "TCPSackRecovery", "TCPRenoRecovery")}
    total = int(f["d_total_retrans"])
    return int(f["d_dsack_dups"]) >= total < ENOUGH and total <= snmp["TCPLossProbes"] \
        and sum(snmp.values()) == snmp["TCPLossProbes"]


def _varied(f: Flow) -> bool:
    """Whether losses came at congestion windows of different sizes: a policer and a
    short queue drop at the same one each time."""
    most = f.get("high_snd_ssthresh", 0)
    return bool(most < route.INFINITE
                and most > VARIED * f.get("low_snd_ssthresh", most))


#: Segments in flight of which more than one is lost with a window.
FLIGHT = 10
#: Timeouts from which they are no chance.
TIMEOUTS = 3


def _spurious(f: Flow, facts: Facts, told: str,
              numbers: dict[str, Any]) -> Answer | None:
    """Timeouts that were over with one segment sent again, though many were in
    flight: the others had arrived, and only their ACKs had not."""
    snmp = {key: facts["snmp"].get(f"TcpExt.{key}", 0) for key in (
        "TCPTimeouts", "TCPLossProbes", "TCPSackRecovery", "TCPRenoRecovery",
        "TCPLossUndo", "TCPSpuriousRTOs")}
    total, again = f["d_total_retrans"], f["d_dsack_dups"]
    mine = total >= 0.8 * facts["snmp"].get("Tcp.RetransSegs", 0)
    if not mine or not snmp["TCPTimeouts"] or f["high_unacked"] < FLIGHT \
            or total > snmp["TCPTimeouts"] + snmp["TCPLossProbes"] \
            or snmp["TCPSackRecovery"] + snmp["TCPRenoRecovery"] \
            or not again + snmp["TCPLossUndo"] + snmp["TCPSpuriousRTOs"]:
        return None
    return ("ack-loss", "medium" if snmp["TCPTimeouts"] >= TIMEOUTS else "low",
            f"{told}, one after each of {snmp['TCPTimeouts']} timeouts, though up to "
            f"{f['high_unacked']} were in flight: the others had arrived, and no ACK "
            "came back", "the path or the peer stops now and then; then ACKs are late",
            numbers | {"timeouts": snmp["TCPTimeouts"], "dsack_dups": again})


def _groups(f: Flow, facts: Facts) -> tuple[float, float, float | None]:
    """Retransmissions for each recovery (0: not known), as many as would fall into
    its round trip if they came at random, and how the rate varies.  The kernel counts
    recoveries for all connections together, so those to one address are judged
    together."""
    snmp = facts["snmp"]
    begun = sum(snmp.get(f"TcpExt.{key}", 0) for key in (
        "TCPSackRecovery", "TCPRenoRecovery", "TCPTimeouts"))
    mine = [one for one in facts["flows"]
            if route.peer(one) == route.peer(f)]
    again = sum(one["d_total_retrans"] for one in mine)
    if not begun or again < 0.8 * snmp.get("Tcp.RetransSegs", 0):
        return 0.0, 0.0, None
    sending = [one for one in mine if one["d_data_segs_out"]]
    if not sending:
        return 0.0, 0.0, None
    flight = statistics.mean(
        (one.get("low_snd_cwnd", one["snd_cwnd"])
         + one.get("high_snd_cwnd", one["snd_cwnd"])) / 2 for one in sending)
    loss = again / sum(one["d_data_segs_out"] for one in sending)
    return again / begun, 1 + loss * flight, _varies(f, sending, begun)


#: Losses for each recovery, of those that random ones make, that are groups.
GROUPED = 1.3
#: A policer lets a rate pass: its change from dump to dump, of what as many random
#: losses make, below which it is steady; and how many dumps show it.  After Flach et
#: al., An Internet-Wide Analysis of Traffic Policing, SIGCOMM 2016.
STEADY, DUMPS = 0.8, 5
#: The share of its window that a connection gives up after a loss (RFC 5681, 9438).
REDUCED = {"cubic": 1 - recovery.CUBIC_BETA}


def _varies(f: Flow, mine: list[Flow], begun: int) -> float | None:
    """How the rate of these connections changes between neighbouring dumps (root mean
    square, after von Neumann), of what losses of single connections make; None: not
    known, or the program or BBR keeps it steady."""
    if f["app_limited"] or f["cc"].startswith("bbr"):
        return None
    each = [one["acked_per_s"] for one in mine if any(one.get("acked_per_s", ()))]
    rates = [sum(some) for some in zip(*each)]
    if len(rates) < DUMPS:
        return None
    # As many equal ones have the same share in the sum's variance.
    means = [statistics.mean(one) for one in each]
    number = sum(means) ** 2 / sum(mean ** 2 for mean in means)
    changes = [(after - before) ** 2 for before, after in itertools.pairwise(rates)]
    seen = math.sqrt(statistics.mean(changes) / 2) / statistics.mean(rates)
    # Reductions of one connection between two dumps; several average out.
    often = begun / len(rates) / number
    each_changes = REDUCED.get(f["cc"], 0.5) * math.sqrt(often / (1 + often / 2))
    return seen * math.sqrt(number) / each_changes
