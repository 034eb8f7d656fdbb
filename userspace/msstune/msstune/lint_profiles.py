# SPDX-License-Identifier: GPL-2.0-only
"""Reads the sysctls of tuned profiles (section [sysctl]) and of Ansible tasks and
variables.  YAML is read line by line: no variable and no loop is expanded.
"""
from __future__ import annotations

import re
from pathlib import Path

from .lint_items import Assignment, Item, Unreadable, dotted, squeeze

_KEY = r"(?:net|kernel|vm|fs)[./][\w./*-]+"
_FIELD = re.compile(
    r"\b(name|key|value)['\"]?\s*[:=]\s*('[^']*'|\"[^\"]*\"|\{\{.*?\}\}|[^,}#\s]+"
    r"(?:[ \t]+[^,}#\s:=]++(?!\s*[:=]))*)")
_VARIABLE = re.compile(rf"\s*(?:-\s+)?['\"]?({_KEY})['\"]?\s*:\s+(.+)")


def is_tuned(text: str) -> bool:
    return re.search(r"^\s*\[sysctl\]\s*$", text, re.M) is not None


def is_ansible(path: Path) -> bool:
    return path.suffix in (".yml", ".yaml")


def tuned(file: str, text: str) -> list[Item]:
    items: list[Item] = []
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "sysctl":
            key, equals, value = line.partition("=")
            if not equals:
                items.append(Unreadable(file, number, line, "a line of [sysctl] is "
                                        "KEY=VALUE"))
                continue
            # ">" writes only where the present value is smaller.
            items.append(Assignment(file, number, dotted(key.strip()),
                                    _plain(value.strip().lstrip("<>"))))
    return items


def ansible(file: str, text: str) -> list[Item]:
    """Pairs of name and value of one task or one mapping, and lines KEY: VALUE."""
    items: list[Item] = []
    name, value, start = "", "", 0
    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line)
        if re.match(r"\s*-\s", line):
            name, value = "", ""    # a new task or list item
        variable = _VARIABLE.fullmatch(line)
        if variable:
            items.append(Assignment(file, number, dotted(variable[1]),
                                    _plain(variable[2])))
            continue
        for field, text_ in _FIELD.findall(line):
            if field == "value":
                value = _plain(text_)
            elif re.fullmatch(_KEY, _plain(text_)):
                name, start = _plain(text_), number
        if name and value:
            items.append(Assignment(file, start, dotted(name), value))
            name, value = "", ""
    return items


def _plain(text: str) -> str:
    """A scalar without quotes; a template as a shell would write a variable."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return squeeze(text.replace("{{", "${").replace("}}", "}"))
