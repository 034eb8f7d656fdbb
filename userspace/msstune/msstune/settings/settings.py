# SPDX-License-Identifier: GPL-2.0-only
"""The list of all kinds of settings, and the reader of KIND:TARGET=VALUE, which
is the spelling on the command line, in plans and in the journal.
"""
from __future__ import annotations

from pathlib import Path

from . import ethtool, link, ntuple, qdisc, queue, route, rss, sysctl
from ..errors import UsageError
from .setting import Setting

KINDS: dict[str, type[Setting]] = {kind.kind: kind for kind in (
    sysctl.Sysctl, link.Mtu, link.TxQueueLen, ethtool.Ring,
    ethtool.Channels, ethtool.Coalesce, ethtool.Offload,
    ethtool.Pause, rss.Rss, ntuple.Ntuple,
    qdisc.Qdisc, queue.Queue, queue.Irq, route.Route)}


def named(name: str, root: Path = Path("/")) -> Setting:
    """The setting KIND:TARGET."""
    kind, colon, target = name.partition(":")
    if not colon or kind not in KINDS:
        raise UsageError(f"{name}: a setting is KIND:TARGET=VALUE, KIND one of "
                         f"{', '.join(KINDS)}")
    return KINDS[kind](target, root)


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
