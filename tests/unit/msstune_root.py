# SPDX-License-Identifier: GPL-2.0
"""A root with a few files below /proc/sys, to be set by msstune in tests."""


def make(folder, files):
    """files: names below /proc/sys to what they hold."""
    for name, text in files.items():
        path = folder / "proc/sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def snapshot(root):
    """All that the root holds."""
    return {str(path.relative_to(root)): path.read_bytes()
            for path in root.rglob("*") if path.is_file()}
