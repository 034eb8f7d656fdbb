# SPDX-License-Identifier: GPL-2.0-only
"""apply, confirm, rollback: after a kill at any moment every setting has its old
value, or the confirmed one; the value of another writer is left alone."""
import errno
import json
import os
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
from msstune import system  # noqa: E402
from msstune.lint import read as lint_read  # noqa: E402
from msstune.settings import (conflicts, ethtool, qdisc, rss, settings,  # noqa: E402
                              sysctl)
from msstune.transaction import export, request, rollback_timer  # noqa: E402
from msstune.transaction.transaction import Change, TransactionManager  # noqa: E402
from msstune.errors import NotSupported, TuneError, UsageError  # noqa: E402
from msstune.transaction.journal import Entry  # noqa: E402

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


def value(root, name):
    return (root / "proc/sys" / name).read_text()


def put(root, name, text):
    (root / "proc/sys" / name).write_text(text)


@pytest.fixture
def quick(state, root, monkeypatch):
    """A manager without a timer, with a short method to apply."""
    monkeypatch.setattr(rollback_timer, "armed", kill.no_timer)
    manager = kill.manager(state, root)
    manager.go = lambda *wanted: manager.apply(
        [Change(*settings.parse(text, root)) for text in wanted or WANTED], 1000)
    return manager


# --- Kills ------------------------------------------------------------------

def test_killed_at_every_boundary(state, root):
    """Kill apply at each boundary, and the undo after it at several."""
    tries, wrong = kill.restored(state, root, WANTED, lambda: snapshot(root),
                                 undo_fatals=(0, 2, 4, 7, 11, 15))
    assert not wrong
    assert tries >= 200


def test_killed_in_a_namespace():
    """As above, with real sysctls, a device and a route."""
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    if subprocess.run([*unshare, "true"], check=False,
                      capture_output=True).returncode:
        pytest.skip("no right to make a network namespace")
    done = subprocess.run([*unshare, sys.executable, kill.__file__],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


DEVICE = r"""
import os, subprocess, sys, tempfile
sys.path.insert(0, sys.argv[1])
import msstune_kill as kill
from pathlib import Path

def shown():
    return [os.popen(c).read() for c in (
        "ip -d link show va", "tc qdisc show dev va", "ethtool -k va",
        "grep . /sys/class/net/va/queues/*/[rx]ps_cpus "
        "/sys/class/net/va/gro_flush_timeout")]
before = shown()
wanted = ["mtu:va=9000", "offload:va:tso=off", "offload:va:gro=on",
          "qdisc:va=pfifo limit 7", "queue:va:rx-0/rps_cpus=2",
          "queue:va:tx-0/xps_cpus=1", "queue:va:gro_flush_timeout=20000"]
kill.rollback_timer.armed = kill.no_timer
with tempfile.TemporaryDirectory() as state:
    kill.applying(Path(state), Path("/"), wanted)()
    after = shown()
    done, = kill.manager(Path(state), Path("/")).rollback()
print([e.undone for e in done.entries], [a != b for a, b in zip(after, before)],
      shown() == before)
"""


def test_every_setting_of_a_device_is_restored():
    """On a veth, in a network namespace with its own /sys."""
    unshare = ["unshare", "-n", "-m"] if os.geteuid() == 0 else [
        "unshare", "-rnm"]
    made = subprocess.run(
        [*unshare, "sh", "-c", "mount -t sysfs none /sys && ip link add va "
         "type veth peer name vb"], check=False, capture_output=True)
    if made.returncode:
        pytest.skip("cannot make a namespace with a veth: "
                    + made.stderr.decode().strip())
    done = subprocess.run(
        [*unshare, "sh", "-c", "mount -t sysfs none /sys && ip link add va "
         "type veth peer name vb && ip link set va up && exec "
         '/usr/bin/python3 -c "$0" "$1"', DEVICE, import_path],
        check=False, capture_output=True, text=True)
    assert done.stdout == (f"{['restored'] * 7} {[True] * 4} True\n"
                           ), done.stdout + done.stderr


def wait_until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)  # polling interval


