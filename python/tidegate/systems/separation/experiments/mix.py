"""Reno, CUBIC and BBR together on one link: classes by round-trip time, by congestion control, by hash, and queues by flow.

The paper names classes by congestion control as future work. Here who runs what is given (`cca`), so that what such classes are worth can
be told apart from how well congestion controls are recognised (`separation.cca`), or it is told by the passive observer (`told`), which
knows no more than which controls there are. Beside them stand DualPI2, and the fair meter: one meter at the link's rate for all flows.

Flows send for the whole run, or a size each (`size_mb`): then rows have completion times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.control import SwitchApi
from tidegate.experiments import AtLeast, Case, Numbers, OneOf, Plan, Run, demand_warm_up, experiment
from tidegate.network import FiveTuple, Switch
from tidegate.plots import colour, of_first_seed
from tidegate.results import Result
from tidegate.systems.separation.behaviour import Observer, figures, told
from tidegate.systems.separation.experiments.testbed import (
    STEP_S,
    Testbed,
    busy,
    goodputs,
    idle_while_waiting,
    jain,
)
from tidegate.units import PS_PER_S

CONTENDERS = {
    "fifo": "one queue, 1 BDP",
    "codel": "one queue, CoDel",
    "fq_codel": "FQ-CoDel",
    "drr": "a queue for each flow (DRR)",
    "hash": "classes by hash",
    "rtt": "classes by RTT",
    "cca": "classes by congestion control",
    "told": "classes by congestion control as the monitor tells it",
    "dualpi2": "DualPI2",
    "meter": "the fair meter, one for all flows",
}
CLASSED = ("hash", "rtt", "cca", "told")
CONTROLS = ("reno", "cubic", "bbr", "bbr3", "htcp", "vegas")
RTTS_MS = (10.0, 30.0, 90.0)
TOLD_EACH_S = 5.0
"""Between the observer's looks at what it has seen."""


