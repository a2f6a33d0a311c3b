"""Data of digests: the program's fields as `p4.P4Data`, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.data import number as one_number
from tidegate.p4runtime.translate.data import writer


def data_message(schema: Schema, spec: Any, values: list[int]) -> Any:
    """`p4.P4Data` of values, of which it takes as many as the type has."""
    rest = list(reversed(values))

    def one(spec: Any) -> Any:
        kind = spec.WhichOneof("type_spec")
        if kind in ("struct", "tuple"):
            members = spec.tuple.members
            if kind == "struct":
                members = [m.type_spec for m in schema.p4info.type_info.structs[spec.struct.name].members]
            return p4.P4Data(**{kind: p4.P4StructLike(members=[one(member) for member in members])})
        if kind == "header":
            is_valid = bool(rest.pop())
            fields = [one(member).bitstring for _, member in _header(schema, spec)]
            return p4.P4Data(header=p4.P4Header(is_valid=is_valid, bitstrings=fields if is_valid else ()))
        return writer(schema, spec)(rest.pop())

    return one(spec)


def data_fields(schema: Schema, number: int, data: Any) -> tuple[str, list[tuple[str, int]]]:
    """Name and fields of a digest, as switches give them."""
    name, spec = schema.digests[number]
    fields = list(_fields(schema, "", spec, data))
    if not all(key for key, _ in fields):
        fields = [(f"f{index}", value) for index, (_, value) in enumerate(fields)]
    return name, fields


def _fields(schema: Schema, name: str, spec: Any, data: Any) -> Iterator[tuple[str, int]]:
    """The numbers in a `p4.P4Data` with their names; those of tuples and of a number alone have none."""
    prefix = f"{name}." if name else ""
    match spec.WhichOneof("type_spec"):
        case "struct":
            members = schema.p4info.type_info.structs[spec.struct.name].members
            for member, value in zip(members, data.struct.members, strict=True):
                yield from _fields(schema, prefix + member.name, member.type_spec, value)
        case "tuple":
            for part, value in zip(spec.tuple.members, data.tuple.members, strict=True):
                yield from _fields(schema, "", part, value)
        case "header":
            members = _header(schema, spec)
            values = list(data.header.bitstrings) if data.header.is_valid else [b"\0"] * len(members)
            yield f"{prefix}$valid$", int(data.header.is_valid)
            for (key, part), value in zip(members, values, strict=True):
                yield prefix + key, one_number(schema, part, p4.P4Data(bitstring=value))
        case _:
            yield name, one_number(schema, spec, data)


def _header(schema: Schema, spec: Any) -> list[tuple[str, Any]]:
    """Names and types of a header's fields."""
    members = schema.p4info.type_info.headers[spec.header.name].members
    return [(member.name, p4.P4DataTypeSpec(bitstring=member.type_spec)) for member in members]
