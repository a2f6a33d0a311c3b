"""Sets up a pacing switch: forwarding, the capacity of its links, and the ticks that drive its walks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.p4 import forward
from tidegate.systems.pacing.format import LARGEST, Keys

GENERATOR_PORT = 510
"""The port that ticks seem to come from."""
TICK_TYPE = 0x88B6
RESERVE = 0.0025
"""The part of a link that is given to nobody: the paper's l, of the whole link."""
PS_PER_US = 1_000_000
LONG = 8
"""Packets: a queue that is never shorter is drained. As in `links.p4`."""

ShareBy = Literal["flow", "host"]
"""Whether a link's flows share, by weight, or its hosts, each of which divides its share among its flows."""
Trace = Literal["narrowest", "append"]
"""What a SYN-ACK says: the narrowest link, or each link, in an option of its own."""
NoticesBy = Literal["host", "flow"]
"""Whether a change is told to each host once, or for each flow (hosts that share an address have to be told by flow)."""
APPENDED = 3
"""Links that a SYN-ACK over IPv4 has room for."""


@dataclass(frozen=True)
class ManagedLink:
    """A link whose flows are paced."""

    capacity: units.Rate
    """Of frames, from the Ethernet header on."""
    number: int
    """From 1 to 254; no other link that flows of the same host pass may have it."""
    reserve: float = RESERVE
    """The part of the capacity that is given to nobody."""
    frame: units.Size = 1514
    """The size of frames that fill the link."""
    long: units.Time = "100 us"
    """A queue is drained when it is never shorter than this, and than 8 packets."""

    def long_by(self) -> int:
        """Packets beyond 8 that make a queue long."""
        frame = units.size(self.frame)
        if frame < 64:
            raise TidegateError(
                f"the frames of a managed link have {frame} bytes; give a size from 64 bytes on"
            )
        bits = units.rate(self.capacity) * units.time(self.long) // units.PS_PER_S
        return max(bits // (8 * frame) - LONG, 0)

    def kbps(self) -> int:
        """What is given away, in kbit/s."""
        if not 0 <= self.reserve < 1:
            raise TidegateError(f"the reserve of a link is {self.reserve}; give a part from 0 to below 1")
        if not 1 <= self.number <= 254:
            raise TidegateError(f"a managed link has the number {self.number}; give one from 1 to 254")
        rate = int(units.rate(self.capacity) * (1 - self.reserve)) // 1000
        if not 64 <= rate <= LARGEST:
            raise TidegateError(
                f"a managed link gives away {rate} kbit/s; give it a capacity of 64 kbit/s to 2 Tbit/s"
            )
        return rate


NO_PLACE = 0
"""Of the counter `refused`."""


@dataclass(frozen=True)
class Members:
    """The flows of a link."""

    flows: int
    """That count, with those of aggregates."""
    aggregates: int
    """In place of flows for which there was no place: of at most 32 flows each. Two of 32 may be taken for one."""
    refused: int
    """How often a flow of any link asked and found no place of its own."""


class PacingController(Controller):
    """Fills the tables and registers of a switch that runs `pacing.p4`, when it starts. The switch does the rest.

    `ports` has the port that leads to each Ethernet address, `links` the managed links by port; either may be a function that gives
    them at the start. `wires` has, for frames to other addresses, the port that they leave by, by the one that they came in by. A walk
    begins at a `tick`; without packets for `idle` a flow is gone; a notice that was not seen is sent again after `again`. With `keys`,
    options have to have a check.

    A change is told to each host once for all its flows, or with `notices_by="flow"` to each flow.

    A flow for which the switch has no place is counted by an aggregate of flows: it is told its rate when it asks. `members` says how
    many there are.
    """

    clock = "1 us"

    def __init__(
        self,
        ports: Mapping[str, int] | Callable[[], Mapping[str, int]],
        links: Mapping[int, ManagedLink] | Callable[[], Mapping[int, ManagedLink]],
        *,
        wires: Mapping[int, int] | None = None,
        tick: units.Time = "200 us",
        idle: units.Time = "30 s",
        again: units.Time = "100 ms",
        keys: Keys | None = None,
        share_by: ShareBy = "flow",
        trace: Trace = "narrowest",
        notices_by: NoticesBy = "host",
    ) -> None:
        for name, value, choices in (
            ("share_by", share_by, ShareBy),
            ("trace", trace, Trace),
            ("notices_by", notices_by, NoticesBy),
        ):
            if value not in get_args(choices):
                raise TidegateError(
                    f"{name}={value!r} is unknown to a pacing switch; give {' or '.join(map(repr, get_args(choices)))}"
                )
        self._ports = ports
        self._links = links
        self._wires = dict(wires or {})
        self._tick = units.time(tick)
        self._idle = units.time(idle)
        self._again = units.time(again)
        self._keys = keys
        self._share_by = share_by
        self._notices_by = notices_by
        self.trace = trace
        for name, time in (("tick", self._tick), ("idle", self._idle), ("again", self._again)):
            if time < PS_PER_US:
                raise TidegateError(f"the {name} time of a pacing switch is below 1 us; give a longer one")

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables; what another controller has left is kept."""
        ports = self._ports() if callable(self._ports) else self._ports
        forward.fill(switch, ports, self._wires)
        for port in sorted({*ports.values(), *self._wires}):
            switch.mirror_set(port + 1, port)
        switch.register_write("idle", [self._idle // PS_PER_US], 0)
        switch.register_write("again", [self._again // PS_PER_US], 0)
        switch.register_write("by_host", [int(self._share_by == "host")], 0)
        switch.register_write("tell_by_host", [int(self._notices_by == "host")], 0)
        switch.register_write("appends", [int(self.trace == "append")], 0)
        if self._keys is not None:
            self.use(switch, self._keys)
        links = self._links() if callable(self._links) else self._links
        managed = sorted(links)
        for port, after in zip(managed, managed[1:] + managed[:1], strict=True):
            link = links[port]
            switch.register_write("capacity", [link.kbps()], port)
            switch.register_write("link_id", [link.number], port)
            switch.register_write("long_by", [link.long_by()], port)
            switch.register_write("port_after", [after], port)
        if managed:
            switch.register_write("turn", [managed[0]], 0)
            packet = bytes(12) + TICK_TYPE.to_bytes(2) + bytes(2)
            switch.generator_set(0, port=GENERATOR_PORT, packet=packet, period=self._tick)

    def members(self, switch: SwitchApi, port: int) -> Members:
        """How many flows a link has now."""
        ((refused, _),) = switch.counter_read("refused", NO_PLACE, 1)
        (flows,), (aggregates,) = (switch.register_read(name, port, 1) for name in ("flows", "aggregates"))
        return Members(int(flows), int(aggregates), int(refused))

    def use(self, switch: SwitchApi, keys: Keys) -> None:
        """Have a switch use these keys from now on. Options made with the other of the two are believed, too."""
        switch.register_write("keys", list(keys.values), 0)
        switch.register_write("signing", [keys.signing], 0)
        switch.register_write("keyed", [1], 0)
