# SPDX-License-Identifier: GPL-2.0-only
"""The rules of lint: what is wrong with one setting, and the source.  Pure.

A rule takes one assignment or command and facts about the machine, and yields
findings.  error: the kernel refuses it, or it does not do what its author
expects.  warning: it has a cost.  note: it has no effect, or helps only in a
laboratory; notes do not make lint fail.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from . import kernel as lint_kernel, values
from .. import units
from .items import Assignment, Command
from .kernel import Kernel

INT_MAX = 2**31 - 1
IP_SYSCTL = "docs.kernel.org/networking/ip-sysctl"
SYSCTL_NET = "docs.kernel.org/admin-guide/sysctl/net"
S2 = "SDSC/GIAC tuning report 2008"
S0 = "Feng et al., SC 2003"


@dataclass(frozen=True)
class Machine:
    """Facts about the machine that rules use."""

    memory: int            # bytes of RAM
    page: int = 4096       # bytes
    kernel: Kernel | None = None    # None: the files are for another machine


@dataclass(frozen=True)
class Finding:
    level: str             # error, warning, note
    rule: str
    file: str
    line: int
    what: str              # the setting as written
    why: str
    source: str


#: Keys that no longer have an effect: why, source.
DEAD = {
    "net.ipv4.tcp_low_latency": ("has had no effect since Linux 4.14",
                                 IP_SYSCTL),
    "net.ipv4.tcp_fack": ("has had no effect since Linux 4.15 (RACK replaced it)",
                          IP_SYSCTL),
    "net.ipv4.tcp_tw_recycle": ("was removed in Linux 4.12, so the write fails; "
                                "before, it broke clients behind NAT",
                                "Linux commit 4396e46187ca"),
    "net.ipv4.tcp_adv_win_scale": ("is obsolete since Linux 6.6, which measures "
                                   "the share of a buffer that is window",
                                   IP_SYSCTL),
    "net.ipv4.ipfrag_low_thresh": ("is obsolete since Linux 4.17", IP_SYSCTL),
    "net.ipv4.route.max_size": ("is not used for IPv4 since Linux 3.6",
                                IP_SYSCTL),
    "net.ipv4.tcp_abc": ("was removed: byte counting is always on",
                         "RFC 3465; Linux 3.9"),
    "net.ipv4.tcp_dma_copybreak": ("was removed with NET_DMA", "Linux 3.18"),
    "net.ipv4.tcp_bic": ("was removed: use tcp_congestion_control", IP_SYSCTL),
    "net.ipv4.tcp_westwood": ("was removed: use tcp_congestion_control",
                              IP_SYSCTL),
    "net.ipv4.tcp_vegas_cong_avoid": ("was removed: use tcp_congestion_control",
                                      IP_SYSCTL),
    "net.ipv4.netfilter.ip_conntrack_max": (
        "was renamed net.netfilter.nf_conntrack_max",
        "docs.kernel.org/networking/nf_conntrack-sysctl"),
    "net.ipv4.ip_conntrack_max": (
        "was renamed net.netfilter.nf_conntrack_max",
        "docs.kernel.org/networking/nf_conntrack-sysctl"),
}

#: key: bad value, level, rule, why, source.
SWITCHES = {
    "net.ipv4.tcp_sack": (
        "0", "error", "sack-off",
        "without SACK, each of several losses in a window costs a round trip, and "
        "RACK and TLP cannot work; the advice is from hosts short of CPU",
        f"RFC 2018, RFC 8985; advised by {S2}"),
    "net.ipv4.tcp_timestamps": (
        "0", "warning", "timestamps-off",
        "no protection against wrapped sequence numbers (4 GB take 3.4 s at "
        "10 Gbit/s), and coarser round-trip times; in 2003 it gained 10 % where "
        "the CPU was the limit, and nothing elsewhere",
        f"RFC 7323; {S0}, sections 3.3 to 3.5"),
    "net.ipv4.tcp_window_scaling": (
        "0", "error", "scaling-off",
        "no window above 65535 bytes, whatever the buffers: 5.2 Mbit/s at "
        "100 ms", f"RFC 7323; {IP_SYSCTL}"),
    "net.ipv4.tcp_moderate_rcvbuf": (
        "0", "warning", "autotuning-off",
        "every connection keeps the second value of tcp_rmem",
        IP_SYSCTL),
    "net.ipv4.tcp_dsack": (
        "0", "warning", "dsack-off",
        "spurious retransmissions are no longer detected and undone", "RFC 2883, RFC "
        "3708"),
    "net.ipv4.tcp_frto": (
        "0", "warning", "frto-off",
        "a spurious timeout retransmits a whole window", "RFC 5682"),
    "net.ipv4.tcp_recovery": (
        "0", "warning", "rack-off",
        "without RACK, the loss of a retransmission waits for the timeout",
        f"RFC 8985; {IP_SYSCTL}"),
    "net.ipv4.tcp_early_retrans": (
        "0", "warning", "tlp-off",
        "without tail loss probes, the loss of a last segment waits for the "
        "timeout",
        IP_SYSCTL),
    "net.ipv4.tcp_abort_on_overflow": (
        "1", "warning", "abort-on-overflow",
        "a burst of connections is reset instead of retried", IP_SYSCTL),
    "net.ipv4.tcp_no_metrics_save": (
        "1", "note", "metrics-off",
        "for experiments; in production new connections lose what earlier ones "
        "learned about a path", IP_SYSCTL),
    "net.ipv4.tcp_slow_start_after_idle": (
        "0", "note", "idle-restart",
        "after an idle time a whole window leaves in one burst, unless fq paces "
        "it", f"RFC 2861; {IP_SYSCTL}"),
}

#: key: largest sensible value, level, rule, why, source.
CEILINGS = {
    "net.core.netdev_max_backlog": (
        100000, "warning", "backlog",
        "limits only the per-CPU backlog (RPS, veth, loopback and drivers without "
        "NAPI); so many packets hold hundreds of MB and add seconds of delay",
        f"{SYSCTL_NET}; advised by {S2}"),
    "net.core.netdev_budget_usecs": (
        50000, "warning", "budget",
        "receive work may occupy a CPU for that long at a time",
        f"{SYSCTL_NET}; bpftune#178"),
    "net.ipv4.tcp_limit_output_bytes": (
        16 << 20, "warning", "tsq",
        "each connection may queue that much in qdisc and driver, which delays "
        "all others", IP_SYSCTL),
    "net.core.rmem_default": (
        1 << 20, "warning", "default-all",
        "applies to sockets of every other protocol; TCP uses tcp_rmem", SYSCTL_NET),
    "net.core.wmem_default": (
        1 << 20, "warning", "default-all",
        "applies to sockets of every other protocol; TCP uses tcp_wmem", SYSCTL_NET),
    "net.core.optmem_max": (
        1 << 20, "note", "optmem",
        "limits ancillary data of one socket (MSG_ZEROCOPY, filters), not its "
        "buffers", SYSCTL_NET),
}
NOT_LOWER = {
    "net.ipv4.tcp_max_tw_buckets": 16384, "net.ipv4.tcp_max_orphans": 4096}
PAGES = ("net.ipv4.tcp_mem", "net.ipv4.udp_mem")
TRIPLES = ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
PAIRS = ("net.ipv4.ip_local_port_range",)
INTS = (*TRIPLES, "net.core.rmem_max", "net.core.wmem_max",
        "net.core.rmem_default", "net.core.wmem_default",
        "net.core.optmem_max")
#: Kernel default of the second value, and its largest sensible value.
DEFAULTS = {"net.ipv4.tcp_rmem": (131072, 1 << 20),
            "net.ipv4.tcp_wmem": (16384, 1 << 20)}


def assignment(item: Assignment, machine: Machine) -> Iterator[Finding]:
    """All findings for one sysctl."""
    def found(level: str, rule: str, why: str, source: str) -> Finding:
        return Finding(level, rule, item.file, item.line,
                       f"{item.key} = {item.value}", why, source)

    if "$" in item.value or "`" in item.value:
        yield found("note", "not-checked",
                    "the value is known only when the script runs", "-")
        return
    if item.key in DEAD:
        yield found("warning", "stale", *DEAD[item.key])
        return
    if machine.kernel:
        for parts in lint_kernel.check(item, machine.kernel):
            yield found(*parts)
    numbers = units.kernel_numbers(item.value)
    value = str(numbers[0]) if numbers and len(numbers) == 1 else item.value
    known = {*SWITCHES, *CEILINGS, *NOT_LOWER, *PAGES, *INTS, *values.KEYS}
    if item.key in known and not numbers:
        yield found("error", "not-a-number",
                    "the value must be whole numbers; the write fails", IP_SYSCTL)
        return
    if item.key in SWITCHES and value == SWITCHES[item.key][0]:
        yield found(*SWITCHES[item.key][1:])
    if not numbers:
        return
    count = 3 if item.key in PAGES + TRIPLES else 2 if item.key in PAIRS else 1
    if item.key in known and len(numbers) != count:
        yield found("error", "count",
                    f"{len(numbers)} values instead of {count}: the others keep their "
                    "old value, or the write fails", IP_SYSCTL)
        return
    if item.key in INTS and not 0 < min(numbers) <= max(numbers) <= INT_MAX:
        yield found("error", "limit",
                    f"outside 1..{INT_MAX}: the write fails (EINVAL), and the "
                    "old value stays", IP_SYSCTL)
        return
    for parts in values.check(item.key, value, numbers, machine.page):
        yield found(*parts)
    if item.key in CEILINGS and numbers[0] > CEILINGS[item.key][0]:
        yield found(*CEILINGS[item.key][1:])
    if item.key in NOT_LOWER and numbers[0] < NOT_LOWER[item.key]:
        yield found("warning", "lowered",
                    "the kernel's documentation says not to lower it: connections "
                    "above the limit are destroyed", IP_SYSCTL)
    if item.key == "net.ipv4.tcp_fin_timeout" and numbers[0] < 30:
        yield found("note", "fin-timeout",
                    "does not shorten TIME_WAIT, which is fixed at 60 s; it affects "
                    "only orphans in FIN_WAIT_2", IP_SYSCTL)
    if item.key in PAGES:
        for parts in _pages(numbers, machine):
            yield found(*parts)
    if item.key in TRIPLES:
        for parts in _triple(item.key, numbers, machine):
            yield found(*parts)
    if (item.key in ("net.core.rmem_max", "net.core.wmem_max")
            and numbers[0] > machine.memory // 8):
        yield found("warning", "memory",
                    f"one socket may use {units.size(numbers[0])} of "
                    f"{units.size(machine.memory)}", SYSCTL_NET)


def _pages(numbers: list[int],
           machine: Machine) -> Iterator[tuple[str, str, str, str]]:
    """Rules for low, pressure and high, each in pages."""
    high = numbers[2] * machine.page
    if high > machine.memory:
        yield ("error", "unit-pages",
               f"the unit is pages: {numbers[2]} pages are {units.size(high)}, "
               f"but this machine has {units.size(machine.memory)}; the limit "
               "never applies", f"{IP_SYSCTL}; the error is in {S2}")
    if numbers[0] == numbers[2]:
        yield ("warning", "no-pressure",
               "low, pressure and high are equal: there is no pressure state "
               "before allocations are refused", IP_SYSCTL)
    yield from _order(numbers)


def _order(numbers: list[int]) -> Iterator[tuple[str, str, str, str]]:
    if not numbers[0] <= numbers[1] <= numbers[2]:
        yield ("error", "order", "the three values must not decrease; the "
               "kernel does not check it", IP_SYSCTL)


def _triple(key: str, numbers: list[int],
            machine: Machine) -> Iterator[tuple[str, str, str, str]]:
    """Rules for min, default and max of one socket, in bytes."""
    low, default, high = numbers
    usual, bound = DEFAULTS[key]
    if low > 65536:
        yield ("warning", "min-element",
               f"every socket may use {units.size(low)} even under memory "
               "pressure; the kernel's default is 4096", f"{IP_SYSCTL}; advised by "
               f"{S2}")
    if default > bound:
        yield ("warning", "default-element",
               f"every connection starts with {units.size(default)} (the kernel's "
               f"default is {usual}); autotuning needs only the third value",
               f"{IP_SYSCTL}; kubernetes/kops#11868")
    if high > machine.memory // 8:
        yield ("warning", "memory",
               f"one connection may use {units.size(high)} of "
               f"{units.size(machine.memory)}", IP_SYSCTL)
    if high > 1 << 30:
        yield ("note", "window-field",
               "a window cannot exceed 1 GiB", "RFC 7323, section 2.3")
    yield from _order(numbers)


#: Pattern of a command, level, rule, why, source.
COMMANDS = (
    (r"ethtool (-K|--features|--offload) .*\b(tso|gso|gro|sg|"
     r"generic-receive-offload|tcp-segmentation-offload) off",
     "warning", "offload-off",
     "each packet is then handled alone; good for a capture, expensive for "
     "throughput", f"advised by {S2}; "
     "docs.kernel.org/networking/segmentation-offloads"),
    (r"ethtool (-K|--features|--offload) .*\b(rx|tx) off",
     "warning", "checksum-off",
     "the CPU then computes every checksum; tx also disables TSO",
     f"advised by {S2}"),
    (r"ethtool (-A|--pause) .*\b(rx|tx) off", "note", "pause-off",
     "for capture hosts; a full ring then drops packets", f"{S2}, capture"),
    (r"ethtool (-C|--coalesce) .*\brx-usecs 0\b", "warning", "coalesce-off",
     "one interrupt per packet: lowest latency, highest CPU use",
     f"{S0}, section 3.3.2; {S2}, capture"),
    (r"setpci .*\be6\.b=", "error", "pci-x",
     "e6.b is the MMRBC of one PCI-X adapter of 2003 (8086:1048); on another "
     "device it is a different register.  PCI Express uses CAP_EXP+8.w",
     f"{S0}, section 3.3.1"),
    (r"txqueuelen [0-9]{5,}", "note", "txqueuelen",
     "the rule is line rate x scheduler tick; with ticks of 1 to 4 ms that is "
     "833 to 3333 packets at 10 Gbit/s; fq does not use it",
     f"{S0}, section 4.1"),
    (r"(systemctl (stop|disable|mask)|service irqbalance stop|killall).*"
     r"irqbalance|service irqbalance stop", "note", "irqbalance",
     "interrupts then stay where they are: place them after each boot",
     f"{S2}, step f"),
)


def command(item: Command) -> Iterator[Finding]:
    """All findings for one command."""
    line = " ".join(item.words)
    for pattern, level, rule, why, source in COMMANDS:
        if re.search(pattern, line):
            yield Finding(level, rule, item.file, item.line, line, why, source)
