# SPDX-License-Identifier: GPL-2.0-only
"""Checks all files together: findings for each setting, and settings that a later
one overrides.  Pure."""
from __future__ import annotations

from pathlib import PurePath

from . import rules
from .items import Assignment, Item, Unreadable
from .rules import Finding, Machine

#: sysctl.d(5): a file masks files of the same name in the folders after its own.
_FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d",
            "/usr/lib/sysctl.d", "/lib/sysctl.d")
SYSCTL_D = "sysctl.d(5)"


def in_force(names: list[str]) -> tuple[list[str], dict[str, str]]:
    """File names in the order in which they take effect, and masked files with the
    file that masks them.

    Fragments are ordered by the last part of their name.  sysctl.conf comes after
    them (sysctl --system), scripts come last in the order given.
    """
    def rank(name: str) -> int:
        folder = str(PurePath(name).parent)
        return _FOLDERS.index(folder) if folder in _FOLDERS else -1

    fragments = [n for n in names if PurePath(n).suffix == ".conf"]
    masked: dict[str, str] = {}
    for name in fragments:
        rivals = [n for n in fragments
                  if PurePath(n).name == PurePath(name).name and n != name
                  and -1 < rank(n) < rank(name)]
        if rivals:
            masked[name] = min(rivals, key=rank)
    order = sorted((n for n in fragments if n not in masked),
                   key=lambda n: (PurePath(n).name == "sysctl.conf",
                                  PurePath(n).name))
    return order + [n for n in names if n not in fragments], masked


def check(files: dict[str, list[Item]], machine: Machine) -> list[Finding]:
    """Findings, in the order of the files and their lines."""
    order, masked = in_force(list(files))
    found: list[Finding] = []
    last: dict[str, Assignment] = {}
    for name in order:
        for item in files[name]:
            if isinstance(item, Assignment):
                last[item.key] = item
    for name, items in files.items():
        if name in masked:
            found.append(Finding("warning", "masked", name, 0, name,
                                 f"is not read: {masked[name]} has the same name",
                                 SYSCTL_D))
        for item in items:
            if isinstance(item, Unreadable):
                found.append(Finding("error", "syntax", item.file, item.line,
                                     item.text, item.why, SYSCTL_D))
                continue
            if not isinstance(item, Assignment):
                found += rules.command(item)
                continue
            found += rules.assignment(item, machine)
            final = last.get(item.key, item)
            if final != item and name not in masked:
                same = final.value == item.value
                found.append(Finding(
                    "note" if same else "warning",
                    "repeated" if same else "overridden", item.file, item.line,
                    f"{item.key} = {item.value}",
                    f"{final.file}:{final.line} comes later and sets "
                    + ("the same value" if same else final.value), SYSCTL_D))
    return found + _together(last)


def _together(last: dict[str, Assignment]) -> list[Finding]:
    """Findings that need more than one setting."""
    def value(key: str) -> str:
        return last[key].value if key in last else ""

    found = []
    reuse = last.get("net.ipv4.tcp_tw_reuse")
    if reuse and reuse.value == "1" and value("net.ipv4.tcp_timestamps") == "0":
        found.append(Finding(
            "warning", "tw-reuse", reuse.file, reuse.line,
            "net.ipv4.tcp_tw_reuse = 1",
            "has no effect without timestamps, which these files turn off",
            "tcp(7); RFC 6191"))
    ecn = last.get("net.ipv4.tcp_ecn")
    if ecn and ecn.value == "1" and value("net.ipv4.tcp_ecn_fallback") == "0":
        found.append(Finding(
            "warning", "ecn-fallback", ecn.file, ecn.line, "net.ipv4.tcp_ecn = 1",
            "tcp_ecn_fallback is off: connections over paths that drop ECN packets "
            "fail", "RFC 3168, section 6.1.1.1"))
    for socket, tcp in (("rmem", "tcp_rmem"), ("wmem", "tcp_wmem")):
        core = last.get(f"net.core.{socket}_max")
        if core and f"net.ipv4.{tcp}" not in last:
            found.append(Finding(
                "note", "core-only", core.file, core.line,
                f"{core.key} = {core.value}",
                f"limits SO_{'RCV' if socket == 'rmem' else 'SND'}BUF only; the "
                f"limit of autotuning is the third value of {tcp}",
                rules.IP_SYSCTL))
    return found
