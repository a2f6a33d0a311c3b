"""Some switches stamp and others do not: which fraction is enough, in an oversubscribed leaf-spine with a long flow from each host.

All switches run the same program and forward alike; one that does not stamp has no scales. The switches of a smaller fraction are
among those of a larger one. A packet's RTT is the sender's smoothed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial as bound
from random import Random
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, demand_warm_up, experiment
from tidegate.network import Network, Node
from tidegate.plots import all_rows, colour
from tidegate.results import Result
from tidegate.systems.stamping.controller import StampController
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
from tidegate.systems.stamping.field import Field, Scale
from tidegate.systems.stamping.setup import forwarding, program, stamping
from tidegate.topologies import LinkOptions, leaf_spine

LEAVES, SPINES, HOSTS_PER_LEAF = 8, 2, 4
HOSTS = LEAVES * HOSTS_PER_LEAF
SWITCHES = LEAVES + SPINES
DELAY_US = (T0_US - 4 * (FULL_US + ACK_US)) / 8
"""Of a link: the RTT without queues is T0 between two leaves."""
SAMPLES = 200
ENOUGH = 0.8
STAMPED = tuple(name for name, who in CONTENDERS.items() if who.form and who.control in ("stamp", "timely"))


def not_stamping(network: Network, name: str, form: Field) -> Node:
    """Add a switch with the same program that does not stamp."""

    def none() -> dict[int, Scale]:
        return {}

    switch = network.switch(name, program(form), clock="1 ns")
    network.control(StampController(bound(forwarding, network, switch), none), switch)
    return switch


@dataclass(frozen=True)
class Deployment:
    """The leaf-spine in which a fraction of the switches stamps."""

    contender: str
    fraction: float
    buffer_packets: int
    duration_ms: float
    warm_up_ms: float

    @property
    def who(self) -> Contender:
        """The congestion control of all flows."""
        return CONTENDERS[self.contender]

    def stamping(self, seed: int) -> set[str]:
        """The names of the switches that stamp, which a seed chooses."""
        names = [f"leaf{number}" for number in range(LEAVES)] + [f"spine{number}" for number in range(SPINES)]
        Random(seed).shuffle(names)
        return set(names[: round(self.fraction * SWITCHES)])

    def network(self, seed: int) -> Network:
        """A long flow from each host to one under another leaf at random; starts are within a base RTT."""
        network, random, who = Network(), Random(seed), self.who
        assert who.form is not None
        form, chosen = who.form, self.stamping(seed)

        def switch(net: Network, name: str) -> Node:
            return (
                stamping(net, name, form, clock="1 ns") if name in chosen else not_stamping(net, name, form)
            )

        wire: LinkOptions = {
            "rate": f"{EDGE_GBPS:g} Gbit/s",
            "delay": round(DELAY_US * 1e6),
            "framing": FRAMING,
            "mtu": MTU,
            "queue": f"{self.buffer_packets} packets",
        }
        made = leaf_spine(network, LEAVES, SPINES, HOSTS_PER_LEAF, access=wire, fabric=wire, switch=switch)
        stamp_all(network, made.hosts, form)
        for number, host in enumerate(made.hosts):
            leaf = (number // HOSTS_PER_LEAF + 1 + random.randrange(LEAVES - 1)) % LEAVES
            other = made.under(leaf)[random.randrange(HOSTS_PER_LEAF)]
            network.tcp(
                host, other, start=random.randrange(round(T0_US * 1e6)), rto_min="1 ms", **who.keywords
            )
        links = [*made.access, *(link for leaf in made.fabric for link in leaf)]
        network.record(round(self.duration_ms / SAMPLES * 1e9), queues=links)
        return network

    def rows(self, result: Result) -> Row:
        """The run's row, after the warm-up."""
        later = pl.col("time_s") >= self.warm_up_ms / 1e3
        chosen = self.stamping(result.seed)
        rtts = result.flow_samples.filter(later)["srtt_ms"].drop_nulls().to_numpy() * 1e3
        goodputs = result.goodput_mbps(self.warm_up_ms / 1e3)["goodput_mbps"].to_numpy() / 1e3
        queues = result.queue_samples.filter(later & ~pl.col("queue").str.starts_with("h"))
        us = 8 / (EDGE_GBPS * 1e3)
        waits = queues.select(
            pl.col("queue").str.split(" ").list.first().is_in(list(chosen)).alias("stamps"),
            (pl.col("bytes") * us).alias("us"),
        )
        tails: dict[bool, float | None] = {}
        for stamps in (True, False):
            own = waits.filter(pl.col("stamps") == stamps)["us"].to_numpy()
            tails[stamps] = float(np.quantile(own, 0.99)) if len(own) else None
        dropped = result.queues.filter(~pl.col("queue").str.starts_with("h"))["dropped"].sum()
        return {
            "contender": self.contender,
            "fraction": self.fraction,
            "switches": len(chosen),
            "throughput_gbps": float(goodputs.sum()),
            "slowest_gbps": float(goodputs.min()),
            "rtt_us_mean": float(rtts.mean()),
            "rtt_us_p95": float(np.quantile(rtts, 0.95)),
            "queue_us_p99_stamping": tails[True],
            "queue_us_p99_others": tails[False],
            "dropped": int(dropped),
            "timeouts": int(result.flows["timeouts"].sum()),
        }


