"""Times, rates and sizes with units.

Throughout Tidegate a quantity is text with its unit (`"20 ms"`, `"500 Mbit/s"`, `"128 KiB"`), or as a whole
number of the base unit: picoseconds, bit/s, bytes.

>>> time("20 ms"), rate("500 Mbit/s"), size("128 KiB")
(20000000000, 500000000, 131072)

A number that cannot be meant so is refused:

>>> given_time(1)
Traceback (most recent call last):
...
tidegate._core.TidegateError: 1 what? say '1 s'; a whole number alone is a time in picoseconds
"""

from __future__ import annotations

import operator

from tidegate import _core

Time = str | int
Rate = str | int
Size = str | int


def counted(number: int, one: str, several: str = "") -> str:
    """A number of things in words; `several` where it is not `one` with an s.

    >>> counted(1, "run"), counted(0, "run"), counted(12, "entry", "entries")
    ('1 run', '0 runs', '12 entries')
    """
    return f"{number} {one if number == 1 else several or f'{one}s'}"


PS_PER_S = 1_000_000_000_000

MOST_DIGITS = 20
"""Python itself refuses to read a number of some thousands."""

LEAST_GIVEN = 1000
"""Below it a bare number is not meant in picoseconds or bit/s, but somebody has left out the unit."""


def below(value: int, least: int, end: int, what: str) -> int:
    """Check a whole number from `least` to `end` - 1; raises `TidegateError` for anything else."""
    number = _index(value)
    if number is None or not least <= number < end:
        raise _core.TidegateError(f"{value!r} is not {what}: give a whole number from {least} to {end - 1}")
    return number


def _index(value: int) -> int | None:
    """A whole number, also one of NumPy's; `None` for anything else, and for True and False."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


def _whole(value: int, what: str, unit: str, least: int = 0) -> int:
    """`unit` is for the message to somebody who has left it out."""
    number = _index(value)
    bare = number is not None and 0 < number < least
    if bare or isinstance(value, float):
        raise _core.TidegateError(f"{value} what? say '{value} {unit}'; a whole number alone is {what}")
    return below(value, 0, 2**63, f"{what}, nor text with a unit")


def decimal(text: str) -> int | None:
    """The whole number that decimal digits write; `None` for other text, and for more digits than a quantity of 64 bits has."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None


def is_text(text: str) -> bool:
    """Whether it can be written: a lone surrogate is no character."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def seed(value: int) -> int:
    """Check a seed of random numbers; raises `TidegateError` for anything else."""
    return below(value, 0, 2**64, "a seed")


def time(value: Time) -> int:
    """Convert a time to picoseconds; raises `TidegateError` for anything else."""
    return _time(value, 0)


def given_time(value: Time, least: int = LEAST_GIVEN) -> int:
    """As `time`, for user input: a bare number above 0 and below `least` lacks a unit and is refused."""
    return _time(value, least)


def run_time(value: Time) -> int:
    """As `time`, of how long a network runs: nobody means less than a microsecond by a bare number."""
    return _time(value, PS_PER_S // 1_000_000)


def _time(value: Time, least: int) -> int:
    if isinstance(value, str):
        return _core.parse_time(value)
    return _whole(value, "a time in picoseconds", "s", least)


def rate(value: Rate) -> int:
    """Convert a rate to bit/s; raises `TidegateError` for anything else."""
    return _rate(value, 0)


def given_rate(value: Rate) -> int:
    """As `rate`, for user input: a bare number below 1000 lacks a unit and is refused."""
    return _rate(value, LEAST_GIVEN)


def _rate(value: Rate, least: int) -> int:
    if isinstance(value, str):
        return _core.parse_rate(value)
    return _whole(value, "a rate in bit/s", "Mbit/s", least)


def size(value: Size) -> int:
    """Convert a size to bytes; raises `TidegateError` for anything else."""
    if isinstance(value, str):
        return _core.parse_size(value)
    return _whole(value, "a size in bytes", "kB")


def show_time(ps: int) -> str:
    """`20 ms`."""
    return _core.show_time(ps)


def show_rate(bps: int) -> str:
    """`500 Mbit/s`."""
    return _core.show_rate(bps)
