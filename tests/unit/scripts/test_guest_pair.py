# SPDX-License-Identifier: GPL-2.0-only
"""Two cabled guests: how they are connected, what the commands of one return to
the other, and what is reported when one of them dies."""
import argparse
import importlib.machinery
import importlib.util
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
LOG = "[0.0] Linux version 6.1.0\n[1.0] fine\n"


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"),
                                                  str(SCRIPTS / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class Port:
    """A socket as the port of a guest: reads return what is there, writes may
    take a part."""

    def __init__(self, end):
        self.end = end

    def read(self, size):
        return self.end.recv(min(size, 1000))

    def write(self, data):
        return self.end.send(data[:1000])


@pytest.fixture
def line():
    """Runs a command at the other end of a line; end() closes it."""
    peer = load("guest-peer")
    here, there = (Port(end) for end in socket.socketpair())
    served = []
    server = threading.Thread(
        target=lambda: served.append(peer.serve(peer.Line(there))))
    server.start()

    def ask(*argv):
        return peer.ask(peer.Line(here), list(argv))

    ask.peer, ask.served, ask.server = peer, served, server
    yield ask
    here.end.close()
    server.join(20)
    there.end.close()


def test_status_and_output_come_back(line, capfdbinary):
    long = "x" * 5000
    assert line("sh", "-c", f"echo {long}; printf '\\377\\0' >&2; exit 7") == 7
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == long.encode() + b"\n\xff\0"
    assert line("sh", "-c", "kill -9 $$") == 137
    assert line("no-such-program") == 127
    # What runs on in the background does not hold the answer back.
    assert line("sh", "-c", "sleep 30 & exit 3") == 3


def test_the_last_command_ends_the_server(line):
    assert line() == 0
    line.server.join(20)
    assert line.served == [0]


@pytest.mark.parametrize("answer", [b"", b'{"status": 0, "out'])
def test_a_dead_guest_is_reported(line, capsys, answer):
    here, there = socket.socketpair()
    there.sendall(answer)
    there.shutdown(socket.SHUT_WR)
    assert line.peer.ask(line.peer.Line(Port(here)), ["true"]) == 125
    assert "has ended" in capsys.readouterr().err


@pytest.fixture
def guest(tmp_path, monkeypatch):
    guest = load("guest")
    monkeypatch.setattr(guest, "BUILD", tmp_path)
    monkeypatch.setattr(guest, "SHUTDOWN_S", 2)
    monkeypatch.setattr(guest, "listens", Path.exists)
    return guest


def args(**more):
    return argparse.Namespace(**{
        "mode": "fast", "kvm": False, "memory": "1G", "cpus": 2, "seed": 1,
        "nics": None, "rwdir": [], "log": None, "accept": None, "timeout": 20,
        "command": ["echo", "a  'b'"], **more})


def pair(guest, monkeypatch, first, second, **more):
    """Exit status for two guests whose scripts are these shell commands; $s is
    the folder of the guest."""
    played = {"vmlinuz-6.12": first, "vmlinuz-6.17": second}

    def command(_, image, share, options=""):
        listen = ""
        if "server=on" in options:  # the emulator's sockets
            paths = re.findall(r"path=([^, ]+)", options)
            listen = f"touch {shlex.join(paths)}; "
        return ["sh", "-c", f"s={share}; touch $s/started; {listen}"
                f"{played[image.name]}"]

    monkeypatch.setattr(guest, "vng_command", command)
    handlers = {s: signal.getsignal(s) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        return guest.run_pair(args(**more), [Path("vmlinuz-6.12"),
                                             Path("vmlinuz-6.17")])
    except SystemExit as end:
        return end.code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def done(rc, log=LOG):
    return f"printf '{log}' >$s/dmesg; printf 'rc {rc}\\nend\\n' >$s/status"


BAD = LOG + "[2.0] BUG: bad\n"


@pytest.mark.parametrize("first, second, status, message", [
    (done(0), done(0), 0, ""),
    (done(7), done(0), 7, ""),
    (done(0), done(0, BAD), 1, "vmlinuz-6.17: the kernel complained"),
    (done(0, BAD), done(0), 1, "vmlinuz-6.12: the kernel complained"),
    # One died; the other one then ends in good order.
    (done(125), "true", 125, "vmlinuz-6.17: the guest ended without"),
    ("true", done(125), 125, "vmlinuz-6.12: the guest ended without"),
    ("exit 3", "sleep 1000", 125, "vmlinuz-6.12: the guest ended without"),
    (done(0), "sleep 1000", 125, "vmlinuz-6.17: the second guest did not"),
], ids=["both good", "command fails", "second splats", "first splats",
        "second dies", "first dies", "first dies, second hangs",
        "second hangs"])
def test_verdict_on_two_guests(guest, monkeypatch, capfd, first, second,
                               status, message):
    assert pair(guest, monkeypatch, first, second) == status
    assert message in capfd.readouterr().err


def test_a_hang_ends_both(guest, monkeypatch, capfd):
    assert pair(guest, monkeypatch, "sleep 1000", "sleep 1000",
                timeout=1) == 124
    assert "vmlinuz-6.12: no end marker within 1 s" in capfd.readouterr().err


def test_logs_of_both_are_kept(guest, monkeypatch, tmp_path):
    log = tmp_path / "kernel.log"
    assert pair(guest, monkeypatch, done(0), done(0, LOG + "second\n"),
                log=log) == 0
    assert "second" not in log.read_text()
    assert "second" in (tmp_path / "kernel.log.peer").read_text()
    assert not list(tmp_path.glob("guest/*"))  # nothing stays behind


def test_the_second_guest_waits_for_a_listener(tmp_path):
    listens = load("guest").listens
    assert not listens(tmp_path / "line")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "line"))
        assert not listens(tmp_path / "line")
        server.listen()
        assert listens(tmp_path / "line")
        assert not listens(tmp_path / "in")