@pytest.mark.parametrize("fatal", [5, 9, 14, 19, 24])
def test_the_timer_undoes_a_killed_apply(state, root, fatal):
    """No other msstune runs: the timer notices the death of apply."""
    before = snapshot(root)
    assert kill.killed(kill.applying(state, root, WANTED), fatal, timer=True)
    manager = kill.manager(state, root)
    wait_until(lambda: all(t.ended for t in manager.transactions()))
    assert snapshot(root) == before


def test_killed_while_confirming(quick, root, state):
    """The change is waiting or confirmed, never in between."""
    outcomes = set()
    before = snapshot(root)
    for fatal in range(1, 6):
        quick.go()
        after = snapshot(root)
        kill.killed(lambda: kill.manager(state, root).confirm(), fatal)
        last = quick.transactions()[-1]
        outcomes.add(last.state)
        quick.recover()
        assert snapshot(root) == after
        quick.rollback(confirmed=True)
        assert snapshot(root) == before
    assert outcomes == {"waiting", "confirmed"}


def test_undone_if_not_confirmed_in_time(state, root):
    before = snapshot(root)
    manager = kill.manager(state, root)
    manager.apply([Change(*settings.parse(WANTED[0], root))], 0.3)
    assert snapshot(root) != before
    wait_until(lambda: all(t.ended for t in manager.transactions()))
    assert manager.transactions()[0].ended == "timer"
    assert snapshot(root) == before


#: Applies a setting, and gets SIGTERM during the fork of the timer.
FORKING = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import msstune_kill as kill
from pathlib import Path
from msstune.transaction import rollback_timer
process = os.getpid()

def during():
    if os.getpid() == process:
        os.kill(process, signal.SIGTERM)
    for _ in range(1000):
        pass

def stop(*_):
    raise KeyboardInterrupt

os.register_at_fork(after_in_parent=during)
signal.signal(signal.SIGTERM, stop)
undoer = lambda: kill.manager(Path(sys.argv[2]), Path(sys.argv[2]))
try:
    with rollback_timer.armed(undoer, Path(sys.argv[2]), Path(sys.argv[2]), 1, 1):
        pass
except KeyboardInterrupt:
    print("ended", signal.pthread_sigmask(signal.SIG_BLOCK, ()))
"""


def test_a_signal_while_the_timer_starts_ends_msstune(state):
    ran = subprocess.run([sys.executable, "-c", FORKING, import_path,
                          str(state)], capture_output=True, text=True, timeout=60)
    assert ran.stdout == "ended set()\n", ran


def test_confirm_ends_the_timer(state, root):
    manager = kill.manager(state, root)
    done = manager.apply([Change(*settings.parse(WANTED[0], root))], 1000)
    assert rollback_timer.alive(done.timer)
    manager.confirm()
    wait_until(lambda: not rollback_timer.alive(done.timer))
    assert "16777216" in value(root, "net/ipv4/tcp_rmem")


def test_the_next_command_undoes_after_a_dead_timer(quick, root, monkeypatch):
    before = snapshot(root)
    quick.go()
    monkeypatch.setattr("msstune.transaction.transaction.boottime", lambda: 1e12)
    with quick.journal.lock():
        quick.recover()
    assert snapshot(root) == before


def test_a_reboot_ends_every_change(quick, root, monkeypatch):
    """The reboot reset the kernel's settings: present values are not ours."""
    quick.go()
    after = snapshot(root)
    quick.boot = "another"
    with quick.journal.lock():
        quick.recover()
    assert quick.transactions()[0].ended == "reboot"
    assert snapshot(root) == after
    quick.go("net.ipv4.tcp_ecn=0")
    quick.confirm()
    quick.boot = "a third"
    assert quick.rollback(confirmed=True)[0].ended == "reboot"
    assert value(root, "net/ipv4/tcp_ecn") == "0\n"


# --- Other writers ----------------------------------------------------------

