# SPDX-License-Identifier: GPL-2.0-only
"""A driver that calls napi_gro_frags(): a TAP device whose frames are written in
parts, which the kernel makes fragments of.  Sends segments to a closed port of
this host.  (The device completes its poll after each frame, so GRO merges none.)

usage: fragments.py COUNT
"""
import fcntl
import os
import socket
import struct
import subprocess
import sys

from estimate import ACK, IFF_NO_PI, TUNSETIFF, checksum

IFF_TAP, IFF_NAPI, IFF_NAPI_FRAGS = 0x0002, 0x0010, 0x0020
HERE, PEER = "10.7.0.1", "10.7.0.2"
SIZE = 1000


def tap():
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack(
        "16sH22x", b"frags", IFF_TAP | IFF_NO_PI | IFF_NAPI | IFF_NAPI_FRAGS))
    for command in (f"addr add {HERE}/24 dev frags", "link set frags up",
                    f"neigh add {PEER} lladdr 02:00:00:00:00:02 dev frags"):
        subprocess.run(["ip", *command.split()], check=True)
    return fd


def headers(mac, port, data):
    ends = socket.inet_aton(PEER) + socket.inet_aton(HERE)
    tcp = struct.pack("!HHIIBBHHH", port, 9, 1000, 1, 5 << 4, ACK, 1000, 0, 0)
    total = checksum(ends + struct.pack("!HH", 6, 20 + len(data)) + tcp + data)
    tcp = tcp[:16] + struct.pack("!H", total) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40 + len(data), 0, 0x4000, 64, 6,
                     0) + ends
    ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
    return mac + b"\x02\0\0\0\0\x02\x08\0" + ip + tcp


def main(count):
    fd = tap()
    with open("/sys/class/net/frags/address") as f:
        mac = bytes.fromhex(f.read().strip().replace(":", ""))
    data = bytes(SIZE)
    for port in range(5000, 5000 + count):
        os.writev(fd, [headers(mac, port, data), data[:SIZE // 2],
                       data[SIZE // 2:]])
    with open("/sys/class/net/frags/statistics/rx_packets") as f:
        print(f.read().strip())


main(int(sys.argv[1]))
