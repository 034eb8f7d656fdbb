# SPDX-License-Identifier: GPL-2.0-only
"""What msstune counts and samples itself: calls of programs, the modules that CPUs
execute, parts of offloads.  The kernel's side runs in guest/msstune/faults_cost.py."""
import array
import os
import struct
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune import sockdiag  # noqa: E402
from msstune.facts import (calls as collect_calls, collect, device, host,  # noqa: E402
                           perf_events, samples)
from msstune.settings import ethtool  # noqa: E402
from msstune.errors import NotSupported  # noqa: E402


# --- Perf events ------------------------------------------------------------

def test_an_unknown_machine_has_no_perf_events(monkeypatch):
    monkeypatch.setattr(perf_events, "_CALL", {})
    with pytest.raises(NotSupported, match="perf events on"):
        perf_events.clock(0, 1000, 1, 0)


def test_the_attribute_is_that_of_the_kernel():
    # PERF_ATTR_SIZE_VER1; config1 is at 56, config2 at 64.
    assert perf_events._ATTR.size == 72
    packed = perf_events._ATTR.pack(6, 72, 1, 2, 3, 4, 5, 0, 0, 0x1234, 9)
    assert struct.unpack_from("=QQ", packed, 56) == (0x1234, 9)


# --- Calls ------------------------------------------------------------------

def dump(received=0, acked=0, unread=0, waiting=0, inode=77):
    """One connection, as sock_diag reports it."""
    info = bytearray(sockdiag._INFO.size)
    struct.pack_into("=QQ", info, 120, acked, received)
    head = sockdiag._MESSAGE.pack(2, 1, 0, 0, b"\0\1", b"\0\2", bytes(16), bytes(16),
                                  0, b"cookie00", 0, unread, waiting, 0, inode)
    return {b"cookie00": sockdiag.Look(head, bytes(info), b"", b"")}


@pytest.fixture
def counters(monkeypatch):
    """Counters that grow by ten at each reading; the threads that have one."""
    values, threads = {}, []

    def calls(function, task):
        threads.append((function, task))
        number = os.open("/dev/null", os.O_RDONLY)
        values[number] = 0
        return number

    def count(number):
        values[number] += 10
        return values[number]
    monkeypatch.setattr(perf_events, "calls", calls)
    monkeypatch.setattr(perf_events, "count", count)
    return threads


def test_bytes_are_those_read_and_written_between_two_counts(counters):
    # What is unread was not read; what waits was written.
    dumps = iter([dump(received=5000, acked=100, unread=1000, waiting=50),
                  dump(received=9000, acked=300, unread=500, waiting=350)])
    one = collect_calls.Calls({77: os.getpid()}, lambda: next(dumps))
    try:
        found = one.counted()[os.getpid()]
    finally:
        one.close()
    threads = len({task for _, task in counters})
    assert (found["reads"], found["writes"]) == (10 * threads, 10 * threads)
    assert (found["bytes_read"], found["bytes_written"]) == (4500, 500)
    assert {function for function, _ in counters} == {"tcp_recvmsg", "tcp_sendmsg"}


def test_counting_ends_with_enough_calls(counters, monkeypatch):
    one = collect_calls.Calls({77: os.getpid()}, dump)
    assert not one.enough()     # ten more of each thread
    monkeypatch.setattr(collect_calls, "ENOUGH", 20)
    assert one.enough()
    one.close()


def test_a_program_with_many_threads_is_left_out(counters, monkeypatch):
    monkeypatch.setattr(collect_calls, "OF_ONE", 0)
    one = collect_calls.Calls({77: os.getpid()}, dump)
    assert not one.counted() and not counters
    one.close()


def test_counters_are_closed_if_one_cannot_be_opened(counters, monkeypatch):
    opened = perf_events.calls

    def calls(function, task):
        if function == "tcp_sendmsg":
            raise PermissionError("kprobes are locked down")
        return opened(function, task)
    monkeypatch.setattr(perf_events, "calls", calls)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(PermissionError):
        collect_calls.Calls({77: os.getpid()}, dump)
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_ended_program_is_no_error(counters):
    one = collect_calls.Calls({77: 2**22 + 1}, dump)
    assert one.counted() == {}
    one.close()


