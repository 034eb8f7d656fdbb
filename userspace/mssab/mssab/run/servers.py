# SPDX-License-Identifier: GPL-2.0-only
"""Loads with a server and a client program: iperf3, nuttcp, NetPIPE.

The server starts on a free port before the client and is gone when the transfer
ends, however it ends.  With a receiver on another machine the user runs the
server.  Functions without side effects parse what the programs print.
"""
from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .. import children
from ..errors import LoadFailed, MssabError, NotSupported
from ..experiment.cell import Cell
from ..netns import inside
from ..testbed.ends import Ends

PORT = 5201
#: Seconds that a transfer may take whose duration is not known before.
LIMIT_S = 4000
#: A transfer may take so many times its own duration, and so many seconds more:
#: an emulated machine that is busy with others is slow.
LIMIT_TIMES, LIMIT_START_S = 10, 120
#: Seconds until a server must listen.
LISTEN_S = 60
#: Seconds between polls of a running transfer.
POLL_S = 0.5
MEGABYTE = 1 << 20
Raw = dict[str, Any]


def tool(name: str, package: str) -> str:
    """Path of a program, from its environment variable (as IPERF3) or PATH."""
    path = os.environ.get(name.upper().replace("-", "_")) \
        or shutil.which(name)
    if not path:
        raise NotSupported(f"no {name} on PATH; {package}")
    return path


#: Program and Debian package of each load of two programs.
PROGRAMS = {"iperf3": ("iperf3", "iperf3"), "nuttcp": ("nuttcp", "nuttcp"),
            "netpipe": ("NPtcp", "netpipe-tcp")}


def program_of(load: str) -> str:
    name, package = PROGRAMS[load.removesuffix("-udp")]
    return tool(name, f"install {package}")


def free_ports(namespace: str, count: int, first: int) -> list[int]:
    """The first ports from @first on where nothing listens in the
    namespace."""
    found: list[int] = []
    with inside(namespace):
        for port in range(first, 65536):
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp, \
                    socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                try:
                    tcp.bind(("", port))
                    udp.bind(("", port))
                except OSError:
                    continue
            found.append(port)
            if len(found) == count:
                return found
    raise MssabError(f"no {count} free ports from {first} on in {namespace}")


def limit_s(cell: Cell) -> float:
    """Seconds, on the clock of its kernel, after which a transfer of the cell is
    stuck."""
    if cell.load == "netpipe":
        return children.patience(LIMIT_S)  # it decides itself how long it measures
    return children.patience(
        LIMIT_START_S + LIMIT_TIMES * (cell.warmup + cell.measure) / 1000)


class Process:
    """A program in a namespace, with its output and CPU time."""

    def __init__(self, namespace: str, argv: list[str], folder: str,
                 name: str, cpu: int = -1) -> None:
        """@cpu: the one to run on; -1: any."""
        self.argv = [*(["taskset", "-c", str(cpu)] if cpu >= 0 else []), *argv]
        self.cpu_ns = 0
        self._folder, self._name = folder, name
        with self._file("out", "wb") as out, self._file("err", "wb") as err:
            self._popen = children.load(
                ["ip", "netns", "exec", namespace, *self.argv],
                stdout=out, stderr=err, cwd=folder)

    def _file(self, kind: str, mode: str) -> IO[Any]:
        return open(Path(self._folder, f"{self._name}.{kind}"), mode)

    def said(self, kind: str = "out") -> str:
        with self._file(kind, "rb") as file:
            return str(file.read().decode("utf-8", "replace"))

    def ended(self) -> bool:
        if self._popen.returncode is None:
            pid, status, used = os.wait4(self._popen.pid, os.WNOHANG)
            if pid:
                self._popen.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_ns = round(1e9 * (used.ru_utime + used.ru_stime))
        return self._popen.returncode is not None

    def wait(self, seconds: float,
             meanwhile: Callable[[], None] | None = None) -> None:
        """Wait until the program ends; LoadFailed if it fails or takes longer.
        @meanwhile is called every POLL_S, not more often: on one CPU polling
        would be part of what is measured."""
        end = time.monotonic() + seconds
        while not self.ended():
            left = end - time.monotonic()
            if left <= 0:
                raise LoadFailed(f"{' '.join(self.argv)}: no end after "
                                 f"{seconds:g} s; is the transfer stuck?")
            if meanwhile:
                meanwhile()
            self._sleep(min(left, POLL_S) if meanwhile else left)
        if self._popen.returncode:
            raise self.failed()

    def _sleep(self, seconds: float) -> None:
        """Sleep, or until the program ends."""
        fd = os.pidfd_open(self._popen.pid)
        try:
            select.select([fd], [], [], seconds)
        finally:
            os.close(fd)

    def failed(self) -> LoadFailed:
        lines = (self.said("err") + self.said()).strip().splitlines()
        return LoadFailed(f"{' '.join(self.argv)}: status "
                          f"{self._popen.returncode}"
                          + (f": {lines[-1]}" if lines else ""))

    def kill(self) -> None:
        self.ended()    # takes the CPU time
        children.end(self._popen)


