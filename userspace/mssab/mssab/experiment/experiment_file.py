# SPDX-License-Identifier: GPL-2.0-only
"""The experiment file: TOML with [design] in, a checked Plan out.

Pure.  The whole file is checked before anything starts; a mistake is reported
in one sentence with its line.  A file without [design] is a grid file
(grid.py).  Documentation/reference/mssab-experiment.5.rst is the reference.
"""
from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from .. import verdict
from ..errors import UsageError
from . import cell, cell_rules, device, keys, metrics, module
from .cell import Cell
from .experiment import BLOCK, CONNECTION, DESIGN, HOST, RUNS, Arm, Plan
from .metrics import Metric

#: Keys of [design] that are not a single value of the plan.
DESIGN_KEYS = ("primary", "guardrails", "pairs", *DESIGN)
METRIC_KEYS = {
    "unit": keys.Key(""),
    "better": keys.Key("", choices=("higher", "lower")),
    "scale": keys.Key("", choices=("log", "linear")),
    "margin": keys.Key(0.0),
}
TOP_KEYS = ("title", "question", "expect", "run", "kernel", "design", "cell",
            "program", "metrics", "arms")
SYSCTL_KEYS = ("sysctl", "sysctl_sender", "sysctl_receiver")
#: Keys of a cell that an arm may have.
ARM_CELL_KEYS = tuple(name for name, key in cell.KEYS.items() if key.per_arm)
#: What scripts/guest takes: a series, a release, the path of an image.
KERNEL = re.compile(r"[A-Za-z0-9/.][A-Za-z0-9/._+~-]*")
SYSCTL = re.compile(r"net(\.[a-zA-Z0-9_-]+)+")


# --- Lines --------------------------------------------------------------------
# The standard library's parser does not report the line of a key.  This is exact
# enough for messages: a key that is not found (in a string over several lines, say)
# gets the line of its table, or 1.

_TABLE = re.compile(r"\s*\[\[?\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')
                      (?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)
                      \s*=""", re.X)
_PART = re.compile(r"""[A-Za-z0-9_-]+|"([^"]*)"|'([^']*)'""")


def _parts(dotted: str) -> list[str]:
    return [found[1] or found[2] or found[0]
            for found in _PART.finditer(dotted)]


def line_of(text: str, path: Sequence[str]) -> int:
    """Line (from 1) of the key with these names from the top: the line that
    matches most of them, in order."""
    wanted = list(path)
    best, at = 0, 1
    table: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = _parts(header[1])
            names = table
        elif key := _KEY.match(line):
            names = table + _parts(key[1])
        else:
            # A further line of a value: an inline table or a list.
            names = []
        common = 0
        while common < min(len(names), len(wanted)) \
                and names[common] == wanted[common]:
            common += 1
        # Further names may be in an inline table on the same line.
        if common == len(names):
            for name in wanted[common:]:
                if not re.search(rf"""[{{,]\s*["']?{re.escape(name)}["']?\s*=""",
                                 line):
                    break
                common += 1
        if common > best and common >= min(len(names), len(wanted)):
            best, at = common, number
    return at


# --- The file -----------------------------------------------------------------

