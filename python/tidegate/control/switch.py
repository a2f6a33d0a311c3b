"""A switch as its control plane sees it.

Objects go by their full name (`MyIngress.routes`) or a suffix that only one has (`routes`). Every write is done whole, between
packets, or refused with `TidegateError` and nothing changed. Times are picoseconds, or text as `20 ms`.

Each method is an operation of `operations.py`, which `act` takes as well. Methods that only pass an operation on are made with
the operations; those written here take units, arrays and names of actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import operations as op
from tidegate.control.objects import (
    Leads,
    Match,
    MatchKind,
    Port,
    Queue,
    QueueState,
    Shaper,
    TableEntry,
    Value,
    Words,
    port_spec,
)
from tidegate.control.quantities import ALL as QUANTITIES_WHERE
from tidegate.control.quantities import read as read_quantity
from tidegate.control.readings import Subject
from tidegate.units import counted

SLICE = 64
"""Operations of a batch that are done while packets wait."""


class _Core(Protocol):
    """What the engine offers."""

    def now(self) -> int: ...
    def act(self, operation: object) -> Any: ...
    def act_each(self, operations: Sequence[object]) -> list[Any]: ...
    def act_all(self, operations: Sequence[object]) -> list[Any]: ...
    def table_keys(self, table: str) -> list[tuple[str, MatchKind, int]]: ...
    def command(self, line: str) -> str: ...


class PipelineApi(op.Methods):
    """Tables, registers, counters, meters, action profiles, multicast groups and mirror sessions of a program.

    Methods that are not here are those of `operations.Methods`, which are made from the definitions of operations.
    """

    _core: _Core

    def act(self, operation: op.Operation) -> Any:
        """Do an operation of `tidegate.control.operations`; return its answer."""
        return self._core.act(operation)

    def batch(self, operations: Sequence[op.Operation], mode: Literal["each", "all"] = "each") -> list[Any]:
        """Do operations in order; return the answer of each.

        `each`: every one by itself, with the `TidegateError` in place of the answer where one is refused; packets go between them
        now and then. `all`: if one is refused, nothing has changed, and its error is raised, with its number as `index`; no packet
        comes between. These are at most 4096 operations that can be undone: on the program's objects, and that take nothing away.
        """
        if mode == "all":
            return self._core.act_all(operations)
        if mode != "each":
            raise TidegateError(f"{mode!r} is not a mode of a batch: give each or all")
        answers: list[Any] = []
        for at in range(0, len(operations), SLICE):
            answers += self._core.act_each(operations[at : at + SLICE])
        return answers

    def command(self, line: str) -> str:
        """Run one line of the reference switch's command language; return its answer."""
        return self._core.command(line)

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
        return self._new_entry(table, match, (action, tuple(values)), priority)

    def _new_entry(self, table: str, match: Iterable[Value], to: Leads, priority: int | None) -> int:
        handle: int = self.act(op.TableAdd(table, tuple(match), to, priority))
        return handle

    def table_modify(self, table: str, handle: int, action: str, values: Iterable[Value] = ()) -> None:
        """Change what an entry does."""
        self.act(op.TableSet(table, handle, (action, tuple(values))))

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        self.act(op.TableDelete(table, handle))

    def table_set_default(self, table: str, action: str, values: Iterable[Value] = ()) -> None:
        """Set what happens on a miss."""
        self.act(op.TableDefaultSet(table, (action, tuple(values))))

    def table_entries(self, table: str) -> list[TableEntry]:
        """All entries of a table."""
        keys = self._core.table_keys(table)
        found: list[TableEntry] = []
        start: int | None = 0
        while start is not None:
            rows, start = self.act(op.TableRead(table, start))
            found.extend(_entry(keys, row) for row in rows)
        return found

    # Action profiles and selectors.

    def member_add(self, profile: str, action: str, values: Iterable[Value] = ()) -> int:
        """Add a member to an action profile and return its handle."""
        member: int = self.act(op.MemberAdd(profile, (action, tuple(values))))
        return member

    def member_modify(self, profile: str, member: int, action: str, values: Iterable[Value] = ()) -> None:
        """Change what a member does."""
        self.act(op.MemberSet(profile, member, (action, tuple(values))))

    def group_add(self, profile: str, members: Iterable[int] = ()) -> int:
        """Add a group of members to an action selector and return its handle."""
        group: int = self.act(op.GroupAdd(profile))
        try:
            for member in members:
                self.group_join(profile, group, member)
        except TidegateError:
            self.act(op.GroupDelete(profile, group))
            raise
        return group

    def table_add_member(
        self, table: str, match: Iterable[Value], member: int, priority: int | None = None
    ) -> int:
        """Add an entry that leads to a member, and return its handle."""
        return self._new_entry(table, match, ("member", member), priority)

    def table_add_group(
        self, table: str, match: Iterable[Value], group: int, priority: int | None = None
    ) -> int:
        """Add an entry that leads to a group, and return its handle."""
        return self._new_entry(table, match, ("group", group), priority)

    # Registers, counters, meters.

    def register_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells: shape (cells,), or (cells, words) with the least significant word first if wider than 64 bits."""
        data, words = self.act(op.RegisterRead(name, *_cells(start, count)))
        cells: Words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
        return cells if words == 1 else cells.reshape(-1, words)

    def register_write(self, name: str, values: npt.ArrayLike, start: int = 0) -> None:
        """Write cells from `start` on, in the shape in which `register_read` gives them."""
        array = np.asarray(values)
        if array.dtype.kind == "f":
            # So are numbers on both sides of 2^63.
            exact = np.asarray(values, dtype=object)
            if all(type(one) is int and 0 <= one < 2**64 for one in exact.flat):
                array = exact.astype(np.uint64)
        if array.size and (array.dtype.kind not in "iu" or (array < 0).any()):
            raise TidegateError("register cells are whole numbers that are not negative")
        self.act(op.RegisterWrite(name, _cell(start), array.astype("<u8").tobytes()))

    def counter_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells of a counter: shape (cells, 2), packets and bytes."""
        data = self.act(op.CounterRead(name, *_cells(start, count)))
        return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, 2)

    def counter_reset(self, name: str) -> None:
        """Set all cells of a counter to zero; of a direct counter, too."""
        self.act(op.CounterSet(name, None, packets=0, bytes=0))

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
        rates = (_thousandths(committed), burst, _thousandths(peak), peak_burst)
        self.act(op.MeterSet(name, index, rates))

    # Copies.

    def multicast_set(self, group: int, copies: Iterable[int | tuple[int, int]]) -> None:
        """Make a multicast group: ports, or pairs of port and replication id; in place of what the group was."""
        pairs = []
        for copy in copies:
            port, instance = copy if isinstance(copy, tuple | list) else (copy, 0)
            pairs.append((_port(port), units.below(instance, 0, 2**16, "a replication id")))
        self.act(op.MulticastSet(units.below(group, 0, 2**16, "a multicast group"), pairs, "either"))

    def multicast_delete(self, group: int) -> None:
        """Remove a multicast group, and its nodes that no other group has."""
        group = units.below(group, 0, 2**16, "a multicast group")
        self.act(op.MulticastDelete(group, "either", nodes=True))

    def mirror_set(
        self, session: int, port: int | None = None, *, group: int | None = None, truncate: int | None = None
    ) -> None:
        """Set where the clones of a mirror session go, cut to `truncate` bytes; without port and group, nowhere."""
        session = units.below(session, 0, 2**32, "a mirror session")
        if port is None and group is None:
            self.act(op.MirrorDelete(session, "either"))
            return
        to = (
            None if port is None else _port(port),
            None if group is None else units.below(group, 0, 2**16, "a multicast group"),
            (),
            0,
            None if truncate is None else units.below(truncate, 0, 2**32, "a length in bytes"),
        )
        self.act(op.MirrorSet(session, to, "either"))

    @property
    def drops(self) -> dict[str, int]:
        """Packets dropped so far, by reason."""
        return dict(self.act(op.DropsRead()))


