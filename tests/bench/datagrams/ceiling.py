#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Measure what a host can move, and what TCP moves: the kernel's packet generator
against one connection over the same link (SC2003, section 3.5.2).

Environment: LOAD (pktgen or tcp), MTU (8160), FRAMES (20000) and MS (200).  Prints
one JSON object: mbit.
"""
import json
import sys
from pathlib import Path

import capture
import link

ETHERNET = 14
#: Belongs to no device here: the receiver drops the frame before any protocol.
NOBODY = "02:00:00:00:00:01"


def tcp(ms):
    """Payload in Mbit/s."""
    said = json.loads(link.run(
        "tcpload", "bulk", "--from", link.SENDER, "--to", link.RECEIVER,
        "--address", link.ADDRESS, "--warmup-ms", "100", "--measure-ms", ms))
    return said["bytes_per_s"] * 8 / 1e6


def main():
    load, mtu = link.setting("LOAD", "pktgen"), int(link.setting("MTU", "8160"))
    if load not in ("pktgen", "tcp"):
        sys.exit(f"ceiling: LOAD={load}: wants pktgen or tcp")
    if load == "pktgen" and not Path("/proc/net/pktgen").exists():
        link.run("modprobe", "pktgen")
    with link.link(mtu):
        mbit = tcp(int(link.setting("MS", "200"))) if load == "tcp" else \
            capture.generate(mtu + ETHERNET + 4, 0,
                             int(link.setting("FRAMES", "20000")), 0, NOBODY)
    print(json.dumps({"mbit": mbit}))


if __name__ == "__main__":
    main()
