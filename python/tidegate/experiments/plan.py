"""The plan of an experiment: cases, measurements, claims and figure."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import polars as pl

from tidegate import units
from tidegate._core import TidegateError
from tidegate.claims import Claim, Row
from tidegate.experiments import user_code
from tidegate.experiments.own import Own
from tidegate.network import Network
from tidegate.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


MOST_DEPTH = 8
"""Lists and dictionaries in each other, as a value of a row."""
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

    def __post_init__(self) -> None:
        # Here the place in the experiment's file is known.
        if not isinstance(self.name, str):
            raise TidegateError(f"a case's name is {_a(self.name)}; give text")
        if not isinstance(self.network, Network) and not callable(self.network):
            raise TidegateError(
                f"the network of case {self.name!r} is {_a(self.network)}; give a Network, or a function of the seed that makes one"
            )
        if not callable(self.measure):
            raise TidegateError(
                f"case {self.name!r} measures by {_a(self.measure)}; give a function of the result"
            )
        try:
            units.run_time(self.until)
        except TidegateError as error:
            raise TidegateError(f"case {self.name!r}: until: {error}") from None

    def made(self, seed: int) -> Network:
        """Its network. Raises `TidegateError` for what is none."""
        if isinstance(self.network, Network):
            return self.network
        network = user_code.called(self.network, seed)
        if not isinstance(network, Network):
            raise TidegateError(
                f"{user_code.defined(self.network)} returns {_a(network)}; return a tidegate.network.Network"
            )
        return network

    def rows(self, result: Result) -> list[Row]:
        """What `measure` returns, as a list of plain rows. Raises `TidegateError` for what is no row."""
        measured = user_code.called(self.measure, result)
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
        return [{self._named(name): self._plain(name, value) for name, value in row.items()} for row in found]

    def _named(self, name: Any) -> str:
        """A column's name."""
        if isinstance(name, str) and units.is_text(name):
            return name
        raise TidegateError(
            f"{user_code.defined(self.measure)} returns a row with a column {_a(name)}; columns are named by text"
        )

    def _plain(self, column: str, value: Any, depth: int = 0) -> Any:
        """A value as JSON has it, and a table of Polars."""
        if isinstance(value, np.generic):
            value = value.item()
        if depth > MOST_DEPTH:
            raise TidegateError(
                f"{user_code.defined(self.measure)} returns a row with lists in lists as {column!r}, deeper than {MOST_DEPTH}"
            )
        if isinstance(value, list | tuple):
            return [self._plain(column, one, depth + 1) for one in value]
        if isinstance(value, dict):
            return {self._named(name): self._plain(column, one, depth + 1) for name, one in value.items()}
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise TidegateError(
                f"{user_code.defined(self.measure)} returns a row with a number of {value.bit_length()} bits as {column!r}; "
                "a whole number has 64 bits with its sign: make it a float"
            )
        if not isinstance(value, str | int | float | None) or (
            isinstance(value, str) and not units.is_text(value)
        ):
            raise TidegateError(
                f"{user_code.defined(self.measure)} returns a row with {_a(value)} as {column!r}; the columns of a row "
                "are named by text, and have numbers, text, true, false or None"
            )
        return value


def _a(value: Any) -> str:
    return f"{_shown(value):.40} ({type(value).__name__})"


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"what cannot be shown ({type(error).__name__})"


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

    def __post_init__(self) -> None:
        # Here, before a run, and where the place in the experiment's file is known.
        if not callable(self.claims):
            raise TidegateError(
                f"the claims of the plan are {_a(self.claims)}; give a function of the rows that returns a list of claims"
            )
        if not callable(self.draw):
            raise TidegateError(
                f"the plan draws by {_a(self.draw)}; give a function of the runs that returns a Matplotlib figure"
            )

    def judged(self, rows: list[Row]) -> list[Claim]:
        """What `claims` returns, but for claims that these rows are not about.

        Raises `TidegateError` for what is no list of claims, or a claim that is no text.
        """
        found = user_code.called(self.claims, rows)
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

        figure = user_code.called(self.draw, runs)
        if not isinstance(figure, Figure):
            raise TidegateError(
                f"{user_code.defined(self.draw)} returns {_a(figure)}; return a Matplotlib figure"
            )
        return figure

    def picture(self, runs: list[Run]) -> bytes:
        """What `draw` returns, as PNG. Raises `TidegateError` where it cannot be."""
        figure = self.drawn(runs)
        try:
            return as_png(figure)
        except Exception as error:
            if not user_code.is_defined(self.draw):
                raise
            raise TidegateError(
                f"{user_code.defined(self.draw)}: the figure cannot be drawn: {type(error).__name__}: {error}"
            ) from None


def as_png(figure: Figure) -> bytes:
    """A figure as it is in a run's folder."""
    file = io.BytesIO()
    figure.savefig(file, dpi=150)
    return file.getvalue()


@dataclass(frozen=True)
class OneOf:
    """In a parameter's annotation: the accepted names."""

    names: Collection[str] | Collection[int]
    own: Callable[[str], str | Own] | None = None
    """Finds what a word means that is of the user's, as `./my.py:scheme`; other words it gives back. `None`: there is nothing of the user's."""


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
