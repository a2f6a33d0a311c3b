"""Values as bytes, and what a translated type makes of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate.p4runtime.errors import Code, P4Error, invalid

Translations = Mapping[str, Mapping[str, int]]
"""For each URI of `@p4runtime_translation`, which may be empty, the numbers that a controller's names stand for; those of `PORTS` are for
types of ports whose URI has no names of its own."""

PORTS = "port"
"""The key of names of ports."""


def is_port(uri: str, type_name: str) -> bool:
    """Whether a translated type is that of ports. A P4Info does not say it, so the URI or the type has the word `port` in its name."""
    words = re.findall("[A-Z]?[a-z]+|[A-Z]+(?![a-z])", f"{uri} {type_name}")
    return any(word.lower() == "port" for word in words)


def canonical(number: int) -> bytes:
    """A number in as few bytes as it takes."""
    return number.to_bytes((number.bit_length() + 7) // 8 or 1)


def checked(value: bytes, width: int, what: str) -> bytes:
    """A value of so many bits without leading zeros; `OUT_OF_RANGE` if it is empty or has more bits."""
    if not value:
        raise P4Error(Code.OUT_OF_RANGE, f"{what} is empty; a value has at least one byte")
    short = value.lstrip(b"\0") or b"\0"
    bits = len(short) * 8 - 8 + short[0].bit_length()
    if bits > width:
        shown = short[:20].hex() + ("..." if len(short) > 20 else "")
        raise P4Error(Code.OUT_OF_RANGE, f"0x{shown} does not fit in the {width} bits of {what}")
    return short


@dataclass(frozen=True)
class Codec:
    """Converts a value between a controller and the switch. This one leaves it as it is, if it fits."""

    width: int
    translated: bool = False
    """Whether the switch's own has other bits."""

    def to_switch(self, value: bytes, what: str) -> bytes:
        """The switch's value."""
        return checked(value, self.width, what)

    def to_client(self, value: bytes) -> bytes:
        """The controller's value."""
        return value

    def number(self, value: bytes) -> int:
        """The switch's number for a controller's value."""
        return int.from_bytes(self.to_switch(value, "a value"))


@dataclass(frozen=True)
class Names(Codec):
    """Names of a translated type: those that the server was given, and decimal numbers for all others.

    A value has one form, so that it is read as it was written: a number that has a name is refused, and so are leading zeros.
    """

    type: str = ""
    """Its URI, or its name if that is empty."""
    numbers: Mapping[str, int] = field(default_factory=dict)

    def to_switch(self, value: bytes, what: str) -> bytes:
        """The number that a name stands for."""
        try:
            name = value.decode()
        except UnicodeDecodeError:
            raise invalid(f"{what} is not text, as the type {self.type} wants it") from None
        number = self.numbers.get(name)
        if number is None:
            if not (name.isascii() and name.isdecimal() and len(name) <= 40):
                known = ", ".join(list(self.numbers)[:10]) or "none"
                raise invalid(
                    f"{what}: {name[:40]!r} is neither a number nor a name of {self.type} (there are: {known})"
                )
            number = int(name)
        found = checked(canonical(number), self.width, what)
        written = self.to_client(found)
        if written != value:
            raise invalid(f"{what}: {name[:40]!r} is written {written.decode()!r} in {self.type}")
        return found

    def to_client(self, value: bytes) -> bytes:
        """The name of a number."""
        number = int.from_bytes(value)
        for name, known in self.numbers.items():
            if known == number:
                return name.encode()
        return str(number).encode()
