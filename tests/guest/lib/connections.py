# SPDX-License-Identifier: GPL-2.0-only
"""Connections between the namespaces of tests/lib.sh, for the guest's tests in
Python: both ends of each are in this process, which compares what arrives by
content.  run() prints "ok NAME" or "not ok NAME" a case, for python_cases."""
import array
import contextlib
import ctypes
import os
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback

LIMIT = 120  # seconds; only ends what hangs
ETH_P_ALL = 3

libc = ctypes.CDLL(None, use_errno=True)
namespaces = {"": os.open("/proc/self/ns/net", os.O_RDONLY),
              **{name: os.open(f"/run/netns/{name}", os.O_RDONLY)
                 for name in os.listdir("/run/netns")}}
ADDRESS = {"a": "10.9.0.1", "b": "10.9.0.2", "c": "10.9.0.1", "d": "10.9.0.2"}
port = 6000  # of the newest connection's server


def enter(name):
    assert not libc.setns(namespaces[name], 0x40000000), name


def sh(command):
    subprocess.run(command, shell=True, check=True)


def sysctl(name, key, value):
    """Set a net sysctl of a namespace; return the old value."""
    enter(name)
    with open(f"/proc/sys/net/{key}", "r+", encoding="ascii") as file:
        old = file.read().strip()
        file.seek(0)
        file.write(str(value))
    return old


@contextlib.contextmanager
def setting(name, key, value):
    """The same for a while."""
    old = sysctl(name, key, value)
    try:
        yield
    finally:
        sysctl(name, key, old)


def counters(name):
    enter(name)
    with open("/proc/net/mssfrac", encoding="ascii") as file:
        return {k: int(v) for k, v in map(str.split, file)}


def netstat(name, key):
    """A counter of /proc/net/netstat."""
    enter(name)
    with open("/proc/net/netstat", encoding="ascii") as file:
        lines = [line.split() for line in file]
    for names, values in zip(lines[::2], lines[1::2]):
        if key in names:
            return int(values[names.index(key)])
    raise KeyError(key)


def wait_until(condition, what):
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, f"waited too long for {what}"
        time.sleep(0.02)  # polling interval


def pattern(size):
    """Bytes that tell their position."""
    return array.array("I", range(size // 4)).tobytes()


def listener(name, family=socket.AF_INET, protocol=0, options=()):
    global port
    port += 1
    enter(name)
    sock = socket.socket(family, socket.SOCK_STREAM, protocol)
    sock.settimeout(LIMIT)
    for level, option, value in options:
        sock.setsockopt(level, option, value)
    sock.bind(("", port))
    sock.listen()
    return sock


def connect(server="b", client="a", address=None, protocol=0, rcvbuf=0,
            options=(), client_options=()):
    """A connection of two namespaces: client's socket, server's socket."""
    address = address or ADDRESS[server]
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    if rcvbuf:
        options = [(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf), *options]
    listening = listener(server, family, protocol, options)
    enter(client)
    sock = socket.socket(family, socket.SOCK_STREAM, protocol)
    sock.settimeout(LIMIT)
    for level, option, value in client_options:
        sock.setsockopt(level, option, value)
    sock.connect((address, port))
    peer, _ = listening.accept()
    peer.settimeout(LIMIT)
    listening.close()
    return sock, peer


def receive(sock, size):
    got = bytearray()
    while len(got) < size:
        part = sock.recv(min(65536, size - len(got)))
        assert part, f"the connection ended after {len(got)} of {size} bytes"
        got += part
    return bytes(got)


def same(got, sent):
    if got != sent:
        at = next(i for i, (g, s) in enumerate(zip(got, sent)) if g != s)
        raise AssertionError(f"byte {at} of {len(sent)} is wrong")


class Sender(threading.Thread):
    """Sends in a thread of its own; join() raises what went wrong."""

    def __init__(self, function, *arguments):
        super().__init__(daemon=True)
        self.call = lambda: function(*arguments)
        self.error = None
        self.start()

    def run(self):
        try:
            self.call()
        except Exception as error:  # raised again in join()
            self.error = error

    def join(self, timeout=LIMIT):
        super().join(timeout)
        assert not self.is_alive(), "the sender did not end"
        if self.error:
            raise self.error


def transfer(sock, peer, size=200000, meanwhile=None):
    """Send size bytes from sock to peer and compare."""
    data = pattern(size)
    sender = Sender(sock.sendall, data)
    first = receive(peer, size // 2)
    if meanwhile:
        meanwhile()
    same(first + receive(peer, size - size // 2), data)
    sender.join()


def gone(name, wanted_port):
    """No socket of that port is left; TIME_WAIT has no socket any more."""
    enter(name)
    text = ""
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}", encoding="ascii") as file:
            text += "".join(file.readlines()[1:])
    rows = [line.split() for line in text.splitlines()]
    return not any(f":{wanted_port:04X}" in row[1] + row[2] and row[3] != "06"
                   for row in rows)


def close(sock, peer, client="a", server="b"):
    number = port
    sock.close()
    peer.close()
    wait_until(lambda: gone(client, number) and gone(server, number),
               "the sockets to end")


def transfer_until_counted(sock, peer, size, name, counter):
    """When a policy acts depends on round trip times, and these on the host."""
    before = counters(name)[counter]
    end = time.monotonic() + LIMIT
    while counters(name)[counter] == before:
        assert time.monotonic() < end, f"{name}: no {counter}"
        transfer(sock, peer, size)


def small_window(sock, peer):
    """Make the peer's window smaller than one MSS, and wait until the sender
    chose a size for it: from here on the sender is treated."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2500)
    transfer_until_counted(sock, peer, 100000, "a", "treated_tx_unstalled")


def unscaled(rcvbuf=12000, **more):
    """A connection without window scaling; the receiver acts on no other."""
    with setting("b", "ipv4/tcp_window_scaling", 0):
        return connect(rcvbuf=rcvbuf, **more)


def stepped(sock, peer):
    """Transfer until the receiver offered steps: from here on it is treated."""
    transfer_until_counted(sock, peer, 600000, "b", "treated_rx_raised")


class Wire:
    """What a namespace's device sees of the newest connection."""

    def __init__(self, name):
        enter(name)
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                  socket.htons(ETH_P_ALL))
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # RCVBUFFORCE
        self.sock.bind((f"v{name}", 0))
        self.sock.setblocking(False)

    def packets(self):
        """(source port, window field, bytes of data) of each IPv4 packet"""
        while True:
            try:
                frame = self.sock.recv(65536 + 100)
            except BlockingIOError:
                return
            if frame[12:14] != b"\x08\x00" or frame[23] != 6:
                continue
            tcp = 14 + 4 * (frame[14] & 15)
            ports = struct.unpack_from("!HH", frame, tcp)
            if port in ports:
                end = 14 + struct.unpack_from("!H", frame, 16)[0]
                yield (ports[0], struct.unpack_from("!H", frame, tcp + 14)[0],
                       end - tcp - 4 * (frame[tcp + 12] >> 4))


def option(sock, name, value):
    sock.setsockopt(socket.IPPROTO_TCP, name, value)


def run(cases):
    for case in cases:
        start = time.monotonic()
        try:
            case()
            word = "ok"
        except Exception:  # whatever it is, it is this case's failure
            traceback.print_exc(file=sys.stdout)
            word = "not ok"
        print(f"{word} {case.__doc__}", flush=True)
        print(f"# {time.monotonic() - start:.1f} s", flush=True)