def test_drift_is_left_alone(quick, root):
    quick.go()
    put(root, "net/core/rmem_max", "5000000\n")
    entries = quick.transactions()[0].entries
    assert [quick.drift(e) for e in entries] == [
        "in force", "drifted: now 5000000", "in force"]
    done, = quick.rollback()
    assert [e.undone for e in done.entries] == ["restored", "drifted",
                                                "restored"]
    assert value(root, "net/core/rmem_max") == "5000000\n"
    assert value(root, "net/ipv4/tcp_rmem") == FILES["net/ipv4/tcp_rmem"]


def test_undo_goes_backwards(quick, root):
    told = []
    quick.say = told.append
    quick.go()
    quick.rollback()
    assert [line.split(":")[1].split(".")[-1] for line in told] == [
        "tcp_ecn", "rmem_max", "tcp_rmem"]


def test_undo_compares_with_the_rounded_value(quick, root, monkeypatch):
    """The kernel rounds a value: undo compares with the value read back."""
    original = sysctl.Sysctl.write
    monkeypatch.setattr(sysctl.Sysctl, "rounds", True)
    monkeypatch.setattr(sysctl.Sysctl, "write", lambda self, text: original(
        self, "4000512" if text == "4000000" else text))
    before = snapshot(root)
    done = quick.go()
    assert done.entries[1].got == "4000512\n"
    quick.rollback()
    assert snapshot(root) == before


def test_a_refused_value_undoes_all(quick, root, monkeypatch):
    original = sysctl.Sysctl.write

    def refusing(self, text):
        if text == "1":
            raise OSError(22, "Invalid argument")
        original(self, text)
    monkeypatch.setattr(sysctl.Sysctl, "write", refusing)
    before = snapshot(root)
    with pytest.raises(TuneError, match="tcp_ecn=1: Invalid argument; all"):
        quick.go()
    assert snapshot(root) == before
    assert quick.transactions()[0].ended == "failed"


def test_a_value_that_is_not_in_force_undoes_all(quick, root, monkeypatch):
    original = sysctl.Sysctl.write
    monkeypatch.setattr(sysctl.Sysctl, "write", lambda self, text: original(
        self, "3" if text == "1" else text))
    before = snapshot(root)
    with pytest.raises(TuneError, match="1 was written, but 3 is in force"):
        quick.go()
    assert snapshot(root) == before


def test_a_failed_undo_is_tried_again(quick, root, monkeypatch):
    before = snapshot(root)
    quick.go()
    with monkeypatch.context() as patch:
        patch.setattr(sysctl.Sysctl, "write",
                      lambda self, text: (_ for _ in ()).throw(OSError("no")))
        with pytest.raises(TuneError, match="tries again"):
            quick.rollback()
    assert quick.pending()
    quick.rollback()
    assert snapshot(root) == before


def test_one_change_waits_at_a_time(quick, root):
    quick.go()
    with pytest.raises(TuneError, match="waits: run msstune confirm"):
        quick.go("net.ipv4.tcp_wmem=4096 16384 5000000")
    quick.confirm()
    with pytest.raises(TuneError, match="nothing waits"):
        quick.confirm()
    with quick.journal.lock():
        with pytest.raises(TuneError, match="another msstune"):
            quick.go("net.ipv4.tcp_wmem=4096 16384 5000000")


def test_an_outdated_plan_is_refused(quick, root, tmp_path):
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"format": "msstune-plan", "settings": [
        {"setting": "sysctl:net.ipv4.tcp_ecn", "old": "2", "new": "1",
         "reason": "r", "source": "s"}]}))
    changes = request.changes_of([str(plan)], root)
    assert quick.apply(changes, 10).entries[0].reason == "r (s)"
    quick.rollback()
    put(root, "net/ipv4/tcp_ecn", "0\n")
    with pytest.raises(TuneError, match="plan again"):
        quick.apply(changes, 10)
    assert value(root, "net/ipv4/tcp_ecn") == "0\n"


def test_rival_programs_are_reported(root):
    rmem, _ = settings.parse(WANTED[0], root)
    mtu = settings.named("mtu:lo")
    found = conflicts.find([rmem, mtu], {"bpftune", "NetworkManager", "bash"})
    assert [(r.comm, names, r.blocks) for r, names in found] == [
        ("bpftune", [rmem.name], True), ("NetworkManager", ["mtu:lo"], False)]
    assert not conflicts.find([mtu], {"bpftune", "irqbalance"})
    assert conflicts.running() >= {"pytest"} or conflicts.running()


