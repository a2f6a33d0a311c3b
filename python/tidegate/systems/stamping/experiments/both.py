"""Section 5 of the paper: the largest queue with the RTT beside it. A flow then also gives way to queues that are not its bottleneck.

The network is that of Figs. 2 to 4, the control `stamp` with a weight of the RTT from 0 (MAX alone) to 1 (the RTT). The paper expects
max-min shares from the one and proportional ones from the other.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import AtLeast, Case, Number, Plan, Run, demand_warm_up, experiment
from tidegate.plots import all_rows, whiskers
from tidegate.results import Result
from tidegate.systems.stamping.experiments.parking_lot import CrossFlows, Lot, demand_queues

WEIGHTS = (0.0, 0.05, 0.1, 0.25, 0.5, 1.0)


WHY_LARGEST = "all five queues are held at the same length, and the largest of five that fluctuate is longer than each of them"
WHY_SUM = (
    "the control brings its signal to a set point: flows with one queue hold each queue there, so the sum on the way of the primary flow is "
    "always above it, and only the additive step keeps that flow going"
)


@experiment(
    "stamping.both",
    ("rtt_weight", "throughput_gbps", "of_fair", "of_proportional", "cross_gbps", "rtt_us_p50", "rtt_us_p95"),
    quick={"duration_ms": 60, "rtt_weights": (0.0, 0.25, 1.0)},
)
def both(
    rtt_weights: Annotated[tuple[float, ...], AtLeast(0.0, 1.0)] = WEIGHTS,
    cross_flows: CrossFlows = (1, 1, 1, 3, 6),
    duration_ms: Number = 200,
    warm_up_ms: float = 20.0,
) -> Plan:
    """The control `stamp` on MAX with a part of the RTT: from max-min shares to proportional ones (section 5)."""
    demand_warm_up(warm_up_ms, duration_ms, "ms")
    demand_queues(cross_flows)
    lots = {weight: Lot("max", cross_flows, control={"rtt_weight": weight}) for weight in rtt_weights}
    cases = [
        Case(f"weight-{weight:g}", lot.network, f"{duration_ms} ms", partial(_row, lot, weight, warm_up_ms))
        for weight, lot in lots.items()
    ]
    return Plan(cases, _claims, partial(_draw, next(iter(lots.values()))))


def _row(lot: Lot, weight: float, warm_up_ms: float, result: Result) -> Row:
    row = lot.rows({}, warm_up_ms, result)
    last = len(lot.cross_flows)
    return {
        "rtt_weight": weight,
        **{name: row[name] for name in ("throughput_gbps", "of_fair")},
        "of_proportional": row["throughput_gbps"] / lot.proportional_gbps,
        "cross_gbps": row[f"cross{last}_gbps"],
        **{name: row[name] for name in ("rtt_us_mean", "rtt_us_p50", "rtt_us_p95", "retransmits")},
        **{f"queue{number}_us_mean": row[f"queue{number}_us_mean"] for number in range(1, last + 1)},
    }


def _claims(rows: list[Row]) -> list[Claim]:
    def of(column: str, weight: float) -> dict[str, float]:
        return medians(
            [row for row in rows if row["rtt_weight"] == weight],
            column,
            lambda row: f"weight {row['rtt_weight']:g}",
        )

    claims = []
    if of("of_fair", 0.0):
        statement = "On MAX alone the primary flow has 0.9 to 1.1 of its max-min share"
        claims.append(between("max-min", "ours", statement, of("of_fair", 0.0), 0.9, 1.1, why=WHY_LARGEST))
    if of("of_proportional", 1.0):
        statement = "On the RTT the primary flow has 0.8 to 1.2 of its proportionally fair share"
        shares = of("of_proportional", 1.0)
        claims.append(between("proportional", "ours", statement, shares, 0.8, 1.2, why=WHY_SUM))
    return claims


def _draw(lot: Lot, runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    weights = sorted({row["rtt_weight"] for row in rows})

    def of(column: str) -> list[float]:
        return [float(np.median([r[column] for r in rows if r["rtt_weight"] == w])) for w in weights]

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(weights, of("throughput_gbps"), marker="o", label="primary flow")
    left.plot(weights, of("cross_gbps"), marker="s", label="a cross flow at the bottleneck")
    for panel, column, shade in (
        (left, "throughput_gbps", "C0"),
        (left, "cross_gbps", "C1"),
        (right, "rtt_us_p50", "C0"),
        (right, "rtt_us_p95", "C1"),
    ):
        whiskers(panel, rows, column, lambda row: str(row["rtt_weight"]), colour=shade)
    left.axhline(lot.fair_gbps, color="0.4", linestyle=":", label="max-min share")
    left.axhline(lot.proportional_gbps, color="0.4", linestyle="--", label="proportionally fair share")
    left.set(xlabel="weight of the RTT", ylabel="throughput (Gbit/s)", ylim=(0, None))
    left.legend(fontsize="small")
    for column, label in (("rtt_us_p50", "p50"), ("rtt_us_p95", "p95")):
        right.plot(weights, of(column), marker="o", label=label)
    right.set(xlabel="weight of the RTT", ylabel="RTT of the primary flow (us)")
    right.legend(fontsize="small")
    for panel in (left, right):
        panel.grid(alpha=0.3)
    return figure
