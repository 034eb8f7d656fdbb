# SPDX-License-Identifier: GPL-2.0-only
"""Dumps TCP_INFO of every connection of our network namespace, by sock_diag.

A dump keeps raw bytes: of 10,000 connections most are idle and never need to be
unpacked.  pyroute2 unpacks all of them, which costs 1.9 s and 145 MB per dump,
and a diagnosis needs several dumps.
"""
from __future__ import annotations

import ipaddress
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
NLM_F_REQUEST_DUMP = 0x301
NLMSG_ERROR, NLMSG_DONE = 2, 3
#: Attributes; bit N-1 of the request selects attribute N.
INFO, CONG, SKMEMINFO = 2, 4, 7
ESTABLISHED, FIN_WAIT1, CLOSE_WAIT = 1, 4, 8
_STATES = 1 << ESTABLISHED | 1 << FIN_WAIT1 | 1 << CLOSE_WAIT

_MESSAGE = struct.Struct("=BBBB2s2s16s16sI8sIIIII")  # struct inet_diag_msg
_INFO = struct.Struct("=8B24I4Q6I4Q2I2Q4I")          # struct tcp_info
#: Its fields in order; the two bytes of bit fields are split by unpack().
_FIELDS = (
    "state", "ca_state", "retransmits", "probes", "backoff", "options",
    "wscales", "limited",
    "rto", "ato", "snd_mss", "rcv_mss", "unacked", "sacked", "lost", "retrans",
    "fackets", "last_data_sent", "last_ack_sent", "last_data_recv",
    "last_ack_recv", "pmtu", "rcv_ssthresh", "rtt", "rttvar", "snd_ssthresh",
    "snd_cwnd", "advmss", "reordering", "rcv_rtt", "rcv_space", "total_retrans",
    "pacing_rate", "max_pacing_rate", "bytes_acked", "bytes_received",
    "segs_out", "segs_in", "notsent_bytes", "min_rtt", "data_segs_in",
    "data_segs_out",
    "delivery_rate", "busy_time", "rwnd_limited", "sndbuf_limited",
    "delivered", "delivered_ce", "bytes_sent", "bytes_retrans",
    "dsack_dups", "reord_seen", "rcv_ooopack", "snd_wnd")
_SKMEM = ("rmem_alloc", "rcvbuf", "wmem_alloc", "sndbuf", "fwd_alloc",
          "wmem_queued", "optmem", "backlog", "drops")
OPT_TIMESTAMPS, OPT_SACK, OPT_WSCALE, OPT_ECN = 1, 2, 4, 8
#: idiag_timer while the peer's window is closed.
PROBING = 4
#: max_pacing_rate if it was not set (32 or 64 bits wide).
UNLIMITED = (2**32 - 1, 2**64 - 1)


@dataclass(frozen=True, slots=True)
class Look:
    """One connection in one dump, not unpacked."""

    head: bytes
    info: bytes
    skmem: bytes
    cong: bytes


def looks() -> dict[bytes, Look]:
    """One dump: all connections that can carry data, by cookie."""
    found: dict[bytes, Look] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                       NETLINK_SOCK_DIAG) as netlink:
        netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        for family in (socket.AF_INET, socket.AF_INET6):
            for message in _dump(netlink, family):
                look = _split(message)
                if look:
                    found[look.head[44:52]] = look
    return found


def heads(states: int) -> list[dict[str, Any]]:
    """Endpoints, queues and retransmissions of all sockets in these states
    (bits)."""
    found = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW,
                       NETLINK_SOCK_DIAG) as netlink:
        netlink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        for family in (socket.AF_INET, socket.AF_INET6):
            for message in _dump(netlink, family, states, 0):
                (of, _, _, retransmits, sport, dport, src, dst, _, _, _, rqueue,
                 wqueue, _, _) = _MESSAGE.unpack_from(message)
                found.append({"local": _endpoint(of, src, sport),
                              "remote": _endpoint(of, dst, dport),
                              "retransmits": retransmits, "rqueue": rqueue,
                              "wqueue": wqueue})
    return found


