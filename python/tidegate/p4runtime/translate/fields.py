"""Values and matches as operations have them (bytes, numbers, text), as the bytes that messages have."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tidegate._core import TidegateError, parse_match, parse_value
from tidegate.control.objects import Bits, Key
from tidegate.p4runtime.errors import P4Error, invalid
from tidegate.p4runtime.schema import Field
from tidegate.p4runtime.values import Codec, canonical
from tidegate.units import counted

NS = 1000
"""Picoseconds."""


def bits(value: Bits, width: int, what: str) -> bytes:
    """A value without leading zeros. Whether it fits is for the switch to say, whose widths may be others."""
    if isinstance(value, bytes):
        return value.lstrip(b"\0") or b"\0"
    if isinstance(value, str):
        try:
            return parse_value(value, width)
        except TidegateError as error:
            raise invalid(f"{what}: {error}") from None
    try:
        number = operator.index(value)
    except TypeError:
        raise invalid(f"{what}: {value!r} is not a value; give a whole number, or text") from None
    if number < 0:
        raise invalid(f"{what}: {value} is negative")
    return canonical(number)


def match(field: Field, given: Key) -> Any:
    """A match of one field as rows of tables have it: `None` for one that holds for every value."""
    what, width = f"key `{field.name}`", field.codec.width
    if given is None or isinstance(given, tuple):
        return _canonical(field, given and _pair(field, given, what))
    if field.kind in ("exact", "optional") and not isinstance(given, str):
        return bits(given, width, what)
    try:
        return parse_match(str(given), field.kind, width)
    except TidegateError as error:
        raise invalid(f"{what}: {error}") from None


def _pair(field: Field, given: tuple[Bits, Bits], what: str) -> tuple[bytes, bytes]:
    if field.kind in ("exact", "optional") or len(given) != 2:
        raise invalid(f"{what}: {_not_of(field)}")
    return bits(given[0], field.codec.width, what), bits(given[1], field.codec.width, what)


def _not_of(field: Field) -> str:
    return f"this is not a match of kind {field.kind.capitalize()}"


def _canonical(field: Field, found: tuple[bytes, bytes] | None) -> Any:
    if found is None:
        if field.kind == "exact":
            raise P4Error.about("", _not_of(field), field=field.name)
        return None
    first, second = (int.from_bytes(one) for one in found)
    if field.kind == "range":
        return None if first == 0 and second == (1 << field.codec.width) - 1 else found
    if second == 0:
        return None
    return (canonical(first & second), found[1]) if field.kind == "ternary" else found


def key(fields: Sequence[Field], given: Sequence[Key], owner: str) -> list[Any]:
    """One match for each field."""
    found = list(given)
    if len(found) != len(fields):
        keys, names = counted(len(fields), "key"), ", ".join(field.name for field in fields)
        raise P4Error.about(owner, f"{owner} has {keys} ({names}), not {len(found)}", field="key")
    return [match(field, one) for field, one in zip(fields, found, strict=True)]


def encoded(value: Bits, codec: Codec, what: str) -> bytes:
    """A value as a controller writes it: a name, where the type has names."""
    return codec.to_client(bits(value, codec.width, what))


def whole(rate: int, what: str) -> int:
    """Units a second of thousandths."""
    if rate % 1000:
        raise P4Error.unsupported(
            f"{what} of {rate / 1000} is not a whole number", "P4Runtime has whole bytes or packets a second"
        )
    return rate // 1000


def nanoseconds(time: int) -> int:
    """Of picoseconds."""
    if time % NS:
        raise P4Error.unsupported(
            f"a timeout of {time} ps is not a whole number of ns", "P4Runtime has whole ns"
        )
    return time // NS
