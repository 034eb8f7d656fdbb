# SPDX-License-Identifier: GPL-2.0-only
"""The guest harness must not call a broken guest good: its verdicts on
guests that ended in every way, played by a shell script, and its clean-up."""
import argparse
import importlib.machinery
import importlib.util
import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/guest"
LOG = "[0.0] Linux version 6.1.0\n[1.0] fine\n"


def load():
    loader = importlib.machinery.SourceFileLoader("guest", str(SCRIPT))
    spec = importlib.util.spec_from_loader("guest", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def verdict(tmp_path, monkeypatch, status=None, log=None, last="", timeout=20):
    """Exit status of the harness for a guest that leaves these files."""
    guest = load()
    if status is not None:
        (tmp_path / "status").write_text(status)
    if log is not None:
        (tmp_path / "dmesg").write_text(log)
    monkeypatch.setattr(guest, "vng_command",
                        lambda *_: ["sh", "-c", f"echo output; {last}"])
    args = argparse.Namespace(timeout=timeout, rwdir=[], accept=None)
    handlers = {s: signal.getsignal(s) for s in (signal.SIGTERM,
                                                 signal.SIGINT)}
    try:
        return guest.run_in(args, Path("vmlinuz-6.1"), tmp_path)
    except SystemExit as end:
        return end.code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("wanted, status, log", [
    (0, "rc 0\nend\n", LOG),
    (7, "rc 7\nend\n", LOG),
    (125, None, LOG),                   # died before the command ended
    (125, "rc 0\n", LOG),               # died before the end marker
    (125, "", LOG),
    (125, "rc 0\nend\n", None),         # no log to judge
    (125, "rc 0\nend\n", "[9.0] the start is lost\n"),
    (1, "rc 0\nend\n", LOG + "[2.0] BUG: kernel NULL pointer\n"),
    (1, "rc 0\nend\n", LOG + "[2.0] BUG kmalloc-64: Redzone overwritten\n"),
    (1, "rc 0\nend\n", LOG + "[2.0] WARNING: CPU: 0 PID: 1 at net/x.c:3\n"),
    (1, "rc 0\nend\n", LOG + "[2.0] refcount_t: underflow\n"),
    (1, "rc 0\nend\n", LOG + "[2.0] rcu: INFO: rcu_sched stalls\n"),
    (7, "rc 7\nend\n", LOG + "[2.0] Oops: 0000\n"),
    (0, "rc 0\nend\n", LOG + "[2.0] clocksource: WARNING: unstable\n"),
    (0, "rc 0\nend\n", LOG + "[9.9] kmemleak: Kernel memory leak detector init\n"),
    (0, "rc 0\nend\n", LOG + "[2.0] virtme-ng-init: WARNING: no tmpfiles\n"),
    # Allocations fail on purpose only on the debug kernel; a trace each.
    (0, "rc 0\nend\n", LOG + "6-mssfrac-debug\nvmalloc error\nCall Trace:\n"),
    (1, "rc 0\nend\n", LOG + "vmalloc error\nCall Trace:\n"),
    (1, "rc 0\nend\n", LOG + "6-mssfrac-debug\nvmalloc error\n"
     "Call Trace:\nCall Trace:\n"),
])
def test_verdict(tmp_path, monkeypatch, wanted, status, log):
    assert verdict(tmp_path, monkeypatch, status, log) == wanted


def test_what_a_splat_is_about_is_printed(tmp_path, monkeypatch, capfd):
    """Not only the lines that match: the functions are what one needs."""
    trace = "".join(f"[3.0]  function_{n}+0x1/0x2\n" for n in range(9))
    assert verdict(tmp_path, monkeypatch, "rc 0\nend\n", LOG +
                   "[1.0] before\n[2.0] watchdog: BUG: soft lockup - CPU#0\n"
                   f"[2.0] Call Trace:\n{trace}" + "[4.0] after\n" * 100 +
                   "[5.0] INFO: task ip:1 blocked for more than 120 s\n") == 1
    said = capfd.readouterr().err
    assert "function_8" in said and "task ip:1" in said and "before" not in said
    assert len(said.splitlines()) < 70


WARN_AT_BOOT = """[0.1] Linux version 6.12
[0.2] ------------[ cut here ]------------
[0.2] WARNING: CPU: 0 PID: 1 at kernel/sched/core.c:9 sched_init+0x1/0x2
[0.2] Call Trace:
[0.2] ---[ end trace 0000000000000000 ]---
"""


@pytest.mark.parametrize("accept, more, found", [
    ("sched_init", "", 0),
    ("tcp_ack", "", 2),
    ("sched_init", "[9.0] BUG: unable to handle page fault", 1),
    ("sched_init", WARN_AT_BOOT.replace("sched_init", "tcp_ack"), 2),
    ("sched_init", "[9.0] [ cut here ]\n[9.0] WARNING: cut short", 1),
])
def test_an_accepted_report_is_no_splat(tmp_path, accept, more, found):
    (tmp_path / "dmesg").write_text(WARN_AT_BOOT + more)
    assert len(load().splats(tmp_path, re.compile(accept))) == found


def test_hang_is_ended_and_reported(tmp_path, monkeypatch):
    assert verdict(tmp_path, monkeypatch, None, LOG, "sleep 1000",
                   timeout=1) == 124


def test_done_but_would_not_end(tmp_path, monkeypatch):
    """The marker is there and the log is clean: that is a verdict."""
    assert verdict(tmp_path, monkeypatch, "rc 0\nend\n", LOG, "sleep 1000",
                   timeout=1) == 0


def test_grandchildren_do_not_outlive_the_harness(tmp_path):
    """SIGTERM ends and reaps the emulator, a child of a child."""
    program = f"""
import importlib.machinery, importlib.util, argparse, signal, sys
from pathlib import Path
loader = importlib.machinery.SourceFileLoader("guest", {str(SCRIPT)!r})
guest = importlib.util.module_from_spec(
    importlib.util.spec_from_loader("guest", loader))
loader.exec_module(guest)
guest.adopt_orphans()
guest.vng_command = lambda *_: ["sh", "-c", "sh -c 'echo $$; sleep 1000' & wait"]
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
guest.run_in(argparse.Namespace(timeout=100, rwdir=[], accept=None), Path("x"),
             Path({str(tmp_path)!r}))
"""
    harness = subprocess.Popen([sys.executable, "-c", program],
                               stdout=subprocess.PIPE, text=True)
    grandchild = int(harness.stdout.readline())
    harness.terminate()
    assert harness.wait(20) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(grandchild, 0)


def run_script(*words):
    return subprocess.run([str(SCRIPT), *words], capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("words, status, message", [
    ([], 2, "no command given"),
    (["-k", "9.99", "--", "true"], 2, "no kernel image for 9.99"),
    (["-k", "./none", "--", "true"], 2, "no kernel image at ./none"),
])
def test_usage_is_one_clear_sentence(words, status, message):
    done = run_script(*words)
    assert done.returncode == status
    assert message in done.stderr.splitlines()[-1]


def test_path_that_virtme_refuses(tmp_path):
    with pytest.raises(SystemExit) as end:
        load().refuse_paths(tmp_path / "my tree")
    assert end.value.code == 3


@pytest.mark.parametrize("version, mode, kvm, one_thread", [
    ((7, 2), "fast", False, True),
    ((8, 0), "fast", False, True),
    ((8, 1), "fast", False, False),
    ((10, 0), "fast", False, False),
    ((7, 2), "fast", True, False),
    ((7, 2), "deterministic", False, False),  # is one thread anyway
])
def test_old_emulators_run_on_one_thread(monkeypatch, version, mode, kvm,
                                         one_thread):
    guest = load()
    monkeypatch.setattr(guest, "emulator_version", lambda: version)
    args = argparse.Namespace(mode=mode, kvm=kvm, memory="1G", cpus=2, seed=1,
                              nics=None, queues=1, cables=1, rwdir=[])
    command = guest.vng_command(args, Path("vmlinuz-6.1"), None)
    assert ("thread=single" in " ".join(command)) == one_thread


@pytest.mark.parametrize("mode, counted, coarse", [
    ("fast", False, False), ("deterministic", True, False),
    ("ticks", True, True)])
def test_clock_of_each_mode(mode, counted, coarse):
    guest = load()
    args = argparse.Namespace(mode=mode, kvm=False, memory="1G", cpus=2, seed=1,
                              nics=None, queues=1, cables=1, rwdir=[])
    words = " ".join(guest.vng_command(args, Path("vmlinuz-6.1"), None))
    assert ("-icount" in words) == counted
    assert ("clocksource=jiffies" in words) == coarse


def test_two_cards_on_one_wire():
    guest = load()
    args = argparse.Namespace(mode="deterministic", kvm=False, memory="1G",
                              cpus=2, seed=1, nics="igb", queues=1, cables=1, rwdir=[])
    words = " ".join(guest.vng_command(args, Path("vmlinuz-6.1"), None))
    assert words.count("hubid=0") == words.count("-device igb,") == 2
    assert "mac=52:54:00:09:00:01" in words and "00:02" in words
    # Each on its own bus: QEMU 10 gives a card's virtual functions places on it.
    assert words.count("-device pcie-root-port,") == 2
    assert "bus=port1" in words and "bus=port2" in words


def test_two_cables():
    guest = load()
    args = argparse.Namespace(mode="deterministic", kvm=False, memory="1G", cpus=2,
                              seed=1, nics="e1000e", queues=1, cables=2, rwdir=[])
    words = " ".join(guest.vng_command(args, Path("vmlinuz-6.1"), None))
    assert words.count("hubid=0") == words.count("hubid=1") == 2
    assert words.count("-device e1000e,") == 4
    assert len(set(re.findall(r"mac=\S+", words))) == 4


def test_cards_with_several_queues():
    """They hang on tap devices, in a network namespace of the emulator's own."""
    guest = load()
    args = argparse.Namespace(mode="fast", kvm=False, memory="1G", cpus=2, seed=1,
                              nics="virtio-net-pci", queues=3, cables=1, rwdir=[])
    command = guest.vng_command(args, Path("vmlinuz-6.1"), None)
    assert command[0] == str(SCRIPT.with_name("guest-taps"))
    assert command[1] == str(guest.VNG)
    words = " ".join(command)
    assert words.count("queues=3") == words.count("mq=on,rss=on") == 2
    assert "ifname=end1" in words and "ifname=end2" in words and "vectors=8" in words


@pytest.mark.parametrize("words, sentence", [
    ("--queues 2", "needs --nics virtio-net-pci in mode fast"),
    ("--queues 2 --nics e1000e", "needs --nics virtio-net-pci"),
    ("--queues 2 --nics virtio-net-pci -m deterministic", "in mode fast"),
    ("--queues 2 --nics virtio-net-pci --peer 6.1", "without --peer"),
    ("--cables 2", "needs --nics"), ("--cables 5", "must be 1 to 4"),
    ("--cables 2 --nics virtio-net-pci --queues 2", "without --peer and --queues"),
    ("--queues 0", "must be 1 to 8"), ("--queues 9", "must be 1 to 8"),
])
def test_queues_are_refused_where_they_are_not_possible(words, sentence):
    done = subprocess.run([SCRIPT, *words.split(), "--", "true"], text=True,
                          capture_output=True, check=False)
    assert done.returncode == 2 and sentence in done.stderr


def test_command_reaches_the_guest_quoted(tmp_path, monkeypatch):
    guest = load()
    monkeypatch.setattr(guest, "BUILD", tmp_path)
    monkeypatch.setattr(guest, "run_in",
                        lambda args, image, share: (share / "run").read_text())
    args = argparse.Namespace(mode="fast", log=None, rwdir=[], accept=None,
                              command=["echo", "a  'b'"])
    script = guest.run(args, Path("vmlinuz-6.1"))
    assert shlex.join(args.command) in script
    assert not list(tmp_path.glob("guest/*"))  # nothing stays behind


def test_guest_on_a_root_of_its_own(tmp_path, monkeypatch):
    """An image in build/roots boots on that root, and still sees the tree;
    any other boots on the host's root."""
    guest = load()
    monkeypatch.setattr(guest, "BUILD", tmp_path)
    args = argparse.Namespace(mode="fast", memory="1G", cpus=2, kvm=False,
                              nics=None, queues=1, cables=1, rwdir=[tmp_path], seed=1)
    root = tmp_path / "roots/trixie"
    image = root / "boot/vmlinuz-7.3.4+deb13-amd64"
    image.parent.mkdir(parents=True)
    image.touch()
    assert guest.find_kernel("7.3") == image
    words = guest.vng_command(args, image, tmp_path)
    assert words[words.index("--root") + 1] == str(root)
    assert f"{guest.TOP}={guest.TOP}" in words
    assert f"{tmp_path}={tmp_path}" in words
    words = guest.vng_command(args, Path("/boot/vmlinuz-6.1"), tmp_path)
    assert "--root" not in words and str(tmp_path) in words


@pytest.mark.parametrize("top, image, mounted", [
    ("/tmp/x/tree", "/boot/vmlinuz-6.1", True),
    ("/var/tmp/tree", "/boot/vmlinuz-6.1", True),
    ("/run/tree", "/boot/vmlinuz-6.1", True),
    ("/tmpx/tree", "/boot/vmlinuz-6.1", False),
    ("/opt/tmp/tree", "/boot/vmlinuz-6.1", False),
    ("/opt/tree", "/opt/tree/build/roots/trixie/boot/vmlinuz-7.2", True),
])
def test_a_tree_that_a_guest_does_not_see_is_mounted(monkeypatch, top, image,
                                                     mounted):
    guest = load()
    monkeypatch.setattr(guest, "TOP", Path(top))
    monkeypatch.setattr(guest, "BUILD", Path(top) / "build")
    args = argparse.Namespace(mode="fast", memory="1G", cpus=2, kvm=False,
                              nics=None, queues=1, cables=1, rwdir=[], seed=1)
    words = guest.vng_command(args, Path(image), Path(top) / "build/guest/run-1")
    assert (f"{top}={top}" in words) == mounted


@pytest.mark.parametrize("hidden, read_only", [(True, True), (False, False)])
def test_a_mounted_tree_is_read_only(tmp_path, monkeypatch, hidden, read_only):
    guest = load()
    monkeypatch.setattr(guest, "TOP", tmp_path)
    monkeypatch.setattr(guest, "BUILD", tmp_path)
    monkeypatch.setattr(guest, "HIDDEN", [str(tmp_path.parent)] if hidden else [])
    share = guest.make_share(argparse.Namespace(mode="fast"), Path("vmlinuz"), "true")
    script = (share / "run").read_text()
    assert (f"mount -o remount,ro {tmp_path}" in script) == read_only


@pytest.mark.parametrize("started, sentence", [
    (False, "did not see {}: it did not boot, or its mounts hide it"),
    (True, "ended without its end marker")])
def test_a_guest_without_a_verdict_says_why(tmp_path, monkeypatch, capfd, started,
                                            sentence):
    if started:
        (tmp_path / "started").touch()
    assert verdict(tmp_path, monkeypatch, last="exit 3") == 125
    said = capfd.readouterr().err
    assert sentence.format(tmp_path) in said
    assert "the emulator's exit status is 3" in said


def test_a_fetched_kernel_replaces_none_that_set_up_chose(tmp_path,
                                                          monkeypatch):
    """A series stays the release whose headers are here, however new what
    was fetched to build/packaged is; that one boots on the host's root."""
    guest = load()
    monkeypatch.setattr(guest, "BUILD", tmp_path)

    def image(folder, release):
        path = tmp_path / folder / "boot" / f"vmlinuz-{release}"
        path.parent.mkdir(parents=True)
        path.touch()
        return path

    chosen = image("kernels/6.12.117+deb12-amd64", "6.12.117+deb12-amd64")
    rooted = image("roots/trixie", "7.2.12+deb13-amd64")
    fetched = {release: image(f"packaged/{release}", release) for release in (
        "6.12.118+deb13-amd64", "6.18.9+deb13-amd64", "6.18.15+deb13-amd64",
        "7.2.13+deb13-amd64")}
    image("packaged/.6.18.16+deb13-amd64", "6.18.16+deb13-amd64")  # half done
    assert guest.find_kernel("6.12") == chosen
    assert guest.find_kernel("7.2") == rooted
    assert guest.find_kernel("6.18") == fetched["6.18.15+deb13-amd64"]
    for release, path in fetched.items():
        assert guest.find_kernel(release) == path
        assert guest.root_of(path) is None


def test_what_a_guest_has_in_memory(tmp_path, monkeypatch):
    """The folders of the root, without what is large and seldom read, and those of
    the tree."""
    guest = load()
    root, tree = tmp_path / "root", tmp_path / "tree"
    for name in ("usr/lib/locale/C.utf8/LC_TIME", "usr/lib/python3/dist-packages/x.py",
                 "usr/lib/python3.13/json/decoder.py",
                 "usr/lib/python3.13/test/test_json.py",
                 "usr/lib/python3.13/dist-packages/numpy.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    for name in ("tests/lib.sh", "userspace/mssab/test/kept.py", "kmod/main.c"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("")
    monkeypatch.setattr(guest, "TOP", tree)
    script = guest.in_memory(tmp_path, root)
    with tarfile.open(tmp_path / "memory.tar") as packed:
        files = {name.removeprefix(f"{tree}/".lstrip("/"))
                 for name in packed.getnames() if "." in Path(name).name}
    assert files - {"usr/lib/python3.13"} == {
        "usr/lib/locale/C.utf8", "usr/lib/python3.13/json/decoder.py",
        "tests/lib.sh", "userspace/mssab/test/kept.py"}
    assert f"/usr/lib/python3.13 {tree}/userspace {tree}/tests;" in script


def test_staged_tools_are_of_the_root(tmp_path, monkeypatch):
    """Programs and libraries are asked for where they will run."""
    guest = load()
    fake = tmp_path / "root"
    fake.write_text("#!/bin/sh\n"
                    "[ \"$1 $2 $3\" = 'run trixie --' ] || exit\n"
                    "echo /usr/bin/ip\n"
                    "echo '\tlibc.so.6 => /usr/lib/libc.so.6 (0x7f)'\n")
    fake.chmod(0o755)
    monkeypatch.setattr(guest, "ROOT", fake)
    assert guest.staged_files(Path("/x/trixie")) == (
        ["/usr/bin/ip"], ["/usr/lib/libc.so.6"])
    tools, libraries = guest.staged_files()
    assert any(tool.endswith("/ip") for tool in tools)
    assert any("libc.so" in library for library in libraries)
