"""A switch as its control plane sees it.

Objects go by their full name (`MyIngress.routes`) or a suffix that only one has (`routes`). Every write is done whole, between
packets, or refused with `TidegateError` and nothing changed. Times are picoseconds, or text as `20 ms`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control.quantities import ALL as QUANTITIES_WHERE
from tidegate.control.quantities import read as read_quantity
from tidegate.control.readings import Subject

Value = int | str
"""A number, or what the reference switch's command line takes: `10.0.0.1`, `10.0.0.0/8`, `0x0a&&&0xff`, `1->9`."""
Words = npt.NDArray[np.uint64]
MatchKind = Literal["exact", "lpm", "ternary", "range", "optional"]
Scheduler = Literal["strict priority", "deficit round robin", "weighted round robin", "time-shifted FIFO"]


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


class _PipelineCore(Protocol):
    """What the engine offers."""

    def register_read(self, name: str, start: int, count: int | None) -> tuple[bytes, int]: ...
    def register_write(self, name: str, start: int, words: bytes) -> None: ...
    def counter_read(self, name: str, start: int, count: int | None) -> bytes: ...
    def table_entries(self, name: str) -> list[tuple[Any, ...]]: ...
    def multicast_set(self, group: int, copies: list[tuple[int, int]]) -> None: ...
    def multicast_delete(self, group: int) -> None: ...
    def mirror_set(self, session: int, port: int | None, group: int | None, truncate: int | None) -> None: ...
    def take_digests(self) -> list[tuple[str, list[tuple[str, int]]]]: ...
    def drops(self) -> list[tuple[str, int]]: ...


