# SPDX-License-Identifier: GPL-2.0-only
"""tx_steady: one transfer through a window that stays at 3.7 segments and then
grows.  Every decision of the sender is read from the tracepoint mssfrac:align.
Deterministic guest: rates decide which size is kept."""
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
    """(why, window, seg, rate) of each event, oldest first."""
    with open(TRACE, encoding="ascii") as trace:
        found = re.findall(r" align: .*why=(\S+) .*window=(\d+) .* "
                           r"seg=(\d+) rate=(\d+)", trace.read())
    return [(why, *map(int, numbers)) for why, *numbers in found]


def decisions():
    """Those that moved the size."""
    return [event for event in events() if event[0] in
            ("trial", "step", "kept", "no-gain", "lost-gain")]


def since_kept():
    """Events from the one that kept a size; none before it."""
    seen = events()
    kept = [i for i, event in enumerate(seen) if event[0] == "kept"]
    return seen[kept[0]:] if kept else []


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
    """one transfer; the window grows once a size is kept"""
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
    drain_until(peer, since_kept)
    option(peer, socket.TCP_WINDOW_CLAMP, 4 * MSS + 100)
    drain_until(peer, lambda: since_kept()[-1][2] == 0)
    sock.shutdown(socket.SHUT_RDWR)
    sender.join(LIMIT)
    close(sock, peer)


def descent():
    """down by MSS/64 at a time to the size that fills the window"""
    way = [(why, seg) for why, _, seg, _ in decisions()]
    way = way[:[why for why, _ in way].index("kept")]
    # Four segments fill 3.7 segments: an even count, the fewest, of even size.
    goal = decisions()[0][1] // 8 * 2
    sizes = list(range(MSS - STEP, goal, -STEP)) + [goal]
    wanted = [("trial", sizes[0])] + [("step", size) for size in sizes[1:]]
    assert way == wanted, f"{way}, wanted {wanted}"


def best():
    """the size that delivered most is kept"""
    seen = decisions()
    kept = [why for why, *_ in seen].index("kept")
    # An event shows what the size before it delivered.
    tried = {seen[i][2]: seen[i + 1][3] for i in range(kept)}
    most = max(tried, key=tried.get)
    print(f"bytes/s by size: {tried}")
    assert seen[kept][2] == most, f"{seen[kept]}, tried {tried}"


def raised():
    """the kernel's size again once the window has grown"""
    why, window, _, _ = next(e for e in since_kept() if e[2] == 0)
    print(f"{why} at {window} B")
    assert window >= 4 * MSS, f"{why} at {window} B"


if __name__ == "__main__":
    sysctl("a", "mssfrac/tx_frac", FRACTION)
    sysctl("a", "mssfrac/tx_steady", 1)
    run([transfer, descent, best, raised])
