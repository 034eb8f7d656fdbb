# SPDX-License-Identifier: GPL-2.0-only
"""Packets of some sockets among others'.  What the kernel says of each socket
(tcp_info), and the module of each arm, is what pathprof must find, exactly;
each recording is told a filter, and all of one case run side by side."""
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

from connections import (connect, counters, enter, run, setting, transfer,
                         wait_until)

PP = os.environ["PP"]
CGROUPS = os.environ["CGROUPS"]
MARK = 0x4d00


class Recording:
    """Of every packet of a namespace that the filter lets through."""

    def __init__(self, *choice, sample=("--sample", "1")):
        self.file = tempfile.NamedTemporaryFile(suffix=".json")
        ready, theirs = os.pipe()
        self.process = subprocess.Popen(
            [PP, "record", *sample, "-o", self.file.name, "--ready-fd",
             str(theirs), *choice], pass_fds=[theirs],
            stderr=subprocess.PIPE, text=True)
        os.close(theirs)
        if os.read(ready, 1) != b"\n":
            raise AssertionError(self.process.communicate()[1])
        os.close(ready)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert not self.process.wait(), self.process.stderr.read()
        with open(self.file.name, encoding="utf-8") as file:
            self.profile = json.load(file)
        assert not self.profile["account"]["unaccounted"], \
            self.profile["account"]
        return self

    def segments(self, *words):
        return sum(path["segments"] for path in self.profile["paths"]
                   if set(words) <= {path["direction"], path["end"],
                                     *path["flags"]})

    def data(self):
        """Segments with data, received and sent."""
        return (self.segments("rx", "data") -
                self.segments("rx", "data", "merged"),
                self.segments("tx", "data"))


def data_of(*sockets):
    """The same by tcp_info: tcpi_data_segs_in, tcpi_data_segs_out."""
    both = [struct.unpack("II", sock.getsockopt(
        socket.IPPROTO_TCP, socket.TCP_INFO, 160)[152:160])
        for sock in sockets]
    return tuple(map(sum, zip(*both)))


def acknowledged(*sockets):
    def unacked(sock):
        return struct.unpack("I", sock.getsockopt(
            socket.IPPROTO_TCP, socket.TCP_INFO, 160)[24:28])[0]
    wait_until(lambda: not any(map(unacked, sockets)), "the last ACK")


def same(what, got, wanted):
    print(f"{what}: {got}")
    assert got == wanted, f"{what}: got {got}, wanted {wanted}"
    assert min(wanted) > 0, f"{what}: nothing to compare"


@contextlib.contextmanager
def group(name):
    """Sockets made meanwhile are of this cgroup."""
    def join(path):
        with open(os.path.join(CGROUPS, path, "cgroup.procs"), "w",
                  encoding="ascii") as procs:
            procs.write(str(os.getpid()))
    join(name)
    try:
        yield
    finally:
        join("")


def exchange(pairs):
    """Both ways, another amount for each connection."""
    for i, (sock, peer) in enumerate(pairs, 1):
        transfer(sock, peer, 4 * (5000 * i + 7))
        transfer(peer, sock, 4 * (2000 * i + 3))
    acknowledged(*[sock for pair in pairs for sock in pair])


def grouped():
    """Connections of three cgroups, each end made in one, over IPv4 and 6."""
    pairs = {}
    for name in "app", "app/inner", "other":
        for address in "10.9.0.2", "fd09::2":
            with group(name):
                pairs[name, address] = connect(address=address)
    return pairs


def closed(pairs):
    for pair in pairs:
        for sock in pair:
            sock.close()


def cgroup(*more):
    inner = Recording("--cgroup", f"{CGROUPS}/app/inner", *more)
    app = Recording("--cgroup", f"{CGROUPS}/app", *more)
    pairs = grouped()
    exchange(pairs.values())
    inner.stop()
    app.stop()
    same("app/inner", inner.data(), data_of(
        *[sock for (name, _), pair in pairs.items() for sock in pair
          if name == "app/inner"]))
    same("app and below", app.data(), data_of(
        *[sock for (name, _), pair in pairs.items() for sock in pair
          if name != "other"]))
    assert "app" in app.profile["config"]["filter"]
    closed(pairs.values())


