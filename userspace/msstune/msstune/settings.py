# SPDX-License-Identifier: GPL-2.0
"""What can be set: how a setting is spelled, read, written and compared.

A kind is a small class; the journal and the manager know only this interface.
KIND:TARGET=VALUE is the spelling everywhere: command line, plan, journal.
"""
from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from . import lint_rules, system
from .errors import NotSupported, UsageError
from .lint_read import Assignment, dotted


class Setting:
    """One thing that has a value.  @target: what follows KIND: in its name."""

    kind: ClassVar[str]
    #: The kernel or driver may take another value than the one written.
    rounds: ClassVar[bool] = False
    #: Packets may be lost, or the link goes down for a moment.
    disruptive: ClassVar[bool] = False

    def __init__(self, target: str, root: Path) -> None:
        if str(root) != "/" and self.kind != "sysctl":
            raise NotSupported(f"{self.kind}: not below another --root")
        self.target = target
        self.root = root

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.target}"

    @property
    def device(self) -> str:
        """The network device it belongs to, or nothing."""
        return ""

    def identity(self) -> str:
        """Differs when the name now means another thing."""
        return ""

    def read(self) -> str:
        raise NotImplementedError

    def write(self, value: str) -> None:
        raise NotImplementedError

    def check(self, value: str) -> None:
        """Refuse a value that cannot be meant."""

    def same(self, one: str, other: str) -> bool:
        return one.split() == other.split()

    def took(self, wanted: str, got: str) -> bool:
        """After writing @wanted the kernel says @got: is that all right?"""
        return self.same(wanted, got) or self.rounds


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

    def check(self, value: str) -> None:
        memory = lint_rules.Machine(1 << 62)  # what RAM allows is plan's matter
        for found in lint_rules.assignment(
                Assignment("", 0, self.target, " ".join(value.split())), memory):
            if found.level == "error":
                raise UsageError(f"{self.name}={value}: {found.why}")


def kinds() -> dict[str, type[Setting]]:
    # Here, because each of them needs the class above.
    from . import set_ethtool, set_link, set_qdisc, set_queue, set_route
    return {kind.kind: kind for kind in (
        Sysctl, set_link.Mtu, set_link.TxQueueLen, set_ethtool.Ring,
        set_ethtool.Coalesce, set_ethtool.Offload, set_ethtool.Pause,
        set_qdisc.Qdisc, set_queue.Queue, set_queue.Irq, set_route.Route)}


def named(name: str, root: Path = Path("/")) -> Setting:
    """The setting KIND:TARGET."""
    kind, colon, target = name.partition(":")
    known = kinds()
    if not colon or kind not in known:
        raise UsageError(f"{name}: a setting is KIND:TARGET=VALUE, KIND one of "
                         f"{', '.join(known)}")
    return known[kind](target, root)


def parse(text: str, root: Path = Path("/")) -> tuple[Setting, str]:
    """KIND:TARGET=VALUE; net.* alone means sysctl."""
    name, equals, value = text.partition("=")
    if not equals or not value.strip():
        raise UsageError(f"{text}: a setting is KIND:TARGET=VALUE")
    if name.startswith(("net.", "net/")) and ":" not in name:
        name = f"sysctl:{name}"
    setting = named(name.strip(), root)
    setting.check(value.strip())
    return setting, value.strip()
