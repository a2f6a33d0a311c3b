"""`make demo`: flows that share a meter, behind a plain one, BC-PQP and the fair one, simulated and, where that can be, between Linux hosts.

All three have the same burst in bytes, BC-PQP for each flow's queue. Writes `sim`, `live` and `figure.png` into a folder (`runs/demo`), and prints both results
beside each other. While it runs, the table fills: on a terminal in place, elsewhere with a line for each case.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidegate import experiments
from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments import Status
from tidegate.files import replacing
from tidegate.lab import kernel
from tidegate.processors import processors
from tidegate.progress import Pace, clock
from tidegate.systems.meter.experiments.contenders import CONTENDERS
from tidegate.systems.meter.experiments.fair_sharing import CELLS, LOSS_FREE_S, SETTLED_S, WINDOW_S

NAME = "meter.fair"
SCHEMES = ("plain-1s", "bcpqp-1s", "fair")
# Not a cell that the fair meter was tuned on: first looked at in the run whose figure the README has.
WHERE = {"target_mbps": 30.0, "base_rtt_ms": 28.0}
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
"""The least part of its share that a flow has in ten seconds from the tenth on; retransmissions of all flows."""


def why_not_live() -> str | None:
    """What keeps the live backend from running here."""
    try:
        kernel.demand_privilege()
    except TidegateError as error:
        return str(error)
    return kernel.missing_program("iperf3")


def run(backend: str, settings: dict[str, Any], out: Path, watch: Callable[[Status], None]) -> Results:
    """What the experiment finds, by cell and contender."""
    one = experiments.find(NAME)
    parameters = {**one.parameters(), **settings}
    answer = experiments.run(
        NAME,
        parameters,
        backend=backend,
        seeds=[1],
        out=out / backend,
        processes=processors(),
        watch=watch,
    )
    for warning in answer["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")
    return results_of(answer["rows"])


def results_of(all_rows: list[Row]) -> Results:
    """The rows of the experiment, by cell and contender."""
    rows: dict[Key, list[Row]] = {}
    for row in all_rows:
        rows.setdefault((row["cell"], row["scheme"]), []).append(row)
    return {
        key: (min(row["worst_10_s"] for row in own), sum(row["retransmits"] or 0 for row in own))
        for key, own in rows.items()
    }


def shown(result: tuple[float, int] | None) -> str:
    """`0.85      0`, or that it is still to come."""
    return "..." if result is None else f"{result[0]:.2f}  {result[1]:6d}"


def _named(cell: str, scheme: str) -> str:
    return f"{CELLS[cell].text} / {CONTENDERS[scheme].text}"


def keys(settings: dict[str, Any]) -> list[Key]:
    """The cells and contenders of a backend, in the order in which they run."""
    return [(cell, scheme) for cell in settings["cells"] for scheme in settings["schemes"]]


def table(simulated: Results, live: Results, *, with_live: bool) -> Table:
    """Both results beside each other; what is still to come has dots."""
    made = Table(
        title="Rate of IP packets (layer 3) in the worst "
        f"{WINDOW_S} s of the worst flow, from the {SETTLED_S}th second on, as a part of its fair share (1: fair, 0: starved); "
        f"retransmissions after {LOSS_FREE_S} s",
        caption=f"{WHERE['target_mbps']:g} Mbit/s of IP, {WHERE['base_rtt_ms']:g} ms; burst: 1.05 s of the rate "
        f"(BC-PQP: each queue); {SIMULATED['duration_s']} s simulated, {LIVE['duration_s']} s live",
    )
    made.add_column("flows in the meter")
    made.add_column("")
    for scheme in SCHEMES:
        made.add_column(CONTENDERS[scheme].text, justify="right")
    backends = [("simulated", SIMULATED, simulated)] + ([("real Linux", LIVE, live)] if with_live else [])
    for cell in SIMULATED["cells"]:
        for text, settings, results in backends:
            if cell in settings["cells"]:
                cells = (
                    shown(results.get((cell, scheme))) if scheme in settings["schemes"] else ""
                    for scheme in SCHEMES
                )
                made.add_row(CELLS[cell].text, text, *cells)
    return made


class Board:
    """Shows what is found and what runs, while it runs: the table on a terminal, a line for each case elsewhere."""

    AGAIN_S = 4.0
    """So long nothing happens before a line says what is still going on."""

    def __init__(
        self, console: Console, *, with_live: bool, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._with_live = with_live
        self._now = now
        self._results: dict[str, Results] = {"sim": {}, "live": {}}
        self._said = now()
        self._line = "starting"
        # Drawn by calls alone: a thread would be in the way of the processes that run the cases.
        self._live = (
            Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None
        )

    def __enter__(self) -> Board:
        if self._live is not None:
            self._live.start()
        self._show()
        return self

    def __exit__(self, *about: object) -> None:
        if self._live is not None:
            self._live.stop()

    def watch(self, backend: str) -> Callable[[Status], None]:
        """What hears of the runs of a backend."""
        pace = Pace(self._now)
        what = "simulated" if backend == "sim" else "real Linux"

        def hear(status: Status) -> None:
            found = results_of([row for run in status.finished for row in run.rows or ()])
            self._results[backend].update(found)
            left = pace.left_s(status.done, status.total)
            done = len(self._results[backend])
            running = " and ".join(_named(*key) for key in self._keys(status))
            soon = "" if left is None else f", about {clock(left)} left"
            now = f"running: {running}" if running else "starting" if done == 0 else "ending"
            self._line = f"{what}: {done} of {status.total} cases done{soon}; {now}"
            for (cell, scheme), result in found.items():
                self._say(f"{what}: {_named(cell, scheme)}: {shown(result)}")
            self._show()

        return hear

    @staticmethod
    def _keys(status: Status) -> list[Key]:
        names = {f"{scheme}-{cell}": (cell, scheme) for cell, scheme in keys(SIMULATED) + keys(LIVE)}
        return [names[name] for name in status.running]

    def _say(self, line: str) -> None:
        if self._live is None:
            self._console.print(line, highlight=False, markup=False, soft_wrap=True)
            self._said = self._now()

    def _show(self) -> None:
        if self._live is not None:
            made = table(self._results["sim"], self._results["live"], with_live=self._with_live)
            self._live.update(Group(made, Text(self._line)), refresh=True)
        elif self._now() - self._said >= self.AGAIN_S:
            self._say(self._line)


def per_10_s(retransmissions: int, settings: dict[str, Any]) -> float:
    """Of a run's retransmissions after its first seconds: runs of different lengths stand on one axis."""
    counted_s: int = settings["duration_s"] - LOSS_FREE_S
    return retransmissions * 10 / counted_s


