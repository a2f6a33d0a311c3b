"""Times, rates and sizes with units.

Throughout Tidegate a quantity is text with its unit (`"20 ms"`, `"500 Mbit/s"`, `"128 KiB"`), or as a whole
number of the base unit: picoseconds, bit/s, bytes.
"""

from __future__ import annotations

import operator

from tidegate import _core

Time = str | int
Rate = str | int
Size = str | int

PS_PER_S = 1_000_000_000_000


def below(value: int, least: int, end: int, what: str) -> int:
    """Check a whole number from `least` to `end` - 1; raises `TidegateError` for anything else."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not least <= number < end:
        raise _core.TidegateError(f"{value!r} is not {what}: give a whole number from {least} to {end - 1}")
    return number


def _whole(value: int, what: str) -> int:
    return below(value, 0, 2**63, f"{what}, nor text with a unit")


def seed(value: int) -> int:
    """Check a seed of random numbers; raises `TidegateError` for anything else."""
    return below(value, 0, 2**64, "a seed")


def time(value: Time) -> int:
    """Convert a time to picoseconds; raises `TidegateError` for anything else."""
    parsed = _core.parse_time(value) if isinstance(value, str) else value
    return _whole(parsed, "a time in picoseconds")


def rate(value: Rate) -> int:
    """Convert a rate to bit/s; raises `TidegateError` for anything else."""
    parsed = _core.parse_rate(value) if isinstance(value, str) else value
    return _whole(parsed, "a rate in bit/s")


def size(value: Size) -> int:
    """Convert a size to bytes; raises `TidegateError` for anything else."""
    parsed = _core.parse_size(value) if isinstance(value, str) else value
    return _whole(parsed, "a size in bytes")


def show_time(ps: int) -> str:
    """`20 ms`."""
    return _core.show_time(ps)


def show_rate(bps: int) -> str:
    """`500 Mbit/s`."""
    return _core.show_rate(bps)
