# SPDX-License-Identifier: GPL-2.0-only
"""Checks captured connections packet by packet; det_wire.sh made the capture
at the sender and recorded the module's tracepoints with the same clock.

  wire.py CAPTURE TRACE PORT RECEIVER SENDER

RECEIVER: stock (offers whole segments), or N (steps of MSS/N), or scaled (no
rule).  SENDER: stock, N (treated, sizes in steps of MSS/N), or small (treated,
the window is below one MSS).  Prints what it counted and then every violation;
exit status 1 if there is one.

The rules are written anew from RFC 9293 (sections 3.8.4, 3.8.6.2) and the
paper's proposal, not taken from window.h."""
import re
import struct
import sys
from dataclasses import dataclass

SYN, FIN, RST, ACK = 2, 1, 4, 16
MIN_SEG = 536     # RFC 9293's default send MSS: never cut below it
SLACK = 0.000002  # s; the trace and the capture see one event apart
QUEUED_ROUNDS = 64  # a send buffer holds that many windows


@dataclass
class Packet:
    time: float
    sport: int
    dport: int
    seq: int
    ack: int
    flags: int
    window: int
    size: int
    options: dict
    fills: bool = False  # data that ends where the window ends


@dataclass
class Event:
    """A line of the trace."""
    time: float
    name: str
    fields: dict


def read_packets(path, port):
    """TCP packets of one port, IPv4 and IPv6, from a pcap file."""
    with open(path, "rb") as file:
        data = file.read()
    magic, linktype = struct.unpack_from("<I16xI", data)
    tick = {0xa1b2c3d4: 1e-6, 0xa1b23c4d: 1e-9}[magic]
    assert linktype == 1, "not an Ethernet capture"
    at = 24
    while at < len(data):
        second, part, kept = struct.unpack_from("<III", data, at)
        frame = data[at + 16:at + 16 + kept]
        at += 16 + kept
        if frame[12:14] == b"\x08\x00" and frame[23] == 6:
            tcp = 14 + 4 * (frame[14] & 15)
            end = 14 + struct.unpack_from("!H", frame, 16)[0]
        elif frame[12:14] == b"\x86\xdd" and frame[20] == 6:
            tcp = 54
            end = tcp + struct.unpack_from("!H", frame, 18)[0]
        else:
            continue
        sport, dport, seq, ack, offset, flags, window = struct.unpack_from(
            "!HHIIBBH", frame, tcp)
        if port not in (sport, dport):
            continue
        header = 4 * (offset >> 4)
        yield Packet(second + part * tick, sport, dport, seq, ack, flags,
                     window, end - tcp - header,
                     dict(read_options(frame[tcp + 20:tcp + header])))


def read_options(data):
    while data and data[0] != 0:
        size = 1 if data[0] == 1 else data[1]
        yield data[0], data[2:size]
        data = data[size:]


def read_trace(path, port):
    line = re.compile(r" (\d+\.\d+): (window|align): (.*)$")
    with open(path, encoding="ascii") as file:
        for text in file:
            if not (found := line.search(text)):
                continue
            fields = {key: int(value) if value.isdigit() else value
                      for key, value in
                      (word.split("=") for word in found[3].split())}
            if port in (fields["sport"], fields["dport"]):
                yield Event(float(found[1]), found[2], fields)


def signed(number):
    """A difference of sequence numbers."""
    return (number + 2**31) % 2**32 - 2**31


