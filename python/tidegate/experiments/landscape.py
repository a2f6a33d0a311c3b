"""The figure of a sweep: a column over one parameter as lines, over two as heat maps, one panel for each scheme or case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments.columns import Column, axis_label, chosen
from tidegate.plots import CYCLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = 12
"""More are not drawn."""
LABELS = ("scheme", "case", "of", "seed")
"""Columns that name a row, and are not measured."""


@dataclass(frozen=True)
class Landscape:
    """What is drawn of a sweep's rows."""

    over: tuple[str, ...]
    """The parameters that vary. Over more than two, the median over the others is drawn."""
    column: str | None = None
    """The column, with its aggregate (`Column`); `None`: the first of `likely` that the rows have, or the first measured; one that varies
    within a case, if there is any.
    """
    by: str | None = None
    """The column that names lines or panels; `None`: `scheme`, or the experiment's case where the cases are the same all over."""
    where: tuple[tuple[str, str], ...] = ()
    """Rows that have these values only."""
    likely: tuple[str, ...] = ()
    """Columns that the experiment shows."""

    def __post_init__(self) -> None:
        # From JSON.
        object.__setattr__(self, "over", tuple(self.over))
        object.__setattr__(self, "where", tuple((name, value) for name, value in self.where))
        object.__setattr__(self, "likely", tuple(self.likely))

    def as_json(self) -> dict[str, Any]:
        """What makes it again."""
        return asdict(self)

    def measured(self, rows: Sequence[Row]) -> Column:
        """The column that is drawn."""
        if self.column is not None:
            column = Column.parse(self.column)
            try:
                column.demand(rows)
            except TidegateError as error:
                raise TidegateError(f"--column {self.column}: {error}") from None
            return column
        floats = [
            name
            for name in (*self.likely, *_columns(rows))
            if name not in (*self.over, *LABELS)
            and any(isinstance(row.get(name), float) for row in rows)
            # Another name of a parameter.
            and not all(row.get(name) in [row[over] for over in self.over] for row in rows)
        ]
        if not floats:
            raise TidegateError("the rows have no measured column; name one with --column")
        # What a case is about is the same in all its rows.
        varied = (name for name in floats if _varies(rows, name))
        return Column(next(varied, floats[0]))

    def labels(self, rows: Sequence[Row]) -> dict[str, list[Row]]:
        """The rows by what names their line or panel."""
        by = self.by
        if by is None:
            by = "scheme" if all("scheme" in row for row in rows) else "of"
            points = {tuple(row[name] for name in self.over) for row in rows}
            if by == "of" and any(
                len({tuple(row[name] for name in self.over) for row in rows if row["of"] == of}) < len(points)
                for of in {row["of"] for row in rows}
            ):
                return {"": list(rows)}
        elif by not in _columns(rows):
            raise TidegateError(
                f"--by {by}: the rows have no such column; they have {', '.join(_columns(rows))}"
            )
        found: dict[str, list[Row]] = {}
        for row in rows:
            found.setdefault(str(row.get(by)), []).append(row)
        return found

    def draw(self, rows: Sequence[Row]) -> Figure:
        """The figure."""
        from matplotlib.figure import Figure

        rows = chosen(rows, self.where)
        column, groups = self.measured(rows), self.labels(rows)
        if len(self.over) == 1:
            figure = Figure(figsize=(7, 4.5), layout="constrained")
            self._lines(figure.subplots(), column, groups)
            return figure
        shown = dict(list(groups.items())[:PANELS])
        across = min(len(shown), 3)
        down = math.ceil(len(shown) / across)
        figure = Figure(figsize=(1.5 + 4 * across, 0.8 + 3.4 * down), layout="constrained")
        panels = figure.subplots(down, across, squeeze=False).ravel()
        self._maps(figure, list(panels), column, shown)
        if len(groups) > PANELS:
            figure.suptitle(f"the first {PANELS} of {len(groups)}")
        return figure

    def _lines(self, axes: Axes, column: Column, groups: dict[str, list[Row]]) -> None:
        (name,) = self.over
        values = list(dict.fromkeys(row[name] for rows in groups.values() for row in rows))
        numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        for number, (label, rows) in enumerate(groups.items()):
            there = [value for value in values if any(row[name] == value for row in rows)]
            each = [[row for row in rows if row[name] == value] for value in there]
            at = there if numbers else [values.index(value) for value in there]
            ours = [column.of(one) for one in each]
            spread = [column.values(one) for one in each]
            colour = CYCLE[number % len(CYCLE)]
            axes.plot(at, ours, "o-", color=colour, label=label)
            if any(len(one) > 1 for one in spread):
                low, high = ([pick(one, default=math.nan) for one in spread] for pick in (min, max))
                axes.fill_between(at, low, high, color=colour, alpha=0.15, linewidth=0)
        if numbers and is_wide(values):
            axes.set_xscale("log")
        if not numbers:
            axes.set_xticks(range(len(values)), [str(value) for value in values])
        axes.set(xlabel=axis_label(name), ylabel=axis_label(str(column)))
        axes.grid(alpha=0.3)
        if list(groups) != [""]:
            axes.legend(fontsize="small")

    def _maps(self, figure: Figure, panels: list[Axes], column: Column, groups: dict[str, list[Row]]) -> None:
        across, up, *rest = self.over
        everything = [row for rows in groups.values() for row in rows]
        xs, ys = (list(dict.fromkeys(row[name] for row in everything)) for name in (across, up))
        maps = {}
        for label, rows in groups.items():
            cells = [[[row for row in rows if (row[across], row[up]) == (x, y)] for x in xs] for y in ys]
            maps[label] = [[column.of(cell) if cell else math.nan for cell in line] for line in cells]
        finite = [v for one in maps.values() for line in one for v in line if math.isfinite(v)]
        low, high = min(finite, default=0.0), max(finite, default=1.0)
        for axes, (label, values) in zip(panels, maps.items(), strict=False):
            image = axes.imshow(values, origin="lower", aspect="auto", cmap="cividis", vmin=low, vmax=high)
            axes.set_xticks(range(len(xs)), [str(x) for x in xs])
            axes.set_yticks(range(len(ys)), [str(y) for y in ys])
            axes.set(xlabel=axis_label(across), ylabel=axis_label(up), title=label)
            if len(xs) * len(ys) <= 64:
                for j, line in enumerate(values):
                    for i, value in enumerate(line):
                        dark = value < (low + high) / 2
                        axes.text(i, j, f"{value:.3g}", ha="center", va="center", color="w" if dark else "k")
        for axes in panels[len(maps) :]:
            axes.set_axis_off()
        median = f", median over {', '.join(rest)}" if rest else ""
        figure.colorbar(image, ax=panels, label=f"{axis_label(str(column))}{median}")


def is_wide(values: Sequence[float]) -> bool:
    """Whether they ask for a logarithmic axis."""
    return bool(values) and min(values) > 0 and max(values) >= 20 * min(values)


def _varies(rows: Sequence[Row], name: str) -> bool:
    """Whether a column has several values in a case."""
    by_case: dict[object, list[Row]] = {}
    for row in rows:
        by_case.setdefault(row.get("of"), []).append(row)
    return any(len(set(Column(name).values(of))) > 1 for of in by_case.values())


def _columns(rows: Sequence[Row]) -> list[str]:
    """Those that a row has, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))
