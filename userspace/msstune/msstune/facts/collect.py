# SPDX-License-Identifier: GPL-2.0-only
"""Collects the facts: everything that a diagnosis is based on.  Reads only.

Counters are differences over the interval, states are those at its end.  A part
that cannot be read is left out and named in "missing".
"""
from __future__ import annotations

import contextlib
import itertools
import math
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import (calls as collect_calls, device, host as collect_host, profile_facts,
               profile_recorder, samples as collect_samples, tasks as collect_tasks,
               throughput)
from .. import sockdiag, system
from ..errors import TuneError

Facts = dict[str, Any]
SYSCTLS = (
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.ipv4.tcp_mem",
    "net.ipv4.tcp_window_scaling", "net.ipv4.tcp_sack",
    "net.ipv4.tcp_timestamps", "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_congestion_control", "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_limit_output_bytes", "net.ipv4.tcp_mtu_probing",
    "net.core.rmem_max", "net.core.wmem_max", "net.core.default_qdisc",
    "net.core.netdev_max_backlog", "net.core.netdev_budget",
    "net.core.netdev_budget_usecs", "net.core.busy_poll", "net.core.busy_read",
    "net.core.rps_sock_flow_entries", "net.core.somaxconn",
    "net.ipv4.tcp_max_syn_backlog", "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_pacing_ca_ratio", "net.ipv4.tcp_pacing_ss_ratio",
    "net.ipv4.tcp_notsent_lowat", "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_no_ssthresh_metrics_save", "net.ipv4.ip_local_port_range",
    "net.mssfrac.tx_frac",
    "net.mssfrac.rx_frac", "net.mssfrac.seg_max", "net.mssfrac.tx_steady",
    "net.mssfrac.rx_mss_est", "net.mssfrac.ab_percent")
#: Seconds between dumps that catch short connections, and the largest number of
#: them between two regular dumps.
SHORT = 0.5
BETWEEN = 3
#: Seconds for which a connection is watched longer in its first timeouts, and how
#: many of them say enough; or where bytes wait for a reader that paused just now; or
#: where one lost that many segments, and how many rates show whether the path limits
#: it.
LONGER = 8.0
TIMEOUTS = 5
LOSSES, RATES = 4, 12
WAITING = 20_000
#: Seconds for which calls of programs are counted at most, and after which it is seen
#: whether they are enough: what it costs follows from their number.
COUNTED, SLICE = 0.25, 0.05
MOST = 1000     # connections that are unpacked to find them
OWNED = 50  # number of busiest connections whose processes are looked up
SOFTNET = {"processed": 0, "dropped": 1, "squeezed": 2, "rps": 9,
           "flow_limit": 10, "backlog": 11}
#: Counters; the difference is added as d_NAME.
GROWING = ("bytes_acked", "bytes_received", "bytes_sent", "bytes_retrans",
           "segs_out", "segs_in", "data_segs_in", "data_segs_out",
           "total_retrans", "busy_time", "rwnd_limited", "sndbuf_limited",
           "delivered", "delivered_ce", "dsack_dups", "reord_seen",
           "rcv_ooopack", "drops")
#: Fields whose range over the interval matters; added as low_NAME and high_NAME.
RANGED = ("snd_wnd", "rqueue", "snd_cwnd", "rtt", "unacked", "rmem_alloc",
          "notsent_bytes", "wmem_queued", "last_data_sent", "rcvbuf",
          "snd_ssthresh")


def snmp(net: Path) -> dict[str, int]:
    """/proc/net/snmp, netstat and snmp6 (Ip6), by Group.Name."""
    found = {}
    for name in ("snmp", "netstat"):
        lines = (net / name).read_text("ascii").splitlines()
        for keys, values in zip(lines[::2], lines[1::2]):
            group, *names = keys.split()
            found.update({group + name: int(value) for name, value in
                          zip((f"{n}" for n in names), values.split()[1:])})
    if (net / "snmp6").exists():
        for name, value in map(str.split, (net / "snmp6").read_text(
                "ascii").splitlines()):
            if name.startswith("Ip6"):
                found[name.replace("Ip6", "Ip6:", 1)] = int(value)
    return {key.replace(":", "."): value for key, value in found.items()}


