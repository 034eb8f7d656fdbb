# SPDX-License-Identifier: GPL-2.0-only
"""Entry point of python3 -m msstune."""
import sys

from .cli import main

sys.exit(main())
