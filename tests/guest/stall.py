#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Both ends of a transfer into a small receive buffer, for two guests.

usage: stall.py receive PORT RCVBUF    one connection; SO_RCVBUF is set after
                                       accept; 0 leaves it to the kernel
       stall.py send ADDRESS PORT SECONDS

receive prints one JSON object when the connection ends: the bytes that came, and
the seconds from the first to the last of them.
"""
import json
import socket
import sys
import time


def receive(port, rcvbuf):
    with socket.create_server(("", int(port))) as listener:
        connection, _ = listener.accept()
    if int(rcvbuf):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, int(rcvbuf))
    count, first, last = 0, 0.0, 0.0
    buffer = bytearray(65536)
    try:
        while got := connection.recv_into(buffer):
            last = time.monotonic()
            first = first or last
            count += got
    except ConnectionResetError:
        pass  # the sender's time is over
    print(json.dumps({
        "bytes": count, "seconds": last - first,
        "rcvbuf": connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)}))


def send(address, port, seconds):
    connection = socket.create_connection((address, int(port)))
    end = time.monotonic() + float(seconds)
    # What is queued when the time is over would take as long again.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.settimeout(0.1)
    data = bytes(65536)
    while time.monotonic() < end:
        try:
            connection.send(data)
        except TimeoutError:
            pass
    connection.close()


if __name__ == "__main__":
    {"receive": receive, "send": send}[sys.argv[1]](*sys.argv[2:])
