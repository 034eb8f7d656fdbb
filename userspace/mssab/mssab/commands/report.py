# SPDX-License-Identifier: GPL-2.0-only
"""mssab report: print the result in a directory again, and make its page."""
from __future__ import annotations

import argparse
import json

from ..report import report, result_text


def run(args: argparse.Namespace) -> int:
    manifest, result = report.read(args.directory)
    if args.json:
        print(json.dumps(result, indent=1))
        return 0
    print(result_text.summary(result, manifest["kernel"]), end="")
    print(f"Report: {report.write(args.directory)}")
    return 0
