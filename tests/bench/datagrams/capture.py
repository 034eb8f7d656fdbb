#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0
"""How much of a stream of frames a capturing program gets to see: the kernel's
packet generator sends at a given rate, tcpdump takes every frame apart as an
intrusion detection would, and its own count of what the kernel dropped is the
loss (SDSC/GIAC 2008, "Capture Testing Methodology").

Environment: FRAME (bytes, 1500), RATE_MBIT (200), FRAMES (20000), READER_CPU
and SENDER_CPU (any; 0).  Prints one JSON object: captured_percent and what it is
made of.
"""
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import link

LISTENS = re.compile(r"listening on veth0")
FIGURES = re.compile(r"(\d+) packets (captured|received by filter|dropped by "
                     r"kernel)")


def generate(frame, rate_mbit, frames, cpu):
    """Send, and return Mbit/s as the generator tells it."""
    mac = json.loads(link.run("ip", "-n", link.RECEIVER, "-j", "link", "show",
                              "veth0"))[0]["address"]
    thread = f"kpktgend_{cpu}"
    writes = [(thread, "rem_device_all"), (thread, "add_device veth0"),
              ("veth0", f"pkt_size {frame - 4}"), ("veth0", f"count {frames}"),
              ("veth0", f"ratep {rate_of(frame, rate_mbit)}"),
              ("veth0", f"dst {link.ADDRESS}"), ("veth0", f"dst_mac {mac}"),
              ("veth0", "udp_dst_min 9"), ("veth0", "udp_dst_max 9"),
              ("pgctrl", "start")]
    # Its files belong to the namespace of whoever looks at them.
    script = ["cd /proc/net/pktgen || exit",
              *(f"echo {words} >{file} || exit" for file, words in writes),
              "grep Mb/sec veth0"]
    said = link.run(*link.inside(link.SENDER, "sh", "-c", "\n".join(script)))
    return float(re.search(r"(\d+)Mb/sec", said)[1])


def rate_of(frame, rate_mbit):
    """Frames a second."""
    return round(rate_mbit * 1e6 / 8 / frame)


def main():
    frame = int(link.setting("FRAME", "1500"))
    rate = float(link.setting("RATE_MBIT", "200"))
    frames = int(link.setting("FRAMES", "20000"))
    if not Path("/proc/net/pktgen").exists():
        link.run("modprobe", "pktgen")
    with link.link(max(frame, 1500)), tempfile.TemporaryFile("w+") as said, \
            subprocess.Popen(
                link.inside(link.RECEIVER, *link.pinned(
                    link.setting("READER_CPU", ""), "tcpdump", "-i", "veth0",
                    "-n", "-s", "0", "-Z", "root", "-v",
                    "udp port 9")),
                stderr=said, stdout=subprocess.DEVNULL) as reader:
        try:
            await_words(said, LISTENS, reader)
            sent = generate(frame, rate, frames,
                            int(link.setting("SENDER_CPU", "0")))
            time.sleep(1.5)  # it counts by blocks of the ring, of 1 s at most
        finally:
            reader.send_signal(signal.SIGINT)
            reader.wait()
        said.seek(0)
        count = {what: int(number)
                 for number, what in FIGURES.findall(said.read())}
    received = count.get("received by filter", 0)
    # The kernel counts a frame that meets a full ring twice, now and then.
    if not frames <= received <= 1.01 * frames:
        sys.exit(f"capture: {frames} frames sent, and tcpdump tells {count}")
    dropped = count["dropped by kernel"]
    print(json.dumps({
        # What still waits in the ring at the end is not lost.
        "captured_percent": 100 - 100 * dropped / received,
        "frames": received, "dropped": dropped, "sent_mbit": sent}))


def await_words(file, words, process):
    for _ in range(500):
        file.seek(0)
        if words.search(file.read()):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)  # polling interval
    file.seek(0)
    sys.exit(f"capture: tcpdump does not listen: {file.read().strip()}")


if __name__ == "__main__":
    main()
