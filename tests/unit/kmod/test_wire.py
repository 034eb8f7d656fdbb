# SPDX-License-Identifier: GPL-2.0-only
"""The judge of captured packets accepts a good connection and objects to each
single violation: tests/guest/kmod/wire.py on captures written here."""
import importlib.util
import struct
from pathlib import Path

import pytest

WIRE = Path(__file__).parents[2] / "guest/kmod/wire.py"
spec = importlib.util.spec_from_file_location("wire", WIRE)
assert spec and spec.loader
wire = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wire)

PORT, CLIENT, START = 5301, 40000, 2**32 - 5000  # sequence numbers wrap
MSS, SEG, WINDOW = 1000, 850, 3400  # 3.4 MSS, which four segments fill


def frame(to_port, seq, ack, flags, window, size=0, mss=None):
    options = struct.pack("!BBH", 2, 4, mss) if mss else b""
    tcp = struct.pack("!HHIIBBHHH", CLIENT if to_port else PORT,
                      PORT if to_port else CLIENT, seq % 2**32, ack % 2**32,
                      (20 + len(options)) << 2, flags, window, 0, 0) + options
    ip = struct.pack("!BBHHHBBHII", 0x45, 0, 20 + len(tcp) + size, 0, 0, 64, 6,
                     0, 1, 2)
    return bytes(12) + b"\x08\x00" + ip + tcp


class Capture:
    """A connection under way; every method adds a packet or an event, one
    millisecond apart."""

    def __init__(self):
        self.now = 0.0
        self.frames = []
        self.events = []
        self.add(frame(True, START, 0, wire.SYN, 5000, mss=MSS))
        self.add(frame(False, 7, START + 1, wire.SYN | wire.ACK, 3 * MSS,
                       mss=MSS))

    def add(self, data):
        self.now += 0.001
        self.frames.append((self.now, data))

    def data(self, at, size):
        self.add(frame(True, START + 1 + at, 8, wire.ACK, 5000, size))

    def offer(self, acked, window):
        self.add(frame(False, 8, START + 1 + acked, wire.ACK, window))

    def event(self, text, ports):
        self.now += 0.001
        self.events.append(f"x-1 [000] ..... {self.now:.6f}: {text} {ports}")

    def align(self, why, seg, window=WINDOW):
        self.event(f"align: why={why} seg={seg} window={window}",
                   f"sport={CLIENT} dport={PORT}")

    def window(self, space, stock, offer):
        self.event(f"window: space={space} stock={stock} offer={offer} "
                   f"rcv_mss={MSS}", f"sport={PORT} dport={CLIENT}")

    def judge(self, folder, monkeypatch, capsys, receiver, sender):
        data = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 100, 1)
        for time, packet in self.frames:
            data += struct.pack("<IIII", int(time), round(time % 1 * 1e6),
                                len(packet), 1500) + packet
        (folder / "capture").write_bytes(data)
        (folder / "trace").write_text("\n".join(self.events) + "\n")
        monkeypatch.setattr(wire.sys, "argv", [
            "wire.py", str(folder / "capture"), str(folder / "trace"),
            str(PORT), receiver, sender])
        status = wire.main()
        return status, capsys.readouterr().out


@pytest.fixture(name="judge")
def judge_fixture(tmp_path, monkeypatch, capsys):
    def judge(capture, receiver="scaled", sender="stock"):
        return capture.judge(tmp_path, monkeypatch, capsys, receiver, sender)
    return judge


def bulk(sizes, window, rounds=40):
    """Windows filled with segments of these sizes, each acknowledged."""
    capture = Capture()
    at = 0
    capture.offer(0, window)
    for _ in range(rounds):
        for size in sizes:
            capture.data(at, size)
            at += size
        capture.offer(at, window)
    return capture, at


def objects(verdict, what):
    status, output = verdict
    assert status == 1 and what in output, output


def test_accepts_stock(judge):
    assert judge(bulk([MSS] * 3, 3 * MSS)[0], "stock")[0] == 0


def test_retracted_edge(judge):
    capture, at = bulk([MSS] * 3, 3 * MSS)
    capture.offer(at, 3 * MSS - 1)
    objects(judge(capture), "right edge back by 1")


def test_beyond_window(judge):
    capture, at = bulk([MSS] * 3, 3 * MSS)
    capture.data(at + 2 * MSS + 1, MSS)
    objects(judge(capture), "1 bytes beyond the window")


def test_above_mss(judge):
    capture, at = bulk([MSS] * 3, 3 * MSS)
    capture.data(at, MSS + 1)
    objects(judge(capture), "1001 bytes, MSS 1000")


def test_small_segment(judge):
    capture, at = bulk([MSS] * 3, 3 * MSS)
    capture.data(at, 535)
    capture.data(at + 535, MSS)
    objects(judge(capture), "535 bytes, though nothing")


def test_small_segment_where_the_window_ends(judge):
    capture, _ = bulk([MSS, MSS, MSS, 400], WINDOW)
    assert judge(capture)[0] == 0


@pytest.mark.parametrize("size, chosen, accepted", [
    (250, SEG, True), (249, SEG, False), (250, 0, False)])
def test_small_segment_where_a_piece_of_a_chosen_size_ends(judge, size, chosen,
                                                           accepted):
    """Two segments of that size, queued behind the last piece of one MSS; the window
    ended within the second."""
    capture, at = bulk([MSS] * 3, 3 * MSS)
    capture.align("sized", chosen)
    capture.offer(at, WINDOW)
    for part in (SEG, 600, size, SEG):
        capture.data(at, part)
        at += part
    verdict = judge(capture)
    if accepted:
        assert verdict[0] == 0, verdict[1]
    else:
        objects(verdict, f"{size} bytes, though nothing")


