"""Data of digests: the program's fields as `p4.P4Data`, and back."""

from __future__ import annotations

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
        return writer(schema, spec)(rest.pop())

    return one(spec)


def data_fields(schema: Schema, number: int, data: Any) -> tuple[str, list[tuple[str, int]]]:
    """Name and fields of a digest, as switches give them."""
    name, spec = schema.digests[number]
    match spec.WhichOneof("type_spec"):
        case "struct":
            members = schema.p4info.type_info.structs[spec.struct.name].members
            names, specs = [member.name for member in members], [member.type_spec for member in members]
            values = data.struct.members
        case "tuple":
            specs, values = spec.tuple.members, data.tuple.members
            names = [f"f{index}" for index in range(len(values))]
        case _:
            names, specs, values = ["f0"], [spec], [data]
    parts = zip(names, specs, values, strict=True)
    return name, [(key, one_number(schema, part, value)) for key, part, value in parts]
