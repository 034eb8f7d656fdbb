# SPDX-License-Identifier: GPL-2.0-only
"""Collects what the host holds besides connections: listening sockets, connections
that are not answered, conntrack, the firewall's drops, CPU quotas, routes, cached
TCP metrics and neighbours.  Reads only."""
from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import sockdiag, system, units
from ..errors import NotSupported

CGROUPS = Path("/sys/fs/cgroup")
MOST_CGROUPS = 2000
#: Connections, as a share of the port range, from which ports are looked at.
MANY = 0.5
LISTEN, SYN_SENT = 10, 2
#: States that hold a local port, but for LISTEN, as bits.
HOLDING = 0x1fe | 1 << 9 | 1 << 11
#: What the kernel may be asked for at each end of the interval.
Growing = dict[str, int]


def listeners() -> list[dict[str, Any]]:
    """Connections that wait for accept(), and how many may."""
    return [{"local": look["local"], "waiting": look["rqueue"],
             "most": look["wqueue"]} for look in sockdiag.heads(1 << LISTEN)]


def unanswered() -> list[dict[str, Any]]:
    """Connection attempts that have been repeated."""
    return [{"remote": look["remote"], "retransmits": look["retransmits"]}
            for look in sockdiag.heads(1 << SYN_SENT) if look["retransmits"]]


def ports(count: int) -> dict[str, Any]:
    """How many local ports connect() may take, and the remote end that uses most of
    them.  @count: of connections, with those in TIME-WAIT."""
    settings = Path("/proc/sys/net/ipv4")
    low, high = map(int, (settings / "ip_local_port_range").read_text("ascii").split())
    reserved = (settings / "ip_local_reserved_ports").read_text("ascii")
    free = {*range(low, high + 1)} - units.numbers(reserved)
    found: dict[str, Any] = {"range": len(free), "used": 0, "remote": ""}
    if count < MANY * found["range"]:
        return found
    used: dict[str, set[str]] = {}
    for look in sockdiag.heads(HOLDING):
        port = look["local"].rpartition(":")[2]
        if int(port) in free:
            used.setdefault(look["remote"], set()).add(port)
    if used:
        remote = max(used, key=lambda one: len(used[one]))
        found |= {"used": len(used[remote]), "remote": remote}
    return found


def conntrack(net: Path) -> Growing:
    """What conntrack could not hold; {} without conntrack."""
    path = net / "stat/nf_conntrack"
    if not path.exists():
        return {}
    names, *rows = (line.split() for line in path.read_text("ascii").splitlines())
    return {name: sum(int(row[at], 16) for row in rows)
            for at, name in enumerate(names)
            if name in ("insert_failed", "drop", "early_drop")}


def conntrack_size() -> dict[str, int]:
    folder = Path("/proc/sys/net/netfilter")
    return {key: int((folder / f"nf_conntrack_{key}").read_text("ascii"))
            for key in ("count", "max") if (folder / f"nf_conntrack_{key}").exists()}


def _words(rule: dict[str, Any]) -> dict[str, Any]:
    """What a rule of nft consists of; of matches the last."""
    return {key: value for part in rule.get("expr", ()) for key, value in part.items()}


def _verdict(words: dict[str, Any]) -> str:
    """Of a rule that drops or rejects; ""."""
    for word in ("drop", "reject"):
        if word in words:
            return word
    return "reject" if _xt(words) in ("REJECT", "DROP") else ""


def _xt(part: dict[str, Any]) -> str:
    """The extension of iptables that it uses; "", also where this nft knows none."""
    return str((part.get("xt") or {}).get("name", ""))


def _place(rule: dict[str, Any]) -> str:
    return (f"{rule['family']} {rule['table']} {rule['chain']} handle "
            f"{rule['handle']}")


def _ruleset() -> list[dict[str, Any]]:
    """The rules of nft, which also has those of iptables-nft."""
    if not shutil.which("nft"):
        return []
    found: list[dict[str, Any]] = json.loads(
        system.run("nft", "-j", "list", "ruleset"))["nftables"]
    return found


def firewall_rules(modules: Path = Path("/proc/modules")) -> dict[str, int]:
    """How many rules each hook of netfilter has, all chains of it together."""
    if not shutil.which("nft") and "\nnf_tables " in "\n" + modules.read_text("ascii"):
        raise NotSupported("no nft on PATH")    # there may be rules
    hooks: dict[tuple[str, str, str], str] = {}
    found: dict[str, int] = {}
    for item in _ruleset():
        chain, rule = item.get("chain"), item.get("rule")
        if chain and "hook" in chain:
            hooks[chain["family"], chain["table"], chain["name"]] = chain["hook"]
        elif isinstance(rule, dict):
            hook = hooks.get((rule["family"], rule["table"], rule["chain"]), "jump")
            found[hook] = found.get(hook, 0) + 1
    return found


