"""Registers, counters, meters, multicast groups and mirror sessions of a switch behind a P4Runtime server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate._core import TidegateError
from tidegate.control.api import Words
from tidegate.p4runtime.client_tables import RemoteTables
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.errors import Code
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Array
from tidegate.p4runtime.values import canonical


class RemoteObjects(RemoteTables):
    """Its arrays, and where copies go."""

    # Registers, counters, meters.

    def _span(self, array: Array, start: int, count: int | None) -> range:
        end = array.size if count is None else start + count
        if not 0 <= start <= end <= array.size:
            raise TidegateError(f"{array.name} has {array.size} cells; {start} to {end} are too many")
        return range(start, end)

    def _cells(self, kind: str, field: str, array: Array, span: range) -> list[Any]:
        """Entries of some cells of an array: by one request if they are most of it, or one for each."""
        if len(span) * 4 > array.size:
            found = self.connection.read(p4.Entity(**{kind: {field: array.id}}))
            return [getattr(entity, kind) for entity in found[span.start : span.stop]]
        asked = [p4.Entity(**{kind: {field: array.id, "index": {"index": index}}}) for index in span]
        found = self.connection.read(*asked) if asked else []
        return [getattr(entity, kind) for entity in found]

    def register_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells: shape (cells,), or (cells, words) with the least significant word first if wider than 64 bits."""
        array = self._register(name)
        bits = array.spec.bitstring
        width = bits.int.bitwidth or bits.bit.bitwidth
        words, signed = -(-width // 64), bits.WhichOneof("type_spec") == "int"
        cells = self._cells("register_entry", "register_id", array, self._span(array, start, count))
        mask = (1 << width) - 1
        numbers = [int.from_bytes(cell.data.bitstring, signed=signed) & mask for cell in cells]
        if words == 1:
            return np.array(numbers, dtype=np.uint64)
        data = b"".join(number.to_bytes(8 * words, "little") for number in numbers)
        return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, words)

    def register_write(self, name: str, values: npt.ArrayLike, start: int = 0) -> None:
        """Write cells from `start` on, in the shape in which `register_read` gives them."""
        array = self._register(name)
        given = np.asarray(values)
        if given.size and (given.dtype.kind not in "iu" or (given < 0).any()):
            raise TidegateError("register cells are whole numbers that are not negative")
        bits = array.spec.bitstring
        width, signed = bits.int.bitwidth or bits.bit.bitwidth, bits.WhichOneof("type_spec") == "int"
        words = -(-width // 64)
        rows = given.astype("<u8").reshape(-1, words)
        span = self._span(array, start, len(rows))
        numbers = [int.from_bytes(row.tobytes(), "little") for row in rows]
        if any(number >> width for number in numbers):
            raise TidegateError(f"a value does not fit in the {width} bits of register {array.name}")
        if signed:
            numbers = [number - (1 << width) if number >> (width - 1) else number for number in numbers]
        self._write(
            "MODIFY",
            *[
                p4.Entity(
                    register_entry={
                        "register_id": array.id,
                        "index": {"index": index},
                        "data": {"bitstring": _signed(number) if signed else canonical(number)},
                    }
                )
                for index, number in zip(span, numbers, strict=True)
            ],
        )

    def counter_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells of a counter: shape (cells, 2), packets and bytes."""
        array: Array = self._object(self._schema.counters, name, "counter")
        cells = self._cells("counter_entry", "counter_id", array, self._span(array, start, count))
        pairs = [(cell.data.packet_count, cell.data.byte_count) for cell in cells]
        return np.array(pairs, dtype=np.uint64).reshape(-1, 2)

    def counter_reset(self, name: str) -> None:
        """Set all cells of a counter to zero; of a direct counter, too."""
        with contextlib.suppress(TidegateError):
            array: Array = self._object(self._schema.counters, name, "counter")
            self._write("MODIFY", p4.Entity(counter_entry={"counter_id": array.id, "data": {}}))
            return
        direct: Array = self._object(self._schema.direct_counters, name, "counter")
        asked = p4.Entity(direct_counter_entry={"table_entry": {"table_id": direct.table}})
        found = self.connection.read(asked)
        for entity in found:
            entity.direct_counter_entry.data.CopyFrom(p4.CounterData())
        self._write("MODIFY", *found)

    def _meter(
        self, name: str, index: int | None, committed: float, burst: int, peak: float, peak_burst: int
    ) -> None:
        config = p4.MeterConfig(cir=round(committed), cburst=burst, pir=round(peak), pburst=peak_burst)
        known = [
            m for m in self._schema.direct_meters.values() if m.name == name or m.name.endswith(f".{name}")
        ]
        if known and not any(m.name == name for m in self._schema.meters.values()):
            table = self._schema.tables[known[0].table]
            if index is not None:
                entries = [self._by_handle(table, index)]
            else:
                found = self.connection.read(p4.Entity(table_entry={"table_id": table.id}))
                entries = [entity.table_entry for entity in found]
            self._write(
                "MODIFY",
                *[p4.Entity(direct_meter_entry={"table_entry": e, "config": config}) for e in entries],
            )
            return
        array: Array = self._object(self._schema.meters, name, "meter")
        entry = p4.MeterEntry(meter_id=array.id, config=config)
        if index is not None:
            entry.index.index = index
            entry.index.SetInParent()
        self._write("MODIFY", p4.Entity(meter_entry=entry))

    # Copies.

    def multicast_set(self, group: int, copies: Iterable[int | tuple[int, int]]) -> None:
        """Make a multicast group: ports, or pairs of port and replication id; in place of what the group was."""
        entry = p4.MulticastGroupEntry(multicast_group_id=group)
        for copy in copies:
            port, instance = (copy, 0) if isinstance(copy, int) else copy
            entry.replicas.add(port=canonical(port), instance=instance)
        self._put("multicast_group_entry", entry)

    def _put(self, kind: str, entry: Any) -> None:
        """Writes an entry of the replication engine, whether or not there is one."""
        entity = p4.Entity(packet_replication_engine_entry={kind: entry})
        try:
            self.connection.write(("MODIFY", entity))
        except Refused as refused:
            if not refused.errors or refused.errors[0].canonical_code != Code.NOT_FOUND:
                raise
            self._write("INSERT", entity)

    def _drop(self, kind: str, entry: Any) -> None:
        entity = p4.Entity(packet_replication_engine_entry={kind: entry})
        try:
            self.connection.write(("DELETE", entity))
        except Refused as refused:
            if not refused.errors or refused.errors[0].canonical_code != Code.NOT_FOUND:
                raise

    def multicast_delete(self, group: int) -> None:
        """Remove a multicast group."""
        self._drop("multicast_group_entry", p4.MulticastGroupEntry(multicast_group_id=group))

    def mirror_set(
        self, session: int, port: int | None = None, *, group: int | None = None, truncate: int | None = None
    ) -> None:
        """Set where the clones of a mirror session go, cut to `truncate` bytes; without port and group, nowhere.

        The copies of a group are those that it has now: P4Runtime has no sessions that follow a group.
        """
        entry = p4.CloneSessionEntry(session_id=session, packet_length_bytes=truncate or 0)
        if port is None and group is None:
            self._drop("clone_session_entry", entry)
            return
        if group is not None:
            asked = {"multicast_group_entry": {"multicast_group_id": group}}
            (found,) = self.connection.read(p4.Entity(packet_replication_engine_entry=asked))
            entry.replicas.extend(found.packet_replication_engine_entry.multicast_group_entry.replicas)
        if port is not None:
            entry.replicas.add(port=canonical(port))
        self._put("clone_session_entry", entry)


def _signed(number: int) -> bytes:
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, signed=True)
