# SPDX-License-Identifier: GPL-2.0
"""python3 -m mssab."""
import sys

from .cli import main

sys.exit(main())
