#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Measures what the timeout of sender SWS avoidance costs, in two namespaces.

Run as root in a throw-away guest (see README.rst).  Each line is one transfer.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
import time
from dataclasses import dataclass

BUF = bytes(64 * 1024)
COUNTERS = ("TcpExtTCPSWSOverride", "TcpOutSegs", "TcpRetransSegs")


@dataclass(frozen=True)
class Cell:
    """One transfer; the window is small where rcvbuf is."""

    name: str
    mtu: int
    rtt_ms: float
    size: int  # bytes
    rcvbuf: int = 0  # 0: default
    before: bool = False  # SO_RCVBUF before listen(), not after accept()
    read: int = 64 * 1024
    pause_ms: float = 0  # after each read
    rest_ms: float = 0  # after each `rest_each` bytes
    rest_each: int = 0


CELLS = [
    # Windows that shrink below one MSS.
    Cell("lo, SO_RCVBUF 8192", 65536, 0, 1 << 20, 8192),
    Cell("lo, SO_RCVBUF 16384", 65536, 0, 1 << 20, 16384),
    Cell("MTU 65535, 5 ms, SO_RCVBUF 65536", 65535, 5, 1 << 20, 65536),
    Cell("MTU 16000, 5 ms, SO_RCVBUF 16384", 16000, 5, 1 << 20, 16384),
    Cell("MTU 9000, 5 ms, SO_RCVBUF 8192", 9000, 5, 1 << 20, 8192),
    Cell("MTU 9000, 5 ms, SO_RCVBUF 12000", 9000, 5, 1 << 20, 12000),
    # Controls: windows of a full-sized segment and more.
    Cell("lo, default", 65536, 0, 64 << 20),
    Cell("MTU 1500, 5 ms, default", 1500, 5, 16 << 20),
    Cell("MTU 9000, 5 ms, default", 9000, 5, 16 << 20),
    Cell("MTU 1500, 5 ms, SO_RCVBUF 8192", 1500, 5, 1 << 20, 8192),
    Cell("MTU 9000, 5 ms, SO_RCVBUF 65536", 9000, 5, 4 << 20, 65536),
    Cell("MTU 9000, 5 ms, 33000 before listen", 9000, 5, 4 << 20, 33000, True),
    # Slow readers.
    Cell("9000, 10 ms, 32768 b., 8 KB per 3 ms", 9000, 10, 2 << 20, 32768, True, 8192, 3),
    Cell("9000, 10 ms, 32768 b., 16 KB per 7 ms", 9000, 10, 2 << 20, 32768, True, 16384, 7),
    Cell("9000, 5 ms, 65536, 1 KB per 1 ms", 9000, 5, 1 << 20, 65536, False, 1024, 1),
    Cell("9000, 5 ms, 16384, 1 KB per 1 ms", 9000, 5, 1 << 20, 16384, False, 1024, 1),
    Cell("1500, 5 ms, 8192, 100 B per 10 ms", 1500, 5, 32 << 10, 8192, False, 100, 10),
    # Readers that rest for longer than the timeout.
    Cell("9000, 5 ms, 65536, rest 500 ms", 9000, 5, 4 << 20, 65536, rest_ms=500, rest_each=512 << 10),
    Cell("9000, 5 ms, default, rest 500 ms", 9000, 5, 16 << 20, rest_ms=500, rest_each=2 << 20),
    Cell("1500, 5 ms, 16384, rest 500 ms", 1500, 5, 2 << 20, 16384, rest_ms=500, rest_each=256 << 10),
]


def run(command: str) -> None:
    subprocess.run(command, shell=True, check=True)


def enter(name: str) -> None:
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
    if ctypes.CDLL(None, use_errno=True).setns(fd, 0):
        raise OSError(ctypes.get_errno(), "setns")


def counters() -> list[int]:
    found = {}
    for path in ("/proc/net/netstat", "/proc/net/snmp"):
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        for names, values in zip(lines[::2], lines[1::2]):
            prefix = names.split(":")[0]
            found.update(zip((prefix + n for n in names.split()[1:]), values.split()[1:]))
    return [int(found.get(name, -1)) for name in COUNTERS]


def make_path(cell: Cell) -> tuple[str, str]:
    """Makes the namespaces; returns the receiver's one and its address."""
    run("ip netns add snd")
    run("ip netns add rcv")
    run("ip -n snd link set lo up")
    if not cell.rtt_ms:
        return "snd", "127.0.0.1"
    run("ip -n snd link add v type veth peer name v netns rcv")
    for name, address in (("snd", "10.9.9.1"), ("rcv", "10.9.9.2")):
        run(f"ip -n {name} link set v mtu {cell.mtu} up")
        run(f"ip -n {name} address add {address}/24 dev v")
        run(f"ip netns exec {name} tc qdisc add dev v root netem "
            f"delay {cell.rtt_ms / 2}ms limit 10000")
    return "rcv", "10.9.9.2"


def receive(listener: socket.socket, cell: Cell) -> None:
    conn = listener.accept()[0]
    if cell.rcvbuf and not cell.before:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, cell.rcvbuf)
    rest = cell.rest_each
    while data := conn.recv(cell.read):
        rest -= len(data)
        if cell.rest_each and rest <= 0:
            time.sleep(cell.rest_ms / 1e3)
            rest += cell.rest_each
        if cell.pause_ms:
            time.sleep(cell.pause_ms / 1e3)
    conn.sendall(b"!")


def transfer(cell: Cell, namespace: str, address: str) -> str:
    enter(namespace)
    listener = socket.socket()
    if cell.before:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, cell.rcvbuf)
    listener.bind((address, 5001))
    listener.listen()
    reader = os.fork()
    if not reader:
        receive(listener, cell)
        os._exit(0)
    listener.close()

    enter("snd")
    sock = socket.create_connection((address, 5001))
    begin, old = time.monotonic(), counters()
    for _ in range(cell.size // len(BUF) or 1):
        sock.sendall(BUF[: min(cell.size, len(BUF))])
    sock.shutdown(socket.SHUT_WR)
    sock.recv(1)
    seconds = time.monotonic() - begin
    timeouts, segments, again = (n - o for n, o in zip(counters(), old))
    os.waitpid(reader, 0)
    return (f"{cell.name:38} {seconds:9.3f} {cell.size / seconds / 1e3:10.0f} "
            f"{timeouts:8} {segments:8} {again:6}")


def main() -> int:
    words = sys.argv[1:]
    print(f"{'transfer':38} {'seconds':>9} {'KB/s':>10} {'timeouts':>8} "
          f"{'segments':>8} {'again':>6}", flush=True)
    for cell in CELLS:
        if words and not any(word in cell.name for word in words):
            continue
        pid = os.fork()
        if not pid:
            print(transfer(cell, *make_path(cell)), flush=True)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        run("ip netns delete rcv; ip netns delete snd")
        if status:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
