#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The kept profile (test_profile/sample.json) with ten times the packets, so
that metrics rest on enough of them, and the changes that a test makes in it.

usage: kept_profile.py FILE [STATEMENT]
STATEMENT is Python: p is the profile, path(WORD...) its paths of these flags
and this direction, slower(STAGE, FACTOR, WORD...) makes a stage of them more
expensive.
"""
import json
import sys
from pathlib import Path

KEPT = Path(__file__).resolve().parent / "test_profile/sample.json"


class Kept:
    """The profile, and what can be done to it."""

    def __init__(self):
        self.profile = json.loads(KEPT.read_text(encoding="utf-8"))
        self.names = {s["id"]: s["name"] for s in self.profile["stages"]}
        for path in self.profile["paths"]:
            for key in "packets", "segments", "bytes", "work_ns", "wait_ns":
                path[key] *= 10
            path["stage_ns"] = [10 * ns for ns in path["stage_ns"]]
        for word in self.profile["account"]:
            self.profile["account"][word] *= 10
        self.profile["probe"]["known"] = False  # times as they are

    def path(self, *words):
        return [path for path in self.profile["paths"]
                if {path["direction"], *path["flags"]}.issuperset(words)]

    def slower(self, stage, factor, *words):
        for path in self.path(*words):
            for at, number in enumerate(path["stages"]):
                if self.names[number] == stage:
                    more = int(path["stage_ns"][at] * (factor - 1))
                    path["stage_ns"][at] += more
                    path["work_ns"] += more


def main():
    kept = Kept()
    if len(sys.argv) > 2:
        exec(sys.argv[2], {"p": kept.profile,
                           "path": kept.path, "slower": kept.slower})
    Path(sys.argv[1]).write_text(json.dumps(kept.profile), encoding="utf-8")


if __name__ == "__main__":
    main()
