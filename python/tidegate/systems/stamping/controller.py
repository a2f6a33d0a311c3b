"""Sets up stamping switches: forwarding, and the scale of each port. It does nothing while the switch runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate.control import Controller, SwitchApi
from tidegate.systems.stamping.field import Scale


class StampController(Controller):
    """Fills the tables of a switch that runs `stamp.p4`, when it starts.

    `ports` gives the port that leads to each Ethernet address; `scales`, the scale of each port that stamps. `to_hosts`: ports to
    hosts are among these.
    """

    def __init__(
        self,
        ports: Callable[[], Mapping[str, int]],
        scales: Callable[[], Mapping[int, Scale]],
        to_hosts: bool = True,
    ) -> None:
        self._ports = ports
        self._scales = scales
        self.to_hosts = to_hosts

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables; what another controller has left is kept."""
        known = {entry.match[0].value for entry in switch.table_entries("forward")}
        for address, port in self._ports().items():
            if int(address.replace(":", ""), 16) not in known:
                switch.table_add("forward", [address], "to_port", [port])
        stamping = {entry.match[0].value for entry in switch.table_entries("ports")}
        for port, scale in self._scales().items():
            if port not in stamping:
                switch.table_add("ports", [port], "stamp", list(scale))