@pytest.mark.parametrize("words, message", [
    (["--mode", "deterministic"], "deterministic guests share no clock"),
    (["--shell"], "--shell opens one guest"),
])
def test_refused_with_a_peer(words, message):
    kernel = SCRIPTS / "guest"  # any file will do as an image
    done = subprocess.run(
        [SCRIPTS / "guest", "-k", kernel, "--peer", kernel, *words, "--", "true"],
        capture_output=True, text=True, check=False)
    if "virtme-ng is not installed" in done.stderr:
        pytest.skip("no virtme-ng")
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_one_card_each_on_one_cable(guest):
    first, second = guest.peered(args(nics="e1000e"), "/tmp/x")
    for options, end in ((first, 1), (second, 2)):
        assert f"-device e1000e,netdev=cable,mac=52:54:00:09:00:0{end}" \
            in options
        assert options.count("addr.path=/tmp/x/cable") == 1
        assert options.count("path=/tmp/x/line") == 1
        words = guest.vng_command(args(), Path("vmlinuz-6.1"), None, options)
        assert f"--qemu-opts={options}" in words
    assert "server=on" in first and "server=on" not in second


def test_commands_of_both_guests(guest, monkeypatch):
    scripts = []

    def played(_, __, share, peer):
        scripts.extend((folder / "run").read_text()
                       for folder in (share, peer[1]))
        return 0
    monkeypatch.setattr(guest, "run_in", played)
    assert guest.run_pair(args(), [Path("vmlinuz-6.1")] * 2) == 0
    first, second = scripts
    assert "echo 'a  '\"'\"'b'\"'\"''" in first and "peer --end" in first
    assert first.index("peer true") < first.index("echo 'a")
    assert "peer --serve" in second and "peer --end" not in second
    assert "10.9.0.1/24" in first and "10.9.0.2/24" in second
