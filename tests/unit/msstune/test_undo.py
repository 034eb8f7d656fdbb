# SPDX-License-Identifier: GPL-2.0-only
"""Undo of several changes, when the disk fails, when the journal is damaged, or when
another user wrote it."""
import argparse
import errno
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import_path = str(Path(__file__).resolve().parents[1] / "lib")
sys.path.insert(0, import_path)

import msstune_kill as kill  # noqa: E402
import msstune_root  # noqa: E402
from msstune_root import snapshot  # noqa: E402
from msstune.commands import journal as cmd_journal  # noqa: E402
from msstune.settings import link, settings, sysctl  # noqa: E402
from msstune.transaction import journal, rollback_timer  # noqa: E402
from msstune.errors import NotSupported, TuneError  # noqa: E402
from msstune.transaction.transaction import Change  # noqa: E402

TOOL = kill.TOP / "userspace/msstune/msstune.sh"
FILES = {"net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
         "net/ipv4/tcp_wmem": "4096 16384 4194304\n",
         "net/core/rmem_max": "212992\n", "net/ipv4/tcp_ecn": "2\n"}
WANTED = ["net.ipv4.tcp_rmem=4096 131072 16777216",
          "net.core.rmem_max=4000000", "sysctl:net/ipv4/tcp_ecn=1"]


@pytest.fixture
def root(tmp_path):
    return msstune_root.make(tmp_path / "root", FILES)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def quick(state, root, monkeypatch):
    """A manager without a timer, with a short method to apply."""
    monkeypatch.setattr(rollback_timer, "armed", kill.no_timer)
    manager = kill.manager(state, root)
    manager.go = lambda *wanted: manager.apply(
        [Change(*settings.parse(text, root)) for text in wanted or WANTED], 1000)
    return manager


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)  # polling interval


# --- Disks that fail ----------------------------------------------------------

DISK = (errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT)


def test_a_disk_that_fails(state, root):
    """The disk fails at each write and fsync, once or permanently."""
    state.mkdir()
    tries, wrong = kill.disk_faults(state, root, WANTED, lambda: snapshot(root),
                                    DISK, range(1, 36))
    assert not wrong
    assert tries == 280


def test_a_disk_that_fails_and_a_kill(state, root):
    tries, wrong = kill.disk_faults(
        state, root, WANTED, lambda: snapshot(root), DISK, range(2, 30, 5),
        fatals=range(3, 40, 4))
    assert not wrong
    assert tries == 480


@pytest.mark.parametrize("code", DISK)
def test_the_timer_needs_no_disk(state, root, code):
    """Not confirmed in time, or killed, on a disk where every write fails."""
    before = snapshot(root)
    for fatal in (0, 14):
        kill.killed(lambda: kill.manager(state, root).apply(
            [Change(*settings.parse(text, root)) for text in WANTED], 0.3),
            fatal, timer=True, faults=kill.FaultyOs(code, 24))
        wait_until(lambda: snapshot(root) == before)


def test_rollback_reports_that_it_could_not_store(quick, root, monkeypatch):
    before = snapshot(root)
    quick.go()
    told = []
    quick.say = told.append
    with monkeypatch.context() as patch:
        patch.setattr(journal, "os", kill.FaultyOs(errno.ENOSPC))
        done, = quick.rollback()
        assert done.unlogged and snapshot(root) == before
    assert "No space left" in told[-1]
    done, = quick.rollback()
    assert not done.unlogged and not quick.pending()


def test_confirm_fails_on_a_full_disk(quick, root, monkeypatch):
    """And the timer is left to undo the change."""
    quick.go()
    disarmed = []
    with monkeypatch.context() as patch:
        patch.setattr(journal, "os", kill.FaultyOs(errno.EIO))
        patch.setattr(rollback_timer, "disarm", disarmed.append)
        with pytest.raises(TuneError, match="Input/output error; msstune status"):
            quick.confirm()
    assert not disarmed


def test_a_terminal_that_is_gone(quick, root):
    before = snapshot(root)
    quick.go()

    def hung_up(_):
        raise BrokenPipeError
    quick.say = hung_up
    quick.rollback()
    assert snapshot(root) == before


FULL = r"""
import os, sys
sys.path.insert(0, sys.argv[1])
import msstune_kill as kill
import msstune_root
from pathlib import Path
state = Path(sys.argv[2])
root = msstune_root.make(Path(sys.argv[3]), {
    f"net/ipv4/conf/eth{n}/mtu": "1500\n" for n in range(40)})  # several pages
before = msstune_root.snapshot(root)
kill.rollback_timer.armed = kill.no_timer
kill.applying(state, root, [
    f"net.ipv4.conf.eth{n}.mtu=9000" for n in range(40)])()
changed = msstune_root.snapshot(root) != before
if sys.argv[4] == "full":
    try:
        with open(state / "filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    except OSError as error:
        full = error.errno
else:
    full = os.system(f"mount -o remount,ro {state}")
done, = kill.manager(state, root).rollback()
print(changed, full, msstune_root.snapshot(root) == before, done.unlogged)
"""