def softnet(net: Path) -> list[dict[str, int]]:
    rows: list[dict[str, int]] = []
    for line in (net / "softnet_stat").read_text("ascii").splitlines():
        words = [int(word, 16) for word in line.split()]
        row = {name: words[at] for name, at in SOFTNET.items()
               if at < len(words)}
        row["cpu"] = words[12] if len(words) > 12 else len(rows)
        rows.append(row)
    return rows


def cpus(stat: Path = Path("/proc/stat")) -> dict[str, dict[str, int]]:
    names = ("user", "nice", "system", "idle", "iowait", "irq", "softirq",
             "steal")
    return {words[0][3:]: dict(zip(names, map(int, words[1:])))
            for words in map(str.split, stat.read_text("ascii").splitlines())
            if words and words[0].startswith("cpu") and words[0] != "cpu"}


def sockstat(net: Path) -> dict[str, int]:
    """The TCP line of sockstat: inuse, orphan, tw, alloc, mem (pages)."""
    for line in (net / "sockstat").read_text("ascii").splitlines():
        if line.startswith("TCP:"):
            words = line.split()[1:]
            return {k: int(v) for k, v in zip(words[::2], words[1::2])}
    return {}


def pressure(net: Path) -> bool:
    """Whether TCP is under memory pressure now: the column press of protocols."""
    lines = (net / "protocols").read_text("ascii").splitlines()
    at = lines[0].split().index("press")
    return any(words[0] == "TCP" and words[at] == "yes"
               for words in map(str.split, lines[1:]))


def mssfrac(net: Path) -> dict[str, int]:
    path = net / "mssfrac"
    if not path.exists():
        return {}
    try:
        text = path.read_text("ascii")
    except PermissionError as error:
        raise TuneError("only root can read the module's counters") from error
    return {key: int(value) for key, value in map(str.split, text.splitlines())}


def sysctls() -> dict[str, str]:
    found = {}
    for key in SYSCTLS:
        try:
            text = Path("/proc/sys", key.replace(".", "/")).read_text("ascii")
            found[key] = " ".join(text.split())
        except OSError:
            continue
    return found


def owned(inodes: set[int]) -> dict[int, dict[str, Any]]:
    """The processes that hold these sockets, and the CPU on which each ran last."""
    found: dict[int, dict[str, Any]] = {}
    links = {f"socket:[{inode}]": inode for inode in inodes if inode}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            ends = [os.readlink(entry.path) for entry in os.scandir(folder / "fd")]
            held = [links[end] for end in ends if end in links]
            if held:
                stat = (folder / "stat").read_text("ascii", errors="replace")
                comm, _, rest = stat.rpartition(")")
                owner = {"pid": int(folder.name), "cpu": int(rest.split()[36]),
                         "comm": comm.partition("(")[2]}
                found.update(dict.fromkeys(held, owner))
        except OSError:
            continue  # it ended, or belongs to another user
    return found


def _holders(look: dict[bytes, sockdiag.Look]) -> dict[int, int]:
    """The processes of the liveliest connections, by inode, the liveliest first."""
    def rest(one: dict[str, Any]) -> int:
        return min(int(one["last_data_sent"]), int(one["last_data_recv"]))
    lively = sorted(map(sockdiag.unpack, list(look.values())[:MOST]), key=rest)
    inodes = [one["inode"] for one in lively[:OWNED]]
    owners = owned(set(inodes))
    return {inode: owners[inode]["pid"] for inode in inodes if inode in owners}


def _silent(first: dict[bytes, sockdiag.Look],
            last: dict[bytes, sockdiag.Look]) -> bool:
    """Whether a connection waits for its first ACK after few timeouts: the next one
    says whether the path is dead or loses packets."""
    for cookie, look in last.items():
        timeouts = look.head[3]
        if 0 < timeouts < TIMEOUTS and cookie in first and sockdiag.acked(
                look) == sockdiag.acked(first[cookie]):
            return True
    return False


