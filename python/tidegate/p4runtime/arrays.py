"""Counters, meters and registers: arrays of cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tidegate.control import operations as op
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.matches import counts
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.meters import config_message, meter_rates
from tidegate.p4runtime.schema import Array, Schema, known
from tidegate.p4runtime.tables import MODIFY, Op
from tidegate.p4runtime.values import canonical, checked

# Cells that are read from the engine at a time.
SLICE = 65_536


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


class Arrays:
    """Reads and writes of counters, meters and registers."""

    def __init__(self, schema: Schema, device: Device) -> None:
        self._schema = schema
        self._device = device

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
            raise P4Error(Code.UNIMPLEMENTED, "meters do not count by colour")
        rates = meter_rates(entry.config, array.spec) if entry.HasField("config") else []
        return op.MeterSet(array.name, cell(array, entry), rates)

    def write_register(self, kind: int, entry: Any) -> Op:
        """An update of a register: a cell, or all of them."""
        array = known(self._schema.registers, entry.register_id, "register")
        self._modify(kind, "register")
        index = cell(array, entry)
        if entry.data.WhichOneof("data") != "bitstring":
            raise invalid(f"a cell of register {array.name} is a bitstring")
        width, signed = self.width(array)
        return op.RegisterSet(array.name, index, unsigned(entry.data.bitstring, width, signed, array.name))

    @staticmethod
    def _modify(kind: int, what: str) -> None:
        if kind != MODIFY:
            raise invalid(f"a {what} can only be modified")

    @staticmethod
    def width(array: Array) -> tuple[int, bool]:
        """Bits of a register's cell, and whether they are a signed number."""
        bits = array.spec.bitstring
        signed = bits.WhichOneof("type_spec") == "int"
        return (bits.int.bitwidth, True) if signed else (bits.bit.bitwidth, False)

    def read_counters(self, entry: Any) -> Iterator[Any]:
        """The counters that a request asks for."""
        for array, start, count in asked(self._schema.counters, entry.counter_id, entry, "counter"):
            words = np.frombuffer(self._device.act(op.CounterRead(array.name, start, count)), dtype="<u8")
            for index, (packets, size) in enumerate(words.reshape(-1, 2).tolist(), start):
                yield p4.Entity(
                    counter_entry=p4.CounterEntry(
                        counter_id=array.id,
                        index=p4.Index(index=index),
                        data=p4.CounterData(packet_count=packets, byte_count=size),
                    )
                )

    def read_meters(self, entry: Any) -> Iterator[Any]:
        """The meters that a request asks for."""
        if entry.HasField("counter_data"):
            raise P4Error(Code.UNIMPLEMENTED, "meters do not count by colour")
        for array, start, count in asked(self._schema.meters, entry.meter_id, entry, "meter"):
            cells = self._device.act(op.MeterRead(array.name, start, count))
            for index, rates in enumerate(cells, start):
                message = p4.MeterEntry(meter_id=array.id, index=p4.Index(index=index))
                if rates is not None:
                    message.config.CopyFrom(config_message(rates))
                yield p4.Entity(meter_entry=message)

    def read_registers(self, entry: Any) -> Iterator[Any]:
        """The cells that a request asks for."""
        for array, start, count in asked(self._schema.registers, entry.register_id, entry, "register"):
            for first in range(start, start + count, SLICE):
                yield from self._cells(array, first, min(SLICE, start + count - first))

    def _cells(self, array: Array, start: int, count: int) -> Iterator[Any]:
        data, words = self._device.act(op.RegisterRead(array.name, start, count))
        width, signed = self.width(array)
        numbers: list[int]
        if words == 1:
            numbers = np.frombuffer(data, dtype="<u8").tolist()
        else:
            size = 8 * words
            numbers = [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]
        for index, number in enumerate(numbers, start):
            value = canonical_signed(number, width) if signed else canonical(number)
            yield p4.Entity(
                register_entry=p4.RegisterEntry(
                    register_id=array.id, index=p4.Index(index=index), data=p4.P4Data(bitstring=value)
                )
            )


def unsigned(value: bytes, width: int, signed: bool, name: str) -> bytes:
    """A cell's value as the switch keeps it: a signed one in two's complement of the cell's bits."""
    if not signed:
        return checked(value, width, f"register {name}")
    if not value:
        raise P4Error(Code.OUT_OF_RANGE, f"a value of register {name} is empty")
    number = int.from_bytes(value, signed=True)
    if not -(1 << (width - 1)) <= number < 1 << (width - 1):
        raise P4Error(Code.OUT_OF_RANGE, f"the value does not fit in the {width} bits of register {name}")
    return canonical(number & ((1 << width) - 1))


def canonical_signed(number: int, width: int) -> bytes:
    """The shortest two's complement of a number whose highest of `width` bits is its sign."""
    if number >> (width - 1):
        number -= 1 << width
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, signed=True)
