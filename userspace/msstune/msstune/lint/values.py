# SPDX-License-Identifier: GPL-2.0-only
"""Rules of lint for values that are dangerous although the kernel accepts them, and
for ranges.  apply refuses those with level error.  Pure.
"""
from __future__ import annotations

from collections.abc import Iterator

IP_SYSCTL = "docs.kernel.org/networking/ip-sysctl"
SYSCTL_NET = "docs.kernel.org/admin-guide/sysctl/net"

#: level, rule, why, source.
Parts = tuple[str, str, str, str]

#: key: error below, warning below, why, source.
FLOORS = {
    "net.ipv4.tcp_retries2": (
        3, 8, "connections die after so few timeouts; 8 is about the 100 s that RFC "
        "1122 asks for", f"RFC 1122, section 4.2.3.5; {IP_SYSCTL}"),
    "net.core.netdev_budget": (
        1, 64, "receive work stops after that many packets; one poll of a driver "
        "handles up to 64", SYSCTL_NET),
    "net.core.netdev_budget_usecs": (
        1, 1000, "receive work stops after that time, with packets left", SYSCTL_NET),
    "net.core.netdev_max_backlog": (
        1, 100, "loopback, veth and RPS drop packets when that many wait", SYSCTL_NET),
    "net.core.dev_weight": (
        1, 8, "a CPU handles that many packets of its backlog in one poll",
        SYSCTL_NET),
    "net.ipv4.tcp_limit_output_bytes": (
        4096, 65536, "a connection may queue no more below TCP; one GSO skb has up to "
        "64 KiB, so throughput falls", IP_SYSCTL),
    "net.core.somaxconn": (
        1, 64, "limits the queue of accepted connections of every listener",
        IP_SYSCTL),
    "net.ipv4.ip_default_ttl": (
        8, 32, "packets with so few hops do not reach remote networks", IP_SYSCTL),
    "net.core.rmem_max": (
        2304, 32768, "SO_RCVBUF is clamped to it; the kernel refuses less than one "
        "packet", SYSCTL_NET),
    "net.core.wmem_max": (
        4608, 32768, "SO_SNDBUF is clamped to it; the kernel refuses less than two "
        "packets", SYSCTL_NET),
}

#: (key, value): level, rule, why, source.
VALUES = {
    ("net.ipv4.tcp_syncookies", "0"): (
        "warning", "syncookies-off", "a SYN flood then fills the queue of half-open "
        "connections, and no client gets in", f"RFC 4987; {IP_SYSCTL}"),
    ("net.ipv4.tcp_syncookies", "2"): (
        "warning", "syncookies-always", "for tests: without timestamps every "
        "connection loses window scaling and SACK", IP_SYSCTL),
    ("net.ipv4.tcp_shrink_window", "1"): (
        "warning", "shrink-window", "the receiver retracts window that it advertised, "
        "and drops what was sent into it; meant for buffers at their limit",
        f"RFC 7323, section 2.4; {IP_SYSCTL}"),
    ("net.ipv4.tcp_rcvbuf_low_rtt", "0"): (
        "note", "low-rtt-off", "receive buffers of short round trips grow faster, and "
        "beyond what they need", IP_SYSCTL),
    ("net.ipv4.tcp_ecn", "0"): (
        "note", "ecn-off", "refuses ECN to peers that ask for it; the default 2 "
        "accepts it", f"RFC 3168; {IP_SYSCTL}"),
    ("net.ipv4.tcp_ecn", "1"): (
        "note", "ecn-on", "also asks for ECN in outgoing connections; keep "
        "tcp_ecn_fallback on, because some paths drop such packets",
        f"RFC 3168, section 6.1.1.1; {IP_SYSCTL}"),
}
LEAST_MEMORY = 1 << 20      # bytes for all sockets of a protocol
KEYS = {*FLOORS, *(key for key, _ in VALUES), "net.ipv4.tcp_min_snd_mss"}


def check(key: str, value: str, numbers: list[int], page: int) -> Iterator[Parts]:
    """Findings for one setting whose value is @numbers."""
    if key in FLOORS and len(numbers) == 1:
        least, sensible, why, source = FLOORS[key]
        if numbers[0] < sensible:
            yield ("error" if numbers[0] < least else "warning", "too-small", why,
                   source)
    if (key, value) in VALUES:
        yield VALUES[key, value]
    special = _SPECIAL.get(key)
    if special:
        yield from special(numbers, page)


def _min_snd_mss(numbers: list[int], _page: int) -> Iterator[Parts]:
    if not 48 <= numbers[0] <= 65535:
        yield ("error", "limit", "outside 48..65535: the write fails (EINVAL)",
               IP_SYSCTL)
    elif numbers[0] > 536:
        yield ("warning", "min-snd-mss", "segments of that size are sent even to peers "
               "that asked for smaller ones", IP_SYSCTL)


def _ecn(numbers: list[int], _page: int) -> Iterator[Parts]:
    if not 0 <= numbers[0] <= 5:
        yield ("error", "limit", "outside 0..5: the write fails (EINVAL)", IP_SYSCTL)
    elif numbers[0] > 2:
        yield ("warning", "accurate-ecn", "only kernels with Accurate ECN accept it; "
               "others refuse the write", IP_SYSCTL)


def _low_rtt(numbers: list[int], _page: int) -> Iterator[Parts]:
    if numbers[0] > 100_000:
        yield ("warning", "unit-usec", f"the unit is microseconds: buffers of round "
               f"trips below {numbers[0] / 1e3:g} ms grow slowly", IP_SYSCTL)


def _ports(numbers: list[int], _page: int) -> Iterator[Parts]:
    if len(numbers) != 2 or not 1 <= numbers[0] <= numbers[1] <= 65535:
        yield ("error", "range", "must be LOW HIGH, with 1 <= LOW <= HIGH <= 65535; "
               "the write fails (EINVAL)", IP_SYSCTL)
    elif numbers[1] - numbers[0] < 1000:
        yield ("warning", "few-ports", f"{numbers[1] - numbers[0] + 1} ports for all "
               "outgoing connections to one address", IP_SYSCTL)


def _memory(numbers: list[int], page: int) -> Iterator[Parts]:
    if len(numbers) == 3 and numbers[2] * page < LEAST_MEMORY:
        yield ("error", "too-small", f"all sockets together get {numbers[2] * page} "
               "bytes: connections stall or are reset", IP_SYSCTL)


def _buffer(numbers: list[int], _page: int) -> Iterator[Parts]:
    if len(numbers) != 3:
        return
    if numbers[1] < 2304 or numbers[2] < 4608:
        yield ("error", "too-small", "a buffer that does not hold two packets: "
               "connections stall", IP_SYSCTL)
    elif numbers[2] < 32768:
        yield ("warning", "too-small", f"a connection gets at most {numbers[2]} bytes, "
               "a few segments per round trip", IP_SYSCTL)


_SPECIAL = {
    "net.ipv4.tcp_min_snd_mss": _min_snd_mss, "net.ipv4.tcp_ecn": _ecn,
    "net.ipv4.tcp_rcvbuf_low_rtt": _low_rtt, "net.ipv4.ip_local_port_range": _ports,
    "net.ipv4.tcp_mem": _memory, "net.ipv4.udp_mem": _memory,
    "net.ipv4.tcp_rmem": _buffer, "net.ipv4.tcp_wmem": _buffer,
}
KEYS |= set(_SPECIAL)