def _pausing(first: dict[bytes, sockdiag.Look],
             last: dict[bytes, sockdiag.Look]) -> bool:
    """Whether data waits for a reader, here or at the peer, who took none of it and
    has not paused for long: it may have stopped, or read in bursts."""
    for cookie, look in last.items():
        if max(sockdiag.queues(look)) < WAITING or cookie not in first \
                or sockdiag.moved(look) != sockdiag.moved(first[cookie]):
            continue
        flow = sockdiag.unpack(look)
        if flow["rqueue"] >= WAITING and flow["last_data_recv"] < 1000 * LONGER or \
                flow["timer"] == sockdiag.PROBING and flow["wqueue"] >= WAITING \
                and flow["last_data_sent"] < 1000 * LONGER:
            return True
    return False


def _losing(first: dict[bytes, sockdiag.Look], last: dict[bytes, sockdiag.Look],
            dumps: int) -> bool:
    """Whether a connection loses segments, in too few dumps to say how its rate
    varies.  Of many connections some always do."""
    return dumps <= RATES and len(last) <= MOST and any(
        cookie in first
        and sockdiag.lost(look) - sockdiag.lost(first[cookie]) >= LOSSES
        for cookie, look in last.items())


def _calls(holders: dict[int, int]) -> dict[int, dict[str, Any]]:
    """Calls of the programs, for a moment."""
    calls = collect_calls.Calls(holders, sockdiag.looks)
    try:
        end = time.monotonic() + COUNTED
        while time.monotonic() < end and not calls.enough():
            time.sleep(SLICE)
        return calls.counted()
    finally:
        calls.close()


def _difference(old: Any, new: Any) -> Any:
    """New less old, for numbers in nested dicts."""
    if isinstance(new, dict):
        return {key: _difference(old.get(key, 0) if isinstance(old, dict) else 0,
                                 value) for key, value in new.items()}
    return new - (old or 0)


def flows(looks: list[dict[bytes, sockdiag.Look]], times: list[float],
          every: int = 1) -> list[dict[str, Any]]:
    """Connections that moved data between their first and last dump.

    Of a connection that at least two regular dumps contain, only these count (one
    dump in @every): the range of a field depends on how often it is read.
    """
    seen: dict[bytes, list[int]] = {}
    for at, look in enumerate(looks):
        for cookie in look:
            seen.setdefault(cookie, []).append(at)
    found, cookies = [], []
    for cookie, dumps in seen.items():
        regular = [n for n in dumps if n % every == 0]
        used = regular if len(regular) > 1 else dumps
        start, end = looks[used[0]][cookie], looks[used[-1]][cookie]
        if start is end:
            continue  # seen once only: no difference
        busy = sockdiag.counts(start) != sockdiag.counts(end)
        # Data that waits and does not move is a symptom, too.
        if not busy and not any(end.head[56:64]):
            continue
        begun, flow = sockdiag.unpack(start), sockdiag.unpack(end)
        flow["seconds"] = times[used[-1]] - times[used[0]]
        for key in GROWING:
            if key in flow:
                flow[f"d_{key}"] = flow[key] - begun.get(key, 0)
        between = [begun, *(sockdiag.unpack(looks[n][cookie]) for n in used[1:-1]),
                   flow]
        flow["falls_snd_wnd"] = sum(
            new["snd_wnd"] + new["snd_mss"] <= old["snd_wnd"]
            for old, new in zip(between, between[1:]))
        windows = [one["snd_wnd"] for one in between]
        most = itertools.accumulate(windows, max)
        flow["sunk_snd_wnd"] = max(was - now for was, now in zip(most, windows))
        for key in RANGED:
            values = [one.get(key, 0) for one in between]
            flow[f"low_{key}"], flow[f"high_{key}"] = min(values), max(values)
        flow.update(_waits([sockdiag.unpack(looks[n][cookie]) for n in dumps]))
        found.append(flow)
        cookies.append(cookie)
    # Where connections lose, whether the rate to that address varies says why.
    lossy = {sockdiag.host(f["remote"]) for f in found if f["d_total_retrans"]}
    for flow, cookie in zip(found, cookies):
        if sockdiag.host(flow["remote"]) in lossy:
            flow["acked_per_s"] = _rates(looks, times, cookie)
    return found


def _rates(looks: list[dict[bytes, sockdiag.Look]], times: list[float],
           cookie: bytes) -> list[float]:
    """Bytes/s of a connection that were acknowledged between each two dumps.  It
    begins after the last dump before its first one, and moves nothing where a dump
    misses it."""
    acked, counts = 0, []
    for look in looks:
        acked = sockdiag.acked(look[cookie]) if cookie in look else acked
        counts.append(acked)
    return [(after - before) / (end - start) for before, after, start, end in zip(
        counts, counts[1:], times, times[1:])]