def test_systemd_gets_a_timer(tmp_path, monkeypatch, state, root):
    """A stand-in for systemd-run logs its arguments."""
    log = tmp_path / "log"
    fake = tmp_path / "bin/systemd-run"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho "$@" >>{log}\n')
    fake.chmod(0o755)
    shutil.copy(fake, tmp_path / "bin/systemctl")
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(rollback_timer, "SYSTEMD", tmp_path)
    monkeypatch.setattr(rollback_timer, "in_first_namespace", lambda: True)
    manager = kill.manager(state, root)
    manager.apply([Change(*settings.parse(WANTED[0], root))], 77)
    manager.confirm()
    started, stopped = log.read_text().splitlines()
    assert "--on-active=77s" in started and started.endswith(" timer 1 0")
    assert stopped.startswith("stop msstune-") and stopped.endswith(".timer")


# --- Spelling, and what is refused ------------------------------------------

@pytest.mark.parametrize("text, sentence", [
    ("tcp_rmem", "KIND:TARGET=VALUE"), ("net.ipv4.tcp_rmem=", "KIND:TARGET"),
    ("foo:bar=1", "KIND one of sysctl"), ("net.ipv4.nothing=1", "no such sysctl"),
    ("sysctl:../../etc/passwd=1", "no such sysctl"),
    ("net.ipv4.tcp_sack=0", "without SACK"),
    ("net.core.rmem_max=9999999999", "EINVAL"),
    ("mtu:eth0=67", "68..65536"), ("mtu:-x=1500", "mtu:DEVICE"),
    ("mtu:eth0:rx=1500", "mtu:DEVICE"),
    ("ring:eth0:foo=1", "NAME one of rx, tx"),
    ("channels:eth0:other=1", "NAME one of rx, tx, combined"),
    ("rss:eth0:0=1", "rss:DEVICE=RING"), ("rss:eth0=0-3", "rings such as"),
    ("offload:eth0:gro=1", "on or off"), ("coalesce:eth0:rx-usecs=x", "whole"),
    ("coalesce:eth0:adaptive-rx=1", "on or off"),
    ("net.ipv4.tcp_mem=0 0 0", "connections stall"),
    ("net.ipv4.tcp_rmem=1 1 1", "two packets"),
    ("net.core.netdev_max_backlog=0", "drop packets"),
    ("net.ipv4.ip_local_port_range=60000 1024", "LOW HIGH"),
    ("mtu:lo=1279", "IPv6 addresses"), ("qdisc:eth0=fq limit 0", "every packet"),
    ("qdisc:eth0=htb", "can be set and undone"),
    ("qdisc:eth0:1=pfifo", "MAJOR:MINOR"),
    ("qdisc:eth0:1:1=default", "only at the root"),
    ("route:10.0.0.0/8:foo=1", "NAME one of initcwnd"),
    ("route:10.0.0.0/8:cwnd=lock", "lock VALUE"),
])
def test_refused(text, sentence, root):
    with pytest.raises(UsageError, match=sentence):
        setting, _ = settings.parse(
            text, root if text.startswith(("net", "sysctl")) else Path("/"))
        setting.read()


def test_other_kinds_are_not_below_a_root(root):
    with pytest.raises(NotSupported):
        settings.parse("mtu:lo=9000", root)


@pytest.mark.parametrize("kind, options, words", [
    ("pfifo", {"limit": 77}, "pfifo limit 77"),
    ("fq_codel", {"limit": 10240, "target": 4999, "ecn": True},
     "fq_codel limit 10240 target 4999us ecn"),
    ("fq_codel", {"limit": 333}, "fq_codel limit 333 noecn"),
    ("fq", {"limit": 1, "maxrate": 125000000, "horizon_drop": None},
     "fq limit 1 maxrate 125000000bps horizon_drop"),
    ("fq", {"limit": 1, "pacing": False, "horizon_cap": None},
     "fq limit 1 nopacing horizon_cap"),
    ("fq", {"bands": 3, "priomap ": [1, 2, 0], "offload_horizon": 0,
            "weights ": [589824, 196608, 65536]},
     "fq bands 3 priomap 1 2 0 offload_horizon 0us")])
