# SPDX-License-Identifier: GPL-2.0-only
"""The arm that the module gives a connection, from its endpoints and two
settings.

Pure.  kmod/arm.c computes the same, and mssfrac(4), ARMS, describes it.  The
arm of a connection that was pinned by its socket's mark is not visible here.
"""
from __future__ import annotations

import ipaddress
import struct

from ..errors import UsageError

#: Address in 16 bytes, IPv4 mapped, and port in 2, as they are hashed.
Endpoint = bytes

_MASK = 2**64 - 1
_START = (0x736f6d6570736575, 0x646f72616e646f6d,
          0x6c7967656e657261, 0x7465646279746573)


def siphash24(data: bytes, k0: int, k1: int) -> int:
    """SipHash-2-4 of data under the key words k0 and k1: 64 bits."""
    def rotl(x: int, n: int) -> int:
        return (x << n | x >> 64 - n) & _MASK

    a, b, c, d = (k ^ w for k, w in zip((k0, k1, k0, k1), _START, strict=True))
    data += bytes(-(len(data) + 1) % 8) + bytes([len(data) & 255])
    words = [(word, 2) for word, in struct.iter_unpack("<Q", data)]
    for word, rounds in [*words, (0, 4)]:
        d ^= word
        c ^= 255 if rounds == 4 else 0
        for _ in range(rounds):
            a = a + b & _MASK
            b = rotl(b, 13) ^ a
            a = rotl(a, 32)
            c = c + d & _MASK
            d = rotl(d, 16) ^ c
            a = a + d & _MASK
            d = rotl(d, 21) ^ a
            c = c + b & _MASK
            b = rotl(b, 17) ^ c
            c = rotl(c, 32)
        a ^= word
    return a ^ b ^ c ^ d


def endpoint(text: str) -> Endpoint:
    """ADDRESS:PORT, an IPv6 address in brackets."""
    address, _, port = text.rpartition(":")
    bracketed = address.startswith("[") and address.endswith("]")
    try:
        ip = ipaddress.ip_address(address[1:-1] if bracketed else address)
        at = int(port)
    except ValueError as error:
        raise UsageError(f"{text}: not ADDRESS:PORT: {error}") from error
    if bracketed != (ip.version == 6):
        raise UsageError(f"{text}: brackets are for IPv6 addresses only, as in "
                         "[fd09::1]:5201")
    if not 0 < at < 2**16:
        raise UsageError(f"{text}: port {at} is outside 1..65535")
    if ip.version == 4:
        ip = ipaddress.ip_address(f"::ffff:{ip}")
    return ip.packed + struct.pack("!H", at)


def slot(one: Endpoint, other: Endpoint, seed: int) -> int:
    """Slot of the connection, 0..99, the same from either end."""
    low, high = sorted((one, other))
    message = low + high + bytes(4)
    return (siphash24(message, seed, 0) % 2**32) * 100 >> 32


def arm(one: Endpoint, other: Endpoint, seed: int, percent: int) -> str:
    """treated (treatment) or stock (control)."""
    return "treated" if slot(one, other, seed) < percent else "stock"