def _listens(namespace: str, port: int) -> bool:
    with inside(namespace):
        for table in ("tcp", "tcp6"):
            # 0A: listening.  /proc/net would be the first thread's.
            text = Path("/proc/thread-self/net", table).read_text("ascii")
            if re.search(rf":{port:04X} \S+ 0A ", text):
                return True
    return False


@contextmanager
def server(ends: Ends, argv: list[str], port: int, folder: str,
           cpu: int = -1) -> Iterator[Process]:
    """A server that listens; killed if it still runs at the end."""
    process = Process(ends.receiver, argv, folder, "server", cpu)
    try:
        limit = children.patience(LISTEN_S)
        end = time.monotonic() + limit
        while not _listens(ends.receiver, port):
            if process.ended():
                raise process.failed()
            if time.monotonic() > end:
                raise LoadFailed(f"{' '.join(argv)} does not listen on port "
                                 f"{port} after {limit:g} s")
            time.sleep(0.02)  # polling interval
        yield process
    finally:
        process.kill()


def _transfer(cell: Cell, ends: Ends, server_argv: list[str],
              client_argv: list[str], port: int, folder: str,
              meanwhile: Callable[[], None] | None = None) \
        -> tuple[Process, Process | None]:
    """Run server and client until both end; the server ends on its own."""
    def client() -> Process:
        process = Process(ends.sender, client_argv, folder, "client",
                          cell.sender_cpu)
        try:
            process.wait(limit_s(cell), meanwhile)
        finally:
            process.kill()
        return process
    if not ends.receiver:
        return client(), None
    with server(ends, server_argv, port, folder, cell.receiver_cpu) as other:
        started = client()
        other.wait(children.patience(LISTEN_S))
        return started, other


def _usage(cell: Cell, client: Process, other: Process | None,
           wall_s: float) -> Raw:
    """CPU time of the load, with tcpload's keys.  nuttcp's UDP sender spins
    between datagrams, so its CPU time has no meaning."""
    out = {"wall_ns": wall_s * 1e9}
    if cell.load != "nuttcp-udp":
        out["cpu_sender_ns"] = client.cpu_ns
    if other:
        out["cpu_receiver_ns"] = other.cpu_ns
        out["cpu_ns"] = out.get("cpu_sender_ns", 0) + other.cpu_ns
    return out


def _receiver_window(namespace: str, port: int) -> int:
    """rcv_ssthresh of the connection that carries the data, bytes; 0 if there
    is none.  (The other connection is iperf3's control connection.)"""
    text = subprocess.run(
        ["ip", "netns", "exec", namespace, "ss", "-Htin", f"sport = {port}"],
        capture_output=True, text=True, check=False).stdout
    for received, window in re.findall(
            r"bytes_received:(\d+).*?rcv_ssthresh:(\d+)", text):
        if int(received) > 100000:
            return int(window)
    return 0


# --- iperf3 -----------------------------------------------------------------

