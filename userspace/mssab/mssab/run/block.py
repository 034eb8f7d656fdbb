# SPDX-License-Identifier: GPL-2.0-only
"""Measures the blocks of an experiment on this machine, with what the host did
meanwhile.  guests.py measures them in guests."""
from __future__ import annotations

import math
import resource
import shutil
import subprocess
import time
from types import TracebackType
from typing import Any

from .. import children
from ..errors import LoadFailed, MssabError
from ..experiment.cell import OWN_LOAD
from ..experiment.experiment import CONNECTION, Arm, Plan
from ..statistics import connections
from ..testbed import host, nic_move, testbed
from . import loads, observer, servers, transfers, trial


class Runner:
    """Measures blocks in a testbed, which is gone when the with-block ends."""

    def __init__(self, plan: Plan, module_keys: list[str] | None = None,
                 warm: bool = False) -> None:
        """@warm: count the first block of a cell without repeating it."""
        self.plan = plan
        # A program is not warmed up.
        self._warm = warm or bool(plan.program)
        self._keys = plan.module_keys if module_keys is None else module_keys
        self._testbed = testbed.Testbed()
        # Seconds of the longest block of a program that worked.
        self._longest = 0.0

    def __enter__(self) -> Runner:
        if self.plan.arms[0].cell:
            host.check(bool(self._keys)
                       or self.plan.assign == CONNECTION)
            testbed.sweep()
            self._testbed.__enter__()
            host.fix_addresses()
            self._rehearse()
            if self.plan.profiled:
                observer.check_pathprof(self.plan.profile_sample,
                                        self.plan.arms[0].cell.udp)
        return self

    def __exit__(self, kind: type[BaseException] | None,
                 value: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._testbed.__exit__(kind, value, trace)

    def _rehearse(self) -> None:
        """Every setting of every arm once, before anything is measured."""
        for arm in self.plan.arms:
            assert arm.cell
            if arm.cell.load not in OWN_LOAD:
                servers.program_of(arm.cell.load)
            try:
                host.check_congestion_control(arm.cell.congestion_control)
                nic_move.check(arm.cell)
                self._testbed.prepare(arm, self._keys, arm.cell)
            except MssabError as error:
                raise MssabError(f"arm {arm.name} cannot be set up: "
                                 f"{error}") from error
            finally:
                self._testbed.tear_down()

    def measure(self, arm: Arm, seed: int, share: int) -> dict[str, Any]:
        """One block.  @share: of connections with the treatment, %.  A load
        that fails is an outcome: "failed" holds the reason."""
        if not self._warm:
            # The first run loads code, allocates and reads files: that must not
            # count for the first arm.
            self._warm = True
            self._outcome(arm, seed, share)
        ticks, stolen = host.cpu_times()
        used = _children()
        start = time.monotonic()
        raw = self._outcome(arm, seed, share)
        elapsed = time.monotonic() - start
        used = _children() - used
        ticks, stolen = (now - then for now, then in zip(
            host.cpu_times(), (ticks, stolen), strict=True))
        raw["host"] = {
            "elapsed_s": elapsed, "cpu_s": used,
            # One tick may belong to the time before.
            "stolen_percent": 100 * max(stolen - 1, 0) / max(ticks, 1),
            "generator_percent": _generator(raw)}
        return raw

    def _outcome(self, arm: Arm, seed: int, share: int) -> dict[str, Any]:
        try:
            return self._raw(arm, seed, share)
        except LoadFailed as error:
            return {"failed": str(error)}

    def _raw(self, arm: Arm, seed: int, share: int) -> dict[str, Any]:
        if share:
            return self._connections(arm, seed, share)
        return self._load(arm, seed)

    def _load(self, arm: Arm, seed: int) -> dict[str, Any]:
        if self.plan.program:
            # Not the arm's name: a load must not know which arm it is.
            start = time.monotonic()
            said = loads.program(self.plan.program,
                                 arm.env | {"MSSAB_SEED": str(seed)},
                                 self._limit())
            self._longest = max(self._longest, time.monotonic() - start)
            return said
        raw = trial.block(self._testbed, arm, self._keys, seed,
                          self.plan.profile_sample if self.plan.profiled else 0)
        assert arm.cell
        if arm.cell.request:
            raw["request"] = arm.cell.request
        averages = transfers.averages(
            arm.cell, [{"counters": {}} | raw],
            transfers.round_trip(arm.cell, [raw]))
        if "utilisation" in averages:
            raw["utilisation"] = averages["utilisation"]
        return raw

    def _limit(self) -> float:
        """Seconds after which a program is stuck."""
        if self.plan.limit_s:
            return self.plan.limit_s
        if not self._longest:
            return children.patience(servers.LIMIT_S)
        return children.patience(servers.LIMIT_START_S + servers.LIMIT_TIMES
                                 * round(self._longest, 1))

    def _connections(self, arm: Arm, seed: int, share: int) -> dict[str, Any]:
        """Several transfers at once.  The module draws their arms, which are
        computed again here."""
        drawn = Arm(arm.name, arm.settings, arm.cell, arm.module
                    | {"ab_percent": share, "ab_seed": seed}, {}, {}, {}, {})
        keys = {*self._keys, "ab_percent", "ab_seed"}
        some = trial.connections(self._testbed, drawn, keys, self.plan.connections)
        for one in some:
            one["arm"] = connections.arm_of(one, seed, share)
        rates = [one["bytes_per_s"] for one in some if "failed" not in one]
        return {"connections": some, "bytes_per_s": sum(rates)}


def _children() -> float:
    """CPU seconds of child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _generator(raw: dict[str, Any]) -> float:
    """CPU that the busier end of the load used, where reported; %."""
    used = max(raw.get("cpu_sender_ns", 0), raw.get("cpu_receiver_ns", 0))
    return float(100 * used / raw.get("wall_ns", math.inf))


def tools() -> dict[str, str]:
    """Versions of the programs used, for the manifest."""
    found = {}
    for name, *argv in (("ip", "-V"), ("iperf3", "--version"),
                        ("nuttcp", "-V"), ("pathprof", "--version")):
        if shutil.which(name):
            output = subprocess.run([name, *argv], capture_output=True,
                                    text=True, check=False).stdout
            found[name] = output.splitlines()[0] if output else ""
    return found
