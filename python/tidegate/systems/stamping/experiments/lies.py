"""Hosts and switches that stamp wrongly: what the liar gets, what honest flows lose, and what bounds the damage.

Flows share a bottleneck. Some of them go on over a switch that overwrites their stamps: behind it is one flow, as if its receiver
echoed wrong values, or half of them. In a third place the bottleneck itself lies, to all. A lie is zero, the full scale, or random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate._core import TidegateError
from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, demand_warm_up, experiment
from tidegate.network import Network, Node, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.plots import all_rows
from tidegate.results import Result
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

PLACES = {
    "host": "one flow's receiver",
    "switch": "a switch behind half of the flows",
    "bottleneck": "the bottleneck",
}
LIES = {"none": (0, 0), "zero": (0, 0), "full": (255, 255), "random": (0, 255)}
"""The least and the largest code that is written; `none` is the truth."""
NAMES = ("stamp", "timely-max")
LINKS = 4
DELAY_US = (T0_US / LINKS - FULL_US - ACK_US) / 2
"""Of a link: the RTT without queues is T0 for all."""
FIELD_FOUND = 1
SAMPLES = 200


@cache
def _program() -> Program:
    return compile_p4(Path(__file__).with_name("liar.p4"))


class Liar(Controller):
    """Fills the tables of a switch that lies, when it starts."""

    def __init__(self, ports: Callable[[], Mapping[str, int]], lie: tuple[int, int]) -> None:
        self._ports = ports
        self._lie = lie

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables."""
        for address, port in self._ports().items():
            switch.table_add("forward", [address], "to_port", [port])
        switch.table_add("lies", [FIELD_FOUND], "set", list(self._lie))


def lying(network: Network, name: str, lie: tuple[int, int]) -> Switch:
    """Add a switch that overwrites stamps by codes from the first of two to the second, at random."""
    switch = network.switch(name, _program(), clock="1 ns")
    network.control(Liar(partial(network.forwarding, switch), lie), switch)
    return switch


