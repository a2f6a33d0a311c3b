"""The monitor's memory against what it measures: the tables of packets, of flows, and the sketch that finds long flows.

Many flows with round-trip times of 1 to 224 ms share a link. Each packet that may give a sample needs a cell until it is acknowledged by
its own number; of every second packet that number never comes, and its cell is free after a while. What is counted is compared with
the same run and 2^19 cells that are free after 50 ms, which is always made. Times are on the sender's side of the taps, where only the
handshake's samples have them, or on the receiver's (`leg`).

For the other two tables many flows of few bytes go by, of which some are long: a small table of flows has no place for all, and a small
sketch takes short flows for long ones, or is cleared before it has found the long ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between
from tidegate.control import Controller, Digest, SwitchApi
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import FiveTuple, Flow, Link, Network, Node
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.separation.measured import Flows
from tidegate.systems.separation.setup import PORTS, monitor

BITS = tuple(range(6, 19, 2))
REFERENCE = (50.0, 18)
"""After how many ms a cell is free, and bits, of the run that the others are compared with."""
CELL_BYTES = 12
"""Signature, time, and the time between the taps."""
EDGE = {"rate": "40 Gbit/s", "delay": "5 us", "queue": "1000000 packets"}
PATIENCE_MS = (50.0, 100.0, 500.0, 2000.0)
RTTS_MS = (1.0, 224.0)
PAIRS = 10
LEGS = ("sender", "receiver")
LONG_RTT_MS = 50.0
TABLES = ("packets", "flows", "sketch")
FLOW_BITS = tuple(range(5, 12))
SKETCH_BITS = tuple(range(4, 15, 2))
PLACE_BYTES = 198
"""Signature and time, and 95 bytes for each direction."""
TRANSFERS, TRANSFERS_S, TRANSFERS_MBPS = 300, 6.0, 200.0
TRANSFER_KB = (10.0, 1000.0)
LONG_BYTES = 100_000
NEAR = 0.1
"""A flow is found in time when it has sent `LONG_BYTES`, within this part of them."""


class Counts(Controller):
    """Sets the monitor up for all flows, and notes what it has counted."""

    period = "500 ms"

    def __init__(self, patience_ms: float) -> None:
        self._patience = round(patience_ms * 1000)

    def start(self, switch: SwitchApi) -> None:
        """All flows have a place from their first packet on."""
        for port, what in PORTS.entries().items():
            switch.table_add("taps", [port], "sees", [what])
        for name, value in (("long_bytes", 0), ("idle_time", 60_000_000), ("waiting_time", self._patience)):
            switch.register_write(name, [value])

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note it."""
        switch.note("samples", float(switch.register_read("rtt_samples").sum()))
        switch.note("no_cell", float(switch.register_read("no_cell")[0]))


class Looks(Controller):
    """Keeps each flow's round-trip times, means over a period each, and how many samples each direction of a flow has given."""

    period = "100 ms"

    def __init__(self) -> None:
        self.flows = Flows()
        self._sum = self.samples = np.zeros(0, np.int64)
        self._means: list[npt.NDArray[np.float64]] = []

    def start(self, switch: SwitchApi) -> None:
        """Begin anew."""
        self.flows, self._means = Flows(), []
        self._sum, self.samples = self._read(switch)

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        """A flow has got a place."""
        self.flows.found(now, digest)

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Take the means since the last look; of a direction without a sample there is none."""
        total, samples = self._read(switch)
        grown = samples - self.samples
        means = (total - self._sum) / np.maximum(grown, 1) / 1e3
        self._means.append(np.where(grown > 0, means, np.nan))
        self._sum, self.samples = total, samples

    @staticmethod
    def _read(switch: SwitchApi) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        total, samples = (switch.register_read(f"rtt_{name}").astype(np.int64) for name in ("sum", "samples"))
        return total, samples

    def directions(self, flows: list[FiveTuple]) -> list[int | None]:
        """The number of each flow's direction from source to target; `None`: it has no place."""
        places = {one.flow: one.place for one in self.flows.by_place.values()}
        found: list[int | None] = []
        for flow in flows:
            turned = FiveTuple(flow.target, flow.source, flow.protocol, flow.target_port, flow.source_port)
            place = places.get(flow, places.get(turned))
            found.append(None if place is None else 2 * place + (flow not in places))
        return found

    def percentiles_ms(self, direction: int | None) -> tuple[float, float] | None:
        """p50 and p95 of a direction's means."""
        if direction is None:
            return None
        means = np.array([each[direction] for each in self._means])
        means = means[~np.isnan(means)]
        return (float(np.median(means)), float(np.percentile(means, 95))) if len(means) else None


