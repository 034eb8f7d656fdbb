# SPDX-License-Identifier: GPL-2.0-only
"""Reads what the rules need from a profile of pathprof: the most expensive paths,
work and waits by stage, drops by place and reason."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .errors import UsageError

PATHS = 10      # paths kept, the most expensive first


def read(path: Path) -> dict[str, Any]:
    """Facts of the profile: profile, stages, drops."""
    try:
        document = json.loads(path.read_text("utf-8"))
        if document["format"] != "pathprof-profile":
            raise ValueError("not a pathprof profile")
        return {"profile": _paths(document), "stages": _stages(document),
                "drops": _drops(document)}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path}: not a profile of pathprof: {error}") from error


def _names(document: dict[str, Any]) -> dict[int, str]:
    return {stage["id"]: stage["name"] for stage in document["stages"]}


def _paths(document: dict[str, Any]) -> list[dict[str, Any]]:
    names = _names(document)
    total = sum(p["work_ns"] for p in document["paths"]) or 1
    rows = [{"direction": p["direction"], "flags": p["flags"],
             "packets": p["packets"], "share": p["work_ns"] / total,
             "ns_per_packet": p["work_ns"] / max(1, p["packets"]),
             "stage": names[max(zip(p["stage_ns"], p["stages"]))[1]]}
            for p in document["paths"]]
    return sorted(rows, key=lambda row: float(row["share"]), reverse=True)[:PATHS]


def _stages(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Work and waits of each stage, as shares of all work and all waits; the largest
    first."""
    names = _names(document)
    kinds = {stage["id"]: stage.get("kind", "work") for stage in document["stages"]}
    spent: dict[tuple[str, int], int] = {}
    for path in document["paths"]:
        for stage, ns in zip(path["stages"], path["stage_ns"], strict=True):
            key = path["direction"], stage
            spent[key] = spent.get(key, 0) + ns
    totals = {kind: sum(ns for (_, stage), ns in spent.items()
                        if kinds[stage] == kind) or 1 for kind in set(kinds.values())}
    rows = [{"direction": direction, "stage": names[stage], "kind": kinds[stage],
             "share": ns / totals[kinds[stage]]}
            for (direction, stage), ns in spent.items()]
    return sorted(rows, key=lambda row: float(row["share"]), reverse=True)[:PATHS]


def _drops(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Packets dropped, by place and the kernel's reason, among those followed."""
    names, found = _names(document), dict[tuple[str, str, str], int]()
    for path in document["paths"]:
        if path.get("end") == "dropped":
            reason = document.get("reasons", {}).get(str(path["reason"]), "unknown")
            key = path["direction"], names[path["stages"][-1]], reason
            found[key] = found.get(key, 0) + path["packets"]
    return [{"direction": direction, "stage": stage, "reason": reason,
             "packets": packets} for (direction, stage, reason), packets in
            sorted(found.items(), key=lambda item: -item[1])]
