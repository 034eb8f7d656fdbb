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

KB = 1024
MB = 1024 * KB
BUF = bytes(64 * KB)
COUNTERS = ("TcpExtTCPSWSOverride", "TcpOutSegs", "TcpRetransSegs")


@dataclass(frozen=True)
class Reader:
    """Reads without a pause by default."""

    size: int = 64 * KB  # bytes per read
    pause_ms: float = 0  # after each read
    rest_ms: float = 0  # after each `rest_each` bytes
    rest_each: int = 0


@dataclass(frozen=True)
class Cell:
    """One transfer."""

    name: str
    mtu: int
    rtt_ms: float  # 0: loopback
    size: int  # bytes
    rcvbuf: int = 0  # SO_RCVBUF after accept(); 0: default
    before: bool = False  # SO_RCVBUF before listen() instead
    reader: Reader = Reader()


CELLS = [
    # Windows that shrink below one MSS.
    Cell("lo, 8192", 65536, 0, MB, 8192),
    Cell("lo, 16384", 65536, 0, MB, 16384),
    Cell("MTU 65535, 16384", 65535, 5, MB, 16384),
    Cell("MTU 16000, 4096", 16000, 5, MB, 4096),
    Cell("MTU 9000, 4096", 9000, 5, MB, 4096),
    # Windows of one MSS and more.
    Cell("lo, default", 65536, 0, 64 * MB),
    Cell("MTU 1500, default", 1500, 5, 16 * MB),
    Cell("MTU 9000, default", 9000, 5, 16 * MB),
    Cell("MTU 1500, 8192", 1500, 5, MB, 8192),
    Cell("MTU 9000, 65536", 9000, 5, 4 * MB, 65536),
    Cell("MTU 9000, 33000 unscaled", 9000, 5, 4 * MB, 33000, True),
    # Slow readers.
    Cell("MTU 9000, 32768 unscaled, 8 KB/3 ms", 9000, 10, 2 * MB, 32768, True,
         Reader(8 * KB, 3)),
    Cell("MTU 9000, 32768 unscaled, 16 KB/7 ms", 9000, 10, 2 * MB, 32768, True,
         Reader(16 * KB, 7)),
    Cell("MTU 9000, 65536, 1 KB/ms", 9000, 5, MB, 65536, False, Reader(KB, 1)),
    Cell("MTU 9000, 16384, 1 KB/ms", 9000, 5, MB, 16384, False, Reader(KB, 1)),
    Cell("MTU 1500, 8192, 100 B/10 ms", 1500, 5, 32 * KB, 8192, False,
         Reader(100, 10)),
    # Readers that rest for longer than the timeout.
    Cell("MTU 9000, 65536, rests", 9000, 5, 4 * MB, 65536, False,
         Reader(rest_ms=500, rest_each=512 * KB)),
    Cell("MTU 9000, default, rests", 9000, 5, 16 * MB, 0, False,
         Reader(rest_ms=500, rest_each=2 * MB)),
    Cell("MTU 1500, 16384, rests", 1500, 5, 2 * MB, 16384, False,
         Reader(rest_ms=500, rest_each=256 * KB)),
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
            found.update({prefix + name: value for name, value in
                          zip(names.split()[1:], values.split()[1:])})
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
    reader = cell.reader
    left = reader.rest_each
    while data := conn.recv(reader.size):
        left -= len(data)
        if reader.rest_each and left <= 0:
            time.sleep(reader.rest_ms / 1e3)
            left += reader.rest_each
        if reader.pause_ms:
            time.sleep(reader.pause_ms / 1e3)
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
    for start in range(0, cell.size, len(BUF)):
        sock.sendall(BUF[:cell.size - start])
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
