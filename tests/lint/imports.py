# SPDX-License-Identifier: GPL-2.0-only
"""Names that are imported from our packages and not defined there, and modules
that import each other in a circle.  pyflakes looks at one file at a time; a name that
only guests use would be missed until a guest runs.  Also reads Python inside shell
scripts.  Imports nothing.

usage: imports.py FILE...     prints FILE:LINE: sentence
"""
import ast
import re
import sys
from pathlib import Path

PACKAGES = {"mssab": Path("userspace/mssab"), "msstune": Path("userspace/msstune")}
IMPORT = re.compile(
    r"^[ \t]*from (mssab|msstune)((?:\.\w+)*) import (\([^)]*\)|(?:\\\n|[^#\n])*)",
    re.MULTILINE)


def names(path):
    """The names that a module's text defines."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield (alias.asname or alias.name).partition(".")[0]


def missing(package, dotted, wanted):
    place = PACKAGES[package].joinpath(package, *dotted.strip(".").split("."))
    if place.is_dir():
        have = {entry.stem for entry in place.iterdir()}
        module = place / "__init__.py"  # a room may have none
    else:
        have = set()
        module = place.with_suffix(".py")
        if not module.exists():
            return wanted
    have |= set(names(module)) if module.exists() else set()
    return [name for name in wanted if name not in have]


def imported(package, name, module):
    """Dotted names that a module imports from its package, in functions and for types
    too; @name: the module's own."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom):
            continue
        base = (node.module or "").split(".") if node.module else []
        if node.level:
            base = name.split(".")[:-node.level] + base
        elif base[:1] == [package]:
            base = base[1:]
        else:
            continue
        yield ".".join(base)
        yield from (".".join([*base, alias.name]) for alias in node.names)


def circles(package):
    """Each circle once, as a list of modules."""
    folder = PACKAGES[package] / package
    uses = {}
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder).with_suffix("").parts)
        if path.stem != "__init__":
            uses[name] = set(imported(package, name, path))
    done = set()

    def visit(name, trail):
        if name in trail:
            yield [*trail[trail.index(name):], name]
        elif name not in done and name in uses:
            for used in sorted(uses[name]):
                yield from visit(used, [*trail, name])
            done.add(name)
    for name in uses:
        yield from visit(name, [])


def main():
    for file in sys.argv[1:]:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
        for match in IMPORT.finditer(text):
            package, dotted, listed = match.groups()
            listed = re.sub(r"#.*|[()\\]", "", listed)
            wanted = [part.split()[0] for part in listed.split(",") if part.strip()]
            line = text.count("\n", 0, match.start()) + 1
            for name in missing(package, dotted, wanted):
                print(f"{file}:{line}: {package}{dotted} has no {name}")
    for package in PACKAGES:
        for circle in circles(package):
            print(f"{package}: circle of imports: {' -> '.join(circle)}")


if __name__ == "__main__":
    main()
