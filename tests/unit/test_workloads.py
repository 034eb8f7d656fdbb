# SPDX-License-Identifier: GPL-2.0-only
"""Workloads by name and of a user, and what measure.py makes of them."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/bench/ladder"))

import measure  # noqa: E402
import workloads  # noqa: E402


@pytest.mark.parametrize("text, name, command", [
    ("ping-pong", "ping-pong", ""), ("own-1=run it", "own-1", "run it"),
    ("a=b=c\ng", "a", "b=c\ng")])
def test_a_workload_has_a_name(text, name, command):
    got, workload = workloads.named(text)
    assert (got, workload.command) == (name, command)


@pytest.mark.parametrize("text", ["own", "bulk=x", "A=x", "../a=x", "a= ", "=x"])
def test_what_is_no_workload(text):
    assert workloads.named(text) is None


def test_a_command_of_the_user_learns_its_peer():
    _, workload = workloads.named("own=run it")
    assert measure.arguments(workload) == [
        "ip", "netns", "exec", "a", "env", "PEER=b", "PEER_ADDRESS=10.9.0.2",
        "sh", "-c", "run it"] == measure.arguments(workload, warm_up=True)


@pytest.mark.parametrize("output, found", [
    ('start\n{"ns": 5, "packets": 2, "bytes": 9, "more": 1}\n',
     {"ns": 5, "packets": 2, "bytes": 9}),
    ('{"ns": 5, "packets": 2}', {"ns": 5, "packets": 2}),
    ("", None), ("done\n", None), ("5\n", None), ('{"ns": 5}\n', None)])
def test_a_command_may_print_its_result(output, found):
    assert measure.result(output) == found


@pytest.mark.parametrize("output, load", [
    ("done\n", {"ns": 100, "packets": 12}),
    ('{"ns": 5, "packets": 2}\n', {"ns": 5, "packets": 2})])
def test_else_time_and_packets_are_counted(monkeypatch, output, load):
    snmp = iter([(10, 20), (15, 27)])
    times = iter([1000, 1100])

    def run(*argv, **_):
        if "cat" in argv:
            return ("Ip: Forwarding InReceives OutRequests\nIp: 1 "
                    "{} {}\nTcp: InSegs\nTcp: 7\n".format(*next(snmp)))
        return output
    monkeypatch.setattr(measure, "run", run)
    monkeypatch.setattr(measure.time, "monotonic_ns", lambda: next(times))
    _, workload = workloads.named("own=run it")
    assert measure.unprofiled(workload, ["run it"], {}) == load
