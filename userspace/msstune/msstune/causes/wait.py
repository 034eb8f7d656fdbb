# SPDX-License-Identifier: GPL-2.0-only
"""Connections whose data waits: stopped by the peer, by the path, or held back by
their own program (cork, Nagle).  Pure.

A connection that moves nothing has no share of the bytes, so it weighs by the
data that waits.
"""
from __future__ import annotations

from typing import Any

from .. import units
from ..facts.collect import Facts
from .confidence import FILLED
from .diagnosis import Diagnosis
from ..sockdiag import CLOSE_WAIT, host

Flow = dict[str, Any]
Answer = tuple[str, str, str, str, dict[str, Any]]
#: Weight of a connection that moves nothing: more than any share of the bytes.
STOPPED = 97
#: The same, of one whose program holds it back.
HELD = 45.0
#: Dumps that must agree, and their share of all.
AGREE, SHARE = 2, 0.3
#: Shortest timer of a delayed ACK, us; a round trip that it lengthens.
DELAYED_ACK_US = 40_000
BACKED_OFF = 2      # timeouts in a row that a lossy path explains
#: Segments sent again that the peer had, and their share, which say that ACKs are lost.
AT_LEAST, KNOWN = 2, 0.25
#: How many are the habit of a path, and timeouts in a row that are a dead one all the
#: same.
HABIT, MANY = 4, 6
#: Share of connection attempts that needed a second SYN, and how many of them.
AGAIN, ATTEMPTS = 0.5, 3
#: Keepalive probes, and how many of them may be answered.
PROBES, ANSWERED = 3, 0.5
SHORTEST = 0.5      # seconds that a connection must be seen
LEAST_SECONDS = 2   # within which a program runs that has not stopped
#: Limits of a reader that took nothing.
READERS = ("reader-stopped", "application-receive")


def seconds(f: Flow, facts: Facts) -> float:
    return float(f.get("seconds", facts["interval"]))


def blocked(f: Flow) -> bool:
    """Whether unread data fills the window, so that its sender must wait."""
    return bool(f["low_rqueue"] >= FILLED * f["rcv_ssthresh"])


def stopped(f: Flow, facts: Facts) -> Answer | None:
    """Data waits at either end, and not a byte moved."""
    if f["d_bytes_acked"] or f["d_bytes_received"] \
            or seconds(f, facts) < SHORTEST:
        return None
    numbers = {"unsent": f.get("notsent_bytes", 0), "unacked": f["unacked"],
               "retransmits": f["retransmits"], "snd_wnd": f["snd_wnd"],
               "snd_mss": f["snd_mss"], "unread": f["low_rqueue"],
               "timer": f["timer"], "bytes_acked": f.get("bytes_acked", 0)}
    # One byte is the end of the stream, of a program that does not close.  What came
    # before it holds nobody back: the peer sends no more.
    if f["low_rqueue"] > 1 and (f.get("state") != CLOSE_WAIT or blocked(f)):
        told = (f"{units.size(f['low_rqueue'])} wait for the reader, which took "
                f"nothing in {seconds(f, facts):.1f} s")
        change = "its process reads between two dumps"
        sleeps = (f.get("owner") or {}).get("sleeps_per_s")
        if sleeps is None:
            return ("reader-stopped", "medium", told + "; whether its program runs is "
                    "not known: it may read in bursts", change, numbers)
        if sleeps * LEAST_SECONDS >= 1:
            return ("application-receive", "medium", f"{told}, though its program "
                    f"runs {sleeps:.1f} times per second: it reads in bursts, or has "
                    "stopped", change, numbers)
        return "reader-stopped", "high", told, change, numbers
    if not f["wqueue"]:
        return None
    if f["unacked"] and f["retransmits"] > 0:
        return _silent(f, facts, numbers)
    if f["snd_wnd"] < f["snd_mss"] and f.get("notsent_bytes", 0):
        return ("peer-stopped", "high",
                f"the peer advertises a window of {f['snd_wnd']} bytes and "
                f"{units.size(f['wqueue'])} wait: its application does not read",
                "the peer's receive queue (ss -m there) is empty", numbers)
    if f.get("notsent_bytes", 0) and not f["unacked"]:
        return _unsent(f, facts, numbers)
    return None


def unrouted(facts: Facts) -> int:
    """Packets for which there was no route."""
    return int(facts["snmp"].get("Ip.OutNoRoutes", 0)
               + facts["snmp"].get("Ip6.OutNoRoutes", 0))


def _unsent(f: Flow, facts: Facts, numbers: dict[str, Any]) -> Answer:
    """Nothing is in flight, both windows have room, and data waits."""
    refused = unrouted(facts)
    told = f"{units.size(f['notsent_bytes'])} wait with nothing in flight"
    if refused > 0:
        return ("path-down", "medium",
                f"{told}, and {refused} packets found no route: the device or its "
                "address is gone", "a route leads to the peer (ip route get)",
                numbers | {"no_routes": refused})
    if f["notsent_bytes"] >= f["snd_mss"]:
        return ("unknown", "low", f"{told}, a segment or more, and no counter says why",
                "it goes on in a longer --interval", numbers)
    return corked(f, numbers)


