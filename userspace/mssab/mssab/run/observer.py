# SPDX-License-Identifier: GPL-2.0-only
"""Programs that watch the packets of a transfer.  pathprof around it measures the
cost of a packet on its way in and out.  As a key of the cell, tcpdump or pathprof
is part of an arm: the cost of observing is then the difference between two arms.

pathprof is driven by its command line, and its profile is read.
"""
from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .. import children
from ..errors import MssabError, NotSupported
from ..experiment.cell import Cell
from ..testbed.ends import Ends
from . import servers

# --- pathprof -----------------------------------------------------------------

#: Seconds to attach all hooks, or to detach them, in an emulated guest.
PATHPROF_S = 600
#: Keys of the account that count packets chosen and then lost.
LOST = ("no_slot", "map_full", "abandoned", "sock_clash")


def costs(profile: dict[str, Any]) -> dict[str, float]:
    """ns of work per packet with payload, in each direction; and ns of work on
    all packets, acknowledgements too, per byte received.  A cost without
    packets is left out."""
    work = {"rx": 0, "tx": 0}
    packets = {"rx": 0, "tx": 0}
    everything = received = 0
    for path in profile["paths"]:
        way = path["direction"]
        everything += path["work_ns"]
        if way not in work or not path["bytes"]:
            continue
        work[way] += path["work_ns"]
        # GRO merged several into one packet: count all work, but one packet.
        if path["end"] == "merged":
            continue
        packets[way] += path["packets"]
        if way == "rx" and path["end"] != "dropped":
            received += path["bytes"]
    out = {f"{way}_ns_per_packet": work[way] / packets[way]
           for way in work if packets[way]}
    if received:
        out["ns_per_byte"] = everything / received
    return out


def _pathprof_tool() -> str:
    path = os.environ.get("PATHPROF") or shutil.which("pathprof")
    if not path or not os.access(path, os.X_OK):
        raise NotSupported(f"no pathprof {f'at {path}' if path else 'on PATH'};"
                           " run make pathprof")
    return path


def _await_hooks(process: subprocess.Popen[str], ready: int, said: Path) -> None:
    """Wait until the hooks are attached."""
    seen, _, _ = select.select([ready], [], [], PATHPROF_S)
    if seen and os.read(ready, 1):
        return
    status = process.poll() if seen else None
    if seen and status is None:
        status = process.wait(PATHPROF_S)
    why = said.read_text("utf-8", "replace").strip().splitlines()
    error = NotSupported if status == 3 else MssabError
    raise error(why[-1] if why else f"pathprof record: status {status}"
                if seen else f"pathprof record: not ready after {PATHPROF_S} s")


@contextmanager
def recording(sample: int, address: str, udp: bool) \
        -> Iterator[dict[str, Any]]:
    """Follow 1 in @sample packets from or to an address during the block (0:
    pathprof's default); afterwards the dict yielded holds "profile" and
    "lost_events"."""
    found: dict[str, Any] = {}
    tool = _pathprof_tool()
    with tempfile.TemporaryDirectory(prefix="mssab-") as folder:
        output, said = Path(folder, "profile"), Path(folder, "said")
        ready, theirs = os.pipe()
        with open(said, "w", encoding="utf-8") as err:
            process = children.start(
                [tool, "record", "--addr", address,
                 *(["--sample", str(sample)] if sample else []),
                 *(["--udp"] if udp else []), "--ready-fd", str(theirs),
                 "-o", str(output)], signal.SIGINT, stdout=err, stderr=err,
                pass_fds=[theirs])
        os.close(theirs)
        try:
            _await_hooks(process, ready, said)
            yield found
            process.send_signal(signal.SIGINT)
            if status := process.wait(PATHPROF_S):
                raise MssabError(f"pathprof record: status {status}: "
                                 + said.read_text("utf-8", "replace").strip())
        finally:
            os.close(ready)
            # Not killed: its hooks stay attached until it detaches them.
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.wait(PATHPROF_S)
        # The report subtracts pathprof's own cost; the file does not.
        reported = subprocess.run([tool, "report", "--json", str(output)],
                                  capture_output=True, text=True, check=False)
    if reported.returncode:
        raise MssabError(f"pathprof report: {reported.stderr.strip()}")
    profile = json.loads(reported.stdout)
    account = profile["account"]
    found["profile"] = costs(profile) | {"sampled": account["sampled"]}
    found["lost_events"] = sum(account[word] for word in LOST)


def check_pathprof(sample: int, udp: bool) -> None:
    """Attach once, to report what is missing before anything starts."""
    with recording(sample, "127.0.0.1", udp):
        pass


# --- The observer of an arm ---------------------------------------------------

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
    end = time.monotonic() + children.patience(PATIENCE_S)
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
    with recording(0, address, False) as profile:
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
