# SPDX-License-Identifier: GPL-2.0-only
"""cwnd_max: the congestion window that the sender's connections may reach.

"cwnd lock N" on a route reaches a connection only through the kernel's TCP
metrics: tcp_init_metrics() limits snd_cwnd if they hold an entry for the
destination, and in a new namespace they hold none.  A first connection that
ends makes the entry, with the lock of the route.  Then the limit is read back.
"""
from __future__ import annotations

import socket
import struct
import time

from .. import children
from ..errors import MssabError
from ..experiment.cell import Cell
from ..netns import command, inside
from .ends import Ends

#: Place of tcpi_snd_cwnd in struct tcp_info.
SND_CWND = 80
#: Seconds for a connection over a link without delay.
LIMIT_S = 10
#: Seconds between two looks at the metrics.
POLL_S = 0.02


def _connection(between: Ends) -> int:
    """A connection from end to end, closed in order; its first snd_cwnd."""
    family = socket.AF_INET6 if ":" in between.address else socket.AF_INET
    with inside(between.receiver):
        listener = socket.socket(family, socket.SOCK_STREAM)
    with listener:
        listener.settimeout(LIMIT_S)
        listener.bind((between.address, 0))
        listener.listen(1)
        with inside(between.sender):
            one = socket.socket(family, socket.SOCK_STREAM)
        with one:
            one.settimeout(LIMIT_S)
            one.connect(listener.getsockname()[:2])
            other, _ = listener.accept()
            with other:
                info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                one.shutdown(socket.SHUT_WR)
                other.settimeout(LIMIT_S)
                other.recv(1)   # until the end of the stream
    return int(struct.unpack_from("=I", info, SND_CWND)[0])


def _entry(between: Ends) -> str:
    """What the sender's TCP metrics hold on the receiver."""
    return command("ip", "-n", between.sender, "tcp_metrics", "show",
                   between.address)


def lock(cell: Cell, between: Ends, device: str) -> None:
    """Limit the sender to cell.cwnd_max; MssabError if the kernel does not.
    The link has no delay and no loss yet."""
    limit = str(cell.cwnd_max)
    route = ["fd09::/64", "dev", device, "proto", "kernel", "metric", "256"] \
        if cell.ipv6 else ["10.9.0.0/24", "dev", device, "src", "10.9.0.1"]
    command("ip", "-n", between.sender, "route", "change", *route, "cwnd",
            "lock", limit)
    try:
        _connection(between)
        end = time.monotonic() + children.patience(LIMIT_S)
        while f" cwnd {limit} " not in f"{_entry(between)} ":
            if time.monotonic() > end:
                raise MssabError(
                    f"cwnd_max = {limit}: the kernel's TCP metrics do not hold "
                    f"it: {_entry(between).strip() or 'no entry'}")
            time.sleep(POLL_S)
        used = _connection(between)
    except OSError as error:
        raise MssabError(f"cwnd_max = {limit}: {error}") from error
    if used > cell.cwnd_max:
        raise MssabError(f"cwnd_max = {limit} has no effect: a new connection "
                         f"has snd_cwnd {used}")
