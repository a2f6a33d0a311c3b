"""The plan of an experiment: cases, measurements, claims and figure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from tidegate import units
from tidegate._core import TidegateError
from tidegate.claims import Claim, Row
from tidegate.experiments import user_code
from tidegate.network import Network
from tidegate.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


OF_RUN = ("case", "seed")
"""The columns that say of which run a row is."""
MOST = 1e9
"""The largest value of a parameter: in milliseconds, eleven days."""


@dataclass(frozen=True)
class Case:
    """One network of an experiment; `measure` returns one or more rows of the table from its result."""

    name: str
    network: Network | Callable[[int], Network]
    """A network, or what makes it from the run's seed: for random starts or pairs, and for experiments of many networks."""
    until: units.Time
    measure: Callable[[Result], Row | list[Row]]

    def rows(self, result: Result) -> list[Row]:
        """What `measure` returns, as a list of plain rows. Raises `TidegateError` for what is no row."""
        measured = self.measure(result)
        found = measured if isinstance(measured, list) else [measured]
        for row in found:
            if not isinstance(row, Mapping):
                raise TidegateError(
                    f"{user_code.defined(self.measure)} returns {_a(row)}; return a row, as a dict of columns, or a list of rows"
                )
            for name in OF_RUN:
                if name in row:
                    raise TidegateError(
                        f"{user_code.defined(self.measure)} returns a row with a column {name!r}, which each row has of its run; "
                        "give it another name"
                    )
        return [{name: self._plain(name, value) for name, value in row.items()} for row in found]

    def _plain(self, column: Any, value: Any) -> Any:
        """A value as JSON has it."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, list | tuple):
            return [self._plain(column, one) for one in value]
        if isinstance(value, dict):
            return {name: self._plain(name, one) for name, one in value.items()}
        if not isinstance(column, str) or not isinstance(value, str | int | float | None):
            raise TidegateError(
                f"{user_code.defined(self.measure)} returns a row with {_a(value)} as {column!r}; the columns of a row "
                "are named by text, and have numbers, text, true, false or None"
            )
        return value


def _a(value: Any) -> str:
    return f"{value!r:.40} ({type(value).__name__})"


@dataclass(frozen=True)
class Run:
    """The rows and tables of a case that has run."""

    case: str
    seed: int
    rows: list[Row] | None
    """`None`: the run was interrupted, and its tables end there."""
    tables: dict[str, pl.DataFrame] = field(repr=False)
    warnings: tuple[str, ...] = ()


TEXTS = ("id", "of", "statement", "published", "measured", "why")
"""Of a claim."""


@dataclass(frozen=True)
class Plan:
    """Cases, claims and figure of an experiment."""

    cases: list[Case]
    claims: Callable[[list[Row]], list[Claim]]
    draw: Callable[[list[Run]], Figure]

    def judged(self, rows: list[Row]) -> list[Claim]:
        """What `claims` returns, but for claims that these rows are not about.

        Raises `TidegateError` for what is no list of claims, or a claim that is no text.
        """
        found = self.claims(rows)
        if not isinstance(found, list):
            raise TidegateError(
                f"{user_code.defined(self.claims)} returns {_a(found)}; return a list of claims"
            )
        for claim in found:
            if not isinstance(claim, Claim):
                raise TidegateError(
                    f"{user_code.defined(self.claims)} returns a list with {_a(claim)}; return a list of claims"
                )
            for name in TEXTS:
                value = getattr(claim, name)
                if not isinstance(value, str) and not (value is None and name in ("published", "why")):
                    raise TidegateError(
                        f"{user_code.defined(self.claims)} returns a claim with {_a(value)} as {name}; give text"
                    )
        return [claim for claim in found if claim.judged]

    def drawn(self, runs: list[Run]) -> Figure:
        """What `draw` returns. Raises `TidegateError` for what is no figure."""
        from matplotlib.figure import Figure

        figure = self.draw(runs)
        if not isinstance(figure, Figure):
            raise TidegateError(
                f"{user_code.defined(self.draw)} returns {_a(figure)}; return a Matplotlib figure"
            )
        return figure


@dataclass(frozen=True)
class OneOf:
    """In a parameter's annotation: the accepted names."""

    names: Collection[str] | Collection[int]


@dataclass(frozen=True)
class AtLeast:
    """In a parameter's annotation: the smallest and the largest valid number. Default: any number above 0."""

    least: float
    most: float = MOST


@dataclass(frozen=True)
class MayRepeat:
    """In a parameter's annotation: a value may be in it twice."""


OrZero = Annotated[int, AtLeast(0)]


Number = Annotated[int, AtLeast(1, 10_000)]
"""A number of flows; each takes memory."""


Numbers = Annotated[tuple[int, ...], AtLeast(1, 10_000)]


def demand_warm_up(warm_up: float, duration: float, unit: str = "s") -> None:
    """Refuse a warm-up that leaves nothing to measure; `unit` is that of the settings `warm_up_...` and `duration_...`."""
    if warm_up >= duration:
        raise TidegateError(
            f"a warm-up of {warm_up:g} {unit} leaves nothing of {duration:g} {unit}; "
            f"give a smaller warm_up_{unit}, or a larger duration_{unit}"
        )
