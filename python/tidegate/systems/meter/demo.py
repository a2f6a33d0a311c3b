"""`make demo`: flows that share a meter, behind a plain one, BC-PQP and the fair one, simulated and, where that can be, between Linux hosts.

All three have the same burst in bytes, BC-PQP for each flow's queue. Writes `sim`, `live` and `figure.png` into a folder (`runs/demo`), and prints both results
beside each other.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tidegate import experiments
from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.lab import kernel
from tidegate.systems.meter.experiments.contenders import CONTENDERS
from tidegate.systems.meter.experiments.fair_sharing import CELLS, LOSS_FREE_S, WINDOW_S

NAME = "meter.fair"
SCHEMES = ("plain-1s", "bcpqp-1s", "fair")
# Not a cell that the fair meter was tuned on.
WHERE = {"target_mbps": 60.0, "base_rtt_ms": 20.0}
SIMULATED: dict[str, Any] = {
    **WHERE,
    "cells": ("cubic-e+cubic", "cubic+bbr", "cubic+udp3", "two-rtts-e", "8-cubic-e", "eight"),
    "schemes": SCHEMES,
    "duration_s": 60,
}
# In real time, so fewer and shorter.
LIVE: dict[str, Any] = {
    **WHERE,
    "cells": ("cubic+bbr", "cubic+udp3"),
    "schemes": ("plain-1s", "fair"),
    "duration_s": 20,
    "hosts": "apart",
}
Key = tuple[str, str]
"""Cell, contender."""
Results = dict[Key, tuple[float, int]]
"""The least part of its share that a flow has in ten seconds; retransmissions of all flows."""


def why_not_live() -> str | None:
    """What keeps the live backend from running here."""
    try:
        kernel.demand_privilege()
    except TidegateError as error:
        return str(error)
    return kernel.missing_program("iperf3")


def run(backend: str, settings: dict[str, Any], out: Path) -> Results:
    """What the experiment finds, by cell and contender."""
    one = experiments.find(NAME)
    parameters = {**one.parameters(), **settings}
    answer = experiments.run(
        NAME, parameters, backend=backend, seeds=[1], out=out / backend, processes=os.cpu_count() or 1
    )
    for warning in answer["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")
    rows: dict[Key, list[Row]] = {}
    for row in answer["rows"]:
        rows.setdefault((row["cell"], row["scheme"]), []).append(row)
    return {
        key: (min(row["worst_10_s"] for row in own), sum(row["retransmits"] or 0 for row in own))
        for key, own in rows.items()
    }


def table(simulated: Results, live: Results) -> Table:
    """Both results beside each other."""
    made = Table(
        title=f"Worst {WINDOW_S} s of the worst flow, as a part of its fair share (1: fair, 0: starved); retransmissions after {LOSS_FREE_S} s",
        caption=f"60 Mbit/s of IP, 20 ms; burst: 1.05 s of the rate (BC-PQP: each queue); {SIMULATED['duration_s']} s simulated, {LIVE['duration_s']} s live",
    )
    made.add_column("flows in the meter")
    made.add_column("")
    for scheme in SCHEMES:
        made.add_column(CONTENDERS[scheme].text, justify="right")
    for cell in SIMULATED["cells"]:
        for text, results in (("simulated", simulated), ("real Linux", live)):
            if any(of == cell for of, _ in results):
                made.add_row(
                    CELLS[cell].text,
                    text,
                    *(
                        f"{results[cell, scheme][0]:.2f}  {results[cell, scheme][1]:6d}"
                        if (cell, scheme) in results
                        else ""
                        for scheme in SCHEMES
                    ),
                )
    return made


def draw(simulated: Results, live: Results) -> Figure:
    """The same as a picture: shares on the left, retransmissions on the right."""
    cells = SIMULATED["cells"]
    figure = Figure(figsize=(10, 1.6 + 0.5 * len(cells)), layout="constrained")
    shares, losses = figure.subplots(1, 2, sharey=True)
    for offset, scheme in zip((-0.24, 0.0, 0.24), SCHEMES, strict=True):
        way = CONTENDERS[scheme]
        for text, results, filled in (
            ("simulated", simulated, True),
            (f"real Linux, {LIVE['duration_s']} s", live, False),
        ):
            at = [
                (line + offset, *results[cell, scheme])
                for line, cell in enumerate(cells)
                if (cell, scheme) in results
            ]
            for panel, column in ((shares, 1), (losses, 2)):
                if at:
                    panel.plot(
                        [point[column] for point in at],
                        [point[0] for point in at],
                        linestyle="none",
                        marker=way.marker,
                        markersize=8,
                        color=way.colour,
                        markerfacecolor=way.colour if filled else "none",
                        markeredgewidth=1.5,
                        label=f"{way.text}, {text}",
                        clip_on=False,
                        zorder=3,
                    )
    shares.set_yticks(range(len(cells)), [CELLS[cell].text for cell in cells])
    shares.set_ylim(len(cells) - 0.5, -0.5)
    shares.set_xlim(0, 1.02)
    shares.set_xlabel(f"worst {WINDOW_S} s of the worst flow / its fair share")
    losses.set_xscale("symlog", linthresh=10)
    losses.set_xlim(0, 1e5)
    losses.set_xlabel(f"retransmissions of all flows, after {LOSS_FREE_S} s")
    for panel in (shares, losses):
        panel.grid(axis="x", alpha=0.3)
        for line in range(1, len(cells)):
            panel.axhline(line - 0.5, color="0.85", linewidth=0.8)
    figure.legend(*shares.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


def main(out: Path) -> None:
    """Run, print, draw."""
    reason = why_not_live()
    if reason is None:
        sys.stderr.write(
            "simulated first, then between real Linux hosts in namespaces of their own (about 90 s)\n"
        )
    else:
        sys.stderr.write(f"simulated only: {reason}\n")
    simulated = run("sim", SIMULATED, out)
    live = {} if reason is not None else run("live", LIVE, out)
    # A file or a pipe has no width to fit into.
    (Console() if sys.stdout.isatty() else Console(width=120)).print(table(simulated, live))
    draw(simulated, live).savefig(out / "figure.png", dpi=150)
    print(f"{out}/figure.png")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/demo"))
    except TidegateError as error:
        sys.exit(f"tidegate: error: {error}")