def _path(net: Network, rate_mbps: float) -> tuple[Node, Node, Link, Link]:
    """The tapped link, the router, the congested link, and the router behind it."""
    s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
    before = net.link(s1, r1, **EDGE)  # type: ignore[arg-type]
    after = net.link(r1, r2, rate=f"{rate_mbps:g} Mbit/s", delay="5 us", queue="1 BDP", rtt="40 ms")
    return s1, r2, before, after


def _pairs(net: Network, s1: Node, r2: Node) -> list[tuple[Node, Node]]:
    pairs = []
    for number in range(PAIRS):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, s1, **EDGE)  # type: ignore[arg-type]
        net.link(b, r2, **EDGE)  # type: ignore[arg-type]
        pairs.append((a, b))
    return pairs


@dataclass
class Bed:
    """A monitor of a size, at a link with flows."""

    packet_bits: int
    patience_ms: float
    flows: int
    rate_mbps: float
    duration_s: float
    leg: str = "sender"
    looks: Looks = field(default_factory=Looks, repr=False)
    rtts_ms: list[float] = field(default_factory=list, repr=False)
    tuples: list[FiveTuple] = field(default_factory=list, repr=False)

    def network(self, seed: int) -> Network:
        """Flows with log-uniform round-trip times."""
        rng, net = np.random.default_rng(seed), Network()
        s1, r2, before, after = _path(net, self.rate_mbps)
        pairs = _pairs(net, s1, r2)
        self.rtts_ms = []
        flows = []
        for number in range(self.flows):
            rtt = math.exp(rng.uniform(math.log(RTTS_MS[0] / 1e3), math.log(RTTS_MS[1] / 1e3)))
            start = round(rng.uniform(0, 1) * 1e12)
            flows.append(self._flow(net, r2, pairs[number % PAIRS], start, rtt))
            self.rtts_ms.append(rtt * 1e3)
        flow_bits = max(8, (self.flows - 1).bit_length())
        switch = monitor(
            net, "monitor", before, after, before.b, flow_bits=flow_bits, packet_bits=self.packet_bits
        )
        net.control(Counts(self.patience_ms), switch)
        net.control(self.looks, switch)
        self.tuples = [net.five_tuple(flow) for flow in flows]
        return net

    def _flow(self, net: Network, r2: Node, pair: tuple[Node, Node], start: int, rtt_s: float) -> Flow:
        if self.leg == "sender":
            return net.tcp(*pair, start=start, extra_delay=round(rtt_s * 1e12))
        far = net.host(f"far{len(net.flows)}")
        net.link(far, r2, **{**EDGE, "delay": round(rtt_s / 2 * 1e12)})  # type: ignore[arg-type]
        return net.tcp(pair[0], far, start=start)

    def _samples(self, directions: list[int | None]) -> tuple[int, int]:
        """Samples that are short and long, by the true times of the legs: with a long one on a side, that side's direction gives long ones."""
        far = self.leg == "receiver"
        short = long = 0
        for direction, rtt in zip(directions, self.rtts_ms, strict=True):
            if direction is None:
                continue
            here, there = (
                int(self.looks.samples[one]) for one in (direction ^ far ^ 1, direction ^ (not far) ^ 1)
            )
            short, long = (short + there, long + here) if rtt > LONG_RTT_MS else (short + here + there, long)
        return short, long

    def row(self, result: Result) -> Row:
        """What was counted."""

        def last(name: str) -> float:
            return float(result.notes.filter(pl.col("quantity") == name)["value"][-1])

        directions = self.looks.directions(self.tuples)
        percentiles = [self.looks.percentiles_ms(direction) for direction in directions]
        short, long = self._samples(directions)
        return {
            "table": "packets",
            "leg": self.leg,
            "cells": 2 << self.packet_bits,
            "memory_kib": (2 << self.packet_bits) * CELL_BYTES / 1024,
            "patience_ms": self.patience_ms,
            "flows": self.flows,
            "samples": int(last("samples")),
            "no_cell": int(last("no_cell")),
            "samples_short": short,
            "samples_long": long,
            "rtts_ms_p50": [None if both is None else both[0] for both in percentiles],
            "rtts_ms_p95": [None if both is None else both[1] for both in percentiles],
        }


