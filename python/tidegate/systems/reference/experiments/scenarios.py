"""Schemes on scenarios: all systems, and the queues of plain routers, on the same networks with the same flows."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import cycle
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate import TidegateError
from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import Case, File, InputFile, OneOf, Plan, Run, experiment
from tidegate.experiments.own import Own
from tidegate.network import Network
from tidegate.plots import CYCLE, all_rows, log_scale
from tidegate.results import Result
from tidegate.scenarios import SCENARIOS, SCHEMES, Scenario, measure, network, on_trace, own, parse

PANELS = {
    "of_capacity": "goodput (of the link)",
    "queue_ms_mean": "mean queue delay (ms)",
    "short_ms": "short transfers (ms, median)",
}

TRACE = "trace"


def _check(data: bytes, name: str) -> None:
    on_trace(parse(data, name))


@experiment(
    "reference.scenarios",
    backends=("sim", "live"),
    live={"scenarios": ("access", "wifi"), "schemes": ("fifo", "codel", "fq_codel", "drr", "meter")},
    live_quick={"scenarios": ("access",), "schemes": ("fifo", "fq_codel")},
    quick={"scenarios": ("access", "wifi"), "schemes": ("fifo", "fq_codel", "aqm")},
)
def scenarios(
    scenarios: Annotated[tuple[str, ...], OneOf((*SCENARIOS, TRACE))] = tuple(SCENARIOS),
    schemes: Annotated[tuple[str | Own, ...], OneOf(own.names(), own.given)] = tuple(SCHEMES),
    trace: Annotated[InputFile | None, File("trace in Mahimahi's format", _check)] = None,
) -> Plan:
    """All schemes on the same scenarios: goodput, fairness, queue delay, short transfers.

    A scheme of yours is given by its file, as `schemes=fifo,./my.py:scheme`. With a file as `trace` there is a scenario more, `trace`: that of `wifi` whose link follows the file. `scenarios=trace` runs it alone.
    """
    if trace is None and TRACE in scenarios:
        raise TidegateError("the scenario trace needs a file: --set trace=FILE")
    if trace is not None and TRACE not in scenarios:
        scenarios = (*scenarios, TRACE)
    schemes = own.distinct(schemes)
    cases = [
        Case(
            f"{one}-{two}",
            partial(_network, one, two, trace),
            SCENARIOS["wifi" if one == TRACE else one].duration,
            partial(_measure, one, two, trace),
        )
        for one in scenarios
        for two in schemes
    ]
    return Plan(cases, _claims, partial(_draw, scenarios, [str(one) for one in schemes]))


@lru_cache(8)
def _scenario(name: str, trace: InputFile | None) -> Scenario:
    """The trace is looked at where a case is run, and not where a plan is made: a figure needs none."""
    return SCENARIOS[name] if name != TRACE or trace is None else on_trace(parse(trace.data, trace.path))


def _network(name: str, scheme: str | Own, trace: InputFile | None, seed: int) -> Network:
    return network(_scenario(name, trace), own.find(scheme), seed)


def _measure(name: str, scheme: str | Own, trace: InputFile | None, result: Result) -> Row:
    return measure(_scenario(name, trace), own.find(scheme), result)


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


def _draw(scenarios: tuple[str, ...], schemes: list[str], runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    figure = Figure(figsize=(3 + 1.6 * len(scenarios), 8), layout="constrained")
    width = 0.8 / len(schemes)
    colours = dict(zip(dict.fromkeys([*SCHEMES, *schemes]), cycle(CYCLE), strict=False))
    for panel, (column, text) in zip(figure.subplots(len(PANELS), 1), PANELS.items(), strict=True):
        for number, scheme in enumerate(schemes):
            values = [
                [row[column] for row in rows if (row["scenario"], row["scheme"]) == (name, scheme)]
                for name in scenarios
            ]
            places = np.arange(len(scenarios)) + (number - (len(schemes) - 1) / 2) * width
            middle = [float(np.median(each)) for each in values]
            panel.bar(places, middle, width, color=colours[scheme], label=scheme)
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
