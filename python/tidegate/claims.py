"""Claims about a system: the statement, the measured value, whether it holds and, if not, why.

`between` and `mean_below` make a claim of values by name, as `medians` gives them over the seeds, or `least`, `most` and `furthest`
where a statement is about each run; what they say in `measured` names the values outside the bounds. A claim of our own has
nothing in `published`: only what somebody else wrote is called published.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

Row = dict[str, Any]
"""A row of an experiment's table, by column."""

Column = str | Callable[[Row], float | None]
"""A column of rows, or what makes a value of a row."""

NOTHING = "nothing to measure"
"""Measured by a claim that the rows of a run are not about."""
NO_NUMBERS = "no numbers"
"""Measured by a claim all of whose values are NaN."""

Of = Literal["paper", "standard", "peer", "ours"]
"""Whose claim: the system's paper, a standard (an RFC), a peer (another tool or a kernel that was measured), or Tidegate's."""


@dataclass(frozen=True)
class Claim:
    """What is claimed, beside what was measured: the median over the seeds, or the worst where it is claimed of each run (`never`)."""

    id: str
    of: Of
    statement: str
    published: str | None
    """What was published; `None` for a claim of ours."""
    measured: str
    holds: bool
    why: str | None = None
    """Why it does not hold. Always `None` where it holds."""

    def __post_init__(self) -> None:
        if (self.of == "ours") != (self.published is None):
            raise ValueError(f"claim {self.id}: a claim of ours has nothing published, every other one has")
        # NumPy's, where NumPy has compared.
        object.__setattr__(self, "holds", bool(self.holds))
        if self.holds:
            object.__setattr__(self, "why", None)

    @property
    def judged(self) -> bool:
        """Whether the run has rows that the claim is about."""
        return self.measured != NOTHING


class Format(Protocol):
    """Format of values."""

    @property
    def most_named(self) -> int | None:
        """How many of the values that are not as claimed are named; `None`: all."""

    def range(self, values: list[float]) -> str:
        """Write a range."""

    def one(self, value: float) -> str:
        """A single value."""


@dataclass(frozen=True)
class Unit:
    """`0.12 to 0.34 ms`, or one figure if all are the same."""

    unit: str = ""
    most_named: int | None = 8

    def range(self, values: list[float]) -> str:
        """Write a range."""
        low, high = min(values), max(values)
        return (
            f"{low:.3g} {self.unit}".rstrip()
            if low == high
            else f"{low:.3g} to {high:.3g} {self.unit}".rstrip()
        )

    def one(self, value: float) -> str:
        """A single value; its unit is in the range."""
        return f"{value:.3g}"


@dataclass(frozen=True)
class Percents:
    """`-9.1 % to -2.0 %`, of shares of 1."""

    most_named: int | None = None

    def range(self, values: list[float]) -> str:
        """Write a range."""
        low, high = percent(min(values)), percent(max(values))
        return low if low == high else f"{low} to {high}"

    def one(self, value: float) -> str:
        """A single value."""
        return percent(value)


def percent(share: float) -> str:
    """`-9.1 %`."""
    return f"{100 * share:+.1f} %"


def between(
    id: str,
    of: Of,
    statement: str,
    values: Mapping[str, float],
    low: float = -math.inf,
    high: float = math.inf,
    *,
    published: str | None = None,
    why: str | None = None,
    form: Format = Unit(),
) -> Claim:
    """The claim that each of these values is from `low` to `high`. Without values it is not judged, and no claim of a run."""
    beyond = {name: value for name, value in values.items() if not low <= value <= high}
    numbers = [value for value in values.values() if not math.isnan(value)]
    measured = form.range(numbers) if numbers else NO_NUMBERS if values else NOTHING
    if beyond:
        named = [f"{name} ({form.one(value)})" for name, value in beyond.items()]
        most = len(named) if form.most_named is None else form.most_named
        more = f" and {len(named) - most} more of {len(values)}" if len(named) > most else ""
        measured += "; beyond: " + ", ".join(named[:most]) + more
    if not values:
        why = "the run has nothing to measure it by"
    return Claim(id, of, statement, published, measured, holds=bool(values) and not beyond, why=why)


def mean_below(
    id: str,
    of: Of,
    statement: str,
    values: Mapping[str, float],
    high: float,
    *,
    published: str | None = None,
    why: str | None = None,
) -> Claim:
    """The claim that the mean of these values is below `high`. Without values it is not judged."""
    mean = float(np.mean(list(values.values()))) if values else math.nan
    measured = f"{mean:.3g}" if values else NOTHING
    return Claim(id, of, statement, published, measured, holds=mean < high, why=why)


def median(rows: list[Row], case: str, column: str) -> float:
    """The median of a column over the seeds."""
    return float(statistics.median(row[column] for row in rows if row["case"] == case))


def medians(rows: Iterable[Row], column: Column, label: Callable[[Row], str]) -> dict[str, float]:
    """The medians of a column over the rows of one label (that is, over the seeds)."""
    return {name: float(np.median(values)) for name, values in _values(rows, column, label).items()}


def medians_of_times(rows: Iterable[Row], column: Column, label: Callable[[Row], str]) -> dict[str, float]:
    """The medians of a time over the rows of one label; infinite if it is `None` in one of them: there it never came."""
    return {
        name: math.inf if None in values else float(np.median(values))
        for name, values in _values(rows, column, label).items()
    }


def least(rows: Iterable[Row], column: Column, label: Callable[[Row], str]) -> dict[str, float]:
    """The smallest value of a column over the rows of one label, over all seeds: what must not happen with any."""
    return {name: float(min(values)) for name, values in _values(rows, column, label).items()}


def most(rows: Iterable[Row], column: Column, label: Callable[[Row], str]) -> dict[str, float]:
    """The largest, as `least`."""
    return {name: float(max(values)) for name, values in _values(rows, column, label).items()}


def furthest(rows: Iterable[Row], column: Column, label: Callable[[Row], str]) -> dict[str, float]:
    """The one that is furthest from 0, as `least`."""
    return {name: float(max(values, key=abs)) for name, values in _values(rows, column, label).items()}


def _values(rows: Iterable[Row], column: Column, label: Callable[[Row], str]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row[column] if isinstance(column, str) else column(row))
    return groups


def spread(rows: list[Row], case: str, column: str) -> tuple[float, float]:
    """Smallest and largest of a column over the seeds."""
    values = [row[column] for row in rows if row["case"] == case]
    return min(values), max(values)