def legacy_tables(net: Path) -> list[str]:
    """Tables of iptables-legacy in use here; nft does not list their rules."""
    return sorted({name for file in ("ip_tables_names", "ip6_tables_names")
                   if (net / file).exists()
                   for name in (net / file).read_text("ascii").split()})


@dataclass(frozen=True)
class Usage:
    """Of a process, all its threads together."""

    when: float         # s
    user: float         # CPU, s
    system: float
    sleeps: int         # how often it has waited
    queued: float | None  # s that it could have run, and had no CPU
    written: int | None  # bytes of its write() calls, also to files


def _queued(tasks: list[Path]) -> float | None:
    """Seconds that these threads waited for a CPU; None: the kernel does not count."""
    try:
        # CPU time and the wait for a CPU, in ns, and turns.
        return sum(int((task / "schedstat").read_text("ascii").split()[1])
                   for task in tasks) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def usage(pids: set[int]) -> dict[int, Usage]:
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/stat").read_text(
                "ascii", "replace").rpartition(")")[2].split()
            tasks = list(Path(f"/proc/{pid}/task").iterdir())
        except OSError:
            continue    # it ended
        found[pid] = Usage(time.monotonic(), int(words[11]) / tick,
                           int(words[12]) / tick, sum(map(_sleeps, tasks)),
                           _queued(tasks), _written(pid))
    return found


def _sleeps(task: Path) -> int:
    try:
        return int((task / "status").read_text("ascii", "replace").partition(
            "\nvoluntary_ctxt_switches:")[2].split()[0])
    except (OSError, IndexError):
        return 0        # a thread that ended


def _written(pid: int) -> int | None:
    """Bytes of write(); None: it belongs to another user, or is not counted."""
    try:
        return int(Path(f"/proc/{pid}/io").read_text("ascii").partition(
            "wchar:")[2].split()[0])
    except (OSError, IndexError):
        return None


def usage_since(before: dict[int, Usage]) -> dict[int, dict[str, float]]:
    """Shares of a CPU, of the time in its queue ("queued"), and sleeps per second,
    since @before."""
    found = {}
    for pid, now in usage(set(before)).items():
        then = before[pid]
        seconds = max(1e-3, now.when - then.when)
        found[pid] = {"user": (now.user - then.user) / seconds,
                      "system": (now.system - then.system) / seconds,
                      "sleeps_per_s": (now.sleeps - then.sleeps) / seconds}
        if now.written is not None and then.written is not None:
            found[pid]["written_per_s"] = (now.written - then.written) / seconds
        if now.queued is not None and then.queued is not None:
            found[pid]["queued"] = (now.queued - then.queued) / seconds
    return found


def firewall() -> Growing:
    """Packets dropped by each rule that counts them, by its place."""
    items = _ruleset()
    named = {(one["family"], one["table"], one["name"]): one
             for one in (item["counter"] for item in items if "counter" in item)}
    found: Growing = {}
    for rule in (item["rule"] for item in items if "rule" in item):
        words = _words(rule)
        counter = words.get("counter")
        if isinstance(counter, str):
            counter = named.get((rule["family"], rule["table"], counter))
        if _verdict(words) and counter:
            found[f"{_place(rule)}: {_verdict(words)}"] = int(counter["packets"])
    return found


def firewall_limits() -> dict[str, list[int]]:
    """The destination ports of TCP to which a rule drops what comes too often, by the
    place of the rule.  It has the limit itself, or a rule before it in its chain
    accepts what is below one."""
    found = {}
    accepted: dict[tuple[str, str, str], set[int]] = {}
    for rule in (item["rule"] for item in _ruleset() if "rule" in item):
        words, parts = _words(rule), rule.get("expr", ())
        ports = [port for part in parts for port in _ports(part)]
        below = accepted.setdefault(
            (rule["family"], rule["table"], rule["chain"]), set())
        limits = {limit for part in parts for limit in _limits(part)}
        if "accept" in words and limits & {"below", "either"}:
            below.update(ports)
        if _verdict(words) and not limits & {"above", "either"}:
            ports = [port for port in ports if port in below and not limits]
        if ports and _verdict(words):
            found[_place(rule)] = ports
    return found


#: Extensions of iptables that match by rate or number.  nft lists no options of them.
XT_LIMITS = ("limit", "hashlimit", "connlimit", "recent")


