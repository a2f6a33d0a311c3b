"""What a comparison gives: a dict, which a notebook shows as a table and the figure; the same cells as on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate import html
from tidegate.compare.figure import draw
from tidegate.experiments.input_file import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Comparison(dict[str, Any]):
    """The contents of `compare.json`: `sides`, `differing`, `left_out`, `rows` and how the intervals were made."""

    def figure(self) -> Figure:
        """Medians with their spread, and differences from the first side with their intervals."""
        return draw(self)

    def table(self) -> pl.DataFrame:
        """A row for each case, quantity and side; `low` and `high` are the ends of the interval of `difference`."""
        return pl.DataFrame(
            [_long(row, side) for row in self["rows"] for side in row["sides"]],
            schema=_SCHEMA,
        )

    def columns(self) -> list[str]:
        """The headings of `cells`."""
        return ["case", "quantity", *(side["name"] for side in self["sides"])]

    def cells(self) -> list[list[str]]:
        """A line for each case and quantity, as text: `median [least to most]; difference (interval)`, a star without 0."""
        return [_line(row) for row in self["rows"]]

    def remarks(self) -> list[str]:
        """Parameters that differ between the sides, and cases that not all have."""
        said = [
            f"differs: {name} ({self._of_each(values)})" for name, values in self.get("differing", {}).items()
        ]
        if self.get("left_out"):
            said.append(f"left out, as not all have them: {', '.join(self['left_out'])}")
        return said

    def legend(self) -> str:
        """What a cell says."""
        return (
            "median [least to most]; difference from the first, paired by seed, with its "
            f"{100 * self['confidence']:g} % bootstrap interval; *: without 0"
        )

    def lacks_intervals(self) -> bool:
        """Whether a difference is of fewer than six seeds, too few for an interval."""
        return any(
            "paired" in side and side["interval"] is None for row in self["rows"] for side in row["sides"]
        )

    def _of_each(self, values: list[Any]) -> str:
        return ", ".join(
            f"{side['name']}: {in_words(value)}" for side, value in zip(self["sides"], values, strict=True)
        )

    def _repr_html_(self) -> str:
        if not self.get("rows"):
            return html.paragraph("a comparison without rows")
        names = [side["name"] for side in self["sides"]]
        parts = [html.paragraph(f"{', '.join(names[1:])} compared with {names[0]}")]
        parts += map(html.paragraph, self.remarks())
        parts.append(html.table(self.columns(), self.cells()))
        parts.append(html.paragraph(self.legend()))
        if self.lacks_intervals():
            parts.append(html.paragraph("an interval needs six seeds or more that both have"))
        parts.append(html.picture(self.figure(), f"comparison of {', '.join(names)}"))
        return "".join(parts)


_SCHEMA = {
    "case": pl.String,
    "label": pl.String,
    "quantity": pl.String,
    "unit": pl.String,
    "side": pl.String,
    "median": pl.Float64,
    "least": pl.Float64,
    "most": pl.Float64,
    "seeds": pl.Int64,
    "paired": pl.Int64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "differs": pl.Boolean,
}


def _long(row: dict[str, Any], side: dict[str, Any]) -> dict[str, Any]:
    low, high = side.get("interval") or (None, None)
    return {
        **{name: row[name] for name in ("case", "label", "quantity", "unit")},
        **{name: side[name] for name in ("median", "least", "most", "seeds")},
        **{name: side.get(name) for name in ("paired", "difference", "differs")},
        "side": side["name"],
        "low": low,
        "high": high,
    }


def _line(row: dict[str, Any]) -> list[str]:
    unit = f" ({row['unit']})" if row["unit"] else ""
    return [
        f"{row['case']} {row['label']}".strip(),
        f"{row['quantity']}{unit}",
        *(_cell(side) for side in row["sides"]),
    ]


def _cell(side: dict[str, Any]) -> str:
    if side["median"] is None:
        return "-"
    text = f"{side['median']:.4g} [{side['least']:.4g} to {side['most']:.4g}]"
    if side.get("difference") is None:
        return text
    text += f"; {side['difference']:+.3g}"
    if side["interval"] is not None:
        low, high = side["interval"]
        text += f" ({low:+.3g} to {high:+.3g}){'*' if side['differs'] else ''}"
    return text
