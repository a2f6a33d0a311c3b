"""Counters, meters and registers: arrays of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tidegate.control import operations as op
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Array, Schema, known, named
from tidegate.p4runtime.translate import data, fields
from tidegate.p4runtime.translate.base import DELETE, MODIFY, Act, Look, Part, Translation, Updates
from tidegate.p4runtime.translate.entries import Op, colours
from tidegate.p4runtime.translate.handles import Handles
from tidegate.p4runtime.translate.matches import counts
from tidegate.p4runtime.translate.meters import config_message, config_of, meter_rates, rates_of
from tidegate.p4runtime.translate.tables import Tables, counter_entity, meter_entity

SLICE = 4096
"""Cells that are read or set at a time: packets wait meanwhile."""
SLICE_WORDS = 32_768
"""Words of 64 bits of these, if cells are wide."""

At = int | tuple[int, int] | None
"""A cell, the first of several and how many, or all."""


def slices(start: int, count: int, words: int = 1) -> Iterator[tuple[int, int]]:
    """First cells and numbers of cells that are read or set at a time, of cells of so many words."""
    step = max(1, min(SLICE, SLICE_WORDS // max(1, words)))
    for first in range(start, start + count, step):
        yield first, min(step, start + count - first)


def cell(array: Array, entry: Any) -> int | None:
    """The cell that an entry is about; `None`: all."""
    if not entry.HasField("index"):
        return None
    index: int = entry.index.index
    if index < 0:
        raise invalid(f"the index {index} of {array.name} is negative")
    if index >= array.size:
        raise P4Error(Code.OUT_OF_RANGE, f"{array.name} has {array.size} cells; {index} is out of range")
    return index


def asked(arrays: dict[int, Array], number: int, entry: Any, what: str) -> list[tuple[Array, int, int]]:
    """The arrays that a request asks for, of each the first cell and how many."""
    if number == 0:
        return [(array, 0, array.size) for array in arrays.values()]
    array = known(arrays, number, what)
    index = cell(array, entry)
    return [(array, 0, array.size) if index is None else (array, index, 1)]


class Arrays(Translation):
    """Cells of counters, meters and registers; a client's direct ones too, by their entries' handles."""

    def __init__(self, schema: Schema, act: Act, tables: Tables, look: Look | None = None) -> None:
        super().__init__(schema, act, look)
        self._tables = tables

    def write_counter(self, kind: int, entry: Any) -> Op | None:
        """An update of a counter; without data nothing changes."""
        array = known(self._schema.counters, entry.counter_id, "counter")
        self._modify(kind, "counter")
        index = cell(array, entry)
        if not entry.HasField("data"):
            return None
        return op.CounterSet(array.name, index, *counts(entry.data))

    def write_meter(self, kind: int, entry: Any) -> Op:
        """An update of a meter; without a configuration all packets are green."""
        array = known(self._schema.meters, entry.meter_id, "meter")
        self._modify(kind, "meter")
        if entry.HasField("counter_data"):
            raise colours()
        rates = meter_rates(entry.config, array.spec) if entry.HasField("config") else []
        return op.MeterSet(array.name, cell(array, entry), rates)

    def write_register(self, kind: int, entry: Any) -> Op:
        """An update of a register: a cell, or all of them. To insert one is to set it, as in the specification's example."""
        array = known(self._schema.registers, entry.register_id, "register")
        if kind == DELETE:
            raise invalid("a register has the cells that it has: they can only be modified")
        index = cell(array, entry)
        value = data.cell(self._schema, array.spec, entry.data, array.name)
        return op.RegisterSet(array.name, index, value)

    def parts(self, operation: Op) -> Iterator[tuple[Op, int]]:
        """An update of all cells as updates of as many as are set at a time, each with its share of a slice; others as they are.

        Fields of the members of a value set count as cells, and so do copies, members of a group and actions of a set.
        """
        array, words = self._whole(operation)
        if array is None:
            yield operation, _parts(operation)
            return
        assert isinstance(operation, op.RegisterSet | op.CounterSet | op.MeterSet)
        for first, some in slices(0, array.size, words):
            yield replace(operation, at=(first, some)), _share(some, words)

    def cells(self, operation: Op) -> int:
        """The shares of an update of all cells together; 0 for others, of which a message has no more than it has bytes."""
        array, words = self._whole(operation)
        return 0 if array is None else _share(array.size, words)

    def _whole(self, operation: Op) -> tuple[Array | None, int]:
        """The array of which an update sets all cells, and words of each."""
        match operation:
            case op.RegisterSet(at=None):
                array = named(self._schema.registers, operation.register, "register")
                return array, self._words(array)
            case op.CounterSet(at=None):
                return self._schema.counter(operation.counter), 2
            case op.MeterSet(at=None):
                return self._schema.meter(operation.meter), 1
        return None, 0

    def _words(self, array: Array) -> int:
        """Words of 64 bits of a register's cell."""
        return -(-data.bits(self._schema, array.spec)[0] // 64)

    @staticmethod
    def _modify(kind: int, what: str) -> None:
        if kind != MODIFY:
            raise invalid(f"a {what} can only be modified")

    def read_counters(self, entry: Any) -> Iterator[Part]:
        """The counters that a request asks for."""
        for array, start, count in asked(self._schema.counters, entry.counter_id, entry, "counter"):
            for first, some in slices(start, count, 2):
                found = self._act(op.CounterRead(array.name, first, some))
                yield Part(some, partial(self._counts, array, first, found), len(found))

    @staticmethod
    def _counts(array: Array, start: int, found: bytes) -> Iterator[Any]:
        words = np.frombuffer(found, dtype="<u8")
        for index, (packets, size) in enumerate(words.reshape(-1, 2).tolist(), start):
            yield p4.Entity(
                counter_entry=p4.CounterEntry(
                    counter_id=array.id,
                    index=p4.Index(index=index),
                    data=p4.CounterData(packet_count=packets, byte_count=size),
                )
            )

    def read_meters(self, entry: Any) -> Iterator[Part]:
        """The meters that a request asks for."""
        if entry.HasField("counter_data"):
            raise colours()
        for array, start, count in asked(self._schema.meters, entry.meter_id, entry, "meter"):
            for first, some in slices(start, count):
                cells = self._act(op.MeterRead(array.name, first, some))
                yield Part(some, partial(self._rates, array, first, cells))

    @staticmethod
    def _rates(array: Array, start: int, cells: Sequence[Any]) -> Iterator[Any]:
        for index, rates in enumerate(cells, start):
            message = p4.MeterEntry(meter_id=array.id, index=p4.Index(index=index))
            if rates is not None:
                message.config.CopyFrom(config_message(rates))
            yield p4.Entity(meter_entry=message)

    def read_registers(self, entry: Any) -> Iterator[Part]:
        """The cells that a request asks for."""
        for array, start, count in asked(self._schema.registers, entry.register_id, entry, "register"):
            for first, some in slices(start, count, self._words(array)):
                found, words = self._act(op.RegisterRead(array.name, first, some))
                yield Part(some, partial(self._cells, array, first, found, words), len(found))

    def _cells(self, array: Array, start: int, found: bytes, words: int) -> Iterator[Any]:
        numbers: list[int]
        if words == 1:
            numbers = np.frombuffer(found, dtype="<u8").tolist()
        else:
            size = 8 * words
            numbers = [int.from_bytes(found[at : at + size], "little") for at in range(0, len(found), size)]
        write = data.writer(self._schema, array.spec)
        for index, number in enumerate(numbers, start):
            yield p4.Entity(
                register_entry=p4.RegisterEntry(
                    register_id=array.id, index=p4.Index(index=index), data=write(number)
                )
            )

    # Operations as updates, and entities as answers.

    @staticmethod
    def _span(what: str, array: Array, name: str, start: int, count: int | None) -> range:
        """Cells of an array; an error has the name by which it was asked for."""
        end = array.size if count is None else start + count
        if start < 0 or end < start or end > array.size:
            which = {None: f"those from {start} on are too many", 1: f"{start} is out of range"}
            said = which.get(count, f"{count} from {start} on are too many")
            owner = f"{what} `{name}`"
            why = f"{owner} has {array.size} cells"
            raise P4Error.about(owner, why, code=Code.OUT_OF_RANGE, field="from", cure=said)
        return range(start, end)

    def _read(self, kind: str, number: str, array: Array, span: range) -> list[Any]:
        """Entries of cells of an array: by one request if they are most of it, or one for each."""
        if not span:
            return []
        if len(span) * 4 > array.size:
            found = self._look(p4.Entity(**{kind: {number: array.id}}))
            return [getattr(entity, kind) for entity in found[span.start : span.stop]]
        asked = [p4.Entity(**{kind: {number: array.id, "index": {"index": index}}}) for index in span]
        return [getattr(entity, kind) for entity in self._look(*asked)]

    @staticmethod
    def _cell(entry: Any, what: str, array: Array, at: int | None) -> None:
        """Which cell an entry is of; `None`: all."""
        if at is None:
            return
        Arrays._span(what, array, array.name, at, 1)
        entry.index.index = at
        entry.index.SetInParent()

    def _places(self, what: str, array: Array, at: At) -> Sequence[int | None]:
        """The cells that have an update each; `None`: all."""
        if not isinstance(at, tuple):
            return [at]
        span = self._span(what, array, array.name, *at)
        return [None] if len(span) == array.size else span

    @staticmethod
    def _handle(name: str, at: At) -> int | None:
        """The entry of a direct counter or meter; `None`: all."""
        if isinstance(at, tuple):
            raise invalid(f"`{name}` is direct: set that of one entry by its handle")
        return at

    def _register(self, name: str) -> Array:
        return named(self._schema.registers, name, "register")

    def register_read(self, operation: op.RegisterRead) -> Any:
        """Words of cells, and words of each."""
        array = self._register(operation.register)
        words = self._words(array)
        span = self._span("register", array, operation.register, operation.start, operation.count)
        cells = self._read("register_entry", "register_id", array, span)
        numbers = [data.number(self._schema, array.spec, cell.data) for cell in cells]
        if words == 1:
            return np.array(numbers, dtype="<u8").tobytes(), words
        return b"".join(number.to_bytes(8 * words, "little") for number in numbers), words

    def _register_entity(self, array: Array, at: int | None, number: int) -> Any:
        value = data.writer(self._schema, array.spec)(number)
        entry = p4.RegisterEntry(register_id=array.id, data=value)
        self._cell(entry, "register", array, at)
        return p4.Entity(register_entry=entry)

    def register_write(self, operation: op.RegisterWrite) -> Updates:
        """A `MODIFY` of each cell."""
        array, words = self._register(operation.register), operation.words
        width, owner = data.bits(self._schema, array.spec)[0], f"register `{operation.register}`"
        size = 8 * -(-width // 64)
        if len(words) % size:
            raise invalid(f"a cell of {owner} has {size // 8} words of 64 bits")
        numbers = [int.from_bytes(words[at : at + size], "little") for at in range(0, len(words), size)]
        if any(number >> width for number in numbers):
            raise P4Error(Code.OUT_OF_RANGE, f"a value does not fit in the {width} bits of {owner}")
        span = self._span("register", array, operation.register, operation.start, len(numbers))
        cells = zip(span, numbers, strict=True)
        return Updates([(MODIFY, self._register_entity(array, at, number)) for at, number in cells])

    def register_set(self, operation: op.RegisterSet) -> Updates:
        """A `MODIFY` of all cells, or of each that is meant."""
        array = self._register(operation.register)
        width, owner = data.bits(self._schema, array.spec)[0], f"register `{array.name}`"
        number = int.from_bytes(fields.bits(operation.value, width, "`value`"))
        if number >> width:
            why = f"{number:#x} does not fit in the {width} bits of {owner}"
            raise P4Error.about("", why, code=Code.OUT_OF_RANGE, field=owner)
        places = self._places("register", array, operation.at)
        return Updates([(MODIFY, self._register_entity(array, at, number)) for at in places])

    def _direct(self, what: str, array: Array, name: str, handle: int) -> Any:
        """The key of the entry that a direct counter or meter counts for."""
        try:
            return self._tables.entry_key(self._schema.tables[array.table], handle)
        except P4Error:
            raise no_entry(what, name, handle) from None

    def _read_direct(self, what: str, array: Array, name: str, start: int, count: int | None) -> Any:
        if count != 1:
            raise invalid(f"`{name}` is direct: read that of one entry by its handle")
        key = self._direct(what, array, name, start)
        kind = f"direct_{what}_entry"
        found = self._look(p4.Entity(**{kind: {"table_entry": key}}))
        if not found:
            raise no_entry(what, name, start)
        return getattr(found[0], kind)

    def _array_cells(
        self, what: str, array: Array, name: str, start: int, count: int | None
    ) -> Sequence[Any]:
        """Cells of a counter or meter; of a direct one, that of an entry."""
        if array.table:
            return [self._read_direct(what, array, name, start, count)]
        span = self._span(what, array, name, start, count)
        return self._read(f"{what}_entry", f"{what}_id", array, span)

    def counter_read(self, operation: op.CounterRead) -> bytes:
        """Packets and bytes of each cell, as words."""
        array, start, count = self._schema.counter(operation.counter), operation.start, operation.count
        cells = self._array_cells("counter", array, operation.counter, start, count)
        pairs = [(cell.data.packet_count, cell.data.byte_count) for cell in cells]
        return np.array(pairs, dtype="<u8").tobytes()

    def counter_set(self, operation: op.CounterSet) -> Updates:
        """A `MODIFY` of all cells, or of each that is meant; of direct counters, of each entry's."""
        array, packets, size = (
            self._schema.counter(operation.counter),
            operation.packets,
            operation.bytes,
        )
        if array.table:
            handle = self._handle(operation.counter, operation.at)
            keys = self._keys("counter", array, operation.counter, handle)
            return Updates([(MODIFY, counter_entity(key, packets, size)) for key in keys])

        def one(at: int | None) -> Any:
            counts = p4.CounterData(packet_count=packets, byte_count=size)
            entry = p4.CounterEntry(counter_id=array.id, data=counts)
            self._cell(entry, "counter", array, at)
            return p4.Entity(counter_entry=entry)

        return Updates([(MODIFY, one(at)) for at in self._places("counter", array, operation.at)])

    def _keys(self, what: str, array: Array, name: str, at: int | None) -> list[Any]:
        """Keys of the entries of a direct counter's or meter's table: of one handle, or all."""
        if at is not None:
            return [self._direct(what, array, name, at)]
        return [Handles.key(entry) for entry in self._tables.entries(array.table)]

    def meter_read(self, operation: op.MeterRead) -> Any:
        """Rates of each cell."""
        array, start, count = self._schema.meter(operation.meter), operation.start, operation.count
        cells = self._array_cells("meter", array, operation.meter, start, count)
        return [rates_of(cell.config) if cell.HasField("config") else None for cell in cells]

    def meter_set(self, operation: op.MeterSet) -> Updates:
        """A `MODIFY` of all cells, or of each that is meant; of a direct meter, of an entry's."""
        array = self._schema.meter(operation.meter)
        if array.table:
            handle = self._handle(operation.meter, operation.at)
            if handle is None:
                raise invalid(f"`{operation.meter}` is a direct meter; set the rates of each entry")
            key = self._direct("meter", array, operation.meter, handle)
            return Updates([(MODIFY, meter_entity(key, operation.rates))])

        def one(at: int | None) -> Any:
            entry = p4.MeterEntry(meter_id=array.id)
            if operation.rates:
                entry.config.CopyFrom(config_of(operation.rates))
            self._cell(entry, "meter", array, at)
            return p4.Entity(meter_entry=entry)

        return Updates([(MODIFY, one(at)) for at in self._places("meter", array, operation.at)])


def _share(cells: int, words: int) -> int:
    """What cells of so many words count as."""
    return max(cells, cells * words * SLICE // SLICE_WORDS)


MOST_PARTS = 1024
"""What an update counts for that may take away a group or session: four of them are done while packets wait."""


def _parts(operation: Op) -> int:
    """What an update sets that has many parts."""
    match operation:
        case op.ValueSetFill():
            # One takes as long as two cells.
            return 2 * sum(len(member) for member in operation.members)
        # What is replaced or removed may have as many as there can be.
        case op.GroupSet() if operation.put == "new":
            return len(operation.shares)
        case op.MulticastSet() if operation.put == "new":
            return len(operation.copies)
        case op.MirrorSet() if operation.put == "new":
            return len(operation.to[2])
        case op.GroupSet() | op.MulticastSet() | op.MirrorSet():
            return MOST_PARTS
        case op.GroupDelete() | op.MulticastDelete() | op.MirrorDelete():
            return MOST_PARTS
        case op.TableAdd() | op.TableSet() if isinstance(operation.to, list):
            return len(operation.to)
    return 0


def no_entry(what: str, name: str, handle: int) -> P4Error:
    """Of a direct counter or meter, asked for by this name."""
    kind = "direct counter" if what == "counter" else what
    return P4Error(Code.NOT_FOUND, f"the table of {kind} `{name}` has no entry {handle}")
