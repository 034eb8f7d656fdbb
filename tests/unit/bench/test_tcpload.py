# SPDX-License-Identifier: GPL-2.0-only
"""Each command of tcpload over this machine's loopback, and its options."""
import json
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

TCPLOAD = Path(__file__).resolve().parents[3] / "build/bin/tcpload"
#: A run of these tests has ports of its own.
SEED = str(os.getpid() % 1000)
PORT = str(20000 + os.getpid() % 10000)
TRANSFER = ["bulk", "request"]
COUNTED = ["bursts", "ping-pong", "churn", "datagrams", "rounds"]


def run(*arguments):
    return subprocess.run([TCPLOAD, *arguments], capture_output=True, text=True,
                          timeout=60, check=False)


def result(*arguments):
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_number_of_writes():
    got = result("bulk", "--port", PORT, "--write", "1001", "--writes", "777")
    assert got["bytes"] == 1001 * 777
    # Nagle's algorithm joins writes, and loopback segments hold 65483 bytes.
    assert 777 * 1001 / 65483 <= got["segments"] <= 777
    assert 0 < got["cpu_ns"]


def test_no_page_is_left_on_disk():
    """Reading one during a transfer would stop it."""
    load = subprocess.Popen([TCPLOAD, "bulk", "--port", PORT, "--warmup-ms", "0",
                             "--measure-ms", "2000"], stdout=subprocess.DEVNULL)
    locked = 0
    while load.poll() is None and not locked:
        status = Path(f"/proc/{load.pid}/status").read_text("ascii")
        locked = int(status.partition("VmLck:")[2].split()[0])
        time.sleep(0.01)
    load.kill()
    load.wait()
    assert locked > 1000    # kB: the C library alone is larger


def test_zerocopy_is_counted():
    got = result("bulk", "--port", PORT, "--zerocopy", "--warmup-ms", "0",
                 "--measure-ms", "100")
    # Over loopback the kernel copies all of it for the local reader.
    assert got["zerocopy_sent"] + got["zerocopy_copied"] > 0


#: Loaded before the C library: the hundredth write to a socket has another byte.
FLIP = """
#include <sys/syscall.h>
#include <unistd.h>
#include <string.h>
ssize_t write(int fd, const void *data, size_t n)
{
    static char other[1 << 16];
    static int count;

    if (n != 1000 || ++count != 100)
        return syscall(SYS_write, fd, data, n);
    memcpy(other, data, n);
    other[MOVED] ^= 1;
    return syscall(SYS_write, fd, other + SHIFT, n - SHIFT);
}
"""


@pytest.mark.parametrize("flags, least, most", [
    ([], 0, 0),
    (["-DMOVED=7", "-DSHIFT=0"], 1, 1),         # one bit
    (["-DMOVED=999", "-DSHIFT=1"], 500, 10**9),  # a byte is missing
])
def test_every_byte_is_compared(tmp_path, flags, least, most):
    env = {}
    if flags:
        (tmp_path / "flip.c").write_text(FLIP)
        subprocess.run(["gcc", "-shared", "-fPIC", *flags, "-o", tmp_path / "flip.so",
                        tmp_path / "flip.c"], check=True)
        env = {"LD_PRELOAD": str(tmp_path / "flip.so")}
    done = subprocess.run(
        [TCPLOAD, "bulk", "--port", PORT, "--verify", "--write", "1000",
         "--warmup-ms", "0", "--measure-ms", "50"], capture_output=True, text=True,
        timeout=60, check=True, env=os.environ | env)
    got = json.loads(done.stdout)
    assert got["received"] > 200_000
    assert least <= got["wrong_bytes"] <= max(most, least)


@pytest.mark.parametrize("options", [["--writes", "300"], ["--measure-ms", "50"]])
def test_mapped_data_is_counted(options):
    """Both ways to end; loopback's pages are not alone, so none is mapped."""
    got = result("bulk", "--port", PORT, "--warmup-ms", "0", "--zerocopy-rx",
                 *options)
    assert got["bytes"] > 0 and got["zerocopy_received"] % 4096 == 0


@pytest.mark.parametrize("options", [
    [], ["--window", "35800", "--open", "65536"]])
