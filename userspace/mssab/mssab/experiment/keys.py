# SPDX-License-Identifier: GPL-2.0-only
"""Keys of a TOML table, described once: type, default, range, choices, unit.

A table of keys is a dataclass whose fields carry a Key.  Pure: reads no file.
"""
from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

TYPE_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean",
              list: "list", tuple: "list"}
_ARTICLES = {str: "a string", int: "a whole number", float: "a number",
             bool: "true or false", list: "a list", tuple: "a list"}


def of_kind(name: str, value: Any, kind: type) -> Any:
    """The value if TOML gave that type; ValueError if not.  A whole number
    is accepted as a number."""
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        unit = re.search(r"_(ms|percent|mbit|packets)$", name)
        raise ValueError(f"{name} = {value!r} is not {_ARTICLES[kind]}"
                         + (f" (the unit is in the name: {unit[1]})"
                            if unit else ""))
    return value


@dataclass(frozen=True)
class Key:
    """What one key may hold.  Its type is that of the default; a tuple stands
    for a list of whole numbers."""

    default: Any
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    unit: str = ""

    @property
    def type_name(self) -> str:
        return TYPE_NAMES[type(self.default)]

    @property
    def limits(self) -> str:
        """As in 8..1000; "" if any value of the type will do."""
        return "" if self.low is None else f"{self.low}..{self.high}"

    def read(self, name: str, value: Any) -> Any:
        """The value of the key @name; ValueError with the reason if it cannot."""
        if isinstance(self.default, tuple):
            return tuple(self._check(name, of_kind(name, one, int))
                         for one in of_kind(name, value, list))
        return self._check(name, of_kind(name, value, type(self.default)))

    def _check(self, name: str, value: Any) -> Any:
        if self.low is not None and self.high is not None \
                and not self.low <= value <= self.high:
            raise ValueError(f"{name} = {value:g} is outside {self.limits}")
        if self.choices and value not in self.choices:
            raise ValueError(f"{name} = {value!r} is not one of "
                             f"{', '.join(filter(None, self.choices))}")
        return value


def entry(key: Key) -> Any:
    """A field of a dataclass that is a table of keys."""
    return dataclasses.field(default=key.default, metadata={"key": key})


def table(dataclass_type: type) -> dict[str, Any]:
    """Name and Key of every such field, in order."""
    return {field.name: field.metadata["key"]
            for field in dataclasses.fields(dataclass_type)
            if "key" in field.metadata}
