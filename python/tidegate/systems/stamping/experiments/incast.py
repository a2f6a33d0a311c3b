"""Incast: many hosts send to one at the same time, over one queue that is the same for all congestion controls."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians, most
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows, colour, log_scale, whiskers
from tidegate.results import Result
from tidegate.systems.stamping.experiments.contenders import (
    ACK_US,
    CONTENDERS,
    EDGE_GBPS,
    FRAMING,
    FULL_US,
    HEADERS,
    MTU,
    T0_US,
    Contender,
)
from tidegate.systems.stamping.experiments.testbed import stamp_all

NAMES = ("stamp", "hpcc", "powertcp", "swift", "dctcp", "timely-max", "timely-rtt", "cubic")
DELAY_US = (T0_US - 2 * (FULL_US + ACK_US)) / 4
"""Of a link: the RTT without queues is T0."""
SAMPLES = 400
"""Of the queue, in the time that the link takes for all of the data."""


@dataclass(frozen=True)
class Fan:
    """Senders, a switch and a receiver."""

    contender: str
    senders: int
    size_kb: int
    buffer_packets: int
    rto_min_ms: float

    @property
    def who(self) -> Contender:
        """The congestion control of all senders."""
        return CONTENDERS[self.contender]

    @property
    def floor_us(self) -> float:
        """How long the receiver's link takes for all of the data, in packets without a stamp."""
        full = self.senders * self.size_kb * 1e3 / (MTU - HEADERS)
        return full * FULL_US

    @property
    def until_us(self) -> float:
        """The end: there is time for some timeouts."""
        return 10 * self.floor_us + 40 * self.rto_min_ms * 1e3

    def network(self, seed: int) -> Network:
        """All start within a base RTT, at random."""
        network, random, who = Network(), Random(seed), self.who
        switch, target = who.switch(network, "switch"), network.host("target")

        def link(host: object) -> None:
            network.link(
                host,  # type: ignore[arg-type]
                switch,
                rate=f"{EDGE_GBPS:g} Gbit/s",
                delay=round(DELAY_US * 1e6),
                framing=FRAMING - who.imaginary,
                mtu=MTU + who.imaginary,
                queue=f"{self.buffer_packets} packets",
                mark_above=who.mark_above,
            )

        link(target)
        sources = [network.host(f"from{number}") for number in range(self.senders)]
        for source in sources:
            link(source)
        if who.form is not None:
            stamp_all(network, (target, *sources), who.form)
        for source in sources:
            network.tcp(
                source,
                target,
                size=self.size_kb * 1000,
                start=random.randrange(round(T0_US * 1e6)),
                rto_min=round(self.rto_min_ms * 1e9),
                **who.keywords,
            )
        network.record(round(self.floor_us / SAMPLES * 1e6), queues=network.links[:1])
        return network

    def rows(self, result: Result) -> Row:
        """The run's row: over the time until the last flow is complete."""
        flows = result.flows
        ends = flows["finish_s"].drop_nulls()
        unfinished = len(flows) - len(ends)
        last_s = self.until_us / 1e6 if unfinished else float(np.max(ends.to_numpy()))
        name = "switch -> target"
        samples = result.queue_samples.filter((pl.col("queue") == name) & (pl.col("time_s") <= last_s))
        (queue,) = result.queues.filter(pl.col("queue") == name).iter_rows(named=True)
        received = float(flows["bytes_received"].sum())
        return {
            "contender": self.contender,
            "senders": self.senders,
            "size_kb": self.size_kb,
            "buffer_packets": self.buffer_packets,
            "goodput_gbps": received * 8e-9 / last_s,
            "last_us": last_s * 1e6,
            "slowdown_last": last_s * 1e6 / self.floor_us,
            "first_us": float(np.min(ends.to_numpy())) * 1e6 if len(ends) else last_s * 1e6,
            "unfinished": unfinished,
            "queue_kb_mean": float(np.mean(samples["bytes"].to_numpy())) / 1e3,
            "queue_kb_p99": float(np.quantile(samples["bytes"].to_numpy(), 0.99)) / 1e3,
            "queue_kb_max": queue["queue_delay_ms_max"] * EDGE_GBPS * 1e3 / 8,
            "dropped": int(queue["dropped"]),
            "retransmits": int(flows["retransmits"].sum()),
            "timeouts": int(flows["timeouts"].sum()),
        }


