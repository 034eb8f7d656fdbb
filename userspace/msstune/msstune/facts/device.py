# SPDX-License-Identifier: GPL-2.0-only
"""Collects settings and counters of network devices, their queues, interrupts and
CPUs.  Reads only."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from .. import qdiscs, system
from ..settings import ethtool
from ..errors import TuneError

ROOT = Path("/")
SYS_NET = Path("/sys/class/net")
OFFLOADS = ("gro", "gso", "tso", "sg", "rx", "tx")
#: What the offloads "tx" and "tso" hide: they read "on" if one of these is.
PARTS = ("tx-checksum-ipv4", "tx-checksum-ipv6", "tx-tcp-segmentation",
         "tx-tcp6-segmentation")
PAUSE = ("autoneg", "rx", "tx")
COALESCE = ("rx-usecs", "rx-frames", "tx-usecs", "adaptive-rx")


def _ethtool(kind: type[ethtool._Words], device: str,
             field: str) -> str | None:
    try:
        return kind(f"{device}:{field}", ROOT).read()
    except (TuneError, OSError):
        return None


def _parts_off(device: str) -> list[str]:
    """The parts of offloads that are off and could be on."""
    try:
        found = ethtool.features(device)
    except (TuneError, OSError):
        return []
    return [name for name in PARTS if found.get(name) == (False, True)]


def _text(path: Path) -> str | None:
    try:
        return path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None


def devices() -> dict[str, dict[str, Any]]:
    """The devices that are up, including loopback, by name."""
    found: dict[str, dict[str, Any]] = {}
    for link in json.loads(system.run("ip", "-j", "-s", "-s", "-d", "link",
                                      "show", "up")):
        if not link:
            continue  # ip prints an empty object for a device that is down
        name = link["ifname"]
        stats = link.get("stats64", {})
        found[name] = {
            "kind": link.get("linkinfo", {}).get("info_kind", ""),
            "mtu": link["mtu"], "txqueuelen": link.get("txqlen", 0),
            "tx_queues": link.get("num_tx_queues", 1),
            "rx_queues": link.get("num_rx_queues", 1),
            "rx": stats.get("rx", {}), "tx": stats.get("tx", {}),
            "offload": _known({f: _ethtool(ethtool.Offload, name, f)
                               for f in OFFLOADS}),
            "parts_off": _parts_off(name),
            "coalesce": _known({f: _ethtool(ethtool.Coalesce, name, f)
                                for f in COALESCE}),
            "pause": _known({f: _ethtool(ethtool.Pause, name, f)
                             for f in PAUSE}),
            "ring": _ring(name), "bus": _bus(name), "qdiscs": []}
    for qdisc in qdiscs.show():
        if qdisc.get("dev") in found:
            found[qdisc["dev"]]["qdiscs"].append({
                key: qdisc.get(key) for key in
                ("kind", "handle", "root", "parent", "options", "bytes",
                 "packets", "drops", "overlimits", "requeues", "backlog",
                 "qlen")})
    return found


def _known(values: dict[str, str | None]) -> dict[str, str]:
    return {key: value for key, value in values.items() if value is not None}


def _ring(name: str) -> dict[str, int]:
    try:
        setting = ethtool.Ring(f"{name}:rx", ROOT)
        rx = int(setting.read()), setting.maximum()
        setting = ethtool.Ring(f"{name}:tx", ROOT)
        tx = int(setting.read()), setting.maximum()
    except (TuneError, OSError):
        return {}
    return {"rx": rx[0], "rx_max": rx[1], "tx": tx[0], "tx_max": tx[1]}


def _bus(name: str) -> dict[str, str]:
    """PCI Express link and NUMA node.  sysfs may show another network namespace,
    but a virtual device of the same name has no folder "device"."""
    device = SYS_NET / name / "device"
    found = {key: _text(device / key) for key in (
        "current_link_speed", "max_link_speed", "current_link_width",
        "max_link_width", "numa_node")}
    return _known(found)


def difference(before: dict[str, Any], after: dict[str, Any],
               seconds: float) -> dict[str, Any]:
    """Counters of @after less those of @before, which may lack a new device."""
    for name, device in after.items():
        old = before.get(name, {})
        for way in ("rx", "tx"):
            device[way] = {key: value - old.get(way, {}).get(key, 0)
                           for key, value in device[way].items()
                           if isinstance(value, (int, float))}
        known = {(q["kind"], q["handle"], q["parent"]): q
                 for q in old.get("qdiscs", [])}
        for qdisc in device["qdiscs"]:
            then = known.get((qdisc["kind"], qdisc["handle"], qdisc["parent"]),
                             {})
            qdisc["drops_ever"] = qdisc["drops"] or 0
            for key in ("bytes", "packets", "drops", "overlimits", "requeues"):
                qdisc[key] = (qdisc[key] or 0) - (then.get(key) or 0)
        device["bits_per_second"] = {
            way: device[way].get("bytes", 0) * 8 / seconds
            for way in ("rx", "tx")}
    return after


def interrupts(path: Path = Path("/proc/interrupts")) -> dict[str, dict[str, int]]:
    """Interrupts of network devices, by "NUMBER NAME" ("24 eth0-rx-0") and CPU."""
    lines = path.read_text("ascii", errors="replace").splitlines()
    count = len(lines[0].split())
    names = {p.name for p in SYS_NET.iterdir()} if SYS_NET.is_dir() else set()
    found = {}
    for line in lines[1:]:
        words = line.split()
        if not words or not words[0].rstrip(":").isdigit():
            continue
        label = words[-1]
        owner = re.split(r"[-@:.]", label)[0]
        if owner in names or "virtio" in label:
            found[f"{words[0].rstrip(':')} {label}"] = {
                str(cpu): int(value) for cpu, value in
                enumerate(words[1:1 + count]) if value.isdigit()}
    return found


def placement() -> dict[str, Any]:
    """The CPUs that share each last-level cache, and the packet steering (RPS, RFS,
    XPS) in force."""
    base = Path("/sys/devices/system/cpu")
    shared = {}
    for cpu in sorted(base.glob("cpu[0-9]*")):
        caches = sorted(cpu.glob("cache/index[0-9]*"))
        if caches:
            shared[cpu.name[3:]] = _text(caches[-1] / "shared_cpu_list")
    steering = {}
    for queue in SYS_NET.glob("*/queues/[rt]x-*"):
        for key in ("rps_cpus", "rps_flow_cnt", "xps_cpus"):
            value = _text(queue / key)
            if value and value.strip("0,"):
                steering[f"{queue.parent.parent.name}/{queue.name}/{key}"] = value
    return {"last_level_cache": shared, "steering": steering}
