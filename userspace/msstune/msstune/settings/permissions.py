# SPDX-License-Identifier: GPL-2.0-only
"""What apply, verify and auto may touch: not a setting that loses packets unless
allowed, not the operator's own connection, not a setting that another running
program writes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from . import conflicts, operator_session
from ..errors import TuneError
from .operator_session import Carriers, prefix
from .route import Route
from .setting import Setting


@dataclass(frozen=True)
class Permissions:
    """What the user allowed."""

    disruptive: bool = False    # settings that may lose packets for a moment
    rivals: bool = False        # settings that another program writes again


#: Attributes of a route that existing connections use.
ROUTE_ATTRIBUTES = ("mtu", "window", "cwnd", "hoplimit")


def check_session(settings: Sequence[Setting], here: Carriers) -> None:
    """Raise if a setting could cut off the operator."""
    for setting in settings:
        if setting.disruptive and setting.device in here.devices:
            raise TuneError(f"{setting.name}: your remote session uses "
                            f"{setting.device}; log in another way")
        if isinstance(setting, Route) and setting.attribute in ROUTE_ATTRIBUTES \
                and prefix(setting.prefix) in here.routes:
            raise TuneError(f"{setting.name}: your remote session uses this route; "
                            "log in another way")


def check(settings: Sequence[Setting], allowed: Permissions,
          tell: Callable[[str], None]) -> None:
    """Raise if one of @settings must not be written; @tell gets the notes."""
    disruptive = [s for s in settings if s.disruptive]
    if disruptive and not allowed.disruptive:
        raise TuneError(f"{disruptive[0].name} may lose packets for a moment; "
                        "--allow-disruptive permits it")
    if disruptive or any(isinstance(s, Route) for s in settings):
        check_session(settings, operator_session.carriers())
    for rival, names in conflicts.find(settings, conflicts.running()):
        tell(f"note: {', '.join(names)}: {rival.rule}")
        if rival.blocks and not allowed.rivals:
            raise TuneError(f"{rival.comm} is running; stop it or give "
                            "--despite-rivals")
