# SPDX-License-Identifier: GPL-2.0-only
"""One attribute of one route, by ip(8).  Except for socket options, it is the
narrowest scope for windows and congestion control."""
from __future__ import annotations

from pathlib import Path

from .. import system
from ..errors import TuneError, UsageError
from .setting import Setting

NONE = "none"
ATTRIBUTES = ("initcwnd", "initrwnd", "advmss", "mtu", "cwnd", "window",
              "quickack", "congctl", "rto_min", "hoplimit")
#: Words that ip prints but does not accept.
_STATE = {"linkdown", "dead", "offload", "trap", "rt_offload", "rt_trap"}


class Route(Setting):
    """route:PREFIX:ATTRIBUTE; the route must be the only one of its prefix."""

    kind = "route"

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        self.prefix, _, self.attribute = target.rpartition(":")
        if (not self.prefix or self.prefix.startswith("-")
                or self.attribute not in ATTRIBUTES):
            raise UsageError(f"route:{target}: a setting is route:PREFIX:NAME="
                             f"VALUE, NAME one of {', '.join(ATTRIBUTES)}")
        self.family = "-6" if ":" in self.prefix else "-4"

    def _words(self) -> list[str]:
        lines = [line for line in system.run(
            "ip", self.family, "route", "show", "exact",
            self.prefix).splitlines() if line.strip()]
        if len(lines) != 1:
            raise TuneError(f"{self.name}: {len(lines)} routes to {self.prefix}, "
                            "must be one")
        return [w for w in lines[0].split() if w not in _STATE]

    def read(self) -> str:
        words = self._words()
        if self.attribute not in words:
            return NONE
        at = words.index(self.attribute)
        return " ".join(words[at + 1:at + (3 if words[at + 1] == "lock" else 2)])

    def write(self, value: str) -> None:
        words = self._words()
        if self.attribute in words:
            at = words.index(self.attribute)
            del words[at:at + (3 if words[at + 1] == "lock" else 2)]
        if value != NONE:
            words += [self.attribute, *value.split()]
        system.run("ip", self.family, "route", "change", *words)

    def check(self, value: str) -> None:
        words = value.split()
        if (words[0] == "lock") != (len(words) == 2) or words[-1].startswith("-"):
            raise UsageError(f"{self.name}={value}: must be VALUE, lock VALUE or "
                             f"{NONE}")
