#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a guest: loads an XDP program that passes every packet, and pins it.

usage: xdp_pass.py PATH

iproute2 attaches pinned programs, so that this needs no compiler.
"""
import ctypes
import os
import struct
import sys

SYS_BPF, PROG_LOAD, OBJ_PIN, PROG_TYPE_XDP = 321, 5, 6, 6
#: r0 = XDP_PASS; exit
CODE = struct.pack("<BBhiBBhi", 0xb7, 0, 0, 2, 0x95, 0, 0, 0)


def bpf(command: int, attributes: bytes) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    data = ctypes.create_string_buffer(attributes, len(attributes))
    done: int = libc.syscall(SYS_BPF, command, data, len(attributes))
    if done < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return done


def main() -> None:
    code = ctypes.create_string_buffer(CODE, len(CODE))
    licence = ctypes.create_string_buffer(b"GPL")
    program = bpf(PROG_LOAD, struct.pack(
        "IIQQIIQII16s", PROG_TYPE_XDP, 2, ctypes.addressof(code),
        ctypes.addressof(licence), 0, 0, 0, 0, 0, b"pass"))
    path = ctypes.create_string_buffer(os.fsencode(sys.argv[1]))
    bpf(OBJ_PIN, struct.pack("QII", ctypes.addressof(path), program, 0))


if __name__ == "__main__":
    main()
