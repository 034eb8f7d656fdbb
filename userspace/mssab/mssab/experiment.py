# SPDX-License-Identifier: GPL-2.0
"""The experiment: a file with [design] in, a checked plan out.

Pure.  The whole file is checked before anything starts; a mistake is told in
one sentence with its line.  A file without [design] is a grid, and
experiment.py's.  Documentation/reference/mssab-grid.5.rst is the reference.
"""
from __future__ import annotations

import difflib
import random
import re
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from . import ethtool, grid, metrics, nics, verdict
from .errors import UsageError
from .grid import ARM_KEYS, CELL_KEYS, Cell
from .toml_lines import line_of
from .metrics import Metric

DESIGN_KEYS = {
    "primary": str,
    "guardrails": list,
    "effect_percent": float,
    "alpha": float,
    "power": float,
    "looks": list,
    "aa_pairs": int,
    "seed": int,
    "nuisance": bool,
    "ceiling_mbit": float,
    "generator_percent": float,
    "stolen_percent": float,
    "attempts": int,
    "resolution_percent": float,
    "profile_sample": int,
    "assign": str,
    "connections": int,
    "allocations": list,
}
DESIGN_RANGES = {
    "effect_percent": (0.01, 1000),
    "alpha": (0.0001, 0.2),
    "power": (0.5, 0.99),
    "looks": (8, 1000),
    "aa_pairs": (0, 1000),
    "seed": (0, 2**32 - 1),
    "ceiling_mbit": (0, 1000000),
    "generator_percent": (0, 100),
    "stolen_percent": (0, 100),
    "attempts": (1, 100),
    "resolution_percent": (0, 5),
    "profile_sample": (1, 1000000),
    "connections": (4, 500),
    "allocations": (1, 99),
}
METRIC_KEYS = {"unit": str, "better": str, "scale": str, "margin": float}
TOP_KEYS = ("title", "question", "expect", "run", "kernel", "design", "cell",
            "program", "metrics", "arms")
#: Where the blocks are measured: here, or in a guest each.
HOST, RUNS = "host", ("host", "fast", "deterministic")
#: What scripts/guest takes: a series, a release, the path of an image.
KERNEL = re.compile(r"[A-Za-z0-9/.][A-Za-z0-9/._+~-]*")
#: Of the two ends' namespaces.
SYSCTL_KEYS = ("sysctl", "sysctl_sender", "sysctl_receiver")
#: What belongs to the whole experiment, not to an arm.
NOT_OF_AN_ARM = ("load", "seed", "repeat", "link", "ipv6", "warmup_ms",
                 "measure_ms", "warmup_rounds", "measure_rounds", *nics.KEYS)
#: What assign may be.
BLOCK, CONNECTION = "block", "connection"
#: Nuisance seeds: the last starts a third of a second later than the first.
NUISANCES = 1000
SYSCTL = re.compile(r"net(\.[a-zA-Z0-9_-]+)+")


@dataclass(frozen=True)
class Arm:
    """One side of the comparison, all it needs spelt out."""

    name: str
    settings: dict[str, Any]            # as the file gives them
    cell: Cell | None                   # the experiment's with the arm's keys
    module: dict[str, int]              # net.mssfrac.*, both ends
    sysctl_sender: dict[str, str]
    sysctl_receiver: dict[str, str]
    device: ethtool.Settings            # of both ends' devices
    env: dict[str, str]                 # of the program
    kernel: str = ""                    # of its guests; "": this machine's


@dataclass(frozen=True)
class Plan:
    """A checked experiment."""

    title: str
    question: str
    expect: str                 # a verdict, or ""
    arms: tuple[Arm, Arm]       # the one compared against comes first
    program: tuple[str, ...]    # own load; (): the cell's
    primary: tuple[Metric, ...]
    guardrails: tuple[Metric, ...]
    effect_percent: float = 3.0
    alpha: float = 0.05
    power: float = 0.8
    looks: tuple[int, ...] = (12,)
    aa_pairs: int = 8
    seed: int = 1
    nuisance: bool = True
    ceiling_mbit: float = 0.0
    generator_percent: float = 95.0
    stolen_percent: float = 2.0
    attempts: int = 5
    resolution_percent: float = 0.0
    run: str = HOST
    profile_sample: int = 1     # pathprof follows 1 in so many packets
    assign: str = BLOCK
    connections: int = 32
    allocations: tuple[int, ...] = (10, 50, 90)

    def blocks(self, phase: str) -> int:
        """Of one pair; with arms per connection it is one at each share."""
        if self.assign == BLOCK:
            return 2
        return 1 if phase == "aa" else len(self.allocations)

    @property
    def share(self) -> int:
        """The share that the headline is of, %: the one nearest to half."""
        return min(self.allocations, key=lambda share: abs(share - 50))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        return self.primary + self.guardrails

    @property
    def profiled(self) -> bool:
        """Does a metric ask for pathprof?"""
        return any(m.name in metrics.PROFILED for m in self.metrics)

    @property
    def module_keys(self) -> list[str]:
        """Settings of the module that any arm names."""
        return sorted({key for arm in self.arms for key in arm.module})


