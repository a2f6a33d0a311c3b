"""How the noise of the signals, and the primary flow's throughput, depend on the number of shared queues."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, demand_warm_up, experiment
from tidegate.papers import of_run
from tidegate.plots import all_rows, colour, whiskers
from tidegate.results import Result
from tidegate.systems.stamping.claims import CLAIMS
from tidegate.systems.stamping.experiments.parking_lot import (
    MIN_RTT_US,
    MOST_QUEUES,
    Lot,
    author_s_constants,
    measured,
)
from tidegate.systems.stamping.experiments.testbed import SIGNALS, WHY_CONSTANTS

NOISES = ("sum", "sum_squ", "max")


@experiment(
    "stamping.hops",
    ("signal", "hops", "throughput_gbps", "of_fair", "noise_us_sum", "noise_us_sum_squ", "noise_us_max"),
    quick={"duration_ms": 60, "hops": (1, 2, 4, 7, 12)},
)
def hops(
    hops: Annotated[tuple[int, ...], AtLeast(1, MOST_QUEUES)] = tuple(range(1, 13)),
    signals: Annotated[tuple[str, ...], OneOf(SIGNALS)] = ("rtt", "sum_squ", "max"),
    cross_flows: Number = 1,
    last_cross_flows: Number = 6,
    duration_ms: Number = 400,
    warm_up_ms: float = 20.0,
) -> Plan:
    """1 to 12 shared queues at the same RTT without queues: noise of the signals, and throughput of the primary flow."""
    demand_warm_up(warm_up_ms, duration_ms, "ms")
    cases = []
    for number in hops:
        for signal in signals:
            lot = Lot(signal, (cross_flows,) * (number - 1) + (last_cross_flows,), author_s_constants())
            about = {"hops": number}
            measure = partial(_row, lot, about, warm_up_ms)
            cases.append(Case(f"{signal}-{number}", lot.network, f"{duration_ms} ms", measure))
    return Plan(cases, partial(_claims, signals), partial(_draw, signals, last_cross_flows))


def _row(lot: Lot, about: Row, warm_up_ms: float, result: Result) -> Row:
    """Without the columns of single queues, whose number differs from case to case."""
    row = measured(lot, about, warm_up_ms)(result)
    return {
        name: value
        for name, value in row.items()
        if not name.startswith(("queue", "cross")) or "fair" in name
    }


def _whiskers(panel: Axes, rows: list[Row], signal: str, column: str, shade: str) -> None:
    own = [row for row in rows if row["signal"] == signal]
    whiskers(panel, own, column, lambda row: str(row["hops"]), colour=shade)


def _by_hops(rows: list[Row], signal: str, column: str) -> dict[int, float]:
    own = [row for row in rows if row["signal"] == signal]
    return {int(name): value for name, value in medians(own, column, lambda row: str(row["hops"])).items()}


def _claims(signals: tuple[str, ...], rows: list[Row]) -> list[Claim]:
    out = of_run(CLAIMS, "stamping.hops", rows, {})
    if "max" in signals:
        shares = {f"{hops} queues": share for hops, share in _by_hops(rows, "max", "of_fair").items()}
        statement = "with MAX the primary flow has 0.9 to 1.1 of its fair share with any number of queues"
        out.append(between("max-fair", "ours", statement, shares, 0.9, 1.1, why=WHY_CONSTANTS))
    return out


def _draw(signals: tuple[str, ...], last_cross_flows: int, runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    noise, rate = figure.subplots(1, 2)
    driver = "max" if "max" in signals else signals[0]
    for name in NOISES:
        values = _by_hops(rows, driver, f"noise_us_{name}")
        noise.plot(list(values), list(values.values()), "o-", color=colour(name), label=SIGNALS[name])
        _whiskers(noise, rows, driver, f"noise_us_{name}", colour(name))
    sums = _by_hops(rows, driver, "noise_us_sum")
    if 2 in sums:
        at = np.array(sorted(sums))
        noise.plot(
            at, sums[2] * np.sqrt(at - 1), ":", color="0.4", label="root of the number of other queues"
        )
    noise.set(
        xlabel="shared queues",
        ylabel="signal less the bottleneck's queue: sd (us)",
        title=f"flows follow {SIGNALS[driver]}",
        ylim=(0, None),
    )
    noise.legend(fontsize="small")
    for signal in signals:
        values = _by_hops(rows, signal, "throughput_gbps")
        rate.plot(list(values), list(values.values()), "o-", color=colour(signal), label=SIGNALS[signal])
        _whiskers(rate, rows, signal, "throughput_gbps", colour(signal))
    rate.axhline(10 / (last_cross_flows + 1), color="0.4", linestyle=":", label="fair share")
    rate.set(
        xlabel="shared queues",
        ylabel="primary flow (Gbit/s)",
        title=f"RTT without queues: {MIN_RTT_US:.1f} us",
        ylim=(0, None),
    )
    rate.legend(fontsize="small")
    for panel in (noise, rate):
        panel.grid(alpha=0.3)
    return figure
