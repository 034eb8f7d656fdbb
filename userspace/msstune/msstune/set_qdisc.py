# SPDX-License-Identifier: GPL-2.0
"""The queue discipline of a device, its root or that of a class, by tc(8).

Only what can be put back is replaced: the kernel's default, and disciplines
without classes whose every option is known here.
"""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from . import system
from .errors import NotSupported, UsageError
from .set_link import DeviceSetting

DEFAULT = "default"
#: kind: option as tc prints it in JSON -> suffix that tc reads back.  Times
#: are microseconds there, rates bytes per second.
_OPTIONS = {
    "pfifo": {"limit": ""}, "bfifo": {"limit": ""},
    "fq": {"limit": "", "flow_limit": "", "buckets": "", "orphan_mask": "",
           "quantum": "", "initial_quantum": "", "maxrate": "bps",
           "low_rate_threshold": "bps", "refill_delay": "us",
           "timer_slack": "ns", "horizon": "us", "ce_threshold": "us",
           "offload_horizon": "us", "bands": "", "priomap": ""},
    "fq_codel": {"limit": "", "flows": "", "quantum": "", "target": "us",
                 "interval": "us", "memory_limit": "", "drop_batch": "",
                 "ce_threshold": "us"},
}
#: Words without a value: (on, off).  tc prints some with null for on.
_FLAGS = {"fq": {"pacing": ("pacing", "nopacing"),
                 "horizon_drop": ("horizon_drop", ""),
                 "horizon_cap": ("horizon_cap", "")},
          "fq_codel": {"ecn": ("ecn", "noecn")}}
#: Not to be given: tc of iproute2 6.15 misses the first of the weights.
_DEFAULTS = {"fq": {"weights": [589824, 196608, 65536]}}
#: What it means that an option is not printed, where that is not the default.
_ABSENT = {"fq_codel": {"ecn": "noecn"}}


def spelled(kind: str, options: dict[str, Any]) -> str:
    """Words that tc takes and that mean just this."""
    words = [kind]
    # iproute2 6.15 prints "priomap " and "weights ".
    options = {key.strip(): value for key, value in options.items()}
    for key, value in options.items():
        suffix = _OPTIONS[kind].get(key)
        if suffix is not None and isinstance(value, list):
            words += [key, *map(str, value)]
        elif suffix is not None:
            words += [key, f"{value}{suffix}"]
        elif key in _FLAGS.get(kind, {}):
            off = value is False or value == 0
            words += filter(None, [_FLAGS[kind][key][off]])
        elif value != _DEFAULTS.get(kind, {}).get(key):
            raise NotSupported(f"qdisc {kind}: option {key} could not be put "
                               "back")
    return " ".join(words + [word for key, word in _ABSENT.get(kind, {}).items()
                             if key not in options])


class Qdisc(DeviceSetting):
    """qdisc:DEVICE, or qdisc:DEVICE:MAJOR:MINOR for the one of a class."""

    kind = "qdisc"
    rounds = disruptive = True

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        if not re.fullmatch(r"[^-:][^:]*(:[0-9a-f]+:[0-9a-f]+)?", target):
            raise UsageError(f"qdisc:{target}: a setting is qdisc:DEVICE=KIND "
                             "OPTION..., or qdisc:DEVICE:MAJOR:MINOR=... of a "
                             "class")
        parent = target.partition(":")[2]
        self.place = ["parent", parent] if parent else ["root"]

    def read(self) -> str:
        found = json.loads(system.run("tc", "-j", "qdisc", "show", "dev",
                                      self.device, *self.place) or "[]")
        # A default one has no handle of its own, or is not shown at all.
        if not found or found[0].get("handle", "0:") == "0:":
            if self.place[0] == "parent":
                raise NotSupported(f"{self.name}: a class's default queue could "
                                   "not be put back; set it by hand")
            return DEFAULT
        kind = found[0]["kind"]
        if kind not in _OPTIONS:
            raise NotSupported(f"{self.name}: a {kind} is there, which could not "
                               "be put back; set it by hand")
        return spelled(kind, found[0].get("options", {}))

    def write(self, value: str) -> None:
        if value == DEFAULT:
            system.run("tc", "qdisc", "del", "dev", self.device, *self.place)
        else:
            # By a handle of its own it is a new one: one of the same kind would
            # keep the options that @value does not name.
            taken = {one.get("handle") for one in json.loads(system.run(
                "tc", "-j", "qdisc", "show", "dev", self.device) or "[]")}
            handle = next(h for h in (f"{n:x}:" for n in range(0x7000, 0x8000))
                          if h not in taken)
            system.run("tc", "qdisc", "replace", "dev", self.device, *self.place,
                       "handle", handle, *value.split())

    def check(self, value: str) -> None:
        kind = value.split()[0]
        if kind == DEFAULT and self.place[0] == "parent":
            raise UsageError(f"{self.name}={value}: only of a root")
        if kind != DEFAULT and kind not in _OPTIONS:
            raise UsageError(f"{self.name}={value}: {DEFAULT}, "
                             f"{', '.join(_OPTIONS)} can be set and undone")

    def took(self, wanted: str, got: str) -> bool:
        return wanted.split()[0] == got.split()[0]
