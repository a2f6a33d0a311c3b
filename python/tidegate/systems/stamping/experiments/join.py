"""Flows that join one after another and leave again at 25 Gbit/s: how soon shares are equal, and what it costs the queue."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.measures import received_bytes
from tidegate.network import Network
from tidegate.plots import of_first_seed
from tidegate.results import Result, jain
from tidegate.systems.stamping.experiments.contenders import (
    ACK_US,
    CONTENDERS,
    EDGE_GBPS,
    FRAMING,
    FULL_US,
    MTU,
    T0_US,
    Contender,
)
from tidegate.systems.stamping.experiments.testbed import stamp_all

WINDOW_US = 100
"""Shares are those of so long: a hundred packets of four flows each."""
NEAR = 0.25
"""A share has settled when it stays within this part of the fair one."""
BUFFER = 1000
NAMES = tuple(name for name in CONTENDERS if name not in ("bbr", "timely-sum", "timely-sum_squ"))


@dataclass(frozen=True)
class Joining:
    """One more flow after each step, then one less, the oldest first."""

    contender: str
    flows: int
    step_ms: float

    @property
    def who(self) -> Contender:
        """The congestion control of all flows."""
        return CONTENDERS[self.contender]

    @property
    def steps(self) -> list[tuple[int, ...]]:
        """The flows of each step."""
        most = self.flows
        return [tuple(range(last)) for last in range(1, most + 1)] + [
            tuple(range(first, most)) for first in range(1, most)
        ]

    @property
    def until_ms(self) -> float:
        """Length of the run."""
        return len(self.steps) * self.step_ms

    def network(self, seed: int) -> Network:
        """Hosts around two switches, with a base RTT of `T0_US` between them; the link from the first to the second is the bottleneck."""
        network, random, who = Network(), Random(seed), self.who
        first, second = who.switch(network, "first"), who.switch(network, "second")
        # Three links each way.
        delay = round((T0_US - 3 * (FULL_US + ACK_US)) / 6 * 1e6)

        def link(a: object, b: object, packets: int) -> None:
            network.link(
                a,  # type: ignore[arg-type]
                b,  # type: ignore[arg-type]
                rate=f"{EDGE_GBPS:g} Gbit/s",
                delay=delay,
                framing=FRAMING - who.imaginary,
                mtu=MTU + who.imaginary,
                queue=f"{packets} packets",
                mark_above=who.mark_above,
            )

        link(first, second, BUFFER)
        hosts = []
        for number in range(self.flows):
            a, b = network.host(f"from{number}"), network.host(f"to{number}")
            link(a, first, 10_000)
            link(second, b, 10_000)
            hosts.append((a, b))
        if who.form is not None:
            stamp_all(network, [host for pair in hosts for host in pair], who.form)
        step = round(self.step_ms * 1e9)
        for number, (a, b) in enumerate(hosts):
            later = random.randrange(round(T0_US * 1e6))
            start, stop = number * step + later, (self.flows + number) * step
            network.tcp(a, b, start=start, stop=stop, rto_min="1 ms", **who.keywords)
        network.record(f"{WINDOW_US / 2:g} us", queues=network.links[:1])
        return network

    def shares(self, samples: pl.DataFrame) -> npt.NDArray[np.float64]:
        """Goodput of each flow in Gbit/s, by flow and window."""
        edges = np.arange(0.0, self.until_ms * 1e-3 + WINDOW_US * 5e-7, WINDOW_US * 1e-6)
        received = np.array([received_bytes(samples, number, edges) for number in range(self.flows)])
        return received * 8e-9 / (WINDOW_US * 1e-6)

    def rows(self, result: Result) -> Row:
        """Settling times of the steps with several flows; shares in the later half of each step."""
        rates = self.shares(result.flow_samples)
        a_step = round(self.step_ms * 1e3 / WINDOW_US)
        joins: list[float] = []
        leaves: list[float] = []
        fairness: list[float] = []
        for number, flows in enumerate(self.steps):
            here = rates[list(flows), number * a_step : (number + 1) * a_step]
            fairness.append(jain(pl.Series(here[:, a_step // 2 :].mean(axis=1))))
            if len(flows) < 2:
                continue
            away = np.flatnonzero((np.abs(here - here.mean(axis=0)) > NEAR * here.mean(axis=0)).any(axis=0))
            settled = (0 if not len(away) else int(away[-1]) + 1) * WINDOW_US / 1e3
            (joins if number < self.flows else leaves).append(settled)
        queue = result.queue_samples.filter(pl.col("queue") == "first -> second").sort("time_s")
        busy, times = queue["busy_s"], queue["time_s"]
        return {
            "contender": self.contender,
            "join_ms_worst": max(joins, default=0.0),
            "join_ms_mean": float(np.mean(joins or [0.0])),
            "leave_ms_worst": max(leaves, default=0.0),
            "jain_least": min(fairness),
            "link_use": float((busy[-1] - busy[0]) / (times[-1] - times[0])),
            "queue_kb_p99": float(np.quantile(queue["bytes"].to_numpy(), 0.99)) / 1e3,
            "drops": int(queue["dropped"][-1]),
        }


@experiment(
    "stamping.join",
    (
        "contender",
        "join_ms_worst",
        "join_ms_mean",
        "leave_ms_worst",
        "jain_least",
        "link_use",
        "queue_kb_p99",
        "drops",
    ),
    quick={"contenders": ("stamp", "stamp4", "hpcc", "dctcp")},
)
def join(
    contenders: Annotated[tuple[str, ...], OneOf(CONTENDERS)] = NAMES,
    flows: Annotated[int, AtLeast(1, 1000)] = 4,
    step_ms: Annotated[float, AtLeast(0.5)] = 4.0,
) -> Plan:
    """Flows that join and leave at 25 Gbit/s, base RTT 9.5 us: time until shares are equal, by congestion control."""
    runs = [Joining(name, flows, step_ms) for name in contenders]
    cases = [Case(one.contender, one.network, f"{one.until_ms:g} ms", one.rows) for one in runs]
    return Plan(cases, _claims, partial(_draw, {one.contender: one for one in runs}))


WHY = "a newcomer starts at the rate of its link, and old flows make room by steps that shrink with what they have sent"


def _claims(rows: list[Row]) -> list[Claim]:
    def of(column: str) -> dict[str, float]:
        own = [row for row in rows if row["contender"] == "stamp"]
        return medians(own, column, lambda row: str(row["contender"]))

    if not of("join_ms_worst"):
        return []
    statement = "After a join all stamp flows are within 25 % of an equal share within 1.2 ms"
    return [
        between("joins", "ours", statement, of("join_ms_worst"), high=1.2, why=WHY, form=Unit("ms")),
        between(
            "fair",
            "ours",
            "In the later half of each step Jain's index of stamp flows is at least 0.98",
            of("jain_least"),
            0.98,
            why=WHY,
        ),
    ]


def _draw(joinings: dict[str, Joining], runs: list[Run]) -> Figure:
    """Goodput over time, a panel for each control."""
    shown = of_first_seed(runs)
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(4.2 * columns, 2.4 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
    for panel, run in zip(panels.flat, shown, strict=False):
        one = joinings[run.case]
        rates = one.shares(run.tables["flow_samples"])
        times = (np.arange(rates.shape[1]) + 0.5) * WINDOW_US / 1e3
        for number, rate in enumerate(rates):
            panel.plot(times[rate > 0], rate[rate > 0], linewidth=0.9, label=f"flow {number + 1}")
        panel.set_title(CONTENDERS[run.case].text, fontsize="medium")
        panel.grid(alpha=0.3)
    for panel in panels.flat[len(shown) :]:
        panel.set_axis_off()
    for panel in panels[-1]:
        panel.set_xlabel("time (ms)")
    for panel in panels[:, 0]:
        panel.set_ylabel("goodput (Gbit/s)")
    panels[0, 0].set_ylim(0, 1.05 * EDGE_GBPS)
    panels[0, 0].legend(fontsize="x-small")
    return figure