@pytest.mark.parametrize("timeouts, acked, longer", [
    (0, 100, False), (1, 100, True), (4, 100, True), (5, 100, False), (2, 101, False)])
def test_a_connection_in_its_first_timeouts_is_watched_longer(timeouts, acked, longer):
    first = dump(acked=100)
    [(cookie, look)] = dump(acked=acked).items()
    head = look.head[:3] + bytes([timeouts]) + look.head[4:]
    last = {cookie: sockdiag.Look(head, look.info, b"", b"")}
    assert collect._silent(first, last) == longer
    assert not collect._silent({}, last)    # it is new: there is nothing to compare


@pytest.mark.parametrize("timer, unread, waiting, since, received, longer", [
    (0, 90_000, 0, 500, 100, True),         # its reader pauses
    (0, 90_000, 0, 9000, 100, False),       # and has done so for long
    (0, 90_000, 0, 500, 101, False),        # it moves
    (0, 100, 0, 500, 100, False),           # a few bytes hold nobody back
    (4, 0, 90_000, 500, 100, True),         # the peer's reader pauses
    (1, 0, 90_000, 500, 100, False)])
def test_a_reader_that_pauses_is_watched_longer(timer, unread, waiting, since,
                                                received, longer):
    first = dump(received=100, unread=unread, waiting=waiting)
    [(cookie, look)] = dump(received=received, unread=unread, waiting=waiting).items()
    head = look.head[:2] + bytes([timer]) + look.head[3:]
    info = bytearray(look.info)
    for field in ("last_data_sent", "last_data_recv"):
        struct.pack_into("=I", info, 8 + 4 * (sockdiag._FIELDS.index(field) - 8), since)
    last = {cookie: sockdiag.Look(head, bytes(info), b"", b"")}
    assert sockdiag.unpack(last[cookie])["last_data_recv"] == since
    assert collect._pausing(first, last) == longer
    assert not collect._pausing({}, last)


def test_how_far_a_window_sank_and_how_a_rate_varied():
    looks = []
    for acked, again, window in ((0, 0, 500), (1000, 0, 900), (3000, 2, 300),
                                 (3500, 3, 1000)):
        [(cookie, look)] = dump(acked=acked).items()
        info = bytearray(look.info)
        struct.pack_into("=I", info, 8 + 4 * (
            sockdiag._FIELDS.index("total_retrans") - 8), again)
        struct.pack_into("=I", info, sockdiag._INFO.size - 4, window)
        struct.pack_into("=Q", info, 200, acked)    # sent: it moves
        looks.append({cookie: sockdiag.Look(look.head, bytes(info), b"", b"")})
    flow, = collect.flows(looks, [1.0, 1.5, 2.5, 3.0])
    assert flow["sunk_snd_wnd"] == 600
    assert flow["acked_per_s"] == [2000, 2000, 1000]
    flow, = collect.flows(looks[:2], [1.0, 1.5])
    assert flow["sunk_snd_wnd"] == 0 and "acked_per_s" not in flow


def lossy(times):
    """Dumps of two connections that lose; the second begins after the second dump."""
    looks = []
    for number in range(len(times)):
        one = dump(acked=1000 * number)[b"cookie00"]
        info = bytearray(one.info)
        struct.pack_into("=I", info, 100, number)
        struct.pack_into("=Q", info, 200, 1000 * number)
        look = sockdiag.Look(one.head, bytes(info), b"", b"")
        looks.append({b"1": look} | ({b"2": look} if number > 1 else {}))
    return looks


def test_a_rate_is_that_of_all_dumps_and_connections_agree_on_the_time():
    times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    first, second = collect.flows(lossy(times), times, every=2)
    assert first["acked_per_s"] == [2000] * 6       # also between regular dumps
    assert second["acked_per_s"] == [0, 4000, 2000, 2000, 2000, 2000]


def test_total_retrans_is_where_the_kernel_has_it():
    look = lossy([0, 1, 2])[2][b"1"]
    assert sockdiag.lost(look) == sockdiag.unpack(look)["total_retrans"] == 2


@pytest.mark.parametrize("dumps, lost, longer", [
    (7, 4, True), (12, 5, True), (13, 5, False), (7, 0, False),
    (7, 3, False)])         # a few happen anywhere
