"""Experiments: plans, registry and runs.

An experiment is a function with typed, defaulted parameters that gives a `Plan`: cases to run, how to measure each, what to
claim of all, and what to draw. It is pure: parameters in, description out. So runs can be spread over processes, and a run's
folder can be drawn again without running anything.
"""

from __future__ import annotations

from tidegate.claims import Claim, Row, median, medians, spread
from tidegate.experiments.folder import FIGURE, RECORD, TABLES_FOLDER, redraw, replot
from tidegate.experiments.input_file import File, InputFile
from tidegate.experiments.plan import (
    MOST,
    AtLeast,
    Case,
    MayRepeat,
    Number,
    Numbers,
    OneOf,
    OrZero,
    Plan,
    Run,
    demand_warm_up,
)
from tidegate.experiments.registry import (
    Experiment,
    all_experiments,
    clock_time,
    demand_backend,
    experiment,
    find,
    of_system,
    size,
    with_settings,
)
from tidegate.experiments.running import Interrupted, Status, run

__all__ = [
    "FIGURE",
    "MOST",
    "RECORD",
    "TABLES_FOLDER",
    "AtLeast",
    "Case",
    "Claim",
    "Experiment",
    "File",
    "InputFile",
    "Interrupted",
    "MayRepeat",
    "Number",
    "Numbers",
    "OneOf",
    "OrZero",
    "Plan",
    "Row",
    "Run",
    "Status",
    "all_experiments",
    "clock_time",
    "demand_backend",
    "demand_warm_up",
    "experiment",
    "find",
    "median",
    "medians",
    "of_system",
    "redraw",
    "replot",
    "run",
    "size",
    "spread",
    "with_settings",
]