def cgroup_coarse():
    """packets of a cgroup and those below it are those of their sockets"""
    cgroup()


def cgroup_fine():
    """the same with the finer stages"""
    cgroup("--fine")


@contextlib.contextmanager
def chatter(sock, peer):
    """Packets of one byte meanwhile, as fast as a process of its own can."""
    child = os.fork()
    if not child:
        while True:
            sock.send(b"x")
            peer.recv(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def cgroup_windows():
    """windows see the packets of a cgroup, and no others"""
    with group("app"):
        pair = connect()
    recordings = {}
    # One after the other: with two programs at a tracepoint, detaching the
    # first waits for a grace period, and windows become rare.
    for name in "app", "other":
        with chatter(*pair):
            recordings[name] = Recording("--cgroup", f"{CGROUPS}/{name}",
                                         sample=("--budget", "50"))
            time.sleep(10)  # windows
            profile = recordings[name].stop().profile
        print(f"{name}: {recordings[name].data()} in "
              f"{profile['counters']['windows']} windows, "
              f"{profile['counters']['filtered']} left out")
    assert min(recordings["app"].data()) > 0
    assert recordings["other"].segments() == 0
    assert recordings["other"].profile["counters"]["filtered"] > 0
    closed([pair])


def cgroup_udp():
    """datagrams, too, by the cgroup of the socket they come to"""
    enter("a")
    recording = Recording("--cgroup", f"{CGROUPS}/app", "--udp")
    sockets = {}
    for name in "app", "other":
        with group(name):
            sockets[name] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sockets[name].bind(("127.0.0.1", 0))
    for name, other, count in ("app", "other", 5), ("other", "app", 7):
        for _ in range(count):
            sockets[name].sendto(b"x", sockets[other].getsockname())
            sockets[other].recv(10)
    recording.stop()
    same("received and sent", (recording.segments("rx", "udp"),
                               recording.segments("tx", "udp")), (7, 5))


def arm_counts():
    return {arm: tuple(counters("a")[f"{arm}_{way}_segments"]
                       for way in ("rx", "tx"))
            for arm in ("stock", "treated")}


def arms(connections):
    """Each arm's packets, of the side in namespace a."""
    before = arm_counts()
    recordings = {arm: Recording("--netns", "a", "--arm", arm)
                  for arm in before}
    pairs = connections()
    exchange(pairs)
    after = arm_counts()
    for arm, recording in recordings.items():
        recording.stop()
        same(arm, recording.data(), tuple(
            new - old for new, old in zip(after[arm], before[arm])))
    closed(pairs)


def arm_hashed():
    """packets of an arm are those that the module counts for it"""
    with setting("a", "mssfrac/ab_percent", 50), \
            setting("a", "mssfrac/ab_seed", 4711):
        arms(lambda: [connect(address=address) for _ in range(6)
                      for address in ("10.9.0.2", "fd09::2")])


def arm_marked():
    """the same where a mark pins the connection"""
    def connections():
        return [connect(client_options=[(socket.SOL_SOCKET, socket.SO_MARK,
                                         mark)])
                for mark in (MARK, MARK + 1, MARK + 2)]
    with setting("a", "mssfrac/ab_mark", MARK):
        arms(connections)


def device(*more):
    recordings = [Recording("--netns", "a", *more),
                  Recording("--netns", "a", "--dev", "lo", *more)]
    far, near = connect(), connect(server="a", address="127.0.0.1")
    exchange([far, near])
    for recording in recordings:
        recording.stop()
    same("all", recordings[0].data(), data_of(far[0], *near))
    same("lo", recordings[1].data(), data_of(*near))
    assert recordings[1].segments("tx", "syn") > 0
    closed([far, near])


def sent_by():
    """packets of an interface are those it received and sent"""
    enter("a")
    device()


def sent_by_fine():
    """the same with the finer stages"""
    enter("a")
    device("--fine")


run([cgroup_coarse, cgroup_fine, cgroup_windows, cgroup_udp, arm_hashed,
     arm_marked, sent_by, sent_by_fine])
