# SPDX-License-Identifier: GPL-2.0-only
"""Interrupt affinity, packet steering (RPS, RFS, XPS) and deferred interrupts, by
files of sysfs and procfs."""
from __future__ import annotations

import re
from pathlib import Path

from .. import system, units
from ..errors import NotSupported, UsageError
from .link import DeviceSetting, show
from .setting import Setting

_FILES = re.compile(r"gro_flush_timeout|napi_defer_hard_irqs|threaded|"
                    r"rx-\d+/(rps_cpus|rps_flow_cnt)|tx-\d+/xps_cpus")


class Queue(DeviceSetting):
    """queue:DEV:FILE, FILE below /sys/class/net/DEV or its folder queues."""

    kind = "queue"

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        device, _, self.file = target.partition(":")
        if not _FILES.fullmatch(self.file) or not re.fullmatch(r"[\w.@-]+", device):
            raise UsageError(
                f"queue:{target}: a setting is queue:DEVICE:FILE=VALUE, FILE one of "
                "gro_flush_timeout, napi_defer_hard_irqs, threaded, rx-N/rps_cpus, "
                "rx-N/rps_flow_cnt, tx-N/xps_cpus")
        folder = Path("/sys/class/net", device)
        self.path = (folder / "queues" / self.file if "/" in self.file
                     else folder / self.file)

    def _checked(self) -> Path:
        # sysfs shows the network namespace in which it was mounted.
        try:
            index = Path("/sys/class/net", self.device, "ifindex").read_text("ascii")
        except OSError:
            index = ""
        if index.strip() != str(show(self.device)["ifindex"]):
            raise NotSupported(f"{self.name}: /sys shows another network "
                               "namespace; use ip netns exec")
        return self.path

    def read(self) -> str:
        try:
            return self._checked().read_text("ascii")
        except OSError as error:
            raise NotSupported(f"{self.name}: {error.strerror}") from error

    def write(self, value: str) -> None:
        system.write_kernel(self._checked(), value)

    def check(self, value: str) -> None:
        if not re.fullmatch(r"[0-9a-fA-F,]+", value):
            raise UsageError(f"{self.name}={value}: must be a number, or a mask of "
                             "CPUs in hexadecimal")

    def same(self, one: str, other: str) -> bool:
        def number(text: str) -> int:
            base = 16 if self.file.endswith("cpus") else 10
            return int(text.replace(",", "").strip() or "0", base)
        return number(one) == number(other)


class Irq(Setting):
    """irq:NUMBER, the list of CPUs that may handle the interrupt."""

    kind = "irq"

    def __init__(self, target: str, root: Path) -> None:
        super().__init__(target, root)
        if not target.isdecimal():
            raise UsageError(f"irq:{target}: a setting is irq:NUMBER=CPUS")
        self.path = Path("/proc/irq", target, "smp_affinity_list")

    def identity(self) -> str:
        """After a driver reloads, the number may belong to another device."""
        for line in Path("/proc/interrupts").read_text("ascii").splitlines():
            if line.split(":")[0].strip() == self.target:
                return line.split()[-1]
        return ""

    def read(self) -> str:
        try:
            return self.path.read_text("ascii")
        except OSError as error:
            raise UsageError(f"{self.name}: no such interrupt") from error

    def write(self, value: str) -> None:
        system.write_kernel(self.path, value)

    def check(self, value: str) -> None:
        if not re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", value):
            raise UsageError(f"{self.name}={value}: must be a list of CPUs such as "
                             "0-3,8")

    def same(self, one: str, other: str) -> bool:
        return units.numbers(one) == units.numbers(other)
