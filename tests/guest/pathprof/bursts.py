#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Traffic for test_bursts.sh.

usage: bursts.py serve ADDRESS   answer each message that came in whole
       bursts.py ask ADDRESS     send messages, each after the last one's answer
       bursts.py crowd           keep packets on their way over loopback

A message is two full-sized segments, the second with PSH: GRO merges them, and
passes them up the stack before the driver's call for the second one returns.
"""
import socket
import sys
import time

PORT, MESSAGE = 5000, 2 * 1448


def prompt(s):
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def serve(address):
    listener = socket.create_server((address, PORT))
    while True:
        s = prompt(listener.accept()[0])
        left = MESSAGE
        try:
            while got := s.recv(left):
                left -= len(got)
                if not left:
                    s.sendall(b"y")
                    left = MESSAGE
        except ConnectionResetError:  # its client was killed
            pass


def ask(address):
    s = prompt(socket.create_connection((address, PORT)))
    while True:
        s.sendall(b"x" * MESSAGE)
        s.recv(1)


def crowd():
    listener = socket.create_server(("127.0.0.1", PORT + 1))
    pairs = []
    for _ in range(16):
        s = prompt(socket.create_connection(("127.0.0.1", PORT + 1)))
        other = listener.accept()[0]
        other.setblocking(False)
        pairs.append((s, other))
    while True:
        for s, other in pairs:
            s.sendall(b"z" * 100)
            try:
                other.recv(10000)
            except BlockingIOError:
                pass
        time.sleep(0.001)  # keeps its CPU free for the profiler


if __name__ == "__main__":
    {"serve": serve, "ask": ask, "crowd": crowd}[sys.argv[1]](*sys.argv[2:])
