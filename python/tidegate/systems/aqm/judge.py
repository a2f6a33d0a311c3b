"""How the experiments are judged: medians over seeds, and claims about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tidegate.experiments import Claim, Row
from tidegate.systems.aqm.lab import series


def over_seeds(rows: Sequence[Row], column: str, label: Callable[[Row], str]) -> dict[str, float]:
    """Medians of a column over the seeds, by label."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row[column])
    return {name: float(np.median(values)) for name, values in groups.items()}


def between(
    id: str, statement: str, published: str, values: dict[str, float], low: float, high: float
) -> Claim:
    """The claim that all of these values are from `low` to `high`. What was measured names those that are not."""
    beyond = {name: value for name, value in values.items() if not low <= value <= high}
    measured = series(list(values.values())) if values else "nothing to measure"
    if beyond:
        named = [f"{name} ({value:.3g})" for name, value in beyond.items()]
        more = f" and {len(named) - 8} more of {len(values)}" if len(named) > 8 else ""
        measured += "; beyond: " + ", ".join(named[:8]) + more
    return Claim(id, statement, published, measured, holds=bool(values) and not beyond)


def mean_below(id: str, statement: str, published: str, values: dict[str, float], high: float) -> Claim:
    """The claim that the mean of these values is below `high`."""
    mean = float(np.mean(list(values.values()))) if values else float("nan")
    return Claim(id, statement, published, f"{mean:.3g}", holds=mean < high)
