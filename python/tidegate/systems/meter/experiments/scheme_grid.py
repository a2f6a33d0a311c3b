"""Shared parts of the experiments over schemes, RTTs and targets: cases, rows, labels, the figure of rates and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Row, medians
from tidegate.experiments import Case, Run
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.experiments.testbed import SCHEMES, flow_rows, metered_flows

QUICK_S = 40
TABLE = (
    "scheme",
    "base_rtt_ms",
    "target_mbps",
    "achieved_mbps",
    "relative_error",
    "drops",
    "ce_marks",
    "timeouts",
)
WHY_PAPER = (
    "the paper gives no RTT, and its means are of goodput over 180 s; this controller takes minutes to reach the rate, and is limited "
    "to 8 times the target; where two packets per RTT exceed the rate, bursts empty the bucket at any token rate"
)
WHY_PLAIN = "where two packets per RTT are less than the rate, current TCP repairs most of its losses without a timeout"
WHY_FRIENDLY = (
    "known limits: where two packets per RTT exceed the rate, bursts empty the bucket at any token rate; at RTTs of 100 ms and more "
    "the rate is missed by far (README, What holds, and what does not); other causes are not explained"
)


def target_label(row: Row) -> str:
    """`100 Mbit/s`."""
    return f"{row['target_mbps']} Mbit/s"


def rows_of(rows: Sequence[Row], scheme: str, base_rtt_ms: float) -> list[Row]:
    """The rows of a scheme at a base RTT."""
    return [row for row in rows if row["scheme"] == scheme and row["base_rtt_ms"] == base_rtt_ms]


def measure(scheme: str, base_rtt_ms: float, targets_mbps: Sequence[int]) -> Callable[[Result], list[Row]]:
    """How a case is measured: a row for each flow."""
    return lambda result: flow_rows(result, scheme, base_rtt_ms, targets_mbps)


def grid(
    schemes: Sequence[str], base_rtts_ms: Sequence[float], sets: Sequence[Sequence[int]], duration_s: int
) -> list[Case]:
    """A case for each scheme, base RTT and set of targets."""
    return [
        Case(
            f"{scheme}-{rtt:g}ms-{'-'.join(map(str, targets))}",
            metered_flows(scheme, rtt, targets),
            f"{duration_s} s",
            measure(scheme, rtt, targets),
        )
        for rtt in base_rtts_ms
        for scheme in schemes
        for targets in sets
    ]


def draw_rates(
    runs: list[Run],
    rates_mbps: Sequence[int],
    base_rtts_ms: Sequence[float],
    schemes: Sequence[str],
    title: str,
) -> Figure:
    """Achieved rates above, errors below, a column for each base RTT."""
    figure = Figure(figsize=(1.5 + 3.4 * len(base_rtts_ms), 6.5), layout="constrained")
    panels = figure.subplots(2, len(base_rtts_ms), squeeze=False, sharex=True, sharey="row")
    rows = all_rows(runs)
    for rtt, upper, lower in zip(base_rtts_ms, panels[0], panels[1], strict=True):
        upper.plot(rates_mbps, rates_mbps, linestyle=":", color="0.4", label="target")
        for scheme in schemes:
            _curves(upper, lower, rows_of(rows, scheme, rtt), scheme)
        upper.set(title=f"base RTT {rtt:g} ms", ylim=(0, 1.12 * max(rates_mbps)))
        lower.set(xlabel="target rate (Mbit/s)", ylim=(-103, 13), xticks=rates_mbps)
        lower.axhline(0, linestyle=":", color="0.4")
        lower.axhspan(-5, 5, color="0.93", zorder=0)
        for panel in (upper, lower):
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("achieved rate, IP bytes (Mbit/s)")
    panels[1][0].set_ylabel("relative error (%); grey: within 5 %")
    panels[0][0].legend(loc="upper left", fontsize="small")
    figure.suptitle(title)
    return figure


def _curves(upper: Axes, lower: Axes, rows: list[Row], scheme: str) -> None:
    way = SCHEMES[scheme]
    achieved, errors = (
        {int(at): value for at, value in medians(rows, column, lambda row: str(row["target_mbps"])).items()}
        for column in ("achieved_mbps", "relative_error")
    )
    for panel, values in ((upper, achieved), (lower, {at: 100 * error for at, error in errors.items()})):
        panel.plot(
            list(values),
            list(values.values()),
            color=way.colour,
            marker=way.marker,
            markersize=4,
            label=way.text,
        )