@experiment(
    "stamping.incast",
    (
        "contender",
        "senders",
        "goodput_gbps",
        "last_us",
        "queue_kb_mean",
        "queue_kb_p99",
        "queue_kb_max",
        "dropped",
        "timeouts",
    ),
    quick={"senders": (8, 32)},
)
def incast(
    contenders: Annotated[tuple[str, ...], OneOf(CONTENDERS)] = NAMES,
    senders: Annotated[tuple[int, ...], AtLeast(1, 1000)] = (4, 8, 16, 32, 64, 128),
    size_kb: Number = 100,
    buffer_packets: Annotated[int, AtLeast(10, 100_000)] = 1000,
    rto_min_ms: Annotated[float, AtLeast(0.1, 1000)] = 1.0,
) -> Plan:
    """Many hosts send to one at the same time: goodput, the last flow's completion, the queue, drops and timeouts."""
    fans = [Fan(name, count, size_kb, buffer_packets, rto_min_ms) for count in senders for name in contenders]
    cases = [
        Case(f"{fan.contender}-{fan.senders}", fan.network, f"{fan.until_us:.0f} us", fan.rows)
        for fan in fans
    ]
    return Plan(cases, partial(_claims, contenders), partial(_draw, contenders))


WHY_START = (
    "`stamp` starts at the line's rate, so the first RTT overfills the buffer; the timeouts are spurious, each is undone, and with an "
    "RTO of at least 10 ms there are none"
)
WHY_LAST = (
    "where the buffer overflows, flows cut to a packet wait for a probe after twice an RTT that the full queue has made long, and the "
    "link is idle; where it does not, the small queue runs empty at times, and DCTCP's does not"
)


def _by(rows: list[Row], contender: str, column: str) -> dict[str, float]:
    own = [row for row in rows if row["contender"] == contender]
    return medians(own, column, _senders)


def _senders(row: Row) -> str:
    return f"{row['senders']}:1"


def _claims(contenders: tuple[str, ...], rows: list[Row]) -> list[Claim]:
    if "stamp" not in contenders:
        return []
    last = _by(rows, "stamp", "slowdown_last")
    out = [
        between(
            "last",
            "ours",
            "With `stamp`, the last flow completes within 1.15 times what the link takes for the data",
            last,
            high=1.15,
            why=WHY_LAST,
        ),
        between(
            "timeouts",
            "ours",
            "With `stamp`, no flow has a timeout",
            most([row for row in rows if row["contender"] == "stamp"], "timeouts", _senders),
            high=0,
            why=WHY_START,
        ),
    ]
    for peer in ("hpcc", "dctcp"):
        if peer in contenders:
            of_peer = _by(rows, peer, "last_us")
            own = _by(rows, "stamp", "last_us")
            out.append(
                between(
                    f"last-{peer}",
                    "ours",
                    f"The last flow completes no later than with {CONTENDERS[peer].text}, within 5 %",
                    {name: own[name] / of_peer[name] for name in own},
                    high=1.05,
                    why=WHY_LAST,
                )
            )
    return out


def _draw(contenders: tuple[str, ...], runs: list[Run]) -> Figure:
    """Completion of the last flow, queue, drops and timeouts over the number of senders."""
    rows = all_rows(runs)
    figure = Figure(figsize=(11, 7), layout="constrained")
    panels = figure.subplots(2, 2)
    shown = (
        ("goodput_gbps", "goodput until the last flow ends (Gbit/s)", "linear"),
        ("queue_kb_p99", "queue, p99 (kB)", "log"),
        ("dropped", "dropped packets", "symlog"),
        ("timeouts", "timeouts of all flows", "symlog"),
    )
    counts = sorted({row["senders"] for row in rows})
    for panel, (column, label, scale) in zip(panels.flat, shown, strict=True):
        for name in contenders:
            values = list(_by(rows, name, column).values())
            style = "-" if name == "stamp" else "--"
            panel.plot(
                counts,
                values,
                style,
                marker="o",
                markersize=3,
                color=colour(name),
                label=CONTENDERS[name].text,
            )
            own = [row for row in rows if row["contender"] == name]
            whiskers(panel, own, column, lambda row: str(row["senders"]), colour=colour(name))
        panel.set(xlabel="senders", ylabel=label, xscale="log")
        if scale == "log":
            log_scale(panel)
        else:
            panel.set_yscale(scale)
        panel.set_xticks(counts, [str(count) for count in counts])
        panel.minorticks_off()
        panel.set_ylim(bottom=0 if scale != "log" else None)
        panel.grid(alpha=0.3)
    figure.legend(
        *panels[0, 0].get_legend_handles_labels(), fontsize="small", loc="outside lower center", ncols=4
    )
    return figure