class PipelineApi:
    """Tables, registers, counters, meters, action profiles, multicast groups and mirror sessions of a program."""

    _core: _PipelineCore

    def command(self, line: str) -> str:
        """Run one line of the reference switch's command language; return its answer."""
        raise NotImplementedError

    def _do(self, *words: Value) -> str:
        return self.command(_line(words))

    # Tables.

    def table_add(
        self,
        table: str,
        match: Iterable[Value],
        action: str,
        values: Iterable[Value] = (),
        priority: int | None = None,
    ) -> int:
        """Add an entry and return its handle. The smaller priority wins."""
        last = () if priority is None else (priority,)
        return _handle(self._do("table_add", table, action, *match, "=>", *values, *last))

    def table_modify(self, table: str, handle: int, action: str, values: Iterable[Value] = ()) -> None:
        """Change what an entry does."""
        self._do("table_modify", table, action, handle, *values)

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        self._do("table_delete", table, handle)

    def table_clear(self, table: str) -> None:
        """Remove all entries but those of the program that are const."""
        self._do("table_clear", table)

    def table_set_default(self, table: str, action: str, values: Iterable[Value] = ()) -> None:
        """Set what happens on a miss."""
        self._do("table_set_default", table, action, *values)

    def table_entries(self, table: str) -> list[TableEntry]:
        """All entries of a table."""
        rows = self._core.table_entries(table)
        return [
            TableEntry(handle, tuple(Match(*m) for m in match), priority, action, tuple(values), *counts)
            for handle, match, priority, action, values, counts in rows
        ]

    # Action profiles and selectors.

    def member_add(self, profile: str, action: str, values: Iterable[Value] = ()) -> int:
        """Add a member to an action profile and return its handle."""
        return _handle(self._do("act_prof_create_member", profile, action, *values))

    def member_modify(self, profile: str, member: int, action: str, values: Iterable[Value] = ()) -> None:
        """Change what a member does."""
        self._do("act_prof_modify_member", profile, action, member, *values)

    def member_delete(self, profile: str, member: int) -> None:
        """Remove a member that nothing uses."""
        self._do("act_prof_delete_member", profile, member)

    def group_add(self, profile: str, members: Iterable[int] = ()) -> int:
        """Add a group of members to an action selector and return its handle."""
        group = _handle(self._do("act_prof_create_group", profile))
        for member in members:
            self.group_join(profile, group, member)
        return group

    def group_join(self, profile: str, group: int, member: int) -> None:
        """Put a member in a group."""
        self._do("act_prof_add_member_to_group", profile, member, group)

    def group_leave(self, profile: str, group: int, member: int) -> None:
        """Take a member out of a group."""
        self._do("act_prof_remove_member_from_group", profile, member, group)

    def group_delete(self, profile: str, group: int) -> None:
        """Remove a group that nothing uses."""
        self._do("act_prof_delete_group", profile, group)

    def table_add_member(
        self, table: str, match: Iterable[Value], member: int, priority: int | None = None
    ) -> int:
        """Add an entry that leads to a member, and return its handle."""
        last = () if priority is None else (priority,)
        return _handle(self._do("table_indirect_add", table, *match, "=>", member, *last))

    def table_add_group(
        self, table: str, match: Iterable[Value], group: int, priority: int | None = None
    ) -> int:
        """Add an entry that leads to a group, and return its handle."""
        last = () if priority is None else (priority,)
        return _handle(self._do("table_indirect_add_with_group", table, *match, "=>", group, *last))

    # Registers, counters, meters.

    def register_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells: shape (cells,), or (cells, words) with the least significant word first if wider than 64 bits."""
        data, words = self._core.register_read(name, *_cells(start, count))
        cells: Words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
        return cells if words == 1 else cells.reshape(-1, words)

    def register_write(self, name: str, values: npt.ArrayLike, start: int = 0) -> None:
        """Write cells from `start` on, in the shape in which `register_read` gives them."""
        array = np.asarray(values)
        if array.size and (array.dtype.kind not in "iu" or (array < 0).any()):
            raise TidegateError("register cells are whole numbers that are not negative")
        self._core.register_write(name, _cell(start), array.astype("<u8").tobytes())

    def counter_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells of a counter: shape (cells, 2), packets and bytes."""
        data = self._core.counter_read(name, *_cells(start, count))
        return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, 2)

    def counter_reset(self, name: str) -> None:
        """Set all cells of a counter to zero; of a direct counter, too."""
        self._do("counter_reset", name)

    def meter_set(
        self,
        name: str,
        index: int | None,
        *,
        committed_rate: units.Rate,
        committed_burst: units.Size,
        peak_rate: units.Rate | None = None,
        peak_burst: units.Size | None = None,
    ) -> None:
        """Set a cell of a meter (RFC 2698), or all cells if `index` is `None`; of a direct meter the index is an entry's handle.

        Rates of meters that count bytes; for one that counts packets use `meter_set_packets`. Without a peak rate the peak is
        as committed, and packets are green or red.
        """
        committed = units.rate(committed_rate) / 8
        peak = committed if peak_rate is None else units.rate(peak_rate) / 8
        burst = units.size(committed_burst)
        self._meter(
            name, index, committed, burst, peak, burst if peak_burst is None else units.size(peak_burst)
        )

    def meter_set_packets(
        self,
        name: str,
        index: int | None,
        *,
        committed_rate: float,
        committed_burst: int,
        peak_rate: float | None = None,
        peak_burst: int | None = None,
    ) -> None:
        """As `meter_set`, for a meter that counts packets: rates in packets per second, bursts in packets."""
        peak = committed_rate if peak_rate is None else peak_rate
        burst = committed_burst if peak_burst is None else peak_burst
        self._meter(name, index, committed_rate, committed_burst, peak, burst)

    def _meter(
        self, name: str, index: int | None, committed: float, burst: int, peak: float, peak_burst: int
    ) -> None:
        rates = [f"{committed / 1e6:.12f}:{burst}", f"{peak / 1e6:.12f}:{peak_burst}"]
        if index is None:
            self._do("meter_array_set_rates", name, *rates)
        else:
            self._do("meter_set_rates", name, index, *rates)

    # Copies.

    def multicast_set(self, group: int, copies: Iterable[int | tuple[int, int]]) -> None:
        """Make a multicast group: ports, or pairs of port and replication id; in place of what the group was."""
        pairs = []
        for copy in copies:
            port, instance = copy if isinstance(copy, tuple | list) else (copy, 0)
            pairs.append((_port(port), units.below(instance, 0, 2**16, "a replication id")))
        self._core.multicast_set(units.below(group, 0, 2**16, "a multicast group"), pairs)

    def multicast_delete(self, group: int) -> None:
        """Remove a multicast group."""
        self._core.multicast_delete(units.below(group, 0, 2**16, "a multicast group"))

    def mirror_set(
        self, session: int, port: int | None = None, *, group: int | None = None, truncate: int | None = None
    ) -> None:
        """Set where the clones of a mirror session go, cut to `truncate` bytes; without port and group, nowhere."""
        self._core.mirror_set(
            units.below(session, 0, 2**32, "a mirror session"),
            None if port is None else _port(port),
            None if group is None else units.below(group, 0, 2**16, "a multicast group"),
            None if truncate is None else units.below(truncate, 0, 2**32, "a length in bytes"),
        )

    @property
    def drops(self) -> dict[str, int]:
        """Packets dropped so far, by reason."""
        return dict(self._core.drops())


