#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Print packets of a captured transfer, one a line: milliseconds, direction, bytes
from the first one on, and the receiver's window.

usage: sequence.py FILE.pcap SKIP COUNT   leaves out SKIP packets of the connection
"""
import re
import subprocess
import sys

LINE = re.compile(r"(?P<time>[\d.]+) IP \S+\.(?P<port>\d+) > .*? Flags "
                  r"\[(?P<flags>[^\]]+)\],(?: seq (?P<seq>\d+)(?::(?P<end>\d+))?,)?"
                  r"(?: ack (?P<ack>\d+),)? win (?P<win>\d+)")
SCALE = re.compile(r"wscale (\d+)")
RECEIVER_PORT = "7000"


def packets(text):
    """(seconds, is data, first byte, last byte + 1, window) of each packet."""
    shift = first = 0
    for line in text.splitlines():
        found = LINE.match(line)
        if not found:
            continue
        from_receiver = found["port"] == RECEIVER_PORT
        if "S" in found["flags"]:
            if from_receiver:
                shift = int(SCALE.search(line)[1])
            else:
                first = int(found["seq"]) + 1
            continue
        if from_receiver:
            yield (float(found["time"]), False, 0,
                   (int(found["ack"]) - first) % 2**32, int(found["win"]) << shift)
        elif found["end"]:
            yield (float(found["time"]), True, (int(found["seq"]) - first) % 2**32,
                   (int(found["end"]) - first) % 2**32, 0)


def main(file, skip, count):
    text = subprocess.run(["tcpdump", "-r", file, "-n", "-S", "-tt"],
                          capture_output=True, text=True, check=True).stdout
    chosen = list(packets(text))[int(skip):int(skip) + int(count)]
    base, origin = (chosen[0][0], chosen[0][3]) if chosen else (0, 0)
    for time, is_data, start, end, window in chosen:
        what = (f"data {start - origin:7d} .. {end - origin:7d}  ({end - start})"
                if is_data else
                f"             ack {end - origin:7d}  window {window}")
        print(f"{1000 * (time - base):9.1f} ms  {what}")


if __name__ == "__main__":
    main(*sys.argv[1:])
