# SPDX-License-Identifier: GPL-2.0-only
"""What a writer's options put on the wire; in the deterministic guest, for a
cork gives way after 200 ms."""
import socket
import struct

import connections
from connections import (
    Wire, close, connect, option, pattern, receive, run, same, small_window,
    sysctl, wait_until)


def nagle(sock, data):
    for at in range(0, len(data), 100):
        sock.send(data[at:at + 100])


def nodelay(sock, data):
    option(sock, socket.TCP_NODELAY, 1)
    nagle(sock, data)
    option(sock, socket.TCP_NODELAY, 0)


def cork(sock, data):
    option(sock, socket.TCP_CORK, 1)
    nagle(sock, data)
    option(sock, socket.TCP_CORK, 0)


def more(sock, data):
    for at in range(0, len(data) - 100, 100):
        sock.send(data[at:at + 100], socket.MSG_MORE)
    sock.send(data[-100:])


def written(way, sock, peer, size=300):
    """Segment sizes as they arrive, with nothing in flight before."""
    wait_until(lambda: not struct.unpack_from("I", sock.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, 28), 24)[0], "acknowledgement")
    wire = Wire("b")
    data = pattern(size)
    way(sock, data)
    same(receive(peer, size), data)
    return [size for source, _, size in wire.packets()
            if source != connections.port and size]


def writes():
    """Nagle, TCP_NODELAY, TCP_CORK and MSG_MORE, both arms"""
    for percent in 0, 100:
        for name in "ab":
            sysctl(name, "mssfrac/ab_percent", percent)
        sock, peer = connect()
        if percent:
            small_window(sock, peer)
        for way, wanted in ((nagle, [100, 200]), (nodelay, [100] * 3),
                            (cork, [300]), (more, [300])):
            got = written(way, sock, peer)
            assert got == wanted, f"{way.__name__}, {percent} %: {got}"
        close(sock, peer)


def full_segments():
    """a cork holds back what is less than the chosen segment"""
    sock, peer = connect()
    small_window(sock, peer)
    got = written(cork, sock, peer, 20000)
    assert len(set(got[:-1])) == 1 and got[-1] < got[0] < 4500, got
    close(sock, peer)


if __name__ == "__main__":
    run([writes, full_segments])
