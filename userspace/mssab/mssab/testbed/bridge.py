# SPDX-License-Identifier: GPL-2.0-only
"""veth links between the ends of a cell: one from end to end, or one from each
end to a bridge in a namespace of its own."""
from __future__ import annotations

import subprocess

from ..experiment.cell import Cell
from ..netns import command
from .ends import Ends, host_address

SWITCH = "mssab-sw"


def _numbers(between: Ends) -> list[tuple[str, int]]:
    """Each end with the number of its address."""
    return [(end, 2 * i + 1) for i, end in enumerate(between.senders)] \
        + [(end, 2 * i + 2) for i, end in enumerate(between.receivers)]


def port(end: str) -> str:
    """The bridge's device towards an end."""
    return end.replace("mssab", "port")


def _address(end: str, number: int, mtu: int) -> None:
    command("ip", "-n", end, "addr", "add", f"{host_address(number)}/24",
            "dev", "veth0")
    command("ip", "-n", end, "addr", "add",
            f"{host_address(number, ipv6=True)}/64", "dev", "veth0", "nodad")
    command("ip", "-n", end, "link", "set", "veth0", "mtu", str(mtu), "up")


def connect(cell: Cell, between: Ends) -> None:
    """The links of a cell on veth, up and with addresses."""
    if cell.bridge:
        command("ip", "netns", "add", SWITCH)
        # Ports that come up later must forward at once: no spanning tree.
        command("ip", "-n", SWITCH, "link", "add", "switch", "mtu",
                str(cell.mtu), "type", "bridge", "stp_state", "0",
                "forward_delay", "0", "mcast_snooping", "0")
        command("ip", "-n", SWITCH, "link", "set", "switch", "up")
        for end in between.namespaces:
            command("ip", "link", "add", "veth0", "netns", end, "type", "veth",
                    "peer", "name", port(end), "netns", SWITCH)
            command("ip", "-n", SWITCH, "link", "set", port(end), "mtu",
                    str(cell.mtu), "master", "switch", "up")
    else:
        command("ip", "link", "add", "veth0", "netns", between.sender, "type",
                "veth", "peer", "name", "veth0", "netns", between.receiver)
    for end, number in _numbers(between):
        _address(end, number, cell.mtu)


def remove() -> None:
    """The bridge and its links, if there are any."""
    subprocess.run(["ip", "netns", "del", SWITCH], check=False,
                   capture_output=True)
