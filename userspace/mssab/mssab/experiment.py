# SPDX-License-Identifier: GPL-2.0
"""The experiment file: TOML in, checked cells and arms out.

Pure: reads the file and nothing else of the machine.  The whole file is
checked before anything starts; Documentation/mssab-experiment.5.rst is the
reference for every key.
"""
from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .errors import UsageError

#: Settings of net.mssfrac.* an arm may hold, with their ranges.
ARM_KEYS = {
    "rx_frac": (0, 64),
    "tx_frac": (0, 64),
    "seg_max": (2, 256),
    "ab_percent": (0, 100),
    "ab_seed": (0, 2**32 - 1),
}
CELL_KEYS = {
    "link": str,
    "mtu": int,
    "rtt_ms": float,
    "rcvbuf_max": int,
    "rcvbuf_after_accept": int,
    "window_scaling": bool,
    "write": int,
    "load": str,
    "warmup_ms": int,
    "measure_ms": int,
    "repeat": int,
}
RANGES = {
    "mtu": (576, 65535),
    "rtt_ms": (0, 10000),
    "rcvbuf_max": (4096, 2**30),
    "rcvbuf_after_accept": (1, 2**30),
    "write": (1, 1 << 24),
    "warmup_ms": (0, 3600000),
    "measure_ms": (1, 3600000),
    "repeat": (1, 1000),
}
CHOICES = {
    "link": ("veth", "loopback"),
    "load": ("iperf3", "mssab-load"),
}


@dataclass(frozen=True)
class Cell:
    """One point of the grid: where and how one transfer runs."""

    link: str = "veth"
    mtu: int = 9000                # bytes
    rtt_ms: float = 10.0           # netem, half of it each way
    rcvbuf_max: int = 0            # tcp_rmem, bytes; 0: the kernel's default
    rcvbuf_after_accept: int = 0   # SO_RCVBUF, bytes; 0: not set
    window_scaling: bool = True
    write: int = 65536             # bytes a write
    load: str = "iperf3"           # or mssab-load
    warmup_ms: int = 2000          # not counted
    measure_ms: int = 4000
    repeat: int = 1                # transfers of each arm, in turn

    @property
    def name(self) -> str:
        if self.link == "loopback":
            return f"loopback SO_RCVBUF {self.rcvbuf_after_accept}"
        scaling = "on" if self.window_scaling else "off"
        # Larger writes hold several segments: the size hardly matters.
        write = f" w{self.write}" if self.write < 65536 else ""
        return (f"rtt {self.rtt_ms:g} rcvbuf {self.rcvbuf_max} ws {scaling}"
                f"{write}")


@dataclass(frozen=True)
class Experiment:
    """A checked experiment file."""

    title: str
    arms: dict[str, dict[str, int]]
    cells: list[Cell] = field(default_factory=list)


def _check_value(where: str, key: str, value: Any) -> Any:
    kind = CELL_KEYS[key]
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise UsageError(f"{where}: {key} = {value!r} is not "
                         f"a {kind.__name__}")
    if key in RANGES and not RANGES[key][0] <= value <= RANGES[key][1]:
        low, high = RANGES[key]
        raise UsageError(f"{where}: {key} = {value} is outside "
                         f"{low}..{high}")
    if key in CHOICES and value not in CHOICES[key]:
        raise UsageError(f"{where}: {key} = {value!r} is none of "
                         f"{', '.join(CHOICES[key])}")
    return value


def _cells(where: str, table: dict[str, Any]) -> list[Cell]:
    """The grid of one [[cells]] table: every list is an axis."""
    axes = []
    for key, value in table.items():
        if key not in CELL_KEYS:
            known = ", ".join(sorted(CELL_KEYS))
            raise UsageError(f"{where}: unknown key {key} (known: {known})")
        values = value if isinstance(value, list) else [value]
        if not values:
            raise UsageError(f"{where}: {key} is an empty list")
        axes.append([(key, _check_value(where, key, v)) for v in values])
    cells = [Cell(**dict(point)) for point in itertools.product(*axes)]
    for cell in cells:
        if cell.rcvbuf_after_accept and cell.load != "mssab-load":
            raise UsageError(f"{where}: rcvbuf_after_accept needs "
                             "load = \"mssab-load\"; iperf3 cannot do it")
        if cell.load == "iperf3" and (cell.warmup_ms % 1000
                                      or cell.measure_ms % 1000):
            raise UsageError(f"{where}: iperf3 counts whole seconds; give "
                             "warmup_ms and measure_ms in thousands")
    return cells


def _arms(where: str, table: Any) -> dict[str, dict[str, int]]:
    if not isinstance(table, dict) or len(table) < 2:
        raise UsageError(f"{where}: [arms] wants at least two arms; "
                         "the first is the one compared against")
    for name, settings in table.items():
        if not isinstance(settings, dict):
            raise UsageError(f"{where}: arm {name} is not a table")
        for key, value in settings.items():
            if key not in ARM_KEYS:
                known = ", ".join(ARM_KEYS)
                raise UsageError(f"{where}: arm {name}: unknown setting "
                                 f"{key} (known: {known})")
            low, high = ARM_KEYS[key]
            if type(value) is not int or not low <= value <= high:
                raise UsageError(f"{where}: arm {name}: {key} = {value!r} "
                                 f"is not a number in {low}..{high}")
    return table


def load(path: Path) -> Experiment:
    """Read and check an experiment file; UsageError says what is wrong."""
    try:
        with open(path, "rb") as file:
            data = tomllib.load(file)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; name an experiment "
                         "file, such as experiments/windows.toml") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not TOML: {error}") from error
    for key in data:
        if key not in ("title", "arms", "cells"):
            raise UsageError(f"{path}: unknown key {key} "
                             "(known: title, arms, cells)")
    tables = data.get("cells")
    if not isinstance(tables, list) or not tables:
        raise UsageError(f"{path}: no [[cells]]; say what to run")
    cells = [cell for i, table in enumerate(tables, 1)
             for cell in _cells(f"{path}: [[cells]] {i}", table)]
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{path}: two cells are called {name!r}; put "
                             "what they differ in into another file")
    return Experiment(title=str(data.get("title", path.stem)),
                      arms=_arms(str(path), data.get("arms")), cells=cells)