class Finds(Looks):
    """Looks for long flows, or for all, and clears the sketch as the controller does."""

    def __init__(self, long_bytes: int) -> None:
        super().__init__()
        self._long = long_bytes
        self.counted = np.zeros(0, np.int64)

    def start(self, switch: SwitchApi) -> None:
        """Set the monitor up."""
        super().start(switch)
        for port, what in PORTS.entries().items():
            switch.table_add("taps", [port], "sees", [what])
        for name, value in (("long_bytes", self._long), ("idle_time", 60_000_000), ("waiting_time", 50_000)):
            switch.register_write(name, [value])

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Clear the sketch when it is full."""
        if self._long:
            self.flows.unknown(now, switch)
            self.flows.clear_sketch(switch, self._long)
        self.counted = switch.register_read("bytes").astype(np.int64)


@dataclass
class TableBed:
    """A monitor with a table of flows or a sketch of a size, at a link with short and long transfers."""

    table: str
    bits: int
    finds: Finds = field(init=False, repr=False)
    tuples: list[FiveTuple] = field(default_factory=list, repr=False)

    def network(self, seed: int) -> Network:
        """Transfers of log-uniform sizes."""
        rng, net = np.random.default_rng(seed), Network()
        s1, r2, before, after = _path(net, TRANSFERS_MBPS)
        pairs = _pairs(net, s1, r2)
        low, high = (math.log(size * 1e3) for size in TRANSFER_KB)
        sizes = np.exp(rng.uniform(low, high, TRANSFERS)).astype(int).tolist()
        starts = rng.uniform(0, TRANSFERS_S * 2 / 3, TRANSFERS)
        flows = [
            net.tcp(*pairs[number % PAIRS], size=size, start=round(start * 1e12), extra_delay="10 ms")
            for number, (size, start) in enumerate(zip(sizes, starts, strict=True))
        ]
        bits = (
            {"flow_bits": self.bits} if self.table == "flows" else {"flow_bits": 12, "sketch_bits": self.bits}
        )
        switch = monitor(net, "monitor", before, after, before.b, **bits)
        self.finds = Finds(0 if self.table == "flows" else LONG_BYTES)
        net.control(self.finds, switch)
        self.tuples = [net.five_tuple(flow) for flow in flows]
        return net

    def row(self, result: Result) -> Row:
        """What was found."""
        directions = self.finds.directions(self.tuples)
        row: Row = {
            "table": self.table,
            "flows": TRANSFERS,
            "found": sum(one is not None for one in directions),
        }
        if self.table == "flows":
            return row | {"cells": 2 << self.bits, "memory_kib": (2 << self.bits) * PLACE_BYTES / 1024}
        row |= {"cells": 3 << self.bits, "memory_kib": (3 << self.bits) * 4 / 1024}
        return row | self._in_time(directions, result.flows.sort("flow")["bytes_received"].to_list())

    def _in_time(self, directions: list[int | None], received: list[int]) -> Row:
        """Parts of the short flows that were found, and of the long ones that were found too early and too late or not at all."""
        short, early, late = [], [], []
        for direction, size in zip(directions, received, strict=True):
            # With headers. The few bytes of acknowledgments make it long a little sooner.
            sent = size * 1500 / 1448
            if sent < (1 - NEAR) * LONG_BYTES:
                short.append(direction is not None)
            elif sent > (1 + NEAR) * LONG_BYTES:
                at = math.inf if direction is None else (sent - self.finds.counted[direction]) / LONG_BYTES
                early.append(at < 1 - NEAR)
                late.append(at > 1 + NEAR)
        parts = zip(("false_long", "early", "late"), (short, early, late), strict=True)
        return {name: float(np.mean(which)) for name, which in parts}


@experiment(
    "separation.memory",
    (
        "table",
        "patience_ms",
        "cells",
        "memory_kib",
        "samples",
        "samples_short",
        "samples_long",
        "no_cell",
        "found",
        "false_long",
        "early",
        "late",
    ),
    quick={
        "flows": 20,
        "rate_mbps": 50.0,
        "duration_s": 6.0,
        "bits": (6, 10, 16),
        "patience_ms": (50.0, 2000.0),
        "tables": ("packets",),
    },
)
def memory(
    bits: Annotated[tuple[int, ...], OneOf(BITS)] = BITS,
    patience_ms: Annotated[tuple[float, ...], AtLeast(1.0, 60_000.0)] = PATIENCE_MS,
    flows: Number = 300,
    rate_mbps: Annotated[float, AtLeast(10.0)] = 1000.0,
    duration_s: Annotated[float, AtLeast(2.0)] = 20.0,
    leg: Annotated[str, OneOf(LEGS)] = "sender",
    tables: Annotated[tuple[str, ...], OneOf(TABLES)] = TABLES,
) -> Plan:
    """What the monitor's tables of packets, of flows and its sketch keep, by their size: round-trip times, flows, and when flows are found.

    `leg`: the side of the taps on which the round-trip times are. `patience_ms`: how long a packet keeps its cell from others.
    """
    cases = []
    wanted = [(patience, size) for patience in patience_ms for size in bits]
    for patience, size in dict.fromkeys([REFERENCE, *wanted]) if "packets" in tables else ():
        bed = Bed(size, patience, flows, rate_mbps, duration_s, leg)
        cases.append(Case(f"{patience:g}-{size}", bed.network, f"{duration_s:g} s", bed.row))
    for table, sizes in (("flows", FLOW_BITS), ("sketch", SKETCH_BITS)):
        for size in sizes if table in tables else ():
            small = TableBed(table, size)
            cases.append(Case(f"{table}-{size}", small.network, f"{TRANSFERS_S:g} s", small.row))
    return Plan(cases, _claims, _draw)


def _of_packets(rows: list[Row]) -> list[Row]:
    """Runs of before have this table alone."""
    return [row for row in rows if row.get("table", "packets") == "packets"]


def _is_reference(row: Row) -> bool:
    patience, bits = REFERENCE
    return bool(row["patience_ms"] == patience and row["cells"] == 2 << bits)


def _parts(rows: list[Row], column: str = "samples") -> dict[float, dict[float, float]]:
    """By waiting time and KiB, samples as part of those of the reference with the same seed."""
    return _beside(rows, lambda row, reference: row[column] / max(reference[column], 1))


def _errors(rows: list[Row], column: str) -> dict[float, dict[float, float]]:
    """By waiting time and KiB, how far flows' round-trip times are from the reference's, p95 of the flows."""

    def error(row: Row, reference: Row) -> float:
        pairs = zip(row[column], reference[column], strict=True)
        off = [abs(own / true - 1) for own, true in pairs if own is not None and true]
        return float(np.percentile(off, 95)) if off else math.nan

    return _beside(rows, error)


def _beside(rows: list[Row], value: Callable[[Row, Row], float]) -> dict[float, dict[float, float]]:
    references = {row["seed"]: row for row in rows if _is_reference(row)}
    found: dict[float, dict[float, list[float]]] = {}
    for row in rows:
        if row["seed"] in references:
            values = found.setdefault(row["patience_ms"], {}).setdefault(row["memory_kib"], [])
            values.append(value(row, references[row["seed"]]))
    return {time: {kib: float(np.median(own)) for kib, own in sizes.items()} for time, sizes in found.items()}


def _claims(rows: list[Row]) -> list[Claim]:
    # Of itself the reference keeps all.
    rows = _of_packets(rows)
    beside = [row for row in rows if not _is_reference(row)]
    if not beside:
        return []
    short = min(row["patience_ms"] for row in beside)
    largest = max(row["memory_kib"] for row in beside if row["patience_ms"] == short)
    return [
        between(
            "enough",
            "ours",
            f"With {largest / 1024:g} MiB at least 99 % of the samples are kept (the paper's tens of MB are enough)",
            {f"{short:g} ms": _parts(rows)[short][largest]},
            low=0.99,
            why="a cell that is free after a short time is taken from packets with longer round-trip times",
            form=Percents(),
        )
    ]


def _draw(runs: list[Run]) -> Figure:
    """What is kept by memory, a panel for each thing that is."""
    rows = all_rows(runs)
    packets = _of_packets(rows)
    panels: list[tuple[str, str, dict[str, dict[float, float]]]] = []
    if packets:
        by_time = {f"free after {time:g} ms": sizes for time, sizes in sorted(_parts(packets).items())}
        panels.append(("table of packets", "samples (% of the reference's)", by_time))
    if packets and all("samples_long" in row for row in packets):
        time = min(row["patience_ms"] for row in packets)
        columns = {"below 50 ms": "samples_short", "above 50 ms": "samples_long"}
        kept = {label: _parts(packets, column)[time] for label, column in columns.items()}
        panels.append((f"table of packets, {time:g} ms", "samples (% of the reference's)", kept))
        errors = {name: _errors(packets, f"rtts_ms_{name}")[time] for name in ("p50", "p95")}
        panels.append((f"table of packets, {time:g} ms", "error of a flow's RTT (%, p95 of flows)", errors))
    for table, columns in (
        ("flows", {"found": "found"}),
        ("sketch", {"short, found": "false_long", "long, too early": "early", "long, too late": "late"}),
    ):
        own = [row for row in rows if row.get("table") == table]
        if own:
            lines = {label: _by_memory(own, column) for label, column in columns.items()}
            title = {"flows": "table of flows", "sketch": "sketch"}[table]
            panels.append((title, "flows (% of those there are)", lines))
    return _panels(panels)


def _by_memory(rows: list[Row], column: str) -> dict[float, float]:
    """Medians over seeds, as parts."""
    found: dict[float, list[float]] = {}
    for row in rows:
        part = row[column] / row["flows"] if column == "found" else row[column]
        found.setdefault(row["memory_kib"], []).append(part)
    return {kib: float(np.median(parts)) for kib, parts in found.items()}


def _panels(panels: list[tuple[str, str, dict[str, dict[float, float]]]]) -> Figure:
    columns = min(max(len(panels), 1), 3)
    height = -(-max(len(panels), 1) // columns)
    figure = Figure(figsize=(1.0 + 4.0 * columns, 0.4 + 3.2 * height), layout="constrained")
    axes = figure.subplots(height, columns, squeeze=False).ravel()
    for panel in axes[len(panels) :]:
        panel.set_axis_off()
    for panel, (title, label, lines) in zip(axes, panels, strict=False):
        for name, sizes in lines.items():
            memory, parts = zip(*sorted(sizes.items()), strict=True)
            panel.plot(memory, [100 * part for part in parts], "o-", label=name)
        panel.set_xscale("log", base=2)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("memory (KiB)")
        panel.set_ylabel(label)
        panel.xaxis.set_major_formatter("{x:g}")
        panel.set_ylim(0, None if title == "sketch" or "error" in label else 105)
        panel.grid(alpha=0.25)
        panel.legend(fontsize=8)
    return figure
