# SPDX-License-Identifier: GPL-2.0
"""What apply, verify and auto may touch: not a setting that loses packets unless
allowed, not the operator's own connection, not a setting that another running
program writes.
"""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import conflicts, system
from .errors import TuneError
from .setting import Setting


@dataclass(frozen=True)
class Permissions:
    """What the user allowed."""

    disruptive: bool = False    # settings that may lose packets for a moment
    rivals: bool = False        # settings that another program writes again


def session_device() -> str:
    """The device that carries the operator's ssh session."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    if len(words) != 4:
        return ""
    for device in json.loads(system.run("ip", "-j", "addr", "show")):
        if any(info.get("local") == words[2]
               for info in device.get("addr_info", [])):
            return str(device["ifname"])
    return ""


def check(settings: Sequence[Setting], allowed: Permissions,
          tell: Callable[[str], None]) -> None:
    """Raise if one of @settings must not be written; @tell gets the notes."""
    disruptive = [s for s in settings if s.disruptive]
    if disruptive and not allowed.disruptive:
        raise TuneError(f"{disruptive[0].name} may lose packets for a moment; "
                        "--allow-disruptive permits it")
    if disruptive:
        here = session_device()
        for setting in disruptive:
            if setting.device == here:
                raise TuneError(f"{setting.name}: your ssh session uses {here}; "
                                "log in another way")
    for rival, names in conflicts.find(settings, conflicts.running()):
        tell(f"note: {', '.join(names)}: {rival.rule}")
        if rival.blocks and not allowed.rivals:
            raise TuneError(f"{rival.comm} is running; stop it or give "
                            "--despite-rivals")