def test_offer_not_whole(judge):
    capture, at = bulk([MSS] * 3, 3 * MSS)
    capture.offer(at, 3 * MSS + 1)
    objects(judge(capture, "stock"), "offer of 3001")


def steps(extra=0):
    """Offers that alternate between two counts of steps of MSS/4."""
    capture, at = bulk([MSS] * 3, 3 * MSS, 34)
    for number in range(30):
        capture.offer(at, 3 * MSS + 250 + 250 * (number % 2) + extra)
        capture.data(at, MSS)
        at += MSS
    return capture, at


def test_accepts_steps(judge):
    capture, _ = steps()
    capture.window(3400, 3000, 3250)
    assert judge(capture, "4")[0] == 0


def test_offer_between_steps(judge):
    objects(judge(steps(1)[0], "4"), "step 250")


@pytest.mark.parametrize("offer, what", [
    (3000 - 250, "of 3400, stock 3000"), (3500, "of 3400, stock 3000"),
    (3050, "leaves a step")])
def test_traced_offer(judge, offer, what):
    capture, _ = steps()
    capture.window(3400, 3000, offer)
    objects(judge(capture, "4"), what)


def kept(sizes, seg=SEG, window=WINDOW):
    """A size is kept, then these segments fill the windows."""
    capture = Capture()
    at = 0
    capture.offer(0, window)
    capture.align("round", seg, window)
    for _ in range(40):
        for size in sizes:
            capture.data(at, size)
            at += size
        capture.offer(at, window)
    capture.align("round", seg, window)
    return capture


def test_accepts_kept(judge):
    assert judge(kept([SEG] * 4), sender="64")[0] == 0


def test_kept_size_not_used(judge):
    objects(judge(kept([SEG] * 3 + [SEG - 1]), sender="64"), "849 bytes, kept")


def test_kept_odd_count(judge):
    objects(judge(kept([680] * 5, 680), sender="64"), "5.000 segments in 3400")


def test_kept_leaves_a_step(judge):
    objects(judge(kept([820] * 4, 820), sender="64"), "4.146 segments in 3400")


def test_accepts_the_end_of_the_window(judge):
    """100 bytes more than four segments: once a small one fills them, and the
    piece it was cut from ends where it would have ended."""
    capture = kept([SEG] * 4, window=WINDOW + 100)
    at = 160 * SEG
    for sizes in ((SEG,) * 4 + (100,), (SEG,) * 3 + (SEG - 100,) + (SEG,)):
        for size in sizes:
            capture.data(at, size)
            at += size
        capture.offer(at, WINDOW + 100)
    capture.align("round", SEG, WINDOW)
    assert "kept 850" not in judge(capture, sender="64")[1]


def followed(rest):
    """A kept size of 850 becomes 800 while skbs of 1700 are in the queue."""
    capture = kept([SEG] * 4)
    at = 160 * SEG
    capture.align("round", 800, 3200)
    for _ in range(3):
        for size in (800, 800, rest):
            capture.data(at, size)
            at += size
        capture.offer(at, WINDOW)
    capture.align("round", 800, 3200)
    return capture


def test_accepts_rests_of_an_earlier_size(judge):
    # Of which one is too small for another rule.
    assert "kept 800" not in judge(followed(100), sender="64")[1]


def test_rest_of_no_earlier_size(judge):
    objects(judge(followed(700), sender="64"), "700 bytes, kept 800")


@pytest.mark.parametrize("size, status", [(450 + 90, 0), (450 + 91, 1)])
def test_below_one_mss(judge, size, status):
    capture = Capture()
    capture.offer(0, 3 * MSS)
    capture.align("stall", 540)
    at = 0
    for _ in range(120):
        capture.data(at, size)
        at += size
        capture.offer(at, 3 * MSS)
    got, output = judge(capture, sender="small")
    assert got == status, output


def refusing(least=0):
    """A buffer made small under data on its way: its offer goes back to @least,
    then to 700 bytes, and what was sent before is sent again to their end."""
    capture, at = bulk([MSS] * 3, 3 * MSS, 2)
    capture.data(at, MSS)
    capture.offer(at, least)
    capture.offer(at, 700)
    capture.data(at, 700)
    capture.offer(at + 700, 0)
    capture.offer(at + 700, 50)
    capture.data(at + 700, 50)
    capture.offer(at + 700, 700)
    capture.data(at + 700, 50)
    capture.align("stall", 850)
    at += 750
    for _ in range(101):
        capture.offer(at, WINDOW)
        capture.data(at, 850)
        at += 850
    return capture


def test_refused_data(judge):
    assert judge(refusing(), sender="small")[0] == 0


def test_refused_but_not_altogether(judge):
    objects(judge(refusing(1), sender="small"), "right edge back by 2999")


def test_refused_with_a_buffer_that_stays(judge):
    objects(judge(refusing()), "right edge back by 3000")


def test_old_cuts(judge):
    capture = Capture()
    capture.offer(0, 3 * MSS)
    capture.align("stall", 350)
    for at in range(0, 120 * MSS, MSS):
        for piece, size in ((0, 350), (350, 350), (700, 300)):
            capture.data(at + piece, size)
        capture.offer(at + MSS, 3 * MSS)
    got, output = judge(capture, sender="small")
    # The size itself is too small here; the remainder of an skb is not.
    assert got == 1 and "350 bytes, though" in output
    assert "300 bytes" not in output


def test_too_little(judge):
    objects(judge(bulk([MSS] * 3, 3 * MSS, 5)[0]), "too little happened")
    objects(judge(bulk([MSS] * 3, 3 * MSS)[0], "4"), "too little happened")
    objects(judge(bulk([MSS] * 3, 3 * MSS)[0], sender="64"), "too little")
