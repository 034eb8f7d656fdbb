# SPDX-License-Identifier: GPL-2.0-only
"""Which guest tests each level runs, on which kernels, and which of them share
a guest.  The file KERNELS and the opening comments of the scripts decide, so
that a new kernel or a new test needs no change here.  Runs nothing.

Lines of an opening comment that are read:
  # long: REASON       takes minutes: only in level check-all
  # guest: OPTIONS     needs a guest with these options of scripts/guest
  # alone: REASON      needs the whole machine: no other guest beside it
  # kernel: debug      only on the debug kernels"""
import functools
import re
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
GUEST = TOP / "tests/guest"

# Each level runs what the ones before it run, and more:
#   check          the functional and the deterministic tests on one kernel, and
#                  the smoke test on another
#   check-kernels  all of them on each kernel
#   check-all      the long ones too, and DKMS
LEVELS = ("check", "check-kernels", "check-all")

MODES = {"fast": "test_*.sh", "deterministic": "det_*.sh",
         "ticks": "tick_*.sh"}
SMOKE = "test_smoke.sh"

# Two guests on one cable take both CPUs and a minute, so one pair is enough: the
# newest kernel of `make check`, and the oldest as its peer.
PEER = "peer"
PEER_SCRIPTS = "peer_*.sh"

# Kernels of scripts/debug-kernel and their series: not in KERNELS, chosen by name
# only.  They have no BPF, and no clock that a measurement could use: they run the
# tests of the module.
DEBUG = {"debug": "6.12", "debug-7.2": "7.2"}
DEBUG_ROOMS = ("kmod",)
DEBUG_STRESS = "1000"

MARK = re.compile(r"^# (long|guest|alone|kernel): (.+)$", re.M)


def kernels(level="check-all"):
    """Series of KERNELS that a level tests, and the word of each ("tested by")."""
    lines = [line.split() for line in (TOP / "KERNELS").read_text().splitlines()
             if line.strip() and not line.startswith("#")]
    return {line[0]: line[-1] for line in lines
            if level != "check" or line[-1] in ("check", "smoke")}


def pair():
    tested = list(kernels("check"))
    return tested[-1], tested[0]


def named(path):
    """A guest script's name in reports: its path below tests/guest."""
    return str(path.relative_to(GUEST))


@functools.cache
def marks(path):
    """The marks in a script's opening comment."""
    return dict(MARK.findall(re.match(r"(#.*\n)*", path.read_text())[0]))


def is_long(path):
    return "long" in marks(path)


def scripts(kernel, mode, level):
    """Scripts of a mode that a level runs on a kernel in full."""
    if mode == PEER:
        return sorted(GUEST.rglob(PEER_SCRIPTS)) \
            if kernel == pair()[0] and level != "check" else []
    found = sorted(GUEST.rglob(MODES[mode]))
    if kernel in DEBUG:
        return [path for path in found if mode == "fast" and not is_long(path)
                and path.parent.name in DEBUG_ROOMS]
    return [path for path in found if marks(path).get("kernel") != "debug"
            and (level == "check-all" or not is_long(path))]


def tests(level, named_kernels=None):
    """The guest tests of a level by name: (kernel, mode, path).  Kernels that
    were named are tested in full."""
    chosen = dict.fromkeys(named_kernels or (), "") or kernels(level)
    return {f"guest-{kernel}-{mode}/{named(path)}": (kernel, mode, path)
            for mode in (*MODES, PEER) for kernel in chosen
            for path in scripts(kernel, mode, level)
            if path.name == SMOKE
            or not (level == "check" and chosen[kernel] == "smoke")}


@dataclass(frozen=True)
class Boot:
    """One guest: it runs scripts one after another."""
    kernel: str
    mode: str
    paths: tuple
    options: tuple = ()  # of scripts/guest
    tag: str = ""        # tells it from other boots of the same kernel and mode
    alone: bool = False  # nothing beside it


def boots(chosen):
    """The guests that run these tests, those that take longest first.  The
    scripts of a kernel and a mode share one, except those with a mark; with many
    fast ones, pathprof's have one of their own, beside the others."""
    groups = {}
    for kernel, mode, path in chosen.values():
        found = marks(path)
        options = tuple(found.get("guest", "").split())
        alone = mode == PEER or bool({"guest", "alone"} & found.keys())
        tag = "-alone" + "".join(options) if alone and mode != PEER else ""
        if mode == "fast" and not alone and named(path).startswith("pathprof/"):
            tag = "-pathprof"
        groups.setdefault((kernel, mode, options, tag, alone), []).append(path)
    return [Boot(kernel, mode, tuple(paths), options, tag, alone)
            for (kernel, mode, options, tag, alone), paths in sorted(
                groups.items(), key=lambda group: (
                    [*MODES, PEER].index(group[0][1]),
                    group[0][3] != "-pathprof", -len(group[1])))]
