"""Shared parts of the experiments over schemes, RTTs and targets: cases, rows, labels, the figure of rates and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Row
from tidegate.experiments import Case, Run
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.experiments.customer import tcp_history
from tidegate.systems.meter.experiments.testbed import SCHEMES, SETTLED_S, flow_rows, metered_flows

QUICK_S = 40
TABLE = (
    "scheme",
    "base_rtt_ms",
    "target_mbps",
    "goodput_mbps",
    "goodput_error",
    "relative_error",
    "drops",
    "ce_marks",
    "timeouts",
)
LIMIT = 0.02
"""Property 2: how far from its target a flow's goodput is, scaled to bytes of IP."""
WHY_FAIR = "cause not found; in the runs of the meter's page no flow is beyond it"


def target_label(row: Row) -> str:
    """`100 Mbit/s`."""
    return f"{row['target_mbps']} Mbit/s"


def rows_of(rows: Sequence[Row], scheme: str, base_rtt_ms: float) -> list[Row]:
    """The rows of a scheme at a base RTT."""
    return [row for row in rows if row["scheme"] == scheme and row["base_rtt_ms"] == base_rtt_ms]


def goodput_error(result: Result, flow: int, target_mbps: int, since_s: float, mtu: int = 1500) -> float:
    """Goodput of a flow from a time on, scaled to bytes of IP, relative to its target; the network was recorded."""
    return tcp_history(result, flow, mtu).mbps(since_s) / target_mbps - 1


def measure(
    scheme: str, base_rtt_ms: float, targets_mbps: Sequence[int], mtu: int, *, settled: bool
) -> Callable[[Result], list[Row]]:
    """How a case is measured: a row for each flow; with `settled` also what it has from the 10th second on (`settled_goodput_error`)."""

    def rows(result: Result) -> list[Row]:
        out = flow_rows(result, scheme, base_rtt_ms, targets_mbps)
        if not settled:
            return out

        def error(row: Row) -> float:
            since = min(SETTLED_S, tcp_history(result, row["flow"]).time_s[-1] / 2)
            return goodput_error(result, row["flow"], row["target_mbps"], since, mtu)

        return [row | {"settled_goodput_error": error(row)} for row in out]

    return rows


def grid(
    schemes: Sequence[str],
    base_rtts_ms: Sequence[float],
    sets: Sequence[Sequence[int]],
    duration_s: int,
    *,
    mtu: int = 1500,
    congestion_control: str = "cubic",
    ecn: str = "on",
    settled: bool = True,
) -> list[Case]:
    """A case for each scheme, base RTT and set of targets; with `settled` flows are sampled for their goodput once they are settled."""

    def case(scheme: str, rtt: float, targets: Sequence[int]) -> Case:
        network = metered_flows(scheme, rtt, targets, congestion_control=congestion_control, ecn=ecn, mtu=mtu)
        if settled:
            network.record("1 s")
        label = f"{scheme}-{rtt:g}ms-{'-'.join(map(str, targets))}"
        return Case(label, network, f"{duration_s} s", measure(scheme, rtt, targets, mtu, settled=settled))

    return [case(scheme, rtt, targets) for rtt in base_rtts_ms for scheme in schemes for targets in sets]


def draw_rates(
    runs: list[Run],
    rates_mbps: Sequence[int],
    base_rtts_ms: Sequence[float],
    schemes: Sequence[str],
    title: str,
) -> Figure:
    """Goodput, its relative error and that of IP bytes, one below the other; a column for each base RTT.

    Medians over the seeds; bars from the smallest to the largest.
    """
    figure = Figure(figsize=(1.5 + 3.4 * len(base_rtts_ms), 9), layout="constrained")
    panels = figure.subplots(3, len(base_rtts_ms), squeeze=False, sharex=True, sharey="row")
    rows = all_rows(runs)
    for rtt, (goodput, error, counted) in zip(base_rtts_ms, panels.T, strict=True):
        goodput.plot(rates_mbps, rates_mbps, linestyle=":", color="0.4", label="target")
        for scheme in schemes:
            some = rows_of(rows, scheme, rtt)
            _curve(goodput, some, scheme, "goodput_mbps", 1)
            _curve(error, some, scheme, "goodput_error", 100)
            _curve(counted, some, scheme, "relative_error", 100)
        goodput.set(title=f"base RTT {rtt:g} ms", ylim=(0, 1.12 * max(rates_mbps)))
        for panel in (error, counted):
            panel.set_ylim(-103, 13)
            panel.axhline(0, linestyle=":", color="0.4")
            panel.axhspan(-5, 5, color="0.93", zorder=0)
        counted.set(xlabel="target rate (Mbit/s)", xticks=rates_mbps)
        for panel in (goodput, error, counted):
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("goodput (Mbit/s)")
    panels[1][0].set_ylabel("error of goodput (%)")
    panels[2][0].set_ylabel("error of IP bytes (%)")
    panels[0][0].legend(loc="upper left", fontsize="small")
    figure.suptitle(f"{title}; grey: within 5 %")
    return figure


def _curve(panel: Axes, rows: list[Row], scheme: str, column: str, scale: float) -> None:
    way = SCHEMES[scheme]
    values: dict[int, list[float]] = {}
    for row in rows:
        values.setdefault(row["target_mbps"], []).append(scale * row[column])
    middle = [float(np.median(some)) for some in values.values()]
    bars = [
        [middle[number] - min(some) for number, some in enumerate(values.values())],
        [max(some) - middle[number] for number, some in enumerate(values.values())],
    ]
    panel.errorbar(
        list(values),
        middle,
        yerr=bars,
        color=way.colour,
        marker=way.marker,
        markersize=4,
        linewidth=1.2,
        capsize=2,
        label=way.text,
    )