@pytest.mark.parametrize("how, printed", [
    ("full", f"True {errno.ENOSPC} True \n"),
    ("read-only", "True 0 True Read-only file system\n")])
def test_a_real_disk_that_is(how, printed, tmp_path):
    """A tmpfs: the space of the journal was allocated at its start."""
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    (tmp_path / "disk").mkdir()
    mount = f"mount -t tmpfs -o size=200k,mode=755 none {tmp_path}/disk"
    if subprocess.run([*unshare, "sh", "-c", mount], check=False,
                      capture_output=True).returncode:
        pytest.skip("no right to mount")
    done = subprocess.run(
        [*unshare, "sh", "-c", f'{mount} && exec /usr/bin/python3 -c "$@"', "sh",
         FULL, import_path, str(tmp_path / "disk"), str(tmp_path / "root"), how],
        capture_output=True, text=True, check=False)
    assert done.stdout == printed, done.stdout + done.stderr


# --- Several changes, and values that read otherwise ----------------------------

def value(root, name):
    return (root / "proc/sys" / name).read_text()


def put(root, name, text):
    (root / "proc/sys" / name).write_text(text)


@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3))))
@pytest.mark.parametrize("values", [(1, 0, 3), (1, 2, 1), (1, 2, 0)])
def test_any_order_of_undoing_ends_with_the_oldest_value(quick, root, order, values):
    before = snapshot(root)
    for text in values:
        quick.go(f"net.ipv4.tcp_ecn={text}")
        quick.confirm()
    live = {number + 1: f"{text}\n" for number, text in enumerate(values)}
    for number in order:
        done, = quick.rollback(number)
        live.pop(number)
        newest = max(live, default=0)
        # An older change that is undone changes nothing while a newer one is live.
        if newest > number:
            assert done.entries[0].undone == "inherited"
        assert newest < number or value(root, "net/ipv4/tcp_ecn") == live[newest]
    assert snapshot(root) == before


def test_a_value_of_another_writer_is_not_inherited(quick, root):
    quick.go("net.ipv4.tcp_ecn=1")
    quick.confirm()
    put(root, "net/ipv4/tcp_ecn", "3\n")
    quick.go("net.ipv4.tcp_ecn=0")
    quick.confirm()
    done, = quick.rollback(1)
    assert done.entries[0].undone == "drifted"
    quick.rollback(2)
    assert value(root, "net/ipv4/tcp_ecn") == "3\n"


def test_a_change_on_a_full_disk_cannot_inherit(quick, root, monkeypatch):
    """It is reported, and works later."""
    before = snapshot(root)
    for text in "10":
        quick.go(f"net.ipv4.tcp_ecn={text}")
        quick.confirm()
    with monkeypatch.context() as patch:
        patch.setattr(journal, "os", kill.FaultyOs(errno.ENOSPC))
        with pytest.raises(TuneError, match="tries again"):
            quick.rollback(1)
    quick.rollback(1)
    quick.rollback(2)
    assert snapshot(root) == before


def test_values_are_compared_as_the_kernel_reads_them(quick, root, monkeypatch):
    """The kernel prints tcp_fastopen=0x403 as 1027, and a list as ranges."""
    printed = {"0x403": "1027", "010 0x20  30": "8\t32\t30", "-1": "-1",
               "1,2,3,9": "1-3,9"}
    original = sysctl.Sysctl.write
    monkeypatch.setattr(sysctl.Sysctl, "write", lambda self, text: original(
        self, printed.get(text, text)))
    for name in ("tcp_fastopen", "tcp_abc", "tcp_x", "ip_local_reserved_ports"):
        put(root, f"net/ipv4/{name}", "7\n")
    before = snapshot(root)
    quick.go(*(f"net.ipv4.{name}={text}" for name, text in zip(
        ("tcp_fastopen", "tcp_abc", "tcp_x", "ip_local_reserved_ports"), printed)))
    setting = settings.named("sysctl:net.ipv4.tcp_fastopen", root)
    assert setting.same("0x403", "1027\n") and setting.same("02003", " 1027")
    assert not setting.same("403", "0x403") and not setting.same("08", "8")
    assert not setting.same("1 2", "12") and not setting.same("bbr", "cubic")
    quick.rollback()
    assert snapshot(root) == before


