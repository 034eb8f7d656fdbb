# SPDX-License-Identifier: GPL-2.0-only
"""Compares settings with the running kernel: keys that it does not have, and names
of algorithms that it does not know.  Reads /proc/sys and the list of modules only.
"""
from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from .items import Assignment

#: key: the pattern of its modules, and names that the kernel itself may have.
_NAMED = {
    "net.ipv4.tcp_congestion_control": (r"/tcp_(\w+)\.ko", (
        "reno", "cubic", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla",
        "illinois", "lp", "nv", "scalable", "vegas", "veno", "westwood", "yeah")),
    "net.core.default_qdisc": (r"/sch_(\w+)\.ko", (
        "pfifo_fast", "pfifo", "bfifo", "fq", "fq_codel", "codel", "cake", "sfq",
        "pie", "fq_pie", "noqueue", "mq")),
}


class Kernel:
    """The kernel that runs, or a tree in its place."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.sys = root / "proc/sys"
        self.modules = root / "lib/modules" / os.uname().release

    def has(self, key: str) -> bool:
        return self._path(key).exists()

    def _path(self, key: str) -> Path:
        return self.sys / key.translate(str.maketrans("./", "/."))

    def siblings(self, key: str) -> list[str]:
        """The names in the folder of a key; empty: there is no such folder."""
        try:
            return os.listdir(self._path(key).parent)
        except OSError:
            return []

    def names(self, key: str) -> set[str]:
        """The algorithms that a key accepts."""
        pattern, known = _NAMED[key]
        found = set(known)
        for name in ("modules.dep", "modules.builtin"):
            try:
                found.update(re.findall(pattern,
                                        (self.modules / name).read_text("utf-8")))
            except OSError:
                continue  # a container has none
        try:
            found.update((self.sys / "net/ipv4/tcp_available_congestion_control"
                          ).read_text("ascii").split())
        except OSError:
            pass
        return found


def check(item: Assignment,
          kernel: Kernel) -> Iterator[tuple[str, str, str, str]]:
    """level, rule, why and source of each finding."""
    source = "the running kernel's /proc/sys"
    if "*" not in item.key and not kernel.has(item.key):
        name = item.key.rpartition(".")[2]
        siblings = kernel.siblings(item.key)
        near = difflib.get_close_matches(name, siblings, 1, 0.85)
        if near:
            yield ("error", "unknown-key", f"this kernel has no such key; did you mean "
                   f"{near[0]}?", source)
        elif item.optional:
            pass
        elif siblings:
            yield ("warning", "unknown-key", "this kernel, or this network namespace, "
                   "has no such key: the write fails", source)
        else:
            yield ("note", "unknown-key", "not known here: its module is not loaded, "
                   "or the device does not exist", source)
    if item.key in _NAMED and item.value:
        names = kernel.names(item.key)
        if item.value not in names:
            near = difflib.get_close_matches(item.value, sorted(names), 1, 0.6)
            yield ("error", "unknown-value", "this kernel knows no such algorithm"
                   + (f"; did you mean {near[0]}?" if near else ""),
                   "the running kernel and its modules")
