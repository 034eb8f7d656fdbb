# SPDX-License-Identifier: GPL-2.0-only
"""Modules of mssab that call themselves pure import nothing that touches the
system, directly or through another module; the others are listed here."""
import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "userspace/mssab/mssab"
#: Ways to the system in the standard library.
SYSTEM = {"ctypes", "fcntl", "os", "select", "shutil", "signal", "socket",
          "subprocess", "tempfile"}
#: Programs, namespaces, /proc and /sys, results directories.
TOUCH_THE_SYSTEM = {
    "block", "bridge", "children", "cwnd_lock", "ethtool", "guests", "host",
    "journal", "loads", "module", "netem", "netns", "nic_move", "observer",
    "patience", "profiler", "report", "servers", "surroundings", "testbed"}
#: The command line reads files and prints; the campaign writes a journal and
#: gets the function that measures.
COMMANDS = {path.stem for path in PACKAGE.glob("cmd_*.py")} | {
    "__init__", "__main__", "campaign", "cli"}
#: Pure functions beside the others: what a file in TOML says of ethtool, the
#: ranges of the module's settings.
TABLES = {"ethtool", "module"}


def imports(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.module:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_every_other_module_is_pure():
    for path in sorted(PACKAGE.glob("*.py")):
        if path.stem in TOUCH_THE_SYSTEM | COMMANDS:
            continue
        assert not set(imports(path)) & (
            SYSTEM | (TOUCH_THE_SYSTEM - TABLES)), path.name
        said = " ".join(ast.get_docstring(ast.parse(path.read_text())).split())
        assert "pure" in said.lower() or path.stem in ("errors",), \
            f"{path.name} does not say that it is pure"


def test_the_list_is_of_modules_that_are_there():
    for name in TOUCH_THE_SYSTEM:
        assert (PACKAGE / f"{name}.py").exists(), name
        said = ast.get_docstring(ast.parse(
            (PACKAGE / f"{name}.py").read_text()))
        assert "Pure" not in said, f"{name}.py says that it is pure"