def test_a_key_of_another_namespace_is_refused(root):
    """In a namespace the kernel shows nf_conntrack_max, read-only."""
    put(root, "net/ipv4/nf_conntrack_max", "64\n")
    path = root / "proc/sys/net/ipv4/nf_conntrack_max"
    path.chmod(0o444)
    for text in ("64", "128"):
        with pytest.raises(NotSupported, match="has no such key of its own"):
            settings.parse(f"net.ipv4.nf_conntrack_max={text}", root)


def test_a_queue_of_length_0(monkeypatch):
    """ip(8) prints no txqlen for it."""
    monkeypatch.setattr(link, "show", lambda device: {"ifindex": 2})
    assert settings.named("txqueuelen:eth0").read() == "0"


def test_a_value_that_cannot_be_read_stops_nothing(quick, root, monkeypatch):
    before = snapshot(root)
    quick.go()
    original = sysctl.Sysctl.read

    def failing(self):
        if self.target.endswith("rmem_max"):
            raise KeyError("txqlen")
        return original(self)
    monkeypatch.setattr(sysctl.Sysctl, "read", failing)
    assert "KeyError" in quick.drift(quick.transactions()[0].entries[1])
    monkeypatch.setattr("msstune.transaction.transaction.boottime", lambda: 1e12)
    quick.go("net.ipv4.tcp_wmem=4096 16384 5000000")
    assert [e.undone for e in quick.transactions()[0].entries] == [
        "restored", "gone", "restored"]
    quick.rollback()
    put(root, "net/core/rmem_max", FILES["net/core/rmem_max"])
    assert snapshot(root) == before


def test_changes_that_ended_are_not_read_again(quick, monkeypatch):
    monkeypatch.setattr(journal, "KEPT", 5)
    for _ in range(8):
        quick.go("net.ipv4.tcp_ecn=1")
        quick.rollback()
    read = []
    original = journal._read
    monkeypatch.setattr(journal, "_read", lambda number, path: (
        read.append(number), original(number, path))[1])
    assert quick.go("net.ipv4.tcp_ecn=1").number == 9
    quick.confirm()
    assert set(read) <= {8, 9}
    assert [t.number for t in quick.transactions()] == [9]
    assert [t.number for t in quick.transactions(ended=True)] == [4, 5, 6, 7, 8, 9]
    # Numbers are not used again, even if all live changes are gone.
    quick.rollback(9)
    assert quick.go("net.ipv4.tcp_ecn=1").number == 10


# --- Journals that cannot be used ---------------------------------------------

def damage(manager, old, new):
    """Replace bytes in the newest journal."""
    path = manager.transactions()[-1].path
    text = path.read_bytes()
    assert old in text and len(old) == len(new)
    path.write_bytes(text.replace(old, new))


@pytest.mark.parametrize("old, undone", [
    (b'"op": "applied"', 3), (b'"op": "done", "n": 1', 3),
    (b'"op": "begin"', 3), (b'"op": "intent", "n": 1', 3)])
def test_a_damaged_journal_stops_nothing(quick, root, old, undone):
    before = snapshot(root)
    quick.go()
    damage(quick, old, b"#" * len(old))
    told = []
    quick.say = told.append
    assert quick.transactions()[-1].state == "damaged" and not quick.pending()
    quick.go("net.ipv4.tcp_wmem=4096 16384 5000000")
    assert "journal is damaged" in told[0]
    assert (quick.journal.folder / "000001.jsonl.damaged").exists()
    quick.rollback()
    assert [t.state for t in quick.transactions()] == ["ended", "ended"]
    now = snapshot(root)
    assert len([key for key in now if now[key] == before[key]]) == 1 + undone


def damages(text, size):
    """The name and content of a journal @text, damaged in every way."""
    chosen = random.Random(7)
    for _ in range(25):
        at = chosen.randrange(len(text))
        yield f"bit {at}", (text[:at] + bytes([text[at] ^ 1 << chosen.randrange(8)])
                            + text[at + 1:]).ljust(size, b"\0")
        yield f"cut at {at}", text[:at]
        yield f"zero from {at}", text[:at].ljust(size, b"\0")
        yield f"zero before {at}", (bytes(at) + text[at:]).ljust(size, b"\0")
    lines = text.splitlines(keepends=True)
    for at in range(len(lines)):
        yield f"no line {at}", b"".join(
            lines[:at] + lines[at + 1:]).ljust(size, b"\0")
    yield "empty", b""


