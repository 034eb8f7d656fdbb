# SPDX-License-Identifier: GPL-2.0-only
"""Paths drawn at random that lose: a policer, random losses, losses in bursts.  What
msstune makes of each, as its default watches it (without a recording).

usage: lossy_paths.py list|run
MSSTUNE_SEED=N in the environment: the seed, 1 by default.
MSSTUNE_PATHS=N in the environment: the number of paths of each kind (8).
FACTS=DIR in the environment: store the facts of each path in DIR.

Policers pass 200 to 3,000 kB/s with bursts of 6 to 40 kB; random losses are 0.3 to
8 %; a burst (gemodel) begins with 0.1 to 2 % of the packets and ends with 20 to 60 %.
Round trips are 10 to 80 ms, connections one to three.  Packets have one segment, as
on a wire, or at most two, which are lost together.
"""
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import path_faults  # noqa: E402
import faults  # noqa: E402
from faults import sh, tell  # noqa: E402
from held_out_loads import MIDDLE, stream  # noqa: E402
from held_out_loads_3 import receiver  # noqa: E402
from held_out_path_faults_5 import office  # noqa: E402
from mssab.netns import inside  # noqa: E402
from msstune import collect  # noqa: E402
from path_faults import A  # noqa: E402
from wide_faults import discard, programs  # noqa: E402

SEED = int(os.environ.get("MSSTUNE_SEED", "1"))
PATHS = int(os.environ.get("MSSTUNE_PATHS", "8"))
WARM_UP = 4.0
#: The right limits of each kind, and the share of its paths that must have one.
#: Some are alike from here: Documentation/results/policers.rst has what was reached.
KINDS = {"policer": ({"policer"}, 0.5), "random": ({"loss"}, 0.8),
         "bursts": ({"loss"}, 0.4)}
CHECKS = [f"{kind}: {least:.0%} are named" for kind, (_, least) in KINDS.items()]
CHECKS += ["none is wrong with high confidence"]


def drawn(kind, number):
    """The parameters of a path: a round trip, connections, what the router does,
    segments of a packet."""
    source = random.Random(f"{SEED} {kind} {number}")
    rtt, count, port = (source.randint(10, 80), source.randint(1, 3),
                        source.randint(2000, 30000))
    if kind == "policer":
        there, police = "", (f"police rate {source.randint(200, 3000) * 8}kbit burst "
                             f"{source.randint(6, 40)}kb conform-exceed drop")
    elif kind == "random":
        there, police = f"loss {source.uniform(0.3, 8):.2f}%", ""
    else:
        there, police = (f"loss gemodel {source.uniform(0.1, 2):.2f}% "
                         f"{source.uniform(20, 60):.0f}%"), ""
    return rtt, count, port, there, police, source.randint(1, 2)


def watch(kind, number):
    """The first diagnosis, and whether the path lost meanwhile."""
    rtt, count, port, there, police, segments = drawn(kind, number)
    office(rtt, segments, there)
    if police:
        sh(f"tc -n {MIDDLE} qdisc add dev ma clsact; tc -n {MIDDLE} filter add dev ma "
           f"ingress matchall action {police}")
    with programs(receiver(port, discard), *[stream(port)] * count):
        time.sleep(WARM_UP)
        with inside(A):
            facts = collect.collect(path_faults.INTERVAL)
    if os.environ.get("FACTS"):
        Path(os.environ["FACTS"], f"{kind}-{number}.json").write_text(json.dumps(facts))
    answer = faults.first(facts)[1]
    lost = sum(f["d_total_retrans"] for f in facts["flows"])
    numbers = answer.numbers if answer else {}
    varies = numbers.get("rate_varies")
    tell(f"{kind} {number}: {rtt} ms, {count} connections, {segments} segments, "
         f"{there or police}: "
         f"{answer.limit if answer else 'nothing'}, "
         f"{answer.confidence if answer else '-'}; {lost} sent again, "
         f"{numbers.get('losses_per_recovery', 0):.1f} for each recovery, rate varies "
         f"by {'?' if varies is None else f'{varies:.1%}'}, {facts['interval']:.1f} s")
    return answer, lost


def main():
    if sys.argv[1] == "list":
        return print("\n".join(CHECKS))
    wrong = 0
    for check, (kind, (right, least)) in zip(CHECKS, KINDS.items()):
        named = counted = 0
        for number in range(PATHS):
            try:
                answer, lost = watch(kind, number)
            except (OSError, subprocess.CalledProcessError, KeyError) as error:
                answer, lost = None, 1
                tell(f"{kind} {number}: {error!r}")
            good = bool(answer) and answer.limit in right
            counted += lost > 0     # it may lose nothing for some seconds
            named += good and lost > 0
            wrong += bool(answer) and not good and answer.confidence == "high"
        tell(f"{kind}: {named} of {counted}",
             f"{'ok' if counted and named >= least * counted else 'not ok'} {check}")
    tell(f"{'not ok' if wrong else 'ok'} {CHECKS[-1]}")
    for end in (path_faults.A, path_faults.B, MIDDLE):
        subprocess.run(["ip", "netns", "del", end], check=False)


if __name__ == "__main__":
    main()