class Teller(Observer):
    """Gives each flow the class of the control that it looks like, of those that there are. Until it has been seen for 25 s it has the first."""

    def __init__(self, controls: Sequence[str], classes: dict[FiveTuple, int]) -> None:
        super().__init__()
        self._controls, self._classes = tuple(controls), classes
        self._looked = 0

    def start(self, switch: SwitchApi) -> None:
        """Begin anew."""
        super().start(switch)
        self._classes.clear()
        self._looked = 0

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Add to what was seen, and look at it now and then."""
        super().tick(now, switch)
        self._look(now)

    def _look(self, now: int) -> None:
        if now - self._looked < TOLD_EACH_S * PS_PER_S:
            return
        self._looked = now
        for flow, seen in self.seen.items():
            found = figures(seen)
            if found is not None:
                self._classes[flow] = self._controls.index(told(found, self._controls))


@experiment(
    "separation.mix",
    (
        "contender",
        "flows",
        "jain",
        "least_part",
        "most_part",
        "control_parts",
        "link_use",
        "idle_while_waiting",
        "queue_delay_ms_p99",
        "fct_s_mean",
        "fct_s_p95",
        "told_right",
    ),
    quick={"flows": (1,), "rate_mbps": 50.0, "duration_s": 25.0, "contenders": ("fifo", "drr", "rtt", "cca")},
)
def mix(
    contenders: Annotated[tuple[str, ...], OneOf(CONTENDERS)] = tuple(CONTENDERS),
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = ("reno", "cubic", "bbr"),
    flows: Numbers = (1, 4),
    rate_mbps: Annotated[float, AtLeast(10.0)] = 200.0,
    duration_s: Annotated[float, AtLeast(10.0)] = 90.0,
    warm_up_s: float = 10.0,
    size_mb: Annotated[float, AtLeast(0.0)] = 0.0,
) -> Plan:
    """Flows of each congestion control and round-trip time on one link, by the router's queues: shares, use of the link, delay.

    `size_mb`: each flow sends so much (0: for the whole run), and rows have completion times.
    """
    demand_warm_up(warm_up_s, duration_s)
    cases = []
    for each in flows:
        for contender in contenders:
            kinds = [(control, rtt) for control in controls for rtt in RTTS_MS for _ in range(each)]
            classes = {"hash": 3, "rtt": len(RTTS_MS), "cca": len(controls), "told": len(controls)}.get(
                contender, 1
            )
            options: dict[str, Any] = {
                "classes": classes,
                "long_bytes": "1 MB",
                "period": "1 s",
                "buffers": "split",
            }
            given: dict[FiveTuple, int] = {}
            true: dict[FiveTuple, int] = {}
            if contender != "rtt":
                options["classify_by"] = "hash" if contender == "hash" else given
            sized: dict[str, Any] = {"size": f"{size_mb} MB"} if size_mb else {}
            scheme = "guarantee" if contender in CLASSED else contender
            bed = Testbed(scheme, rate_mbps, float(np.mean(RTTS_MS)), options)
            # Three classes by round-trip time or control have as many flows each; those by hash have what comes.
            for number, (control, rtt_ms) in enumerate(kinds):
                flow = bed.tcp(rtt_ms, 0.05 * number, congestion_control=control, **sized)
                true[bed.network.five_tuple(flow)] = controls.index(control)
            if contender == "told":
                monitor = next(node for node in bed.network.nodes if isinstance(node, Switch))
                bed.network.control(Teller(controls, given), monitor)
            else:
                given |= true
            bed.manage()
            run = _Run(bed, contender, each, kinds, warm_up_s, duration_s, size_mb, given, true)
            cases.append(Case(f"{contender}-{each}", bed.network, f"{duration_s:g} s", run.row))
    return Plan(cases, _claims, _draw)


@dataclass
class _Run:
    """What a case measures."""

    bed: Testbed
    contender: str
    each: int
    kinds: list[tuple[str, float]]
    warm_up_s: float
    end_s: float
    size_mb: float
    classes: dict[FiveTuple, int]
    """That the controller was given."""
    true: dict[FiveTuple, int]

    def row(self, result: Result) -> Row:
        """The run's row."""
        if not self.size_mb:
            steps = goodputs(result, len(self.kinds), self.end_s)[:, round(self.warm_up_s / STEP_S) :]
            return self._row(result, steps.mean(axis=1), self.end_s)
        table = result.flows.sort("flow")
        finish = table["finish_s"].to_numpy().astype(float)
        # A flow that has not finished counts with the time that it has had: the mean is a lower bound then.
        ends = np.where(np.isnan(finish), self.end_s, finish)
        times = ends - table["start_s"].to_numpy()
        rates = table["bytes_received"].to_numpy() * 8 / times / 1e6
        return self._row(result, rates, float(ends.max())) | {
            "unfinished": int(np.isnan(finish).sum()),
            "fct_s_mean": float(times.mean()),
            "fct_s_p95": float(np.percentile(times, 95)),
        }

    def _row(self, result: Result, rates: npt.NDArray[np.float64], end_s: float) -> Row:
        row = _row(self.bed, self.contender, self.each, self.kinds, rates, self.warm_up_s, end_s, result)
        if self.contender == "told":
            row["told_right"] = sum(self.classes.get(flow) == of for flow, of in self.true.items()) / len(
                self.true
            )
        return row


def _row(
    bed: Testbed,
    contender: str,
    each: int,
    kinds: list[tuple[str, float]],
    rates: npt.NDArray[np.float64],
    warm_up_s: float,
    end_s: float,
    result: Result,
) -> Row:
    fair = bed.fair([float("inf")] * len(kinds))[0]
    controls = list(dict.fromkeys(control for control, _ in kinds))
    parts = {
        name: float(
            np.mean([rate / fair for rate, (control, _) in zip(rates, kinds, strict=True) if control == name])
        )
        for name in controls
    }
    by_rtt = {
        rtt: float(np.mean([rate / fair for rate, (_, own) in zip(rates, kinds, strict=True) if own == rtt]))
        for rtt in RTTS_MS
    }
    queue = result.queues.filter((pl.col("queue") == "r1 -> r2") & (pl.col("packets") > 0))
    return {
        "contender": contender,
        "flows": each,
        "jain": jain(rates),
        "least_part": float(rates.min() / fair),
        "most_part": float(rates.max() / fair),
        "control_parts": " ".join(f"{name} {part:.2f}" for name, part in parts.items()),
        **{f"part_{name}": part for name, part in parts.items()},
        **{f"part_{rtt:g}_ms": part for rtt, part in by_rtt.items()},
        "link_use": busy(result, warm_up_s, end_s),
        "idle_while_waiting": idle_while_waiting(result, warm_up_s, end_s),
        "queue_delay_ms_p99": float(queue["queue_delay_ms_p99"].max() or 0.0),  # type: ignore[arg-type]
        "rates_mbps": rates.round(3).tolist(),
        "kinds": [f"{control}, {rtt:g} ms" for control, rtt in kinds],
    }