class Connection:
    """Sequence numbers count from the sender's first byte."""

    def __init__(self, packets, port):
        syn = next(p for p in packets if p.flags & SYN and p.dport == port)
        answer = next(p for p in packets if p.flags & SYN and p.sport == port)
        self.mss = min(int.from_bytes(p.options[2], "big")
                       for p in (syn, answer))
        if 8 in syn.options and 8 in answer.options:  # timestamps
            self.mss -= 12
        self.scale = (answer.options[3][0]
                      if 3 in syn.options and 3 in answer.options else 0)
        self.found = []
        self.start = syn.seq + 1
        self.edge = answer.window  # of a SYN, never scaled
        self.packets = packets
        self.port = port
        self.data = [p for p in packets if p.dport == port and p.size]
        self.offers = [p for p in packets if p.sport == port
                       and p.flags & ACK and not p.flags & (SYN | RST)]

    def wrong(self, packet, what):
        first = self.packets[0].time
        self.found.append(f"{packet.time - first:.6f} s: {what}")

    def place(self, number):
        return signed(number - self.start)

    def end(self, packet):
        return self.place(packet.seq) + packet.size

    def ends_old_cut(self, packet):
        """Data queued before a size was chosen stays in skbs of one MSS, and
        the last segment of each is its remainder."""
        return self.end(packet) % self.mss == 0

    def ends_new_cut(self, packet, sizes):
        """Data queued while one of these sizes was in force is in skbs of whole
        segments of it.  The first begins where the last one of one MSS ends."""
        end = self.end(packet)
        return any((end - cut) % size == 0 for size in sizes
                   for cut in range(0, end, self.mss))

    def offered(self, packet):
        return packet.window << self.scale

    def check_edges(self, refuses):
        """The right edge never moves back, and nothing is sent beyond it.

        @refuses: but a buffer made small under data on its way may refuse it with
        a window of 0, since Linux 6.6 (e2142825c120).  That edge counts from then
        on; what was sent before it is sent again, as far as the old one."""
        edge = last = self.edge
        for packet in self.packets:
            if packet in self.offers:
                new = self.place(packet.ack) + self.offered(packet)
                if new < last and not (refuses and packet.window == 0):
                    self.wrong(packet, f"right edge back by {last - new}")
                last = new
                edge = max(edge, new)
            elif packet.dport == self.port and packet.size:
                end = self.end(packet)
                packet.fills = end in (last, edge)
                if end > edge:
                    self.wrong(packet, f"{end - edge} bytes beyond the window")

    def check_sizes(self, events):
        """No segment is above the MSS.  One below MIN_SEG is sent again, or ends the
        data, the window or a run of full-sized segments."""
        # A size below MIN_SEG is what this looks for.
        sizes = {event.fields["seg"] for event in events
                 if event.fields["seg"] >= MIN_SEG}
        sent = set()
        for packet in self.data:
            if (packet.seq, packet.size) in sent:
                continue
            sent.add((packet.seq, packet.size))
            if packet.size > self.mss:
                self.wrong(packet, f"{packet.size} bytes, MSS {self.mss}")
            elif packet.size < MIN_SEG and packet is not self.data[-1] and \
                    not packet.fills and not self.ends_old_cut(packet) \
                    and not self.ends_new_cut(packet, sizes):
                self.wrong(packet, f"{packet.size} bytes, though nothing ends "
                           "there")

    def check_offers(self, frac, events):
        """Every window is a multiple of the MSS plus a multiple of MSS/frac.
        Or it is the window before, which stays until another step fits, or
        its remainder, because the right edge is never retracted."""
        step = self.mss // frac
        edge = self.edge
        before = self.edge
        full = False
        acted = 0
        for packet in self.packets:
            if packet.dport == self.port:
                full = full or packet.size == self.mss
                continue
            if packet not in self.offers:
                continue
            window = self.offered(packet)
            kept = window == before or \
                self.place(packet.ack) + window == edge
            if full and not kept and window % self.mss % step:
                self.wrong(packet, f"offer of {window} is {window // self.mss}"
                           f" segments and {window % self.mss} bytes; step "
                           f"{step}")
            new = self.place(packet.ack) + window
            acted += full and window % self.mss != 0 and new > edge
            edge = max(edge, new)
            before = window
        # The tracepoint has the space that could be advertised.
        for event in events:
            space, stock, offer, mss = (event.fields[name] for name in
                                        ("space", "stock", "offer", "rcv_mss"))
            if offer == stock:
                continue
            if not stock < offer <= space:
                self.wrong(event, f"offer {offer} of {space}, stock {stock}")
            if space - offer >= mss // frac:
                self.wrong(event, f"offer {offer} leaves a step of {space}")
        return acted

    def check_kept(self, events, frac):
        """While a size is in force an even count of segments fills the window, to
        less than a step of MSS/frac each, and every segment has that size,
        except where the window ends and where a piece of the queue does.

        The queue holds pieces of whole segments, of the size in force when
        they were written.  So they end on a grid of that size; Nagle's rule
        (RFC 9293 section 3.7.4, with Minshall's change) lets one small segment
        out at the window's end, and the piece it was cut from ends early."""
        step = self.mss // frac
        sizes = 0
        grids = [(self.mss, 0)]  # sizes, and a place where an skb ends
        before = self.mss
        own = None
        queued = 0
        for event, after in zip(events, events[1:]):
            seg = event.fields["seg"] or self.mss
            if seg != before:
                grids += [(before, self.place(p.seq)) for p in self.data
                          if p.time < event.time and p.size == before][-1:]
                before = seg
                own = None
            # Data written before the size has left the queue after so long.
            if event.fields["why"] == "sized":
                queued = QUEUED_ROUNDS
            queued -= queued > 0
            if queued or seg == self.mss:
                continue
            window = event.fields["window"]
            count = window // seg
            if count % 2 or window - count * seg >= count * step:
                self.wrong(event, f"size {seg}: {window / seg:.3f} segments "
                           f"in {window}")
            # The size decided at this event holds from it to the next.
            for packet in self.data:
                if not event.time + SLACK < packet.time < after.time - SLACK:
                    continue
                sizes += 1
                end = self.end(packet)
                if packet.size == seg or packet.size < seg and (
                        packet.fills or any((end - place) % size == 0
                                            for size, place in grids)):
                    continue
                # Where skbs of this size end is unknown, but it is the same
                # place modulo the size every time.
                own = end % seg if own is None else own
                if packet.size > seg or end % seg != own:
                    self.wrong(packet, f"{packet.size} bytes, kept {seg}")
        return sizes

    def check_small(self, events):
        """From the first stall on every segment is half the window, or the
        rest of an old piece; or of the window, which check_sizes() judges."""
        chosen = [e for e in events if e.fields["why"] == "stall"]
        sizes = 0
        if chosen:
            seg = chosen[-1].fields["seg"]
            for packet in self.data:
                if packet.time > chosen[-1].time + SLACK:
                    sizes += packet.size == seg
                    if packet.size >= MIN_SEG and \
                            packet.size != seg and \
                            not self.ends_old_cut(packet):
                        self.wrong(packet, f"{packet.size} bytes, chosen {seg}")
        return sizes


