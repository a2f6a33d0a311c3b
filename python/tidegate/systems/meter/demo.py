"""`make demo`: TCP through a plain meter, the paper's and the friendly one, simulated and, where that can be, between real Linux hosts.

Writes `sim`, `live` and `figure.png` into a folder (`runs/demo`), and prints both results beside each other.
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
from tidegate.claims import Row, percent
from tidegate.lab import kernel
from tidegate.systems.meter.experiments.testbed import SCHEMES

NAME = "meter.rates"
RATES = (100, 200, 400, 800)
SIMULATED: dict[str, Any] = {
    "rates_mbps": RATES,
    "base_rtts_ms": (0.012, 0.1, 1.0),
    "schemes": ("plain", "paper", "friendly"),
    "duration_s": 40,
}
# In real time, so shorter: at the RTT where the plain meter does worst.
LIVE: dict[str, Any] = {
    "rates_mbps": RATES,
    "base_rtts_ms": (0.012,),
    "schemes": ("plain", "friendly"),
    "duration_s": 10,
}
Key = tuple[float, str, int]
"""Base RTT, scheme, target."""


def why_not_live() -> str | None:
    """What keeps the live backend from running here."""
    try:
        kernel.demand_privilege()
    except TidegateError as error:
        return str(error)
    return kernel.missing_program("iperf3")


def run(backend: str, settings: dict[str, Any], out: Path) -> dict[Key, Row]:
    """The rows of the experiment, by base RTT, scheme and target."""
    one = experiments.find(NAME)
    parameters = {**one.parameters(), **settings}
    answer = experiments.run(
        NAME, parameters, backend=backend, seeds=[1], out=out / backend, processes=os.cpu_count() or 1
    )
    for warning in answer["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")
    return {(row["base_rtt_ms"], row["scheme"], row["target_mbps"]): row for row in answer["rows"]}


def table(simulated: dict[Key, Row], live: dict[Key, Row]) -> Table:
    """Relative errors beside each other."""
    made = Table(
        title="Achieved rate relative to the committed rate, in IP bytes, first second included",
        caption=f"The account of the friendly meter holds 0.4 s of its rate at the start: +1 % over {SIMULATED['duration_s']} s, +4 % over {LIVE['duration_s']} s.",
    )
    for name in ("base RTT (ms)", "meter", "", *(f"{rate} Mbit/s" for rate in RATES)):
        made.add_column(name, justify="right" if name.endswith("/s") else "left")
    for rtt in SIMULATED["base_rtts_ms"]:
        for scheme in SIMULATED["schemes"]:
            for text, rows in (("simulated", simulated), ("real Linux", live)):
                errors = [rows.get((rtt, scheme, rate)) for rate in RATES]
                if any(errors):
                    made.add_row(
                        f"{rtt:g}",
                        SCHEMES[scheme].text,
                        text,
                        *("" if row is None else percent(row["relative_error"]) for row in errors),
                    )
    return made


def draw(simulated: dict[Key, Row], live: dict[Key, Row]) -> Figure:
    """The same as a picture, one panel for each base RTT."""
    rtts = SIMULATED["base_rtts_ms"]
    figure = Figure(figsize=(3.6 * len(rtts), 3.6), layout="constrained")
    panels = figure.subplots(1, len(rtts), sharey=True)
    for panel, rtt in zip(panels, rtts, strict=True):
        panel.axhline(0, color="0.7", linewidth=1)
        for scheme in SIMULATED["schemes"]:
            way = SCHEMES[scheme]
            for text, rows, line, fill in (
                ("simulated", simulated, "--", "none"),
                ("real Linux", live, "-", None),
            ):
                points = [(rate, rows[rtt, scheme, rate]) for rate in RATES if (rtt, scheme, rate) in rows]
                if points:
                    panel.plot(
                        [rate for rate, _ in points],
                        [100 * row["relative_error"] for _, row in points],
                        linestyle=line,
                        marker=way.marker,
                        color=way.colour,
                        markerfacecolor=way.colour if fill is None else fill,
                        label=f"{way.text}, {text}",
                    )
        panel.set_title(f"base RTT {rtt:g} ms")
        panel.set_xlabel("committed rate (Mbit/s)")
        panel.set_xticks(RATES)
    panels[0].set_ylabel("relative error of the rate (%)")
    panels[0].set_ylim(-105, 10)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
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
