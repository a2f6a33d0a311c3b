"""What the paper starts from: two flows with 10 and 100 ms in one queue, over the queue's length.

Rows have the goodput of the short flow over that of the long one. A buffer of one BDP is that of the mean round-trip time.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, demand_warm_up, experiment
from tidegate.plots import all_rows, by_seed, colour
from tidegate.results import Result
from tidegate.systems.separation.claims import judged
from tidegate.systems.separation.experiments.testbed import SCHEMES, STEP_S, Testbed, busy, goodputs

RTTS_MS = (10.0, 100.0)
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100)
CONTROLS = {"reno": "Reno", "cubic": "CUBIC", "htcp": "H-TCP", "bbr": "BBRv1", "bbr3": "BBRv3"}


@experiment(
    "separation.two",
    ("scheme", "control", "buffer_bdp", "short_mbps", "long_mbps", "short_over_long", "link_use"),
    quick={
        "rate_mbps": 50.0,
        "duration_s": 30.0,
        "buffers_bdp": (0.5, 2.0, 8.0),
        "controls": ("cubic", "bbr"),
    },
)
def two(
    schemes: Annotated[tuple[str, ...], OneOf(("fifo", "drr", "guarantee"))] = ("fifo", "guarantee"),
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = tuple(CONTROLS),
    buffers_bdp: Annotated[tuple[float, ...], AtLeast(0.01, 100.0)] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0),
    rate_mbps: Annotated[float, AtLeast(5.0)] = 100.0,
    duration_s: Annotated[float, AtLeast(10.0)] = 70.0,
    warm_up_s: float = 10.0,
) -> Plan:
    """Two flows with 10 and 100 ms in one queue, or separated, over the length of the queue: who is favoured."""
    demand_warm_up(warm_up_s, duration_s)
    cases = []
    for scheme in schemes:
        for control in controls:
            for buffer in buffers_bdp:
                options = {"classes": 2, "long_bytes": "1 MB", "buffers": "bdp"}
                bed = Testbed(scheme, rate_mbps, buffer * float(np.mean(RTTS_MS)), options)
                for number, rtt_ms in enumerate(RTTS_MS):
                    bed.tcp(rtt_ms, 0.1 * number, congestion_control=control)
                measure = partial(_row, bed, control, buffer, warm_up_s, duration_s)
                name = f"{scheme}-{control}-{buffer:g}"
                cases.append(Case(name, bed.network, f"{duration_s:g} s", measure))
    return Plan(cases, _claims, partial(_draw, schemes, controls))


def _row(bed: Testbed, control: str, buffer: float, warm_up_s: float, end_s: float, result: Result) -> Row:
    short, long = goodputs(result, 2, end_s)[:, round(warm_up_s / STEP_S) :].mean(axis=1)
    return {
        "scheme": bed.scheme,
        "control": control,
        "buffer_bdp": buffer,
        "short_mbps": float(short),
        "long_mbps": float(long),
        "short_over_long": float(short / max(long, 1e-6)),
        "link_use": busy(result, warm_up_s, end_s),
    }


def _claims(rows: list[Row]) -> list[Claim]:
    claims = judged(rows, "separation.two")
    separated = medians(
        [row for row in rows if row["scheme"] == "guarantee"],
        "short_over_long",
        lambda row: f"{row['control']}, {row['buffer_bdp']:g} BDP",
    )
    if separated:
        statement = (
            "In classes by RTT the flow with 10 ms has 0.9 to 1.1 times the goodput of that with 100 ms"
        )
        why = "a class that does not fill its buffer leaves some of its share to the other"
        claims.append(
            between("separated", "ours", statement, separated, 0.9, 1.1, why=why, form=Unit("times"))
        )
    return claims


def _draw(schemes: tuple[str, ...], controls: tuple[str, ...], runs: list[Run]) -> Figure:
    """Goodput of the short flow over the long one's, by the buffer; a panel for each scheme."""
    rows = all_rows(runs)
    figure = Figure(figsize=(4.6 * len(schemes), 3.8), layout="constrained")
    panels = figure.subplots(1, len(schemes), squeeze=False, sharey=True)[0]
    for panel, scheme in zip(panels, schemes, strict=True):
        for control in controls:
            own = [row for row in rows if (row["scheme"], row["control"]) == (scheme, control)]
            ratios: dict[float, list[float]] = {}
            for row in own:
                ratios.setdefault(row["buffer_bdp"], []).append(row["short_over_long"])
            by_seed(panel, ratios, label=CONTROLS[control], colour=colour(control))
        panel.axhline(1, color="0.5", linestyle=":")
        panel.set(title=SCHEMES[scheme], xscale="log", yscale="log", xlabel="buffer of the one queue (BDP)")
        ticks = sorted({row["buffer_bdp"] for row in rows})
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        panel.set_ylim(
            0.6 * min(row["short_over_long"] for row in rows),
            1.7 * max(row["short_over_long"] for row in rows),
        )
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("goodput, 10 ms over 100 ms")
    handles = panels[-1].get_legend_handles_labels()
    figure.legend(*handles, fontsize="small", loc="outside lower center", ncols=len(controls))
    return figure