@experiment(
    "stamping.partial",
    (
        "contender",
        "fraction",
        "throughput_gbps",
        "rtt_us_mean",
        "rtt_us_p95",
        "queue_us_p99_stamping",
        "queue_us_p99_others",
        "dropped",
    ),
    quick={"fractions": (0.0, 0.5, 0.8, 1.0), "duration_ms": 4.0, "warm_up_ms": 2.0},
)
def partial(
    contenders: Annotated[tuple[str, ...], OneOf(STAMPED)] = ("stamp", "timely-max"),
    fractions: Annotated[tuple[float, ...], AtLeast(0.0, 1.0)] = (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0),
    buffer_packets: Number = 200,
    duration_ms: Annotated[float, AtLeast(1)] = 10.0,
    warm_up_ms: float = 4.0,
) -> Plan:
    """Some switches stamp and others do not: throughput, RTTs and queues by the fraction that stamps."""
    demand_warm_up(warm_up_ms, duration_ms, "ms")
    cases = []
    for name in contenders:
        for fraction in fractions:
            one = Deployment(name, fraction, buffer_packets, duration_ms, warm_up_ms)
            cases.append(Case(f"{name}-{fraction:g}", one.network, f"{duration_ms * 1e3:.0f} us", one.rows))
    return Plan(cases, bound(_claims, contenders), bound(_draw, contenders))


def against_full(rows: list[Row], contender: str, column: str) -> dict[float, float]:
    """The median over the seeds of a column over that with all switches stamping, by fraction; seeds are paired."""
    full = {
        row["seed"]: row[column] for row in rows if row["contender"] == contender and row["fraction"] == 1
    }
    ratios = [
        {"fraction": row["fraction"], "ratio": row[column] / full[row["seed"]]}
        for row in rows
        if row["contender"] == contender and row["seed"] in full
    ]
    return {
        float(name): value
        for name, value in medians(ratios, "ratio", lambda row: str(row["fraction"])).items()
    }


WHY = (
    "where the longest queue of a path is not stamped, `stamp` keeps in flight what the other queues allow, and where none is, the rate of "
    "its own link over a base RTT until a loss; TIMELY keeps its rate without stamps. So queues of switches that do not stamp stay long"
)


def _claims(contenders: tuple[str, ...], rows: list[Row]) -> list[Claim]:
    out = []
    for name in contenders:
        text = CONTENDERS[name].text
        for column, low, high, said in (
            ("throughput_gbps", 0.95, np.inf, "at least 95 % of the throughput"),
            ("rtt_us_mean", 0.0, 1.25, "at most 125 % of the mean RTT"),
        ):
            values = {
                f"{fraction:.0%}": ratio
                for fraction, ratio in against_full(rows, name, column).items()
                if ENOUGH <= fraction < 1
            }
            statement = f"{text}: from {ENOUGH:.0%} of the switches on there is {said} that all give"
            out.append(
                between(f"{name}-{column.split('_')[0]}", "ours", statement, values, low, high, why=WHY)
            )
    return out


def _draw(contenders: tuple[str, ...], runs: list[Run]) -> Figure:
    """Throughput, RTT and queues over the fraction; bars go from the least to the largest of the seeds."""
    rows = all_rows(runs)
    figure = Figure(figsize=(12, 4), layout="constrained")
    panels = figure.subplots(1, 3)
    for number, name in enumerate(contenders):
        own = [row for row in rows if row["contender"] == name]
        for panel, column, label, style in (
            (panels[0], "throughput_gbps", CONTENDERS[name].text, "-o"),
            (panels[1], "rtt_us_mean", f"{CONTENDERS[name].text}, mean", "-o"),
            (panels[1], "rtt_us_p95", f"{CONTENDERS[name].text}, p95", "--^"),
            (panels[2], "queue_us_p99_stamping", f"{CONTENDERS[name].text}, ports that stamp", "-o"),
            (panels[2], "queue_us_p99_others", f"{CONTENDERS[name].text}, ports that do not", "--^"),
        ):
            there = [row for row in own if row[column] is not None]
            middle = {
                float(key): value
                for key, value in medians(there, column, lambda row: str(row["fraction"])).items()
            }
            every = [[row[column] for row in there if row["fraction"] == fraction] for fraction in middle]
            values = np.array(list(middle.values()))
            spread = [values - [min(each) for each in every], [max(each) for each in every] - values]
            # Beside each other, so that bars do not cover each other.
            at = (
                100 * np.array(list(middle))
                + number
                - (len(contenders) - 1) / 2
                + (0.5 if style != "-o" else 0.0)
            )
            panel.errorbar(
                at, values, spread, fmt=style, markersize=4, color=colour(name), capsize=2, label=label
            )
    for panel, label in zip(
        panels, ("goodput of all flows (Gbit/s)", "RTT (us)", "queue, p99 (us)"), strict=True
    ):
        panel.set(xlabel="switches that stamp (%)", ylabel=label)
        # Room for the legend.
        panel.set_ylim(0, 1.35 * panel.get_ylim()[1])
        panel.grid(alpha=0.3)
        panel.legend(fontsize="x-small", handlelength=4)
    return figure
