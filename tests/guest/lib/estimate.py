# SPDX-License-Identifier: GPL-2.0-only
"""A TCP of our own on a TUN device sends what Linux would not: segments that
leave out the agreed timestamps and carry 12 bytes more, as those of the SC2003
paper (8960 bytes from the sender, 8948 by the receiver's count; section
3.5.1).  What the kernel's own estimate and rx_mss_est make of them is read from
the tracepoint mssfrac:window and from the windows on the wire."""
import fcntl
import os
import re
import select
import socket
import struct

from connections import LIMIT, enter, option, receive, run, sh, sysctl

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 1, 0x1000
FIN, SYN, RST, ACK = 1, 2, 4, 16
MTU = 9000
LONG, SHORT = MTU - 40, MTU - 40 - 12  # payload without and with timestamps
SPACE = 33000
HERE, PEER = "10.8.0.1", "10.8.0.2"
TRACE = "/sys/kernel/tracing/trace"


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data[:len(data) & ~1]))
    if len(data) & 1:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


class Peer:
    """The sender's end of one connection to a socket of namespace a."""

    port = 7000

    def __init__(self, tun):
        self.tun = tun
        Peer.port += 1
        self.port = Peer.port
        self.seq, self.ack, self.acked, self.window = 1000, 0, 0, 0
        enter("a")
        listening = socket.create_server((HERE, self.port))
        timestamps = b"\1\1\x08\x0a" + struct.pack("!II", 1, 0)
        self.send(SYN, options=b"\2\4" + struct.pack("!H", LONG) + timestamps)
        self.seq += 1
        self.wait(lambda: self.ack)
        self.send(ACK)
        self.sock = listening.accept()[0]
        self.sock.settimeout(LIMIT)
        listening.close()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def send(self, flags, data=b"", options=b""):
        header = struct.pack("!HHIIBBHHH", self.port, self.port, self.seq,
                             self.ack, (20 + len(options)) << 2, flags, 65535,
                             0, 0) + options
        ends = socket.inet_aton(PEER) + socket.inet_aton(HERE)
        size = len(header) + len(data)
        tcp = header + data
        csum = checksum(ends + struct.pack("!HH", 6, size) + tcp)
        tcp = tcp[:16] + struct.pack("!H", csum) + tcp[18:]
        ip = struct.pack("!BBHIBBH", 0x45, 0, 20 + size, 0, 64, 6, 0) + ends
        ip = ip[:10] + struct.pack("!H", checksum(ip)) + ip[12:]
        os.write(self.tun, ip + tcp)

    def wait(self, condition):
        """Take in what the kernel sends, until the condition holds."""
        while not condition():
            assert select.select([self.tun], [], [], LIMIT)[0], "no answer"
            packet = os.read(self.tun, MTU)
            if packet[0] != 0x45 or packet[9] != 6:
                continue
            sport, _, seq, ack, _, flags, window = struct.unpack_from(
                "!HHIIBBH", packet, 20)
            if sport != self.port:
                continue
            assert not flags & RST, "the connection was reset"
            if flags & SYN:
                self.ack = seq + 1
            self.acked, self.window = ack, window

    def deliver(self, sizes):
        """Segments of these sizes, two by two, for one is acknowledged late."""
        for at in range(0, len(sizes), 2):
            pair = sizes[at:at + 2]
            for size in pair:
                self.send(ACK, bytes(size))
                self.seq += size
            self.wait(lambda: self.acked == self.seq)
            receive(self.sock, sum(pair))

    def close(self):
        self.send(RST)
        self.sock.close()


def estimates(port):
    """(rcv_mss, mss_est) of the newest window selected at this port."""
    with open(TRACE, encoding="ascii") as trace:
        found = re.findall(rf" window: .* sport={port} .*rcv_mss=(\d+) "
                           r"mss_est=(\d+)", trace.read())
    return tuple(map(int, found[-1]))


def expect(peer, sizes, wanted):
    peer.deliver(sizes)
    got = estimates(peer.port)
    assert got == wanted, f"after {sizes[-1]} B: {got}, wanted {wanted}"


def windows(fraction, estimate):
    """The window advertised once the kernel's has settled."""
    sysctl("a", "mssfrac/rx_frac", fraction)
    sysctl("a", "mssfrac/rx_mss_est", estimate)
    peer = Peer(tun)
    # On 6.12 the first segments set a clamp of their own.
    peer.deliver([LONG] * 8)
    option(peer.sock, socket.TCP_WINDOW_CLAMP, SPACE)
    peer.deliver([LONG] * 64)
    window = peer.window
    peer.close()
    return window


def paper():
    """8960 of a sender: two fit what stock offers of 33,000 B, three ours"""
    stock, est = windows(0, 1), windows(1, 1)
    print(f"stock offers {stock}, with rx_mss_est {est}")
    assert stock == 3 * SHORT and stock // LONG == 2, stock
    assert est == 3 * LONG, est


def steps():
    """steps of 8960/4 with rx_mss_est, of 8948/4 without"""
    for estimate, mss in ((0, SHORT), (1, LONG)):
        window = windows(4, estimate)
        wanted = SPACE - SPACE % mss
        wanted += (SPACE - wanted) // (mss // 4) * (mss // 4)
        assert window == wanted, f"{estimate}: {window}, wanted {wanted}"


def fooled():
    """two records of one size fool the kernel's estimate, not this one"""
    sysctl("a", "mssfrac/rx_mss_est", 1)
    peer = Peer(tun)
    expect(peer, [LONG] * 8, (SHORT, LONG))
    # The kernel takes off the options that are not there.
    expect(peer, [600] * 2, (600 - 12, LONG))
    sysctl("a", "mssfrac/rx_mss_est", 0)
    expect(peer, [600], (600, 600))
    peer.close()


def believed():
    """a smaller size is believed after 256 segments"""
    sysctl("a", "mssfrac/rx_mss_est", 1)
    peer = Peer(tun)
    expect(peer, [LONG] * 4, (SHORT, LONG))
    expect(peer, [1448] * 240, (1448, LONG))
    expect(peer, [1448] * 280, (1448, 1448))
    peer.close()


def device():
    enter("a")
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"peer",
                                           IFF_TUN | IFF_NO_PI))
    sh(f"ip link set peer mtu {MTU} up && ip addr add {HERE}/24 dev peer")
    return fd


if __name__ == "__main__":
    tun = device()
    run([paper, steps, fooled, believed])
