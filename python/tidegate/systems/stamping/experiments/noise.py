"""Figures 2 to 4 of the paper: one flow through five shared queues of which only the last is its bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row
from tidegate.experiments import Case, Number, OneOf, Plan, Run, demand_warm_up, experiment
from tidegate.papers import of_run
from tidegate.plots import colour, of_first_seed
from tidegate.systems.stamping.claims import CLAIMS
from tidegate.systems.stamping.experiments.parking_lot import (
    MIN_RTT_US,
    RATE_GBPS,
    SAMPLE_US,
    CrossFlows,
    Lot,
    author_s_constants,
    demand_queues,
    measured,
)
from tidegate.systems.stamping.experiments.testbed import PACKET, SIGNALS, Signals, is_stamp

# Queues are drawn for so long after the warm-up.
SHOWN_MS = 20
# Throughput over time is drawn over intervals of so much.
AVERAGED_MS = 2


@experiment(
    "stamping.noise",
    ("signal", "throughput_gbps", "of_fair", "rtt_us_p50", "rtt_us_p95", "max_elsewhere", "retransmits"),
    backends=("sim", "live"),
    quick={"duration_ms": 100},
    live={"rate_gbps": 0.02, "duration_ms": 80},
    live_quick={"rate_gbps": 0.05, "signals": ("rtt", "max")},
)
def noise(
    signals: Signals = ("rtt", "rtt_less_hops", "sum", "sum_squ", "max", "ind"),
    cross_flows: CrossFlows = (1, 1, 1, 3, 6),
    t_low_us: float = 120.0,
    t_high_us: float = 500.0,
    delta_mbps: float = 20.0,
    beta: float = 0.6,
    alpha: float = 0.3,
    start_gbps: float = 2.0,
    sending: Annotated[str, OneOf(("window", "paced"))] = "window",
    thresholds_on: Annotated[str, OneOf(("rtt", "signal"))] = "rtt",
    ind_threshold_us: float = 120.0,
    cross_rtt_us: float = MIN_RTT_US,
    duration_ms: Number = 400,
    warm_up_ms: float = 20.0,
    rate_gbps: float = RATE_GBPS,
) -> Plan:
    """TIMELY on the RTT, SUM, SUM_SQU, MAX or IND: a flow through queues that are not its bottleneck (Figs. 2 to 4).

    Other parameters are those at 10 Gbit/s. With another `rate_gbps` all times are longer by its ratio, and rates in proportion.
    """
    demand_warm_up(warm_up_ms, duration_ms, "ms")
    demand_queues(cross_flows)
    lots = []
    for signal in signals:
        # A stamp does not hold the RTT without queues.
        less_us = MIN_RTT_US if thresholds_on == "signal" and signal != "rtt" else 0.0
        constants = author_s_constants(
            rate_gbps=rate_gbps,
            delta_mbps=delta_mbps,
            beta=beta,
            alpha=alpha,
            t_low_us=max(0.0, t_low_us - less_us),
            t_high_us=max(0.0, t_high_us - less_us),
            start_gbps=start_gbps,
            send=sending,
            thresholds_on=thresholds_on,
        )
        lots.append(Lot(signal, cross_flows, constants, ind_threshold_us, cross_rtt_us, rate_gbps))
    scale = RATE_GBPS / rate_gbps
    warm_up_ms *= scale
    about: Row = {"min_rtt_us": MIN_RTT_US * scale}
    until = round(duration_ms * scale * 1e9)
    cases = [Case(lot.signal, lot.network, until, measured(lot, about, warm_up_ms)) for lot in lots]
    parameters = {"cross_flows": cross_flows, "t_low_us": t_low_us, "rate_gbps": rate_gbps}
    return Plan(cases, partial(_claims, parameters), partial(_draw, lots, warm_up_ms))


def _claims(parameters: dict[str, Any], rows: list[Row]) -> list[Claim]:
    return of_run(CLAIMS, "stamping.noise", rows, parameters)


@dataclass(frozen=True)
class Shown:
    """Units of a figure: those of the paper, or on slow links a thousand times longer."""

    delay: str
    time: str
    rate: str
    per_us: float
    """Delays in a microsecond."""
    per_ms: float
    """Times in a millisecond."""
    per_gbps: float

    @staticmethod
    def of(rate_gbps: float) -> Shown:
        """By the rate of links."""
        if rate_gbps >= 1:
            return Shown("us", "ms", "Gbit/s", 1.0, 1.0, 1.0)
        return Shown("ms", "s", "Mbit/s", 1e-3, 1e-3, 1e3)


def _draw(lots: list[Lot], warm_up_ms: float, runs: list[Run]) -> Figure:
    """Queues over time, the RTT's distribution and the throughput of the primary flow."""
    first = {run.case: run for run in of_first_seed(runs)}
    figure = Figure(figsize=(max(8.0, 2.8 * len(lots)), 6.5), layout="constrained")
    grid = figure.add_gridspec(2, 2 * len(lots))
    shared, unit = None, Shown.of(lots[0].rate_gbps)
    for column, lot in enumerate(lots):
        panel = figure.add_subplot(grid[0, 2 * column : 2 * column + 2], sharey=shared)
        shared = shared or panel
        tables = first[lot.signal].tables
        delays = lot.delays_us(tables["queue_samples"], warm_up_ms, warm_up_ms + SHOWN_MS * lot.scale)
        times = (warm_up_ms + np.arange(delays.shape[1]) * SAMPLE_US * lot.scale / 1e3) * unit.per_ms
        for number, (count, queue) in enumerate(zip(lot.cross_flows, delays, strict=True)):
            label = f"queue {number + 1}: {count} cross flow{'s' * (count > 1)}"
            width = 1.6 if number >= len(lot.cross_flows) - 2 else 0.7
            panel.plot(times, queue * unit.per_us, linewidth=width, label=label)
        panel.set(
            title=SIGNALS[lot.signal], xlabel=f"time ({unit.time})", ylim=(0, 110 * lot.scale * unit.per_us)
        )
        if column == 0:
            panel.set_ylabel(f"queue ({unit.delay} at {lot.rate_gbps * unit.per_gbps:g} {unit.rate})")
            panel.legend(fontsize="x-small", loc="upper right")
        else:
            panel.tick_params(labelleft=False)
    half = len(lots)
    _draw_primary(
        lots, first, warm_up_ms, figure.add_subplot(grid[1, :half]), figure.add_subplot(grid[1, half:])
    )
    return figure


