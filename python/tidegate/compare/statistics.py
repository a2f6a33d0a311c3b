"""Medians, spread, and paired differences with bootstrap confidence intervals (Efron 1979; percentiles of the resampled median)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.compare.alike import Side, demand_alike, differing
from tidegate.experiments.columns import unit

RESAMPLES = 2000
CONFIDENCE = 0.95


def interval(differences: Sequence[float], seed: int = 1) -> tuple[float, float] | None:
    """A 95 % interval of the median of paired differences; `None` of fewer than three, of which there is none to speak of."""
    if len(differences) < 3:
        return None
    rng = np.random.default_rng(seed)
    values = np.asarray(differences, dtype=float)
    drawn = rng.integers(0, len(values), (RESAMPLES, len(values)))
    middles = np.median(values[drawn], axis=1)
    low, high = np.quantile(middles, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def compare(sides: Sequence[Side], columns: Sequence[str] = (), seed: int = 1) -> dict[str, Any]:
    """The comparison of all sides with the first one: the contents of `--json`."""
    demand_alike(sides)
    first = sides[0]
    cases = [case for case in first.cases if all(case in one.cases for one in sides)]
    names = list(columns or first.columns)
    rows = []
    for case in cases:
        each = [_by_row(one, case) for one in sides]
        for number in range(len(next(iter(each[0].values())))):
            for column in names:
                values = [{s: got[number].get(column) for s, got in side.items()} for side in each]
                if all(value is None or math.isnan(value) for side in values for value in side.values()):
                    continue
                rows.append(_row(case, number, column, sides, values, seed))
    left = sorted({case for one in sides for case in one.cases} - set(cases))
    return {
        "sides": [
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
        "differing": differing(sides),
        "left_out": left,
        "confidence": CONFIDENCE,
        "resamples": RESAMPLES,
        "bootstrap_seed": seed,
        "rows": rows,
    }


def _by_row(side: Side, case: str) -> dict[int, list[dict[str, Any]]]:
    """The rows of a case by seed."""
    found: dict[int, list[dict[str, Any]]] = {}
    for row in side.rows:
        if row["case"] == case:
            found.setdefault(row["seed"], []).append(row)
    return found


def _known(values: dict[int, Any]) -> dict[int, float]:
    return {s: float(v) for s, v in values.items() if v is not None and not math.isnan(v)}


def _row(
    case: str, number: int, column: str, sides: Sequence[Side], values: list[dict[int, Any]], seed: int
) -> dict[str, Any]:
    known = [_known(each) for each in values]
    out: dict[str, Any] = {"case": case, "row": number, "quantity": column, "unit": unit(column), "sides": []}
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
