"""The monitor's memory against what it measures: samples that are lost where cells are few, by the time after which a cell is free.

Many flows with round-trip times of 1 to 224 ms share a link. Each packet that may give a sample needs a cell until it is acknowledged by
its own number; of every second packet that number never comes, and its cell is free after a while. What is counted is compared with
the same run and 2^19 cells that are free after 50 ms, which is always made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.separation.setup import PORTS, monitor

BITS = tuple(range(6, 19, 2))
REFERENCE = (50.0, 18)
"""After how many ms a cell is free, and bits, of the run that the others are compared with."""
CELL_BYTES = 12
"""Signature, time, and the time between the taps."""
PATIENCE_MS = (50.0, 100.0, 500.0, 2000.0)
RTTS_MS = (1.0, 224.0)
PAIRS = 10


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


@dataclass
class Bed:
    """A monitor of a size, at a link with flows."""

    packet_bits: int
    patience_ms: float
    flows: int
    rate_mbps: float
    duration_s: float

    def network(self, seed: int) -> Network:
        """Flows with log-uniform round-trip times."""
        rng, net = np.random.default_rng(seed), Network()
        s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
        edge = {"rate": "40 Gbit/s", "delay": "5 us", "queue": "1000000 packets"}
        before = net.link(s1, r1, **edge)  # type: ignore[arg-type]
        after = net.link(r1, r2, rate=f"{self.rate_mbps:g} Mbit/s", delay="5 us", queue="1 BDP", rtt="40 ms")
        pairs = []
        for number in range(PAIRS):
            a, b = net.host(f"a{number}"), net.host(f"b{number}")
            net.link(a, s1, **edge)  # type: ignore[arg-type]
            net.link(b, r2, **edge)  # type: ignore[arg-type]
            pairs.append((a, b))
        for number in range(self.flows):
            rtt = math.exp(rng.uniform(math.log(RTTS_MS[0] / 1e3), math.log(RTTS_MS[1] / 1e3)))
            start = round(rng.uniform(0, 1) * 1e12)
            net.tcp(*pairs[number % PAIRS], start=start, extra_delay=round(rtt * 1e12))
        flow_bits = max(8, (self.flows - 1).bit_length())
        switch = monitor(net, "monitor", before, after, r1, flow_bits=flow_bits, packet_bits=self.packet_bits)
        net.control(Counts(self.patience_ms), switch)
        return net

    def row(self, result: Result) -> Row:
        """What was counted."""

        def last(name: str) -> float:
            return float(result.notes.filter(pl.col("quantity") == name)["value"][-1])

        return {
            "cells": 2 << self.packet_bits,
            "memory_kib": (2 << self.packet_bits) * CELL_BYTES / 1024,
            "patience_ms": self.patience_ms,
            "flows": self.flows,
            "samples": int(last("samples")),
            "no_cell": int(last("no_cell")),
        }


@experiment(
    "separation.memory",
    ("patience_ms", "cells", "memory_kib", "samples", "no_cell"),
    quick={
        "flows": 20,
        "rate_mbps": 50.0,
        "duration_s": 6.0,
        "bits": (6, 10, 16),
        "patience_ms": (50.0, 2000.0),
    },
)
def memory(
    bits: Annotated[tuple[int, ...], OneOf(BITS)] = BITS,
    patience_ms: Annotated[tuple[float, ...], AtLeast(1.0, 60_000.0)] = PATIENCE_MS,
    flows: Number = 300,
    rate_mbps: Annotated[float, AtLeast(10.0)] = 1000.0,
    duration_s: Annotated[float, AtLeast(2.0)] = 20.0,
) -> Plan:
    """The part of the round-trip times that the monitor's tables of packets keep, by their size and by how long a packet waits."""
    cases = []
    wanted = [(patience, size) for patience in patience_ms for size in bits]
    for patience, size in dict.fromkeys([REFERENCE, *wanted]):
        bed = Bed(size, patience, flows, rate_mbps, duration_s)
        cases.append(Case(f"{patience:g}-{size}", bed.network, f"{duration_s:g} s", bed.row))
    return Plan(cases, _claims, _draw)


def _is_reference(row: Row) -> bool:
    patience, bits = REFERENCE
    return bool(row["patience_ms"] == patience and row["cells"] == 2 << bits)


def _parts(rows: list[Row]) -> dict[float, dict[float, float]]:
    """By waiting time and KiB, samples as part of those of the reference with the same seed."""
    all_of_them = {row["seed"]: max(row["samples"], 1) for row in rows if _is_reference(row)}
    found: dict[float, dict[float, list[float]]] = {}
    for row in rows:
        if row["seed"] in all_of_them:
            part = row["samples"] / all_of_them[row["seed"]]
            found.setdefault(row["patience_ms"], {}).setdefault(row["memory_kib"], []).append(part)
    return {
        time: {kib: float(np.median(parts)) for kib, parts in sizes.items()} for time, sizes in found.items()
    }


def _claims(rows: list[Row]) -> list[Claim]:
    # Of itself the reference keeps all.
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
            form=Percents(),
        )
    ]


def _draw(runs: list[Run]) -> Figure:
    """Samples by memory."""
    figure = Figure(figsize=(6, 3.8), layout="constrained")
    panel = figure.subplots()
    for time, sizes in sorted(_parts(all_rows(runs)).items()):
        memory, parts = zip(*sorted(sizes.items()), strict=True)
        panel.plot(memory, [100 * part for part in parts], "o-", label=f"{time:g} ms")
    panel.set_xscale("log", base=2)
    panel.set_xlabel("memory of the table of packets (KiB)")
    panel.set_ylabel("samples (% of those of the reference)")
    panel.set_ylim(0, 105)
    panel.grid(alpha=0.25)
    panel.legend(title="a cell is free after", fontsize=8, title_fontsize=8)
    return figure
