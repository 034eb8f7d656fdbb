# SPDX-License-Identifier: GPL-2.0-only
"""tx_steady: one transfer through a window that stays at 3.7 segments and then
grows.  Every decision of the sender is read from the tracepoint mssfrac:align."""
import re
import socket

from connections import (
    LIMIT, Sender, close, connect, enter, option, receive, run, sysctl)

MSS = 8948
FRACTION = 64
STEP = MSS // FRACTION
WINDOW = 37 * MSS // 10
TRACE = "/sys/kernel/tracing/trace"


def events():
    """(why, window, seg) of each event, oldest first."""
    with open(TRACE, encoding="ascii") as trace:
        found = re.findall(r" align: .*why=(\S+) .*window=(\d+) .* "
                           r"seg=(\d+)", trace.read())
    return [(why, *map(int, numbers)) for why, *numbers in found]


def decisions():
    """Those that moved the size."""
    return [event for event in events()
            if event[0] in ("sized", "step", "reverted")]


def goal():
    """Four segments fill 3.7 segments: an even count, the fewest, of even size."""
    return decisions()[0][1] // 8 * 2


def since_goal():
    """Events from the one that reached the size; none before it."""
    seen = events()
    at = [i for i, event in enumerate(seen)
          if event[0] == "step" and event[2] == goal()]
    return seen[at[0]:] if at else []


def drain_until(peer, condition, limit=20_000_000):
    """Read until it holds; limit in bytes."""
    taken = 0
    while not condition():
        assert taken < limit, f"{taken} B read: {decisions()}"
        part = 0
        while part < 50 * WINDOW:
            got = len(peer.recv(65536))
            assert got, "the sender ended"
            part += got
        taken += part


def transfer():
    """one transfer; the window grows once it is filled"""
    sock, peer = connect(rcvbuf=1 << 19)  # more than the clamp ever needs

    def send():
        try:
            while True:
                sock.sendall(bytes(65536))
        except OSError:  # the reader has seen enough
            pass

    enter("a")
    # Since 6.12 the first segments set a clamp of their own.  A window that
    # was advertised is never retracted, so it is used up in full segments.
    for segments in (4, 128):
        option(peer, socket.TCP_WINDOW_CLAMP, WINDOW)
        for _ in range(segments):
            sock.sendall(bytes(MSS))
            receive(peer, MSS)
    sender = Sender(send)
    drain_until(peer, since_goal)
    option(peer, socket.TCP_WINDOW_CLAMP, 4 * MSS + 100)
    # The kernel may raise its clamp later, and another size is chosen then.
    drain_until(peer, lambda: any(seg == 0 for _, _, seg in since_goal()))
    sock.shutdown(socket.SHUT_RDWR)
    sender.join(LIMIT)
    close(sock, peer)


def descent():
    """down by MSS/64 each round trip to the size that fills the window"""
    way = [(why, seg) for why, _, seg in decisions()]
    sizes = list(range(MSS - STEP, goal(), -STEP)) + [goal()]
    wanted = [("sized", sizes[0])] + [("step", size) for size in sizes[1:]]
    assert way[:len(wanted)] == wanted, f"{way}, wanted {wanted}"


def raised():
    """the kernel's size again once the window has grown"""
    why, window, _ = next(e for e in since_goal() if e[2] == 0)
    print(f"{why} at {window} B")
    assert window >= 4 * MSS, f"{why} at {window} B"


if __name__ == "__main__":
    sysctl("a", "mssfrac/tx_frac", FRACTION)
    sysctl("a", "mssfrac/tx_steady", 1)
    run([transfer, descent, raised])
