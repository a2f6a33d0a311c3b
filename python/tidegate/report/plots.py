"""Charts that are not over time, of runs, sweeps, studies and comparisons, to point at and to zoom.

Each has an x axis of numbers, or of places 0, 1, ... that have names.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments.columns import Column, axis_label, chosen, is_number, unit
from tidegate.experiments.landscape import PANELS, Landscape, is_wide
from tidegate.report.series import SERIES, Floats

APART = 0.6
"""Of the way from one place to the next, what the sides of a comparison take."""
MOST_COLUMNS = 24
"""Of a run's rows that are drawn."""
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A series: a value for each place on the x axis, NaN where there is none."""

    name: str
    y: Floats
    ends: tuple[Floats, Floats] | None = None
    """Lowest and highest."""
    texts: Sequence[str] = ()
    """What the legend says beside a value."""
    points: bool = False
    """Points without a line."""


@dataclass(frozen=True)
class Plot:
    """Series over something."""

    title: str
    unit: str
    over: str
    """What the x axis is, with its unit."""
    x: Floats
    lines: Sequence[Line]
    ticks: Sequence[str] = ()
    """Names of the places 0, 1, ...; none: x is numbers."""
    log: bool = False
    note: str = ""


def _is_drawn(value: object) -> TypeGuard[int | float]:
    """Whether it is a number that has a place on an axis."""
    return is_number(value) and math.isfinite(value)


def _at(values: Sequence[object]) -> tuple[Floats, list[str]]:
    """Where values are on an x axis, and the names of its places."""
    if all(map(_is_drawn, values)):
        return np.array(values, dtype=float), []
    names = list(dict.fromkeys(map(str, values)))
    return np.array([names.index(str(value)) for value in values], dtype=float), names


def sweep_plots(record: Record) -> list[Plot]:
    """The landscape of a sweep: over its first parameter; a series for each value of the second, and the median over others."""
    landscape = Landscape(**record["landscape"])
    try:
        rows = chosen(record["rows"], landscape.where)
        if not rows:
            return []
        column, groups = landscape.measured(rows), landscape.labels(rows)
    except TidegateError:
        # As the figure has nothing to draw.
        return []
    first, *others = landscape.over
    title, left_out = str(column), max(0, len(groups) - PANELS)
    if not others:
        note = f"The first {SERIES} of {len(groups)} lines." if len(groups) > SERIES else ""
        named = [(label or title, part) for label, part in groups.items()][:SERIES]
        return [_landscape(title, first, column, named, note)]
    found: list[Plot] = []
    for label, part in list(groups.items())[:PANELS]:
        values = list(dict.fromkeys(row[others[0]] for row in part))
        note = f"The first {SERIES} of {len(values)} values. " if len(values) > SERIES else ""
        note += f"Medians over {', '.join(others[1:])}. " if others[1:] else ""
        note += f"{left_out} more are not shown." if left_out and len(found) == PANELS - 1 else ""
        named = [
            (f"{others[0]} {value}", [r for r in part if r[others[0]] == value]) for value in values[:SERIES]
        ]
        found.append(_landscape(f"{title}, {label}" if label else title, first, column, named, note.strip()))
    return found


def _landscape(
    title: str, over: str, column: Column, named: Sequence[tuple[str, Sequence[Row]]], note: str
) -> Plot:
    values = list(dict.fromkeys(row[over] for _, rows in named for row in rows))
    at, names = _at(values)
    order = np.argsort(at, kind="stable")
    lines = []
    for name, rows in named:
        by_value: dict[object, list[Row]] = {}
        for row in rows:
            by_value.setdefault(row[over], []).append(row)
        cells = [by_value.get(values[n], []) for n in order]
        spread = [column.values(cell) for cell in cells]
        ends = (_ends(spread, min), _ends(spread, max)) if any(len(one) > 1 for one in spread) else None
        texts = [f"[{min(one):.4g} to {max(one):.4g}; {len(one)}]" if len(one) > 1 else "" for one in spread]
        lines.append(Line(name, np.array([column.of(cell) for cell in cells]), ends, texts, bool(names)))
    log = not names and is_wide(at.tolist())
    return Plot(title, unit(column.name), axis_label(over), at[order], lines, names, log, note)


def _ends(spread: Iterable[Sequence[float]], pick: Any) -> Floats:
    return np.array([pick(one, default=math.nan) for one in spread])


def row_axes(record: Record) -> list[str]:
    """Columns that tell a run's rows apart: the one that they are drawn over, one for lines, one for charts, and others. They are columns
    of words, and of the numbers that a parameter has, those with most values first; the case, where these do not tell cases apart.
    """
    rows = [row for row in record["rows"] if "case" in row]
    given = [set(one) for one in record["parameters"].values() if _are(one, is_number)]
    words: dict[str, int] = {}
    numbers: dict[str, int] = {}
    for name in dict.fromkeys(itertools.chain(*rows)):
        values = [row.get(name) for row in rows]
        if name in ("case", "seed"):
            continue
        if _are(values, lambda value: isinstance(value, str)):
            words[name] = len(set(values))
        elif _are(values, is_number) and any(set(values) <= one for one in given):
            numbers[name] = len(set(values))
    # Lines are for words before numbers, and for what has room.
    order = sorted(words, key=lambda name: (words[name] > SERIES, -words[name]))
    order += sorted(numbers, key=lambda name: -numbers[name])
    over = numbers if max(numbers.values(), default=1) > 1 else words
    found = _telling(rows, max(over, key=over.__getitem__, default="case"), order)
    if _different(rows, [*found, "case"]) > _different(rows, found):
        found = _telling(rows, "case", order)
    return found if _different(rows, found) > 1 else []


def _telling(rows: Sequence[Row], first: str, order: Sequence[str]) -> list[str]:
    """A column, and those of others that tell more rows apart."""
    found = [first]
    for name in order:
        if _different(rows, [*found, name]) > _different(rows, found):
            found.append(name)
    return found


def _are(values: object, kind: Callable[[Any], bool]) -> bool:
    """Whether it is a list of such values."""
    return isinstance(values, list | tuple) and all(map(kind, values))


def _different(rows: Sequence[Row], names: Sequence[str]) -> int:
    """How many combinations of values they have."""
    return len({tuple(row.get(name) for name in names) for row in rows})


def row_plots(record: Record) -> dict[str, list[Plot]]:
    """The charts of a run's rows by column: over the first of `row_axes`, a line for each value of the second, a chart for each of the
    third, and the medians over others and over seeds.
    """
    axes = row_axes(record)
    if not axes:
        return {}
    rows = [row for row in record["rows"] if "case" in row]
    charts = _by(rows, axes[2:3])
    note = f"Medians over {', '.join(axes[3:])}. " if axes[3:] else ""
    note += f"The first {PANELS} of {len(charts)} charts." if len(charts) > PANELS else ""
    found: dict[str, list[Plot]] = {}
    for name in _drawn_columns(rows, axes):
        found[name] = []
        for label, part in list(charts.items())[:PANELS]:
            lines = _by(part, axes[1:2])
            cut = f"The first {SERIES} of {len(lines)} lines. " if len(lines) > SERIES else ""
            named = [(line or name, of) for line, of in list(lines.items())[:SERIES]]
            title = f"{name}, {label}" if label else name
            found[name].append(_landscape(title, axes[0], Column(name), named, (cut + note).strip()))
    return found


def _by(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[Row]]:
    """Rows by their values of a column; all of them together for none."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(", ".join(f"{name} {row[name]}" for name in names), []).append(row)
    return found