def _claims(rows: list[Row]) -> list[Claim]:
    def of(contender: str, column: str) -> dict[str, float]:
        return medians([row for row in rows if row["contender"] == contender], column, _each)

    claims = []
    for contender in ("rtt", "cca", "told"):
        own, one = of(contender, "jain"), of("fifo", "jain")
        if own and one:
            claims.append(
                between(
                    f"{contender}-fairer",
                    "ours",
                    f"With {CONTENDERS[contender]} Jain's index is higher than with one queue",
                    {name: own[name] / one[name] for name in own if name in one},
                    low=1.0,
                    why="within a class flows with other round-trip times or congestion controls compete as in one queue",
                    form=Unit("times"),
                )
            )
    if of("cca", "least_part"):
        with_cca = [row for row in rows if row["contender"] == "cca"]
        parts = {
            name: medians([row for row in with_cca if f"part_{name}" in row], f"part_{name}", _each)
            for name in CONTROLS
        }
        shares = {
            f"{name}, {cell}": parts[name][cell]
            for cell in of("cca", "least_part")
            for name in CONTROLS
            if cell in parts[name]
        }
        claims.append(
            between(
                "cca-even",
                "ours",
                "With classes by congestion control each congestion control has its share within 10 %",
                shares,
                0.9,
                1.1,
                why="a class that does not fill its buffer leaves some of its share to the others",
                form=Unit("of its share"),
            )
        )
    if of("drr", "jain"):
        claims.append(
            between(
                "drr",
                "ours",
                "A queue for each flow is at least as fair as any classes",
                {
                    f"{contender}, {cell}": of(contender, "jain")[cell] - jain
                    for cell, jain in of("drr", "jain").items()
                    for contender in CLASSED
                    if cell in of(contender, "jain")
                },
                high=0.005,
            )
        )
    return claims


def _each(row: Row) -> str:
    return f"{row['flows']} each"


def _draw(runs: list[Run]) -> Figure:
    """The part of its fair share that each flow has, by contender."""
    shown = [run for run in of_first_seed(runs) if run.rows]
    numbers = sorted({run.rows[0]["flows"] for run in shown if run.rows})
    figure = Figure(figsize=(8.5, 3.4 * max(len(numbers), 1)), layout="constrained")
    for panel, number in zip(
        figure.subplots(max(len(numbers), 1), 1, squeeze=False)[:, 0], numbers, strict=False
    ):
        rows = [run.rows[0] for run in shown if run.rows and run.rows[0]["flows"] == number]
        labels = list(dict.fromkeys(kind for row in rows for kind in row["kinds"]))
        for place, row in enumerate(rows):
            mean = float(np.mean(row["rates_mbps"]))
            for label in labels:
                control, rtt = label.split(", ")
                values = [
                    r / mean for r, kind in zip(row["rates_mbps"], row["kinds"], strict=True) if kind == label
                ]
                shade = colour(control)
                marker = "osD"[RTTS_MS.index(float(rtt.split()[0]))]
                panel.plot(
                    [place] * len(values),
                    values,
                    marker,
                    color=shade,
                    markersize=5,
                    alpha=0.7,
                    label=label if place == 0 else None,
                )
        panel.axhline(1, color="0.5", linestyle=":", linewidth=0.9)
        panel.set_xticks(
            range(len(rows)), [f"{row['contender']}\nJain {row['jain']:.2f}" for row in rows], fontsize=8
        )
        panel.set_yscale("symlog", linthresh=0.1)
        panel.set_yticks([0, 0.1, 0.3, 1, 3, 10], ["0", "0.1", "0.3", "1", "3", "10"])
        panel.set_ylim(bottom=0)
        panel.set_ylabel("goodput over fair share")
        panel.set_title(f"{number} of each kind", fontsize=9)
        panel.grid(alpha=0.25, axis="y")
        panel.legend(fontsize=6, ncols=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure
