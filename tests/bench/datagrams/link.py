# SPDX-License-Identifier: GPL-2.0-only
"""Two namespaces and a veth link between them, for the programs beside this."""
import os
import subprocess
import sys
from contextlib import contextmanager

SENDER, RECEIVER = "datagrams-tx", "datagrams-rx"
ADDRESS = "10.9.1.2"


def run(*argv):
    done = subprocess.run([str(word) for word in argv], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, argv))}: "
                 f"{(done.stderr or done.stdout).strip()}")
    return done.stdout


def inside(namespace, *argv):
    return ["ip", "netns", "exec", namespace, *map(str, argv)]


def pinned(cpu, *argv):
    """Run on that CPU; "" means any."""
    return ["taskset", "-c", cpu, *argv] if cpu else list(argv)


def setting(name, default):
    """An environment variable, set by the arm of an experiment."""
    return os.environ.get(name, default)


@contextmanager
def link(mtu):
    ends = ((SENDER, "10.9.1.1"), (RECEIVER, ADDRESS))
    try:
        for end, _ in ends:
            run("ip", "netns", "add", end)
        run("ip", "link", "add", "veth0", "netns", SENDER, "type", "veth",
            "peer", "name", "veth0", "netns", RECEIVER)
        for end, address in ends:
            run("ip", "-n", end, "addr", "add", f"{address}/24", "dev", "veth0")
            run("ip", "-n", end, "link", "set", "veth0", "mtu", mtu, "up")
        yield
    finally:
        for end, _ in ends:
            subprocess.run(["ip", "netns", "del", end], check=False,
                           capture_output=True)
