"""Ten thousand simultaneous flows, each with its own meter, and one controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Plan, Run, experiment
from tidegate.measures import Floats
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.controller import FRAME_BYTES, Meter
from tidegate.systems.meter.experiments.testbed import SCHEMES, SETTLED_S, Ours, star

SECOND = units.PS_PER_S


class Spread(Controller):
    """Records quantiles of the meters' errors from the 10th second on, in place of ten thousand histories."""

    period = "1 s"
    SHARES = (0.01, 0.05, 0.5, 0.95, 0.99)

    def __init__(self, target_bps: int, meters: int) -> None:
        self._target = target_bps
        self._meters = meters

    def start(self, switch: SwitchApi) -> None:
        """Forget the counts of an earlier run."""
        self._from: tuple[int, Floats] | None = None

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Record the quantiles."""
        counts = switch.counter_read("passed", 0, self._meters).astype(np.float64)
        ip_bytes = counts[:, 1] - FRAME_BYTES * counts[:, 0]
        if self._from is None:
            if now >= SETTLED_S * SECOND:
                self._from = now, ip_bytes
            return
        then, before = self._from
        errors = (ip_bytes - before) * 8 / ((now - then) / SECOND) / self._target - 1
        for share, error in zip(self.SHARES, np.quantile(errors, self.SHARES), strict=True):
            switch.note(f"error_p{round(100 * share)}", float(error))
        switch.note("within_5_percent", float((np.abs(errors) <= 0.05).mean()))


@experiment("meter.scale", quick={"meters": 1000, "duration_s": 30}, also="meter.many_meters")
def scale(
    meters: Annotated[int, AtLeast(1, 65_536)] = 10_000,
    target_mbps: int = 1,
    base_rtts_ms: tuple[float, ...] = (1.0, 10.0),
    schemes: Ours = ("plain", "fair"),
    duration_s: Annotated[int, AtLeast(SETTLED_S + 1)] = 40,
) -> Plan:
    """Ten thousand simultaneous flows, each with its own meter, and one controller."""

    def measure(scheme: str, rtt: float) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            noted = {
                name: float(result.notes.filter(result.notes["quantity"] == name)["value"][-1])
                for name in (*(f"error_p{round(100 * share)}" for share in Spread.SHARES), "within_5_percent")
            }
            return {
                "scheme": scheme,
                "base_rtt_ms": rtt,
                "target_mbps": target_mbps,
                "meters": meters,
                "goodput_mbps": float(result.flows["goodput_mbps"].sum()),
                **noted,
                "timeouts": int(result.flows["timeouts"].sum()),
            }

        return row

    def case(scheme: str, rtt: float) -> Case:
        lab = star(
            rtt,
            link_rate=f"{max(10, 4 * meters * target_mbps // 1000)} Gbit/s",
            data_plane=SCHEMES[scheme].data_plane,
        )
        net, (a, b) = lab.network, lab.hosts
        flows = [net.tcp(a, b, ecn="on", start=i * SECOND // meters) for i in range(meters)]
        asked = [Meter(n, target_mbps * 1_000_000, (net.five_tuple(flow),)) for n, flow in enumerate(flows)]
        lab.attach(asked, scheme)
        net.control(Spread(target_mbps * 1_000_000, meters))
        return Case(f"{scheme}-{rtt:g}ms", net, f"{duration_s} s", measure(scheme, rtt))

    def claims(rows: list[Row]) -> list[Claim]:
        ours = [row for row in rows if row["scheme"] == "fair"]
        got = medians(ours, "within_5_percent", lambda row: f"{row['base_rtt_ms']:g} ms")
        return [
            between(
                "most",
                "ours",
                "fair meter: at least 95 % of the flows within 5 %, from the 10th second on",
                got,
                0.95,
                why="not explained",
                form=Percents(),
            )
        ]

    def draw(runs: list[Run]) -> Figure:
        rows = [row for row in all_rows(runs) if row["seed"] == runs[0].seed]
        figure = Figure(figsize=(7, 1.5 + 0.7 * len(rows)), layout="constrained")
        panel = figure.subplots()
        for place, row in enumerate(rows):
            colour = SCHEMES[row["scheme"]].colour
            p1, p5, p50, p95, p99 = (100 * row[f"error_p{p}"] for p in (1, 5, 50, 95, 99))
            panel.plot([p1, p99], [place, place], color=colour, linewidth=1)
            panel.plot([p5, p95], [place, place], color=colour, linewidth=5)
            panel.plot([p50], [place], "o", color="black", markersize=4)
        names = [f"{SCHEMES[row['scheme']].text}, {row['base_rtt_ms']:g} ms" for row in rows]
        panel.set_yticks(range(len(rows)), names)
        panel.axvline(0, linestyle=":", color="0.4")
        panel.set(
            xlabel="relative error of a flow (%): dot p50, thick p5 to p95, thin p1 to p99",
            ylim=(-0.6, len(rows) - 0.4),
        )
        panel.grid(axis="x", alpha=0.3)
        figure.suptitle(f"{meters} flows with a meter of {target_mbps} Mbit/s each")
        return figure

    return Plan([case(scheme, rtt) for rtt in base_rtts_ms for scheme in schemes], claims, draw)