def _silent(f: Flow, facts: Facts, numbers: dict[str, Any]) -> Answer:
    """Segments are sent again and nothing acknowledges them."""
    address = host(f["remote"])
    hop = facts.get("gateways", {}).get(address, address)
    told = f"{f['retransmits']} timeouts in a row, and no ACK arrives"
    if hop in facts.get("neighbours", []):
        return ("path-down", "high",
                f"{told}; the next hop {hop} does not answer ARP",
                "the next hop answers (ip neigh)", numbers)
    same = [one for one in facts["flows"]
            if host(one["remote"]) == address]
    alive = [one for one in same if one["d_bytes_acked"]]
    lost = _acks_lost(f, same, told, numbers)
    if lost:
        return lost
    if alive and f["retransmits"] <= BACKED_OFF:
        return ("loss", "medium",
                f"{told}, while {len(alive)} other connections to that address move "
                f"data; {f.get('total_retrans', 0)} segments were sent again before",
                "no connection loses segments", numbers)
    unreachable = facts["snmp"].get("Icmp.InDestUnreachs", 0)
    if unreachable > 0:
        # Datagrams to a closed port draw such errors as well, so one is no proof.
        return ("path-down", "high" if unreachable >= f["retransmits"] else "medium",
                f"{told}; {unreachable} ICMP errors say that a network or host is "
                "unreachable", "a ping reaches the peer", numbers)
    size = (f["wqueue"] - f.get("notsent_bytes", 0)) / f["unacked"]
    if f.get("d_segs_in", 0) > 0:
        return ("peer-accept-queue", "medium",
                f"{told}; the peer sends {f['d_segs_in']} segments meanwhile, which "
                "acknowledge nothing: it repeats its SYN-ACK, since its queue of "
                "accept() is full", "ListenOverflows does not grow there", numbers)
    if f.get("bytes_acked", 0) > 10 * f["snd_mss"]:
        # Segments of this size have arrived before.
        few = bool(alive) or f["retransmits"] <= BACKED_OFF
        return ("path-down", "low" if few else "medium",
                f"{told}; {units.size(f['bytes_acked'])} were acknowledged before, "
                "in segments of the same size" + (
                    f"; {len(alive)} other connections to that address move data"
                    if alive else ""),
                "a ping of that size (ping -M do -s) reaches the peer; then its "
                "firewall or process is the cause", numbers)
    if size > 536:
        return ("mtu", "medium",
                f"{told}; the connection was opened, and segments of {size:.0f} "
                "bytes are not acknowledged",
                "ping -M do with that size gets a reply; then the path has "
                "another fault", numbers)
    return ("unknown", "low", f"{told}; the path or the peer",
            "a ping reaches the peer", numbers)


def _acks_lost(f: Flow, same: list[Flow], told: str,
               numbers: dict[str, Any]) -> Answer | None:
    """Segments that were sent again before had arrived, also those of other
    connections to the address (@same): ACKs are lost, and perhaps these as well."""
    again = sum(one.get("dsack_dups", 0) for one in same)
    before = sum(max(0, one.get("total_retrans", 0) - one["retransmits"])
                 for one in same)
    if again < AT_LEAST or again < KNOWN * before or f["retransmits"] >= MANY:
        return None
    # Lost ACKs leave one or another of several connections at work.
    if len(same) > 1 and all(one["retransmits"] > BACKED_OFF
                             and not one["d_bytes_acked"] for one in same):
        return None
    # DSACKs are lost with the ACKs that carry them, so a part says that ACKs are lost.
    # Where some were, a dead path would be a second fault at the same time.
    habit = again >= HABIT
    if not habit and f["retransmits"] > BACKED_OFF:
        return None
    return ("ack-loss", "medium" if habit else "low",
            f"{told}; the peer already had {again} of {before} segments that were "
            "sent again before (DSACK): data arrives, and its ACKs are lost",
            "no DSACKs", numbers | {"dsack_dups": again, "total_retrans": before})


def corked(f: Flow, numbers: dict[str, Any]) -> Answer:
    return ("cork", "high" if f.get("looks_corked", 0) > AGREE else "medium",
            f"{f.get('notsent_bytes', 0) or f['high_notsent_bytes']} bytes wait "
            "unsent with nothing in flight, though both windows have room: the "
            "program holds them back (TCP_CORK, MSG_MORE)",
            "nothing waits once the program clears TCP_CORK after each message",
            numbers)


