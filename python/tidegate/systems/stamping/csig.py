"""Congestion signals in an L2 tag (draft-ravi-ippm-csig, compact form): what a tag says, and switches that write it.

The draft says the layout and that a switch replaces a value by one that is strictly worse. Ours: the tag's EtherType, equal buckets
by default, rounding down, and that the delay is the time in the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, PipelineApi, SwitchApi
from tidegate.hosts.shims import TAG_DATA, Option
from tidegate.network import Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.stamping.field import ECHO_KIND
from tidegate.systems.stamping.format import fixed_point

BUCKETS = 32
STEPS = 1 << 16
"""Of a scaled value, where a signal has ranges of its own."""


class Signal(IntEnum):
    """What a tag carries: `T`."""

    ABW = 0
    """Available bandwidth in bit/s: the smallest on the path."""
    SHARE = 1
    """Available bandwidth as a share of the port's rate: the smallest."""
    DELAY = 2
    """Time in the queue in picoseconds: the longest."""


class Tag(NamedTuple):
    """A tag that has been read."""

    signal: Signal
    bucket: int
    locator: int


@dataclass(frozen=True)
class Csig:
    """The signals of a network. Values from a full scale on are in the last bucket."""

    bandwidth: units.Rate = "100 Gbit/s"
    """Full scale of the available bandwidth."""
    delay: units.Time = "100 us"
    """Full scale of the delay."""
    window: units.Time = "256 us"
    """Of the meter; rounded up to a power of two of the clock's ticks."""
    edges: tuple[tuple[Signal, tuple[float, ...]], ...] = ()
    """Signals with buckets of their own: where their buckets 1, 2, ... begin, as shares of the full scale."""
    tpid: int = 0x9900
    """EtherType of the tag."""

    def __post_init__(self) -> None:
        units.below(self.tpid, 0x600, 0x10000, "the EtherType of a CSIG tag")
        for name, value in (("bandwidth", units.rate(self.bandwidth)), ("delay", units.time(self.delay))):
            if value == 0:
                raise TidegateError(f"the full scale of a CSIG tag's {name} is 0; give one above 0")
        if units.time(self.window) == 0:
            raise TidegateError("the window of a CSIG meter is 0; give one above 0")
        for signal, edges in self.edges:
            rising = all(a < b for a, b in pairwise((0.0, *edges, 1.0)))
            if not 0 < len(edges) < BUCKETS or not rising:
                raise TidegateError(
                    f"the edges of {Signal(signal).name} are {edges}; give 1 to {BUCKETS - 1} rising shares between 0 and 1"
                )

    def full(self, signal: Signal) -> int:
        """The full scale of a signal in its unit; of a share, 1."""
        if signal == Signal.DELAY:
            return units.time(self.delay)
        return units.rate(self.bandwidth) if signal == Signal.ABW else 1

    def decode(self, signal: Signal, bucket: int) -> float:
        """The lower edge of a bucket."""
        own = dict(self.edges).get(signal)
        if own is None:
            return bucket / BUCKETS * self.full(signal)
        return ((0.0, *own)[min(bucket, len(own))]) * self.full(signal)

    def tag(self, signal: Signal) -> bytes:
        """The tag as the sender writes it, behind the MAC addresses: with the neutral value."""
        return self.tpid.to_bytes(2) + self.blank(signal)

    @property
    def option(self) -> Option:
        """The tag, for the shims of a host."""
        return Option("tag", self.tpid)

    @property
    def echo(self) -> Option:
        """The option that brings the tag's data back to the sender."""
        return Option("tcp", ECHO_KIND)

    def blank(self, signal: Signal) -> bytes:
        """The tag's data as the sender writes it: with the neutral value."""
        value = 0 if signal == Signal.DELAY else BUCKETS - 1
        return (signal << 13 | value << 7).to_bytes(2)

    def read_data(self, data: bytes) -> Tag:
        """The data of a tag or of its echo. Raises `TidegateError` if it is not that of a known signal."""
        word = int.from_bytes(data)
        if len(data) != TAG_DATA or word >> 13 not in tuple(Signal):
            raise TidegateError(f"{data.hex()} is not the data of a CSIG tag with a known signal")
        return Tag(Signal(word >> 13), word >> 7 & BUCKETS - 1, word & 127)

    def read(self, frame: bytes) -> Tag | None:
        """The tag of a frame, if it has one with a known signal."""
        if len(frame) < 18 or int.from_bytes(frame[12:14]) != self.tpid:
            return None
        return self.read_data(frame[14:16]) if frame[14] >> 5 in tuple(Signal) else None


