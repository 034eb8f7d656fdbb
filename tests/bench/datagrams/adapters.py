#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Measure what one host receives through one or two network cards (SC2003, section
3.5.2).  Two TCP connections come from two senders, each over its own pair of cards,
or both over the first pair.

Needs the cards eth0 and eth1 on one cable, and eth2 and eth3 on another
(scripts/guest --cables 2).

Environment: CARDS (1 or 2), MTU (9000) and MS (300).  Prints one JSON object: mbit
(both together), fairness (Jain's index) and cpu_per_byte (ns of both ends).
"""
import json
import subprocess
import sys
import time
from contextlib import contextmanager

import link

RECEIVER, SENDERS = "adapters-rx", ("adapters-tx1", "adapters-tx2")
CARRIER_S = 30
#: Both programs are to start within this time, and then begin together.
TOGETHER_MS = 1000
ATTEMPTS = 10


@contextmanager
def cables(count, mtu):
    """Each sender has a card on a cable of its own, while there are cables; the
    receiver has the other ends."""
    used = SENDERS[:count]
    try:
        for end in (RECEIVER, *used):
            link.run("ip", "netns", "add", end)
        ends = [(end, f"eth{2 * n + far}", f"10.9.{n + 1}.{1 + far}/24")
                for n, sender in enumerate(used)
                for far, end in enumerate((sender, RECEIVER))]
        for end, card, address in ends:
            # QEMU before 8.1 cuts what TSO leaves to the card into IP fragments.
            link.run("ethtool", "-K", card, "tso", "off")
            link.run("ip", "link", "set", card, "netns", end)
            link.run("ip", "-n", end, "addr", "add", address, "dev", card)
            link.run("ip", "-n", end, "link", "set", card, "mtu", mtu, "up")
        for end, card, _ in ends:
            await_carrier(end, card)
        yield
    finally:
        # Cards return to the first namespace when theirs ends.
        for end in (RECEIVER, *used):
            subprocess.run(["ip", "netns", "del", end], check=False,
                           capture_output=True)


def await_carrier(end, card):
    for _ in range(5 * CARRIER_S):
        if "LOWER_UP" in link.run("ip", "-n", end, "link", "show", card):
            return
        time.sleep(0.2)  # polling interval
    sys.exit(f"adapters: {card} has no link")


def transfers(cards, ms):
    """What two transfers report that begin together."""
    argv = [["tcpload", "bulk", "--from", SENDERS[n % cards], "--to", RECEIVER,
             "--address", f"10.9.{n % cards + 1}.2", "--port", str(5201 + n),
             "--warmup-ms", "100", "--measure-ms", str(ms),
             "--align-ms", str(TOGETHER_MS)] for n in range(2)]
    period = TOGETHER_MS / 1000
    for _ in range(ATTEMPTS):
        time.sleep(period - time.monotonic() % period)
        both = [subprocess.Popen(one, stdout=subprocess.PIPE, text=True)
                for one in argv]
        out = [one.communicate(timeout=120)[0] for one in both]
        if any(one.returncode for one in both):
            sys.exit("adapters: tcpload failed")
        said = [json.loads(text) for text in out]
        if said[0]["begun_ns"] == said[1]["begun_ns"]:
            return said
    sys.exit(f"adapters: no two transfers began together in {ATTEMPTS} attempts")


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    cards = int(link.setting("CARDS", "1"))
    if cards not in (1, 2):
        sys.exit(f"adapters: CARDS={cards}: wants 1 or 2")
    with cables(cards, int(link.setting("MTU", "9000"))):
        said = transfers(cards, int(link.setting("MS", "300")))
    rates = [one["bytes_per_s"] for one in said]
    print(json.dumps({
        "mbit": sum(rates) * 8 / 1e6,
        "fairness": sum(rates)**2 / (2 * sum(rate**2 for rate in rates)),
        "cpu_per_byte": sum(one["cpu_ns"] for one in said)
        / sum(one["received"] for one in said)}))


if __name__ == "__main__":
    main()