def _limits(part: dict[str, Any]) -> Iterator[str]:
    """Whether it matches "below" a limit or "above" it; "either": nobody knows."""
    # A limit with a name is an object of its own.
    if _xt(part) in XT_LIMITS or isinstance(part.get("limit"), str):
        yield "either"
    for word in ("limit", "ct count"):
        if isinstance(part.get(word), dict):
            yield "above" if part[word].get("inv") else "below"
    # A set that counts for each address; of a meter it is one statement.
    inner = (part.get("set") or part.get("meter") or {}).get("stmt") or []
    for one in inner if isinstance(inner, list) else [inner]:
        yield from _limits(one)


def _ports(part: dict[str, Any]) -> list[int]:
    """The single destination ports of TCP that a match names."""
    match = part.get("match", {})
    payload = match.get("left", {}).get("payload", {}) \
        if isinstance(match.get("left"), dict) else {}
    # "th" is the header of whatever carries ports.
    if payload.get("protocol") not in ("tcp", "th") \
            or payload.get("field") != "dport" or match.get("op") not in ("==", "in"):
        return []
    right = match["right"]
    many = right.get("set", []) if isinstance(right, dict) else [right]
    return [port for port in many if isinstance(port, int)]


def throttled() -> Growing:
    """Microseconds that each cgroup with a CPU quota had to wait, by its path."""
    found: Growing = {}
    for number, path in enumerate(CGROUPS.rglob("cpu.max")):
        if number > MOST_CGROUPS:
            break
        try:
            if path.read_text("ascii").startswith("max"):
                continue
            stat = dict(line.split() for line in path.with_name(
                "cpu.stat").read_text("ascii").splitlines())
        except (OSError, ValueError):
            continue
        found["/" + str(path.parent.relative_to(CGROUPS))] = int(
            stat.get("throttled_usec", 0))
    return found


def out_of_memory() -> Growing:
    """How often each cgroup with a memory limit reached it, by its path."""
    found: Growing = {}
    for number, path in enumerate(CGROUPS.rglob("memory.max")):
        if number > MOST_CGROUPS:
            break
        try:
            if path.read_text("ascii").startswith("max"):
                continue
            events = dict(line.split() for line in path.with_name(
                "memory.events").read_text("ascii").splitlines())
        except (OSError, ValueError):
            continue
        found["/" + str(path.parent.relative_to(CGROUPS))] = int(events.get("max", 0))
    return found


def cgroup_of(pid: int) -> str:
    """The path of a process's cgroup (version 2); ""."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text("ascii")
    except OSError:
        return ""
    match = re.search(r"^0::(.*)$", text, re.M)
    return match[1] if match else ""


def routes() -> list[dict[str, Any]]:
    """Routes with a metric that limits TCP.  ip(8) calls the default route of either
    family "default", and takes that for the one of IPv4."""
    found = []
    for family in ("-4", "-6"):
        show = ("route", "show", "table", "all")
        # JSON does not tell which metrics are locked.  Several tables may have a
        # route to the same place.
        locked = {(words[0], *metric)
                  for line in system.run("ip", family, *show).splitlines()
                  if (words := line.split())
                  for metric in re.findall(r"(\w+) lock (\d+)", line)}
        for route in json.loads(system.run("ip", family, "-j", "-d", *show) or "[]"):
            metrics: dict[str, Any] = {}
            for some in route.get("metrics", []):
                metrics |= some
            kept = {key: metrics[key] for key in (
                "window", "cwnd", "initcwnd", "initrwnd", "mtu", "ssthresh")
                if key in metrics}
            if kept:
                to = str(route.get("dst", ""))
                found.append({
                    "dst": "::/0" if (to, family) == ("default", "-6") else to,
                    "locked": [key for key, value in kept.items()
                               if (to, key, str(value)) in locked], **kept})
    return found


def tcp_metrics() -> dict[str, dict[str, Any]]:
    """Cached ssthresh and cwnd, by destination."""
    found = {}
    for line in system.run("ip", "tcp_metrics", "show").splitlines():
        words = line.split()
        values = {key: int(words[words.index(key) + 1]) for key in ("ssthresh", "cwnd")
                  if key in words and words[words.index(key) + 1].isdecimal()}
        if values:
            found[words[0]] = values
    return found


def neighbours() -> list[str]:
    """Addresses of the link that do not answer."""
    return [entry["dst"] for entry in json.loads(
        system.run("ip", "-j", "neigh", "show") or "[]")
        if {"FAILED", "INCOMPLETE"} & set(entry.get("state", ()))]


def gateways(remotes: list[str]) -> dict[str, str]:
    """The next hop to each of these addresses; itself on the link."""
    found = {}
    for remote in remotes:
        rows = json.loads(system.run("ip", "-j", "route", "get", remote) or "[]")
        if rows:
            found[remote] = rows[0].get("gateway", remote)
    return found