class _Reader:
    """The file, and the messages about mistakes in it."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.text = path, text

    def wrong(self, where: tuple[str, ...], what: str) -> NoReturn:
        raise UsageError(f"{self.where(*where)}: {what}")

    def where(self, *names: str) -> str:
        return f"{self.path}:{line_of(self.text, names)}"

    def only(self, table: Any, known: Iterable[str], *where: str) -> None:
        """Refuses a key of the table that is not known."""
        name = ".".join(where) or "the file"
        if not isinstance(table, dict):
            self.wrong(where, f"[{name}] must be a table")
        known = list(known)
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1, 0.5)
                hint = f"; did you mean {near[0]}?" if near else \
                    f" (known: {', '.join(sorted(known))})"
                self.wrong((*where, key), f"unknown key {key} in "
                           f"{'[' + name + ']' if where else name}{hint}")

    def kind(self, value: Any, kind: type, *where: str) -> Any:
        """The value, if it is of that type."""
        try:
            return keys.of_kind(where[-1], value, kind)
        except ValueError as error:
            self.wrong(where, str(error))

    def value(self, key: keys.Key, value: Any, *where: str) -> Any:
        """The value of a key, if it may hold that."""
        try:
            return key.read(where[-1], value)
        except ValueError as error:
            self.wrong(where, str(error))


def _design(reader: _Reader, table: dict[str, Any]) -> dict[str, Any]:
    """The fields of the plan that [design] gives."""
    out = {name: reader.value(DESIGN[name], value, "design", name)
           for name, value in table.items() if name in DESIGN}
    if "pairs" in table:
        if "looks" in table:
            reader.wrong(("design", "pairs"), "pairs and looks: the last look "
                         "is the number of pairs; give one of them")
        pairs = reader.kind(table["pairs"], int, "design", "pairs")
        out["looks"] = reader.value(DESIGN["looks"], [pairs], "design",
                                    "pairs")

    def given(name: str) -> Any:
        return out.get(name, DESIGN[name].default)

    def rises(name: str, least: int, example: str) -> None:
        if len(given(name)) < least \
                or list(given(name)) != sorted(set(given(name))):
            reader.wrong(("design", name), f"{name} must rise, as in "
                         f"{example}")

    rises("looks", 1, "[12, 20, 32]")
    rises("allocations", 2, "[10, 50, 90]")
    for key in ("connections", "allocations"):
        if key in out and given("assign") != CONNECTION:
            reader.wrong(("design", key), f'{key} needs assign = "{CONNECTION}"')
    if 2 * given("resolution_percent") > given("effect_percent"):
        reader.wrong(("design", "resolution_percent"), "resolution_percent is "
                     "more than half of effect_percent: rounding would hide "
                     "the effect of interest")
    if 0 < given("aa_pairs") < verdict.MIN_PAIRS:
        reader.wrong(("design", "aa_pairs"), f"aa_pairs = {out['aa_pairs']}: "
                     f"fewer than {verdict.MIN_PAIRS} pairs support no claim; "
                     "0 omits the A/A run")
    return out


def _metric(reader: _Reader, name: str, settings: Any,
            effect: float) -> Metric:
    """A metric with what [metrics.NAME] changes."""
    metric = metrics.KNOWN[name][0] if name in metrics.KNOWN \
        else Metric(name, "")
    reader.only(settings, METRIC_KEYS, "metrics", name)
    for word, value in settings.items():
        where = ("metrics", name, word)
        value = reader.value(METRIC_KEYS[word], value, *where)
        if word == "margin" and not value > 0:
            reader.wrong(where, f"margin = {value:g} is not above 0")
        metric = replace(metric, **{word: value})
    if not metric.margin:
        if metric.scale == "linear":
            reader.wrong(("metrics", name), f"metric {name} is linear and "
                         "needs a margin in its unit")
        metric = replace(metric, margin=effect)
    return metric


def _metrics(reader: _Reader, data: dict[str, Any], effect: float,
             own: bool) -> tuple[tuple[Metric, ...], tuple[Metric, ...]]:
    """Primary metrics and guardrails.  @own: the load is a program, whose
    metrics the file defines."""
    tables = data.get("metrics", {})
    reader.only(tables, tables, "metrics")
    table = data["design"]
    primary = table.get("primary", "goodput")
    primary = primary if isinstance(primary, list) else [primary]
    guards = reader.kind(table.get("guardrails", []), list, "design",
                         "guardrails")
    if not primary:
        reader.wrong(("design", "primary"), "no primary metric")
    found: dict[str, Metric] = {}
    for key, names in (("primary", primary), ("guardrails", guards)):
        for name in names:
            name = reader.kind(name, str, "design", key)
            if name in found:
                reader.wrong(("design", key), f"metric {name} is named twice")
            if name not in metrics.KNOWN and not (own and name in tables):
                near = difflib.get_close_matches(name, metrics.KNOWN, 1, 0.5)
                reader.wrong(("design", key), f"{key}: unknown metric {name}"
                             + (f"; did you mean {near[0]}?" if near else
                                f" (known: {', '.join(metrics.KNOWN)}; a "
                                "metric of a program needs [metrics.NAME])"))
            found[name] = _metric(reader, name, tables.get(name, {}), effect)
    for name in tables:
        if name not in found:
            reader.wrong(("metrics", name), f"[metrics.{name}]: neither "
                         "primary nor a guardrail")
    every = tuple(found.values())
    return every[:len(primary)], every[len(primary):]


def _cell(reader: _Reader, table: dict[str, Any], where: tuple[str, ...],
          base: Cell) -> Cell:
    """@base with the keys of the table."""
    for name, value in table.items():
        if isinstance(value, list):
            reader.wrong((*where, name), f"{name}: an experiment has one cell "
                         "and takes no list; a file with [[cells]] is a grid")
        value = reader.value(cell.KEYS[name], value, *where, name)
        base = replace(base, **{name: value})
    return base


def _check_reported(reader: _Reader, one: Cell, primary: tuple[Metric, ...],
                    guards: tuple[Metric, ...]) -> None:
    """Does the load report what is asked for?"""
    for key, some in (("primary", primary), ("guardrails", guards)):
        for metric in some:
            if metric.name not in metrics.REPORTED[one.load]:
                reader.wrong(("design", key), f"{key}: {one.load} does not "
                             f"report {metric.name} (it reports "
                             f"{', '.join(metrics.REPORTED[one.load])})")
            if why := metrics.unmet(metric.name, one):
                reader.wrong(("design", key), f"{key}: {metric.name} {why}")


def _sysctls(reader: _Reader, table: Any, *where: str) -> dict[str, str]:
    if not isinstance(table, dict):
        reader.wrong(where, f"{where[-1]} must be a table: "
                     '{ "net.ipv4.tcp_timestamps" = 0 }')
    out = {}
    for key, value in table.items():
        if not SYSCTL.fullmatch(key):
            reader.wrong((*where, key), f"{key} is not a setting below net.*, "
                         "in quotes; a namespace has no others of its own")
        if type(value) not in (int, str):
            reader.wrong((*where, key), f"{key} = {value!r} is neither a whole "
                         "number nor a string")
        out[key] = str(value)
    return out


def _arm(reader: _Reader, name: str, table: Any, base: Cell | None) -> Arm:
    """One arm; @base: the experiment's cell, None with a program."""
    at = ("arms", name)
    of_cell: tuple[str, ...] = ()
    if base is not None:
        of_cell = (*module.SETTINGS, *ARM_CELL_KEYS, *SYSCTL_KEYS,
                   *device.GROUPS)
    reader.only(table, (*of_cell, "env", "kernel"), *at)
    for key in set(table) & set(module.SETTINGS):
        reader.value(module.SETTINGS[key], table[key], *at, key)
    sysctls = {key: _sysctls(reader, table.get(key, {}), *at, key)
               for key in SYSCTL_KEYS}
    groups = [key for key in device.GROUPS if key in table]
    for key in groups:
        if wrong := device.check(key, table[key]):
            reader.wrong((*at, key), f"{key}: {wrong}")
        if base is not None and base.link == cell.LOOPBACK:
            reader.wrong((*at, key), f"{key} sets a device; loopback has none")
    env = table.get("env", {})
    if not isinstance(env, dict) or any(
            type(value) not in (int, str) for value in env.values()):
        reader.wrong((*at, "env"), "env must be a table of names and strings")
    if base is not None:
        own = {key: table[key] for key in table if key in ARM_CELL_KEYS}
        base = _cell(reader, own, at, base)
        cell_rules.check(reader.where(*at), base)
        if key := cell_rules.unmet_by_arm(base, table):
            reader.wrong((*at, key), f"{key} would be set at the receiver, "
                         "which is on another machine; sysctl_sender sets "
                         "this end")
    return Arm(name, table, base,
               {key: table[key] for key in table if key in module.SETTINGS},
               sysctls["sysctl"] | sysctls["sysctl_sender"],
               sysctls["sysctl"] | sysctls["sysctl_receiver"],
               {key: device.words(table[key]) for key in groups},
               {key: str(value) for key, value in env.items()})


