"""The plan of an experiment: cases, measurements, claims and figure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import polars as pl

from tidegate import units
from tidegate._core import TidegateError
from tidegate.claims import Claim, Row
from tidegate.network import Network
from tidegate.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


@dataclass(frozen=True)
class Run:
    """The rows and tables of a case that has run."""

    case: str
    seed: int
    rows: list[Row] | None
    """`None`: the run was interrupted, and its tables end there."""
    tables: dict[str, pl.DataFrame] = field(repr=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """Cases, claims and figure of an experiment."""

    cases: list[Case]
    claims: Callable[[list[Row]], list[Claim]]
    draw: Callable[[list[Run]], Figure]


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


def demand_warm_up(warm_up_s: float, duration_s: float) -> None:
    """Refuse a warm-up that leaves nothing to measure."""
    if warm_up_s >= duration_s:
        raise TidegateError(
            f"a warm-up of {warm_up_s:g} s leaves nothing of {duration_s:g} s; give less, or a longer run"
        )
