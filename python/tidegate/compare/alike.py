"""What is compared, and whether it can be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments.columns import unit
from tidegate.experiments.registry import UNITS


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
        return [name for name in names if all(_is_number(row.get(name)) for row in self.rows)]


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


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
        if any(each.get(name) != said[0].get(name) for each in said)
    }


def demand_alike(sides: Sequence[Side]) -> None:
    """Refuse what cannot be compared, and say in what it differs."""
    if len(sides) < 2:
        raise TidegateError("a comparison needs two things or more; give another")
    names = [one.name for one in sides]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TidegateError(f"{twice} is given twice; give each once")
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
        counts = {
            case: [sum(r["case"] == case for r in s.rows) / len(s.seeds) for s in (first, other)]
            for case in first.cases
        }
        for case, (a, b) in counts.items():
            if b and a != b:
                raise TidegateError(
                    f"{where}the case {case} has {a:g} rows in one and {b:g} in the other{_why(first, other)}"
                )


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