class SwitchApi(PipelineApi):
    """A switch: its program, and its fixed parts."""

    def __init__(
        self,
        name: str,
        core: _Core,
        ports: Sequence[str],
        note: Callable[[int, str, str, float], None],
    ) -> None:
        self.name = name
        self.ports = tuple(ports)
        """Name of the node at the other end of each port, by number."""
        self._core: _Core = core
        self._note = note

    @property
    def now(self) -> int:
        """The time, in picoseconds."""
        return self._core.now()

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
        self.recorder(quantity, labels, units.given_time(period))

    def note(self, quantity: str, value: float) -> None:
        """Put a value in the result's table of what controllers note (`Result.notes`). A unit is the end of the name."""
        if not isinstance(quantity, str) or not quantity.isprintable():
            raise TidegateError(f"{quantity!r} is not the name of a quantity; give text that can be printed")
        self._note(self.now, self.name, quantity, float(value))

    @property
    def statistics(self) -> dict[str, int]:
        """Where every packet is: received, generated, packet_outs and made are transmitted, packet_ins, dropped and held."""
        counts: dict[str, int] = self.act(op.StatisticsRead())
        return counts

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
        scheduler, quantum, shaper, queues = self.act(op.PortRead(_port(port)))
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
        self.act(op.PortSet(_port(port), port_spec(to)))

    def queue_write(self, port: int, queue: int, **changes: Any) -> None:
        """Change a queue: keywords as `Queue` has them."""
        now = self.port_read(port)
        if not 0 <= queue < len(now.queues):
            raise TidegateError(
                f"port {port} of {self.name} has {counted(len(now.queues), 'queue')}; there is no queue {queue}"
            )
        try:
            changed = replace(now.queues[queue], **changes)
        except TypeError as error:
            raise TidegateError(f"a queue has no such setting: {error}") from None
        queues = (*now.queues[:queue], changed, *now.queues[queue + 1 :])
        self.port_write(port, replace(now, queues=queues))

    def queue_read(self, port: int, queue: int = 0) -> QueueState:
        """What waits in a queue."""
        queue = units.below(queue, 0, 2**32, "a queue's number")
        return QueueState(**self.act(op.QueueRead(_port(port), queue)))

    # Packets.

    def generator_set(self, number: int, *, port: int, packet: bytes, period: units.Time) -> None:
        """Make a packet every `period`, as if it came in by `port`; or change the generator of that number."""
        self.act(op.GeneratorSet(number, (port, packet, units.time(period))))

    def generator_period(self, number: int, period: units.Time) -> None:
        """Change a generator's period. The time since its last packet counts for the new one."""
        found = self.act(op.GeneratorRead(number))
        if found is None:
            raise TidegateError(f"{self.name} has no generator {number}")
        port, packet, _ = found
        self.act(op.GeneratorSet(number, (port, packet, units.time(period))))

    def generator_stop(self, number: int) -> None:
        """Stop a generator."""
        self.act(op.GeneratorStop(number))

    def packet_out(self, packet: bytes) -> None:
        """Send a packet into the switch by the controller's port."""
        if not isinstance(packet, bytes):
            raise TidegateError(f"a packet is bytes, not a {type(packet).__name__}")
        self.act(op.PacketOut(packet))