def test_losses_are_watched_until_their_rate_is_known(dumps, lost, longer):
    looks = lossy([0.0] * 6)
    before, after = looks[0], looks[lost]
    assert collect._losing(before, after, dumps) == longer
    assert not collect._losing({}, after, dumps)
    many = {str(number).encode(): after[b"1"] for number in range(collect.MOST + 1)}
    assert not collect._losing(before, many, dumps)


# --- Samples ----------------------------------------------------------------

MODULES = """nf_tables 360448 3 nft_chain, Live 0xffffffffc0a00000
veth 45056 0 - Live 0xffffffffc0900000 (OE)
hidden 4096 0 - Live 0x0000000000000000
"""


def test_addresses_belong_to_modules(tmp_path):
    path = tmp_path / "modules"
    path.write_text(MODULES)
    known = samples.modules(path)
    assert [name for *_, name in known] == ["veth", "nf_tables"]
    for address, name in ((0xffffffffc0a00000, "nf_tables"),
                          (0xffffffffc0a00000 + 360447, "nf_tables"),
                          (0xffffffffc0a00000 + 360448, "kernel"),
                          (0xffffffffc08fffff, "kernel"), (0, "kernel"),
                          (0xffffffffc0900001, "veth")):
        assert samples.named(address, known) == name


def ring(records, tail=0, pages=1):
    """A ring of the kernel that begins at @tail."""
    size = pages * 4096
    raw = bytearray(4096 + size)
    head = tail
    for record in records:
        for at, byte in enumerate(record):
            raw[4096 + (head + at) % size] = byte
        head += len(record)
    struct.pack_into("=QQ", raw, samples.HEAD, head, tail)
    return raw


def sample(address, process=1):
    return struct.pack("=IHHQII", 9, 0, 24, address, process, process)


def drained(raw):
    one = samples.Sampler.__new__(samples.Sampler)
    one._page, one._rings, one._seen, one._own = 4096, [(3, -1, raw)], [], {42}
    one.drain()
    return one._seen


@pytest.mark.parametrize("tail", [0, 4096 - 24, 4096 - 8, 5 * 4096 - 20])
def test_samples_are_read_to_the_end_and_around_it(tail):
    lost = struct.pack("=IHHQQ", 2, 0, 24, 1, 3)
    raw = ring([sample(11), lost, sample(12), sample(13, process=42)], tail)
    assert drained(raw) == [(3, 11), (3, 12)]   # 42 is our own
    assert struct.unpack_from("=QQ", raw, samples.HEAD)[0] == \
        struct.unpack_from("=Q", raw, samples.TAIL)[0]
    assert drained(raw) == []


# --- Tables that nft does not list -------------------------------------------

def test_tables_of_iptables_legacy(tmp_path):
    assert host.legacy_tables(tmp_path) == []
    (tmp_path / "ip_tables_names").write_text("filter\nraw\n")
    (tmp_path / "ip6_tables_names").write_text("filter\n")
    assert host.legacy_tables(tmp_path) == ["filter", "raw"]


# --- Parts of offloads ------------------------------------------------------

def test_features_of_a_device(monkeypatch):
    names = ["tx-checksum-ipv4", *(f"f{n}" for n in range(1, 33)),
             "tx-tcp6-segmentation", "tx-tcp-segmentation"]
    text = b"".join(name.encode().ljust(32, b"\0") for name in names)

    def call(_device, words):
        if words[0] == ethtool.GSSET_INFO:
            return [*words[:4], len(names)]
        if words[0] == ethtool.GSTRINGS:
            return [*words[:3], *array.array("I", text)]
        #       available, requested, active, never changed
        return [words[0], words[1], 1, 1, 1, 0, 0b110, 0, 0, 0b100]
    monkeypatch.setattr(ethtool, "call", call)
    found = ethtool.features("eth0")
    assert found["tx-checksum-ipv4"] == (True, True) and len(found) == len(names)
    assert found["tx-tcp6-segmentation"] == (False, True)
    # What cannot be changed is no part that is off.
    assert found["tx-tcp-segmentation"] == (False, False)
    assert device._parts_off("eth0") == ["tx-tcp6-segmentation"]


def test_a_device_without_features_has_no_parts(monkeypatch):
    def call(_device, _words):
        raise OSError(95, "not supported")
    monkeypatch.setattr(ethtool, "call", call)
    assert device._parts_off("eth0") == []
