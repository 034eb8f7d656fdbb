# SPDX-License-Identifier: GPL-2.0-only
"""Reads the settings of sysctl.d fragments and of shell scripts with sysctl,
echo > /proc/sys or device commands.  Scripts are not run.  tuned profiles and
Ansible files go to lint_profiles.py."""
from __future__ import annotations

import re
import shlex
from pathlib import Path

from . import lint_profiles
from .errors import UsageError
from .lint_items import Assignment, Command, Item, Unreadable, dotted, squeeze


_DEVICE_TOOLS = ("ethtool", "setpci", "ip", "ifconfig", "systemctl", "service",
                 "killall")
_KEY = re.compile(r"-?((?:net|kernel|vm|fs)[./][\w./*-]+)\s*=\s*(.*)")


def _is_script(path: Path, text: str) -> bool:
    return (path.suffix in (".sh", ".bash") or text.startswith("#!")
            or path.suffix != ".conf"
            and re.search(r"^\s*(sudo\s+)?(sysctl|echo|ethtool|setpci)\s", text,
                          re.M) is not None)


def read(path: Path) -> list[Item]:
    """All assignments and commands of a file, in order."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text file ({error.reason})") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    file = str(path)
    if lint_profiles.is_ansible(path):
        return lint_profiles.ansible(file, text)
    if _is_script(path, text):
        return _script(file, text)
    return (lint_profiles.tuned if lint_profiles.is_tuned(text) else _fragment)(
        file, text)


def _fragment(file: str, text: str) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        key, equals, value = line.partition("=")
        key = key.strip().removeprefix("-").strip()
        if not equals:
            if line.startswith("-"):
                continue  # excludes a key from a glob
            items.append(Unreadable(file, number, line, "no =; a sysctl.d file has "
                                    "lines KEY = VALUE"))
            continue
        items.append(Assignment(file, number, dotted(key), squeeze(value),
                                line.startswith("-")))
    return items


def _script(file: str, text: str) -> list[Item]:
    items: list[Item] = []
    held, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        start = start if held else number
        held += line
        if held.endswith("\\"):
            held = held[:-1] + " "
            continue
        items += _statement(file, start, held.strip())
        held = ""
    return items


def _statement(file: str, number: int, line: str) -> list[Item]:
    match = _KEY.fullmatch(line)
    if match:  # a line of a here-document for sysctl.conf
        return [Assignment(file, number, dotted(match[1]), squeeze(match[2]))]
    try:
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return []  # an open quote: not readable as a setting
    items: list[Item] = []
    part: list[str] = []
    for word in [*words, ";"]:
        if word in (";", "&&", "||", "&"):
            items += _command(file, number, part)
            part = []
        else:
            part.append(word)
    return items


def _command(file: str, number: int, words: list[str]) -> list[Item]:
    while words and words[0] in ("sudo", "then", "do", "else", "if", "-n", "-E"):
        words = words[1:]
    if not words:
        return []
    tool = words[0].rsplit("/", 1)[-1]
    if tool == "sysctl":
        return [Assignment(file, number, dotted(key), squeeze(value))
                for key, equals, value in (word.partition("=")
                                           for word in words[1:])
                if equals and not key.startswith("-")]
    if tool in ("echo", "printf"):
        target = next((w for w in words if w.startswith("/proc/sys/")), "")
        value = []
        for word in words[1:]:
            if word in (">", ">>", "|"):
                break
            if not word.startswith("-") or word[1:].isdigit():
                value.append(word.removesuffix("\\n"))
        if target:
            return [Assignment(file, number,
                               dotted(target.removeprefix("/proc/sys/")),
                               squeeze(" ".join(value)))]
    if tool in _DEVICE_TOOLS:
        return [Command(file, number, (tool, *words[1:]))]
    return []
