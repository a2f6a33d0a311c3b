"""Shares by flow and by host, which the paper means by turns: hosts with unequal numbers of flows behind one link."""

from __future__ import annotations

from functools import partial
from typing import Annotated, get_args

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import AtLeast, Case, MayRepeat, OneOf, Plan, Run, experiment
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.controller import ShareBy
from tidegate.systems.pacing.experiments.star import Star, draw_rates

WARM_UP_S = 1.5


@experiment(
    "pacing.hosts",
    ("share_by", "host", "flows", "fair_mbps", "goodput_mbps", "off", "flow_off"),
    backends=("sim", "live"),
    quick={"duration_s": 4.0},
)
def hosts(
    flows: Annotated[tuple[int, ...], AtLeast(1, 1000), MayRepeat()] = (5, 2, 1),
    share_by: Annotated[tuple[ShareBy, ...], OneOf(get_args(ShareBy))] = ("flow", "host"),
    rate_mbps: Annotated[float, AtLeast(1.0)] = 100.0,
    rtt_ms: Annotated[float, AtLeast(0.1)] = 20.0,
    duration_s: Annotated[float, AtLeast(3.0)] = 10.0,
) -> Plan:
    """Hosts with 5, 2 and 1 flows: the same rate for each flow, or for each host."""
    cases = []
    for by in share_by:
        star = Star(rate_mbps, rtt_ms, options={"share_by": by})
        started = 0
        for count in flows:
            host = star.host()
            for _ in range(count):
                star.flow(host, 0.1 * started)
                started += 1
        measure = partial(_rows, star, by, flows, duration_s)
        cases.append(Case(by, star.network, f"{round(duration_s * 1000)} ms", measure))
    return Plan(cases, _claims, partial(_draw, flows, duration_s))


def _rows(star: Star, by: ShareBy, flows: tuple[int, ...], duration_s: float, result: Result) -> list[Row]:
    rates = star.rates(result, WARM_UP_S, duration_s)
    own = np.split(rates, np.cumsum(flows)[:-1])
    rows: list[Row] = []
    for number, count in enumerate(flows):
        part = count / sum(flows) if by == "flow" else 1 / len(flows)
        fair = star.given_mbps * part
        rows.append(
            {
                "share_by": by,
                "host": number + 1,
                "flows": count,
                "fair_mbps": fair,
                "goodput_mbps": float(own[number].sum()),
                "off": float(own[number].sum()) / fair - 1,
                "flow_off": float(np.abs(own[number] * count / fair - 1).max()),
            }
        )
    return rows


def _claims(rows: list[Row]) -> list[Claim]:
    def of(column: str) -> dict[str, float]:
        return medians(rows, column, lambda row: f"by {row['share_by']}, host {row['host']}")

    late = "flows send late by what the machine takes"
    return [
        between(
            "hosts",
            "ours",
            "Each host gets its part of what the link gives away, within 2 %",
            of("off"),
            -0.02,
            0.02,
            why=late,
            form=Percents(),
        ),
        between(
            "flows",
            "ours",
            "Flows of a host share what it gets equally, within 2 %",
            of("flow_off"),
            high=0.02,
            why=late,
            form=Percents(),
        ),
    ]


def _draw(flows: tuple[int, ...], duration_s: float, runs: list[Run]) -> Figure:
    """Goodput over time."""
    shown = of_first_seed(runs)
    figure = Figure(figsize=(4.5 * len(shown), 3.6), layout="constrained")
    names = [f"host {host + 1}, flow {flow + 1}" for host, count in enumerate(flows) for flow in range(count)]
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for panel, run in zip(panels, shown, strict=True):
        draw_rates(panel, run, names, duration_s)
        panel.legend(fontsize="x-small", loc="center right") if panel is panels[
            0
        ] else panel.legend().remove()
        panel.set_title(f"shares by {run.rows[0]['share_by'] if run.rows else ''}")
    return figure
