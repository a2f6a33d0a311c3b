"""Parser value sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.control import operations as op
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.errors import invalid
from tidegate.p4runtime.matches import add_matches, matches
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Schema, known
from tidegate.p4runtime.tables import MODIFY, Op


class ValueSets:
    """Reads and writes of value sets."""

    def __init__(self, schema: Schema, device: Device) -> None:
        self._schema = schema
        self._device = device

    def write(self, kind: int, entry: Any) -> Op:
        """All members of a set, in place of what was in it."""
        name, fields = known(self._schema.value_sets, entry.value_set_id, "value set")
        if kind != MODIFY:
            raise invalid("a value set can only be modified")
        members = [matches(fields, member.match, f"value set {name}") for member in entry.members]
        return op.ValueSetFill(name, members)

    def read(self, entry: Any) -> Iterator[Any]:
        """The sets that a request asks for."""
        sets = self._schema.value_sets
        if entry.value_set_id:
            sets = {entry.value_set_id: known(sets, entry.value_set_id, "value set")}
        for number, (name, fields) in sets.items():
            message = p4.ValueSetEntry(value_set_id=number)
            for member in self._device.act(op.ValueSetRead(name)):
                add_matches(message.members.add().match, fields, member)
            yield p4.Entity(value_set_entry=message)