def _waits(seen: list[dict[str, Any]]) -> dict[str, int]:
    """In how many dumps less than a segment waited though window and congestion
    window had room: with nothing in flight, and with something; the longest pause,
    in ms."""
    idle = flying = 0
    for one in seen:
        waits = 0 < one["notsent_bytes"] < one["snd_mss"] \
            and one["unacked"] < one["snd_cwnd"] \
            and one["snd_wnd"] >= 2 * one["snd_mss"]
        idle += waits and not one["unacked"]
        flying += waits and one["unacked"] > 0
    # Few dumps can all fall into bursts that come as regularly as they do.
    return {"looks": len(seen), "looks_corked": idle, "looks_nagle": flying,
            "high_last_data_sent": max(one["last_data_sent"] for one in seen)}


def collect(interval: float, looks: int = 4, profile_file: Path | None = None,
            record: bool = False) -> Facts:
    """Collect facts for @interval seconds, with @looks regular dumps.  @record: a
    profile as well, where that is possible."""
    recorder = profile_recorder.Recorder() if record and not profile_file else None
    if not recorder:
        return _collect(interval, looks, profile_file,
                        {os.getpid()} if record else set())
    try:
        recorder.start()
        facts = _collect(interval, looks, None, {os.getpid(), recorder.pid})
        path = recorder.stop()
        if not path:
            facts["missing"].append(f"profile: {recorder.missing}")
            return facts
        try:
            facts |= profile_facts.read(path)
        except TuneError as error:
            facts["missing"].append(f"profile: {error}")
        return facts
    finally:
        recorder.close()


