#!/usr/bin/python3 -B
# SPDX-License-Identifier: GPL-2.0-only
"""Send frames at a rate through a packet socket, for kernels without pktgen.

Usage: generator.py DEVICE SIZE MAC COUNT FRAMES_PER_S

Every frame is handed to the device: a send that the kernel refuses is repeated.
Runs before every program of normal priority, as the interrupts of a card do.
Prints one JSON object: the time it took and the part spent waiting, ns.
"""
import ctypes
import json
import os
import socket
import struct
import sys
import time

BATCH = 16
ETHERNET, IP, UDP = 14, 20, 8


class _Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("size", ctypes.c_size_t)]


class _Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint32),
                ("iov", ctypes.POINTER(_Iovec)), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class _Mmsghdr(ctypes.Structure):
    _fields_ = [("header", _Msghdr), ("sent", ctypes.c_uint)]


def frame(size, mac):
    """A datagram to port 9 in a frame of @size bytes; the last 4 are the checksum
    of the wire, which no device here adds."""
    payload = size - 4 - ETHERNET - IP - UDP
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, IP + UDP + payload, 0, 0, 64,
                         socket.IPPROTO_UDP, 0, bytes([10, 9, 1, 1]),
                         bytes([10, 9, 1, 2]))
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xffff) + (total >> 16)
    header = header[:10] + struct.pack("!H", ~total & 0xffff) + header[12:]
    return (bytes.fromhex(mac.replace(":", "")) + bytes(6) + b"\x08\x00" + header
            + struct.pack("!HHHH", 9, 9, UDP + payload, 0) + bytes(payload))


def send(device, data, count, every_ns):
    """Send @count frames, one each @every_ns; returns the nanoseconds it took and
    the part of them that it waited for its time."""
    libc = ctypes.CDLL(None, use_errno=True)
    vector = _Iovec(data, len(data))
    some = (_Mmsghdr * BATCH)()
    for one in some:
        one.header.iov, one.header.iovlen = ctypes.pointer(vector), 1
    waited = 0
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind((device, 0))
        begun, sent = time.monotonic_ns(), 0
        while sent < count:
            due = now = time.monotonic_ns()
            # Sleeping leaves the CPU to the reader, as a card's interrupts do.
            if (early := begun + sent * every_ns - now) > 0:
                time.sleep(early / 1e9)
                now = time.monotonic_ns()
            waited += now - due
            done = libc.sendmmsg(out.fileno(), some, min(BATCH, count - sent), 0)
            if done < 0 and ctypes.get_errno() not in (11, 105):    # EAGAIN, ENOBUFS
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            sent += max(done, 0)
        return time.monotonic_ns() - begun, waited


def main():
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        return
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    device, size, mac, count, rate = sys.argv[1:]
    took, waited = send(device, frame(int(size), mac), int(count),
                        1e9 / float(rate))
    print(json.dumps({"took_ns": took, "waited_ns": waited}))


if __name__ == "__main__":
    main()
