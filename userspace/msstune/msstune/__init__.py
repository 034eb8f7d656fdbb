# SPDX-License-Identifier: GPL-2.0-only
"""msstune: finds what limits TCP, and changes settings with an undo."""
from pathlib import Path

__version__ = Path(__file__).with_name("VERSION").read_text("ascii").strip()
