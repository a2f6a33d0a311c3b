"""The slow loop: sets the ports' thresholds, and notes what was marked."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi

PS_PER_US = 1_000_000


class MarkerController(Controller):
    """Gives ports their thresholds, and notes each second how many packets they have marked so far.

    `thresholds` are times by port. `ports` gives the port that leads to each Ethernet address, when it starts.
    """

    period = "1 s"

    def __init__(self, thresholds: Mapping[int, units.Time], ports: Callable[[], Mapping[str, int]]) -> None:
        self._thresholds = {port: units.time(wait) // PS_PER_US for port, wait in thresholds.items()}
        self._ports = ports
        for port, us in self._thresholds.items():
            if not 0 < us < 2**32:
                raise TidegateError(f"the threshold of port {port} is {us} us; give one from 1 us to 1 hour")

    def start(self, switch: SwitchApi) -> None:
        """Fill tables and registers; what another controller has left is kept."""
        known = {entry.match[0].value for entry in switch.table_entries("forward")}
        for address, port in self._ports().items():
            if int(address.replace(":", ""), 16) not in known:
                switch.table_add("forward", [address], "to_port", [port])
        for port, us in self._thresholds.items():
            switch.register_write("threshold", [us], port)

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note the counts."""
        for port in self._thresholds:
            for name in ("forwarded", "marked"):
                switch.note(f"port_{port}_{name}_packets", int(switch.counter_read(name, port, 1)[0, 0]))