def _check_connections(reader: _Reader, arms: list[Arm],
                       names: list[str]) -> None:
    """What goes with arms that the module draws per connection."""
    one = arms[0].cell
    if one is None or one.load not in cell.OWN_LOAD \
            or one.link != cell.VETH or one.ipv6 or one.transfers > 1:
        reader.wrong(("design", "assign"), 'assign = "connection" needs a '
                     '[cell] with load = "tcpload", a veth link, IPv4, and '
                     "connections instead of streams, senders or receivers")
    if names != ["goodput"]:
        reader.wrong(("design", "guardrails"), "with arms per connection "
                     "goodput is the only metric")
    for arm in arms:
        for key in arm.settings:
            if key not in arm.module or key in ("ab_percent", "ab_seed"):
                reader.wrong(("arms", arm.name, key), f"{key} cannot differ "
                             "between connections; only settings of the "
                             "module can, except ab_percent and ab_seed")
    if arms[0].module:
        reader.wrong(("arms", arms[0].name), f"arm {arms[0].name} must be "
                     "empty: control connections run the kernel's own code")


def _kernels(reader: _Reader, data: dict[str, Any],
             arms: list[Arm]) -> tuple[str, list[Arm]]:
    """Where the experiment runs, and the arms with their kernels."""
    run = reader.kind(data.get("run", HOST), str, "run")
    if run not in RUNS:
        reader.wrong(("run",), f"run = {run!r} is not one of "
                     f"{', '.join(RUNS)}")
    places = [("kernel",)] + [("arms", arm.name, "kernel") for arm in arms]
    given = [data.get("kernel", ""),
             *(arm.settings.get("kernel", "") for arm in arms)]
    for where, kernel in zip(places, given, strict=True):
        if type(kernel) is float:
            reader.wrong(where, f"kernel = {kernel} is a number; write it in "
                         "quotes, because 6.10 is not 6.1")
        if reader.kind(kernel, str, *where) and not KERNEL.fullmatch(kernel):
            reader.wrong(where, f"kernel = {kernel!r} is neither a series, as "
                         '"6.1", nor a release, nor the path of an image')
        if kernel and run == HOST:
            reader.wrong(where, 'kernel needs run = "fast" or "deterministic": '
                         "a host has one kernel")
    if run == HOST:
        return run, arms
    if "program" in data:
        reader.wrong(("program",), "a [program] runs on this machine, not in "
                     "a guest: leave out run")
    if arms[0].cell and arms[0].cell.link == cell.INTERFACES:
        reader.wrong(("run",), "named interfaces belong to this host, not to a "
                     "guest: leave out run")
    if data["design"].get("assign", BLOCK) != BLOCK:
        reader.wrong(("design", "assign"), "arms per connection share a "
                     "kernel: leave out run")
    for arm, own in zip(arms, given[1:], strict=True):
        if not (own or given[0]):
            reader.wrong(("arms", arm.name), f"arm {arm.name} has no kernel: "
                         f'run = "{run}" boots one; give kernel = "6.1" here, '
                         "or at the top for both")
    return run, [replace(arm, kernel=own or given[0])
                 for arm, own in zip(arms, given[1:], strict=True)]


