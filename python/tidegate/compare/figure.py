"""The figure of a comparison: a panel for each quantity; medians, their spread over seeds, and intervals of the differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 6


def draw(answer: dict[str, Any]) -> Figure:
    """Above, the medians with the least and the largest value; below, the differences from the first side with their intervals."""
    from matplotlib.figure import Figure

    from tidegate.plots import CYCLE

    names = [side["name"] for side in answer["sides"]]
    known = list(dict.fromkeys(row["quantity"] for row in answer["rows"]))
    quantities, cut = known[:MOST_PANELS], known[MOST_PANELS:]
    height = 1.2 + 2.4 * len(quantities)
    cases = list(dict.fromkeys(_case(row) for row in answer["rows"]))
    figure = Figure(figsize=(min(6 + 1.1 * len(cases), 16), height), layout="constrained")
    panels = figure.subplots(len(quantities), 2, squeeze=False)
    width = 0.8 / len(names)
    for (left, right), quantity in zip(panels, quantities, strict=True):
        rows = {_case(row): row for row in answer["rows"] if row["quantity"] == quantity}
        shown = [case for case in cases if case in rows]
        unit = next(iter(rows.values()))["unit"]
        for number, name in enumerate(names):
            places = np.arange(len(shown)) + (number - (len(names) - 1) / 2) * width
            each = [rows[case]["sides"][number] for case in shown]
            middle, low, high = (
                np.array([np.nan if one[what] is None else one[what] for one in each])
                for what in ("median", "least", "most")
            )
            colour = CYCLE[number % len(CYCLE)]
            left.bar(places, middle, width, color=colour, label=name)
            left.vlines(places, low, high, color="0.2", linewidth=1)
            if number == 0:
                continue
            apart = np.array([np.nan if one["difference"] is None else one["difference"] for one in each])
            # In percent of the first side's absolute median, so that all cases have room in one panel; of 0 there is none.
            base = np.abs([rows[case]["sides"][0]["median"] or np.nan for case in shown])
            ends = np.array([one["interval"] or (np.nan, np.nan) for one in each])
            right.plot(100 * apart / base, places, "o", color=colour, markersize=4)
            right.hlines(places, *(100 * ends[:, side] / base for side in (0, 1)), color=colour)
        left.set_xticks(range(len(shown)), shown, rotation=0 if len(shown) < 7 else 60)
        left.set_ylabel(quantity + (f" ({unit})" if unit else ""), fontsize="small")
        left.grid(axis="y", alpha=0.3)
        right.axvline(0, color="0.3", linewidth=1)
        right.set_yticks(range(len(shown)), shown)
        # From above, as the cases on the left from its left; also where there is one.
        right.set_ylim(len(shown) - 0.5, -0.5)
        without = [case for case in shown if rows[case]["sides"][0]["median"] == 0]
        right.set_xlabel(
            f"difference from {names[0]} (%)"
            + (f"\nnot drawn, as its median is 0: {_some(without)}" if without else ""),
            fontsize="small",
        )
        right.margins(x=0.15)
        right.grid(axis="x", alpha=0.3)
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, fontsize="small")
    if cut:
        figure.supxlabel(f"not drawn: {_some(cut)}; choose with --quantity", fontsize="small")
    return figure


def _some(names: list[str], most: int = 4) -> str:
    """The first names, and how many others there are."""
    others = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + others


def _case(row: dict[str, Any]) -> str:
    return f"{row['case']} {row['label']}".strip()
