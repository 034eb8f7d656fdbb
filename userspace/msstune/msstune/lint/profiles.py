# SPDX-License-Identifier: GPL-2.0-only
"""Reads the sysctls of tuned profiles (section [sysctl]), and those in YAML: Ansible
tasks and variables, and sysctls of Compose.  YAML is read line by line: no variable
and no loop is expanded.
"""
from __future__ import annotations

import re
from pathlib import Path

from .items import Assignment, Command, Item, Unreadable, dotted, squeeze

_KEY = r"(?:net|kernel|vm|fs)[./][\w./*-]+"
_FIELD = re.compile(
    r"\b(name|key|value|state)['\"]?\s*[:=]\s*('[^']*'|\"[^\"]*\"|\{\{.*?\}\}|[^,}#\s]+"
    r"(?:[ \t]+[^,}#\s:=]++(?!\s*[:=]))*)")
_VARIABLE = re.compile(rf"\s*(?:-\s+)?['\"]?({_KEY})['\"]?\s*:\s+(.+)")
_WORD = re.compile(rf"\s*-\s+(['\"]?)({_KEY})=(.*?)\1\s*")


def is_tuned(text: str) -> bool:
    return re.search(r"^\s*\[(sysctl|main)\]\s*$", text, re.M) is not None


def is_yaml(path: Path) -> bool:
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


def yaml(file: str, text: str) -> list[Item]:
    """Pairs of name and value of one task or one mapping, lines KEY: VALUE, and list
    items KEY=VALUE."""
    items: list[Item] = []
    task: dict[str, str] = {}
    start = 0

    def end() -> None:
        if task.get("name") and task.get("state") == "absent":
            items.append(Command(file, start, ("sysctl", "remove", task["name"])))
        elif task.get("name") and task.get("value"):
            items.append(Assignment(file, start, dotted(task["name"]), task["value"]))
        task.clear()

    for number, line in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*", "", line)
        if re.match(r"\s*-\s", line):
            end()    # a new task or list item
        variable = _VARIABLE.fullmatch(line) or _WORD.fullmatch(line)
        if variable:
            key, value = variable.groups()[-2:]
            items.append(Assignment(file, number, dotted(key), _plain(value)))
            continue
        for field, text_ in _FIELD.findall(line):
            if field in ("value", "state"):
                task[field] = _plain(text_)
            elif re.fullmatch(_KEY, _plain(text_)):
                task["name"], start = _plain(text_), number
    end()
    return items


def _plain(text: str) -> str:
    """A scalar without quotes; a template as a shell would write a variable."""
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    return squeeze(text.replace("{{", "${").replace("}}", "}"))
