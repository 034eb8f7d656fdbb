#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Send datagrams at a rising rate, with iperf3 over UDP (CESNET 2003, section 6,
which used RUDE and CRUDE).

Environment: PACKET (bytes with headers, 1500), STEPS_MBIT ("100 200 400 ..."),
STEP_MS (duration of a step, 200), SENDER_CPU and RECEIVER_CPU (any; the second also
does the kernel's work on received packets), and PACING_US (iperf3 sends what is due
each so many microseconds, 1000).  Prints one JSON object: top_mbit, the highest
rate that arrived in any step; clean_mbit, the highest with at most 1 % lost; and
for each step the rate that arrived, the loss, and the CPU that iperf3 used at
either end in %.
"""
import json
import subprocess
import sys
import time

import link

HEADERS = 28            # IPv4 and UDP
LOST_PERCENT = 1.0
PORT = 5201


def step(mbit, packet, ms):
    """The payload rate that arrived in Mbit/s, the loss in %, and the CPU of
    sender and receiver in %."""
    size = packet - HEADERS
    count = max(20, round(mbit * 1e6 / 8 * ms / 1000 / size))
    server = subprocess.Popen(
        link.inside(link.RECEIVER, *link.pinned(
            link.setting("RECEIVER_CPU", ""), "iperf3", "-s", "-1", "-p", PORT, "-J")),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        await_server()
        sender = json.loads(link.run(*link.inside(
            link.SENDER, *link.pinned(
                link.setting("SENDER_CPU", ""), "iperf3", "-c", link.ADDRESS, "-p",
                PORT, "-u", "-J", "-b", round(mbit * 1e6), "-l", size,
                "-n", count * size,
                "--pacing-timer", link.setting("PACING_US", "1000")))))
        said = json.loads(server.communicate(timeout=60)[0])
    finally:
        server.kill()
        server.wait()
    if "error" in said:
        sys.exit(f"ramp: iperf3: {said['error']}")
    total = said["end"]["sum"]
    arrived = total["packets"] - total["lost_packets"]
    return (arrived * size * 8 / total["seconds"] / 1e6,
            100 * total["lost_packets"] / max(total["packets"], 1),
            *(end["end"]["cpu_utilization_percent"]["host_total"]
              for end in (sender, said)))


def await_server():
    for _ in range(500):
        if link.run(*link.inside(link.RECEIVER, "ss", "-Htln",
                                 f"sport = {PORT}")):
            return
        time.sleep(0.02)  # polling interval
    sys.exit("ramp: iperf3 did not start to listen")


def main():
    packet = int(link.setting("PACKET", "1500"))
    steps = [float(word) for word in link.setting(
        "STEPS_MBIT", "100 200 400 800 1600 3200").split()]
    ms = float(link.setting("STEP_MS", "200"))
    out = {}
    clean = top = 0.0
    with link.link(packet):
        if cpu := link.setting("RECEIVER_CPU", ""):
            link.run(*link.inside(
                link.RECEIVER, "sh", "-c", f"echo {1 << int(cpu):x} "
                ">/sys/class/net/veth0/queues/rx-0/rps_cpus"))
        for mbit in steps:
            arrived, lost, sender, receiver = step(mbit, packet, ms)
            out |= {f"arrived_{mbit:g}": arrived, f"lost_{mbit:g}": lost,
                    f"sender_cpu_{mbit:g}": sender,
                    f"receiver_cpu_{mbit:g}": receiver}
            top = max(top, arrived)
            if lost <= LOST_PERCENT:
                clean = max(clean, arrived)
    print(json.dumps({"top_mbit": top, "clean_mbit": clean} | out))


if __name__ == "__main__":
    main()
