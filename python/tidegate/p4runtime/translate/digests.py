"""Data of digests: the program's fields as `p4.P4Data`, and back."""

from __future__ import annotations

from typing import Any

from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.values import canonical


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
        number = rest.pop()
        if kind == "bool":
            return p4.P4Data(bool=bool(number))
        if kind == "serializable_enum":
            return p4.P4Data(enum_value=canonical(number))
        if kind == "new_type":
            return p4.P4Data(bitstring=schema.codec(spec.new_type.name, 0).to_client(canonical(number)))
        return p4.P4Data(bitstring=canonical(number))

    return one(spec)


def data_fields(schema: Schema, number: int, data: Any) -> tuple[str, list[tuple[str, int]]]:
    """Name and fields of a digest, as switches give them."""
    name, spec = schema.digests[number]
    if spec.WhichOneof("type_spec") == "struct":
        members = schema.p4info.type_info.structs[spec.struct.name].members
        names, values = [member.name for member in members], data.struct.members
    else:
        values = data.tuple.members
        names = [f"f{index}" for index in range(len(values))]
    return name, [(key, _number(value)) for key, value in zip(names, values, strict=True)]


def _number(data: Any) -> int:
    kind = data.WhichOneof("data")
    return int(data.bool) if kind == "bool" else int.from_bytes(getattr(data, kind))
