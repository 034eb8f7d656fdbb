#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a guest: BPF programs on devices, without a compiler.

usage: bpf_programs.py tcx NETNS DEVICE PIN
                           a program that passes every packet at tcx's ingress;
                           its link is pinned
       bpf_programs.py native|generic NETNS DEVICE VERDICT PIN
                           an XDP program with this verdict for all packets: 1
                           drops, 2 passes, 3 sends back; its link is pinned
       bpf_programs.py socket NETNS DEVICE COUNT COMMAND...
                           runs COMMAND while generic XDP hands all packets to an
                           AF_XDP socket; prints how many came, of COUNT
"""
import ctypes
import mmap
import os
import socket
import struct
import subprocess
import sys
import time

SYS_BPF = 321
MAP_CREATE, MAP_UPDATE, PROG_LOAD, OBJ_PIN, BTF_LOAD, LINK_CREATE = \
    0, 2, 5, 6, 18, 28
SCHED_CLS, XDP, XSKMAP, TCX_INGRESS = 3, 6, 17, 46
ATTACH_XDP, GENERIC, NATIVE = 37, 2, 4
LIBC = ctypes.CDLL(None, use_errno=True)
FRAMES, SIZE = 64, 2048


def enter(netns: str) -> None:
    """Of the network only: ip netns exec would hide the file system of BPF."""
    with open("/run/netns/" + netns, encoding="ascii") as file:
        if LIBC.setns(file.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


def bpf(command: int, attributes: bytes) -> int:
    data = ctypes.create_string_buffer(attributes, len(attributes))
    done: int = LIBC.syscall(SYS_BPF, command, data, len(attributes))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return done


def instruction(code: int, registers: int = 0, offset: int = 0,
                value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, registers, offset, value)


def returns(value: int) -> bytes:
    return instruction(0xb7, 0, 0, value) + instruction(0x95)


def type_information() -> int:
    """int pass(struct __sk_buff *ctx), which hooks of others need."""
    strings = b"\0int\0__sk_buff\0ctx\0pass\0"
    types = struct.pack("IIII", strings.index(b"int"), 1 << 24, 4, 1 << 24 | 32)
    types += struct.pack("III", strings.index(b"__sk_buff"), 4 << 24, 4)
    types += struct.pack("III", 0, 2 << 24, 2)
    types += struct.pack("IIIII", 0, 13 << 24 | 1, 1, strings.index(b"ctx"), 3)
    types += struct.pack("III", strings.index(b"pass"), 12 << 24 | 1, 4)
    data = struct.pack("HBBIIIII", 0xeb9f, 1, 0, 24, 0, len(types), len(types),
                       len(strings)) + types + strings
    buffer = ctypes.create_string_buffer(data, len(data))
    return bpf(BTF_LOAD, struct.pack("QQIII", ctypes.addressof(buffer), 0,
                                     len(data), 0, 0))


def load(kind: int, code: bytes, named: bool = False) -> int:
    buffer = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"GPL")
    function = ctypes.create_string_buffer(struct.pack("II", 0, 5))
    information = type_information() if named else 0
    return bpf(PROG_LOAD, struct.pack(
        "IIQQIIQII16sIIIIQI", kind, len(code) // 8, ctypes.addressof(buffer),
        ctypes.addressof(licence), 0, 0, 0, 0, 0, b"pass", 0, 0, information,
        8 if named else 0, ctypes.addressof(function) if named else 0,
        1 if named else 0))


def pin(file: int, path: str) -> None:
    name = ctypes.create_string_buffer(os.fsencode(path))
    bpf(OBJ_PIN, struct.pack("QII", ctypes.addressof(name), file, 0))


def link(program: int, device: str, kind: int, flags: int = 0) -> int:
    return bpf(LINK_CREATE, struct.pack(
        "IIIIIIQ", program, socket.if_nametoindex(device), kind, flags, 0, 0, 0))


class Receiver:
    """An AF_XDP socket that has received as many packets as its ring counts."""

    def __init__(self, device: str) -> None:
        self.socket = socket.socket(44, socket.SOCK_RAW)
        file = self.socket.fileno()
        self.memory = mmap.mmap(-1, FRAMES * SIZE)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.socket.setsockopt(283, 4, struct.pack("QQIIII", start,
                                                   FRAMES * SIZE, SIZE, 0, 0, 0))
        for ring in 2, 5, 6:
            self.socket.setsockopt(283, ring, struct.pack("I", FRAMES))
        offsets = struct.unpack("16Q", self.socket.getsockopt(283, 1, 128))
        self.ring = mmap.mmap(file, offsets[2] + FRAMES * 16)
        self.produced = offsets[0]
        fill = mmap.mmap(file, offsets[10] + FRAMES * 8, offset=0x100000000)
        for i in range(FRAMES):
            struct.pack_into("Q", fill, offsets[10] + 8 * i, i * SIZE)
        struct.pack_into("I", fill, offsets[8], FRAMES)
        address = struct.pack("HHIII", 44, 2, socket.if_nametoindex(device), 0, 0)
        if LIBC.bind(file, address, len(address)):
            raise OSError(ctypes.get_errno(), "bind")

    def received(self) -> int:
        return int(struct.unpack_from("I", self.ring, self.produced)[0])


def deliver(device: str, count: int, command: list[str]) -> None:
    receiver = Receiver(device)
    sockets = bpf(MAP_CREATE, struct.pack("IIIIIII", XSKMAP, 4, 4, 1, 0, 0, 0))
    words = ctypes.create_string_buffer(
        struct.pack("II", 0, receiver.socket.fileno()))
    bpf(MAP_UPDATE, struct.pack("IIQQQ", sockets, 0, ctypes.addressof(words),
                                ctypes.addressof(words) + 4, 0))
    # r2 = ctx->rx_queue_index; bpf_redirect_map(map, r2, XDP_PASS)
    program = load(XDP, instruction(0x61, 0x12, 16) +
                   instruction(0x18, 0x11, 0, sockets) + instruction(0) +
                   instruction(0xb7, 3, 0, 2) +
                   instruction(0x85, 0, 0, 51) + instruction(0x95))
    attached = link(program, device, ATTACH_XDP, GENERIC)
    subprocess.run(command, check=True)
    end = time.monotonic() + 20
    while receiver.received() < count and time.monotonic() < end:
        time.sleep(0.05)  # poll: the ring has no other news
    print(receiver.received())
    os.close(attached)


def main() -> None:
    what, *words = sys.argv[1:]
    enter(words.pop(0))
    if what == "tcx":
        pin(link(load(SCHED_CLS, returns(-1), True), words[0], TCX_INGRESS),
            words[1])
    elif what in ("native", "generic"):
        pin(link(load(XDP, returns(int(words[1]))), words[0], ATTACH_XDP,
                 GENERIC if what == "generic" else NATIVE), words[2])
    else:
        deliver(words[0], int(words[1]), words[2:])


if __name__ == "__main__":
    main()
