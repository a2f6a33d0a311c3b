"""What the experiments of PI2 and DualPI2 have in common: flows through one bottleneck, what is counted there, what becomes of it.

Rates of links are of Ethernet frames (14 bytes more than IP), goodput is what applications get: at most 1448 of 1514 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, Port, Queue, SwitchApi
from tidegate.experiments import OneOf, Row
from tidegate.network import Link, Network, Node
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.results import Result, jain
from tidegate.specs import PageSpec
from tidegate.systems.aqm.controller import BINS, LOW, PAPER, Aqm, bin_edges_us, dual_port, manage

Floats = npt.NDArray[np.float64]

SEGMENT_BITS = 1448 * 8
FRAME_BITS = 1514 * 8
BOTTLENECK = "switch -> sink"
# Ends of what the source hands down at once do not come at the same time in all flows.
STAGGER_MS = 4
# What is sampled or noted on a period comes so much later at most, by the clock.
SLACK_S = 0.05
ONE_QUEUE = Port((Queue(),))


@dataclass(frozen=True)
class Way:
    """A way to manage the bottleneck's queue."""

    text: str
    colour: str
    program: str | None
    """`None`: a plain router's queue, drop tail or what `law` says."""
    aqm: Aqm = PAPER
    port: Port = ONE_QUEUE
    law: str | None = None

    @property
    def queues(self) -> int:
        """One, or C and L."""
        return len(self.port.queues)


_TENTH = dual_port("deficit round robin", weight=9)
_INSIDE = replace(PAPER, home="data plane")
WAYS = {
    "pi2": Way("PI2", "C0", "pi2"),
    "dualpi2": Way("DualPI2, as the paper's", "C2", "dualpi2", port=_TENTH),
    "pi2-inside": Way("PI2, controller in the data plane", "C9", "pi2", _INSIDE),
    "dualpi2-inside": Way("DualPI2, controller in the data plane", "C8", "dualpi2", _INSIDE, _TENTH),
    "rfc": Way("DualPI2, RFC 9332's defaults", "C1", "dualpi2", Aqm(), dual_port()),
    "rfc-fifo": Way(
        "DualPI2, time-shifted FIFO",
        "C4",
        "dualpi2",
        Aqm(),
        dual_port("time-shifted FIFO", time_shift="50 ms"),
    ),
    "droptail": Way("drop tail, 1 BDP", "0.5", None),
    "codel": Way("CoDel", "C3", None, law="codel"),
    "pie": Way("PIE", "C5", None, law="pie"),
}
BASELINES = ("droptail", "codel", "pie")
Ways = Annotated[tuple[str, ...], OneOf(WAYS)]
Managed = Annotated[tuple[str, ...], OneOf([name for name in WAYS if name not in BASELINES])]
"""Those that are programs."""


@cache
def program(name: str) -> Program:
    """A data plane of this folder."""
    return compile_p4(Path(__file__).with_name(f"{name}.p4"))