def test_arguments_for_tc(kind, options, words):
    assert qdisc.spelled(kind, options) == words
    with pytest.raises(NotSupported):
        qdisc.spelled(kind, {**options, "novel": 1})


def test_weights_that_tc_would_misread_are_refused():
    with pytest.raises(NotSupported, match="weights"):
        qdisc.spelled("fq", {"weights ": [1, 2, 3]})


# --- RSS -------------------------------------------------------------------

class Card:
    """The ethtool ioctl of a card with two rings and a table of eight."""

    def __init__(self):
        self.table, self.combined, self.default = [0, 1] * 4, 2, True

    def __call__(self, _device, words):
        number, *rest = words
        if number == 0x38:                                  # GRXFHINDIR
            return [number, 8, *(self.table if rest[0] else [])]
        if number == 0x2d:                                  # GRXRINGS
            return [number, 0, 2, *rest[2:]]
        if number == 0x39 and rest == [0]:
            self.table, self.default = [0, 1] * 4, True
        elif number == 0x39:
            self.default = False
            if max(rest[1:]) >= 2:
                raise OSError(errno.EINVAL, "Invalid argument")
            self.table = rest[1:]
        elif number == 0x3c:                                # GCHANNELS
            return [number, 0, 0, 0, 2, 0, 0, 0, self.combined]
        elif number == 0x3d and not rest[7]:
            raise OSError(errno.EINVAL, "Invalid argument")
        elif number == 0x3d:
            self.combined = rest[7]
        return words


@pytest.fixture(name="card")
def _card(monkeypatch):
    card = Card()
    monkeypatch.setattr(ethtool, "call", card)
    monkeypatch.setattr(rss, "call", card)
    return card


def test_rss_repeats_its_rings_over_the_table(card):
    setting, value = settings.parse("rss:eth0=1")
    assert setting.read() == "0,1"
    setting.write(value)
    assert card.table == [1] * 8 and setting.read() == "1"
    setting.write("0,1,1")
    assert card.table == [0, 1, 1, 0, 1, 1, 0, 1] and setting.read() == "0,1,1"
    assert not card.default
    assert setting.same("0,1,0,1", "0,1") and not setting.same("1,0", "0,1")
    setting.write("0,1")
    assert card.table == [0, 1] * 4 and card.default


@pytest.mark.parametrize("text, error, sentence", [
    ("rss:eth0=0,1,0,1,0,1,0,1,0", UsageError, "the table has 8 places"),
    ("rss:eth0=2", TuneError, "Invalid argument; ethtool -x eth0 names its rings"),
    ("channels:eth0:combined=3", UsageError, "the driver allows 2"),
    ("channels:eth0:rx=1", UsageError, "the driver allows 0"),
    ("channels:eth0:combined=0", TuneError, "set by hand .ethtool -x. keeps its rings"),
])
def test_rings_that_a_card_has_not(card, text, error, sentence):
    with pytest.raises(error, match=sentence):
        setting, value = settings.parse(text)
        setting.write(value)
    assert card.table == [0, 1] * 4 and card.combined == 2


def test_channels(card):
    setting, value = settings.parse("channels:eth0:combined=1")
    assert setting.read() == "2" and setting.disruptive
    setting.write(value)
    assert card.combined == 1


# --- Export -----------------------------------------------------------------

ENTRIES = {
    "sysctl.d": [Entry("sysctl:net.ipv4.tcp_rmem", "1\t2\t3\n", "1 2 4", "",
                       "BDP")],
    "link": [Entry("mtu:eth0", "1500", "9000", "2 aa:bb"),
             Entry("ring:eth0:rx", "256", "4096", "2 aa:bb"),
             Entry("channels:eth0:combined", "2", "4", "2 aa:bb"),
             Entry("coalesce:eth0:rx-usecs", "3", "50", "2 aa:bb")]}
