"""A burst at a queue that is not the bottleneck, and a step of the load at the bottleneck: what each signal and control makes of it.

A primary flow crosses two shared queues; the second one is its bottleneck, with cross flows. Bursts come to the first queue and are
shorter than the bottleneck's queue. Steps come to the bottleneck. All TCP flows have the same control.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Row, medians
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import Network, Node
from tidegate.papers import of_run
from tidegate.plots import all_rows, colour, of_first_seed, whiskers
from tidegate.results import Result
from tidegate.systems.stamping.claims import CLAIMS
from tidegate.systems.stamping.experiments.parking_lot import (
    MIN_RTT_US,
    RATE_GBPS,
    US_PER_BYTE,
    WIRE_US,
    author_s_constants,
)
from tidegate.systems.stamping.experiments.testbed import (
    HEADERS,
    PACKET,
    PLAIN,
    author_s_timely,
    exact,
    stamp_all,
)
from tidegate.systems.stamping.setup import stamping

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CONTROLS = {
    "timely-rtt": "TIMELY, RTT",
    "timely-sum": "TIMELY, SUM",
    "timely-sum_squ": "TIMELY, SUM_SQU",
    "timely-max": "TIMELY, MAX",
    "stamp": "stamp",
    "dctcp-stamp": "DCTCP, stamp",
    "dctcp": "DCTCP",
    "cubic": "CUBIC",
}
STAMPED = tuple(name for name in CONTROLS if name not in ("dctcp", "cubic"))
"""Those whose switches stamp; the others have plain routers, which mark for DCTCP."""
Controls = Annotated[tuple[str, ...], OneOf(CONTROLS)]

# Packets, of the shared queues.
BUFFER = 200
SAMPLE_US = 10
WARM_UP_MS = 30
# Between two bursts or steps.
PERIOD_MS = 8
STEP_MS = 2
# From a burst or a step on: by then DCTCP's queue stands again.
AFTER_BURST_MS, AFTER_STEP_MS = 2, 5
# Ten round trips with the bottleneck's queue.
WINDOW_MS = 1.2
# Until the flow's packets that were behind the burst have been acknowledged.
LATER_MS = 0.25


@dataclass(frozen=True)
class Disturbed:
    """The network with one control."""

    control: str
    cross_flows: int
    burst_packets: int
    step_gbps: float
    mark_above: int
    times: int

    @property
    def bursts_ms(self) -> Floats:
        """When bursts begin."""
        return WARM_UP_MS + PERIOD_MS * np.arange(self.times, dtype=np.float64)

    @property
    def steps_ms(self) -> Floats:
        """When steps begin."""
        return WARM_UP_MS + PERIOD_MS * np.arange(self.times, 2 * self.times, dtype=np.float64)

    @property
    def until_ms(self) -> int:
        """The end."""
        return WARM_UP_MS + 2 * PERIOD_MS * self.times

    @property
    def threshold_us(self) -> float:
        """Time that the packets of the threshold take."""
        return self.mark_above * PACKET * US_PER_BYTE

    def network(self, seed: int) -> Network:
        """TCP flows start within the first round trip, at random."""
        network, random = Network(), Random(seed)
        signal = self.control.removeprefix("timely-")
        form = exact(signal if signal in ("sum", "sum_squ") else "max")
        stamped = self.control in STAMPED
        switches: list[Node] = [
            stamping(network, f"s{number}", form, clock="1 ns") if stamped else network.router(f"s{number}")
            for number in range(3)
        ]
        delay_us = (MIN_RTT_US / 4 - WIRE_US) / 2
        ends: list[tuple[Node, Node]] = []

        def link(a: Node, b: Node, us: float, *, packets: int = 10_000, gbps: float = RATE_GBPS) -> None:
            network.link(
                a,
                b,
                rate=f"{gbps:g} Gbit/s",
                delay=round(us * 1e6),
                framing=0,
                queue=f"{packets} packets",
                mark_above=None if stamped or packets > BUFFER else self.mark_above,
            )

        link(switches[0], switches[1], delay_us, packets=BUFFER)
        link(switches[1], switches[2], delay_us, packets=BUFFER)
        shared = list(network.links)
        aside_us = (MIN_RTT_US - 2 * delay_us - 3 * WIRE_US) / 4
        for number in range(self.cross_flows + 1):
            first = switches[0] if number == 0 else switches[1]
            us = delay_us if number == 0 else aside_us
            ends.append((network.host(f"from{number}"), network.host(f"to{number}")))
            link(ends[-1][0], first, us)
            link(switches[2], ends[-1][1], us)
        if stamped:
            stamp_all(network, (host for pair in ends for host in pair), form)
        for a, b in ends:
            network.tcp(a, b, start=random.randrange(round(MIN_RTT_US * 1e6)), **self._options(signal))
        # Bursts of two hosts at a time, at the rate of the link each: the queue grows at that rate.
        for number in range(2):
            a, b = network.host(f"burst{number}"), network.host(f"burst_end{number}")
            link(a, switches[0], 1)
            link(switches[1], b, 1, gbps=100)
            lasts = self.burst_packets * WIRE_US * PACKET / (PACKET + HEADERS) / 2
            for at in self.bursts_ms:
                begin = round(float(at) * 1e9)
                network.udp(a, b, rate=f"{RATE_GBPS:g} Gbit/s", start=begin, stop=begin + round(lasts * 1e6))
        a, b = network.host("step"), network.host("step_end")
        link(a, switches[1], 1)
        link(switches[2], b, 1)
        for at in self.steps_ms:
            begin = round(float(at) * 1e9)
            stop = begin + STEP_MS * units.PS_PER_S // 1000
            network.udp(a, b, rate=round(self.step_gbps * 1e9), start=begin, stop=stop)
        network.record(f"{SAMPLE_US} us", queues=shared)
        return network

    def _options(self, signal: str) -> dict[str, Any]:
        form = exact(signal if signal in ("sum", "sum_squ") else "max")
        if self.control.startswith("timely-"):
            return author_s_timely(
                signal, form.control_options if signal != "rtt" else {}, MIN_RTT_US, **author_s_constants()
            )
        if self.control == "dctcp-stamp":
            # The same threshold as the marks of DCTCP with ECN.
            options = {**form.control_options, "alpha": "stamp", "threshold": f"{self.threshold_us:g} us"}
            return {"congestion_control": "dctcp", "control_options": options, **PLAIN}
        if self.control == "stamp":
            options = {
                **form.control_options,
                "base_rtt": f"{MIN_RTT_US:g} us",
                "rtt": f"{MIN_RTT_US:g} us",
                "line_rate": f"{RATE_GBPS:g} Gbit/s",
                "overhead": HEADERS + form.wire_bytes,
            }
            return {"congestion_control": "stamp", "control_options": options, **PLAIN}
        ecn = "on" if self.control == "dctcp" else "off"
        return {"congestion_control": self.control, "ecn": ecn, **PLAIN}

    def rows(self, result: Result) -> Row:
        """The run's row; changes are of the primary flow's throughput over ten round trips."""
        flow = result.flow_samples.filter(pl.col("flow") == 0).sort("time_s")
        times, got = flow["time_s"].to_numpy() * 1e3, flow["bytes_received"].to_numpy()

        def change(at: float) -> float:
            points = (at - WINDOW_MS, at, at + LATER_MS, at + LATER_MS + WINDOW_MS)
            before, begin, later, end = np.interp(points, times, got)
            return float((end - later) / (begin - before) - 1) if begin > before else 0.0

        changes = np.array([change(at) for at in self.bursts_ms])
        # Where no burst is.
        idle = np.array([change(at + PERIOD_MS / 2) for at in self.bursts_ms])
        first, last = (self.queue_us(result.queue_samples, number) for number in (0, 1))
        clock = np.arange(1, len(last) + 1) * SAMPLE_US / 1e3
        standing, between = self.undisturbed(clock), self.between_steps(clock)
        turns, peaks = [], []
        for at in self.steps_ms:
            during = last[(clock > at) & (clock <= at + STEP_MS)]
            turns.append((float(np.argmax(during)) + 1) * SAMPLE_US)
            peaks.append(float(during.max()))
        return {
            "control": self.control,
            "buffer_us": BUFFER * PACKET * US_PER_BYTE,
            "mark_above_us": self.threshold_us,
            "queue_us_mean": float(last[standing].mean()),
            "queue_us_sd": float(last[between].std()),
            "burst_us": float(
                np.median([first[(clock > at) & (clock < at + 1)].max() for at in self.bursts_ms])
            ),
            "change": float(changes.mean()),
            "change_idle": float(idle.mean()),
            "change_sd": float(np.concatenate((changes - changes.mean(), idle - idle.mean())).std()),
            "turn_us": float(np.median(turns)),
            "peak_us": float(np.median(peaks)),
            "dropped": int(result.queues["dropped"].sum()),
        }

    def undisturbed(self, clock: Floats) -> Bools:
        """Of times in milliseconds, those before the first step, but for the time after each burst."""
        since = (clock - self.bursts_ms[0]) % PERIOD_MS
        calm = (clock < self.bursts_ms[0]) | (since > AFTER_BURST_MS)
        found: Bools = (clock > WARM_UP_MS / 2) & (clock < self.steps_ms[0]) & calm
        return found

    def between_steps(self, clock: Floats) -> Bools:
        """Of times in milliseconds, those from `AFTER_STEP_MS` after a step until the next one, or the end."""
        since = (clock - self.steps_ms[0]) % PERIOD_MS
        found: Bools = (clock > self.steps_ms[0]) & (since > AFTER_STEP_MS)
        return found

    def queue_us(self, queue_samples: pl.DataFrame, number: int) -> Floats:
        """The wait in a shared queue, over time."""
        own = queue_samples.filter(pl.col("queue") == f"s{number} -> s{number + 1}").sort("time_s")
        return own["bytes"].to_numpy() * US_PER_BYTE


@experiment(
    "stamping.burst",
    ("control", "queue_us_mean", "burst_us", "change", "change_idle", "turn_us", "peak_us", "dropped"),
    quick={"times": 3},
)
def burst(
    controls: Controls = tuple(CONTROLS),
    cross_flows: Number = 3,
    burst_packets: Number = 60,
    step_gbps: Annotated[float, AtLeast(0.1, 10.0)] = 5.0,
    mark_above: Number = 80,
    times: Number = 20,
) -> Plan:
    """A burst at a queue that is not the bottleneck, and a step of the load at the bottleneck, by signal and control."""
    networks = [
        Disturbed(control, cross_flows, burst_packets, step_gbps, mark_above, times) for control in controls
    ]
    cases = [Case(one.control, one.network, f"{one.until_ms} ms", one.rows) for one in networks]
    return Plan(cases, _claims, partial(_draw, networks))


def _claims(rows: list[Row]) -> list[Claim]:
    return of_run(CLAIMS, "stamping.burst", rows, {})


def _draw(networks: list[Disturbed], runs: list[Run]) -> Figure:
    """The bottleneck's queue around the steps, and the change of the primary flow's throughput after a burst."""
    first = {run.case: run for run in of_first_seed(runs)}
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    step, change = figure.subplots(1, 2)
    for one in networks:
        queue = one.queue_us(first[one.control].tables["queue_samples"], 1)
        clock = np.arange(1, len(queue) + 1) * SAMPLE_US / 1e3
        around = [
            np.interp(np.arange(-0.5, STEP_MS + 0.5, SAMPLE_US / 1e3) + at, clock, queue)
            for at in one.steps_ms
        ]
        shown = np.mean(around, axis=0)
        at = np.arange(-0.5, STEP_MS + 0.5, SAMPLE_US / 1e3)[: len(shown)]
        step.plot(at, shown, color=colour(one.control), linewidth=1.1, label=CONTROLS[one.control])
    step.set(xlabel="time since the step (ms)", ylabel="bottleneck's queue (us)", title="step, mean of all")
    handles = step.get_legend_handles_labels()
    figure.legend(*handles, fontsize="small", loc="outside lower center", ncols=len(networks))
    rows = all_rows(runs)
    for place, (column, label) in enumerate((("change", "after a burst"), ("change_idle", "no burst"))):
        values = medians(rows, column, lambda row: str(row["control"]))
        at = np.arange(len(values)) + 0.4 * place - 0.2
        change.bar(at, [100 * value for value in values.values()], width=0.38, label=label)
        whiskers(
            change,
            rows,
            column,
            lambda row: str(row["control"]),
            colour="0.2",
            places=dict(zip(values, at, strict=True)),
            scale=100,
        )
    change.set_xticks(
        range(len(networks)), [CONTROLS[one.control] for one in networks], rotation=25, ha="right"
    )
    change.axhline(0, color="0.4", linewidth=0.8)
    change.set(ylabel="change of throughput (%)", title="primary flow, burst at the other queue")
    change.legend(fontsize="small", loc="best")
    for panel in (step, change):
        panel.grid(alpha=0.3)
    return figure