def draw(simulated: Results, live: Results) -> Figure:
    """The same as a picture: shares on the left, retransmissions on the right."""
    cells = SIMULATED["cells"]
    figure = Figure(figsize=(10, 1.6 + 0.5 * len(cells)), layout="constrained")
    shares, losses = figure.subplots(1, 2, sharey=True)
    for offset, scheme in zip((-0.24, 0.0, 0.24), SCHEMES, strict=True):
        way = CONTENDERS[scheme]
        for text, settings, results, filled in (
            ("simulated", SIMULATED, simulated, True),
            ("real Linux", LIVE, live, False),
        ):
            at = [
                (line + offset, results[cell, scheme][0], per_10_s(results[cell, scheme][1], settings))
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
                        label=f"{way.text}, {text}, {settings['duration_s']} s",
                        clip_on=False,
                        zorder=3,
                    )
    shares.set_yticks(range(len(cells)), [CELLS[cell].text for cell in cells])
    shares.set_ylim(len(cells) - 0.5, -0.5)
    shares.set_xlim(0, 1.02)
    shares.set_xlabel(f"worst {WINDOW_S} s of the worst flow, from the {SETTLED_S}th on / its fair share")
    losses.set_xscale("symlog", linthresh=10)
    losses.set_xlim(0, 1e5)
    losses.set_xlabel(f"retransmissions in 10 s, from the {LOSS_FREE_S}th on")
    for panel in (shares, losses):
        panel.grid(axis="x", alpha=0.3)
        for line in range(1, len(cells)):
            panel.axhline(line - 0.5, color="0.85", linewidth=0.8)
    figure.legend(*shares.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(
        f"Flows that share a meter of {WHERE['target_mbps']:g} Mbit/s of IP at {WHERE['base_rtt_ms']:g} ms, "
        "with a burst of 1.05 s of the rate",
        fontsize="medium",
    )
    return figure


def main(out: Path, *, live: bool = True) -> None:
    """Run, print, draw; between real hosts too, where that can be, unless `live` says no."""
    reason = why_not_live() if live else "--sim"
    if reason is None:
        sys.stderr.write(
            "simulated first, then between real Linux hosts in namespaces of their own (about 90 s)\n"
        )
    else:
        sys.stderr.write(f"simulated only: {reason}\n")
    with_live = reason is None
    with Board(Console(stderr=True), with_live=with_live) as board:
        simulated = run("sim", SIMULATED, out, board.watch("sim"))
        measured = run("live", LIVE, out, board.watch("live")) if with_live else {}
    # A file or a pipe has no width to fit into.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(table(simulated, measured, with_live=with_live))
    drawn = draw(simulated, measured)
    with replacing(out / "figure.png") as file:
        drawn.savefig(file, dpi=150)
    print(f"{out}/figure.png")
