#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Inside a guest: drives Open vSwitch's datapath by generic netlink, so that
tests need the kernel's module only and no daemon.

usage: ovs_datapath.py add DEVICE DEVICE   a datapath with these two as ports
       ovs_datapath.py connect             IPv4 from one port goes to the other
       ovs_datapath.py stats               packets with a flow, and without one
"""
import socket
import struct
import sys

GENERIC, CONTROLLER, GET_FAMILY = 16, 16, 3
REQUEST, ACK = 1, 4
NEW, GET = 1, 3
DATAPATH, PORTS = "switch", (1, 2)


def attribute(kind: int, value: bytes) -> bytes:
    padding = -len(value) % 4
    return struct.pack("HH", 4 + len(value), kind) + value + bytes(padding)


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("I", value))


def name(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def attributes(data: bytes) -> dict[int, bytes]:
    found = {}
    while len(data) >= 4:
        length, kind = struct.unpack_from("HH", data)
        found[kind & 0x3fff] = data[4:length]
        data = data[length + -length % 4:]
    return found


class Netlink:
    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, GENERIC)
        self.socket.bind((0, 0))

    def ask(self, family: int, command: int, data: bytes) -> bytes:
        """The answer behind the header of generic netlink; b"" if it is none."""
        message = struct.pack("BBH", command, 1, 0) + data
        self.socket.send(struct.pack("IHHII", 16 + len(message), family,
                                     REQUEST | ACK, 1, 0) + message)
        answer = b""
        while True:
            data = self.socket.recv(65536)
            while data:
                length, kind = struct.unpack_from("IH", data)
                if kind == 2:
                    error, = struct.unpack_from("i", data, 16)
                    if error:
                        raise OSError(-error, f"command {command}")
                    return answer
                answer = data[20:length]
                data = data[length + -length % 4:]

    def family(self, word: str) -> int:
        found = attributes(self.ask(CONTROLLER, GET_FAMILY, name(2, word)))
        return int(struct.unpack("H", found[1])[0])

    def datapath(self) -> int:
        """Its interface, by which ports and flows name it."""
        data = self.ask(self.family("ovs_datapath"), GET,
                        struct.pack("i", 0) + name(1, DATAPATH))
        return int(struct.unpack_from("i", data)[0])


def add(netlink: Netlink, devices: list[str]) -> None:
    netlink.ask(netlink.family("ovs_datapath"), NEW,
                struct.pack("i", 0) + name(1, DATAPATH) + number(2, 0))
    head = struct.pack("i", netlink.datapath())
    for port, device in zip(PORTS, devices):
        netlink.ask(netlink.family("ovs_vport"), NEW,
                    head + number(1, port) + number(2, 1) + name(3, device) +
                    number(5, 0))


def flow(source: int, destination: int) -> bytes:
    """IPv4 with any addresses from one port to the other."""
    key = (number(3, source) + attribute(4, bytes(12)) +
           attribute(6, b"\x08\0") + attribute(7, bytes(12)))
    mask = (number(3, 0xffffffff) + attribute(4, bytes(12)) +
            attribute(6, b"\xff\xff") + attribute(7, bytes(12)))
    return (attribute(1, key) + attribute(7, mask) +
            attribute(2, number(1, destination)))


def connect(netlink: Netlink) -> None:
    head = struct.pack("i", netlink.datapath())
    for source, destination in (PORTS, PORTS[::-1]):
        netlink.ask(netlink.family("ovs_flow"), NEW,
                    head + flow(source, destination))


def stats(netlink: Netlink) -> None:
    data = netlink.ask(netlink.family("ovs_datapath"), GET,
                       struct.pack("i", 0) + name(1, DATAPATH))
    print(*struct.unpack_from("QQ", attributes(data[4:])[3]))


def main() -> None:
    netlink = Netlink()
    if sys.argv[1] == "add":
        add(netlink, sys.argv[2:])
    elif sys.argv[1] == "connect":
        connect(netlink)
    else:
        stats(netlink)


if __name__ == "__main__":
    main()
