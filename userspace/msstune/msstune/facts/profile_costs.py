# SPDX-License-Identifier: GPL-2.0-only
"""What packets cost and how long they wait, as metrics of an experiment.  Pure.

====================  ========================================================
metric                meaning
====================  ========================================================
stack_cost            ns of work on all packets per byte received or sent
rx_cost, tx_cost      ns of work of a packet with payload
WAY.at.STAGE          ns of work of a packet at this stage (WAY: rx or tx)
WAY.wait.STAGE        us that a packet waits at this stage
WAY.p99.STAGE         us of the stage that 99 of 100 packets stay below
====================  ========================================================
"""
from __future__ import annotations

import re
from typing import Any

from . import profile_facts

#: Whole costs, and the names that mssab(1) knows their numbers by.
WHOLE = {"stack_cost": "ns_per_byte", "rx_cost": "rx_ns_per_packet",
         "tx_cost": "tx_ns_per_packet"}
UNITS = {"at": "ns", "wait": "us", "p99": "us"}
_STAGED = re.compile(r"(rx|tx)\.(at|wait|p99)\.([a-z0-9_]+)")
#: Packets below which a mean is not reported.
LEAST = 30


def known(name: str) -> bool:
    """Whether a profile can give this metric."""
    return name in WHOLE or bool(_STAGED.fullmatch(name))


def unit(name: str) -> str:
    """Of a metric of a stage."""
    match = _STAGED.fullmatch(name)
    assert match, name
    return UNITS[match[2]]


def reported(name: str) -> str:
    """The name by which the number is reported to mssab."""
    return WHOLE.get(name, name)


def measured(document: dict[str, Any], names: list[str]) -> dict[str, float]:
    """Those of @names that the profile has enough packets for, by reported()."""
    paths = profile_facts.paths_of(document)
    found = {}
    for name in names:
        match = _STAGED.fullmatch(name)
        value = _stage(document, paths, *match.groups()) if match else \
            _whole(paths, name)
        if value is not None:
            found[reported(name)] = value
    return found


def _whole(paths: list[dict[str, Any]], name: str) -> float | None:
    ways = ("rx", "tx") if name == "stack_cost" else (name[:2],)
    mine = [p for p in paths if p["direction"] in ways]
    carrying = [p for p in mine if p["bytes"] and p["end"] != "merged"]
    packets = sum(int(p["packets"]) for p in carrying)
    if packets < LEAST:
        return None
    if name == "stack_cost":
        # A host that receives and sends has both ways' bytes.
        return sum(profile_facts.spent(p, "work") for p in mine) / max(
            1, sum(int(p["bytes"]) for p in carrying if p["end"] != "dropped"))
    # Packets that GRO merged are part of another one: their work counts.
    return sum(profile_facts.spent(p, "work") for p in mine if p["bytes"]) / packets


def _stage(document: dict[str, Any], paths: list[dict[str, Any]], way: str, what: str,
           stage: str) -> float | None:
    packets = ns = 0
    for path in paths:
        here = [at[2] for at in path["stages"] if at[0] == stage]
        if path["direction"] == way and here:
            packets, ns = packets + path["packets"], ns + sum(here)
    if packets < LEAST:
        return None
    if what != "p99":
        return max(1.0, ns / packets) / (1 if what == "at" else 1e3)
    times = [one["times"]["p99_ns"] for one in document["stages"]
             if one["name"] == stage and "times" in one]
    return max(1.0, times[0]) / 1e3 if times else None
