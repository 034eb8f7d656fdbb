#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Measure what a host can move, and what TCP moves: the kernel's packet generator,
or copying memory, against one connection (SC2003, section 3.5.2).

Environment: LOAD (pktgen, memory or tcp), MTU (8160), FRAMES (20000) and MS (200).
Prints one JSON object: mbit.
"""
import json
import sys
import time
from pathlib import Path

import capture
import link

ETHERNET = 14
#: Belongs to no device here: the receiver drops the frame before any protocol.
NOBODY = "02:00:00:00:00:01"
#: Bytes of one array of STREAM: more than four times any cache (McCalpin).
ARRAY = 128 << 20


def memory(ms):
    """Mbit/s that STREAM's copy moves: the bytes read and those written."""
    # Not zeros: those are one page, read again and again.
    source, target = memoryview(b"x" * ARRAY), memoryview(bytearray(ARRAY))
    target[:] = source      # the first copy allocates the pages
    copies, begun = 0, time.monotonic_ns()
    while (took := time.monotonic_ns() - begun) < ms * 1_000_000 or not copies:
        target[:] = source
        copies += 1
    return copies * 2 * ARRAY * 8 * 1000 / took


def tcp(ms):
    """Payload in Mbit/s."""
    said = json.loads(link.run(
        "tcpload", "bulk", "--from", link.SENDER, "--to", link.RECEIVER,
        "--address", link.ADDRESS, "--warmup-ms", "100", "--measure-ms", ms))
    return said["bytes_per_s"] * 8 / 1e6


def main():
    load, mtu = link.setting("LOAD", "pktgen"), int(link.setting("MTU", "8160"))
    ms = int(link.setting("MS", "200"))
    if load not in ("pktgen", "memory", "tcp"):
        sys.exit(f"ceiling: LOAD={load}: wants pktgen, memory or tcp")
    if load == "memory":
        print(json.dumps({"mbit": memory(ms)}))
        return
    if load == "pktgen" and not Path("/proc/net/pktgen").exists():
        link.run("modprobe", "pktgen")
    with link.link(mtu):
        mbit = tcp(ms) if load == "tcp" else \
            capture.generate(mtu + ETHERNET + 4, 0,
                             int(link.setting("FRAMES", "20000")), 0, NOBODY)
    print(json.dumps({"mbit": mbit}))


if __name__ == "__main__":
    main()
