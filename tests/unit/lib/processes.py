# SPDX-License-Identifier: GPL-2.0-only
"""What tests ask about processes that are not their children."""
from pathlib import Path


def has_ended(pid: str) -> bool:
    """Has it ended?  It is a zombie until its new parent reaps it, which may be
    between opening and reading its state."""
    try:
        return ") Z " in Path("/proc", pid, "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
