#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes a grid of 40 windows drawn at random, from one seed.

  draw.py [SEED] >FILE.toml    default: the seed of held-out.toml"""
import argparse
import math
import random

SEED = 20261125
HEAD = """\
# SPDX-License-Identifier: GPL-2.0-only
# Windows drawn at random by draw.py (seed {seed}), with the receiver's half of the
# module and without.  make bench-policies measures them.
title = "Held-out windows"

[arms]
stock = {{}}
again = {{}}
sender = {{ tx_frac = 64 }}
both = {{ rx_frac = 64, tx_frac = 64 }}
"""


def main(seed):
    draw = random.Random(seed)
    print(HEAD.format(seed=seed), end="")
    for _ in range(40):
        mtu = draw.choice([1500, 4000, 8160, 9000, 12000, 16000])
        rtt = draw.choice([2, 3, 5, 10, 20, 40])
        scaling = draw.random() < 0.6
        most = 22 if scaling else min(22, 65535 / (mtu - 52))
        window = round(math.exp(draw.uniform(math.log(1.5), math.log(most))), 2)
        print(f"""
[[cells]]
load = "tcpload"
mtu = {mtu}
rtt_ms = {rtt}
window_segments = {window}
window_scaling = {str(scaling).lower()}
seed = {draw.randrange(1000)}
warmup_rounds = 100
measure_rounds = 60""")


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("seed", type=int, nargs="?", default=SEED)
main(parser.parse_args().seed)
