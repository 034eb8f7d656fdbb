#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Measure how much of a stream of frames a capture program receives
(SDSC/GIAC 2008, "Capture Testing Methodology").  A generator sends at a given
rate: the kernel's (pktgen), or a packet socket where the kernel has none.  tcpdump
decodes every frame as an intrusion detection system would, or stores it.  The loss
is tcpdump's own count of frames that the kernel dropped.

Environment: FRAME (bytes, 1500), RATE_MBIT (200), FRAMES (20000), READER_CPU
(any), SENDER_CPU (0) and SINK: decode, memory (a file in /dev/shm) or disk (a file
below /var/tmp, past the page cache).  Prints one JSON object: captured_percent and
the counts it is computed from.
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

HERE = Path(__file__).resolve().parent
#: Where a file of that sink lies.
SINKS = {"decode": None, "memory": "/dev/shm", "disk": "/var/tmp"}
LISTENS = re.compile(r"listening on veth0")
FIGURES = re.compile(r"(\d+) packets (captured|received by filter|dropped by "
                     r"kernel)")


def generate(frame, rate_mbit, frames, cpu, mac=""):
    """Send; returns Mbit/s as the generator reports it.  @rate_mbit: 0 is as fast
    as it can; @mac: of another host, so that the receiver drops it at once."""
    mac = mac or mac_of_receiver()
    rate = [("veth0", f"ratep {rate_of(frame, rate_mbit)}")] if rate_mbit else []
    thread = f"kpktgend_{cpu}"
    writes = [(thread, "rem_device_all"), (thread, "add_device veth0"),
              ("veth0", f"pkt_size {frame - 4}"), ("veth0", f"count {frames}"),
              *rate,
              ("veth0", f"dst {link.ADDRESS}"), ("veth0", f"dst_mac {mac}"),
              ("veth0", "udp_dst_min 9"), ("veth0", "udp_dst_max 9"),
              ("pgctrl", "start")]
    # Its files belong to the namespace of the process that reads them.
    script = ["cd /proc/net/pktgen || exit",
              *(f"echo {words} >{file} || exit" for file, words in writes),
              "grep Mb/sec veth0"]
    said = link.run(*link.inside(link.SENDER, "sh", "-c", "\n".join(script)))
    return float(re.search(r"(\d+)Mb/sec", said)[1])


def packet_socket(frame, rate_mbit, frames, cpu):
    """Send as generate() does; returns Mbit/s."""
    said = json.loads(link.run(*link.inside(link.SENDER, *link.pinned(
        str(cpu), HERE / "generator.py", "veth0", frame, mac_of_receiver(),
        frames, rate_of(frame, rate_mbit)))))
    return 8000 * frame * frames / said["took_ns"]


def mac_of_receiver():
    return json.loads(link.run(
        "ip", "-n", link.RECEIVER, "-j", "link", "show", "veth0"))[0]["address"]


def reader(sink, cpu, messages):
    """Start the capture program; returns its process and those to wait for."""
    store = SINKS[sink]
    argv = [*link.pinned(cpu, "tcpdump"), "-i", "veth0", "-n", "-s", "0", "-Z", "root",
            *(["-w", "-"] if store else ["-v"]), "udp port 9"]
    tcpdump = subprocess.Popen(
        link.inside(link.RECEIVER, *argv), stderr=messages,
        stdout=subprocess.PIPE if store else subprocess.DEVNULL)
    if not store:
        return tcpdump, [tcpdump]
    with tempfile.NamedTemporaryFile(dir=store) as file:
        # Past the page cache, which would hold the whole file.
        writer = subprocess.Popen(
            [*link.pinned(cpu, "dd"), "iflag=fullblock", "bs=1M", "status=none",
             f"of=/dev/fd/{file.fileno()}",
             *(["oflag=direct"] if sink == "disk" else [])],
            stdin=tcpdump.stdout, pass_fds=[file.fileno()])
    tcpdump.stdout.close()
    return tcpdump, [tcpdump, writer]


def rate_of(frame, rate_mbit):
    """Frames per second."""
    return round(rate_mbit * 1e6 / 8 / frame)


def main():
    frame = int(link.setting("FRAME", "1500"))
    rate = float(link.setting("RATE_MBIT", "200"))
    frames = int(link.setting("FRAMES", "20000"))
    sink = link.setting("SINK", "decode")
    if sink not in SINKS:
        sys.exit(f"capture: SINK={sink}: wants {', '.join(SINKS)}")
    pktgen = Path("/proc/net/pktgen").exists() or not subprocess.run(
        ["modprobe", "pktgen"], check=False, capture_output=True).returncode
    with link.link(max(frame, 1500)), tempfile.TemporaryFile("w+") as said:
        tcpdump, processes = reader(sink, link.setting("READER_CPU", ""), said)
        try:
            await_words(said, LISTENS, tcpdump)
            sent = (generate if pktgen else packet_socket)(
                frame, rate, frames, int(link.setting("SENDER_CPU", "0")))
            time.sleep(1.5)  # it counts whole blocks of the ring, at most 1 s each
        finally:
            tcpdump.send_signal(signal.SIGINT)
            for process in processes:
                process.wait()
        said.seek(0)
        count = {what: int(number)
                 for number, what in FIGURES.findall(said.read())}
    received = count.get("received by filter", 0)
    # Sometimes the kernel counts a frame that finds the ring full twice.
    if not frames <= received <= 1.01 * frames:
        sys.exit(f"capture: {frames} frames sent, tcpdump reports {count}")
    dropped = count["dropped by kernel"]
    print(json.dumps({
        # Frames that wait in the ring at the end are not lost.
        "captured_percent": 100 - 100 * dropped / received,
        "sent": frames, "captured": count["captured"], "frames": received,
        "dropped": dropped, "sent_mbit": sent}))


def await_words(file, words, process):
    for _ in range(500):
        file.seek(0)
        if words.search(file.read()):
            return
        if process.poll() is not None:
            break
        time.sleep(0.02)  # polling interval
    file.seek(0)
    sys.exit(f"capture: tcpdump did not start to listen: {file.read().strip()}")


if __name__ == "__main__":
    main()
