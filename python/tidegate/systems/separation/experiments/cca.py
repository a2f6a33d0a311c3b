"""Which congestion control a flow runs, seen passively by the monitor: a confusion matrix on runs that were not looked at before.

Known runs (`runs=known`) are on a grid: 20 and 100 Mbit/s, 10, 40 and 100 ms, buffers of 0.5, 1, 2 and 4 BDP. Their figures are kept in
`behaviour.json`; `--set runs=known` makes them anew and compares each with all of them, itself among them. Held-out runs
(`runs=held-out`, the default) are between and beyond the grid. In both there is other traffic: UDP packets at random, 3 % of the link.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network, Switch
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.separation.behaviour import FIGURES, KNOWN, Observer, figures, told
from tidegate.systems.separation.experiments.testbed import Testbed

CONTROLS = ("reno", "cubic", "htcp", "bbr", "bbr3", "vegas")
GRIDS = {
    "known": ((20.0, 100.0), (10.0, 40.0, 100.0), (0.5, 1.0, 2.0, 4.0)),
    "held-out": ((50.0, 150.0), (20.0, 70.0), (0.7, 1.5, 3.0)),
}
"""Rates in Mbit/s, round-trip times in ms, buffers in BDP."""
OTHERS = 0.03


@dataclass
class Bed:
    """One flow, seen by a monitor, at a router with one queue."""

    control: str
    rate_mbps: float
    rtt_ms: float
    buffer_bdp: float
    duration_s: float
    observer: Observer = field(default_factory=Observer)

    def network(self, seed: int) -> Network:
        """The testbed with the flow and other traffic."""
        # One class, capped at nothing: the router is as one queue, and the monitor is there.
        options = {
            "classes": 1,
            "newcomers": False,
            "long_bytes": "100 kB",
            "buffers": "bdp",
            "period": "10000 s",
        }
        bed = Testbed("guarantee", self.rate_mbps, self.buffer_bdp * self.rtt_ms, options)
        start = float(np.random.default_rng(seed).uniform(0, 1))
        bed.tcp(self.rtt_ms, start, congestion_control=self.control)
        sender, receiver = bed.ends(self.rtt_ms)
        bed.network.udp(sender, receiver, rate=round(OTHERS * self.rate_mbps * 1e6), pattern="poisson")
        monitor = next(node for node in bed.network.nodes if isinstance(node, Switch))
        bed.network.control(self.observer, monitor)
        return bed.network

    def row(self, result: Result) -> Row:
        """What was told of the flow."""
        found = next((figures(seen) for seen in self.observer.seen.values()), None)
        return {
            "control": self.control,
            "rate_mbps": self.rate_mbps,
            "rtt_ms": self.rtt_ms,
            "buffer_bdp": self.buffer_bdp,
            "told": None if found is None else told(found),
            "right": None if found is None else told(found) == self.control,
            **{name: None if found is None else found[place] for place, name in enumerate(FIGURES)},
        }


@experiment(
    "separation.cca",
    ("control", "rate_mbps", "rtt_ms", "buffer_bdp", "told", "right"),
    quick={"networks": 2, "duration_s": 40.0},
)
def cca(
    runs: Annotated[str, OneOf(GRIDS)] = "held-out",
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = CONTROLS,
    duration_s: Annotated[float, AtLeast(30.0)] = 60.0,
    networks: Annotated[int, AtLeast(1, 100)] = 100,
) -> Plan:
    """The congestion control of single flows, told from the monitor's series of rates, round-trip times and retransmissions.

    `networks`: so many of the grid at most, evenly taken.
    """
    rates, rtts, buffers = GRIDS[runs]
    grid = [(rate, rtt, buffer) for rate in rates for rtt in rtts for buffer in buffers]
    chosen = grid[:: max(1, -(-len(grid) // networks))]
    cases = []
    for control in controls:
        for rate, rtt, buffer in chosen:
            bed = Bed(control, rate, rtt, buffer, duration_s)
            cases.append(
                Case(f"{control}-{rate:g}-{rtt:g}-{buffer:g}", bed.network, f"{duration_s:g} s", bed.row)
            )
    return Plan(cases, _claims, _draw)


def matrix(rows: list[Row]) -> tuple[list[str], np.ndarray]:
    """Controls, and how many flows of each (lines) were told to be each (columns)."""
    names = [name for name in CONTROLS if any(name in (row["control"], row["told"]) for row in rows)]
    found = np.zeros((len(names), len(names)), dtype=int)
    for row in rows:
        if row["told"] is not None:
            found[names.index(row["control"]), names.index(row["told"])] += 1
    return names, found


def keep(rows: list[Row]) -> str:
    """The text of `behaviour.json`."""
    known = [row for row in rows if row["told"] is not None]
    points = [[round(float(row[name]), 4) for name in FIGURES] for row in known]
    return json.dumps({"figures": FIGURES, "controls": [row["control"] for row in known], "points": points})


def _claims(rows: list[Row]) -> list[Claim]:
    names, found = matrix(rows)
    right = {
        name: float(found[at, at] / max(found[at].sum(), 1))
        for at, name in enumerate(names)
        if found[at].sum()
    }
    loss_based = {"reno", "cubic", "htcp"}
    groups = [{"bbr", "bbr3"}, loss_based]
    together = {
        name: float(
            sum(
                found[at, other]
                for other, told_name in enumerate(names)
                if told_name == name or any({name, told_name} <= group for group in groups)
            )
            / max(found[at].sum(), 1)
        )
        for at, name in enumerate(names)
        if found[at].sum()
    }
    return [
        between(
            "each",
            "ours",
            "Nine of ten flows of each congestion control are recognised",
            right,
            low=0.9,
            why="with a small buffer or a long round-trip time there are few losses in a run, by which the loss-based ones differ",
            form=Percents(),
        ),
        between(
            "groups",
            "ours",
            "Loss-based controls, BBR of both versions and Vegas are told apart for 95 of 100 flows",
            together,
            low=0.95,
            why="a flow that never fills its buffer looks like one that avoids to",
            form=Percents(),
        ),
    ]


def _draw(runs: list[Run]) -> Figure:
    """The confusion matrix."""
    names, found = matrix(all_rows(runs))
    figure = Figure(figsize=(5.2, 4.6), layout="constrained")
    panel = figure.subplots()
    parts = found / np.maximum(found.sum(axis=1, keepdims=True), 1)
    image = panel.imshow(parts, cmap="Blues", vmin=0, vmax=1)
    for line in range(len(names)):
        for column in range(len(names)):
            if found[line, column]:
                panel.text(
                    column,
                    line,
                    str(found[line, column]),
                    ha="center",
                    va="center",
                    color="white" if parts[line, column] > 0.6 else "black",
                )
    panel.set_xticks(range(len(names)), names)
    panel.set_yticks(range(len(names)), names)
    panel.set_xlabel("told")
    panel.set_ylabel("is")
    right = int(np.trace(found))
    panel.set_title(f"{right} of {int(found.sum())} flows are recognised", fontsize=10)
    figure.colorbar(image, ax=panel, label="part of the flows")
    return figure


if __name__ == "__main__":
    import sys
    from pathlib import Path

    KNOWN.write_text(keep(json.loads(Path(sys.argv[1]).read_text())["rows"]) + "\n")
