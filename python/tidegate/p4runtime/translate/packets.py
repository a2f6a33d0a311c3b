"""Packets to and from the controller: the controller header becomes metadata, and metadata the header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.control import operations as op
from tidegate.p4runtime.errors import P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Field, Schema
from tidegate.p4runtime.values import canonical, checked


class Packets:
    """Puts controller headers on and takes them off."""

    def __init__(self, schema: Schema, widths: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """`widths` are those of headers' fields in packets; a client knows those that are not translated."""
        self._fields: dict[str, list[tuple[Field, int | None]]] = {
            direction: [
                (field, _width(field) if widths is None else widths[direction][field.name])
                for field in fields
            ]
            for direction, fields in schema.headers.items()
        }

    def _header(self, direction: str) -> list[tuple[Field, int]]:
        fields = []
        for field, width in self._fields.get(direction, []):
            if width is None:
                raise P4Error.unsupported(
                    f"field {field.name} of the {direction} header is translated, so that its bits are not known",
                    "use tidegate.p4runtime.Connection",
                )
            fields.append((field, width))
        return fields

    # At a server.

    def packet_in(self, data: bytes, more: int) -> Any:
        """`p4.PacketIn` of a packet as the program sends it, with `more` zeros behind."""
        fields = self._header("packet_in")
        size = header_bytes(fields)
        message = p4.PacketIn(payload=data[size:] + bytes(more))
        for field, value in _split(fields, data[:size]):
            message.metadata.add(metadata_id=field.id, value=field.codec.to_client(value))
        return message

    def packet_out(self, message: Any) -> bytes:
        """The packet that a controller's message means."""
        fields = self._header("packet_out")
        given = {item.metadata_id: item.value for item in message.metadata[: len(fields)]}
        if len(given) != len(message.metadata) or len(given) != len(fields):
            wanted = ", ".join(f"{field.id} ({field.name})" for field, _ in fields) or "none"
            raise invalid(f"a packet-out has the metadata {wanted}, each once")
        values = []
        for field, width in fields:
            if field.id not in given:
                raise invalid(f"a packet-out has the metadata {field.id} ({field.name}); it is missing")
            what = f"metadata {field.name}"
            values.append(checked(field.codec.to_switch(given[field.id], what), width, what))
        payload: bytes = message.payload
        return _joined(fields, values) + payload

    # At a client.

    def message(self, operation: op.PacketOut) -> Any:
        """`p4.StreamMessageRequest` of a packet with its controller header."""
        fields, packet = self._header("packet_out"), operation.packet
        size = header_bytes(fields)
        message = p4.StreamMessageRequest()
        for field, value in _split(fields, packet[:size]):
            message.packet.metadata.add(metadata_id=field.id, value=value)
        message.packet.payload = packet[size:]
        return message

    def data(self, message: Any) -> bytes:
        """The packet of a `p4.PacketIn`, with its controller header."""
        fields = self._header("packet_in")
        given = {item.metadata_id: item.value for item in message.metadata}
        payload: bytes = message.payload
        return _joined(fields, [given.get(field.id, b"\0") for field, _ in fields]) + payload


def _width(field: Field) -> int | None:
    return None if field.codec.translated else field.codec.width


def header_bytes(fields: list[tuple[Field, int]]) -> int:
    """Bytes of a header."""
    return (sum(width for _, width in fields) + 7) // 8


def _split(fields: list[tuple[Field, int]], head: bytes) -> list[tuple[Field, bytes]]:
    """Values of a header's fields."""
    left = header_bytes(fields) * 8
    bits = int.from_bytes(head.ljust(left // 8, b"\0"))
    found = []
    for field, width in fields:
        left -= width
        found.append((field, canonical(bits >> left & ((1 << width) - 1))))
    return found


def _joined(fields: list[tuple[Field, int]], values: list[bytes]) -> bytes:
    """A header of its fields' values."""
    head, bits = 0, 0
    for (_, width), value in zip(fields, values, strict=True):
        head, bits = head << width | int.from_bytes(value), bits + width
    return (head << (-bits % 8)).to_bytes((bits + 7) // 8)
