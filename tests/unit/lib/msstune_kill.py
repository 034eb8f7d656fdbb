# SPDX-License-Identifier: GPL-2.0-only
"""Kills msstune: forks, runs one step of the manager, and dies by SIGKILL at a
chosen boundary.  Used by msstune/test_apply.py, which also runs it
in a network namespace of its own: python3 msstune_kill.py.

A boundary lies before and after every line of the journal and every write of a
setting, and in the middle of every line.
"""
import errno
import os
import shutil
import signal
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune.settings import settings, sysctl  # noqa: E402
from msstune.transaction import journal, rollback_timer, transaction  # noqa: E402
from msstune.errors import TuneError  # noqa: E402
from msstune.transaction.transaction import Change, TransactionManager  # noqa: E402
from msstune.transaction.journal import Journal  # noqa: E402

Sysctl = sysctl.Sysctl


@contextmanager
def no_timer(*_):
    """The timer is dead as well: only the next msstune can undo."""
    yield {"pid": 1 << 30, "start": 1, "unit": ""}


class Boundaries:
    """Counts boundaries, and kills the process at one of them."""

    def __init__(self, fatal):
        self.count, self.fatal = 0, fatal
        self.pid = os.getpid()  # not a timer forked from it

    def pass_one(self):
        self.count += os.getpid() == self.pid
        if os.getpid() == self.pid and self.count == self.fatal:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, function, torn=None):
        def wrapped(*arguments):
            self.pass_one()
            if torn and os.getpid() == self.pid and self.count + 1 == self.fatal:
                torn(*arguments)
            self.pass_one()
            result = function(*arguments)
            self.pass_one()
            return result
        return wrapped


def torn_line(_journal, path, flags, record, *_):
    """Write a part of the line behind the last one."""
    fd = os.open(path, flags, 0o600)
    start = os.pread(fd, 1 << 20, 0).rfind(b"\n") + 1
    os.pwrite(fd, b'{"op": "' + record["op"].encode(), start)


class FaultyOs:
    """Stands for the module os in journal.py.  Each call that writes to the disk
    fails with @code, from the one with number @first on, @times times."""

    def __init__(self, code, first=1, times=10**6):
        self.code, self.left, self.times, self.cut = code, first, times, False

    def __getattr__(self, name):
        return getattr(os, name)

    def fail(self):
        self.left -= 1
        if self.left <= 0 and self.times > 0:
            self.times -= 1
            raise OSError(self.code, os.strerror(self.code))

    def open(self, path, flags, *mode):
        new = flags & os.O_CREAT and not os.path.lexists(path)
        if new or self.code == errno.EROFS and flags & (os.O_RDWR | os.O_WRONLY):
            self.fail()
        return os.open(path, flags, *mode)

    def pwrite(self, fd, data, at):
        self.cut = not self.cut
        if self.cut and self.left <= 1 and self.times > 0 and len(data) > 1:
            return os.pwrite(fd, data[:len(data) // 2], at)  # the last that fits
        self.fail()
        return os.pwrite(fd, data, at)

    def fsync(self, _fd):
        self.fail()  # no crash of the machine is tested: save the time

    def rename(self, old, new):
        self.fail()
        os.rename(old, new)


def killed(step, fatal=0, timer=False, faults=None):
    """Run step() in a child that dies at boundary @fatal, or whose disk has @faults.
    False: the child reached its end, because there are fewer boundaries."""
    child = os.fork()
    if child == 0:
        boundaries = Boundaries(fatal)
        Journal._write = boundaries.around(Journal._write, torn_line)
        if faults:
            journal.os = faults
        for kind in settings.KINDS.values():
            if "write" in vars(kind):
                kind.write = boundaries.around(kind.write)
        if not timer:
            rollback_timer.armed = no_timer
            transaction.rollback_timer.armed = no_timer
        try:
            step()
            os._exit(0)
        except TuneError as error:
            if not faults:
                print(repr(error), file=sys.stderr)
            os._exit(0 if faults else 1)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.WEXITSTATUS(status) == 0, "the step failed"
    return False


def manager(state, root):
    return TransactionManager(state, root, say=lambda text: None)


def applying(state, root, texts):
    """A step: apply the settings @texts."""
    return lambda: manager(state, root).apply(
        [Change(*settings.parse(text, root)) for text in texts], 1000)


def recovering(state, root):
    def step():
        it = manager(state, root)
        with it.journal.lock():
            it.recover()
        it.rollback()
    return step


def restored(state, root, texts, snapshot, fatals=range(1, 1000),
             undo_fatals=(0,)):
    """Kill apply at each boundary of @fatals, kill the undo of the next run at each
    of @undo_fatals, run again.  Returns the number of tries, and those after which
    snapshot() has changed."""
    before, tries, wrong = snapshot(), 0, []
    for fatal in fatals:
        was_killed = False
        for undo_fatal in undo_fatals:
            was_killed = killed(applying(state, root, texts), fatal)
            if undo_fatal:
                killed(recovering(state, root), undo_fatal)
            recovering(state, root)()
            shutil.rmtree(state)
            tries += 1
            if snapshot() != before:
                wrong.append((fatal, undo_fatal, snapshot()))
        if not was_killed:
            break
    return tries, wrong


def disk_faults(state, root, texts, snapshot, codes, positions, fatals=(0,)):
    """Apply with a disk that fails, killed at each boundary of @fatals (0: not at
    all); then undo on a disk on which every write fails.  Returns the number of
    tries, and those after which snapshot() has changed."""
    before, tries, wrong = snapshot(), 0, []
    for code in codes:
        for first in positions:
            for times in (1, 10**6):
                for fatal in fatals:
                    killed(applying(state, root, texts), fatal,
                           faults=FaultyOs(code, first, times))
                    killed(recovering(state, root), faults=FaultyOs(code))
                    tries += 1
                    if snapshot() != before:
                        wrong.append((code, first, times, fatal, snapshot()))
                    recovering(state, root)()
                    left = manager(state, root).pending()
                    if left or snapshot() != before:
                        wrong.append((code, first, times, fatal, left))
                    shutil.rmtree(state)
    return tries, wrong


def main():
    """In its own network namespace: real sysctls, a device and a route."""
    os.system("ip link set lo up && ip addr add 10.9.0.1/24 dev lo && "
              "ip route add 10.8.0.0/16 via 10.9.0.2")
    ipv4 = Path("/proc/sys/net/ipv4")

    def snapshot():
        return ([(ipv4 / name).read_bytes() for name in
                 ("tcp_rmem", "tcp_wmem", "tcp_ecn")]
                + [os.popen("ip link show lo; ip route").read()])
    texts = ["sysctl:net.ipv4.tcp_rmem=4096 87380 9999999",
             "txqueuelen:lo=77", "sysctl:net.ipv4.tcp_ecn=1",
             "route:10.8.0.0/16:initcwnd=22",
             "sysctl:net.ipv4.tcp_wmem=4096 9999 999999"]
    with tempfile.TemporaryDirectory() as state:
        tries, wrong = restored(Path(state), Path("/"), texts, snapshot)
        # Check that there were changes to undo.
        before = snapshot()
        killed(applying(Path(state), Path("/"), texts), 10**6)
        changed = sum(old != new for old, new in zip(before, snapshot()))
        recovering(Path(state), Path("/"))()
    print(f"{tries} tries, {changed} of {len(before)} changed, wrong: {wrong}")
    return 1 if wrong or tries < 40 or changed != len(before) else 0


if __name__ == "__main__":
    sys.exit(main())
