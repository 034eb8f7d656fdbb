# SPDX-License-Identifier: GPL-2.0-only
"""Messages of ICMP, one after another: echo requests, each answered before the
next, or others that nobody answers."""
import argparse
import contextlib
import ctypes
import socket
import struct

ICMP_FILTER, ICMP6_FILTER, SO_ATTACH_FILTER = 1, 1, 26
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, PMTUDISC_PROBE = 10, 23, 3
SOL_RAW = 255


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xffff)
    return ~(total + (total >> 16)) & 0xffff


def pass_replies(s, v6):
    """As ping does: of all messages this socket gets only echo replies."""
    if v6:
        words = [0xffffffff] * 8
        words[129 >> 5] &= ~(1 << (129 & 31))
        s.setsockopt(socket.IPPROTO_ICMPV6, ICMP6_FILTER,
                     struct.pack("=8I", *words))
    else:
        s.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("=I", 0xfffffffe))


def refuse_all(s):
    """Attach a filter that ends with 0 bytes."""
    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0))
    s.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER,
                 struct.pack("@HP", 1, ctypes.addressof(code)))


def open_socket(asked):
    v6 = ":" in asked.address
    s = socket.socket(
        socket.AF_INET6 if v6 else socket.AF_INET,
        socket.SOCK_DGRAM if asked.kind == "ping" else socket.SOCK_RAW,
        socket.IPPROTO_ICMPV6 if v6 else socket.IPPROTO_ICMP)
    s.settimeout(20)
    if asked.kind == "raw":
        pass_replies(s, v6)
    if asked.ttl:
        s.setsockopt(*(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) if v6 else
                     (socket.IPPROTO_IP, socket.IP_TTL), asked.ttl)
    if asked.whole:
        s.setsockopt(*(socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER) if v6 else
                     (socket.IPPROTO_IP, IP_MTU_DISCOVER), PMTUDISC_PROBE)
    return s


def message(asked, number):
    v6 = ":" in asked.address
    kind = (128 if v6 else 8) if asked.type is None else asked.type
    parts = [kind, 0, 0, 4711, number]
    data = bytes(asked.size)
    if not v6:
        parts[2] = checksum(struct.pack("!BBHHH", *parts) + data)
    return struct.pack("!BBHHH", *parts) + data


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("raw", "ping"), help="of socket")
    parser.add_argument("address")
    parser.add_argument("count", type=int)
    parser.add_argument("--size", type=int, default=56)
    parser.add_argument("--ttl", type=int)
    parser.add_argument("--whole", action="store_true", help="no fragments")
    parser.add_argument("--type", type=int, help="instead of echo request")
    parser.add_argument("--no-answer", action="store_true")
    parser.add_argument("--refusing", action="store_true",
                        help="with two more sockets, whose filter refuses all")
    asked = parser.parse_args()
    before = open_socket(asked)
    s = open_socket(asked)
    after = open_socket(asked)
    if asked.refusing:
        refuse_all(before)
        refuse_all(after)
    else:
        before.close()
        after.close()
    for number in range(asked.count):
        with contextlib.ExitStack() as stack:
            if asked.no_answer:  # an error may be reported at the next one
                stack.enter_context(contextlib.suppress(OSError))
            s.sendto(message(asked, number), (asked.address, 0))
        if not asked.no_answer:
            s.recv(65536)


main()
