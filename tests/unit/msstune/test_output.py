# SPDX-License-Identifier: GPL-2.0-only
"""Files that a user names: only plain files are replaced, whole or not at all."""
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune import output_file  # noqa: E402
from msstune.errors import TuneError, UsageError  # noqa: E402


def test_new_and_replaced(tmp_path):
    path = tmp_path / "facts.json"
    output_file.store(path, "one")
    assert path.read_text() == "one" and path.stat().st_mode & 0o444
    path.chmod(0o640)
    output_file.store(path, "two")
    assert path.read_text() == "two" and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["facts.json"]


def make_fifo(path):
    os.mkfifo(path)


def make_link(path):
    (path.parent / "target").write_text("kept")
    path.symlink_to(path.parent / "target")


def make_device(path):
    """/dev/null again, so that a mistake does no harm."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("no right to make a device node")


@pytest.mark.parametrize("make, word", [
    (make_fifo, "FIFO"), (make_link, "symbolic link"), (make_device, "device node"),
    (Path.mkdir, "folder")])
def test_anything_else_stays(tmp_path, make, word):
    path = tmp_path / "out"
    make(path)
    before = os.lstat(path)
    with pytest.raises(UsageError, match=word):
        output_file.store(path, "text")
    after = os.lstat(path)
    assert (before.st_mode, before.st_ino) == (after.st_mode, after.st_ino)
    if make is make_link:
        assert (tmp_path / "target").read_text() == "kept"
    assert {"out", "target"} >= set(os.listdir(tmp_path))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "out"
    path.write_text("old")

    def full(_fd):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TuneError, match="No space left"):
        output_file.store(path, "new")
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["out"]


def call(*arguments, **more):
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True,
                          check=False, **more)


def test_save(tmp_path):
    """Refused before the traffic is watched; - is stdout."""
    make_fifo(tmp_path / "fifo")
    done = call("diagnose", "--interval", "1000s", "--save", tmp_path / "fifo",
                timeout=60)
    assert done.returncode == 2 and "FIFO" in done.stderr
    done = call("diagnose", "--interval", "1ms", "--save", "/none/such")
    assert done.returncode == 2 and "no folder" in done.stderr
    for command in ("diagnose", "plan"):
        done = call(command, "--no-profile", "--interval", "1ms", "--save", "-")
        assert json.loads(done.stdout)["format"] == "msstune-facts"


def test_results_are_a_folder(tmp_path):
    tree = tmp_path / "proc/sys/net/ipv4"
    tree.mkdir(parents=True)
    (tree / "tcp_ecn").write_text("2\n")
    (tmp_path / "fifo").touch()
    for folder, sentence in (("-", "results are a folder"),
                             (tmp_path / "fifo", "")):
        done = call("--root", tmp_path, "--state", tmp_path / "state", "verify",
                    "--yes", "net.ipv4.tcp_ecn=1", "-o", folder, env=os.environ | {
                        "PATH": f"{TOP}/build/bin:{os.environ['PATH']}"})
        assert done.returncode in (1, 2) and sentence in done.stderr, done
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "state").exists()


def test_stdout_that_is_full(tmp_path):
    (tmp_path / "a.conf").write_text("net.ipv4.tcp_sack = 1\n")
    buffered = {key: value for key, value in os.environ.items()
                if key != "PYTHONUNBUFFERED"}
    with open("/dev/full", "w") as full:
        done = subprocess.run([TOOL, "lint", tmp_path / "a.conf"], stdout=full,
                              stderr=subprocess.PIPE, text=True, check=False,
                              env=buffered)
    assert done.returncode == 1
    assert done.stderr == "msstune: [Errno 28] No space left on device\n"