ENTRIES["script"] = ENTRIES["sysctl.d"] + ENTRIES["link"] + [
    Entry("route:10.0.0.0/8:initcwnd", "none", "20"),
    Entry("qdisc:eth0", "default", "fq maxrate 1gbit")]


def test_lint_reads_what_export_prints(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text(export.sysctl_d(ENTRIES["sysctl.d"]))
    item, = lint_read.read(path)
    assert (item.key, item.value) == ("net.ipv4.tcp_rmem", "1 2 4")
    assert "# was: 1 2 3; BDP\n" in path.read_text()


def test_export_link():
    assert export.link(ENTRIES["link"]).splitlines() == [
        "[Match]", "PermanentMACAddress=aa:bb", "", "[Link]", "# was: 1500",
        "MTUBytes=9000", "# was: 256", "RxBufferSize=4096", "# was: 2",
        "CombinedChannels=4", "# was: 3", "RxCoalesceSec=50us"]


def test_export_rss():
    def line(rings):
        return export.script([Entry("rss:eth0", "0,1,2,3", rings)]).splitlines()[-1]
    assert line("2,3") == "ethtool -X eth0 start 2 equal 2"
    with pytest.raises(UsageError, match="ethtool cannot make this table"):
        line("1,0")


def test_export_script_is_a_script(tmp_path):
    text = export.script(ENTRIES["script"])
    assert subprocess.run(["sh", "-n"], input=text, text=True,
                          check=False).returncode == 0
    for line in ("sysctl -q -w 'net.ipv4.tcp_rmem=1 2 4'",
                 "ip link set dev eth0 mtu 9000", "ethtool -G eth0 rx 4096",
                 "ethtool -C eth0 rx-usecs 50",
                 "tc qdisc replace dev eth0 root fq maxrate 1gbit",
                 "ip -4 route change $route initcwnd 20"):
        assert line in text.splitlines()


@pytest.mark.parametrize("form, name", [
    ("sysctl.d", "mtu:eth0"), ("link", "qdisc:eth0"),
    ("link", "sysctl:net.ipv4.tcp_rmem")])
def test_export_refuses_what_the_format_cannot_hold(form, name):
    with pytest.raises(UsageError, match="cannot hold"):
        export.FORMATS[form]([Entry(name, "1", "2")])


# --- The command ------------------------------------------------------------

def test_command(state, root):
    def call(*arguments):
        return subprocess.run([TOOL, "--state", state, "--root", root,
                               *arguments], capture_output=True, text=True,
                              check=False)
    before = snapshot(root)
    dry = call("apply", WANTED[0])
    assert dry.returncode == 0 and "--yes does it" in dry.stdout
    assert snapshot(root) == before
    assert call("rollback").returncode == 0 and call("confirm").returncode == 1
    assert not state.exists()
    assert call("apply", "net.ipv4.tcp_ecn=2", "--yes"
                ).stdout.endswith("nothing to change\n")
    done = call("apply", "--yes", *WANTED)
    assert done.returncode == 0 and "1: applied" in done.stdout, done.stderr
    assert "waits for confirmation" in call("status").stdout
    for more in ((), ("--yes",)):
        again = call("apply", *more, *WANTED)
        assert again.returncode == 1 and "nothing to change" not in again.stdout
        assert "set by change 1, which waits" in again.stderr
    assert call("export").returncode == 1
    assert call("confirm").returncode == 0
    assert call("status").returncode == 0
    assert "net.core.rmem_max = 4000000" in call("export").stdout
    put(root, "net/ipv4/tcp_ecn", "0\n")
    status = call("status", "--json")
    assert status.returncode == 1
    assert [s["now"] for s in json.loads(status.stdout)["changes"][0]["settings"]
            ] == ["in force", "in force", "drifted: now 0"]
    undone = call("rollback", "1")
    assert undone.returncode == 1 and "left alone" in undone.stdout
    put(root, "net/ipv4/tcp_ecn", "2\n")
    assert snapshot(root) == before
    assert call("rollback").stdout == "nothing to undo\n"


def test_a_manager_belongs_to_one_namespace(state, root):
    manager = TransactionManager(state, root)
    assert manager.journal.folder.name == f"netns-{system.netns()}"
