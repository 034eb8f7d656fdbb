# SPDX-License-Identifier: GPL-2.0-only
"""The kernel module mssfrac: the settings an arm may hold, and what the running
kernel reports of the module."""
from __future__ import annotations

from pathlib import Path

from .keys import Key

#: Settings below net.mssfrac.*; the defaults are those of a bare insmod.
SETTINGS = {
    "rx_frac": Key(0, 0, 64),
    "tx_frac": Key(0, 0, 64),
    "rx_mss_est": Key(0, 0, 1),
    "tx_steady": Key(0, 0, 1),
    "seg_max": Key(32, 2, 256),
    "ab_percent": Key(100, 0, 100),
    "ab_seed": Key(0, 0, 2**32 - 1),
}
_PARAMETERS = Path("/sys/module/mssfrac/parameters")


def loaded() -> bool:
    return Path("/proc/net/mssfrac").exists()


def start_value(key: str) -> int:
    """The value of a setting in a new namespace."""
    return int((_PARAMETERS / key).read_text("ascii"))


def version() -> str:
    """A string that differs between builds of the module; "" if it is not
    loaded."""
    try:
        return _PARAMETERS.with_name("srcversion").read_text("ascii").strip()
    except OSError:
        return "loaded" if loaded() else ""