def _program(reader: _Reader, table: Any) -> list[str]:
    """The command of [program]."""
    reader.only(table, ("argv",), "program")
    argv: list[str] = reader.kind(table.get("argv", []), list, "program",
                                  "argv")
    if not argv or not all(type(word) is str for word in argv):
        reader.wrong(("program", "argv"), "argv must be a list of strings: "
                     "the command and its arguments")
    return argv


def _base_cell(reader: _Reader, table: Any) -> Cell:
    """The cell of [cell]."""
    reader.only(table, cell.KEYS, "cell")
    if "repeat" in table:
        reader.wrong(("cell", "repeat"), "repeat is for grids; [design] sets "
                     "how many pairs there are")
    base = _cell(reader, table, ("cell",), Cell(**cell_rules.interface_defaults(table)))
    cell_rules.check(reader.where("cell"), base)
    if why := cell_rules.unused_time(table):
        reader.wrong(("cell", why.split(":")[0]), why)
    return base


def is_experiment(text: str) -> bool:
    """Does the file have [design]?  True also if the remainder is not TOML:
    parse() then reports that."""
    return bool(re.search(r"^\s*\[\s*design\s*\]|^\s*design\s*[.=]", text, re.M))


def parse(path: Path, text: str) -> Plan:
    """The plan of an experiment file; UsageError with the reason if it is wrong."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise UsageError(f"{path}:{line[1] if line else 1}: not TOML: "
                         f"{error}") from error
    reader = _Reader(path, text)
    if "cells" in data:
        reader.wrong(("cells",), "[[cells]] is for grids; an experiment has "
                     "one [cell]")
    reader.only(data, TOP_KEYS)
    words = {key: reader.kind(data.get(key, ""), str, key)
             for key in ("title", "question", "expect")}
    if words["expect"] and words["expect"] not in verdict.ALL:
        reader.wrong(("expect",), f"expect = {words['expect']!r} is not one of "
                     f"{', '.join(verdict.ALL)}")
    reader.only(data["design"], DESIGN_KEYS, "design")
    design = _design(reader, data["design"])
    program = _program(reader, data["program"]) if "program" in data else []
    base = None
    if "cell" in data or not program:
        base = _base_cell(reader, data.get("cell", {}))
    effect = design.get("effect_percent", DESIGN["effect_percent"].default)
    primary, guards = _metrics(reader, data, effect, bool(program))
    arms = data.get("arms")
    if not isinstance(arms, dict) or len(arms) != 2:
        reader.wrong(("arms",), "[arms] needs two arms, the control first"
                     + (f"; here are {len(arms)}" if arms else ""))
    built = [_arm(reader, name, arms[name], base) for name in arms]
    for arm in built:
        if arm.cell:
            _check_reported(reader, arm.cell, primary, guards)
    run, built = _kernels(reader, data, built)
    if design.get("assign") == CONNECTION:
        _check_connections(reader, built, [m.name for m in primary + guards])
    return Plan(words["title"] or path.stem, words["question"],
                words["expect"], (built[0], built[1]), tuple(program), primary,
                guards, run=run, **design)
