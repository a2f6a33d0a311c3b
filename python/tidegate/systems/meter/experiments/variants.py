"""One TCP flow through variants of the paper's meter: network, row and figure of the experiments that vary one setting.

A row has the setting as text, `goodput_error` (the paper's relative error: payload over target less 1, start included),
`relative_error` (the same of IP bytes), and `deviation`: the standard deviation of the rates of single seconds (IP bytes) in the
second half of the run, as a share of the target. Without the first half, because the controller takes minutes to reach the rate.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Row
from tidegate.experiments import Case, Run
from tidegate.measures import last
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.controller import Bucket, Law, MeterController
from tidegate.systems.meter.experiments.testbed import Counts, flow_rows, history, meters_of, star

TABLE = (
    "setting",
    "base_rtt_ms",
    "target_mbps",
    "goodput_error",
    "deviation",
    "drops",
    "ce_marks",
    "timeouts",
)
MEASURED = (
    "achieved_mbps",
    "goodput_mbps",
    "relative_error",
    "goodput_error",
    "drops",
    "ce_marks",
    "timeouts",
    "timeouts_per_s",
)
COUNTERS = ("passed", "dropped", "marked", "spared")
MARKERS = "osv^D<>Px"


def varied_flow(
    bucket: Bucket, law: Law, base_rtt_ms: float, target_mbps: int, congestion_control: str = "cubic"
) -> Network:
    """A TCP flow with ECN through a meter with this bucket and law (Fig. 8 of the paper)."""
    lab = star(base_rtt_ms)
    net, (a, b) = lab.network, lab.hosts
    flow = net.tcp(a, b, congestion_control=congestion_control, ecn="on")
    meters = meters_of(net, [flow], [target_mbps])
    net.control(MeterController(meters, ports=net.forwarding(lab.switch), bucket=bucket, law=law))
    net.control(Counts(1, counters=COUNTERS))
    return net


def varied_row(result: Result, setting: str, base_rtt_ms: float, target_mbps: int) -> Row:
    """The row of a run of `varied_flow`."""
    (row,) = flow_rows(result, setting, base_rtt_ms, [target_mbps])
    passed = history(result.notes, 0)
    rates = passed.windows_mbps(1, float(passed.time_s[-1]) / 2)
    return {
        "setting": setting,
        "base_rtt_ms": base_rtt_ms,
        "target_mbps": target_mbps,
        **{name: row[name] for name in MEASURED},
        "deviation": float(rates.std()) / target_mbps,
        "spared": last(result.notes, "meter_0_spared_packets"),
    }


def varied_case(
    setting: str,
    bucket: Bucket,
    law: Law,
    base_rtt_ms: float,
    target_mbps: int,
    duration_s: int,
    *,
    congestion_control: str = "cubic",
    **columns: object,
) -> Case:
    """A run of `varied_flow`; `columns` are added to its row."""

    def measure(result: Result) -> Row:
        row = varied_row(result, setting, base_rtt_ms, target_mbps)
        return {**row, "congestion_control": congestion_control, **columns}

    kind = "" if congestion_control == "cubic" else f"{congestion_control}-"
    name = f"{kind}{setting.replace(' ', '-').replace(',', '')}-{base_rtt_ms:g}ms-{target_mbps}"
    network = varied_flow(bucket, law, base_rtt_ms, target_mbps, congestion_control)
    return Case(name, network, f"{duration_s} s", measure)


def draw_settings(
    runs: list[Run],
    settings: Sequence[str],
    base_rtts_ms: Sequence[float],
    *,
    lower: str,
    lower_label: str,
    title: str,
    xlabel: str,
    per_cent: bool = True,
) -> Figure:
    """The error of goodput above and another column below, by setting; a column of panels for each RTT, a line for each target.

    Medians over the seeds; bars from the smallest to the largest. `per_cent`: the lower column is a share.
    """
    rows = all_rows(runs)
    figure = Figure(figsize=(2.5 + 3.6 * len(base_rtts_ms), 6.5), layout="constrained")
    panels = figure.subplots(2, len(base_rtts_ms), squeeze=False, sharex=True, sharey="row")
    for rtt, upper, below in zip(base_rtts_ms, panels[0], panels[1], strict=True):
        some = [row for row in rows if row["base_rtt_ms"] == rtt]
        _lines(upper, some, settings, "goodput_error", 100)
        _lines(below, some, settings, lower, 100 if per_cent else 1)
        upper.axhline(0, linestyle=":", color="0.4")
        upper.set(title=f"base RTT {rtt:g} ms")
        below.set_xticks(range(len(settings)), settings, rotation=40, ha="right", fontsize="small")
        below.set_xlabel(xlabel)
        for panel in (upper, below):
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("relative error of goodput (%)")
    panels[1][0].set_ylabel(lower_label)
    # The axes of a row are one: with all that is drawn in it.
    panels[1][0].set_ylim(bottom=0)
    lines, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(lines, labels, title="target", loc="outside right upper", fontsize="small")
    figure.suptitle(title)
    return figure


def _lines(panel: Axes, rows: list[Row], settings: Sequence[str], column: str, scale: float) -> None:
    targets = sorted({row["target_mbps"] for row in rows})
    for place, target in enumerate(targets):
        at, middle, low, high = [], [], [], []
        for number, setting in enumerate(settings):
            values = [
                scale * row[column]
                for row in rows
                if row["target_mbps"] == target and row["setting"] == setting and row[column] is not None
            ]
            if values:
                # Bars of several targets stand beside each other.
                at.append(number + 0.12 * (place - (len(targets) - 1) / 2))
                middle.append(float(np.median(values)))
                low.append(middle[-1] - min(values))
                high.append(max(values) - middle[-1])
        panel.errorbar(
            at,
            middle,
            yerr=[low, high],
            marker=MARKERS[place % len(MARKERS)],
            markersize=4,
            linewidth=1.2,
            capsize=2,
            label=f"{target} Mbit/s",
        )