class Counts(Controller):
    """Notes on a period what a port's queues have counted: `q0_...` of C (or of the only queue), `q1_...` of L."""

    NAMES = ("arrived", "forwarded", "marked", "dropped_not_ect", "dropped_ect", "overflowed")

    def __init__(self, port: int, queues: int, period: units.Time = "1 s") -> None:
        self.period = period
        self._port = port
        self._queues = queues

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note it."""
        first = 2 * self._port
        for name in self.NAMES:
            for queue, cell in enumerate(switch.counter_read(name, first, self._queues).tolist()):
                switch.note(f"q{queue}_{name}_packets", cell[0])
        sums = switch.register_read("delay_sum", first, self._queues).tolist()
        for queue in range(self._queues):
            switch.note(f"q{queue}_delay_sum_us", sums[queue])
            bins = switch.counter_read("delay_histogram", (first + queue) * BINS, BINS)[:, 0]
            switch.note(f"q{queue}_presented_packets", bins.sum())
            for number in np.flatnonzero(bins).tolist():
                switch.note(f"q{queue}_bin_{number}", bins[number])


@dataclass(frozen=True)
class Bottleneck:
    """A source and a sink, and a switch between them whose port to the sink is slow."""

    network: Network
    source: Node
    sink: Node
    link: Link
    way: str


def bottleneck(
    way: str,
    capacity_mbps: float,
    base_rtt_ms: float,
    *,
    access: units.Rate = "40 Gbit/s",
    count_period: units.Time = "1 s",
    aqm: Aqm | None = None,
    **options: Any,
) -> Bottleneck:
    """The paper's testbed, with the delay on the link to the sink, half of it each way.

    Drop tail holds a BDP, but at least 20 ms; CoDel and PIE hold 250 ms, as PI2 and DualPI2 do. `options` are
    those of `AqmController`.
    """
    net = Network()
    source, sink = net.host("source"), net.host("sink")
    how = WAYS[way]
    if how.program is None:
        router = net.router("switch")
        net.link(source, router, rate=access, delay=0, queue="1000000 packets")
        held_ms = 250 if how.law else max(base_rtt_ms, 20)
        link = net.link(
            router,
            sink,
            rate=round(capacity_mbps * 1e6),
            delay=round(base_rtt_ms * 1e9 / 2),
            queue=f"{round(capacity_mbps * 1e3 / 8 * held_ms)} B",
            aqm=how.law,
        )
        return Bottleneck(net, source, sink, link, way)
    switch = net.switch("switch", program(how.program), queues=how.queues)
    net.link(source, switch, rate=access, delay=0, queue="1000000 packets")
    link = net.link(switch, sink, rate=round(capacity_mbps * 1e6), delay=round(base_rtt_ms * 1e9 / 2))
    manage(net, switch, link, how.aqm if aqm is None else aqm, port=how.port, **options)
    net.control(Counts(net.port(switch, link), how.queues, count_period), switch)
    return Bottleneck(net, source, sink, link, way)


def classic_flows(lab: Bottleneck, count: int, start_s: float = 0.0, **options: Any) -> None:
    """CUBIC, without ECN as in the paper."""
    settings: dict[str, Any] = {"congestion_control": "cubic", "ecn": "off", **options}
    _flows(lab, count, start_s, settings)


def l4s_flows(lab: Bottleneck, count: int, start_s: float = 0.0, **options: Any) -> None:
    """Prague."""
    settings: dict[str, Any] = {"congestion_control": "prague", "ecn": "accurate", **options}
    _flows(lab, count, start_s, settings)


def _flows(lab: Bottleneck, count: int, start_s: float, settings: dict[str, Any]) -> None:
    for number in range(count):
        start = round(start_s * units.PS_PER_S) + number * STAGGER_MS * 1_000_000_000
        lab.network.tcp(lab.source, lab.sink, start=start, **settings)


@dataclass(frozen=True)
class Delays:
    """How long packets waited in a queue, from the program's bins."""

    edges_ms: Floats
    """Where each bin begins; and where the last ends."""
    shares: Floats
    """Of the packets, by bin."""
    mean_ms: float
    packets: int

    def quantile_ms(self, share: float) -> float:
        """The delay that this share of the packets did not have longer than; linear within a bin."""
        return float(np.interp(share, np.concatenate(([0.0], self.shares.cumsum())), self.edges_ms))


def sampled_delays(result: Result, from_s: float, to_s: float) -> Delays:
    """Of a plain queue: what a packet that came at the time of a sample would wait."""
    samples = result.queue_samples.filter(
        pl.col("queue") == BOTTLENECK, pl.col("time_s") > from_s, pl.col("time_s") <= to_s + 1e-9
    )["queue_delay_ms"].to_numpy()
    if not len(samples):
        return NO_DELAYS
    counts, edges = np.histogram(samples, 400, (0.0, max(float(samples.max()), 0.001)))
    return Delays(edges, counts / len(samples), float(samples.mean()), len(samples))


NO_DELAYS = Delays(np.zeros(2), np.ones(1), 0.0, 0)


