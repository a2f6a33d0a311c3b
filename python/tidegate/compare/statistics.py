"""Medians, spread, and paired differences with bootstrap confidence intervals (Efron 1979; percentiles of the resampled median).

Of few values the percentiles are too close: of 7, they have the true median in 88 % of cases. So an interval is not narrower than the one
between two order statistics that has it in 95 % or more, for every continuous distribution (the inverted sign test; David and Nagaraja,
Order Statistics, 2003, section 7.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.compare.alike import Side, demand_alike, differing, identifying, labelled, shown
from tidegate.compare.comparison import Comparison
from tidegate.experiments.columns import unit

RESAMPLES = 2000
CONFIDENCE = 0.95
LEAST = 6
"""Values of an interval: all of fewer are on one side of the true median with a probability of more than 5 % (of 6, 3.1 %)."""


def interval(differences: Sequence[float], seed: int = 1) -> tuple[float, float] | None:
    """A 95 % interval of the median of paired differences; `None` of fewer than six."""
    if len(differences) < LEAST:
        return None
    rng = np.random.default_rng(seed)
    values = np.asarray(differences, dtype=float)
    drawn = rng.integers(0, len(values), (RESAMPLES, len(values)))
    middles = np.median(values[drawn], axis=1)
    low, high = np.quantile(middles, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    values.sort()
    rank = _rank(len(values))
    return float(min(low, values[rank])), float(max(high, values[-1 - rank]))


def _rank(count: int) -> int:
    """The largest rank from both ends, from 0, whose two values have the median between them with a probability of 95 % or more."""
    outside, rank = 0.0, -1
    while True:
        outside += 2 * math.comb(count, rank + 1) / 2**count
        if outside > 1 - CONFIDENCE:
            return rank
        rank += 1


def compare(sides: Sequence[Side], columns: Sequence[str] = (), seed: int = 1) -> Comparison:
    """The comparison of all sides with the first one: the contents of `--json`."""
    demand_alike(sides)
    first = sides[0]
    cases = [case for case in first.cases if all(case in one.cases for one in sides)]
    names = list(columns or first.columns)
    rows = []
    for case in cases:
        strings = identifying(sides, case)
        each = [labelled(one, case, strings) for one in sides]
        for number, label in enumerate(next(iter(each[0].values()))):
            for column in names:
                values = [{s: got[label].get(column) for s, got in side.items()} for side in each]
                if not any(_known(side) for side in values):
                    continue
                rows.append(_row(case, number, shown(label), column, sides, values, seed))
    left = sorted({case for one in sides for case in one.cases} - set(cases))
    return Comparison(
        sides=[
            {
                "name": one.name,
                "experiment": one.experiment,
                "backend": one.backend,
                "version": one.version,
                "parameters": one.parameters,
                "seeds": one.seeds,
            }
            for one in sides
        ],
        differing=differing(sides),
        left_out=left,
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        bootstrap_seed=seed,
        rows=rows,
    )


def _known(values: dict[int, Any]) -> dict[int, float]:
    """The finite numbers; what is infinite has no median or difference."""
    return {s: float(v) for s, v in values.items() if v is not None and math.isfinite(v)}


def _row(
    case: str,
    number: int,
    label: str,
    column: str,
    sides: Sequence[Side],
    values: list[dict[int, Any]],
    seed: int,
) -> dict[str, Any]:
    known = [_known(each) for each in values]
    out: dict[str, Any] = {
        "case": case,
        "row": number,
        "label": label,
        "quantity": column,
        "unit": unit(column),
        "sides": [],
    }
    for one, had in zip(sides, known, strict=True):
        both = sorted(had.keys() & known[0].keys())
        apart = [had[s] - known[0][s] for s in both]
        spread: npt.NDArray[np.float64] = np.asarray(list(had.values()))
        about: dict[str, Any] = {
            "name": one.name,
            "median": float(np.median(spread)) if had else None,
            "least": float(spread.min()) if had else None,
            "most": float(spread.max()) if had else None,
            "seeds": len(had),
        }
        if one is not sides[0]:
            ends = interval(apart, seed)
            about |= {
                "paired": len(both),
                "difference": float(np.median(apart)) if apart else None,
                "interval": None if ends is None else list(ends),
                "differs": None if ends is None else not ends[0] <= 0 <= ends[1],
            }
        out["sides"].append(about)
    return out