def _drawn_columns(rows: Sequence[Row], axes: Sequence[str]) -> list[str]:
    """Columns of numbers that are not the same in all rows; first those that are not settings of the first axis, and that have a unit."""
    names = [name for name in dict.fromkeys(itertools.chain(*rows)) if name not in ("case", "seed", *axes)]
    found = [
        name
        for name in names
        if all(row.get(name) is None or is_number(row[name]) for row in rows)
        and len({row[name] for row in rows if _is_drawn(row.get(name))}) > 1
    ]
    places = _different(rows, axes[:1])
    return sorted(found, key=lambda name: (_different(rows, [axes[0], name]) == places, not unit(name)))[
        :MOST_COLUMNS
    ]


def study_plots(record: Record) -> list[Plot]:
    """A study: each objective by trial and over each parameter, and of two objectives one over the other."""
    columns = [str(column) for column, _ in record["objectives"]]
    trials = [one for one in record["trials"] if all(_is_drawn(one.get(name)) for name in columns)]
    if not trials:
        return []
    numbers = np.array([one["trial"] for one in trials], dtype=float)
    best = {one["trial"] for one in record["best"]}
    parameters = [name for name in dict.fromkeys(n for one in trials for n in one) if name not in columns]
    parameters = [name for name in parameters if name not in ("trial", "state")]
    logs = {str(text).partition("=")[0] for text in record["ranges"] if str(text).endswith(":log")}
    found = []
    for name, (_, direction) in zip(columns, record["objectives"], strict=True):
        values = np.array([one[name] for one in trials], dtype=float)
        so_far = (np.minimum if direction == "minimize" else np.maximum).accumulate(values)
        lines = [Line("value", values, points=True), Line("best so far", so_far)]
        found.append(Plot(name, _unit(name), "trial", numbers, lines))
        for parameter in parameters:
            there = [one for one in trials if one.get(parameter) is not None]
            if there:
                found.append(_scatter(there, parameter, name, best, parameter in logs))
    if len(columns) == 2:
        found.append(_scatter(trials, columns[0], columns[1], best, log=False))
    return found


