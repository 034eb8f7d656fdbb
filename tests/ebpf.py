# SPDX-License-Identifier: GPL-2.0-only
"""Runs the functions of a BPF object on memory of this process, instruction by
instruction: those that clang 14 makes of C for -mcpu=v3.  No maps, no helpers, no
relocation of fields, which stay where the object's own types have them.

Instructions: Documentation/bpf/standardization/instruction-set.rst of the kernel.
"""
from __future__ import annotations

import ctypes
import struct
from pathlib import Path

M64 = (1 << 64) - 1
M32 = (1 << 32) - 1
STACK = 512
SIZES = {0x00: ctypes.c_uint32, 0x08: ctypes.c_uint16, 0x10: ctypes.c_uint8,
         0x18: ctypes.c_uint64}
R_BPF_64_32 = 10


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


def alu(op: int, a: int, b: int, bits: int) -> int:
    shift = b & (bits - 1)
    if op == 0x00:
        return a + b
    if op == 0x10:
        return a - b
    if op == 0x20:
        return a * b
    if op == 0x30:
        return a // b if b else 0
    if op == 0x40:
        return a | b
    if op == 0x50:
        return a & b
    if op == 0x60:
        return a << shift
    if op == 0x70:
        return a >> shift
    if op == 0x80:
        return -a
    if op == 0x90:
        return a % b if b else a
    if op == 0xa0:
        return a ^ b
    if op == 0xb0:
        return b
    if op == 0xc0:
        return signed(a, bits) >> shift
    raise ValueError(f"ALU operation {op:#x}")


def jumps(op: int, a: int, b: int, bits: int) -> bool:
    unsigned = {0x00: True, 0x10: a == b, 0x20: a > b, 0x30: a >= b,
                0x40: a & b != 0, 0x50: a != b, 0xa0: a < b, 0xb0: a <= b}
    if op in unsigned:
        return unsigned[op]
    x, y = signed(a, bits), signed(b, bits)
    return {0x60: x > y, 0x70: x >= y, 0xc0: x < y, 0xd0: x <= y}[op]


class Object:
    """The functions of a BPF object file, by name."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        table, = struct.unpack_from("<Q", self.data, 40)
        size, count = struct.unpack_from("<HH", self.data, 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data,
                                            table + i * size)
                         for i in range(count)]
        self.code = {i: [list(struct.unpack_from("<BBhi", self.contents(i), at))
                         for at in range(0, section[5], 8)]
                     for i, section in enumerate(self.sections)
                     if section[1] == 1 and section[2] & 4}
        #: (section, instruction) of a call: the section that it calls
        self.calls: dict[tuple[int, int], tuple[int, int]] = {}
        self.functions: dict[str, int] = {}
        self._link()

    def contents(self, index: int) -> bytes:
        offset, size = self.sections[index][4:6]
        return self.data[offset:offset + size]

    def _link(self) -> None:
        table = next(i for i, s in enumerate(self.sections) if s[1] == 2)
        strings = self.contents(self.sections[table][6])
        symbols = [struct.unpack_from("<IBBHQQ", self.contents(table), at)
                   for at in range(0, self.sections[table][5], 24)]
        for name, info, _, section, value, _ in symbols:
            if info & 15 == 2 and info >> 4 and section in self.code:
                word = strings[name:strings.index(0, name)].decode()
                assert value == 0, f"{word} does not begin its section"
                self.functions[word] = section
        for i, section in enumerate(self.sections):
            if section[1] != 9 or section[7] not in self.code:
                continue
            for at in range(0, section[5], 16):
                offset, info = struct.unpack_from("<QQ", self.contents(i), at)
                assert info & M32 == R_BPF_64_32, "only calls are relocated"
                symbol = symbols[info >> 32]
                self.calls[section[7], offset // 8] = (symbol[3],
                                                       symbol[4] // 8)

    def call(self, name: str, context: int) -> int:
        return self._run(self.functions[name], 0, [0, context, 0, 0, 0, 0])

    def _run(self, section: int, pc: int, arguments: list[int]) -> int:
        stack = ctypes.create_string_buffer(STACK)
        r = arguments + [0] * 4 + [ctypes.addressof(stack) + STACK]
        code = self.code[section]
        while True:
            opcode, regs, offset, imm = code[pc]
            dst, src = regs & 15, regs >> 4
            kind, op, bits = opcode & 7, opcode & 0xf0, 64
            mask = M64
            if kind in (4, 6):
                bits, mask = 32, M32
            other = (r[src] if opcode & 8 else imm) & mask
            pc += 1
            if kind in (4, 7):
                assert offset == 0 and op != 0xd0, "no instruction of v3"
                r[dst] = alu(op, r[dst] & mask, other, bits) & mask
            elif opcode == 0x85:
                at = section, pc - 1
                into, base = self.calls.get(at, (section, pc))
                r[0] = self._run(into, base + imm + (at in self.calls),
                                 [0] + r[1:6])
            elif opcode == 0x95:
                return r[0]
            elif kind in (5, 6):
                if jumps(op, r[dst] & mask, other, bits):
                    pc += offset
            elif opcode == 0x18:
                r[dst] = imm & M32 | (code[pc][3] & M32) << 32
                pc += 1
            elif opcode == 0xc3:
                assert imm == 0xf1, "only cmpxchg is known"
                word = ctypes.c_uint32.from_address(r[dst] + offset)
                was = word.value
                if was == r[0] & M32:
                    word.value = r[src] & M32
                r[0] = was
            else:
                cell = SIZES[opcode & 0x18]
                assert opcode & 0xe0 == 0x60, "only plain loads and stores"
                if kind == 1:
                    r[dst] = cell.from_address(r[src] + offset).value
                else:
                    cell.from_address(r[dst] + offset).value = (
                        r[src] if kind == 3 else imm & M64)
