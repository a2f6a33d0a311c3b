"""What operations on a switch are made of, and what comes of them. Times are picoseconds, or text as `20 ms`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tidegate import units
from tidegate._core import TidegateError
from tidegate.suggest import did_you_mean

Value = int | str
"""A number, or what the reference switch's command line takes: `10.0.0.1`, `10.0.0.0/8`, `0x0a&&&0xff`, `1->9`."""
Words = npt.NDArray[np.uint64]
MatchKind = Literal["exact", "lpm", "ternary", "range", "optional"]
Scheduler = Literal["strict priority", "deficit round robin", "weighted round robin", "time-shifted FIFO"]

# What operations take.

Bits = bytes | int | str
"""A value: big-endian bytes, a number, or text as in `Value`."""
Key = Bits | tuple[Bits, Bits] | None
"""A match of one key: a value, or a value with its prefix length, mask or upper end; `None` matches anything. As text `10.0.0.0/8`."""
Call = tuple[str, Sequence[Bits]]
"""An action by name, with its values."""
Leads = Call | tuple[str, int] | list[tuple[Call, int, bytes]]
"""Where an entry leads: an action, `("member", 1)`, `("group", 1)`, or actions with weights and the ports that they depend on."""
Entry = int | tuple[Sequence[Key], int | None]
"""An entry: its handle, or its key and priority."""
Share = tuple[int, int, bytes]
"""A member of a group, its weight, the port that it depends on."""
Rates = Sequence[int]
"""Committed rate and burst, peak rate and burst: rates in thousandths of a byte or packet a second. Empty: none."""
MirrorSpec = tuple[int | None, int | None, Sequence[tuple[int, int]], int, int | None]
"""Port, multicast group, replication ids and ports of further copies, queue, and length in bytes of a mirror session's copies."""
GeneratorSpec = tuple[int, bytes, int]
"""Ingress port, packet, and period in picoseconds."""
PortSpec = tuple[Any, ...]
"""A `Port` with its quantities as numbers: what `port_spec` makes."""
Crc = tuple[int, int, int, int, bool, bool]
"""Width (16 or 32), polynomial, initial value, last exclusive or, whether data and whether the remainder are reflected."""
Put = Literal["new", "known", "either"]
"""Whether something is made, changed, or whichever."""


@dataclass(frozen=True)
class Match:
    """One key of an entry."""

    kind: MatchKind
    value: int | None
    """The value, prefix or lower end; `None`: an optional key that matches anything."""
    other: int | None
    """Prefix length (lpm), mask (ternary), upper end (range)."""


@dataclass(frozen=True)
class TableEntry:
    """An entry of a table, as it is."""

    handle: int
    match: tuple[Match, ...]
    priority: int
    action: str
    """The action's full name; `member` or `group` for a table with an action profile."""
    values: tuple[int, ...]
    packets: int
    bytes: int
    """Of the direct counter."""


@dataclass(frozen=True)
class Digest:
    """A message that the program sent with `digest`."""

    name: str
    fields: dict[str, int]


@dataclass(frozen=True)
class PacketIn:
    """A packet that came to the controller's port."""

    at: int
    """Picoseconds."""
    data: bytes
    """With the controller header, if the program puts one on."""
    more: int
    """Bytes of payload behind `data`, all zero, that the simulator only counts."""


@dataclass(frozen=True)
class Shaper:
    """How fast bytes may leave: frames from the Ethernet header on."""

    rate: units.Rate
    burst: units.Size = "1514 B"


@dataclass(frozen=True)
class Queue:
    """What is set of a queue."""

    packets: int | None = None
    bytes: units.Size | None = None
    """Limits; a packet that would go beyond is dropped."""
    weight: int = 1
    """Share of the port, for the round robins."""
    time_shift: units.Time = 0
    """How much longer its packets count as having waited, for the time-shifted FIFO."""
    shaper: Shaper | None = None


@dataclass(frozen=True)
class Port:
    """What is set of a port. `standard_metadata.priority` chooses a queue by its number."""

    queues: tuple[Queue, ...]
    scheduler: Scheduler = "strict priority"
    """Strict priority: the highest number first. Weighted round robin, for two queues: queue 1 first, within its share (RFC 9332
    appendix A.1). Time-shifted FIFO: whoever has waited longest, time shift included (RFC 9332 appendix A.2)."""
    quantum: units.Size = "1514 B"
    """Bytes a round and unit of weight, for the round robins."""
    shaper: Shaper | None = None


@dataclass(frozen=True)
class QueueState:
    """What waits in a queue, and its counts since the start."""

    waiting_packets: int
    waiting_bytes: int
    head_wait: int
    """Picoseconds that the first packet has waited; 0 if there is none."""
    packets: int
    bytes: int
    dropped: int
    """Refused because the queue was full."""
    dropped_in_egress: int
    wait_sum: float
    wait_max: int
    """Picoseconds in the queue, over the packets that left it."""


def port_spec(port: Port) -> PortSpec:
    """A port with its quantities as numbers, for the engine."""
    if not isinstance(port, Port):
        raise TidegateError(f"{port!r} is not a Port")
    if not isinstance(port.scheduler, str):
        raise TidegateError(f"the scheduler {port.scheduler!r} is not text")

    def shaper(shaped: Shaper | None) -> tuple[int, int] | None:
        return None if shaped is None else (units.rate(shaped.rate), units.size(shaped.burst))

    queues = [
        (
            None
            if queue.packets is None
            else units.below(queue.packets, 0, 2**63, "a queue's limit in packets"),
            None if queue.bytes is None else units.size(queue.bytes),
            units.below(queue.weight, 0, 2**32, "a queue's weight"),
            units.given_time(queue.time_shift),
            shaper(queue.shaper),
        )
        for queue in port.queues
    ]
    return (port.scheduler, units.size(port.quantum), shaper(port.shaper), queues)


def demand_port(port: Port) -> None:
    """Refuse settings that no port can have, where they are written. Raises `TidegateError`."""
    port_spec(port)
    known = get_args(Scheduler)
    if port.scheduler not in known:
        raise TidegateError(
            f"there is no scheduler `{port.scheduler}`; {did_you_mean(port.scheduler, known)}known: {', '.join(known)}"
        )
