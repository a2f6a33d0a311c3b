"""The figure of cells and contenders: a line for each cell, a column for each contender, a value in each field."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from tidegate.systems.meter.experiments.contenders import CONTENDERS

LETTERS = 13
"""Of a title, to an inch."""


@dataclass(frozen=True)
class Shading:
    """How values are shown."""

    colours: str
    """Matplotlib's name of the map."""
    low: float
    high: float
    label: str
    """With the unit."""
    text: Callable[[float], str]
    beyond: Callable[[float], bool]
    """Whether a value is not as it should be: bold."""


def draw_grid(
    values: Mapping[str, Mapping[str, float]], cells: Mapping[str, str], shading: Shading, title: str
) -> Figure:
    """The values by contender and cell; `cells` are their names and texts. A cell without a value stays empty."""
    grid = np.array([[values[scheme].get(cell, np.nan) for scheme in values] for cell in cells])
    longest = max(map(len, cells.values()))
    width = 2.2 + 0.08 * longest + 0.68 * len(values)
    figure = Figure(figsize=(width, 3.2 + 0.32 * len(cells)), layout="constrained")
    panel = figure.subplots()
    image = panel.imshow(
        np.clip(grid, shading.low, shading.high),
        cmap=shading.colours,
        vmin=shading.low,
        vmax=shading.high,
        aspect="auto",
    )
    middle, reach = (shading.low + shading.high) / 2, (shading.high - shading.low) / 2
    for (line, column), value in np.ndenumerate(grid):
        if np.isnan(value):
            continue
        panel.text(
            column,
            line,
            shading.text(value),
            ha="center",
            va="center",
            fontsize=8,
            color="white"
            if abs(np.clip(value, shading.low, shading.high) - middle) > 0.7 * reach
            else "black",
            weight="bold" if shading.beyond(value) else "normal",
        )
    panel.set_xticks(
        range(len(values)),
        [CONTENDERS[scheme].text for scheme in values],
        rotation=40,
        ha="right",
        rotation_mode="anchor",
        fontsize=9,
    )
    panel.set_yticks(range(len(cells)), list(cells.values()), fontsize=9)
    figure.colorbar(image, ax=panel, label=shading.label, pad=0.02)
    shown = [textwrap.fill(line, round(width * LETTERS)) for line in title.splitlines()]
    figure.suptitle("\n".join(shown), fontsize=10)
    return figure