def _dump(netlink: socket.socket, family: int, states: int = _STATES,
          attributes: int = 1 << INFO - 1 | 1 << CONG - 1 | 1 << SKMEMINFO - 1) \
        -> Iterator[bytes]:
    request = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP,
                          attributes, states)
    netlink.send(struct.pack("=IHHII", 16 + len(request), SOCK_DIAG_BY_FAMILY,
                             NLM_F_REQUEST_DUMP, 1, 0) + request)
    while True:
        data = netlink.recv(1 << 17)
        at = 0
        while at < len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind == NLMSG_DONE:
                return
            if kind == NLMSG_ERROR:
                error = -struct.unpack_from("=i", data, at + 16)[0]
                raise OSError(error, "sock_diag of TCP")
            yield data[at + 16:at + length]
            at += length + 3 & ~3


def _split(message: bytes) -> Look | None:
    parts = {}
    at = _MESSAGE.size
    while at + 4 <= len(message):
        length, kind = struct.unpack_from("=HH", message, at)
        if length < 4:
            return None
        if kind in (INFO, CONG, SKMEMINFO):
            parts[kind] = message[at + 4:at + length]
        at += length + 3 & ~3
    if len(parts.get(INFO, b"")) < _INFO.size:
        return None  # it just ended, or is not a full socket
    return Look(message[:_MESSAGE.size], parts[INFO][:_INFO.size],
                parts.get(SKMEMINFO, b""), parts.get(CONG, b""))


def unpack(look: Look) -> dict[str, Any]:
    """All fields by name.  Times are in microseconds, rates in bytes/s."""
    (family, _, timer, _, sport, dport, src, dst, _, _, _, rqueue, wqueue, uid,
     inode) = _MESSAGE.unpack(look.head)
    flow: dict[str, Any] = dict(zip(_FIELDS, _INFO.unpack(look.info)))
    flow["snd_wscale"] = flow["wscales"] & 15
    flow["rcv_wscale"] = flow.pop("wscales") >> 4
    flow["app_limited"] = bool(flow.pop("limited") & 1)
    flow["timer"] = timer  # 1 retransmission, 2 keepalive, 4 zero window
    flow["rqueue"], flow["wqueue"] = rqueue, wqueue
    flow["uid"], flow["inode"] = uid, inode
    count = min(len(_SKMEM), len(look.skmem) // 4)
    flow.update(zip(_SKMEM, struct.unpack_from(f"={count}I", look.skmem)))
    flow["cc"] = look.cong.rstrip(b"\0").decode("ascii", "replace")
    flow["local"] = _endpoint(family, src, sport)
    flow["remote"] = _endpoint(family, dst, dport)
    return flow


def inode_of(look: Look) -> int:
    """The socket's inode, by which /proc names it."""
    return int(_MESSAGE.unpack(look.head)[14])


def host(endpoint: str) -> str:
    """The address of ADDRESS:PORT or [ADDRESS]:PORT."""
    return endpoint.rpartition(":")[0].strip("[]")


def acked(look: Look) -> int:
    """Bytes that the peer has acknowledged."""
    return int(struct.unpack_from("=Q", look.info, 120)[0])


def lost(look: Look) -> int:
    """Segments sent again."""
    return int(struct.unpack_from("=I", look.info, 100)[0])


def counts(look: Look) -> tuple[int, int]:
    """Bytes sent, with retransmissions, and received: equal if it was idle."""
    sent, = struct.unpack_from("=Q", look.info, 200)
    received, = struct.unpack_from("=Q", look.info, 128)
    return sent, received


def moved(look: Look) -> tuple[int, int, int]:
    """Bytes acknowledged and received, and unread: equal if neither end took any."""
    return acked(look), counts(look)[1], queues(look)[0]


def queues(look: Look) -> tuple[int, int]:
    """Bytes unread, and bytes unsent or not acknowledged."""
    unread, waiting = _MESSAGE.unpack(look.head)[11:13]
    return unread, waiting


def _endpoint(family: int, address: bytes, port: bytes) -> str:
    number = int.from_bytes(port, "big")
    if family == socket.AF_INET:
        return f"{ipaddress.IPv4Address(address[:4])}:{number}"
    ip = ipaddress.IPv6Address(address)
    return f"{ip.ipv4_mapped}:{number}" if ip.ipv4_mapped else f"[{ip}]:{number}"
