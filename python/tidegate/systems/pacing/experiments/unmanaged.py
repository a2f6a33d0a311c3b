"""Traffic that does not take part: the switch measures it, and takes it off before it shares the rest."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, Unit, between, medians
from tidegate.experiments import AtLeast, Case, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.experiments.join import PAYLOAD
from tidegate.systems.pacing.experiments.star import Star, draw_rates

BEGIN_S, END_S, STOP_S = 3.0, 6.0, 9.0
FLOWS = 3


@experiment(
    "pacing.unmanaged",
    (
        "cross_mbps",
        "goodput_before_mbps",
        "goodput_during_mbps",
        "goodput_after_mbps",
        "of_rest",
        "queue_delay_ms_p99",
    ),
    quick={"cross_mbps": (30.0,)},
)
def unmanaged(
    rate_mbps: Annotated[float, AtLeast(1.0)] = 100.0,
    rtt_ms: Annotated[float, AtLeast(0.1)] = 20.0,
    cross_mbps: tuple[float, ...] = (10.0, 30.0, 60.0),
) -> Plan:
    """Three paced flows beside UDP that comes and goes: what they have before, during and after it."""
    cases = []
    for cross in cross_mbps:
        star = Star(rate_mbps, rtt_ms)
        for number in range(FLOWS):
            star.flow(star.host(), 0.1 * number)
        network: Network = star.network
        network.udp(
            star.plain_host(),
            star.server,
            rate=round(cross * 1e6),
            payload=1472,
            start=round(BEGIN_S * 1e12),
            stop=round(END_S * 1e12),
        )
        measure = partial(_row, star, cross)
        cases.append(Case(f"{cross:g}", network, f"{round(STOP_S * 1000)} ms", measure))
    return Plan(cases, _claims, _draw)


def _row(star: Star, cross: float, result: Result) -> Row:
    spans = {"before": (1.5, BEGIN_S), "during": (BEGIN_S + 1.0, END_S), "after": (END_S + 1.0, STOP_S)}
    sums = {name: float(star.rates(result, *span).sum()) for name, span in spans.items()}
    queue = result.queue_samples.filter(result.queue_samples["queue"] == "switch -> server")
    delays = queue.filter((queue["time_s"] > BEGIN_S + 1.0) & (queue["time_s"] < END_S))[
        "queue_delay_ms"
    ].to_numpy()
    rest = star.given_mbps - cross * 1514 / 1500 * PAYLOAD
    return {
        "cross_mbps": cross,
        **{f"goodput_{name}_mbps": value for name, value in sums.items()},
        "of_rest": sums["during"] / rest,
        "of_given_after": sums["after"] / star.given_mbps,
        "queue_delay_ms_p99": float(np.quantile(delays, 0.99)),
        "retransmits": int(result.flows["retransmits"].sum()),
    }


def _claims(rows: list[Row]) -> list[Claim]:
    def label(row: Row) -> str:
        return f"{row['cross_mbps']:g} Mbit/s"

    during = medians(rows, lambda row: float(row["of_rest"]) - 1, label)
    after = medians(rows, lambda row: float(row["of_given_after"]) - 1, label)
    delays = medians(rows, "queue_delay_ms_p99", label)
    return [
        between(
            "rest",
            "ours",
            "Beside it, paced flows get the rest within 3 %",
            during,
            -0.03,
            0.03,
            form=Percents(),
        ),
        between(
            "after",
            "ours",
            "A second after it has ended they have all again, within 1 %",
            after,
            -0.01,
            0.01,
            form=Percents(),
        ),
        between(
            "queue", "ours", "Beside it the queue's p99 is at most 3 ms", delays, high=3.0, form=Unit("ms")
        ),
    ]


def _draw(runs: list[Run]) -> Figure:
    """Goodput over time."""
    shown = of_first_seed(runs)
    figure = Figure(figsize=(4.5 * len(shown), 3.6), layout="constrained")
    for panel, run in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        draw_rates(panel, run, [f"flow {n + 1}" for n in range(FLOWS)], STOP_S)
        panel.axvspan(BEGIN_S, END_S, color="0.9")
        panel.set_title(f"UDP of {(run.rows or [{}])[0].get('cross_mbps', 0):g} Mbit/s in grey")
    return figure
