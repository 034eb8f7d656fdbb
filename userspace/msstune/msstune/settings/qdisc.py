# SPDX-License-Identifier: GPL-2.0-only
"""The queue discipline at the root of a device or in a class, by tc(8).

Only a discipline that can be restored is replaced: the kernel's default, and
classless ones whose options are all known here.
"""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .. import qdiscs, system
from ..errors import NotSupported, UsageError
from .link import DeviceSetting

DEFAULT = "default"
#: kind: option in tc's JSON -> suffix for tc's input.  The JSON has times in
#: microseconds and rates in bytes per second.
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
#: Words without a value: (on, off).  tc prints null for some that are on.
_FLAGS = {"fq": {"pacing": ("pacing", "nopacing"),
                 "horizon_drop": ("horizon_drop", ""),
                 "horizon_cap": ("horizon_cap", "")},
          "fq_codel": {"ecn": ("ecn", "noecn")}}
#: Accepted only at their default: tc of iproute2 6.15 skips the first weight.
_DEFAULTS = {"fq": {"weights": [589824, 196608, 65536]}}
#: Words to add if tc prints nothing for an option that is not at its default.
_ABSENT = {"fq_codel": {"ecn": "noecn"}}


def spelled(kind: str, options: dict[str, Any]) -> str:
    """Arguments for tc that set exactly these options."""
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
            raise NotSupported(f"qdisc {kind}: option {key} could not be "
                               "restored")
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
        found = qdiscs.show("dev", self.device, *self.place)
        # The default has handle 0:, or is not shown at all.
        if not found or found[0].get("handle", "0:") == "0:":
            if self.place[0] == "parent":
                raise NotSupported(f"{self.name}: the default qdisc of a "
                                   "class could not be restored; set it by hand")
            return DEFAULT
        kind = found[0]["kind"]
        if kind not in _OPTIONS:
            raise NotSupported(f"{self.name}: the present {kind} could not be "
                               "restored; set it by hand")
        options = found[0].get("options", {})
        if options is None:
            raise NotSupported(f"{self.name}: the options of the present {kind} are "
                               "not known; it could not be restored; set it by hand")
        return spelled(kind, options)

    def write(self, value: str) -> None:
        if value == DEFAULT:
            system.run("tc", "qdisc", "del", "dev", self.device, *self.place)
        else:
            # A new handle makes a new qdisc.  With the old handle, one of the same
            # kind would keep the options that @value does not name.
            taken = {one.get("handle") for one in qdiscs.show("dev", self.device)}
            handle = next(h for h in (f"{n:x}:" for n in range(0x7000, 0x8000))
                          if h not in taken)
            system.run("tc", "qdisc", "replace", "dev", self.device, *self.place,
                       "handle", handle, *value.split())

    def check(self, value: str) -> None:
        kind = value.split()[0]
        if kind == DEFAULT and self.place[0] == "parent":
            raise UsageError(f"{self.name}={value}: only at the root")
        if re.search(r"\blimit 0\b", value):
            raise UsageError(f"{self.name}={value}: a queue of length 0 drops every "
                             "packet")
        if kind != DEFAULT and kind not in _OPTIONS:
            raise UsageError(f"{self.name}={value}: only {DEFAULT}, "
                             f"{', '.join(_OPTIONS)} can be set and undone")

    def took(self, written: str, got: str) -> bool:
        return written.split()[0] == got.split()[0]