def main():
    capture, trace, port, receiver, sender = sys.argv[1:]
    port = int(port)
    packets = list(read_packets(capture, port))
    events = list(read_trace(trace, port))
    windows = [e for e in events
               if e.name == "window" and e.fields["sport"] == port]
    aligns = [e for e in events
              if e.name == "align" and e.fields["dport"] == port]
    connection = Connection(packets, port)
    connection.check_edges(refuses=sender == "small")
    connection.check_sizes(aligns)
    acted = "nothing"
    enough = len(connection.data) > 100
    if receiver != "scaled":
        frac = 1 if receiver == "stock" else int(receiver)
        acted = connection.check_offers(frac, windows)
        enough = enough and (acted > 10) == (frac > 1)
    sizes = {p.size for p in connection.data}
    checked = 0
    if sender == "small":
        checked = connection.check_small(aligns)
    elif sender != "stock":
        checked = connection.check_kept(aligns, int(sender))
    enough = enough and (checked > 100) == (sender != "stock")
    print(f"{len(connection.data)} data segments of {min(sizes)} to "
          f"{max(sizes)} bytes, {len(connection.offers)} offers; {acted} "
          f"raised, {checked} segments of a chosen size")
    if not enough:
        connection.found.append("too little happened")
    print("\n".join(connection.found[:20]))
    return 1 if connection.found else 0


if __name__ == "__main__":
    sys.exit(main())
