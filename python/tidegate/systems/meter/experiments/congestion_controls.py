"""Congestion controls, RTTs and rates: the fair meter's error in each cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, medians, most
from tidegate.experiments import Case, OneOf, Plan, Run, experiment
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.experiments.long_rtts import BURST_S, exceeds_burst
from tidegate.systems.meter.experiments.scheme_grid import LIMIT, goodput_error
from tidegate.systems.meter.experiments.testbed import Seconds, flow_rows, history, metered_flows

WHY_CELLS = (
    "a window that grows by a packet an RTT takes longer to grow again than the burst lasts: Reno and Vegas at large windows; at 10 Gbit/s "
    "and 50 ms no control has grown its window in the time that is measured; other cells are not explained"
)
# Congestion controls of the matrix, and whether they use ECN.
CONTROLS = ("reno", "cubic", "cubic without ECN", "bbr", "bbr3", "htcp", "dctcp", "vegas")

MOST_EXCESS = 1.02 * (1 + BURST_S / 10) - 1
"""Over the target, in ten seconds: the burst may come at once, and 2 % of both."""


@experiment(
    "meter.matrix",
    quick={
        "controls": ("reno", "cubic", "bbr", "dctcp"),
        "base_rtts_ms": (1.0, 10.0),
        "rates_mbps": (10, 100),
        "duration_s": 30,
    },
    also="meter.congestion_controls",
)
def matrix(
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = CONTROLS,
    base_rtts_ms: tuple[float, ...] = (0.2, 1.0, 10.0, 50.0),
    rates_mbps: tuple[int, ...] = (10, 100, 1000, 10_000),
    duration_s: Seconds = 60,
) -> Plan:
    """Congestion controls, RTTs and rates: one flow behind the fair meter, its error in each cell."""
    skip_s = duration_s / 3
    cells = [(name, rtt, rate) for rate in rates_mbps for rtt in base_rtts_ms for name in controls]

    def measure(name: str, rtt: float, rate: int) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            (row,) = flow_rows(result, "fair", rtt, [rate])
            passed = history(result.notes, 0)
            return {
                "congestion_control": name,
                **row,
                "relative_error": passed.mbps(skip_s) / rate - 1,
                "settled_goodput_error": goodput_error(result, 0, rate, skip_s),
                "excess_10_s": float(passed.windows_mbps(10, skip_s).max()) / rate - 1,
            }

        return row

    def case(name: str, rtt: float, rate: int) -> Case:
        network = metered_flows(
            "fair",
            rtt,
            [rate],
            congestion_control=name.split()[0],
            ecn="off" if name.endswith("without ECN") else "on",
            link_rate="100 Gbit/s" if rate >= 10_000 else "10 Gbit/s",
            # Twice what the largest window needs.
            receive_buffer_max=max(32 * 2**20, round(4 * rate * 125 * rtt)),
        )
        network.record("1 s")
        label = f"{name.replace(' ', '-')}-{rtt:g}ms-{rate}"
        return Case(label, network, f"{duration_s} s", measure(name, rtt, rate))

    def claims(rows: list[Row]) -> list[Claim]:
        errors = medians(
            [
                row
                for row in rows
                if not exceeds_burst(row["congestion_control"], row["target_mbps"], row["base_rtt_ms"])
            ],
            "settled_goodput_error",
            _cell,
        )
        excess = most(rows, "excess_10_s", _cell)
        return [
            between(
                "cells",
                "ours",
                f"goodput, scaled to IP bytes, within 2 % of the rate in each of {len(errors)} cells, from {skip_s:.0f} s on; without Reno "
                "where its swing is more than the burst",
                errors,
                -LIMIT,
                LIMIT,
                why=WHY_CELLS,
                form=Percents(8),
            ),
            between(
                "excess",
                "ours",
                "no cell runs away: in any 10 s at most 1.02 times the target's bytes and the burst (excess over the target)",
                excess,
                -1,
                MOST_EXCESS,
                why="not explained",
                form=Percents(),
            ),
        ]

    def draw(runs: list[Run]) -> Figure:
        errors = medians(all_rows(runs), "settled_goodput_error", _cell)
        figure = Figure(figsize=(2 + 3.2 * len(rates_mbps), 1.6 + 0.5 * len(controls)), layout="constrained")
        panels = figure.subplots(1, len(rates_mbps), squeeze=False, sharey=True)[0]
        for panel, rate in zip(panels, rates_mbps, strict=True):
            grid = np.array(
                [
                    [100 * errors.get(f"{name}, {rtt:g} ms, {rate} Mbit/s", np.nan) for rtt in base_rtts_ms]
                    for name in controls
                ]
            )
            image = panel.imshow(grid, cmap="RdBu", vmin=-50, vmax=50, aspect="auto")
            for (line, column), value in np.ndenumerate(grid):
                dark = "white" if abs(value) > 30 else "black"
                weight = "bold" if abs(value) > 100 * LIMIT else "normal"
                panel.text(
                    column,
                    line,
                    f"{value:+.1f}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=dark,
                    weight=weight,
                )
            panel.set_title(units.show_rate(rate * 1_000_000))
            panel.set_xticks(range(len(base_rtts_ms)), [f"{rtt:g}" for rtt in base_rtts_ms])
            panel.set_yticks(range(len(controls)), controls)
            panel.set_xlabel("base RTT (ms)")
        figure.colorbar(
            image, ax=list(panels), label="error of goodput, scaled to IP bytes (%); bold: beyond 2 %"
        )
        figure.suptitle(f"The fair meter, {skip_s:.0f} to {duration_s} s")
        return figure

    return Plan([case(*cell) for cell in cells], claims, draw)


def _cell(row: Row) -> str:
    return f"{row['congestion_control']}, {row['base_rtt_ms']:g} ms, {row['target_mbps']} Mbit/s"
