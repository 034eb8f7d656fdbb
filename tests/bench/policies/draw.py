#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Writes a grid of windows drawn at random, from one seed.

  draw.py [--wide] [SEED] >FILE.toml    default: the seed of make bench-policies

40 windows on clean paths; with --wide 200 of any MTU and round trip, 40 % of them
with a reader that rests, loss, reordering or jitter."""
import argparse
import math
import random

SEED = 20261125
HEAD = """\
# SPDX-License-Identifier: GPL-2.0-only
# Windows drawn at random by draw.py ({options}seed {seed}), with the receiver's half
# of the module and without.  make bench-policies measures them.
title = "Held-out windows"

[arms]
stock = {{}}
again = {{}}
sender = {{ tx_frac = 64 }}
both = {{ rx_frac = 64, tx_frac = 64 }}
"""


def logarithmic(draw, least, most):
    return math.exp(draw.uniform(math.log(least), math.log(most)))


def clean(draw):
    mtu = draw.choice([1500, 4000, 8160, 9000, 12000, 16000])
    rtt = draw.choice([2, 3, 5, 10, 20, 40])
    scaling = draw.random() < 0.6
    most = 22 if scaling else min(22, 65535 / (mtu - 52))
    return {"mtu": mtu, "rtt_ms": rtt,
            "window_segments": round(logarithmic(draw, 1.5, most), 2),
            "window_scaling": scaling, "seed": draw.randrange(1000),
            "warmup_rounds": 100, "measure_rounds": 60}


def condition(draw, rtt):
    """Settings of one condition, and how many round trips show it."""
    kind = draw.choice(["reader", "loss", "reordering", "jitter"])
    if kind == "reader":
        pause = round(logarithmic(draw, 1, 100))
        # One rest more or less may decide: as long as 200 rests, at least.
        return ({"pause_ms": pause,
                 "pause_bytes": round(logarithmic(draw, 2000, 500000))},
                max(300, round(200 * pause / rtt)))
    if kind == "loss":
        return {"loss_percent": round(logarithmic(draw, 0.1, 2), 2)}, 400
    if kind == "reordering":
        return {"reorder_percent": round(logarithmic(draw, 0.5, 25), 1)}, 200
    return {"jitter_ms": round(rtt * draw.uniform(0.05, 0.5), 2)}, 200


def wide(draw):
    mtu = draw.randint(1280, 12000)
    rtt = round(logarithmic(draw, 0.3, 80), 2)
    scaling = draw.random() < 0.6
    most = 12 if scaling else min(12, 65535 / (mtu - 52))
    settings, rounds = condition(draw, rtt) if draw.random() < 0.4 else ({}, 60)
    return {"mtu": mtu, "rtt_ms": rtt,
            "window_segments": round(logarithmic(draw, 0.5, most), 2),
            "window_scaling": scaling, **settings, "seed": draw.randrange(1000),
            "warmup_rounds": 100, "measure_rounds": rounds}


def main(seed, is_wide):
    draw = random.Random(seed)
    print(HEAD.format(options="--wide, " * is_wide, seed=seed), end="")
    for _ in range(200 if is_wide else 40):
        print('\n[[cells]]\nload = "tcpload"')
        for key, value in (wide if is_wide else clean)(draw).items():
            print(f"{key} = {str(value).lower()}")


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--wide", action="store_true")
parser.add_argument("seed", type=int, nargs="?", default=SEED)
args = parser.parse_args()
main(args.seed, args.wide)
