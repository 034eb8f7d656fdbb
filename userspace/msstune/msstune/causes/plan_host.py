# SPDX-License-Identifier: GPL-2.0-only
"""Proposals for devices, queues, memory and CPUs, and for a goal.  Pure.

The goals capture, throughput and latency need opposite settings (tables 27 to 30
of the SDSC/GIAC report), so a goal is applied only when asked for.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import host, plan_path
from ..facts.collect import Facts
from .diagnosis import Diagnosis
from .plan_values import Proposal, block, triple, whole_host

S0 = "Feng et al., SC 2003"
S2 = "SDSC/GIAC tuning report 2008"
SYSCTL_NET = "docs.kernel.org/admin-guide/sysctl/net"
SEGMENTATION = "docs.kernel.org/networking/segmentation-offloads"
SCALING = "docs.kernel.org/networking/scaling"


def _elsewhere(key: str, d: Diagnosis, source: str) -> Proposal:
    return Proposal("", "", "", f"raise {key} in the initial network namespace of "
                    "the host: it cannot be set in this one", d.why, source, "memory")


def _backlog(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    if not whole_host(facts):
        yield _elsewhere("net.core.netdev_max_backlog", d,
                         f"{SYSCTL_NET}; {S2}, step 4")
        return
    now = int(facts["sysctl"]["net.core.netdev_max_backlog"])
    new = min(max(1000, now * 4), 100000)
    yield Proposal("sysctl:net.core.netdev_max_backlog", str(now), str(new),
                   "packets were dropped before they reached TCP", d.why,
                   f"{SYSCTL_NET}; {S2}, step 4", "delay while the queue is long")


def _budget(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    for key, factor in (("net.core.netdev_budget", 2),
                        ("net.core.netdev_budget_usecs", 2)):
        now = int(facts["sysctl"].get(key, "0"))
        if 0 < now <= 20000:
            yield Proposal(f"sysctl:{key}", str(now), str(now * factor),
                           "receive work stops while packets are left", d.why,
                           SYSCTL_NET, "other work waits longer for the CPU")


def _qdisc(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    name = d.subject.split()[0]
    device = facts["devices"].get(name, {})
    length = device.get("txqueuelen", 1000)
    if length < 1000 and d.numbers.get("kind") not in host.AQM:
        yield Proposal(f"txqueuelen:{name}", str(length), "1000",
                       "the queue is shorter than a burst; qdiscs take their limit "
                       "from it when they are created", d.why,
                       f"{S0}, section 4.1; {S2}, step e",
                       "delay while the queue is long")
    kind, parent = d.numbers.get("kind", ""), d.numbers.get("parent")
    if kind in host.AQM:
        yield Proposal("", "", "", f"{d.subject} signals congestion: raise the rate of "
                       "its link or shaper, or send less; if the link is not full, the "
                       "limits of that queue are too small for it", d.why,
                       f"tc-{kind}(8)", "delay while the queue is long")
        return
    if kind not in ("pfifo", "bfifo", "pfifo_fast"):
        yield Proposal("", "", "", f"give {d.subject} a longer queue (its limit"
                       + (f", {limit} now" if (limit := (d.numbers.get("options") or {})
                                               .get("limit")) else "")
                       + "), or send less at once", d.why, f"tc-{kind}(8)",
                       "delay while the queue is long")
        return
    if not parent or d.numbers.get("handle") != "0:":
        # The default qdisc of a class has no handle, so it cannot be restored.
        yield Proposal(f"qdisc:{name}:{parent}" if parent else f"qdisc:{name}",
                       _spelled(kind, d), "fq",
                       "fq shares the queue among connections and paces each, so "
                       "bursts do not overflow it", d.why,
                       f"tc-fq(8); ESnet host tuning; {S0}, section 4.1",
                       "waiting packets are lost once")


def _spelled(kind: str, d: Diagnosis) -> str:
    limit = d.numbers.get("options", {}).get("limit")
    return f"{kind} limit {limit}" if limit and kind != "pfifo_fast" else "default"


def _ring(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    ring = facts["devices"].get(d.subject, {}).get("ring", {})
    if ring and ring["rx"] < ring["rx_max"]:
        yield Proposal(f"ring:{d.subject}:rx", str(ring["rx"]),
                       str(min(ring["rx"] * 4, ring["rx_max"])),
                       "the receive ring overflows between two polls", d.why,
                       "ethtool(8); CESNET report 10/2003, section 5",
                       "the link may go down for a moment; worse cache use")


def _memory(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    if "times" in d.numbers:
        yield Proposal("", "", "", f"raise memory.max of {d.subject}, or give its "
                       "connections smaller buffers", d.why,
                       "docs.kernel.org/admin-guide/cgroup-v2", "none")
        return
    if "net.ipv4.tcp_mem" not in facts["sysctl"]:
        yield _elsewhere("net.ipv4.tcp_mem", d, "docs.kernel.org/networking/ip-sysctl")
        return
    low, pressure, high = triple(facts, "net.ipv4.tcp_mem")
    room = facts["memory"] // facts["page"] // 8
    if room > high:
        new = f"{room // 2} {room * 3 // 4} {room}"
        yield Proposal("sysctl:net.ipv4.tcp_mem", f"{low} {pressure} {high}", new,
                       "limits the memory of all TCP sockets, in pages; the kernel's "
                       "own start value is of this order", d.why,
                       "docs.kernel.org/networking/ip-sysctl",
                       "sockets may use an eighth of RAM")
    else:
        yield Proposal("", "", "", "use fewer or smaller buffers: TCP may already "
                       "use an eighth of RAM", d.why,
                       "docs.kernel.org/networking/ip-sysctl", "none")


def _offload(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    device = facts["devices"].get(d.subject, {})
    off = [name for name in ("gro", "tx", "sg", "gso", "tso") if name in d.numbers
           and device.get("offload", {}).get(name) == "off"]
    if "tx" in off:
        # Without checksums the kernel switches sg and tso off, and with them on again.
        yield Proposal(f"offload:{d.subject}:tx", "off", "on",
                       "the CPU reads each byte once more for its checksum; sg and tso "
                       "need tx and return with it", d.why, SEGMENTATION,
                       "none, where the device computes checksums right")
        return
    if part := d.numbers.get("part"):
        yield Proposal("", "", "", f"ethtool -K {d.subject} {part} on: what it would "
                       "segment is split by the CPU", d.why, SEGMENTATION,
                       "captures see merged packets")
    for name in off:
        if name != "sg":
            yield Proposal(f"offload:{d.subject}:{name}", "off", "on",
                           "each packet passes the stack alone",
                           d.why, SEGMENTATION, "captures see merged packets")


def _coalesce(rx_usecs: int) -> Callable[[Diagnosis, Facts], Iterator[Proposal]]:
    def answer(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
        now = facts["devices"].get(d.subject, {}).get("coalesce", {}).get("rx-usecs")
        if now is not None:
            yield Proposal(f"coalesce:{d.subject}:rx-usecs", now, str(rx_usecs),
                           "avoids one interrupt per packet, and a delay that "
                           "lengthens the round trip", d.why,
                           f"{S0}, section 3.3.2 (5 us off: 19 to 14 us); {S2}, "
                           "step c: no value is best everywhere",
                           "more interrupts, or more delay")
    return answer


def _placement(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    cpu = d.subject.split()[-1]
    shared = facts.get("placement", {}).get("last_level_cache", {}).get(cpu)
    yield Proposal("", "", "", f"move the reader from CPU {cpu} to another one that "
                   f"shares its last-level cache ({shared or 'not known'}): "
                   "taskset -cp; repeat after each boot, because numbers change", d.why,
                   f"{S2}, step f; {SCALING}", "none")
    yield from plan_path.steer(d, facts)


def _bus(d: Diagnosis, _facts: Facts) -> Iterator[Proposal]:
    yield Proposal("", "", "", f"{d.subject}: reseat it or use another slot; check "
                   "MaxReadReq and MaxPayload (lspci -vv); never write a register "
                   "number meant for another device", d.why,
                   f"{S0}, section 3.3.1 (MMRBC 512 to 4096: +33 %)", "none")


def _mssfrac(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    for side, loss in (("tx", "windows of few segments lose their remainder again"),
                       ("rx", "windows are whole multiples of the MSS again")):
        now = facts["sysctl"].get(f"net.mssfrac.{side}_frac", "0")
        if now != "0" and side in d.numbers.get("sides", ("tx",)):
            yield Proposal(f"sysctl:net.mssfrac.{side}_frac", now, "0",
                           "most of its segment sizes are given up here", d.why,
                           "mssfrac(4)", loss)


def _cpu(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    for name, device in facts["devices"].items():
        mtu = device["mtu"]
        if mtu == 1500 and device["kind"] == "" and name != "lo":
            size, _ = block(9000)
            better, _ = block(8160)
            yield Proposal("", "", "", f"{name}: use a larger MTU, if the whole path "
                           f"carries it: a driver with power-of-two blocks needs "
                           f"{size} "
                           f"bytes for 9000 and {better} for 8160", d.why,
                           f"{S0}, section 3.3.1, figure 5",
                           "paths that drop large packets")


def _softirq(d: Diagnosis, facts: Facts) -> Iterator[Proposal]:
    yield from plan_path.steer(d, facts)
    yield from _cpu(d, facts)


ANSWERS: dict[str, Callable[[Diagnosis, Facts], Iterator[Proposal]]] = {
    "backlog-drops": _backlog, "budget": _budget, "qdisc-drops": _qdisc,
    "ring-drops": _ring, "memory-pressure": _memory, "offload-off": _offload,
    "coalescing": _coalesce(20), "interrupt-rate": _coalesce(50),
    "placement": _placement, "bus": _bus, "mssfrac": _mssfrac,
    "cpu-softirq": _softirq,
}

#: goal: setting, value, reason, risk.  {dev} stands for each device.
_GOALS: dict[str, tuple[tuple[str, str, str, str], ...]] = {
    "throughput": (
        ("qdisc:{dev}", "fq", "paces each connection", "waiting packets are lost "
         "once"),
        ("offload:{dev}:gro", "on", "fewer, larger packets", "none"),
        ("offload:{dev}:tso", "on", "fewer, larger packets", "none")),
    "latency": (
        ("sysctl:net.core.busy_poll", "50", "poll instead of waiting for an "
         "interrupt", "CPU time while waiting"),
        ("sysctl:net.core.busy_read", "50", "poll instead of waiting for an "
         "interrupt", "CPU time while waiting"),
        ("coalesce:{dev}:adaptive-rx", "off", "a fixed, short wait", "none"),
        ("coalesce:{dev}:rx-usecs", "0", "an interrupt at once",
         "an interrupt per packet")),
    "capture": (
        ("offload:{dev}:gro", "off", "packets as they came", "CPU per packet"),
        ("ring:{dev}:rx", "max", "bursts wait in the ring", "the link may go down "
         "for a moment"),
        ("pause:{dev}:rx", "off", "pause frames would slow the sender down", "drops "
         "instead"),
        ("coalesce:{dev}:rx-usecs", "0", "time stamps at once",
         "an interrupt per packet")),
}
GOALS = tuple(_GOALS)


def goal(facts: Facts, name: str) -> Iterator[Proposal]:
    """The settings of a goal, for every device that has them."""
    for pattern, value, reason, risk in _GOALS.get(name, ()):
        for dev, device in facts["devices"].items():
            if dev == "lo" and "{dev}" in pattern:
                continue
            setting = pattern.format(dev=dev)
            if "busy_" in setting and (device["kind"] or dev == "lo"):
                continue    # a virtual device has no ring to poll
            old, new = _now(setting, device, facts), value
            if new == "max":
                new = str(device["ring"].get("rx_max", ""))
            if old is None or not new:
                continue
            yield Proposal(setting, old, new, f"for {name}: {reason}",
                           "the goal; not measured here",
                           f"{S2}, steps a to f and capture; {SYSCTL_NET}", risk)


def _now(setting: str, device: dict[str, Any], facts: Facts) -> str | None:
    """The present value, from the facts; None: no such setting here."""
    kind, _, target = setting.partition(":")
    field = target.rpartition(":")[2]
    if kind == "sysctl":
        value = facts["sysctl"].get(target)
    elif kind == "qdisc":
        root = [q for q in device["qdiscs"] if q.get("root")]
        # A qdisc with a handle was chosen on purpose.
        if device["kind"] or not root or root[0].get("handle") != "0:":
            return None
        return "default"
    else:
        value = device.get(kind, {}).get(field)
    return None if value is None else str(value)
