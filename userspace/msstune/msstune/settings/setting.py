# SPDX-License-Identifier: GPL-2.0-only
"""The base class of everything that can be set: how it is named, read, written
and compared.  The journal and the transaction use only this interface; the
kinds are in set_*.py, their list in settings.py.
"""
from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from ..errors import NotSupported


class Setting:
    """One thing with a value.  @target: its name without KIND:."""

    kind: ClassVar[str]
    #: The kernel or driver may round the value that is written.
    rounds: ClassVar[bool] = False
    #: A write may lose packets, or take the link down for a moment.
    disruptive: ClassVar[bool] = False

    def __init__(self, target: str, root: Path) -> None:
        if str(root) != "/" and self.kind != "sysctl":
            raise NotSupported(f"{self.kind}: not possible with --root")
        self.target = target
        self.root = root

    @property
    def name(self) -> str:
        return f"{self.kind}:{self.target}"

    @property
    def device(self) -> str:
        """The network device it belongs to, or an empty string."""
        return ""

    def identity(self) -> str:
        """Changes when the name starts to mean another object."""
        return ""

    def read(self) -> str:
        raise NotImplementedError

    def write(self, value: str) -> None:
        raise NotImplementedError

    def check(self, value: str) -> None:
        """Raise UsageError for a value that must not be written."""

    def same(self, one: str, other: str) -> bool:
        return one.split() == other.split()

    def took(self, written: str, got: str) -> bool:
        """Whether @got, read after the write, is what @written leads to."""
        return self.same(written, got) or self.rounds
