"""Charts that are not over time, of sweeps, studies and comparisons: what their figures show, to point at and to zoom.

Each has an x axis of numbers, or of places 0, 1, ... that have names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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
