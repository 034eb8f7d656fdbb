# SPDX-License-Identifier: GPL-2.0-only
"""mssab: A/B experiments on TCP windows."""
from pathlib import Path

__version__ = Path(__file__).with_name("VERSION").read_text("ascii").strip()
