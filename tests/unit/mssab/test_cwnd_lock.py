# SPDX-License-Identifier: GPL-2.0-only
"""cwnd_max is refused where the kernel does not hold it: what is read back, on
this machine's loopback and from metrics that the test makes up."""
import contextlib
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))

from mssab import errors  # noqa: E402
from mssab.testbed import cwnd_lock  # noqa: E402
from mssab.experiment.cell import Cell  # noqa: E402
from mssab.testbed.ends import Ends  # noqa: E402

ENDS = Ends("mssab-tx", "mssab-rx", "127.0.0.1")


@pytest.fixture
def kernel(monkeypatch):
    """Commands that were run; the metrics and the snd_cwnd to report."""
    class Kernel:
        ran, entry, used = [], "10.9.0.2 age 0.1sec cwnd 4 rtt 50us", 4
    Kernel.ran = []

    def command(*argv):
        Kernel.ran.append(" ".join(argv))
        return Kernel.entry if "tcp_metrics" in argv else ""
    monkeypatch.setattr(cwnd_lock, "command", command)
    monkeypatch.setattr(cwnd_lock, "LIMIT_S", 0.1)
    monkeypatch.setattr(cwnd_lock, "_connection",
                        lambda between: Kernel.used)
    return Kernel


def test_it_is_locked_and_read_back(kernel):
    cwnd_lock.lock(Cell(cwnd_max=4), ENDS, "veth0")
    assert kernel.ran[0].endswith("cwnd lock 4") and "10.9.0.0/24" in kernel.ran[0]
    cwnd_lock.lock(Cell(cwnd_max=4, ipv6=True, load="tcpload"), ENDS, "veth0")
    assert "fd09::/64" in kernel.ran[2]


@pytest.mark.parametrize("entry, used, sentence", [
    ("", 4, "no entry"),
    ("10.9.0.2 age 0.1sec cwnd 40 rtt 50us", 4, "do not hold it"),
    ("10.9.0.2 age 0.1sec rtt 50us", 4, "do not hold it"),
    ("10.9.0.2 age 0.1sec cwnd 4 rtt 50us", 10, "has snd_cwnd 10"),
])
def test_it_is_refused_without_effect(kernel, entry, used, sentence):
    kernel.entry, kernel.used = entry, used
    with pytest.raises(errors.MssabError, match=sentence):
        cwnd_lock.lock(Cell(cwnd_max=4), ENDS, "veth0")


def test_the_first_window_of_a_connection_is_read(monkeypatch):
    """Linux starts with 10 segments."""
    monkeypatch.setattr(cwnd_lock, "inside",
                        lambda name: contextlib.nullcontext())
    assert cwnd_lock._connection(ENDS) == 10
