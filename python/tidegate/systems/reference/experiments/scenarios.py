"""Schemes on scenarios: all systems, and the queues of plain routers, on the same networks with the same flows."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import Case, OneOf, Plan, Run, experiment
from tidegate.plots import CYCLE, all_rows, log_scale
from tidegate.scenarios import SCENARIOS, SCHEMES, measure, network

PANELS = {
    "of_capacity": "goodput (of the link)",
    "queue_ms_mean": "mean queue delay (ms)",
    "short_ms": "short transfers (ms, median)",
}


@experiment(
    "reference.scenarios",
    backends=("sim", "live"),
    live={"scenarios": ("access", "wifi"), "schemes": ("fifo", "codel", "fq_codel", "drr", "meter")},
    live_quick={"scenarios": ("access",), "schemes": ("fifo", "fq_codel")},
    quick={"scenarios": ("access", "wifi"), "schemes": ("fifo", "fq_codel", "aqm")},
)
def scenarios(
    scenarios: Annotated[tuple[str, ...], OneOf(SCENARIOS)] = tuple(SCENARIOS),
    schemes: Annotated[tuple[str, ...], OneOf(SCHEMES)] = tuple(SCHEMES),
) -> Plan:
    """All schemes on the same scenarios: goodput, fairness, queue delay, short transfers."""
    cases = []
    for one in scenarios:
        scenario = SCENARIOS[one]
        for two in schemes:
            scheme = SCHEMES[two]
            cases.append(
                Case(
                    f"{one}-{two}",
                    partial(network, scenario, scheme),
                    scenario.duration,
                    partial(measure, scenario, scheme),
                )
            )
    return Plan(cases, _claims, partial(_draw, scenarios, schemes))


def _claims(rows: list[Row]) -> list[Claim]:
    """What everybody knows, as a check of the scenarios."""
    known = [row for row in rows if row["scenario"] == "access"]
    queues = medians(known, "queue_ms_mean", lambda row: str(row["scheme"]))
    if "fifo" not in queues:
        return []
    parts = {
        name: value / queues["fifo"] for name, value in queues.items() if name in ("codel", "fq_codel", "aqm")
    }
    if not parts:
        return []
    statement = "access link: CoDel, FQ-CoDel and DualPI2 have at most half of FIFO's mean queue"
    return [between("queue", "ours", statement, parts, 0, 0.5, form=Unit("of FIFO's"))]


def _draw(scenarios: tuple[str, ...], schemes: tuple[str, ...], runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    figure = Figure(figsize=(3 + 1.6 * len(scenarios), 8), layout="constrained")
    width = 0.8 / len(schemes)
    for panel, (column, text) in zip(figure.subplots(len(PANELS), 1), PANELS.items(), strict=True):
        for number, scheme in enumerate(schemes):
            values = [
                [row[column] for row in rows if (row["scenario"], row["scheme"]) == (name, scheme)]
                for name in scenarios
            ]
            places = np.arange(len(scenarios)) + (number - (len(schemes) - 1) / 2) * width
            middle = [float(np.median(each)) for each in values]
            panel.bar(
                places, middle, width, color=CYCLE[list(SCHEMES).index(scheme) % len(CYCLE)], label=scheme
            )
            panel.vlines(
                places,
                [min(each) for each in values],
                [max(each) for each in values],
                color="0.2",
                linewidth=1,
            )
        panel.set_xticks(range(len(scenarios)), scenarios)
        panel.set_xlim(-0.5, len(scenarios) - 0.5)
        panel.set_ylabel(text)
        if column != "of_capacity":
            log_scale(panel)
        panel.grid(axis="y", alpha=0.3)
    figure.axes[0].legend(ncols=5, fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure
