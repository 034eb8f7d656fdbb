# SPDX-License-Identifier: GPL-2.0-only
"""Reads what the rules need from a profile of pathprof: its paths, the most
expensive ones, work and waits by stage, drops by place and reason.

Times are without pathprof's own part, as in its views."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..errors import UsageError

PATHS = 10      # most expensive paths that are shown
KEPT = 60       # paths kept for the rules
DROPPED = "dropped"


def load(path: Path) -> dict[str, Any]:
    """The profile, as pathprof wrote it."""
    document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    if document["format"] != "pathprof-profile":
        raise ValueError("not a pathprof profile")
    return document


def read(path: Path) -> dict[str, Any]:
    """Facts of the profile: profile, stages, drops, paths, recorded."""
    try:
        return facts(load(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a profile of pathprof: {error}") from error


def facts(document: dict[str, Any]) -> dict[str, Any]:
    """The same, of a profile that was read."""
    paths = paths_of(document)
    return {"profile": _expensive(paths), "stages": _stages(paths),
            "drops": _drops(paths), "paths": _kept(paths),
            "recorded": _recorded(document)}


def paths_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """All its paths, stages by name, without pathprof's own part."""
    names = {stage["id"]: stage["name"] for stage in document["stages"]}
    kinds = {stage["id"]: stage.get("kind", "work") for stage in document["stages"]}
    return [_path(one, names, kinds, document) for one in document["paths"]]


def _path(one: dict[str, Any], names: dict[int, str], kinds: dict[int, str],
          document: dict[str, Any]) -> dict[str, Any]:
    """One path, its stages as [name, kind, ns]."""
    own = one.get("stage_probe_ns") or [0] * len(one["stages"])
    if document.get("probe", {}).get("subtracted"):
        own = [0] * len(own)
    stages = [[names[stage], kinds[stage], max(0, ns - probe)] for stage, ns, probe in
              zip(one["stages"], one["stage_ns"], own, strict=True)]
    found = {"direction": one["direction"], "flags": one["flags"],
             "facts": one.get("facts", []), "end": one.get("end", ""),
             "packets": one["packets"], "segments": one.get("segments", one["packets"]),
             "bytes": one.get("bytes", 0), "stages": stages}
    _reused(found)
    if found["end"] == DROPPED:
        found["reason"] = document.get("reasons", {}).get(
            str(one.get("reason", "")), "unknown")
        found["location"] = one.get("location", "")
    return found


def _reused(path: dict[str, Any]) -> None:
    """End a path where another packet got the address of one that was joined to the
    receive queue, which sampling bursts do not see: it cannot reach TCP twice."""
    names = [name for name, _, _ in path["stages"]]
    if "done" in names and "estab" in names[names.index("done"):]:
        path["stages"] = path["stages"][:names.index("done")]
        path["end"] = "joined"


def spent(path: dict[str, Any], kind: str) -> int:
    """ns of a path in stages of that kind: work or wait."""
    return sum(int(ns) for _, of, ns in path["stages"] if of == kind)


def _expensive(paths: list[dict[str, Any]]) -> list[dict[str, Any]]:
    total = sum(spent(p, "work") for p in paths) or 1
    rows: list[dict[str, Any]] = [
        {"direction": p["direction"], "flags": p["flags"], "packets": p["packets"],
         "share": spent(p, "work") / total,
         "ns_per_packet": spent(p, "work") / max(1, p["packets"]),
         "stage": max((ns, name) for name, _, ns in p["stages"])[1]} for p in paths]
    return sorted(rows, key=lambda row: float(row["share"]), reverse=True)[:PATHS]


def _stages(paths: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Work and waits of each stage, as shares of all work and all waits; the largest
    first."""
    sums: dict[tuple[str, str, str], int] = {}
    for path in paths:
        for name, kind, ns in path["stages"]:
            key = path["direction"], name, kind
            sums[key] = sums.get(key, 0) + ns
    totals: dict[str, int] = {}
    for (_, _, kind), ns in sums.items():
        totals[kind] = totals.get(kind, 0) + ns
    rows: list[dict[str, Any]] = [
        {"direction": direction, "stage": name, "kind": kind,
         "share": ns / (totals[kind] or 1)}
        for (direction, name, kind), ns in sums.items()]
    return sorted(rows, key=lambda row: float(row["share"]), reverse=True)[:PATHS]


def _drops(paths: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Packets dropped, by place and the kernel's reason, among those followed."""
    found = dict[tuple[str, str, str], int]()
    for path in paths:
        if path["end"] == DROPPED:
            # The last stage is the drop itself.
            key = path["direction"], path["stages"][-2:][0][0], path["reason"]
            found[key] = found.get(key, 0) + path["packets"]
    return [{"direction": direction, "stage": stage, "reason": reason,
             "packets": packets} for (direction, stage, reason), packets in
            sorted(found.items(), key=lambda item: -item[1])]


def _kept(paths: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The paths that spent most time, and all that were dropped."""
    return [path for at, path in enumerate(sorted(
        paths, key=lambda p: spent(p, "work") + spent(p, "wait"), reverse=True))
        if at < KEPT or path["end"] == DROPPED]


def _recorded(document: dict[str, Any]) -> dict[str, Any]:
    """How much was seen: packets followed, bursts and their time, losses."""
    account = document.get("account", {})
    return {"packets": account.get("sampled", 0),
            "bursts": document.get("counters", {}).get("windows", 0),
            "seconds": document.get("open_ns", document.get("duration_ns", 0)) / 1e9,
            "lost": sum(account.get(key, 0) for key in (
                "no_slot", "map_full", "abandoned", "sock_clash"))}
