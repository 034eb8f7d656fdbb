# SPDX-License-Identifier: GPL-2.0-only
"""Reads the settings of sysctl.d fragments and of shell scripts with sysctl,
echo > /proc/sys or device commands.  Scripts are not run.  tuned profiles and
Ansible files go to lint_profiles.py."""
from __future__ import annotations

import re
import shlex
from pathlib import Path

from . import profiles
from ..errors import UsageError
from .items import Assignment, Command, Item, Unreadable, dotted, squeeze


_DEVICE_TOOLS = ("ethtool", "setpci", "ip", "ifconfig", "systemctl", "service",
                 "killall")
_KEY = re.compile(r"-?((?:net|kernel|vm|fs)[./][\w./*-]+)\s*=\s*(.*)")
_REDIRECTS = (">", ">>", "<", "|", ">&", "&>", "<<", ">|")


def _is_script(path: Path, text: str) -> bool:
    return (path.suffix in (".sh", ".bash") or text.startswith("#!")
            or path.suffix != ".conf"
            and re.search(r"^\s*(sudo\s+)?(sysctl|echo|ethtool|setpci)\s", text,
                          re.M) is not None)


def read(path: Path) -> list[Item]:
    """All assignments and commands of a file, in order.  Raises if the file has
    lines, and none of them is one."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text file ({error.reason})") from error
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    items, kind = _items(path, text)
    if not items and kind != "tuned profile" and any(
            line.strip() and line.strip()[0] not in "#;" for line in text.splitlines()):
        raise UsageError(f"{path}: no setting was found in it, read as a {kind}; "
                         "nothing was checked")
    return items


def _items(path: Path, text: str) -> tuple[list[Item], str]:
    """Its items, and the kind of file that it was read as."""
    file = str(path)
    if profiles.is_yaml(path):
        return profiles.yaml(file, text), "YAML file (Ansible, Compose)"
    if _is_script(path, text):
        return _script(file, text), "shell script"
    if profiles.is_tuned(text):
        return profiles.tuned(file, text), "tuned profile"
    return _fragment(file, text), "sysctl.d fragment"


def _fragment(file: str, text: str) -> list[Item]:
    items: list[Item] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        key, equals, value = line.partition("=")
        key = key.strip().removeprefix("-").strip()
        if not equals:
            if line.startswith("-"):  # excludes a key from a glob
                items.append(Command(file, number, ("sysctl", "exclude", key)))
                continue
            items.append(Unreadable(file, number, line, "no =; a sysctl.d file has "
                                    "lines KEY = VALUE"))
            continue
        if not re.fullmatch(r"[\w./*:@%-]+", key):
            items.append(Unreadable(
                file, number, line, "the file starts with a byte-order mark (BOM), "
                "which becomes a part of the key: the write fails"
                if key.startswith("\ufeff") else
                "this is no name of a key (a command?): the write fails"))
            continue
        # The kernel stops reading numbers at what is none.
        value = re.sub(r"^([-\dxa-fA-F\s]+)\s#.*", r"\1", squeeze(value))
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
        return _sysctl(file, number, words[1:])
    if tool in ("echo", "printf"):
        target = next((w for w in words if w.startswith("/proc/sys/")), "")
        value = []
        for word in words[1:]:
            if word in (">", ">>", "|"):
                break
            if not word.startswith("-") or word[1:].isdigit():
                value.append(word.removesuffix("\\n"))
        if not target and (">" in words or ">>" in words or "tee" in words):
            return _lines(file, number, " ".join(value))
        if target:
            return [Assignment(file, number,
                               dotted(target.removeprefix("/proc/sys/")),
                               squeeze(" ".join(value)))]
    if tool == "sed":
        return [item for word in words[1:] for found in
                re.findall(r"(?:^|;)s(\W)(?:.*?)\1(.*?)\1", word)
                + re.findall(r"(?:^|[$\d/])()\s*[aic]\\?\s*(.*)", word)
                for item in _lines(file, number, found[1])]
    if tool in _DEVICE_TOOLS:
        return [Command(file, number, (tool, *words[1:]))]
    return []


def _sysctl(file: str, number: int, words: list[str]) -> list[Item]:
    """The arguments of sysctl(8): KEY=VALUE, each one word."""
    end = next((i for i, word in enumerate(words) if word in _REDIRECTS), len(words))
    words = words[:end - (end < len(words) and words[end - 1].isdecimal())]
    if "=" in words:
        return [Unreadable(file, number, " ".join(["sysctl", *words]),
                           "blanks around =: sysctl(8) refuses each of these words; "
                           "quote KEY=VALUE")]
    return [Assignment(file, number, dotted(key), squeeze(value))
            for key, equals, value in (word.partition("=") for word in words)
            if equals and not key.startswith("-")]


def _lines(file: str, number: int, text: str) -> list[Item]:
    """Settings in text that a command writes into a file."""
    return [Assignment(file, number, dotted(match[1]), squeeze(match[2]))
            for match in map(_KEY.fullmatch, map(str.strip, text.split("\\n")))
            if match]