class Noted:
    """The notes of a run by quantity, as steps over time."""

    def __init__(self, notes: pl.DataFrame) -> None:
        parts = notes.partition_by("quantity", as_dict=True, maintain_order=True)
        self._parts = {str(key[0]): part for key, part in parts.items()}

    def values(self, quantity: str, from_s: float, to_s: float) -> Floats:
        """What was noted after `from_s` and up to `to_s`."""
        part = self._parts.get(quantity)
        if part is None:
            return np.zeros(0)
        kept = part.filter(pl.col("time_s") > from_s + 1e-9, pl.col("time_s") <= to_s + 1e-9)
        values: Floats = kept["value"].to_numpy()
        return values

    def at(self, quantity: str, time_s: float) -> float:
        """The last value noted up to a time; 0 before the first."""
        part = self._parts.get(quantity)
        if part is None:
            return 0.0
        index = int(part["time_s"].search_sorted(time_s + SLACK_S))
        return float(part["value"][index - 1]) if index > 0 else 0.0

    def since(self, quantity: str, from_s: float, to_s: float) -> float:
        """By how much a count has grown."""
        return self.at(quantity, to_s) - self.at(quantity, from_s)

    def delays(self, queue: int, from_s: float, to_s: float) -> Delays:
        """Of the packets that left a queue then."""
        prefix = f"q{queue}_bin_"
        numbers = sorted(int(name[len(prefix) :]) for name in self._parts if name.startswith(prefix))
        counts = np.array([self.since(f"{prefix}{number}", from_s, to_s) for number in numbers])
        if not numbers or counts.sum() == 0:
            return NO_DELAYS
        # Bins that were never met lie between, with nothing in them.
        first, last = numbers[0], numbers[-1]
        shares = np.zeros(last - first + 1)
        shares[np.array(numbers) - first] = counts / counts.sum()
        edges = [bin_edges_us(number)[0] / 1e3 for number in range(first, last + 1)]
        edges.append(bin_edges_us(last)[1] / 1e3)
        mean = self.since(f"q{queue}_delay_sum_us", from_s, to_s) / counts.sum() / 1e3
        return Delays(np.array(edges), shares, float(mean), int(counts.sum()))


def _grown(result: Result, from_s: float, to_s: float) -> pl.DataFrame:
    """By how much each flow's counts have grown from its first to its last sample, and in what time: by the clock samples are late."""
    samples = result.flow_samples.filter(
        pl.col("time_s") >= from_s - 1e-9, pl.col("time_s") <= to_s + SLACK_S
    ).group_by("flow", maintain_order=True)
    counts = ("time_s", "bytes_received", "delivered_ce")
    return samples.agg([pl.col(name).last() - pl.col(name).first() for name in counts])


def goodputs_mbps(result: Result, from_s: float, to_s: float) -> dict[int, float]:
    """Of each flow, from its samples."""
    grown = _grown(result, from_s, to_s).iter_rows()
    return {int(flow): bytes * 8e-6 / spent if spent > 0 else 0.0 for flow, spent, bytes, _ in grown}


def begun(lab: Bottleneck, time_s: float) -> set[int]:
    """Flows that have started by then."""
    specs = ((flow.number, flow.spec) for flow in lab.network.flows)
    return {number for number, spec in specs if not isinstance(spec, PageSpec) and spec.start / 1e12 < time_s}


def utilisation(result: Result, from_s: float, to_s: float) -> float:
    """Share of the time in which the bottleneck was sending."""
    samples = result.queue_samples.filter(
        pl.col("queue") == BOTTLENECK,
        pl.col("number") == 0,
        pl.col("time_s") >= from_s - 1e-9,
        pl.col("time_s") <= to_s + SLACK_S,
    )
    spent = float(samples["time_s"][-1] - samples["time_s"][0])
    return min(1.0, float(samples["busy_s"][-1] - samples["busy_s"][0]) / spent)


def _dropped_share(result: Result) -> float:
    queue = result.queues.filter(pl.col("queue") == BOTTLENECK).row(0, named=True)
    return float(queue["dropped"] / max(queue["packets"] + queue["dropped"], 1))