@dataclass(frozen=True)
class Court:
    """The network: who lies, and how."""

    contender: str
    place: str
    lie: str
    flows: int
    buffer_packets: int
    duration_ms: float
    warm_up_ms: float

    @property
    def who(self) -> Contender:
        """The congestion control of all flows."""
        return CONTENDERS[self.contender]

    @property
    def name(self) -> str:
        """Of the case."""
        return f"{self.contender}-{self.place}-{self.lie}-{self.buffer_packets}"

    @property
    def behind(self) -> int:
        """The flows that the liar sees, which are the first."""
        return {"host": 1, "switch": self.flows // 2, "bottleneck": self.flows}[self.place]

    def network(self, seed: int) -> Network:
        """Flows start within a base RTT, at random."""
        network, random, who = Network(), Random(seed), self.who

        def middle(name: str, lies: bool) -> Node:
            return (
                lying(network, name, LIES[self.lie])
                if lies and self.lie != "none"
                else who.switch(network, name)
            )

        def link(a: Node, b: Node, hops: int = 1, packets: int = 10_000) -> None:
            # One that stands for several has their delay, and the time that they take for a packet.
            network.link(
                a,
                b,
                rate=f"{EDGE_GBPS:g} Gbit/s",
                delay=round((hops * DELAY_US + (hops - 1) * (FULL_US + ACK_US) / 2) * 1e6),
                framing=FRAMING,
                mtu=MTU,
                queue=f"{packets} packets",
            )

        first = middle("bottleneck", self.place == "bottleneck")
        fork = who.switch(network, "fork")
        liar = middle("liar", self.place != "bottleneck")
        link(first, fork, packets=self.buffer_packets)
        link(fork, liar, packets=self.buffer_packets)
        hosts: list[Node] = []
        for number in range(self.flows):
            a, b = network.host(f"from{number}"), network.host(f"to{number}")
            link(a, first)
            sees = number < self.behind
            link(liar if sees else fork, b, 1 if sees else 2)
            hosts += [a, b]
        assert who.form is not None
        stamp_all(network, hosts, who.form)
        for a, b in zip(hosts[::2], hosts[1::2], strict=True):
            network.tcp(a, b, start=random.randrange(round(T0_US * 1e6)), rto_min="1 ms", **who.keywords)
        network.record(round(self.duration_ms / SAMPLES * 1e9), queues=network.links[:1])
        return network

    def rows(self, result: Result) -> Row:
        """The run's row, after the warm-up. A fair share is an equal one of what the link carries in full packets."""
        goodputs = result.goodput_mbps(self.warm_up_ms / 1e3)["goodput_mbps"].to_numpy() / 1e3
        samples = result.queue_samples.filter(
            (pl.col("queue") == "bottleneck -> fork") & (pl.col("time_s") >= self.warm_up_ms / 1e3)
        ).sort("time_s")
        seen, others = goodputs[: self.behind], goodputs[self.behind :]
        busy, times, drops = samples["busy_s"], samples["time_s"], samples["dropped"]
        payload = self.who.mss / (MTU + FRAMING)
        fair = EDGE_GBPS * payload / self.flows
        dropped = int(drops[-1] - drops[0])
        carried = float(goodputs.sum()) * 1e9 / 8 / self.who.mss * (times[-1] - times[0])
        return {
            "contender": self.contender,
            "place": self.place,
            "lie": self.lie,
            "flows": self.flows,
            "buffer_packets": self.buffer_packets,
            "liar_of_fair": float(seen.mean()) / fair,
            "honest_of_fair": float(others.mean()) / fair if len(others) else None,
            "honest_least_gbps": float(others.min()) if len(others) else None,
            "utilisation": float((busy[-1] - busy[0]) / (times[-1] - times[0])),
            "queue_us_mean": float(np.mean(samples["bytes"].to_numpy())) * 8e-3 / EDGE_GBPS,
            "dropped": dropped,
            "drop_share": dropped / (dropped + carried),
            "timeouts": int(result.flows["timeouts"].sum()),
        }


@experiment(
    "stamping.lies",
    (
        "contender",
        "place",
        "lie",
        "buffer_packets",
        "liar_of_fair",
        "honest_of_fair",
        "utilisation",
        "queue_us_mean",
        "drop_share",
    ),
    quick={"buffers_packets": (200,), "duration_ms": 6.0, "warm_up_ms": 3.0},
)
def lies(
    contenders: Annotated[tuple[str, ...], OneOf(NAMES)] = NAMES,
    places: Annotated[tuple[str, ...], OneOf(PLACES)] = tuple(PLACES),
    lies: Annotated[tuple[str, ...], OneOf(LIES)] = tuple(LIES),
    flows: Number = 8,
    buffers_packets: Annotated[tuple[int, ...], AtLeast(2, 100_000)] = (50, 200),
    duration_ms: Annotated[float, AtLeast(1)] = 20.0,
    warm_up_ms: float = 5.0,
) -> Plan:
    """Hosts and switches that stamp wrongly: shares of those who lie and of those who do not, the link, the queue and losses."""
    demand_warm_up(warm_up_ms, duration_ms, "ms")
    if flows < 2:
        raise TidegateError(f"{flows} flow: a liar needs others to lie to; give 2 or more")
    courts = [
        Court(name, place, lie, flows, buffer, duration_ms, warm_up_ms)
        for name in contenders
        for place in places
        for lie in lies
        for buffer in buffers_packets
    ]
    cases = [Case(court.name, court.network, f"{duration_ms * 1e3:.0f} us", court.rows) for court in courts]
    return Plan(
        cases, partial(_claims, contenders), partial(_draw, contenders, places, lies, buffers_packets)
    )


WHY_ZERO = (
    "nothing compares stamps with the RTT or with losses below the window: a flow that reads no queue keeps the rate of its own link over "
    "a base RTT in flight (`stamp`), or until T_high (TIMELY), and that alone fills the link"
)
WHY_SWITCH = (
    "honest flows yield to the queue of those that are told of none, down to the least rate; flows that are told of a full queue go down "
    "to the least rate themselves"
)


def _of(rows: list[Row], column: str, place: str, lies: tuple[str, ...], contender: str) -> dict[str, float]:
    own = [
        row
        for row in rows
        if row["place"] == place
        and row["lie"] in lies
        and row["contender"] == contender
        and row[column] is not None
    ]
    return medians(own, column, lambda row: f"{row['lie']}, {row['buffer_packets']} packets")


def _claims(contenders: tuple[str, ...], rows: list[Row]) -> list[Claim]:
    out = []
    for name in contenders:
        text = CONTENDERS[name].text
        out += [
            between(
                f"{name}-gain",
                "ours",
                f"{text}: a receiver that lies gets at most 2 times its fair share",
                _of(rows, "liar_of_fair", "host", ("zero", "full", "random"), name),
                high=2.0,
                why=WHY_ZERO,
                form=Unit("times"),
            ),
            between(
                f"{name}-honest",
                "ours",
                f"{text}: honest flows keep at least half of their fair share beside a receiver that lies",
                _of(rows, "honest_of_fair", "host", ("zero", "full", "random"), name),
                0.5,
                why=WHY_ZERO,
            ),
            between(
                f"{name}-switch",
                "ours",
                f"{text}: flows that do not cross a lying switch keep at least half of their fair share",
                _of(rows, "honest_of_fair", "switch", ("zero", "full", "random"), name),
                0.5,
                why=WHY_SWITCH,
            ),
            between(
                f"{name}-link",
                "ours",
                f"{text}: whoever lies, the bottleneck is busy for at least 90 % of the time",
                {
                    f"{place}, {key}": value
                    for place in PLACES
                    for key, value in _of(
                        rows, "utilisation", place, ("zero", "full", "random"), name
                    ).items()
                },
                0.9,
                why=WHY_SWITCH,
            ),
        ]
    return out


def _draw(
    contenders: tuple[str, ...],
    places: tuple[str, ...],
    lies: tuple[str, ...],
    buffers: tuple[int, ...],
    runs: list[Run],
) -> Figure:
    """What a flow gets that the liar sees, and another one, and how busy the link is, at the largest buffer."""
    rows = all_rows(runs)
    buffer = buffers[-1]
    figure = Figure(figsize=(4.2 * len(places), 3.6 * len(contenders)), layout="constrained")
    panels = figure.subplots(len(contenders), len(places), squeeze=False, sharey=True)
    at = np.arange(len(lies))
    for line, name in zip(panels, contenders, strict=True):
        for panel, place in zip(line, places, strict=True):
            own = [row for row in rows if row["contender"] == name and row["place"] == place]
            own = [row for row in own if row["buffer_packets"] == buffer]
            for number, (column, label) in enumerate(
                (
                    ("liar_of_fair", "a flow that is lied to"),
                    ("honest_of_fair", "a flow that is not"),
                    ("utilisation", "bottleneck, of its rate"),
                )
            ):
                there = [row for row in own if row[column] is not None]
                if there:
                    values = medians(there, column, lambda row: str(row["lie"]))
                    panel.bar(
                        at + 0.27 * (number - 1),
                        [values[lie] for lie in lies],
                        width=0.25,
                        color=f"C{number}",
                        label=label,
                    )
            panel.axhline(1, color="0.4", linewidth=0.8)
            panel.set_xticks(at, lies)
            panel.set(title=f"{CONTENDERS[name].text}: {PLACES[place]}", xlabel="what is written")
            panel.title.set_fontsize("small")
            panel.grid(alpha=0.3, axis="y")
        line[0].set_ylabel("share of the fair one")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, fontsize="small", loc="outside lower center", ncols=3)
    return figure
