# SPDX-License-Identifier: GPL-2.0-only
"""The grid file: TOML in, checked cells and arms out.

Reads that one file and is otherwise pure.  The whole file is checked before
anything starts; mssab-grid(5) is the reference
(Documentation/reference/mssab-grid.5.rst).
"""
from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UsageError
from . import cell_rules, module
from .cell import KEYS, Cell

ArmSettings = dict[str, int]


@dataclass(frozen=True)
class Grid:
    """A checked grid file.  The first arm is the control."""

    title: str
    arms: dict[str, ArmSettings]
    cells: list[Cell]


def _axis(where: str, name: str, value: Any) -> list[tuple[str, Any]]:
    """Every value of one key."""
    if name not in KEYS:
        raise UsageError(f"{where}: unknown key {name} "
                         f"(known: {', '.join(sorted(KEYS))})")
    values = value if isinstance(value, list) else [value]
    if not values:
        raise UsageError(f"{where}: {name} is an empty list")
    try:
        return [(name, KEYS[name].read(name, one)) for one in values]
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from error


def _cells(where: str, table: dict[str, Any]) -> list[Cell]:
    """The cells of one [[cells]] table: every list is an axis."""
    if why := cell_rules.unused_time(table):
        raise UsageError(f"{where}: {why}")
    axes = [_axis(where, name, value) for name, value in table.items()]
    cells = [Cell(**cell_rules.interface_defaults(table) | dict(point))
             for point in itertools.product(*axes)]
    cells = [cell for cell in cells if cell_rules.fits_header(cell)]
    for cell in cells:
        cell_rules.check(where, cell)
    return cells


def _arms(where: str, table: Any) -> dict[str, ArmSettings]:
    if not isinstance(table, dict) or len(table) < 2:
        raise UsageError(f"{where}: [arms] needs at least two arms; the first "
                         "is the control")
    for name, settings in table.items():
        if not isinstance(settings, dict):
            raise UsageError(f"{where}: arm {name} is not a table")
        for key, value in settings.items():
            if key not in module.SETTINGS:
                raise UsageError(f"{where}: arm {name}: unknown setting {key} "
                                 f"(known: {', '.join(module.SETTINGS)})")
            try:
                module.SETTINGS[key].read(key, value)
            except ValueError as error:
                raise UsageError(f"{where}: arm {name}: {error}") from error
    return table


def read(path: Path) -> str:
    """The text of a grid or experiment file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name a grid or experiment "
                         "file, such as experiments/demo.toml") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error


def load(path: Path) -> Grid:
    """Read and check a grid file; UsageError with the reason if it is wrong."""
    try:
        data = tomllib.loads(read(path))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    for key in data:
        if key not in ("title", "arms", "cells"):
            raise UsageError(f"{path}: unknown key {key} "
                             "(known: title, arms, cells)")
    tables = data.get("cells")
    if not isinstance(tables, list) or not tables:
        raise UsageError(f"{path}: no [[cells]]; add at least one")
    cells = [cell for i, table in enumerate(tables, 1)
             for cell in _cells(f"{path}: [[cells]] {i}", table)]
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path}: two cells are called {name!r}; put one "
                             "of them into another file")
    return Grid(str(data.get("title", path.stem)),
                _arms(str(path), data.get("arms")), cells)
