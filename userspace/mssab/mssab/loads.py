# SPDX-License-Identifier: GPL-2.0
"""The loads: one bulk transfer from one namespace to another, measured at the
receiver.  Every load returns the same keys: bytes, bytes_per_s, rcv_ssthresh,
window_clamp (0: not known).
"""
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from .errors import MssabError, NotSupported
from .experiment import Cell

PORT = 5201
#: No transfer takes longer, on the clock of the kernel it runs on.
LIMIT_S = 4000


def _tool(name: str, package: str) -> str:
    path = os.environ.get(name.upper().replace("-", "_")) \
        or shutil.which(name)
    if not path:
        raise NotSupported(f"no {name} on PATH; {package}")
    return path


def _in(namespace: str, *argv: str) -> list[str]:
    return ["ip", "netns", "exec", namespace, *argv]


def _output(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True,
                              check=False, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise MssabError(f"{' '.join(argv)}: no end after {LIMIT_S} s; is "
                         "the transfer stuck?") from error
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise MssabError(f"{' '.join(argv)}: {why}")
    return done.stdout


def _command(cell: Cell, sender: str, receiver: str,
             address: str) -> list[str]:
    """mssab-load for one transfer of the cell."""
    argv = [_tool("mssab-load", "run make mssab"),
            "--from", sender, "--to", receiver, "--address", address,
            "--port", str(PORT + cell.seed), "--write", str(cell.write),
            "--warmup-ms", str(round(cell.warmup)),
            "--measure-ms", str(round(cell.measure))]
    if cell.rcvbuf_after_accept:
        argv += ["--rcvbuf", str(cell.rcvbuf_after_accept)]
    if cell.window:
        argv += ["--window", str(cell.window)]
        # The kernel learns its rate of payload to buffer from full segments;
        # and the first window of lo holds one: MSS would stay half of it.
        blocks = 32 if cell.link == "loopback" else 4
        argv += ["--open", str(blocks * 16384)]
    if cell.request:
        argv += ["--request", str(cell.request)]
    if cell.congestion_control:
        argv += ["--cc", cell.congestion_control]
    if not cell.nagle:
        argv += ["--nodelay"]
    return argv


def _mssab_load(cell: Cell, sender: str, receiver: str, address: str,
                aligned: bool) -> dict[str, Any]:
    argv = _command(cell, sender, receiver, address)
    # A start phase of the seed's own, against timers that beat with it.
    if aligned:
        argv += ["--align-ms", "100", "--phase-us", str(cell.seed * 317)]
    else:
        time.sleep(cell.seed * 0.000_317)
    result: dict[str, Any] = json.loads(_output(argv))
    return result


def several(cell: Cell, sender: str, receiver: str, address: str,
            count: int) -> list[dict[str, Any]]:
    """So many transfers at once, to ports one after the other."""
    argvs = [_command(replace(cell, seed=number), sender, receiver, address)
             for number in range(count)]
    with ExitStack() as stack:
        # In files: a pipe that fills would stop its writer.
        outs = [(stack.enter_context(tempfile.TemporaryFile("w+")),
                 stack.enter_context(tempfile.TemporaryFile("w+")))
                for _ in argvs]
        running = [subprocess.Popen(argv, stdout=out, stderr=err)
                   for argv, (out, err) in zip(argvs, outs)]
        end = time.monotonic() + LIMIT_S
        said = []
        try:
            for number, (process, (out, err)) in enumerate(zip(running, outs)):
                status = process.wait(max(0, end - time.monotonic()))
                out.seek(0)
                err.seek(0)
                if status:
                    raise MssabError(f"{' '.join(argvs[number])}: "
                                     f"{err.read().strip()}")
                said.append(json.loads(out.read()) | {"port": PORT + number})
        except subprocess.TimeoutExpired as error:
            raise MssabError(f"mssab-load: no end after {LIMIT_S} s; is the "
                             "transfer stuck?") from error
        finally:
            for process in running:
                process.kill()
                process.wait()
    return said


def _await_listener(namespace: str) -> None:
    for _ in range(300):
        if _output(_in(namespace, "ss", "-Htln", f"sport = {PORT}")).strip():
            return
        time.sleep(0.05)  # polling interval
    raise MssabError(f"iperf3 -s does not listen in {namespace}")


def _receiver_window(namespace: str) -> int:
    """rcv_ssthresh of the connection that carries the data, bytes; 0 if none
    does (the other one is iperf3's control connection)."""
    text = _output(_in(namespace, "ss", "-Htin", f"sport = {PORT}"))
    for received, window in re.findall(
            r"bytes_received:(\d+).*?rcv_ssthresh:(\d+)", text):
        if int(received) > 100000:
            return int(window)
    return 0


def _iperf3(cell: Cell, sender: str, receiver: str,
            address: str) -> dict[str, Any]:
    tool = _tool("iperf3", "install iperf3")
    window = 0
    with subprocess.Popen(_in(receiver, tool, "-s", "-1", "-p", str(PORT)),
                          stdout=subprocess.DEVNULL) as server, \
            tempfile.TemporaryFile("w+") as out:
        try:
            _await_listener(receiver)
            with subprocess.Popen(
                    _in(sender, tool, "-c", address, "-p", str(PORT), "-J",
                        *(["-N"] if not cell.nagle else []),
                        *(["-C", cell.congestion_control]
                          if cell.congestion_control else []),
                        "-l", str(cell.write),
                        "-t", str(cell.measure_ms // 1000),
                        "-O", str(cell.warmup_ms // 1000)),
                    stdout=out) as client:
                end = time.monotonic() + LIMIT_S
                while client.poll() is None:
                    if time.monotonic() > end:
                        client.kill()
                        raise MssabError(f"iperf3: no end after {LIMIT_S} s")
                    window = _receiver_window(receiver) or window
                    time.sleep(0.5)  # sampling interval
            out.seek(0)
            report = json.loads(out.read() or "{}")
        finally:
            server.kill()
    if "error" in report or "end" not in report:
        raise MssabError(f"iperf3: {report.get('error', 'no report')}")
    received = report["end"]["sum_received"]
    return {"bytes": received["bytes"],
            "bytes_per_s": received["bits_per_second"] / 8,
            "rcv_ssthresh": window, "window_clamp": 0}


def run(cell: Cell, sender: str, receiver: str, address: str,
        aligned: bool = False) -> dict[str, Any]:
    """Run the cell's load between two namespaces.  @aligned: to the kernel's
    clock, where the load can do it."""
    if cell.load == "iperf3":
        return _iperf3(cell, sender, receiver, address)
    return _mssab_load(cell, sender, receiver, address, aligned)


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def program(argv: tuple[str, ...], env: dict[str, str]) -> dict[str, Any]:
    """A command that prints one JSON object: its own load, its own figures."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True,
                              check=False, timeout=LIMIT_S,
                              env=os.environ | env)
    except OSError as error:
        raise MssabError(f"{argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise MssabError(f"{argv[0]}: no end after {LIMIT_S} s") from error
    if done.returncode:
        why = (done.stderr or done.stdout).strip()
        raise MssabError(f"{' '.join(argv)}: status {done.returncode}: {why}")
    try:
        said = json.loads(done.stdout, parse_constant=_no_number)
    except ValueError as error:
        raise MssabError(f"{argv[0]}: its output is no JSON object: "
                         f"{error}") from error
    if not isinstance(said, dict) or not all(
            type(value) in (int, float, str) for value in said.values()):
        raise MssabError(f"{argv[0]}: its output is no JSON object of numbers "
                         "and strings")
    return said