def test_requests(options):
    got = result("request", "--port", PORT, "--size", "1000", "--warmup-ms", "0",
                 "--measure-ms", "300", *options)
    assert got["bytes"] % 1000 == 0 and got["bytes"] > 0
    # A steady trickle: the slope through all reads is nearly bytes / ns, unless
    # the scheduler keeps the programs waiting for a large part of it.
    mean = got["bytes"] / got["ns"] * 1e9
    assert 0.5 < got["bytes_per_s"] / mean < 2
    assert 0 < got["latency_p50_ns"] <= got["latency_p99_ns"]


@pytest.mark.parametrize("arguments, wanted", [
    (["bursts", "--size", "1000", "--count", "40", "--burst", "4"], 40_000),
    (["bursts", "--size", "1000", "--count", "40", "--flows", "5"], 40_000),
    (["bursts", "--size", "1000", "--count", "40", "--zerocopy"], 40_000),
    (["ping-pong", "--size", "3", "--count", "50"], 300),
    (["churn", "--size", "512", "--count", "20"], 20_480),
])
def test_amounts_are_exact(arguments, wanted):
    got = result(*arguments, "--seed", SEED)
    assert got["bytes"] == wanted
    assert got["ns"] > 0 and got["packets"] > 0


def test_datagrams_are_sent_in_bursts():
    """Bursts of 1, 2, 4 and 8.  The peer ends with the last burst, so how much
    of them it has read by then depends on the scheduler."""
    got = result("datagrams", "--size", "100", "--count", "8", "--seed", SEED)
    assert got["packets"] >= 15
    assert got["bytes"] % 100 == 0 and got["bytes"] <= 1500


@pytest.mark.parametrize("options, packets", [([], 1), (["--answers"], 201)])
def test_rounds(options, packets):
    got = result("rounds", "--count", "100", "--seed", SEED, *options)
    assert got["ns"] > 0 and got["packets"] >= packets


@pytest.mark.parametrize("command", [*TRANSFER, *COUNTED, "pattern"])
def test_help(command):
    assert command in run("--help").stdout
    done = run(command, "--help")
    assert done.returncode == 0 and "--address" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("arguments, message", [
    ([], "usage"),
    (["bulky"], "no command bulky"),
    (["bulk", "--port", "0"], "from 1 to 65535"),
    (["bulk", "--port", "1x"], "from 1 to 65535"),
    (["bulk", "--size", "1"], "unrecognized option"),
    (["request", "--write", "1"], "unrecognized option"),
    (["bulk", "--address", "nowhere"], "not an IPv4 or IPv6 address"),
    (["bulk", "--window", "5000", "--rcvbuf", "5000"], "excludes --rcvbuf"),
    (["bulk", "--verify", "--window", "5000"], "verify excludes"),
    (["bulk", "left"], "Too many arguments"),
    (["pattern", "--inject", "magic"], "corrupt, lose or stall"),
])
def test_usage_errors(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2 and message in done.stderr
    assert done.stdout == ""


def test_the_seed_may_come_from_the_environment():
    """The port of seed 999 is taken, so the load fails."""
    with socket.socket() as taken:
        taken.bind(("", 5000 + 7 * 999))
        taken.listen()
        for seed, status in (("999", 1), ("1000", 2), ("x", 2), (SEED, 0)):
            done = subprocess.run(
                [TCPLOAD, "churn", "--count", "1"], check=False, timeout=60,
                env={**os.environ, "TCPLOAD_SEED": seed}, capture_output=True)
            assert done.returncode == status, done.stderr


def test_a_missing_namespace_is_named():
    done = run("bulk", "--to", "no-such-namespace")
    assert done.returncode == 1 and "no-such-namespace" in done.stderr


def test_a_full_disk_is_a_failure():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([TCPLOAD, "ping-pong", "--count", "1", "--seed",
                               SEED], stdout=full, stderr=subprocess.PIPE,
                              timeout=60, check=False)
    assert done.returncode == 1 and b"standard output" in done.stderr


def test_version():
    version = (TCPLOAD.parents[2] / "VERSION").read_text().strip()
    assert run("--version").stdout == f"tcpload {version}\n"