def parse_iperf3(cell: Cell, client: Raw, receiver: Raw | None) -> Raw:
    """The measurements in the reports of both ends; with a server on another
    machine, in the client's alone (@receiver: None)."""
    for report in (client, receiver):
        if report is not None and ("error" in report or "end" not in report):
            raise LoadFailed(f"iperf3: {report.get('error', 'no report')}")
    got = client["end"]["sum_received"]
    out = {"bytes": got["bytes"], "bytes_per_s": got["bits_per_second"] / 8,
           "received": sum(i["sum"]["bytes"] for i in client["intervals"])}
    if not cell.udp:
        return out
    # The client's sums include datagrams lost before the measurement.
    if receiver is not None:
        counted = [i["sum"] for i in receiver["intervals"]
                   if not i["sum"]["omitted"]]
        out["sent_datagrams"] = sum(i["packets"] for i in counted)
        out["lost_datagrams"] = sum(i["lost_packets"] for i in counted)
        out["received"] = sum(i["sum"]["bytes"]
                              for i in receiver["intervals"])
    else:
        out["sent_datagrams"] = client["end"]["sum_sent"]["packets"]
        out["lost_datagrams"] = max(0, out["sent_datagrams"]
                                    - out["bytes"] // cell.datagram)
    return out | {"jitter_ns": got["jitter_ms"] * 1e6}


def _iperf3(cell: Cell, ends: Ends, folder: str) -> Raw:
    program = program_of(cell.load)
    port = cell.server_port or PORT
    if ends.receiver:
        port, = free_ports(ends.receiver, 1, port)
    window = 0

    def poll() -> None:
        nonlocal window
        window = _receiver_window(ends.receiver, port) or window
    udp = ["-u", "-b", f"{round(cell.offered_mbit * 1e6)}"] if cell.udp else []
    start = time.monotonic()
    client, other = _transfer(
        cell, ends, [program, "-s", "-1", "-J", "-p", str(port)],
        [program, "-c", ends.address, "-p", str(port), "-J", *udp,
         *(["-N"] if not cell.nagle else []),
         *(["-C", cell.congestion_control]
           if cell.congestion_control else []),
         "-l", str(cell.datagram if cell.udp else cell.write),
         "-t", str(cell.measure_ms // 1000),
         "-O", str(cell.warmup_ms // 1000)], port, folder,
        poll if ends.receiver and not cell.udp else None)
    used = _usage(cell, client, other, time.monotonic() - start)
    return parse_iperf3(cell, json.loads(client.said() or "{}"),
                        json.loads(other.said() or "{}")
                        if other else None) \
        | {"rcv_ssthresh": window, "window_clamp": 0} | used


# --- nuttcp -----------------------------------------------------------------

def _nuttcp_line(line: str) -> dict[str, float]:
    """The numbers in one line.  Its times have two digits, its rates four."""
    words = {key: float(value) for key, value in
             re.findall(r"(\w+)=([0-9.]+)", line)}
    words["bytes"] = words["megabytes"] * MEGABYTE
    rate = words["rate_Mbps"] * 1e6 / 8
    words["seconds"] = words["bytes"] / rate if rate else \
        words.get("real_sec", words.get("real_seconds", 0))
    return words


def parse_nuttcp(cell: Cell, text: str) -> Raw:
    """The whole minus the first interval, which is the warm-up."""
    lines = [_nuttcp_line(line) for line in text.splitlines()
             if line.startswith("megabytes=")]
    if not lines:
        raise LoadFailed(f"nuttcp: no report: {text.strip() or 'no output'}")
    whole = lines[-1]
    before = lines[0] if cell.warmup else {}
    seconds = whole["seconds"] - before.get("seconds", 0)
    counted = {key: max(0, value - before.get(key, 0))
               for key, value in whole.items()}
    if seconds <= 0:
        raise LoadFailed(f"nuttcp: no time measured: {text.strip()}")
    out = {"bytes": round(counted["bytes"]),
           "bytes_per_s": counted["bytes"] / seconds,
           "received": round(whole["bytes"]),
           "rcv_ssthresh": 0, "window_clamp": 0}
    if cell.udp:
        return out | {"sent_datagrams": round(counted["pkt"]),
                      "lost_datagrams": round(counted["drop"])}
    return out | {"retransmits": round(whole["retrans"])} \
        if "retrans" in whole else out


def _nuttcp(cell: Cell, ends: Ends, folder: str) -> Raw:
    program = program_of(cell.load)
    ports = [cell.server_port or 5000, 5001]
    if ends.receiver:
        ports = free_ports(ends.receiver, 2, PORT)
    udp = ["-u", f"-R{round(cell.offered_mbit * 1e3)}"] if cell.udp else []
    start = time.monotonic()
    client, other = _transfer(
        cell, ends, [program, "-1", "--nofork", "-P", str(ports[0])],
        [program, "-fparse", "-P", str(ports[0]), "-p", str(ports[1]),
         "-T", f"{(cell.warmup + cell.measure) / 1000:g}",
         *(["-i", f"{cell.warmup / 1000:g}"] if cell.warmup else []),
         "-l", str(cell.datagram if cell.udp else cell.write), *udp,
         *(["-D"] if not cell.nagle else []), ends.address], ports[0], folder)
    used = _usage(cell, client, other, time.monotonic() - start)
    return parse_nuttcp(cell, client.said()) | used


# --- NetPIPE ----------------------------------------------------------------

def parse_netpipe(text: str) -> Raw:
    """The line of its output file: bytes, Mbit/s, and seconds for one message,
    which is half of a round trip."""
    words = text.split()
    try:
        size, rate, seconds = int(words[0]), float(words[1]), float(words[2])
    except (IndexError, ValueError) as error:
        raise LoadFailed("NPtcp: no measurement: "
                         f"{text.strip() or 'no output'}") from error
    # Its rate is in units of 2^20 bit/s; its time has few digits.
    rate *= MEGABYTE / 8
    return {"bytes_per_s": rate, "message_ns": size / rate * 1e9
            if rate else seconds * 1e9, "rcv_ssthresh": 0, "window_clamp": 0}


def _netpipe(cell: Cell, ends: Ends, folder: str) -> Raw:
    program = program_of(cell.load)
    port = cell.server_port or 5002
    if ends.receiver:
        port, = free_ports(ends.receiver, 1, PORT)
    size = str(cell.request or cell.write)
    # Both ends need the same options.
    common = ["-P", str(port), "-l", size, "-u", size, "-p", "0"]
    _transfer(cell, ends, [program, *common, "-o", os.devnull],
              [program, "-h", ends.address, *common, "-o", "output"], port,
              folder)
    return parse_netpipe(Path(folder, "output").read_text("ascii"))


LOADS = {"iperf3": _iperf3, "nuttcp": _nuttcp, "netpipe": _netpipe}


def run(cell: Cell, ends: Ends) -> Raw:
    """One transfer of a cell whose load has a server."""
    with tempfile.TemporaryDirectory(prefix="mssab-") as folder:
        return LOADS[cell.load.removesuffix("-udp")](cell, ends, folder)
