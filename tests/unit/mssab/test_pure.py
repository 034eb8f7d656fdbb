# SPDX-License-Identifier: GPL-2.0-only
"""Modules of mssab that call themselves pure import nothing that touches the
system, directly or through another module; the others are listed here.  A grid
imports nothing that is slow to import in an emulated guest."""
import ast
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / "userspace/mssab/mssab"
MODULES = {str(path.relative_to(PACKAGE).with_suffix("")): path
           for path in PACKAGE.rglob("*.py")}
#: Ways to the system in the standard library.
SYSTEM = {"ctypes", "fcntl", "os", "select", "shutil", "signal", "socket",
          "subprocess", "tempfile"}
#: Programs, namespaces, /proc and /sys, results directories.  In testbed/ and run/
#: all do but these.
PURE = {"testbed/ends", "run/transfers"}
TOUCH_THE_SYSTEM = {"children", "netns", "experiment/module", "report/report"} | {
    name for name in MODULES if name.startswith(("testbed/", "run/"))} - PURE
#: The command line reads files and prints.
COMMANDS = {name for name in MODULES if name.startswith("commands/")} | {
    "__init__", "__main__", "cli"}
#: The ranges of the module's settings are pure.
TABLES = {"experiment/module"}


def imports(name):
    """Modules of the standard library, and of the package with their room."""
    room = Path(name).parent
    for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            at = (room if node.level == 1 else room.parent).joinpath(
                *(node.module or "").split("."))
            if str(at) in MODULES:
                yield str(at)
            else:
                yield from (str(at / alias.name) for alias in node.names)


def test_every_other_module_is_pure():
    for name in sorted(MODULES.keys() - TOUCH_THE_SYSTEM - COMMANDS):
        assert not set(imports(name)) & (
            SYSTEM | (TOUCH_THE_SYSTEM - TABLES)), name
        said = ast.get_docstring(ast.parse(MODULES[name].read_text()))
        assert "pure" in said.lower() or name == "errors", \
            f"{name} does not say that it is pure"


def test_what_touches_the_system_does_not_say_that_it_is_pure():
    assert TOUCH_THE_SYSTEM <= MODULES.keys()
    for name in TOUCH_THE_SYSTEM:
        assert "Pure" not in ast.get_docstring(
            ast.parse(MODULES[name].read_text())), name


def test_a_grid_imports_only_the_standard_library_and_few_rooms():
    """Neither numpy and what needs it, nor the parts of an experiment's run."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import sys\n"
         "from mssab import cli\nfrom mssab.commands import grid\n"
         "print(*sys.modules)"], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": str(PACKAGE.parent)}).stdout.split()
    assert "mssab.testbed.testbed" in loaded
    assert not {"numpy", "scipy", "matplotlib", "jinja2", "platform",
                "mssab.statistics.stats", "mssab.run.campaign",
                "mssab.report.report"} & set(loaded)
