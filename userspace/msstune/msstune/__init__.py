# SPDX-License-Identifier: GPL-2.0
"""msstune: what limits TCP here, and settings that can be undone."""
from pathlib import Path

__version__ = Path(__file__).with_name("VERSION").read_text("ascii").strip()