class _SwitchCore(_PipelineCore, Protocol):
    """What a switch with its fixed parts offers."""

    def now(self) -> int: ...
    def command(self, line: str) -> str: ...
    def statistics(self) -> dict[str, int]: ...
    def take_packet_in(self) -> tuple[int, bytes, int] | None: ...
    def packet_out(self, data: bytes) -> None: ...
    def port_read(self, port: int) -> tuple[Any, ...]: ...
    def port_write(self, port: int, spec: tuple[Any, ...]) -> None: ...
    def queue_read(self, port: int, queue: int) -> dict[str, Any]: ...
    def generator_set(self, number: int, generator: tuple[int, bytes, int] | None) -> None: ...
    def generator(self, number: int) -> tuple[int, bytes, int] | None: ...


class SwitchApi(PipelineApi):
    """A switch: its program, and its fixed parts."""

    def __init__(
        self,
        name: str,
        core: _SwitchCore,
        ports: Sequence[str],
        note: Callable[[int, str, str, float], None],
    ) -> None:
        self.name = name
        self.ports = tuple(ports)
        """Name of the node at the other end of each port, by number."""
        self._core: _SwitchCore = core
        self._note = note

    @property
    def now(self) -> int:
        """The time, in picoseconds."""
        return self._core.now()

    def command(self, line: str) -> str:
        """Run one line of the reference switch's command language; return its answer."""
        return self._core.command(line)

    # Quantities.

    subject: Subject | None = None
    """What quantities are read of; a runner says it."""
    recorder: Callable[[str, tuple[object, ...], int], None] | None = None

    def quantity(self, name: str, *labels: object) -> dict[tuple[str, ...], float]:
        """Values of a quantity (`tidegate.control.quantities`) by their labels: all, or those whose first labels are these."""
        if self.subject is None:
            raise TidegateError(
                f"{self.name} has no quantities that can be read by name; {QUANTITIES_WHERE} have"
            )
        return read_quantity(self.subject, name, *labels)

    def record(self, quantity: str, *labels: object, period: units.Time) -> None:
        """Note the values of a quantity every `period` from now on: as `queue_depth_packets[1,0]`, its labels in brackets.

        With labels, those values alone whose first labels are these. What is due at a time is noted after the ticks of that time.
        """
        if self.recorder is None:
            raise TidegateError(
                f"{self.name} has no quantities that can be recorded; {QUANTITIES_WHERE} have"
            )
        self.recorder(quantity, labels, units.time(period))

    def note(self, quantity: str, value: float) -> None:
        """Put a value in the result's table of what controllers note (`Result.notes`). A unit is the end of the name."""
        self._note(self.now, self.name, quantity, float(value))

    @property
    def statistics(self) -> dict[str, int]:
        """Where every packet is: received, generated, packet_outs and made are transmitted, packet_ins, dropped and held."""
        return self._core.statistics()

    # Ports and queues.

    def port_towards(self, node: str) -> int:
        """The number of the port that leads to a neighbour."""
        if node not in self.ports:
            raise TidegateError(
                f"{self.name} has no port to {node!r}; it has ports to {', '.join(self.ports)}"
            )
        return self.ports.index(node)

    def port_read(self, port: int) -> Port:
        """What is set of a port: sizes in bytes, rates in bit/s, times in picoseconds."""
        scheduler, quantum, shaper, queues = self._core.port_read(_port(port))
        return Port(
            queues=tuple(
                Queue(packets, size, weight, shift, None if shaped is None else Shaper(*shaped))
                for packets, size, weight, shift, shaped in queues
            ),
            scheduler=scheduler,
            quantum=quantum,
            shaper=None if shaper is None else Shaper(*shaper),
        )

    def port_write(self, port: int, to: Port) -> None:
        """Set a port anew. What waits in a queue that is taken away goes to the last that is left."""
        self._core.port_write(_port(port), port_spec(to))

    def queue_write(self, port: int, queue: int, **changes: Any) -> None:
        """Change a queue: keywords as `Queue` has them."""
        now = self.port_read(port)
        if not 0 <= queue < len(now.queues):
            raise TidegateError(
                f"port {port} of {self.name} has {len(now.queues)} queues; there is no queue {queue}"
            )
        try:
            changed = replace(now.queues[queue], **changes)
        except TypeError as error:
            raise TidegateError(f"a queue has no such setting: {error}") from None
        queues = (*now.queues[:queue], changed, *now.queues[queue + 1 :])
        self.port_write(port, replace(now, queues=queues))

    def queue_read(self, port: int, queue: int = 0) -> QueueState:
        """What waits in a queue."""
        return QueueState(
            **self._core.queue_read(_port(port), units.below(queue, 0, 2**32, "a queue's number"))
        )

    # Packets.

    def generator_set(self, number: int, *, port: int, packet: bytes, period: units.Time) -> None:
        """Make a packet every `period`, as if it came in by `port`; or change the generator of that number."""
        self._core.generator_set(number, (port, packet, units.time(period)))

    def generator_period(self, number: int, period: units.Time) -> None:
        """Change a generator's period. The time since its last packet counts for the new one."""
        found = self._core.generator(number)
        if found is None:
            raise TidegateError(f"{self.name} has no generator {number}")
        port, packet, _ = found
        self._core.generator_set(number, (port, packet, units.time(period)))

    def generator_stop(self, number: int) -> None:
        """Stop a generator."""
        self._core.generator_set(number, None)

    def packet_out(self, packet: bytes) -> None:
        """Send a packet into the switch by the controller's port."""
        if not isinstance(packet, bytes):
            raise TidegateError(f"a packet is bytes, not a {type(packet).__name__}")
        self._core.packet_out(packet)


def _port(number: int) -> int:
    return units.below(number, 0, 512, "a port's number")


def _cell(index: int) -> int:
    """A cell of a register or counter, for the engine, which knows how many there are."""
    return units.below(index, 0, 2**32, "a cell's index")


def _cells(start: int, count: int | None) -> tuple[int, int | None]:
    return _cell(start), None if count is None else units.below(count, 0, 2**32, "a number of cells")


def port_spec(port: Port) -> tuple[Any, ...]:
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
            units.time(queue.time_shift),
            shaper(queue.shaper),
        )
        for queue in port.queues
    ]
    return (port.scheduler, units.size(port.quantum), shaper(port.shaper), queues)


def _handle(answer: str) -> int:
    return int(answer.rsplit(" ", 1)[1])


def _line(words: Iterable[Value]) -> str:
    parts = [str(word) for word in words]
    for part in parts:
        if not part or "#" in part or any(c.isspace() for c in part):
            raise TidegateError(f"{part!r} is not a name or a value")
    return " ".join(parts)
