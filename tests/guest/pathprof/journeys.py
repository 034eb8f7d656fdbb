#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Sums the events of an events file by path, without pathprof's help, and
compares them with what the kernel summed up meanwhile: every path must have
the same packets, bytes, segments and time in every stage, to the nanosecond.

    journeys.py EVENTS-FILE PROFILE-FILE

Prints the counts, or what differs (status 1)."""
import collections
import json
import sys

STAGES = 32


def key(path):
    return (path["direction"], path["family"], path["end"], path["reason"],
            tuple(sorted(path["flags"])), tuple(sorted(path["facts"])))


def replay(events):
    """Stages in order, and the time of each.

    A stage that comes twice in a row is one.  The time before an event counts
    to the last stage of the path; an event marked "again" goes back to a stage
    of the path from the one the packet is in."""
    stages, times, last, at = [], [], None, 0
    for event in events:
        again = event.get("again", False)
        if stages:
            if not again:
                at = len(stages) - 1
            times[at] += event["took_ns"]
        if again:
            at = stages.index(event["stage"])
        elif event["stage"] == last or len(stages) == STAGES:
            continue
        else:
            at = len(stages)
            stages.append(event["stage"])
            times.append(0)
        last = event["stage"]
    return tuple(stages), times


def sums_of_events(lines):
    sums = collections.defaultdict(lambda: [0, 0, 0, [0] * STAGES])
    for line in lines:
        packet = json.loads(line)
        stages, times = replay(packet["events"])
        s = sums[key(packet) + (stages,)]
        s[0] += 1
        s[1] += packet["bytes"]
        s[2] += packet["segments"]
        for i, ns in enumerate(times):
            s[3][i] += ns
    return sums


def sums_of_profile(profile):
    # Two CPUs may each have made an entry of a path.
    sums = collections.defaultdict(lambda: [0, 0, 0, [0] * STAGES])
    for path in profile["paths"]:
        s = sums[key(path) + (tuple(path["stages"]),)]
        s[0] += path["packets"]
        s[1] += path["bytes"]
        s[2] += path["segments"]
        for i, ns in enumerate(path["stage_ns"]):
            s[3][i] += ns
    return sums


def main(events_file, profile_file):
    with open(profile_file) as f:
        profile = json.load(f)
    with open(events_file) as f:
        head = json.loads(next(f))
        seen = sums_of_events(f)
    want = sums_of_profile(profile)
    bad = 0
    for k in sorted(set(seen) | set(want), key=repr):
        if seen.get(k) != want.get(k):
            print("differs:", k, "events:", seen.get(k), "profile:",
                  want.get(k))
            bad = 1
    if head["profile"] != profile:
        print("the events file holds another profile")
        bad = 1
    ns = sum(sum(s[3]) for s in seen.values())
    print(f"{head['packets']} packets, {head['events']} events, "
          f"{head['lost']} lost, {len(seen)} paths, {ns} ns")
    return bad or head["lost"] > 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
