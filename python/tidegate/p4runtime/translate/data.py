"""Numbers of the switch as `p4.P4Data` of the types that a P4Info has for digests and for cells of registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import MOST_BITS, Schema
from tidegate.p4runtime.values import canonical, checked


def bits(schema: Schema, spec: Any) -> tuple[int, bool]:
    """Bits of a type's numbers, and whether they are signed. A P4Info does not say how many a translated type has."""
    types = schema.p4info.type_info
    match spec.WhichOneof("type_spec"):
        case "bool":
            return 1, False
        case "serializable_enum":
            return types.serializable_enums[spec.serializable_enum.name].underlying_type.bitwidth, False
        case "new_type":
            declared = types.new_types[spec.new_type.name]
            translated = declared.HasField("translated_type")
            return (MOST_BITS, False) if translated else bits(schema, declared.original_type)
        case "enum" | "error":
            return 32, False
    plain = spec.bitstring
    signed = plain.WhichOneof("type_spec") == "int"
    return (plain.int.bitwidth, True) if signed else (plain.bit.bitwidth, False)


def writer(schema: Schema, spec: Any) -> Callable[[int], Any]:
    """What makes the `p4.P4Data` of a number of the switch."""
    kind = spec.WhichOneof("type_spec")
    if kind == "bool":
        return lambda number: p4.P4Data(bool=bool(number))
    if kind == "serializable_enum":
        return lambda number: p4.P4Data(enum_value=canonical(number))
    if kind in ("enum", "error"):
        names = _names(schema, spec)
        return lambda number: p4.P4Data(**{kind: names[number] if number < len(names) else str(number)})
    if kind == "new_type":
        codec = schema.codec(spec.new_type.name, 0)
        return lambda number: p4.P4Data(bitstring=codec.to_client(canonical(number)))
    width, signed = bits(schema, spec)
    if signed:
        return lambda number: p4.P4Data(bitstring=canonical_signed(number, width))
    return lambda number: p4.P4Data(bitstring=canonical(number))


def number(schema: Schema, spec: Any, data: Any) -> int:
    """The number that the switch has for a `p4.P4Data` of a type."""
    kind = data.WhichOneof("data")
    if kind == "bool":
        return int(data.bool)
    if kind in ("enum", "error"):
        name, names = getattr(data, kind), _names(schema, spec)
        return names.index(name) if name in names else int(name)
    value: bytes = getattr(data, kind)
    if spec.WhichOneof("type_spec") == "new_type":
        return schema.codec(spec.new_type.name, 0).number(value)
    width, signed = bits(schema, spec)
    return int.from_bytes(value, signed=signed) & ((1 << width) - 1)


def cell(schema: Schema, spec: Any, data: Any, name: str) -> bytes:
    """What a client writes to a cell of register `name`, as the switch keeps it."""
    kind = spec.WhichOneof("type_spec")
    wanted = {"bool": "bool", "serializable_enum": "enum_value"}.get(kind, "bitstring")
    if data.WhichOneof("data") != wanted:
        raise invalid(f"a cell of register {name} is a {wanted}")
    if wanted == "bool":
        return canonical(int(data.bool))
    value: bytes = getattr(data, wanted)
    if kind == "new_type":
        value = schema.codec(spec.new_type.name, 0).to_switch(value, f"register {name}")
    return unsigned(value, *bits(schema, spec), name)


def _names(schema: Schema, spec: Any) -> list[str]:
    types = schema.p4info.type_info
    if spec.WhichOneof("type_spec") == "error":
        return list(types.error.members)
    return [member.name for member in types.enums[spec.enum.name].members]


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
