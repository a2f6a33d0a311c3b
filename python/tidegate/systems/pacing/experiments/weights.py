"""Unequal shares, which the paper leaves for later: each flow's rate is its weight's part of the link."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import AtLeast, Case, MayRepeat, Plan, Run, experiment
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.experiments.star import Star, draw_rates
from tidegate.systems.pacing.format import MOST_WEIGHT

WARM_UP_S = 1.5


@experiment(
    "pacing.weights",
    ("weights", "flow", "weight", "fair_mbps", "goodput_mbps", "off"),
    backends=("sim", "live"),
    quick={"duration_s": 4.0},
)
def weights(
    weights: Annotated[tuple[int, ...], AtLeast(1, MOST_WEIGHT), MayRepeat()] = (1, 2, 3, 4),
    rate_mbps: Annotated[float, AtLeast(1.0)] = 100.0,
    rtt_ms: Annotated[float, AtLeast(0.1)] = 20.0,
    duration_s: Annotated[float, AtLeast(3.0)] = 10.0,
) -> Plan:
    """Flows of unequal weights through one link, and the same flows with equal ones."""
    cases = []
    for values in dict.fromkeys(((1,) * len(weights), weights)):
        name = ":".join(map(str, values))
        star = Star(rate_mbps, rtt_ms)
        for number, weight in enumerate(values):
            star.flow(star.host(weight=weight), 0.1 * number)
        measure = partial(_rows, star, name, values, duration_s)
        cases.append(Case(name.replace(":", "-"), star.network, f"{round(duration_s * 1000)} ms", measure))
    return Plan(cases, _claims, partial(_draw, duration_s))


def _rows(star: Star, name: str, values: tuple[int, ...], duration_s: float, result: Result) -> list[Row]:
    rates = star.rates(result, WARM_UP_S, duration_s)
    fair = [star.given_mbps * weight / sum(values) for weight in values]
    return [
        {
            "weights": name,
            "flow": number + 1,
            "weight": weight,
            "fair_mbps": fair[number],
            "goodput_mbps": float(rates[number]),
            "off": float(rates[number]) / fair[number] - 1,
        }
        for number, weight in enumerate(values)
    ]


def _claims(rows: list[Row]) -> list[Claim]:
    off = medians(rows, "off", lambda row: f"{row['weights']} flow {row['flow']}")
    return [
        between(
            "weights",
            "ours",
            "Each flow gets its weight's part of what the link gives away, within 2 %",
            off,
            -0.02,
            0.02,
            why="flows send late by what the machine takes",
            form=Percents(),
        )
    ]


def _draw(duration_s: float, runs: list[Run]) -> Figure:
    """Goodput over time."""
    shown = of_first_seed(runs)
    figure = Figure(figsize=(4.5 * len(shown), 3.6), layout="constrained")
    for panel, run in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        rows = run.rows or []
        draw_rates(panel, run, [f"weight {row['weight']}" for row in rows], duration_s)
        panel.set_title(f"weights {rows[0]['weights'] if rows else ''}")
    return figure
