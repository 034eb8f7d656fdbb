# SPDX-License-Identifier: GPL-2.0-only
"""Programs that read or write little at a time, or wake up for each packet.  Pure.

Evidence is what the kernel counts of a program: its calls and their bytes, its CPU
time, how often it sleeps.  Where calls were not counted, the time of a copy in the
profile stands in, which makes a guess.  What matters is time, not packets per second:
a slow CPU is busy with few of them.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..facts import path_sums
from ..facts.collect import Facts
from .confidence import LITTLE, each
from .diagnosis import Diagnosis
from ..facts.path_sums import BUSY, Evidence
from .path import weight


def diagnose(facts: Facts) -> Iterator[Diagnosis]:
    yield from _reads(facts)
    yield from list(_writes(facts)) or _merged(facts)
    yield from _wakes(facts)


READS = 3           # times the copy, or the stack's work, that a reader's time is
CLEARLY = 10        # times as much that is no guess
PIECES = 6          # times the stack's work that a copy takes which is made of pieces
RUNNING = 0.8       # share of a CPU of a process that never waits
ONLY = 0.2          # of what it reads, that it sends or writes to files at most
AHEAD = 4           # reads that the waiting data is enough for
ROOM = 0.5          # of a send buffer that unsent data fills where a writer must wait


def _softirq(facts: Facts, cpu: int) -> float:
    """The share of a CPU that softirqs take."""
    ticks: dict[str, int] = facts["cpus"].get(str(cpu), {})
    return ticks.get("softirq", 0) / max(1, sum(ticks.values()))


def _reads(facts: Facts) -> Iterator[Diagnosis]:
    """A reader that never waits, while data waits for it: it reads little at a time.
    Calls that were counted decide; without them, its time in the kernel for a byte."""
    readers: dict[int, list[dict[str, Any]]] = {}
    for f in facts["flows"]:
        if "system" in f.get("owner", {}):
            readers.setdefault(f["owner"]["pid"], []).append(f)
    for flows in readers.values():
        owner, size = flows[0]["owner"], sum(f["d_bytes_received"] for f in flows)
        more = sum(f["d_bytes_acked"] for f in flows) \
            + owner.get("written_per_s", 0.0) * facts["interval"]
        busy = owner["system"] + owner["user"]
        if not size or more > ONLY * size or not any(f["low_rqueue"] for f in flows) \
                or busy < RUNNING or owner["system"] < owner["user"] / 4:
            continue
        read = each(flows[0], "read")
        if read is None and "written_per_s" in owner:
            yield from _long_copies(flows, size, facts)
        elif read is None:
            continue    # what it writes may be what takes its time
        elif read <= LITTLE and any(f["low_rqueue"] > AHEAD * read for f in flows):
            yield _few_bytes(flows, read, facts)


def _evidence(facts: Facts, gain: str) -> Evidence | None:
    mine = path_sums.passing(path_sums.data(facts, "rx"), "copy")
    if not mine:
        return None
    return Evidence(path_sums.label(mine, "rx"), path_sums.share(
        facts, path_sums.spent(mine, "wait", ("done",)), "wait"), "wait", gain)


def _few_bytes(flows: list[dict[str, Any]], read: float, facts: Facts) -> Diagnosis:
    owner = flows[0]["owner"]
    calls = owner["calls"]
    busy = owner["system"] + owner["user"]
    rate = calls["reads"] / max(1e-3, calls["seconds"])
    return Diagnosis(
        f"{flows[0]['local']} > {flows[0]['remote']}", "tiny-reads",
        "high" if "written_per_s" in owner else "medium",
        f"{owner['comm']} reads {rate:,.0f} times a second, {read:.3g} bytes each "
        f"time, though more waits; it never rests ({busy:.0%} of a CPU), and a call "
        f"costs more than the copy of {LITTLE} bytes",
        "it is as slow with reads of many bytes", 70,
        {"bytes_per_read": read, "reads_per_s": rate, "system": owner["system"],
         "user": owner["user"]},
        _evidence(facts, "most of the reader's time in the kernel"))


def _long_copies(flows: list[dict[str, Any]], size: int,
                 facts: Facts) -> Iterator[Diagnosis]:
    """The same, guessed: it spends much more time in the kernel than moving its bytes
    takes, though it does nothing else there."""
    owner = flows[0]["owner"]
    mine = path_sums.passing(path_sums.data(facts, "rx"), "copy")
    if not mine:
        return
    # Where a softirq interrupts a process, the kernel counts it as its time.
    system = owner["system"] - min(owner["system"], _softirq(facts, owner["cpu"]))
    copy = path_sums.spent(mine, stages=("copy",)) / path_sums.payload(mine)
    every = path_sums.data(facts, "rx")
    stack = path_sums.spent(every, stages=path_sums.PER_PACKET) \
        / path_sums.payload(every)
    if copy > PIECES * stack:
        copy = stack    # from the first piece to the last, and what is between
    spent = system * facts["interval"] * 1e9 / size
    if spent < READS * copy:
        return
    clear = spent > CLEARLY * copy
    yield Diagnosis(
        f"{flows[0]['local']} > {flows[0]['remote']}", "tiny-reads",
        "medium" if clear else "low",
        f"{owner['comm']} never waits ({owner['system'] + owner['user']:.0%} of a "
        f"CPU), data waits for it, and it spends {spent:,.3g} ns in the kernel for "
        f"a byte, which takes the stack {copy:,.3g}",
        "strace -c shows reads of many bytes",
        70 if clear else 45,
        {"system_ns_per_byte": spent, "copy_ns_per_byte": copy, "system": system,
         "user": owner["user"]},
        _evidence(facts, f"up to {1 - copy / spent:.0%} of the reader's time in the "
                  "kernel"))


SMALL = 0.25        # of a full-sized segment
MANY = 500          # packets/s that matter on any CPU,
EVENTS = 300        # and packets, all counted by TCP, that are enough to judge,
TIME = 0.25         # where the programs use so much of a CPU for them
WOKEN = 0.25        # sleeps of the readers per packet
ONE_WAY = 0.2       # data segments against, in a stream that is not request by request


def _small(f: dict[str, Any], facts: Facts, way: str) -> float:
    """Packets/s of a stream of small packets; 0: it is none."""
    there, back = ("out", "in") if way == "tx" else ("in", "out")
    there, back = f"data_segs_{there}", f"data_segs_{back}"
    moved = "bytes_acked" if way == "tx" else "bytes_received"
    count = f.get(f"d_{there}", 0)
    size = f[f"d_{moved}"] / count if count else 0
    if not 0 < size <= SMALL * f["snd_mss"] \
            or f.get(f"d_{back}", 0) > ONE_WAY * count:
        return 0.0
    return float(count / f.get("seconds", facts["interval"]))


def _matters(rate: float, flows: list[tuple[float, dict[str, Any]]],
             facts: Facts) -> bool:
    """Whether so many packets take time that counts."""
    if rate * facts["interval"] < EVENTS:
        return False
    if rate >= MANY and path_sums.busy(facts) >= BUSY:
        return True
    owners = {f["owner"]["pid"]: f["owner"] for _, f in flows
              if "system" in f.get("owner", {})}
    time = sum(o["system"] + o["user"] for o in owners.values())
    return bool(time >= TIME)


def _writes(facts: Facts) -> Iterator[Diagnosis]:
    """Small segments that a program writes one by one."""
    mine = [p for p in path_sums.data(facts, "tx") if p["segments"] == p["packets"]]
    flows = [(rate, f) for f in facts["flows"] if (rate := _small(f, facts, "tx"))]
    rate = sum(rate for rate, _ in flows)
    if not _matters(rate, flows, facts):
        return
    most = max(flows, key=lambda one: one[0])[1]
    # The kernel counts both; the profile only shows their part of the work.
    size = sum(f["d_bytes_acked"] for _, f in flows) \
        / sum(f["d_data_segs_out"] for _, f in flows)
    share = path_sums.share(facts, path_sums.spent(mine))
    wrote = each(most, "write")
    yield Diagnosis(
        f"{most['local']} > {most['remote']}", "small-writes", "medium",
        f"{rate:,.0f} packets/s of {size:.0f} bytes on average, though "
        f"{most['snd_mss']} fit: " + ("each write is a packet" if wrote is None else
                                      f"a write has {wrote:.0f} bytes"),
        "larger writes change nothing", weight(45, facts),
        {"bytes_per_packet": size, "packets_per_s": rate, "bytes_per_write": wrote},
        Evidence(path_sums.label(mine, "tx"), share,
                 gain=f"{share * (1 - SMALL):.0%} of the work, with four times the "
                 "bytes in a packet") if mine else None)


def _merged(facts: Facts) -> Iterator[Diagnosis]:
    """A writer that never rests while its socket has room, and whose writes cost more
    than their copy.  Nagle or a full queue may merge them into large segments."""
    for f in facts["flows"]:
        owner, wrote = f.get("owner", {}), each(f, "write")
        busy = owner.get("system", 0.0) + owner.get("user", 0.0)
        if wrote is None or wrote > LITTLE or busy < RUNNING \
                or owner["system"] < owner["user"] / 4 \
                or f["d_bytes_received"] > ONLY * f["d_bytes_acked"] \
                or f["d_rwnd_limited"] or f["d_sndbuf_limited"] \
                or f["high_notsent_bytes"] > ROOM * f.get("sndbuf", 0):
            continue
        rate = owner["calls"]["writes"] / max(1e-3, owner["calls"]["seconds"])
        yield Diagnosis(
            f"{f['local']} > {f['remote']}", "small-writes", "medium",
            f"{owner['comm']} writes {rate:,.0f} times a second, {wrote:.3g} bytes "
            f"each time; it never rests ({busy:.0%} of a CPU), its socket has room, "
            f"and a call costs more than the copy of {LITTLE} bytes",
            "it is as slow with larger writes", 45,
            {"bytes_per_write": wrote, "writes_per_s": rate,
             "system": owner["system"], "user": owner["user"]})


def _wakes(facts: Facts) -> Iterator[Diagnosis]:
    """A reader that sleeps and is woken for each small packet."""
    mine = path_sums.data(facts, "rx")
    flows = [(rate, f) for f in facts["flows"] if (rate := _small(f, facts, "rx"))]
    owners = {f["owner"]["pid"]: f["owner"] for _, f in flows
              if "sleeps_per_s" in f.get("owner", {})}
    sleeps = sum(owner["sleeps_per_s"] for owner in owners.values())
    rate = sum(rate for rate, _ in flows)
    if not rate or sleeps < WOKEN * rate \
            or not _matters(rate, flows, facts):
        return
    most = max(flows, key=lambda one: one[0])[1]
    share = path_sums.share(facts, path_sums.spent(mine, stages=("estab", "wake")))
    yield Diagnosis(
        f"{most['local']} > {most['remote']}", "wake-ups", "medium",
        f"{rate:,.0f} small packets/s arrive, and their readers sleep {sleeps:,.0f} "
        "times a second: nearly every packet wakes one",
        "the reader's CPU time stays the same with SO_RCVLOWAT", weight(50, facts),
        {"packets_per_s": rate, "sleeps_per_s": sleeps},
        Evidence(path_sums.label(mine, "rx"), share,
                 gain=f"most of {share:.0%} of the work, and of the reader's switches")
        if mine else None)