def _port(number: int) -> int:
    return units.below(number, 0, 512, "a port's number")


def _cell(index: int) -> int:
    """A cell of a register or counter, for the engine, which knows how many there are."""
    return units.below(index, 0, 2**32, "a cell's index")


def _cells(start: int, count: int | None) -> tuple[int, int | None]:
    return _cell(start), None if count is None else units.below(count, 0, 2**32, "a number of cells")


def _thousandths(rate: float) -> int:
    """Thousandths a second of a rate a second: what the reference switch's command line makes of a rate with 12 digits."""
    million = round(rate / 1e6, 12)
    if not 0 <= million < 1e12:
        raise TidegateError(f"{million} is not a rate; it is in bytes or packets per microsecond")
    scaled = million * 1e9
    whole = math.floor(scaled)
    return whole + (scaled - whole >= 0.5)


def _entry(keys: Sequence[tuple[str, MatchKind, int]], row: Sequence[Any]) -> TableEntry:
    handle, found, priority, to, counts, *_ = row
    match = tuple(_match(kind, width, one) for (_, kind, width), one in zip(keys, found, strict=True))
    values: tuple[int, ...] = ()
    if isinstance(to, list):
        action = "set"
    elif isinstance(to[1], int):
        action, values = to[0], (to[1],)
    else:
        action, values = to[0], tuple(int.from_bytes(value) for value in to[1])
    return TableEntry(handle, match, priority, action, values, *counts)


def _match(kind: MatchKind, width: int, found: bytes | tuple[bytes, bytes] | None) -> Match:
    if isinstance(found, tuple):
        return Match(kind, int.from_bytes(found[0]), int.from_bytes(found[1]))
    if found is not None:
        return Match(kind, int.from_bytes(found), None)
    if kind == "optional":
        return Match(kind, None, None)
    return Match(kind, 0, (1 << width) - 1 if kind == "range" else 0)
