# SPDX-License-Identifier: GPL-2.0-only
"""python3 -m mssab."""
import sys

from .cli import main

sys.exit(main())