@dataclass(frozen=True)
class Draw:
    """What chance decided for one try of a pair."""

    order: tuple[int, ...]      # sides: 0 stock, 1 treated; or shares
    seed: int                   # nuisance, the same for both blocks


def draw(plan: Plan, phase: str, pair: int, attempt: int) -> Draw:
    """The same for the same seed, on any machine, whatever came before."""
    rng = random.Random(f"{plan.seed}/{phase}/{pair}/{attempt}")
    order = list(range(plan.blocks(phase)))
    rng.shuffle(order)
    if plan.assign == CONNECTION:
        # The key of the split: a new one each time, or it would stay empty.
        return Draw(tuple(order), rng.getrandbits(32))
    # No two of a thousand pairs share one.
    of_phase = random.Random(f"{plan.seed}/{phase}")
    seeds = of_phase.sample(range(1, NUISANCES + 1), NUISANCES)
    return Draw(tuple(order),
                seeds[pair % NUISANCES] if plan.nuisance else 0)


class _Reader:
    """The file, and how a mistake in it is told."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def wrong(self, where: tuple[str, ...], what: str) -> NoReturn:
        raise UsageError(f"{self.path}:{line_of(self.text, where)}: {what}")

    def where(self, *names: str) -> str:
        return f"{self.path}:{line_of(self.text, names)}"

    def keys(self, table: Any, known: Any, *where: str) -> None:
        """Every key of the table is one of these."""
        name = ".".join(where) or "the file"
        if not isinstance(table, dict):
            self.wrong(where, f"[{name}] must be a table")
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.5)
                hint = f"; {near[0]} is meant?" if near else \
                    f" (known: {', '.join(sorted(known))})"
                self.wrong((*where, key), f"unknown key {key} in "
                           f"{'[' + name + ']' if where else name}{hint}")

    def kind(self, value: Any, kind: type, *where: str) -> Any:
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            words = {str: "a string", int: "a whole number", float: "a number",
                     bool: "true or false", list: "a list"}
            unit = re.search(r"_(ms|percent|mbit|packets)$", where[-1])
            self.wrong(where, f"{where[-1]} = {value!r} is not {words[kind]}"
                       + (f" (the unit is in the name: {unit[1]})"
                          if unit else ""))
        return value


def _design(reader: _Reader, table: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    reader.keys(table, (*DESIGN_KEYS, "pairs"), "design")
    if "pairs" in table:
        if "looks" in table:
            reader.wrong(("design", "pairs"), "pairs and looks: the last look "
                         "is the number of pairs; give one of them")
        table = table | {"looks": [table["pairs"]]}
    for key, value in table.items():
        if key in ("primary", "guardrails", "pairs"):
            continue
        named = key if key != "looks" or "pairs" not in table else "pairs"
        value = reader.kind(value, DESIGN_KEYS[key], "design", named)
        for one in value if isinstance(value, list) else [value]:
            if isinstance(value, list):
                reader.kind(one, int, "design", named)
            low, high = DESIGN_RANGES.get(key, (one, one))
            if not low <= one <= high:
                reader.wrong(("design", named), f"{named} = {one:g} is outside "
                             f"{low:g}..{high:g}")
        out[key] = value
    if "looks" in out:
        looks = out["looks"] = tuple(out["looks"])
        if not looks or list(looks) != sorted(set(looks)):
            reader.wrong(("design", "looks"),
                         "looks must rise, as in [12, 20, 32]")
    if "allocations" in out:
        shares = out["allocations"] = tuple(out["allocations"])
        if len(shares) < 2 or list(shares) != sorted(set(shares)):
            reader.wrong(("design", "allocations"), "allocations must rise, "
                         "two of them or more, as in [10, 50, 90]")
    if out.get("assign", BLOCK) not in (BLOCK, CONNECTION):
        reader.wrong(("design", "assign"), f"assign = {out['assign']!r} is "
                     f"neither {BLOCK} nor {CONNECTION}")
    for key in ("connections", "allocations"):
        if key in out and out.get("assign") != CONNECTION:
            reader.wrong(("design", key), f'{key} needs assign = "{CONNECTION}"')
    if 2 * out.get("resolution_percent", 0) > out.get("effect_percent", 3.0):
        reader.wrong(("design", "resolution_percent"), "resolution_percent is "
                     "more than half of effect_percent: the effect of interest "
                     "would be lost in it")
    if 0 < out.get("aa_pairs", 8) < verdict.MIN_PAIRS:
        reader.wrong(("design", "aa_pairs"), f"aa_pairs = {out['aa_pairs']}: "
                     f"fewer than {verdict.MIN_PAIRS} carry no claim; 0 leaves "
                     "A/A out")
    return out


def _metrics(reader: _Reader, data: dict[str, Any], effect: float,
             own: bool) -> tuple[tuple[Metric, ...], tuple[Metric, ...]]:
    """Primary ones and guardrails."""
    tables = data.get("metrics", {})
    reader.keys(tables, tables, "metrics")
    table = data["design"]
    primary = table.get("primary", "goodput")
    primary = primary if isinstance(primary, list) else [primary]
    guards = reader.kind(table.get("guardrails", []), list, "design",
                         "guardrails")
    if not primary:
        reader.wrong(("design", "primary"), "no primary metric")
    found = []
    for key, names in (("primary", primary), ("guardrails", guards)):
        for name in names:
            name = reader.kind(name, str, "design", key)
            if name in [m.name for m in found]:
                reader.wrong(("design", key), f"metric {name} is named twice")
            if name not in metrics.KNOWN and not (own and name in tables):
                near = difflib.get_close_matches(name, metrics.KNOWN, 1, 0.5)
                reader.wrong(("design", key), f"{key}: unknown metric {name}"
                             + (f"; {near[0]} is meant?" if near else
                                f" (known: {', '.join(metrics.KNOWN)}; those "
                                "of a program need [metrics.NAME])"))
            metric = metrics.KNOWN[name][0] if name in metrics.KNOWN \
                else Metric(name, "")
            settings = tables.get(name, {})
            reader.keys(settings, METRIC_KEYS, "metrics", name)
            for word, value in settings.items():
                where = ("metrics", name, word)
                value = reader.kind(value, METRIC_KEYS[word], *where)
                choice = {"better": ("higher", "lower"),
                          "scale": ("log", "linear")}.get(word)
                if choice and value not in choice:
                    reader.wrong(where, f"{word} = {value!r} is neither "
                                 f"{choice[0]} nor {choice[1]}")
                if word == "margin" and not value > 0:
                    reader.wrong(where, f"margin = {value:g} is not above 0")
                metric = replace(metric, **{word: value})
            if not metric.margin:
                if metric.scale == "linear":
                    reader.wrong(("metrics", name), f"metric {name} is linear "
                                 "and needs a margin in its unit")
                metric = replace(metric, margin=effect)
            found.append(metric)
    for name in tables:
        if name not in [m.name for m in found]:
            reader.wrong(("metrics", name), f"[metrics.{name}]: neither "
                         "primary nor a guardrail")
    return tuple(found[:len(primary)]), tuple(found[len(primary):])


def _cell(reader: _Reader, table: dict[str, Any], where: tuple[str, ...],
          base: Cell) -> Cell:
    for key, value in table.items():
        if isinstance(value, list):
            reader.wrong((*where, key), f"{key}: an experiment has one cell, "
                         "and takes no list; a file of [[cells]] is a grid")
        value = grid.check_value(reader.where(*where, key), key, value)
        base = replace(base, **{key: value})
    return base


def _check_told(reader: _Reader, cell: Cell, primary: tuple[Metric, ...],
                guards: tuple[Metric, ...]) -> None:
    """Does the load tell what is asked for?"""
    for key, some in (("primary", primary), ("guardrails", guards)):
        for metric in some:
            if metric.name not in metrics.TOLD[cell.load]:
                reader.wrong(("design", key), f"{key}: {cell.load} does not "
                             f"tell {metric.name} (it tells "
                             f"{', '.join(metrics.TOLD[cell.load])})")
            if metric.name in metrics.OF_REQUESTS and not cell.request:
                reader.wrong(("design", key), f"{key}: {metric.name} is of "
                             "requests: give request in [cell]")
            if metric.name == "cpu" and cell.remote:
                reader.wrong(("design", key), f"{key}: cpu is of both ends of "
                             "the load, and one is elsewhere")


def _sysctls(reader: _Reader, table: Any, *where: str) -> dict[str, str]:
    if not isinstance(table, dict):
        reader.wrong(where, f"{where[-1]} must be a table: "
                     '{ "net.ipv4.tcp_timestamps" = 0 }')
    out = {}
    for key, value in table.items():
        if not SYSCTL.fullmatch(key):
            reader.wrong((*where, key), f"{key} is not a setting below net.*, "
                         "in quotes; others are not of a namespace")
        if type(value) not in (int, str):
            reader.wrong((*where, key), f"{key} = {value!r} is neither a whole "
                         "number nor a string")
        out[key] = str(value)
    return out


def _arm(reader: _Reader, name: str, table: Any, cell: Cell | None) -> Arm:
    at = ("arms", name)
    cells = () if cell is None else tuple(
        key for key in CELL_KEYS if key not in NOT_OF_AN_ARM)
    module = () if cell is None else tuple(ARM_KEYS)
    sysctl = () if cell is None else SYSCTL_KEYS
    device = () if cell is None else tuple(ethtool.GROUPS)
    reader.keys(table, (*module, *cells, *sysctl, *device, "env", "kernel"),
                *at)
    for key in set(table) & set(module):
        low, high = ARM_KEYS[key]
        value = reader.kind(table[key], int, *at, key)
        if not low <= value <= high:
            reader.wrong((*at, key), f"{key} = {value} is outside "
                         f"{low}..{high}")
    ends = {key: _sysctls(reader, table.get(key, {}), *at, key)
            for key in SYSCTL_KEYS}
    for key in set(table) & set(device):
        if wrong := ethtool.check(table[key]):
            reader.wrong((*at, key), f"{key}: {wrong}")
        if cell is not None and cell.link == "loopback":
            reader.wrong((*at, key), f"{key} is of a device; loopback has none")
    env = table.get("env", {})
    if not isinstance(env, dict) or any(
            type(value) not in (int, str) for value in env.values()):
        reader.wrong((*at, "env"), "env must be a table of names and strings")
    if cell is not None:
        own = {key: table[key] for key in table if key in cells}
        cell = _cell(reader, own, at, cell)
        grid.check_cell(reader.where(*at), cell)
        if key := nics.check_arm(cell, table):
            reader.wrong((*at, key), f"{key} would be set at the receiver, "
                         "which is elsewhere; sysctl_sender is of this end")
    return Arm(name, table, cell,
               {key: table[key] for key in table if key in module},
               ends["sysctl"] | ends["sysctl_sender"],
               ends["sysctl"] | ends["sysctl_receiver"],
               {key: ethtool.words(table[key]) for key in device
                if key in table},
               {key: str(value) for key, value in env.items()})


def _check_connections(reader: _Reader, arms: list[Arm],
                       names: list[str]) -> None:
    """What goes with arms drawn per connection, by the module."""
    cell = arms[0].cell
    if cell is None or cell.load != "mssab-load" or cell.link != "veth" \
            or cell.ipv6:
        reader.wrong(("design", "assign"), 'assign = "connection" needs a '
                     '[cell] with load = "mssab-load", a veth link and IPv4')
    if names != ["goodput"]:
        reader.wrong(("design", "guardrails"), "with arms per connection "
                     "goodput is the only metric")
    for arm in arms:
        for key in arm.settings:
            if key not in arm.module or key in ("ab_percent", "ab_seed"):
                reader.wrong(("arms", arm.name, key), f"{key} cannot differ "
                             "between connections; only settings of the "
                             "module can, ab_percent and ab_seed not")
    if arms[0].module:
        reader.wrong(("arms", arms[0].name), f"arm {arms[0].name} must be "
                     "empty: connections that are not treated run the "
                     "kernel's own code")


def _kernels(reader: _Reader, data: dict[str, Any],
             arms: list[Arm]) -> tuple[str, list[Arm]]:
    """Where it runs, and the arms with their kernels."""
    run = reader.kind(data.get("run", HOST), str, "run")
    if run not in RUNS:
        reader.wrong(("run",), f"run = {run!r} is none of {', '.join(RUNS)}")
    places = [("kernel",)] + [("arms", arm.name, "kernel") for arm in arms]
    said = [data.get("kernel", ""),
            *(arm.settings.get("kernel", "") for arm in arms)]
    for where, kernel in zip(places, said):
        if type(kernel) is float:
            reader.wrong(where, f"kernel = {kernel} is a number; write it in "
                         'quotes, for 6.10 is not 6.1')
        if reader.kind(kernel, str, *where) and not KERNEL.fullmatch(kernel):
            reader.wrong(where, f"kernel = {kernel!r} is neither a series, as "
                         '"6.1", nor a release, nor the path of an image')
        if kernel and run == HOST:
            reader.wrong(where, 'kernel needs run = "fast" or "deterministic": '
                         "a host has one kernel")
    if run == HOST:
        return run, arms
    for key, what in (("program", "a [program] runs where mssab does"),
                      ("run", "named interfaces are of this host")):
        if key == "program" and "program" in data or key == "run" \
                and arms[0].cell and arms[0].cell.link == nics.KIND:
            reader.wrong((key,), f"{what}, and not in a guest: leave out run")
    if data["design"].get("assign", BLOCK) != BLOCK:
        reader.wrong(("design", "assign"), "arms per connection share a "
                     "kernel: leave out run")
    for arm, own in zip(arms, said[1:]):
        if not (own or said[0]):
            reader.wrong(("arms", arm.name), f"arm {arm.name} has no kernel: "
                         f'run = "{run}" boots one; kernel = "6.1" here, or '
                         "at the top for both")
    return run, [replace(arm, kernel=own or said[0])
                 for arm, own in zip(arms, said[1:])]


def is_design(text: str) -> bool:
    """Has it a [design]?  Also if the rest is not TOML: that is told then."""
    return bool(re.search(r"^\s*\[\s*design\s*\]|^\s*design\s*[.=]", text, re.M))


def parse(path: Path, text: str) -> Plan:
    """The plan of an experiment file; UsageError says what is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise UsageError(f"{path}:{line[1] if line else 1}: not TOML: "
                         f"{error}") from error
    reader = _Reader(path, text)
    if "cells" in data:
        reader.wrong(("cells",), "[[cells]] are of a grid; an experiment has "
                     "one [cell]")
    reader.keys(data, TOP_KEYS)
    words = {key: reader.kind(data.get(key, ""), str, key)
             for key in ("title", "question", "expect")}
    if words["expect"] and words["expect"] not in verdict.ALL:
        reader.wrong(("expect",), f"expect = {words['expect']!r} is none of "
                     f"{', '.join(verdict.ALL)}")
    reader.keys(data["design"], (*DESIGN_KEYS, "pairs"), "design")
    settings = _design(reader, data["design"])
    program: list[str] = []
    if "program" in data:
        reader.keys(data["program"], ("argv",), "program")
        program = reader.kind(data["program"].get("argv", []), list, "program",
                              "argv")
        if not program or not all(type(word) is str for word in program):
            reader.wrong(("program", "argv"), "argv must be a list of strings: "
                         "the command and its arguments")
    cell = None
    if "cell" in data or not program:
        reader.keys(data.get("cell", {}), CELL_KEYS, "cell")
        if "repeat" in data.get("cell", {}):
            reader.wrong(("cell", "repeat"), "repeat is of a grid; the design "
                         "says how many pairs there are")
        table = data.get("cell", {})
        cell = _cell(reader, table, ("cell",), Cell(**nics.defaults(table)))
        grid.check_cell(reader.where("cell"), cell)
        if key := grid.own_time(table):
            reader.wrong(("cell", key), f"{key}: NetPIPE itself decides how "
                         "long it measures")
    effect = settings.get("effect_percent", 3.0)
    primary, guards = _metrics(reader, data, effect, bool(program))
    if cell is not None:
        _check_told(reader, cell, primary, guards)
    arms = data.get("arms")
    if not isinstance(arms, dict) or len(arms) != 2:
        reader.wrong(("arms",), "[arms] wants two arms, the one compared "
                     "against first"
                     + (f"; here are {len(arms)}" if arms else ""))
    built = [_arm(reader, name, arms[name], cell) for name in arms]
    run, built = _kernels(reader, data, built)
    if settings.get("assign") == CONNECTION:
        _check_connections(reader, built, [m.name for m in primary + guards])
    return Plan(words["title"] or path.stem, words["question"],
                words["expect"], (built[0], built[1]), tuple(program), primary,
                guards, run=run, **settings)


def load(path: Path) -> Plan:
    return parse(path, path.read_text(encoding="utf-8"))