def held_back(f: Flow, facts: Facts) -> Answer | None:
    """Less than a segment waits in many dumps though there is room for it."""
    looks = f.get("looks", 0)
    if looks < 3 or not f["d_data_segs_out"]:
        return None
    size = f["d_bytes_acked"] / f["d_data_segs_out"]
    numbers = {"bytes_per_segment": size, "rtt_us": f["rtt"],
               "min_rtt_us": f["min_rtt"], "looks": looks,
               "looks_corked": f["looks_corked"], "looks_nagle": f["looks_nagle"],
               "snd_mss": f["snd_mss"],
               "bits_per_second": f["d_bytes_acked"] * 8 / seconds(f, facts)}
    if f["looks_corked"] >= AGREE and f["looks_corked"] >= SHARE * looks:
        return corked(f, numbers)
    if f["looks_nagle"] >= AGREE and f["looks_nagle"] >= SHARE * looks \
            and size < f["snd_mss"] / 2 and f["high_unacked"] <= 2:
        waits = f["rtt"] >= f["min_rtt"] + DELAYED_ACK_US / 2
        return ("nagle", "high" if waits else "medium",
                f"in {f['looks_nagle']} of {looks} dumps less than a segment waits "
                f"for an ACK, with segments of {size:.0f} bytes" +
                (f"; round trips take {units.duration(f['rtt'] / 1e6)}, at least "
                 f"{units.duration(f['min_rtt'] / 1e6)}: the peer delays its ACK"
                 if waits else ""),
                "nothing waits with TCP_NODELAY", numbers)
    return None


def unanswered(facts: Facts) -> list[Diagnosis]:
    """Connection attempts without an answer."""
    found = []
    tries = facts.get("unanswered") or []
    failed = facts["snmp"].get("Tcp.AttemptFails", 0)
    gone = facts.get("neighbours") or []
    if failed > 0 and gone and facts["snmp"].get("Icmp.InDestUnreachs", 0) > 0:
        # The kernel ends an attempt as soon as it knows.
        found.append(Diagnosis(
            gone[0], "path-down", "high", f"{failed} connection attempts failed, and "
            f"{', '.join(gone[:3])} does not answer ARP",
            "it answers (ip neigh)", STOPPED, {"attempts": failed}))
    for remote in sorted({one["remote"] for one in tries}):
        mine = [one for one in tries if one["remote"] == remote]
        address = host(remote)
        hop = facts.get("gateways", {}).get(address, address)
        down = hop in facts.get("neighbours", [])
        silent = [f for f in facts["flows"] if f["retransmits"] > BACKED_OFF
                  and not f["d_bytes_acked"] and f.get("bytes_acked", 0) > 1
                  and host(f["remote"]) == address]
        icmp = facts["snmp"].get("Icmp.InDestUnreachs", 0)
        told = (f"{len(mine)} connection attempts, repeated up to "
                f"{max(one['retransmits'] for one in mine)} times")
        if down or icmp:
            told += f"; the next hop {hop} does not answer" if down else \
                f"; {icmp} ICMP errors"
            found.append(Diagnosis(
                remote, "path-down", "high" if down or icmp >= len(mine) else "medium",
                told, "a ping reaches it", STOPPED,
                {"attempts": len(mine), "icmp": icmp}))
        elif silent:
            found.append(Diagnosis(
                remote, "path-down", "medium", f"{told}, and {len(silent)} "
                "connections to that address, which worked before, get no ACK "
                "either", "a ping reaches it", STOPPED - 1,
                {"attempts": len(mine), "silent": len(silent)}))
        else:
            found.append(Diagnosis(
                remote, "no-answer", "medium", f"{told}: a firewall drops them, the "
                "host is gone, or its queue of new connections is full; this end "
                "cannot distinguish them", "ListenOverflows there (nstat), or a "
                "reply to a ping", STOPPED - 1, {"attempts": len(mine)}))
    return found


def repeated(facts: Facts) -> list[Diagnosis]:
    """Connections that open with a second SYN, and idle ones whose peer is gone."""
    snmp = facts["snmp"]
    opened, again = snmp.get("Tcp.ActiveOpens", 0), snmp.get("TcpExt.TCPSynRetrans", 0)
    found = []
    if opened >= ATTEMPTS and again >= AGAIN * opened and not facts.get("unanswered"):
        ecn = facts["sysctl"].get("net.ipv4.tcp_ecn") == "1"
        found.append(Diagnosis(
            "host", "no-answer", "medium",
            f"{opened} connections opened, with {again} repeated SYNs, and work then: "
            "the first SYN is dropped" + (", perhaps since it asks for ECN (tcp_ecn "
                                          "is 1)" if ecn else ""),
            "the first SYN is answered" + (" with tcp_ecn=2" if ecn else ""), 80,
            {"opened": opened, "repeated": again}))
    probes, came = snmp.get("TcpExt.TCPKeepAlive", 0), snmp.get("Tcp.InSegs", 0)
    if probes >= PROBES and came < ANSWERED * probes:
        found.append(Diagnosis(
            "host", "path-down", "medium",
            f"idle connections sent {probes} keepalive probes, and {came} segments "
            "came in", "a ping reaches their peers", 75,
            {"probes": probes, "segments": came}))
    return found