def test_no_damage_is_called_undone(quick, root, state, capsys):
    """All is restored, or the damage is reported: with status 1 and the file."""
    before = snapshot(root)
    quick.go()
    quick.confirm()
    path = quick.transactions()[-1].path
    whole, after = path.read_bytes(), snapshot(root)
    wrong, reported = [], 0
    for name, data in damages(whole.rstrip(b"\0"), len(whole)):
        for file in quick.journal.folder.iterdir():
            file.unlink()
        path.write_bytes(data)
        path.chmod(0o600)
        for key, content in after.items():
            (root / key).write_bytes(content)
        arguments = argparse.Namespace(state=state, root=root, json=False, all=True,
                                       number=None, settings=())
        status = cmd_journal.rollback(arguments)
        out = capsys.readouterr().out
        damaged = status == 1 and "journal is damaged" in out and str(path) in out
        reported += damaged
        if not damaged and (snapshot(root) != before or "1: undone" not in out):
            wrong.append((name, status, out))
        assert cmd_journal.rollback(arguments) == 0  # it is reported once
        capsys.readouterr()
    assert not wrong
    assert reported > 50


def test_a_journal_of_an_older_version(quick, root):
    """Without checksums and numbers of lines."""
    before = snapshot(root)
    quick.go()
    path = quick.transactions()[-1].path
    path.write_bytes(b"".join(
        json.dumps({key: value for key, value in json.loads(line).items()
                    if key not in ("crc", "i", "size", "settings")}).encode() + b"\n"
        for line in path.read_bytes().rstrip(b"\0").splitlines()))
    assert quick.transactions()[-1].state == "waiting"
    quick.rollback()
    assert snapshot(root) == before


def test_the_timer_has_a_copy_of_a_damaged_journal(state, root):
    before = snapshot(root)
    manager = kill.manager(state, root)
    manager.apply([Change(*settings.parse(text, root)) for text in WANTED], 0.5)
    path = manager.transactions()[-1].path
    path.write_bytes(b"\x00garbage\n" * 20)
    wait_until(lambda: snapshot(root) == before)


def test_the_timer_does_not_wait_for_a_stopped_process(state, root, monkeypatch):
    before = snapshot(root)
    monkeypatch.setattr("msstune.transaction.transaction.PATIENCE", 0.2)
    manager = kill.manager(state, root)
    with_lock = kill.manager(state, root)
    manager.apply([Change(*settings.parse(text, root)) for text in WANTED], 0.2)
    with with_lock.journal.lock():
        wait_until(lambda: snapshot(root) == before)


@pytest.mark.parametrize("text, after", [
    ("4000000", True), ("4000000", False), ("1", False), ("1", True)])
def test_apply_that_was_stopped_writes_no_more(quick, root, state, monkeypatch,
                                               text, after):
    """The timer undoes a part of it; the rest must not be written later."""
    monkeypatch.setattr("msstune.transaction.transaction.PATIENCE", 0.1)
    before = snapshot(root)
    original = sysctl.Sysctl.write

    def stopped(self, value):
        """Before or after it writes the second setting, or the third."""
        if value == text and not after:
            assert kill.manager(state, root).expire(1, "timer")
        original(self, value)
        if value == text and after:
            assert kill.manager(state, root).expire(1, "timer")
    monkeypatch.setattr(sysctl.Sysctl, "write", stopped)
    with pytest.raises(TuneError, match="undone meanwhile|is in force"):
        quick.go()
    assert snapshot(root) == before


@pytest.mark.parametrize("mode, owner, why", [
    (0o602, 0, "other users may write"), (0o620, 0, "other users may write"),
    (0o600, 12345, "belongs to user 12345")])
def test_a_journal_of_others_is_refused(quick, root, mode, owner, why):
    if os.geteuid():
        pytest.skip("needs root to give a file away")
    quick.go()
    after = snapshot(root)
    path = quick.transactions()[-1].path
    path.chmod(mode)
    os.chown(path, owner, -1)
    assert why in quick.transactions()[-1].refused
    assert not quick.rollback(confirmed=True) and not quick.expire(1, "timer")
    with pytest.raises(TuneError, match="no such change"):
        quick.rollback(1)
    assert snapshot(root) == after


def test_a_journal_is_no_symlink(quick, root, tmp_path):
    quick.go()
    path = quick.transactions()[-1].path
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert quick.transactions()[-1].refused and not quick.rollback()


def test_a_folder_of_others_is_refused(quick, root):
    quick.go()
    quick.journal.folder.chmod(0o777)
    with pytest.raises(TuneError, match="other users may write"):
        quick.rollback()


def test_status_of_another_user(quick, state, root, tmp_path):
    """Who cannot look does not report that nothing is applied."""
    if os.geteuid():
        pytest.skip("needs root to become another user")
    quick.go()
    # That user may be unable to enter the folder that holds this tree.
    tool = tmp_path / "copy" / TOOL.relative_to(kill.TOP)
    shutil.copytree(TOOL.parent, tool.parent)
    for folder in (*tmp_path.parents, tmp_path):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", tool, "--state", state,
         "--root", root, "status"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "permission denied" in done.stderr, done
    assert not done.stdout