def _scatter(trials: Sequence[Row], over: str, name: str, best: set[int], log: bool) -> Plot:
    """Trials over a parameter or an objective, the best ones apart."""
    at, names = _at([one[over] for one in trials])
    order = np.argsort(at, kind="stable")
    values = np.array([trials[n][name] for n in order], dtype=float)
    is_best = np.array([trials[n]["trial"] in best for n in order])
    texts = [f"(trial {trials[n]['trial']})" for n in order]
    lines = [
        Line("trial", np.where(is_best, math.nan, values), texts=texts, points=True),
        Line("best", np.where(is_best, values, math.nan), texts=texts, points=True),
    ]
    x = _beside(at[order]) if names else at[order]
    return Plot(name, _unit(name), axis_label(over), x, lines, names, log and not names)


def _unit(name: str) -> str:
    """Of a column with its aggregate."""
    return unit(name.partition(",")[0])


def _beside(at: Floats) -> Floats:
    """Those of one place beside each other, so that each can be pointed at."""
    places, rank = np.unique(at, return_inverse=True)
    found = at.copy()
    for place in range(len(places)):
        of = np.flatnonzero(rank == place)
        found[of] += [_apart(number, len(of)) for number in range(len(of))]
    return found


def comparison_plots(record: Record) -> list[Plot]:
    """A comparison: of each quantity the medians of all sides by case, from the least to the greatest value."""
    found = []
    sides = [str(one["name"]) for one in record["sides"]][:SERIES]
    left_out = len(record["sides"]) - len(sides)
    note = f"The first {SERIES} of {len(record['sides'])} sides." if left_out else ""
    for quantity in dict.fromkeys(row["quantity"] for row in record["rows"]):
        rows = [row for row in record["rows"] if row["quantity"] == quantity]
        ticks = [f"{row['case']} {row['label']}".strip() for row in rows]
        x = np.array(
            [row + _apart(side, len(sides)) for row in range(len(rows)) for side in range(len(sides))]
        )
        lines = []
        for number, name in enumerate(sides):
            y, low, high = (np.full(len(x), math.nan) for _ in range(3))
            texts = [""] * len(x)
            for place, row in enumerate(rows):
                cell, at = row["sides"][number], place * len(sides) + number
                if _is_drawn(cell["median"]):
                    y[at], low[at], high[at] = cell["median"], cell["least"], cell["most"]
                    texts[at] = _said(cell)
            lines.append(Line(name, y, (low, high), texts, points=True))
        found.append(Plot(str(quantity), str(rows[0]["unit"]), "case", x, lines, ticks, note=note))
    return found


def _apart(side: int, sides: int) -> float:
    return (side - (sides - 1) / 2) * APART / sides


def _said(cell: Mapping[str, Any]) -> str:
    """Beside a median: its spread, and the difference from the first side."""
    text = f"[{cell['least']:.4g} to {cell['most']:.4g}]"
    if _is_drawn(cell.get("difference")):
        text += f"; difference {cell['difference']:+.4g}"
        if cell.get("interval"):
            low, high = cell["interval"]
            text += f" ({low:+.4g} to {high:+.4g})"
    return text
