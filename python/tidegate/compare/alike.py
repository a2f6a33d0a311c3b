"""What is compared, and whether it can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments.columns import is_number, unit
from tidegate.experiments.input_file import identity
from tidegate.experiments.registry import UNITS
from tidegate.units import counted


@dataclass(frozen=True)
class Side:
    """One of the things that are compared: its rows, and what they come from."""

    name: str
    experiment: str
    backend: str
    parameters: dict[str, Any]
    rows: list[Row]
    version: str = ""

    @property
    def seeds(self) -> list[int]:
        """Its seeds in order."""
        return sorted({row["seed"] for row in self.rows})

    @property
    def cases(self) -> list[str]:
        """Its cases in order."""
        return list(dict.fromkeys(row["case"] for row in self.rows))

    @property
    def columns(self) -> list[str]:
        """Columns with numbers; what a column says of a case is none."""
        names = dict.fromkeys(name for row in self.rows for name in row if name not in ("case", "seed"))
        return [name for name in names if all(_is_number_or_none(row.get(name)) for row in self.rows)]

    def labels(self, case: str) -> set[str]:
        """Columns of strings that tell the rows of one case and seed apart: a scheme, a host, a class."""
        rows = [row for row in self.rows if row["case"] == case]
        names = dict.fromkeys(name for row in rows for name in row if name not in ("case", "seed"))
        values = {
            name: {s: {row.get(name) for row in rows if row["seed"] == s} for s in self.seeds}
            for name in names
            if any(isinstance(row.get(name), str) for row in rows)
            and all(isinstance(row.get(name), str | None) for row in rows)
        }
        return {name for name, each in values.items() if any(len(had) > 1 for had in each.values())}


Label = tuple[str, int]
"""What identifies a row in its case and seed: values of strings, and a number where several rows have the same."""


def labelled(side: Side, case: str, names: Sequence[str]) -> dict[int, dict[Label, Row]]:
    """The rows of a case by seed and label."""
    found: dict[int, dict[Label, Row]] = {}
    numbers: Counter[tuple[int, str]] = Counter()
    for row in side.rows:
        if row["case"] != case:
            continue
        text = ", ".join(str(row.get(name)) for name in names)
        same = row["seed"], text
        found.setdefault(row["seed"], {})[text, numbers[same]] = row
        numbers[same] += 1
    return found


def identifying(sides: Sequence[Side], case: str) -> list[str]:
    """The columns whose strings identify the rows of a case, in the order of the first side that has them."""
    wanted = set().union(*(side.labels(case) for side in sides))
    return [
        name
        for name in dict.fromkeys(name for side in sides for row in side.rows for name in row)
        if name in wanted
    ]


def _is_number_or_none(value: object) -> bool:
    return value is None or is_number(value)


def differing(sides: Sequence[Side]) -> dict[str, list[Any]]:
    """Parameters, backends, versions that are not the same in all, with the value of each side."""
    said = [
        {"experiment": one.experiment, "backend": one.backend, "version": one.version, **one.parameters}
        for one in sides
    ]
    names = dict.fromkeys(name for each in said for name in each)
    return {
        name: [each.get(name) for each in said]
        for name in names
        if any(identity(each.get(name)) != identity(said[0].get(name)) for each in said)
    }


def demand_several(names: Sequence[str]) -> None:
    """Refuse one thing, and one that is there twice."""
    if len(names) < 2:
        raise TidegateError("a comparison needs two things or more; give another")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TidegateError(f"{twice} is given twice; give each once")


def demand_alike(sides: Sequence[Side]) -> None:
    """Refuse what cannot be compared, and say in what it differs."""
    demand_several([one.name for one in sides])
    first = sides[0]
    for other in sides[1:]:
        where = f"{first.name} and {other.name} cannot be compared: "
        _demand_units(where, first, other)
        missing = [
            f"{one.name} alone has {', '.join(rest)}" for one, rest in _apart(first, other, "columns") if rest
        ]
        if missing:
            raise TidegateError(f"{where}they have other columns: {'; '.join(missing)}{_why(first, other)}")
        if not set(first.cases) & set(other.cases):
            raise TidegateError(
                f"{where}they have no case in common: {', '.join(first.cases[:5])} beside {', '.join(other.cases[:5])}"
                f"{_why(first, other)}"
            )
        for case in first.cases:
            _demand_same_rows(where, first, other, case)


def _demand_same_rows(where: str, first: Side, other: Side, case: str) -> None:
    """Every seed of both has the same labels, or their rows cannot be paired."""
    names = identifying((first, other), case)
    each = [
        (side, seed, rows)
        for side in (first, other)
        for seed, rows in sorted(labelled(side, case, names).items())
    ]
    if len({side.name for side, _, _ in each}) < 2:
        return
    one, seed, rows = each[0]
    for two, another, others in each[1:]:
        if rows.keys() == others.keys():
            continue
        said = (
            f"the case {case} has {counted(len(rows), 'row')} in one and {len(others)} in the other"
            if len(rows) != len(others)
            else f"the case {case} has rows of {_listed(rows, others)} in one and {_listed(others, rows)} in the other"
        )
        raise TidegateError(
            f"{where}{said} ({one.name}, seed {seed}; {two.name}, seed {another}){_why(first, other)}"
        )


def _listed(rows: dict[Label, Row], others: dict[Label, Row]) -> str:
    """The labels that the others lack."""
    return ", ".join(shown(label) for label in rows if label not in others)


def shown(label: Label) -> str:
    """A label as it is printed: `codel`; the second with the same strings is `codel #2`, and without strings `#2`."""
    text, number = label
    return f"{text} #{number + 1}".strip() if number else text


def _apart(first: Side, other: Side, what: str) -> list[tuple[Side, list[str]]]:
    a, b = getattr(first, what), getattr(other, what)
    return [(first, [one for one in a if one not in b]), (other, [one for one in b if one not in a])]


def _demand_units(where: str, first: Side, other: Side) -> None:
    """The same quantity in another unit is a mistake that a table would hide."""

    def stems(side: Side) -> dict[str, str]:
        return {
            "_".join(p for p in name.split("_") if p not in UNITS): name
            for name in side.columns
            if unit(name)
        }

    ours, theirs = stems(first), stems(other)
    for stem in ours.keys() & theirs.keys():
        if unit(ours[stem]) != unit(theirs[stem]):
            raise TidegateError(
                f"{where}{ours[stem]} is in {unit(ours[stem])}, and {theirs[stem]} in {unit(theirs[stem])}"
            )


def _why(first: Side, other: Side) -> str:
    """The parameters that differ, as far as they say why."""
    said = differing([first, other])
    if not said:
        return ""
    shown = "; ".join(f"{name}: {a} and {b}" for name, (a, b) in list(said.items())[:8])
    return f". What differs: {shown}"
