# SPDX-License-Identifier: GPL-2.0-only
"""A tree with a few files below proc/sys, for msstune --root."""


def make(folder, files):
    """@files: contents by name below proc/sys."""
    for name, text in files.items():
        path = folder / "proc/sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def snapshot(root):
    """The contents of all files of the tree."""
    return {str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*") if path.is_file()}