def _collect(interval: float, looks: int, profile_file: Path | None,
             own: set[int]) -> Facts:
    """@own: the processes that watch; {}: without probes of the kernel."""
    net = Path("/proc/thread-self/net")
    missing: list[str] = []
    failed = set[str]()

    def part(name: str, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (OSError, TuneError, ValueError, LookupError) as error:
            missing.append(f"{name}: {error}")
            failed.add(name)
            return {}

    counters: dict[str, Callable[[], Any]] = {
        "out_of_memory": collect_host.out_of_memory,
        "throttled": collect_host.throttled, "firewall": collect_host.firewall,
        "conntrack": lambda: collect_host.conntrack(net),
        "irqs": device.interrupts, "mssfrac": lambda: mssfrac(net)}
    # Next to the interval, so that they do not count what the others cost.
    near: dict[str, Callable[[], Any]] = {"snmp": lambda: snmp(net), "cpus": cpus}
    known_profile = profile_facts.read(profile_file) if profile_file else \
        {"profile": []}
    spans = {"counters": time.monotonic()}
    before = {name: part(name, read) for name, read in counters.items()}
    spans["devices"] = time.monotonic()
    devices = part("devices", device.devices)
    sampler = part("samples", lambda: collect_samples.Sampler(
        [int(cpu) for cpu in cpus()], own)) if own else None
    soft = part("softnet", lambda: softnet(net))
    before |= {name: part(name, read) for name, read in near.items()}
    begun = time.monotonic()
    taken = [sockdiag.looks()]
    start = time.monotonic()
    times = [start]
    every = min(BETWEEN + 1, math.ceil(interval / (looks - 1) / SHORT))
    if start - begun > throughput.SHARE * SHORT:
        every = 1  # a dump of so many connections costs too much time and memory
    holders = part("owners", lambda: _holders(taken[0]))
    used = collect_host.usage(set(holders.values()))
    watching = collect_host.usage(own or {os.getpid()})
    running = part("tasks", collect_tasks.tasks)
    steps = every * (looks - 1)
    calls = dict[int, dict[str, Any]]()
    with contextlib.ExitStack() as probes:
        if sampler:
            probes.callback(sampler.close)
        for step in range(1, steps + 1):
            if sampler:
                sampler.drain()     # there is room for samples of some seconds
            if step == steps and own and len(taken[0]) <= MOST:
                calls = part("calls", lambda: _calls(holders))
            time.sleep(max(0.0, start + interval * step / steps - time.monotonic()))
            taken.append(sockdiag.looks())
            times.append(time.monotonic())
        end = time.monotonic() + LONGER
        while time.monotonic() < end and (
                _silent(taken[0], taken[-1]) or _pausing(taken[0], taken[-1])
                or _losing(taken[0], taken[-1], len(taken))):
            time.sleep(SHORT)
            taken.append(sockdiag.looks())
            times.append(time.monotonic())
        took = time.monotonic() - start
        after = {name: part(name, read) for name, read in near.items()}
        rows = part("softnet", lambda: softnet(net)) or []
        spent = collect_host.usage_since(used)
        watched = collect_host.usage_since(watching)
        tasks = part("tasks", lambda: collect_tasks.since(
            running, own | {os.getpid()})) if running else {}
        samples = part("samples", sampler.counted) if sampler else {}
    facts: Facts = {
        "format": "msstune-facts", "version": 1, "kernel": os.uname().release,
        "time": int(time.time()), "interval": took, "netns": system.netns(),
        "page": os.sysconf("SC_PAGE_SIZE"),
        "memory": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "hertz": os.sysconf("SC_CLK_TCK"), "tasks": tasks,
        "samples": collect_samples.joined(samples), "samples_of": samples,
        "own": sum(one["user"] + one["system"] for one in watched.values())}
    old_soft = {row["cpu"]: row for row in soft or []}
    facts["softnet"] = [
        _difference({**old_soft.get(row["cpu"], {}), "cpu": 0, "backlog": 0},
                    row) for row in rows if "softnet" not in failed]
    # On a busy host their programs take long, and the counters grow meanwhile.
    spans["counters"] = time.monotonic() - spans["counters"]
    after |= {name: part(name, read) for name, read in counters.items()}
    # What was not read at the beginning has no difference: it counts since boot.
    facts |= {name: {} if name in failed else _difference(before[name], value)
              for name, value in after.items()}
    spans["devices"] = time.monotonic() - spans["devices"]
    now = part("devices", device.devices)
    facts["devices"] = {} if "devices" in failed else device.difference(
        devices, now, spans["devices"])
    facts["spans"] = spans
    facts["sockstat"] = part("sockstat", lambda: sockstat(net))
    states: dict[str, Callable[[], Any]] = {
        "listeners": collect_host.listeners, "unanswered": collect_host.unanswered,
        "ports": lambda: collect_host.ports(
            facts["sockstat"].get("tw", 0) + facts["sockstat"].get("inuse", 0)),
        "conntrack_size": collect_host.conntrack_size,
        "firewall_rules": collect_host.firewall_rules,
        "firewall_limits": collect_host.firewall_limits,
        "legacy_tables": lambda: collect_host.legacy_tables(net),
        "routes": collect_host.routes, "tcp_metrics": collect_host.tcp_metrics,
        "neighbours": collect_host.neighbours}
    for name, read in states.items():
        facts[name] = part(name, read)
    facts["pressure"] = part("pressure", lambda: pressure(net))
    facts["sysctl"] = sysctls()
    facts["congestion_controls"] = part("congestion_controls", lambda: Path(
        "/proc/sys/net/ipv4/tcp_available_congestion_control").read_text("ascii"))
    facts["placement"] = part("placement", device.placement)
    facts["flows_total"] = len(taken[-1])
    facts["flows"] = flows(taken, times, every)
    busiest = sorted(facts["flows"], key=lambda f: int(
        f["d_bytes_acked"] + f["d_bytes_received"]), reverse=True)[:OWNED]
    owners = part("owners", lambda: owned({f["inode"] for f in busiest}))
    for flow in busiest:
        if flow["inode"] in owners:
            owner = owners[flow["inode"]]
            flow["owner"] = owner | spent.get(owner["pid"], {}) | {
                "cgroup": collect_host.cgroup_of(owner["pid"]),
                "calls": calls.get(owner["pid"], {})}
    remotes = {sockdiag.host(r) for r in [
        *(f["remote"] for f in busiest[:3]),
        *(u["remote"] for u in facts["unanswered"] or [])][:5]}
    facts["gateways"] = part("gateways", lambda: collect_host.gateways(
        sorted(remotes)))
    facts |= known_profile
    facts["missing"] = missing
    return facts
