# SPDX-License-Identifier: GPL-2.0-only
"""msstune recovery: calculate the time to recover from one lost segment."""
from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from . import options
from .. import units
from ..causes import recovery
from ..errors import UsageError


def add(commands: options.Commands) -> None:
    cmd = commands.add_parser(
        "recovery", help="calculate how long recovery from one loss takes",
        description="Calculate the time from one lost segment until the path is "
        "full again, for a window that just filled it.")
    cmd.add_argument("--rate", type=units.rate, metavar="RATE",
                     help="rate of the path, bit/s: 10G, 622mbit")
    cmd.add_argument("--rtt", type=units.seconds, metavar="TIME",
                     help="round-trip time: 120ms, 50us")
    cmd.add_argument("--mss", type=units.whole(1, 65535), metavar="BYTES",
                     help="payload bytes of a segment")
    cmd.add_argument("--cc", choices=sorted(recovery.ALGORITHMS),
                     help="only this congestion control (default: all)")
    cmd.add_argument("--table", action="store_true",
                     help="the five paths of the paper's table 1")
    options.add_json(cmd)
    cmd.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    given = [args.rate, args.rtt, args.mss]
    paths: list[tuple[str, float, float, int]]
    if args.table:
        if any(given):
            raise UsageError("--table has its own paths: give no --rate, --rtt or "
                             "--mss")
        paths = [row[:4] for row in recovery.TABLE_1]
    elif all(given):
        paths = [("", args.rate, args.rtt, args.mss)]
    else:
        raise UsageError("recovery needs --rate, --rtt and --mss, or --table")
    names = [args.cc] if args.cc else list(recovery.ALGORITHMS)
    rows = [(path, recovery.recoveries(*path[1:], names)) for path in paths]
    if args.json:
        print(json.dumps({
            "format": "msstune-recovery", "version": 1,
            "paths": [{"path": path, "rate": rate, "rtt": rtt, "mss": mss,
                       "window": recovery.window(rate, rtt, mss),
                       "recovery": [asdict(answer) for answer in answers]}
                      for (path, rate, rtt, mss), answers in rows]}))
        return 0
    for (path, rate, rtt, mss), answers in rows:
        print(f"{path + ': ' if path else ''}{units.bits(rate)}, "
              f"RTT {units.duration(rtt)}, MSS {mss}: window "
              f"{recovery.window(rate, rtt, mss):,.0f} segments")
        for answer in answers:
            print(f"  {answer.cc:6} {units.duration(answer.seconds):>12}  "
                  f"{answer.how}")
    print("\nSources:")
    for source in dict.fromkeys(answer.source for _, answers in rows
                                for answer in answers):
        print(f"  {source}")
    return 0
