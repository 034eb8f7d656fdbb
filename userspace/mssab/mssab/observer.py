# SPDX-License-Identifier: GPL-2.0-only
"""A program that watches the packets of a transfer, as a key of the cell: what
observing costs is then the difference between two arms."""
from __future__ import annotations

import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import children, patience, profiler, servers
from .cell import Cell
from .ends import Ends
from .errors import MssabError

#: Of each packet: all headers, as tcpdump's manual advises for TCP.
SNAP = 96
#: Seconds until tcpdump must listen, or must have ended.
PATIENCE_S = 60
POLL_S = 0.02
_COUNT = re.compile(r"^(\d+) packets? (captured|dropped by kernel)", re.M)


def counts(text: str) -> dict[str, int]:
    """What tcpdump reports at its end."""
    found = {what: int(number) for number, what in _COUNT.findall(text)}
    return {"observed": found.get("captured", 0),
            "observer_dropped": found.get("dropped by kernel", 0)}


def _await(process: subprocess.Popen[Any], said: Path) -> None:
    end = time.monotonic() + patience.seconds(PATIENCE_S)
    while "listening on" not in said.read_text("utf-8", "replace"):
        if process.poll() is not None or time.monotonic() > end:
            raise MssabError("tcpdump does not listen: "
                             + said.read_text("utf-8", "replace").strip())
        time.sleep(POLL_S)


@contextmanager
def _tcpdump(namespace: str, device: str) -> Iterator[dict[str, Any]]:
    """Write the headers of all packets of the device to a file."""
    found: dict[str, Any] = {}
    tool = servers.tool("tcpdump", "install tcpdump")
    with tempfile.TemporaryDirectory(prefix="mssab-") as folder:
        said = Path(folder, "said")
        with open(said, "w", encoding="utf-8") as err:
            process = children.load(
                ["ip", "netns", "exec", namespace, tool, "-i", device, "-n",
                 "-s", str(SNAP), "-Z", "root", "-w", str(Path(folder, "file"))],
                stdout=subprocess.DEVNULL, stderr=err)
        try:
            _await(process, said)
            yield found
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)
        finally:
            children.end(process)
        found.update(counts(said.read_text("utf-8", "replace")))


@contextmanager
def _pathprof(address: str) -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {}
    with profiler.recording(0, address, False) as profile:
        yield found
    found["observed"] = profile["profile"]["sampled"]


@contextmanager
def beside(cell: Cell, between: Ends, device: str) -> Iterator[dict[str, Any]]:
    """Watch the receiver's @device during the block; afterwards the dict yielded
    holds "observed" packets."""
    if cell.observer == "tcpdump":
        with _tcpdump(between.receiver, device) as found:
            yield found
    elif cell.observer == "pathprof":
        with _pathprof(between.address) as found:
            yield found
    else:
        yield {}
