"""Shared parts of the experiments' figures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidegate.claims import Row

if TYPE_CHECKING:
    from tidegate.experiments import Run


def all_rows(runs: Iterable[Run]) -> list[Row]:
    """The rows of all runs; interrupted runs have none."""
    return [row for run in runs for row in run.rows or ()]


def of_first_seed(runs: list[Run]) -> list[Run]:
    """The runs with the first seed, which time series show."""
    return [run for run in runs if run.seed == runs[0].seed]
