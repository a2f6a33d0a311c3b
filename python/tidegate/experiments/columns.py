"""A column of an experiment's rows as one number: which rows, and the median or another aggregate of them."""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments.registry import UNITS
from tidegate.suggest import did_you_mean

AGGREGATES = ("median", "mean", "min", "max", "p1..p99")


def unit(column: str) -> str:
    """The unit of a column, by its name; empty: none is known.

    >>> unit("rtt_ms_p99"), unit("timeouts_per_s")
    ('ms', '1/s')
    """
    parts = column.split("_")
    for before, part in reversed(list(zip(["", *parts], parts, strict=False))):
        if part in UNITS:
            return f"1/{UNITS[part]}" if before == "per" else UNITS[part]
    return ""


def axis_label(name: str) -> str:
    """A column or parameter with its unit, as an axis of a figure has it.

    >>> axis_label("queue_ms, p95"), axis_label("flows")
    ('queue_ms, p95 (ms)', 'flows')
    """
    found = unit(name.partition(",")[0])
    return f"{name} ({found})" if found else name


@dataclass(frozen=True)
class Column:
    """A column and its aggregate: `goodput_mbps`, `queue_delay_ms_p99:max`.

    >>> Column.parse("rtt_ms:mean").of([{"rtt_ms": 2.0}, {"rtt_ms": 4.0}])
    3.0
    """

    name: str
    aggregate: str = "median"

    @classmethod
    def parse(cls, text: str) -> Column:
        """Read `NAME[:AGGREGATE]`."""
        name, _, aggregate = text.partition(":")
        aggregate = aggregate or "median"
        if aggregate not in AGGREGATES and re.fullmatch(r"p[1-9]\d?", aggregate) is None:
            raise TidegateError(
                f"{text}: there is no aggregate {aggregate!r}; known: {', '.join(AGGREGATES)}"
            )
        return cls(name, aggregate)

    def __str__(self) -> str:
        return self.name if self.aggregate == "median" else f"{self.name}, {self.aggregate}"

    def of(self, rows: Sequence[Row]) -> float:
        """The number; rows that lack it, or have NaN there, do not count. NaN where no row has it."""
        values = self.values(rows)
        if not values:
            return float("nan")
        if self.aggregate == "mean":
            both = math.inf in values and -math.inf in values
            return math.nan if both else statistics.fmean(values)
        if self.aggregate in ("min", "max"):
            return min(values) if self.aggregate == "min" else max(values)
        part = 50.0 if self.aggregate == "median" else float(self.aggregate[1:])
        if all(map(math.isfinite, values)):
            return float(np.percentile(values, part))
        return _percentile(sorted(values), part)

    def values(self, rows: Sequence[Row]) -> list[float]:
        """The numbers of the rows that have one."""
        there = (row.get(self.name) for row in rows)
        numbers = (float(value) for value in there if is_number(value))
        return [value for value in numbers if not math.isnan(value)]

    def demand(self, rows: Sequence[Row]) -> None:
        """Raise `TidegateError` unless it is a column of numbers."""
        known = [
            name
            for name in dict.fromkeys(itertools.chain(*rows))
            if any(is_number(row.get(name)) for row in rows)
        ]
        if self.name not in known:
            raise TidegateError(
                f"the rows have no column of numbers {self.name!r}; {did_you_mean(self.name, known)}they have {', '.join(known)}"
            )


def _percentile(ordered: Sequence[float], part: float) -> float:
    """As NumPy's, which gives NaN where an infinite value is near, also one that has no part in it.

    >>> _percentile([1.0, 2.0, math.inf], 50)
    2.0
    """
    place, rest = divmod((len(ordered) - 1) * part, 100)
    low, high = ordered[int(place)], ordered[int(place) + (rest > 0)]
    return low if low == high else low * (1 - rest / 100) + high * (rest / 100)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it is a number; truth values are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def chosen(rows: Sequence[Row], where: Sequence[tuple[str, str]]) -> list[Row]:
    """The rows that have these values, as they are printed."""
    for name, value in where:
        known = list(dict.fromkeys(itertools.chain(*rows)))
        if rows and name not in known:
            raise TidegateError(
                f"--where {name}={value}: the rows have no column {name!r}; {did_you_mean(name, known)}they have {', '.join(known)}"
            )
        there = list(dict.fromkeys(str(row.get(name)) for row in rows))
        if rows and value not in there:
            raise TidegateError(f"--where {name}={value}: no row has it; {name} is {', '.join(there[:20])}")
        rows = [row for row in rows if str(row.get(name)) == value]
    return list(rows)


def condition(text: str) -> tuple[str, str]:
    """Read `NAME=VALUE`."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise TidegateError(f"--where {text}: write it as name=value")
    return name, value