@cache
def _program(tpid: int) -> Program:
    return compile_p4(Path(__file__).with_name("csig.p4"), defines=[f"CSIG_TPID={tpid}"])


def program(form: Csig) -> Program:
    """The data plane that writes tags."""
    return _program(form.tpid)


def signalling(
    network: Network, name: str, form: Csig, *, locator: int = 0, clock: units.Time = "1 us", **options: Any
) -> Switch:
    """Add a switch that writes tags. `locator` is what its tags say of where they come from: 0 to 127."""
    units.below(locator, 0, 128, "the locator of a CSIG tag")
    switch = network.switch(name, program(form), clock=clock, **options)

    def rates() -> dict[int, int]:
        links = [link for link in network.links if switch in (link.a, link.b)]
        wires = [link.forward if link.a is switch else link.reverse for link in links]
        return {port: wire.rate for port, wire in enumerate(wires)}

    network.control(CsigController(form, partial(network.forwarding, switch), rates, locator, clock), switch)
    return switch


class CsigController(Controller):
    """Fills the tables of a switch that runs `csig.p4`, when it starts.

    `ports` gives the port that leads to each Ethernet address; `rates`, the rate in bit/s of each port that signals.
    """

    def __init__(
        self,
        form: Csig,
        ports: Callable[[], Mapping[str, int]],
        rates: Callable[[], Mapping[int, int]],
        locator: int = 0,
        clock: units.Time = "1 us",
    ) -> None:
        self._form = form
        self._ports = ports
        self._rates = rates
        self._locator = locator
        self.clock = clock
        self._tick = units.time(clock)

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables of a switch that has none of their entries."""
        if not switch.table_entries("ports"):
            for address, port in self._ports().items():
                switch.table_add("forward", [address], "to_port", [port])
            for port, rate in self._rates().items():
                configure(switch, self._form, port, rate, self._locator, self._tick)
            ranges(switch, self._form)


def configure(switch: PipelineApi, form: Csig, port: int, rate: int, locator: int, tick: int) -> None:
    """Let a port write tags."""
    window = 0
    while tick << window < units.time(form.window):
        window += 1
    # Bytes in a window, in 1/256.
    capacity = Fraction(rate * (tick << window) * 256, 8 * units.PS_PER_S)
    if not 1 <= capacity < 1 << 32:
        raise TidegateError(
            f"a CSIG window of {form.window} does not go with a link of {rate} bit/s; give a shorter one"
        )
    switch.table_add("ports", [port], "port", [window, int(capacity), locator])
    own = dict(form.edges)
    for signal in Signal:
        steps = STEPS if signal in own else BUCKETS
        full = Fraction(form.full(signal), tick)
        if signal != Signal.DELAY:
            full = capacity * (Fraction(form.full(signal), rate) if signal == Signal.ABW else 1)
        multiplier, shift = fixed_point(steps / full, f"a CSIG signal {signal.name}")
        switch.table_add("signals", [port, int(signal)], "scale", [multiplier, shift])


def ranges(switch: PipelineApi, form: Csig) -> None:
    """Fill the table of the signals with buckets of their own."""
    for signal, edges in form.edges:
        begins = [0, *(int(-(-Fraction(edge) * STEPS // 1)) for edge in edges)]
        ends = [*(begin - 1 for begin in begins[1:]), (1 << 32) - 1]
        for bucket, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            switch.table_add("ranges", [int(signal), f"{begin}->{end}"], "in_bucket", [bucket], priority=1)
