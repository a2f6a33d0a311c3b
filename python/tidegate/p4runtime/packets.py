"""Packets to and from the controller: the controller header becomes metadata, and metadata the header."""

from __future__ import annotations

from typing import Any

from tidegate.p4 import Program
from tidegate.p4runtime.errors import invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Field, Schema
from tidegate.p4runtime.values import canonical, checked


class Packets:
    """Puts controller headers on and takes them off."""

    def __init__(self, schema: Schema, program: Program) -> None:
        widths = {direction: dict(fields) for direction, fields in program.core.controller_headers()}
        self._fields: dict[str, list[tuple[Field, int]]] = {
            direction: [(field, widths[direction][field.name]) for field in fields]
            for direction, fields in schema.headers.items()
        }

    def header_bytes(self, direction: str) -> int:
        """Bytes of a header."""
        return (sum(width for _, width in self._fields.get(direction, ())) + 7) // 8

    def packet_in(self, data: bytes, more: int) -> Any:
        """`p4.PacketIn` of a packet as the program sends it, with `more` zeros behind."""
        size = self.header_bytes("packet_in")
        message = p4.PacketIn(payload=data[size:] + bytes(more))
        fields = self._fields.get("packet_in", [])
        left = size * 8
        head = int.from_bytes(data[:size].ljust(size, b"\0"))
        for field, width in fields:
            left -= width
            value = canonical(head >> left & ((1 << width) - 1))
            message.metadata.add(metadata_id=field.id, value=field.codec.to_client(value))
        return message

    def packet_out(self, message: Any) -> bytes:
        """The packet that a controller's message means."""
        fields = self._fields.get("packet_out", [])
        given = {item.metadata_id: item.value for item in message.metadata}
        if len(given) != len(message.metadata) or len(given) != len(fields):
            wanted = ", ".join(f"{field.id} ({field.name})" for field, _ in fields) or "none"
            raise invalid(f"a packet-out has the metadata {wanted}, each once")
        head, bits = 0, 0
        for field, width in fields:
            if field.id not in given:
                raise invalid(f"a packet-out has the metadata {field.id} ({field.name}); it is missing")
            what = f"metadata {field.name}"
            value = checked(field.codec.to_switch(given[field.id], what), width, what)
            head, bits = head << width | int.from_bytes(value), bits + width
        payload: bytes = message.payload
        return (head << (-bits % 8)).to_bytes((bits + 7) // 8) + payload