def _draw_primary(
    lots: list[Lot], first: Mapping[str, Run], warm_up_ms: float, spread: Any, rate: Any
) -> None:
    scale, unit = lots[0].scale, Shown.of(lots[0].rate_gbps)
    for lot in lots:
        tables, name = first[lot.signal].tables, SIGNALS[lot.signal]
        style = "-" if is_stamp(lot.signal) else ("--" if lot.signal == "rtt" else ":")
        rtts = np.sort(
            MIN_RTT_US * lot.scale + lot.delays_us(tables["queue_samples"], warm_up_ms).sum(axis=0)
        )
        share = np.arange(1, len(rtts) + 1) / len(rtts)
        spread.plot(rtts * unit.per_us, share, style, color=colour(lot.signal), label=name)
        flow = tables["flow_samples"].filter(pl.col("flow") == 0).sort("time_s")
        every = AVERAGED_MS * 1000 // SAMPLE_US
        times, got = flow["time_s"].to_numpy()[::every], flow["bytes_received"].to_numpy()[::every]
        gbps = np.diff(got) * 8e-9 / np.diff(times) * PACKET / lot.payload
        shown = times[1:] <= (warm_up_ms + 4 * SHOWN_MS * lot.scale) / 1e3
        rate.plot(
            times[1:][shown] * 1e3 * unit.per_ms,
            gbps[shown] * unit.per_gbps,
            style,
            color=colour(lot.signal),
            linewidth=1.0,
            label=name,
        )
    spread.set(
        xlabel=f"RTT of the primary flow ({unit.delay})",
        ylabel="share of samples (CDF)",
        ylim=(0, 1.02),
        xlim=(75 * scale * unit.per_us, 320 * scale * unit.per_us),
    )
    spread.legend(fontsize="small")
    spread.grid(alpha=0.3)
    rate.axhline(lots[0].fair_gbps * unit.per_gbps, color="0.4", linestyle=":")
    rate.set(
        xlabel=f"time ({unit.time})",
        ylabel=f"primary flow ({unit.rate})",
        title=f"dotted: fair share, {lots[0].fair_gbps * unit.per_gbps:.3g} {unit.rate}",
        ylim=(0, 2.6 / scale * unit.per_gbps),
    )
    rate.legend(fontsize="small", ncols=3)
    rate.grid(alpha=0.3)
