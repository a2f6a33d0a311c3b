"""Fig. 6: a flow with a short round-trip time, and one that joins and fills the buffer; with an operator's limit it is moved.

The paper gives no number. Here both flows have the same base round-trip time, the first has a receive window that is a part of the link's, and the
one queue holds several times the link's bandwidth-delay product. Classes have one BDP each, so one queue of 1 BDP stands beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians, most
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.separation.claims import judged
from tidegate.systems.separation.experiments.testbed import (
    ROUTERS,
    STEP_S,
    Testbed,
    goodputs,
    idle_while_waiting,
)

SCHEMES = {
    "one-queue": "one queue",
    "one-bdp": "one queue of 1 BDP",
    "threshold": "with a threshold",
    "codel": "one queue, CoDel",
    "drr": "a queue for each flow (DRR)",
    "fq_codel": "FQ-CoDel",
}
REACTION_S = 3.0


@experiment(
    "separation.bufferbloat",
    (
        "scheme",
        "control",
        "rtt_1_before_ms_p50",
        "rtt_1_after_ms_p95",
        "rtt_2_after_ms_p50",
        "reaction_s",
        "above_s",
        "goodput_1_mbps",
        "goodput_2_mbps",
        "idle_while_waiting",
    ),
    backends=("sim", "live"),
    quick={"rate_mbps": 100.0, "join_s": 10.0, "after_s": 15.0, "controls": ("cubic",)},
)
def bufferbloat(
    schemes: Annotated[tuple[str, ...], OneOf(SCHEMES)] = tuple(SCHEMES),
    controls: Annotated[tuple[str, ...], OneOf(("cubic", "reno", "htcp", "bbr"))] = ("cubic", "bbr"),
    rate_mbps: Annotated[float, AtLeast(10.0)] = 1000.0,
    rtt_ms: Annotated[float, AtLeast(1.0)] = 20.0,
    first_part: Annotated[float, AtLeast(0.01, 0.9)] = 0.2,
    buffer_bdp: Annotated[float, AtLeast(0.5)] = 4.0,
    limit_rtts: Annotated[float, AtLeast(1.1)] = 1.5,
    join_s: Annotated[float, AtLeast(5.0)] = 30.0,
    after_s: Annotated[float, AtLeast(10.0)] = 60.0,
    period_ms: Annotated[float, AtLeast(100.0)] = 500.0,
    router: Annotated[str, OneOf(ROUTERS)] = "tidegate",
) -> Plan:
    """A flow that leaves the queue empty, and one that joins and fills it: round-trip times with and without a threshold (Fig. 6)."""
    cases = []
    for control in controls:
        for scheme in schemes:
            limit_ms = limit_rtts * rtt_ms
            options = {
                "period": f"{period_ms} ms",
                "long_bytes": "1 MB",
                "classes": 2,
                "rtt_limits": (f"{limit_ms} ms",),
                "buffers": "bdp",
            }
            of = {"threshold": "guarantee", "one-queue": "fifo", "one-bdp": "fifo"}.get(scheme, scheme)
            buffer = 1.0 if scheme == "one-bdp" else buffer_bdp
            bed = Testbed(of, rate_mbps, buffer * rtt_ms, options, router)
            window = round(first_part * rate_mbps * 1e3 * rtt_ms / 8)
            bed.tcp(rtt_ms, 0.0, congestion_control=control, receive_buffer_max=f"{window} B")
            bed.tcp(rtt_ms, join_s, congestion_control=control)
            measure = partial(_row, bed, scheme, control, limit_ms, join_s, join_s + after_s)
            cases.append(Case(f"{control}-{scheme}", bed.network, f"{join_s + after_s} s", measure))
    return Plan(cases, partial(_claims, limit_rtts * rtt_ms), partial(_draw, join_s, limit_rtts * rtt_ms))


def _row(
    bed: Testbed, scheme: str, control: str, limit_ms: float, join_s: float, end_s: float, result: Result
) -> Row:
    samples = result.flow_samples

    def rtts(flow: int, from_s: float, to_s: float) -> np.ndarray:
        own = samples.filter((pl.col("flow") == flow) & pl.col("time_s").is_between(from_s, to_s))
        return own["srtt_ms"].drop_nulls().to_numpy()

    rates = goodputs(result, 2, end_s)
    settled = join_s + REACTION_S
    late = rates[:, round(settled / STEP_S) :].mean(axis=1)
    own = samples.filter((pl.col("flow") == 0) & (pl.col("time_s") > join_s)).select("time_s", "srtt_ms")
    above = own.filter(pl.col("srtt_ms") > limit_ms)["time_s"]
    back = 0.0 if above.is_empty() else float(above.max()) - join_s  # type: ignore[arg-type]
    return {
        "scheme": scheme,
        "control": control,
        "limit_ms": limit_ms,
        "rtt_1_before_ms_p50": float(np.median(rtts(0, join_s / 2, join_s))),
        "rtt_1_after_ms_p95": float(np.percentile(rtts(0, settled, end_s), 95)),
        "rtt_2_after_ms_p50": float(np.median(rtts(1, settled, end_s))),
        # Until it is below for the rest of the run.
        "reaction_s": back if back < end_s - join_s - 1.0 else None,
        "above_s": longest_above_s(own["time_s"].to_list(), own["srtt_ms"].to_list(), limit_ms),
        "goodput_1_mbps": float(late[0]),
        "goodput_2_mbps": float(late[1]),
        "idle_while_waiting": idle_while_waiting(result, settled, end_s),
    }


def longest_above_s(times_s: Sequence[float], values: Sequence[float | None], limit: float) -> float:
    """The longest time for which samples are above a limit without a break: until the next one that is not, or the last."""
    longest, since = 0.0, None
    for time, value in zip(times_s, values, strict=True):
        above = value is not None and value > limit
        if since is not None:
            longest = max(longest, time - since)
        since = (time if since is None else since) if above else None
    return longest


def _claims(limit_ms: float, rows: list[Row]) -> list[Claim]:
    def of(scheme: str, column: str) -> dict[str, float]:
        own = [row for row in rows if row["scheme"] == scheme and row[column] is not None]
        return medians(own, column, lambda row: str(row["control"]))

    claims = []
    if of("threshold", "rtt_1_after_ms_p95"):
        claims.append(
            between(
                "low",
                "ours",
                f"With a threshold of {limit_ms:g} ms, p95 of flow 1's round-trip time is below it from 3 s after flow 2 joins",
                of("threshold", "rtt_1_after_ms_p95"),
                high=limit_ms,
                why="the flow that fills the queue was not moved in time",
                form=Unit("ms"),
            )
        )
    separated = [row for row in rows if row["scheme"] == "threshold" and row.get("above_s") is not None]
    if separated:
        claims.append(
            between(
                "back",
                "ours",
                f"With a threshold of {limit_ms:g} ms, flow 1's smoothed round-trip time is never above it for longer than {REACTION_S:g} s "
                "without a break",
                most(separated, "above_s", lambda row: str(row["control"])),
                high=REACTION_S,
                why="a flow is moved in the round after the one that was too slow, and what it has in the queue has to drain",
                form=Unit("s"),
            )
        )
    return claims + judged(rows, "separation.bufferbloat")


def _draw(join_s: float, limit_ms: float, runs: list[Run]) -> Figure:
    """Smoothed round-trip times over time."""
    shown = of_first_seed(runs)
    columns = min(len(shown), len(SCHEMES))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(3.0 * columns, 2.8 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).flat
    for panel, run in zip(panels, shown, strict=False):
        samples = run.tables["flow_samples"]
        for flow in range(2):
            own = samples.filter(samples["flow"] == flow)
            panel.plot(own["time_s"], own["srtt_ms"], label=f"flow {flow + 1}", linewidth=1.0)
        panel.axvline(join_s, color="0.6", linestyle=":", linewidth=0.9)
        panel.axhline(limit_ms, color="0.4", linestyle="--", linewidth=0.9, label="threshold")
        if run.rows:
            row = run.rows[0]
            panel.set_title(f"{SCHEMES[row['scheme']]}, {row['control']}", fontsize=9)
        panel.grid(alpha=0.25)
    figure.axes[0].set_ylim(bottom=0)
    for panel in figure.axes[-columns:]:
        panel.set_xlabel("time (s)")
    for panel in figure.axes[::columns]:
        panel.set_ylabel("smoothed RTT (ms)")
    figure.axes[0].legend(fontsize=7)
    return figure
