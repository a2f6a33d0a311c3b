"""Times, rates and sizes as people write them.

Everywhere in Tidegate a quantity is given as text with its unit (`"20 ms"`, `"500 Mbit/s"`, `"128 KiB"`), or as a whole
number of the base unit: picoseconds, bit/s, bytes.
"""

from __future__ import annotations

from tidegate import _core

Time = str | int
Rate = str | int
Size = str | int

PS_PER_S = 1_000_000_000_000


def _whole(value: int, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _core.TidegateError(
            f"{value!r} is not {what}: write it as text with a unit, or as a whole number"
        )
    if not 0 <= value < 2**64:
        raise _core.TidegateError(f"{value} is not {what}: it must lie between 0 and 2^64")
    return value


def time(value: Time) -> int:
    """Picoseconds of a time; raises `TidegateError` if it is none."""
    return _core.parse_time(value) if isinstance(value, str) else _whole(value, "a time in picoseconds")


def rate(value: Rate) -> int:
    """Bit/s of a rate; raises `TidegateError` if it is none."""
    return _core.parse_rate(value) if isinstance(value, str) else _whole(value, "a rate in bit/s")


def size(value: Size) -> int:
    """Bytes of a size; raises `TidegateError` if it is none."""
    return _core.parse_size(value) if isinstance(value, str) else _whole(value, "a size in bytes")


def show_time(ps: int) -> str:
    """`20 ms`."""
    return _core.show_time(ps)


def show_rate(bps: int) -> str:
    """`500 Mbit/s`."""
    return _core.show_rate(bps)
