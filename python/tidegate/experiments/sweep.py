"""Sweeps: an experiment with each combination of some parameters' values, as one plan whose rows name the combination.

So a sweep is run, kept, resumed and drawn as one experiment is. A case of it is one of the experiment's, of one combination, and
only that combination's plan is made to run it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments.answer import Answer
from tidegate.experiments.input_file import InputFile, recorded
from tidegate.experiments.landscape import Landscape
from tidegate.experiments.own import Own
from tidegate.experiments.plan import OF_RUN, Case, Plan, Run
from tidegate.experiments.registry import Experiment, converted, find
from tidegate.experiments.running import carry_out
from tidegate.plots import all_rows
from tidegate.results import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PREFIX = "sweep of "
"""Before the experiment's name in the record of a sweep: its rows are not those of one run."""
MOST = 100_000
"""Points of a sweep."""

Over = dict[str, list[Any]]
"""Values by the names of the parameters that vary."""


def read_over(one: Experiment, texts: list[str], quick: bool = False) -> Over:
    """The values of `NAME=V1,V2,...`; of a parameter that is a list, each value is a list of one."""
    defaults = one.samples(quick)
    over: Over = {}
    for text in texts:
        name, sign, values = text.partition("=")
        name = name.strip()
        if not sign or not values:
            raise TidegateError(f"--over {text}: write it as name=value,value")
        if name not in defaults:
            raise TidegateError(one.no_parameter(name))
        if name in over:
            raise TidegateError(f"--over {text}: {name} is given twice; give all its values in one")
        if not all(value.strip() for value in values.split(",")):
            raise TidegateError(f"--over {text}: a value is empty; write it as name=value,value")
        given = [converted(name, value.strip(), defaults[name], "--over") for value in values.split(",")]
        over[name] = [one.with_files({name: value})[name] for value in given]
        if len({str(value) for value in over[name]}) < len(over[name]):
            raise TidegateError(f"--over {text}: a value is given twice")
    return over


def said(value: Any) -> str:
    """A value in the name of a case, and in a row."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def in_row(value: Any) -> Any:
    """A value as a row has it: a list of one is its one value, and a file its name with the begin of its digest."""
    if isinstance(value, InputFile | Own):
        return str(value)
    return in_row(value[0]) if isinstance(value, tuple) and len(value) == 1 else value


@dataclass(frozen=True)
class Points:
    """The recipe of an experiment with several combinations of parameters: its cases, one combination after the other."""

    name: str
    """As `find` takes it."""
    parameters: dict[str, Any]
    """Of all combinations."""
    points: Sequence[dict[str, Any]]
    """The parameters that vary."""
    draw: Callable[[list[Row]], Figure] | None = None
    labels: Sequence[str] = ()
    """Names of the combinations; none: their values."""

    def plan(self) -> Plan:
        """The cases of all combinations."""
        cases = [case for number in range(len(self.points)) for case in self.cases(number)]
        return Plan(cases, lambda rows: [], self._draw)

    def case(self, index: int) -> Case:
        """A case of the combination that has it; the others' plans are made once, to count them."""
        for number in range(len(self.points)):
            count = _count(self.name, said_all({**self.parameters, **self.points[number]}), self, number)
            if index < count:
                return self.cases(number)[index]
            index -= count
        raise IndexError(index)

    def cases(self, number: int) -> list[Case]:
        """Those of one combination, which nobody has run."""
        one, point = find(self.name), self.points[number]
        for key in OF_RUN:
            if key in point:
                raise TidegateError(
                    f"the parameter {key} cannot be varied: rows have a column {key} of their run; give it another name"
                )
        given = {**self.parameters, **point}
        one.check(given)
        # The name of a case is that of a folder: slashes of paths are underlines in it.
        label = self.labels[number] if self.labels else said_all(point).replace("/", "_")
        return [_named(case, label, point) for case in one.planned(given).cases]

    def _draw(self, runs: list[Run]) -> Figure:
        assert self.draw is not None
        return self.draw(all_rows(runs))


_counts: dict[tuple[str, str], int] = {}


def _count(name: str, point: str, points: Points, number: int) -> int:
    """How many cases a combination has."""
    if (name, point) not in _counts:
        _counts[name, point] = len(points.cases(number))
    return _counts[name, point]


def said_all(point: dict[str, Any]) -> str:
    """A combination in words."""
    return " ".join(f"{key}={said(value)}" for key, value in point.items())


def combined(over: Over) -> list[dict[str, Any]]:
    """All combinations of the values."""
    return [dict(zip(over, values, strict=True)) for values in itertools.product(*over.values())]


def _named(case: Case, name: str, point: dict[str, Any]) -> Case:
    """A case of an experiment as one of a sweep."""
    values = {"of": case.name, **{key: in_row(value) for key, value in point.items()}}

    def row(own: Row) -> Row:
        # A column of the experiment's that has one of these names and another value stays, under another name.
        other = {key: own[key] for key in own if key in values and own[key] != values[key]}
        return {
            **values,
            **{key: value for key, value in own.items() if key not in values},
            **{f"measured_{key}": value for key, value in other.items()},
        }

    def measure(result: Result) -> list[Row]:
        return [row(own) for own in case.rows(result)]

    return replace(case, name=f"{name} {case.name}", measure=measure)


def run(
    name: str,
    parameters: dict[str, Any],
    over: Over,
    *,
    landscape: Landscape,
    seeds: list[int],
    quick: bool = False,
    out: Path,
    **how: Any,
) -> Answer:
    """Run a sweep in the simulator and write its folder: that of a run (`experiments.run`), and `rows.csv`, the long table.

    `how` is what `experiments.run` takes: `progress`, `watch`, `processes`, `resume`, `executor`, `threads`.
    """
    one = find(name)
    parameters = one.with_files(parameters)
    over = {key: [one.with_files({key: value})[key] for value in values] for key, values in over.items()}
    count = math.prod(len(values) for values in over.values()) if over else 0
    if not 0 < count <= MOST:
        raise TidegateError(f"a sweep of {count} points; give --over values for 1 to {MOST}")
    recipe = Points(one.source or one.name, parameters, combined(over), landscape.draw)
    about = {
        "experiment": PREFIX + one.name,
        "backend": "sim",
        "parameters": recorded({**parameters, "quick": quick, "over": over}),
        "landscape": landscape.as_json(),
        "seeds": seeds,
    }
    if one.source is not None:
        about["source"] = one.source
    return carry_out(recipe, about, out=out, table=True, **how)


def is_sweep(answer: dict[str, Any]) -> bool:
    """Whether a record is a sweep's."""
    return str(answer["experiment"]).startswith(PREFIX)


def recorded_plan(answer: dict[str, Any], source: str | None) -> Plan:
    """The plan of a sweep's record, as far as its figure needs it; no code of the user's, so `source` is refused."""
    if source is not None:
        raise TidegateError("a sweep is drawn from its rows alone; leave out --source")
    landscape = Landscape(**answer["landscape"])
    return Plan([], lambda _rows: [], lambda _runs: landscape.draw(answer["rows"]))
