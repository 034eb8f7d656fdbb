# SPDX-License-Identifier: GPL-2.0-only
"""The operator's own connection is found without SSH_CONNECTION, and neither its
devices nor its route are disturbed."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune.settings import operator_session, permissions, settings  # noqa: E402
from msstune.errors import TuneError  # noqa: E402
from msstune.settings.operator_session import Carriers  # noqa: E402

#: ip -j link of a VLAN on a bond of two ports, a bridge, and another device.
LINKS = [{"ifname": "bond0.7", "link": "bond0"}, {"ifname": "bond0"},
         {"ifname": "eth0", "master": "bond0"}, {"ifname": "eth1", "master": "bond0"},
         {"ifname": "br0"}, {"ifname": "eth2", "master": "br0"}, {"ifname": "eth3"}]

SESSION = r"""
import os, socket, subprocess, sys
tool, server, detached, *words = sys.argv[1:]
listener = socket.create_server(("10.9.0.1", 22))
client = socket.create_connection(("10.9.0.1", 22), source_address=("10.9.0.7", 0))
peer = listener.accept()[0]
with open("/proc/self/comm", "w") as comm:
    comm.write(server)
# sudo leaves the environment behind, tmux the process tree.
over, end = os.pipe()
child = os.fork()
if child == 0:
    if detached == "detached" and os.fork():
        os._exit(0)
    os.close(over)
    client.close(); peer.close(); listener.close()
    done = subprocess.run(["env", "-i", "PATH=" + os.environ["PATH"], tool,
                           "--state", "/dev/shm/none", "apply",
                           "--allow-disruptive", *words],
                          capture_output=True, text=True)
    print(done.returncode, done.stdout + done.stderr, flush=True)
    os._exit(0)
os.close(end)
os.read(over, 1)  # until the last process with the other end has exited
"""


def session(server, detached, *words):
    """msstune apply WORDS below a server with a connection over the device va."""
    unshare = ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-rn"]
    setup = ("ip link set lo up && ip link add va type veth peer name vb && "
             "ip addr add 10.9.0.1/24 dev va && ip addr add 10.9.0.7/24 dev va && "
             "ip link set va up && ip link set vb up && "
             "ip link add vc type veth peer name vd")
    if subprocess.run([*unshare, "sh", "-c", setup], check=False,
                      capture_output=True).returncode:
        pytest.skip("no right to make a network namespace, or no veth")
    return subprocess.run(
        [*unshare, "sh", "-c", f'{setup} && exec /usr/bin/python3 -c "$@"', "sh",
         SESSION, str(TOP / "userspace/msstune/msstune.sh"), server, detached, *words],
        capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("server, detached", [
    ("sshd", "child"), ("login", "child"), ("sshd", "detached")])
def test_a_session_without_its_environment(server, detached):
    """Found by the process tree, or as a connection of an ssh server."""
    out = session(server, detached, "mtu:va=1400")
    assert out.startswith("1 ") and "your remote session uses va" in out, out


def test_another_device_is_free():
    assert "--yes does it" in session("sshd", "child", "mtu:vc=1400")


def test_a_local_console():
    """A detached process of no ssh server has no remote session."""
    assert "--yes does it" in session("login", "detached", "mtu:va=1400")


@pytest.mark.parametrize("name, devices", [
    ("bond0.7", {"bond0.7", "bond0", "eth0", "eth1"}), ("br0", {"br0", "eth2"}),
    ("eth3", {"eth3"})])
def test_devices_below(name, devices):
    assert operator_session.below({name}, LINKS) == devices


def test_devices_that_carry_each_other():
    """The two ends of a veth."""
    assert operator_session.below({"va"}, [
        {"ifname": "va", "link": "vb"}, {"ifname": "vb", "link": "va"}]) == {"va", "vb"}


@pytest.mark.parametrize("text, refused", [
    ("mtu:eth0=1400", True), ("mtu:eth3=1400", False),
    ("txqueuelen:eth0=500", False), ("route:default:hoplimit=1", True),
    ("route:0.0.0.0/0:mtu=600", True), ("route:default:initcwnd=20", False),
    ("route:10.8.0.0/16:mtu=600", False), ("route:192.0.2.5:mtu=600", True)])
def test_what_is_refused(text, refused):
    setting, _ = settings.parse(text)
    here = Carriers(frozenset({"bond0", "eth0"}),
                    frozenset({"default", "192.0.2.5/32"}))
    if refused:
        with pytest.raises(TuneError, match="your remote session"):
            permissions.check_session([setting], here)
    else:
        permissions.check_session([setting], here)


def test_the_environment_counts_as_well(monkeypatch):
    monkeypatch.setattr(operator_session, "_processes", lambda: iter(()))
    monkeypatch.setenv("SSH_CONNECTION", "127.0.0.9 5 127.0.0.1 22")
    assert "lo" in operator_session.carriers().devices
    monkeypatch.delenv("SSH_CONNECTION")
    assert operator_session.carriers() == Carriers()
