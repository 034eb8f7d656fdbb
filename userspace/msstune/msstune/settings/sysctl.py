# SPDX-License-Identifier: GPL-2.0-only
"""Sysctls, by the files below /proc/sys."""
from __future__ import annotations

import re
from pathlib import Path

from .. import system, units
from ..lint import rules
from ..errors import NotSupported, UsageError
from ..lint.items import Assignment, dotted
from .setting import Setting


#: Lists of numbers, which the kernel prints as ranges.
_LISTS = ("net.ipv4.ip_local_reserved_ports",)


class Sysctl(Setting):
    """A sysctl of our network namespace, or a global one."""

    kind = "sysctl"

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(dotted(target), root)
        parts = self.target.translate(str.maketrans("./", "/."))
        if ".." in parts.split("/") or not re.fullmatch(r"\w[\w./@:-]*", parts):
            raise UsageError(f"sysctl:{target}: no such sysctl")
        self.path = root / "proc/sys" / parts

    def read(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise UsageError(f"{self.name}: this kernel or namespace has no such "
                             "sysctl") from error

    def write(self, value: str) -> None:
        system.write_value(self.path, value if value.endswith("\n")
                           else value + "\n")

    def same(self, one: str, other: str) -> bool:
        if super().same(one, other):
            return True
        if self.target in _LISTS:
            try:
                return units.numbers(one) == units.numbers(other)
            except ValueError:
                return False
        numbers = units.kernel_numbers(one)
        return numbers is not None and numbers == units.kernel_numbers(other)

    def check(self, value: str) -> None:
        self._check_writable()
        memory = rules.Machine(1 << 62)  # what RAM allows is plan's matter
        for found in rules.assignment(
                Assignment("", 0, self.target, " ".join(value.split())), memory):
            if found.level == "error":
                raise UsageError(f"{self.name}={value}: {found.why}")

    def _check_writable(self) -> None:
        try:
            mode = self.path.stat().st_mode
        except OSError:
            return  # read() reports it
        if not mode & 0o222:
            raise NotSupported(
                f"{self.name}: this network namespace has no such key of its own, and "
                "cannot write the one it shows; set it in the initial one")
