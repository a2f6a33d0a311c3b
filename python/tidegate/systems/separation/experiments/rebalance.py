"""Fig. 4: three TCP flows that join, are degraded, recover and leave, and who gets the rate that becomes free.

The paper gives the times; how far a flow is degraded, when it recovers, round-trip times and congestion control are open. Here a flow is
degraded by its sender's link, 2 recovers when 1 is degraded, and 1 recovers when 3 joins: then the shares are those that the text tells.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, Unit, between, medians, medians_of_times, most
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.plots import all_rows, of_first_seed
from tidegate.results import Result
from tidegate.systems.separation.claims import judged
from tidegate.systems.separation.experiments.testbed import (
    ROUTERS,
    SCHEMES,
    SEPARATED,
    STEP_S,
    Testbed,
    busy,
    goodputs,
    idle_while_waiting,
    settled_s,
)

PHASES = (
    "1 alone",
    "2 joins",
    "2 degraded",
    "1 degraded",
    "3 joins",
    "3 degraded",
    "3 leaves",
)
BEGINS = (0, 1, 2, 4, 6, 7, 8, 9)
"""Of the phases, and the end, in units of 60 s in the paper."""
RTTS_MS = (10.0, 20.0, 40.0)
NEAR = 0.05
HOLD_S = 2.0
CONTROLS = ("cubic", "reno", "htcp", "bbr", "bbr3")

INFINITE = float("inf")


def _demands(degraded: tuple[float, ...]) -> list[list[float]]:
    """By phase, what the flows that are there can send."""
    two, one, three = degraded
    return [
        [INFINITE],
        [INFINITE, INFINITE],
        [INFINITE, two],
        [one, INFINITE],
        [INFINITE, INFINITE, INFINITE],
        [INFINITE, INFINITE, three],
        [INFINITE, INFINITE],
    ]


@experiment(
    "separation.rebalance",
    (
        "scheme",
        "control",
        "phase",
        "flow_1_mbps",
        "flow_2_mbps",
        "flow_3_mbps",
        "largest_off",
        "settled_s",
        "link_use",
        "idle_while_waiting",
    ),
    backends=("sim", "live"),
    quick={"rate_mbps": 100.0, "unit_s": 12.0, "controls": ("cubic",), "degraded": (0.2, 0.3, 0.1)},
)
def rebalance(
    schemes: Annotated[tuple[str, ...], OneOf(SCHEMES)] = ("fifo", "drr", "guarantee", "cap"),
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = ("cubic", "bbr"),
    rate_mbps: Annotated[float, AtLeast(10.0)] = 1000.0,
    unit_s: Annotated[float, AtLeast(6.0)] = 60.0,
    degraded: Annotated[tuple[float, float, float], AtLeast(0.01, 0.9)] = (0.2, 0.3, 0.1),
    period_ms: Annotated[float, AtLeast(100.0)] = 500.0,
    buffer_ms: float = 40.0,
    sample_ms: Annotated[float, AtLeast(1.0, 500.0)] = 10.0,
    router: Annotated[str, OneOf(ROUTERS)] = "tidegate",
) -> Plan:
    """Three flows on a link: joins, degradations of a flow to a part of the link, recoveries and a leave (Fig. 4)."""
    cases = []
    for control in controls:
        for scheme in schemes:
            bed = Testbed(
                scheme,
                rate_mbps,
                buffer_ms,
                {"period": f"{period_ms} ms", "long_bytes": "1 MB", "classes": 3},
                router,
                sample_ms,
            )
            begins = [unit_s * begin for begin in BEGINS]
            bed.tcp(RTTS_MS[0], 0.0, congestion_control=control)
            bed.tcp(RTTS_MS[1], begins[1], congestion_control=control)
            bed.tcp(RTTS_MS[2], begins[4], begins[6], congestion_control=control)
            mbps = [part * rate_mbps for part in degraded]
            for sender, at, to in ((1, 2, mbps[0]), (0, 3, mbps[1]), (2, 5, mbps[2])):
                bed.limit(sender, begins[at], to)
            bed.limit(1, begins[3], None)
            bed.limit(0, begins[4], None)
            measure = partial(_rows, bed, control, begins, degraded)
            cases.append(Case(f"{control}-{scheme}", bed.network, f"{begins[-1]} s", measure))
    return Plan(cases, partial(_claims, rate_mbps), partial(_draw, unit_s))


def _rows(
    bed: Testbed, control: str, begins: list[float], degraded: tuple[float, ...], result: Result
) -> list[Row]:
    rates = goodputs(result, 3, begins[-1])
    rows: list[Row] = []
    link = bed.fair([INFINITE])[0]
    for number, (phase, demands) in enumerate(
        zip(PHASES, _demands(tuple(d * link for d in degraded)), strict=True)
    ):
        begin, end = begins[number], begins[number + 1]
        if phase == "3 leaves":
            # What it had still to send has gone by then.
            sends = np.flatnonzero(rates[2] > 0)
            begin = max(begin, (sends[-1] + 1) * STEP_S if len(sends) else 0.0)
        fair = bed.fair(demands)
        own = rates[: len(fair), round(begin / STEP_S) : round(end / STEP_S)]
        late = own[:, own.shape[1] // 2 :].mean(axis=1)
        off = late / fair - 1
        # A second is the window in which a rate is looked at.
        smooth = np.stack([np.convolve(flow, (0.5, 0.5), mode="valid") for flow in own])
        row: Row = {"scheme": bed.scheme, "control": control, "phase": phase, "begin_s": begin}
        for flow in range(3):
            row[f"flow_{flow + 1}_mbps"] = float(late[flow]) if flow < len(late) else None
            row[f"fair_{flow + 1}_mbps"] = float(fair[flow]) if flow < len(fair) else None
        row["largest_off"] = float(off[np.argmax(np.abs(off))])
        row["settled_s"] = settled_s(smooth, fair, NEAR, HOLD_S)
        row["link_use"] = busy(result, (begin + end) / 2, end)
        row["idle_while_waiting"] = idle_while_waiting(result, (begin + end) / 2, end)
        rows.append(row)
    return rows


def _named(rows: list[Row], column: str, schemes: tuple[str, ...]) -> dict[str, float]:
    own = [row for row in rows if row["scheme"] in schemes and row[column] is not None]
    return medians(own, column, lambda row: f"{row['control']}, {row['scheme']}, {row['phase']}")


def _claims(rate_mbps: float, rows: list[Row]) -> list[Claim]:
    separated = [row for row in rows if row["scheme"] in SEPARATED]
    claims = []
    if separated:
        claims += [
            between(
                "fair",
                "ours",
                "Separated flows have their max-min shares within 5 % in the second half of each phase",
                _named(separated, "largest_off", SEPARATED),
                -NEAR,
                NEAR,
                why="a flow alone in a queue with a buffer that its congestion control empties, or that grows slowly after a loss",
                form=Percents(8),
            ),
        ]
    capped = [row for row in separated if row["scheme"] == "cap" and row["phase"] != "1 alone"]
    if capped:
        late = medians_of_times(capped, "settled_s", lambda row: f"{row['control']}, {row['phase']}")
        claims.append(
            between(
                "settled",
                "ours",
                "With caps, flows have new shares within 3 s of a join, degradation, recovery or leave",
                late,
                high=3.0,
                why="a flow is known to be slow after 1.5 s, and a congestion control takes its time to use what it gets",
                form=Unit("s"),
            )
        )
    loss_based = [row for row in rows if not row["control"].startswith("bbr")]
    used = _named(loss_based, "link_use", tuple(SCHEMES))
    if used:
        claims.append(
            between(
                "used",
                "ours",
                "With a loss-based control the link is busy for at least 99 % of the time",
                used,
                low=0.99,
                why="a flow alone in a queue with too small a buffer for its congestion control leaves gaps",
                form=Percents(8),
            )
        )
    # Runs of before have no such column.
    idle = [row for row in rows if row.get("idle_while_waiting") is not None]
    if idle:
        claims.append(
            between(
                "idle",
                "ours",
                "The link is idle for at most 1 % of the time while packets wait for it",
                most(
                    idle,
                    "idle_while_waiting",
                    lambda row: f"{row['control']}, {row['scheme']}, {row['phase']}",
                ),
                high=0.01,
                why="caps hold packets back while the flow whose part of the link is left sends less, as BBR does for 200 ms every 10 s",
                form=Percents(8),
            )
        )
    return claims + judged(rows, "separation.rebalance", {"rate_mbps": rate_mbps})


def _draw(unit_s: float, runs: list[Run]) -> Figure:
    """Goodput of each flow over time."""
    shown = of_first_seed(runs)
    columns = min(len(shown), 4)
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(4.4 * columns, 2.9 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True).flat
    end_s = unit_s * BEGINS[-1]
    for panel, run in zip(panels, shown, strict=False):
        samples = run.tables["flow_samples"]
        for number in range(3):
            own = samples.filter(samples["flow"] == number)
            at, received = own["time_s"].to_numpy(), own["bytes_received"].to_numpy()
            if len(at) > 2:
                every = max(1, round(STEP_S / float(np.median(np.diff(at)))))
                at, received = at[::every], received[::every]
                rate = np.diff(received) * 8 / np.diff(at) / 1e6
                panel.plot(at[1:], rate, label=f"flow {number + 1}, {RTTS_MS[number]:g} ms", linewidth=0.9)
        rows = run.rows or all_rows([run])
        for row in rows:
            begin = row["begin_s"]
            after = [other["begin_s"] for other in rows if other["begin_s"] > begin]
            for number in range(3):
                if row[f"fair_{number + 1}_mbps"] is not None:
                    panel.hlines(
                        row[f"fair_{number + 1}_mbps"],
                        begin,
                        min(after, default=end_s),
                        "0.35",
                        ":",
                        linewidth=1.0,
                    )
            panel.axvline(begin, color="0.85", linewidth=0.7, zorder=0)
        if rows:
            panel.set_title(f"{SCHEMES[rows[0]['scheme']]}, {rows[0]['control']}", fontsize=9)
    for panel in figure.axes:
        panel.set_ylim(bottom=0)
        panel.set_xlim(0, end_s)
        panel.grid(alpha=0.25)
    for panel in figure.axes[-columns:]:
        panel.set_xlabel("time (s)")
    for panel in figure.axes[::columns]:
        panel.set_ylabel("goodput (Mbit/s)")
    figure.axes[0].legend(fontsize=7, loc="upper right")
    figure.suptitle("Three flows on one link; dotted: max-min shares", fontsize=10)
    return figure
