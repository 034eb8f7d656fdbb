# SPDX-License-Identifier: GPL-2.0-only
"""The comparison of packetdrill's verdicts must not call a difference, or a
guest without verdicts, the same: with guests played by a shell script."""
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/packetdrill"
SAME = "echo planned 2; echo verdict 0/tcp/a.pkt ipv4 ok; " \
    "echo verdict 0/tcp/b.pkt ipv4 fail b.pkt:3: unexpected"


@pytest.fixture(name="compare")
def compare_fixture(tmp_path, monkeypatch, capsys):
    loader = importlib.machinery.SourceFileLoader("packetdrill", str(SCRIPT))
    spec = importlib.util.spec_from_loader("packetdrill", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)

    def compare(stock, idle, control, text=""):
        """Exit status and output for guests that run these commands."""
        guest = tmp_path / "scripts/guest"
        guest.parent.mkdir(exist_ok=True)
        guest.write_text("#!/bin/sh\ncase $* in\n"
                         f"*ab_percent=0*) {control} ;;\n*load*) {idle} ;;\n"
                         f"*) {stock} ;;\nesac\n")
        guest.chmod(0o755)
        tree = tmp_path / "checkout"
        for name in (module.PROGRAM, f"{module.DEFAULT_SCRIPTS}/a.pkt"):
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.setattr(module, "TOP", tmp_path)
        monkeypatch.setattr(module, "TOOLS", ["sh"])
        monkeypatch.setattr(module, "PYTHON", [])
        monkeypatch.setattr(sys, "argv", ["packetdrill", str(tree)])
        try:
            status = module.main()
        except SystemExit as end:
            status = end.code
        return status, "".join(capsys.readouterr())
    return compare


def test_same(compare):
    status, output = compare(SAME, SAME, SAME)
    assert status == 0, output
    assert output.count("1 pass, 1 fail, 0 differ") == 2, output


@pytest.mark.parametrize("state", [0, 1])
def test_different(compare, state):
    states = [SAME, SAME]
    states[state] = SAME.replace("ipv4 ok", "ipv4 fail a.pkt:9: timing")
    status, output = compare(SAME, *states)
    assert status == 1
    assert "tcp/a.pkt (ipv4): stock ok ; now fail a.pkt:9: timing" in output


@pytest.mark.parametrize("guest", [
    "true", "exit 1", SAME.replace("planned 2", "planned 3"), f"{SAME}; exit 1"
])
def test_no_verdict(compare, guest):
    status, output = compare(SAME, SAME, guest)
    assert status == 125 and "the guest ended with" in output, output


ONLY_STOCK = "// SPDX\n// Passes in: stock\n"
FAILS = SAME.replace("ipv4 ok", "ipv4 fail a.pkt:9: timing")


def test_as_the_script_says(compare):
    """A script may differ in the states that it declares."""
    status, output = compare(SAME, FAILS, FAILS, ONLY_STOCK)
    assert status == 0, output
    assert output.count("0 differ from stock, 0 not as they must") == 2, output


def test_not_as_the_script_says(compare):
    """A script that passes where it must fail has tested nothing."""
    status, output = compare(SAME, SAME, FAILS, ONLY_STOCK)
    assert status == 1
    assert "tcp/a.pkt (ipv4): must fail; now ok" in output
    status, output = compare(FAILS, FAILS, FAILS, ONLY_STOCK)
    assert status == 1
    assert "tcp/a.pkt (ipv4): must pass; now fail a.pkt:9: timing" in output


def test_other_kernels(compare):
    """On other kernels than it is meant for, a script is only compared."""
    status, output = compare(FAILS, FAILS, FAILS,
                             ONLY_STOCK + "// Kernels: 6.1\n")
    assert status == 0, output