def rows_of(
    result: Result,
    lab: Bottleneck,
    about: Row,
    from_s: float,
    to_s: float,
    *,
    flows: Collection[int] | None = None,
) -> list[Row]:
    """A row for each congestion control: goodput of its flows, and what its packets met in their queue.

    `flows` are those to look at, all by default; `ce_told` is how many packets their senders were told to have come with CE. Errors are of goodput against an equal share of all that was got, in parts of the share.
    """
    noted = Noted(result.notes)
    rates = {
        flow: rate
        for flow, rate in goodputs_mbps(result, from_s, to_s).items()
        if flows is None or flow in flows
    }
    fair = sum(rates.values()) / len(rates)
    if not fair:
        raise TidegateError(
            f"no flow got anything through from {from_s:g} to {to_s:g} s; give a longer run, or shorter round trips"
        )
    told = {int(flow): int(marks) for flow, *_, marks in _grown(result, from_s, to_s).iter_rows()}
    controls: dict[str, list[int]] = {}
    for flow in rates:
        spec: Any = lab.network.flows[flow].spec
        controls.setdefault(spec.congestion_control, []).append(flow)
    p = noted.values(f"p_{lab.network.port(lab.link.a, lab.link)}", from_s, to_s)
    plain = WAYS[lab.way].program is None
    rows = []
    for control, members in controls.items():
        own = [rates[flow] for flow in members]
        low = control == "prague"
        queue = LOW if low and WAYS[lab.way].queues == 2 else 0
        errors = np.array(own) / fair - 1
        delays = sampled_delays(result, from_s, to_s) if plain else noted.delays(queue, from_s, to_s)
        counts = {name: noted.since(f"q{queue}_{name}_packets", from_s, to_s) for name in Counts.NAMES}
        presented = max(noted.since(f"q{queue}_presented_packets", from_s, to_s), 1.0)
        rows.append(
            {
                "way": lab.way,
                **about,
                "control": control,
                "flows": len(own),
                "goodput_mbps": float(np.mean(own)),
                "goodputs_mbps": [round(rate, 4) for rate in own],
                "error_p25": float(np.quantile(errors, 0.25)),
                "error_mean": float(errors.mean()),
                "error_p99": float(np.quantile(errors, 0.99)),
                "error_abs_mean": float(np.abs(errors).mean()),
                "delay_ms_p25": delays.quantile_ms(0.25),
                "delay_ms_mean": delays.mean_ms,
                "delay_ms_p99": delays.quantile_ms(0.99),
                "marked_share": counts["marked"] / presented,
                "ce_told": sum(told[flow] for flow in members),
                "dropped_share": _dropped_share(result)
                if plain
                else (counts["dropped_not_ect"] + counts["dropped_ect"]) / presented,
                "p_mean": float(p.mean()) if len(p) else 0.0,
                "p_std": float(p.std()) if len(p) else 0.0,
                "goodput_total_mbps": sum(rates.values()),
                "utilisation": utilisation(result, from_s, to_s),
                "jain": jain(pl.Series(list(rates.values()))),
            }
        )
    return rows


def expected_p(
    capacity_mbps: float, rtt_classic_ms: float, rtt_l4s_ms: float, classic: int, l4s: int
) -> float:
    """p' at which the window laws of CUBIC and Prague fill the link.

    CUBIC's window is the larger of its own, 1.054 (R/p_C)^(3/4), and Reno's, 1.22 / sqrt(p_C) (RFC 9438); p_C = p'^2. Prague's is
    2 (1 - p_L) / p_L, by the ratio of the round trip to 25 ms where that is shorter; p_L = 2 p'.
    """
    packets = capacity_mbps * 1e6 / FRAME_BITS
    classic_s, l4s_s = rtt_classic_ms / 1e3, rtt_l4s_ms / 1e3

    def load(p: float) -> float:
        square, coupled = p * p, min(2 * p, 1.0)
        cubic = max(1.054 * math.pow(classic_s / square, 0.75), 1.22 / p, 2.0)
        prague = max(2 * (1 - coupled) / coupled * min(l4s_s / 0.025, 1.0), 2.0)
        return classic * cubic / classic_s + l4s * prague / l4s_s

    low, high = 1e-6, 1.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if load(middle) > packets else (low, middle)
    return low
