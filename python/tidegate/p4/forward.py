"""The controller's part of `forward.p4`: where packets go."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate.control import SwitchApi


def fill(switch: SwitchApi, ports: Mapping[str, int], wires: Mapping[int, int]) -> None:
    """Add forwarding entries for Ethernet addresses and for port-to-port wires; existing entries are kept."""
    known = {entry.match[0].value for entry in switch.table_entries("forward")}
    for address, port in ports.items():
        if int(address.replace(":", ""), 16) not in known:
            switch.table_add("forward", [address], "to_port", [port])
    wired = {entry.match[0].value for entry in switch.table_entries("wires")}
    for come, go in wires.items():
        if come not in wired:
            switch.table_add("wires", [come], "to_port", [go])
