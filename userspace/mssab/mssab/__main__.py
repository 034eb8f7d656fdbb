# SPDX-License-Identifier: GPL-2.0-only
"""python3 -m mssab."""
import sys

# Before anything is imported that needs it.
if sys.version_info < (3, 11):  # noqa: UP036
    print("mssab: needs Python 3.11 or newer, this is "
          + ".".join(map(str, sys.version_info[:2])), file=sys.stderr)
    sys.exit(3)

from .cli import main  # noqa: E402

sys.exit(main())
