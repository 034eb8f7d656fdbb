# SPDX-License-Identifier: GPL-2.0-only
"""Measures blocks in guests: scripts/guest boots the kernel of the block's arm,
and mssab block measures in it.

A guest that dies, hangs or whose kernel complains yields no measurement: the
block is void, with the reason, and is counted for its arm like any other.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import children
from ..errors import MssabError, NotSupported
from ..experiment.experiment import Arm, Plan

TREE = Path(__file__).resolve().parents[4]
#: Wall time for one boot and one block on a busy host.
LIMIT_S = 1800
#: Exit statuses of scripts/guest: time limit; no end marker.
DEAD = (124, 125)


@dataclass
class Guests:
    """Measures blocks, as block.Runner does."""

    plan: Plan
    file: Path
    source: str
    tree: Path = TREE
    releases: dict[str, str] = field(default_factory=dict)
    tried: bool = False

    @property
    def script(self) -> Path:
        return self.tree / "scripts/guest"

    def find(self) -> None:
        """Find all that the blocks need; NotSupported if something is missing."""
        if os.environ.get("MSSFRAC_GUEST"):
            raise NotSupported(f'run = "{self.plan.run}" boots guests, but '
                               "this is one; start mssab on the host")
        if not self.script.exists():
            raise NotSupported("scripts/guest of the source tree boots "
                               "guests; start build/bin/mssab there")
        for arm in self.plan.arms:
            asked = subprocess.run(
                [self.script, "--kernel", arm.kernel, "--release"],
                capture_output=True, text=True, check=False)
            if asked.returncode:
                raise NotSupported(f"arm {arm.name}: {asked.stderr.strip()}")
            self.releases[arm.name] = asked.stdout.strip()
            if self.plan.module_keys and not self.module(arm).exists():
                raise NotSupported(
                    f"arm {arm.name}: the module is not built for "
                    f"{self.releases[arm.name]}; run make kmod "
                    f"KERNEL={arm.kernel}")

    def module(self, arm: Arm) -> Path:
        return self.tree / "build/kmod" / self.releases[arm.name] \
            / "mssfrac.ko"

    def kernel(self) -> str:
        """The kernels of the arms, for the manifest."""
        return " v ".join(self.releases[arm.name] for arm in self.plan.arms)

    def module_version(self) -> str:
        """A string that differs between builds of the module."""
        if not self.plan.module_keys:
            return ""
        return " v ".join(subprocess.run(
            ["modinfo", "-F", "srcversion", self.module(arm)],
            capture_output=True, text=True, check=False).stdout.strip()
            for arm in self.plan.arms)

    def __enter__(self) -> Guests:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _try_arms(self) -> None:
        """Set up every arm once."""
        for arm in self.plan.arms:
            raw = self._boot(arm, 0, measured=False)
            if "dead_guest" in raw:
                raise MssabError(f"arm {arm.name} cannot be set up: "
                                 f"{raw['dead_guest']}")
        self.tried = True

    def measure(self, arm: Arm, seed: int, _share: int) -> dict[str, Any]:
        """One block.  The first call sets up every arm first.  So nothing boots
        if all blocks are already measured."""
        if not self.tried:
            self._try_arms()
        return self._boot(arm, seed, measured=True)

    def command(self, arm: Arm, seed: int, folder: Path,
                measured: bool) -> list[str]:
        """scripts/guest for one block; its output goes to the folder."""
        block = [str(self.tree / "userspace/mssab/mssab.sh"), "block",
                 str(folder / self.file.name), arm.name, "--seed", str(seed),
                 *(["-o", str(folder / "raw")] if measured else [])]
        if self.plan.module_keys:
            block = ["sh", "-c", 'insmod "$1" && shift && exec "$@"', "-",
                     str(self.module(arm)), *block]
        # The nuisance seed also seeds the guest's random numbers.
        return [str(self.script), "--kernel", arm.kernel, "--mode",
                self.plan.run, "--timeout", str(LIMIT_S), "--seed",
                str(max(seed, 1)), "--rwdir", str(folder), "--", *block]

    def _boot(self, arm: Arm, seed: int, measured: bool) -> dict[str, Any]:
        below = self.tree / "build/guest"
        below.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="mssab-", dir=below) as name:
            folder = Path(name)
            (folder / self.file.name).write_text(self.source, "utf-8")
            with children.start(
                    self.command(arm, seed, folder, measured),
                    signal.SIGTERM, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE) as guest:
                try:
                    out, err = guest.communicate()
                finally:
                    # scripts/guest then ends its emulator.
                    guest.terminate()
            lines = (out + err).strip().splitlines() or ["no output"]
            raw = folder / "raw"
            if guest.returncode == 0 and (raw.exists() or not measured):
                return dict(json.loads(raw.read_text("utf-8"))) \
                    if measured else {}
            # Its kernel complained after the measurement, or it died before.
            if raw.exists() or guest.returncode in DEAD:
                return {"dead_guest": lines[-1]}
        why = next((line for line in reversed(lines)
                    if line.startswith("mssab: ")), lines[-1])
        kind = NotSupported if guest.returncode == 3 else MssabError
        raise kind(f"arm {arm.name}, kernel {self.releases[arm.name]}: "
                   + why.removeprefix("mssab: "))
