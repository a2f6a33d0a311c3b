"""Long transfers over a fast and long path, as between data transfer nodes of Science DMZs.

Eight hosts send to one through a link of 100 Gbit/s, with frames of 9000 bytes and a round trip of 50 ms. They start within a tenth
of a second. After a third of the time four of the flows are done; after two thirds the same hosts start four others. `manual` is what
ESnet advises (fasterdata.es.net, on packet pacing): hosts pace each flow at a rate that somebody has chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, Unit, between, medians, most
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows, of_first_seed
from tidegate.results import Result, jain
from tidegate.systems.pacing.claims import judged
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.join import ByHand, goodput, variation
from tidegate.systems.pacing.setup import paced, pacing

LEAVING = 4
STAYING = 4
FLOWS = STAYING + LEAVING
ACTIVE: tuple[Sequence[int], ...] = (
    range(FLOWS),
    range(STAYING),
    [*range(STAYING), *range(FLOWS, FLOWS + LEAVING)],
)
"""The flows of each phase."""
START_S = 0.1
SETTLING_S = 1.0
PHASE_S = 20.0
MAIN_PERCENT = 1.0
ENOUGH = 0.98
NEAR = 0.02
SAMPLE_MS = 10
WINDOW_S = 0.1
"""Shares are those of so long: of two round trips."""
HEADERS = 52
"""Of IP, TCP and its timestamps."""
FRAMING = 14
SCHEMES = {
    "fq": "paced by the switch",
    "cubic": "CUBIC",
    "bbr": "BBR v1",
    "bbr3": "BBR v3",
    "manual": "set by hand for 8 flows",
    "manual-4": "set by hand for 4 flows",
}


@dataclass(frozen=True)
class Setting:
    """A path, and how long each phase is."""

    rate_gbps: float
    rtt_ms: float
    mtu: int
    buffer_percent: float
    """Of a bandwidth-delay product."""
    phase_s: float

    @property
    def payload(self) -> float:
        """Of a full frame."""
        return (self.mtu - HEADERS) / (self.mtu + FRAMING)

    @property
    def limit_mbps(self) -> float:
        """Goodput that the frames' headers leave."""
        return 1e3 * self.rate_gbps * self.payload

    @property
    def bdp_bytes(self) -> float:
        """Bandwidth-delay product."""
        return 1e9 * self.rate_gbps * self.rtt_ms * 1e-3 / 8

    @property
    def buffer_packets(self) -> int:
        """Of the bottleneck: full frames, at least two."""
        return max(round(self.bdp_bytes * self.buffer_percent / 100 / (self.mtu + FRAMING)), 2)


def _network(setting: Setting, scheme: str, seed: int) -> Network:
    network = Network()
    switch = pacing(network, "switch") if scheme == "fq" else network.router("switch")
    server = network.host("server")
    rate = round(1e9 * setting.rate_gbps)
    bottleneck = network.link(
        switch,
        server,
        rate=rate,
        delay=round(setting.rtt_ms * 1e9 / 2 - 10e6),
        queue=f"{setting.buffer_packets} packets",
        mtu=setting.mtu,
    )
    hosts = []
    for number in range(FLOWS):
        hosts.append(network.host(f"host{number + 1}"))
        network.link(hosts[-1], switch, rate=rate, delay="10 us", queue="100000 packets", mtu=setting.mtu)
        if scheme == "fq":
            paced(network, hosts[-1], mtu=setting.mtu)
        elif scheme.startswith("manual"):
            sharing = STAYING if scheme == "manual-4" else FLOWS
            network.agent(hosts[-1], ByHand(round(rate * (1 - RESERVE) / sharing * setting.payload)))
    draw = np.random.default_rng(seed)
    for number in range(FLOWS + LEAVING):
        begin = 2 * setting.phase_s if number >= FLOWS else 0.0
        end = setting.phase_s if STAYING <= number < FLOWS else None
        network.tcp(
            hosts[number if number < FLOWS else number - LEAVING],
            server,
            congestion_control=scheme if scheme in ("bbr", "bbr3") else "cubic",
            start=round((begin + START_S * float(draw.random())) * 1e12),
            stop=None if end is None else round(end * 1e12),
            mss=setting.mtu - 40,
            receive_buffer_max=round(4 * setting.bdp_bytes),
        )
    network.record(f"{SAMPLE_MS} ms", queues=[bottleneck])
    return network


def _rates(
    result: Result, flows: Sequence[int], end_s: float, begin_s: float, step_s: float
) -> npt.NDArray[np.float64]:
    """Goodput in Mbit/s by flow and interval."""
    edges = np.linspace(begin_s, end_s, round((end_s - begin_s) / step_s) + 1, dtype=np.float64)
    return np.array([goodput(result.flow_samples, flow, edges) for flow in flows])


def fair_after_s(rates: npt.NDArray[np.float64], fair: float) -> float | None:
    """How long until all flows stay within 2 % of a rate, for a second at least; rates by flow and window. None: they do not."""
    off = np.flatnonzero((np.abs(rates / fair - 1) > NEAR).any(axis=0))
    first = 0 if len(off) == 0 else int(off[-1]) + 1
    return first * WINDOW_S if (rates.shape[1] - first) * WINDOW_S >= 1 else None


def _count(samples: pl.DataFrame, column: str, begin_s: float, end_s: float) -> int:
    """What a counter grows by between two times."""
    until = [samples.filter(pl.col("time_s") <= time + 1e-9)[column] for time in (begin_s, end_s)]
    first, last = (int(values[-1]) if len(values) else 0 for values in until)
    return last - first


def _rows(setting: Setting, about: Row, result: Result) -> list[Row]:
    """A row for each phase. What is `late` is without the first second."""
    rows = []
    queue = result.queue_samples.filter(pl.col("queue") == "switch -> server").sort("time_s")
    for phase, flows in enumerate(ACTIVE):
        begin, end = phase * setting.phase_s, (phase + 1) * setting.phase_s
        late = begin + SETTLING_S

        measured = partial(_rates, result, flows, end)
        fair = setting.limit_mbps / len(flows)
        later = measured(late, WINDOW_S)
        short = measured(late, SAMPLE_MS / 1e3)
        waits = queue.filter((pl.col("time_s") > late) & (pl.col("time_s") <= end))["queue_delay_ms"]
        rows.append(
            {
                **about,
                "phase": phase + 1,
                "flows": len(flows),
                "of_limit": float(measured(begin, WINDOW_S).sum(axis=0).mean() / setting.limit_mbps),
                "of_limit_late": float(later.sum(axis=0).mean() / setting.limit_mbps),
                "fair_after_s": fair_after_s(measured(begin, WINDOW_S), fair),
                "jain_late": jain(pl.Series(later.mean(axis=1))),
                "cv_10ms_percent": float(np.median([variation(own) for own in short])),
                "dropped": _count(queue, "dropped", begin, end),
                "dropped_late": _count(queue, "dropped", late, end),
                "queue_ms_p99": float(np.quantile(waits.to_numpy(), 0.99)),
                "queue_ms_max": float(np.max(waits.to_numpy())),
            }
        )
    return rows


@experiment(
    "pacing.dmz",
    (
        "scheme",
        "buffer_percent",
        "phase_s",
        "phase",
        "flows",
        "of_limit",
        "of_limit_late",
        "fair_after_s",
        "dropped_late",
        "queue_ms_p99",
    ),
    quick={
        "rate_gbps": 10.0,
        "schemes": ("fq", "cubic", "manual"),
        "buffers_percent": (1.0,),
        "phase_s": 4.0,
        "sweep_phase_s": 4.0,
    },
)
def dmz(
    rate_gbps: Annotated[float, AtLeast(1.0, 400.0)] = 100.0,
    rtt_ms: Annotated[float, AtLeast(1.0, 500.0)] = 50.0,
    mtu: Annotated[int, AtLeast(576, 9216)] = 9000,
    schemes: Annotated[tuple[str, ...], OneOf(SCHEMES)] = tuple(SCHEMES),
    buffers_percent: Annotated[tuple[float, ...], AtLeast(0.01, 1000.0)] = (0.1, 1.0, 10.0, 100.0),
    phase_s: Annotated[float, AtLeast(3.0)] = PHASE_S,
    sweep_phase_s: Annotated[float, AtLeast(3.0)] = 4.0,
) -> Plan:
    """Eight flows of 100 Gbit/s and 50 ms, of which four leave and four join: throughput, loss, shares, and the buffer it takes.

    With a buffer of 1 % of a bandwidth-delay product phases take `phase_s`, with the others `sweep_phase_s`: rows say which.
    `--quick` has 10 Gbit/s, where bursts of a host are ten times longer.
    """
    cases = []
    for scheme in schemes:
        for percent in sorted({MAIN_PERCENT, *buffers_percent}):
            seconds = phase_s if percent == MAIN_PERCENT else sweep_phase_s
            setting = Setting(rate_gbps, rtt_ms, mtu, percent, seconds)
            about: Row = {
                "scheme": scheme,
                "rate_gbps": rate_gbps,
                "buffer_percent": percent,
                "buffer_packets": setting.buffer_packets,
                "phase_s": seconds,
            }
            cases.append(
                Case(
                    f"{scheme}-{percent:g}",
                    partial(_network, setting, scheme),
                    f"{round(1000 * len(ACTIVE) * seconds)} ms",
                    partial(_rows, setting, about),
                )
            )
    return Plan(cases, _claims, partial(_draw, rtt_ms))


def buffer_needed(rows: Iterable[Row], scheme: str) -> float | None:
    """The smallest buffer from which on all phases have 98 %, in percent of a bandwidth-delay product. None: not even the largest."""
    own = [row for row in rows if row["scheme"] == scheme]
    least = None
    for percent in sorted({float(row["buffer_percent"]) for row in own}, reverse=True):
        if min(row["of_limit_late"] for row in own if row["buffer_percent"] == percent) < ENOUGH:
            break
        least = percent
    return least


def _claims(rows: list[Row]) -> list[Claim]:
    mine = [row for row in rows if row["scheme"] == "fq" and row["buffer_percent"] == MAIN_PERCENT]

    def label(row: Row) -> str:
        return f"phase {row['phase']}"

    def settled_s(row: Row) -> float:
        return float(row["phase_s"] if row["fair_after_s"] is None else row["fair_after_s"])

    def of(column: str, phases: Iterable[int] = (1, 2, 3)) -> dict[str, float]:
        return medians((row for row in mine if row["phase"] in phases), column, label)

    claims = [
        between(
            "limit",
            "ours",
            "Paced flows have at least 98 % of the limit after the first second of each phase, with a buffer of 1 % of a BDP",
            of("of_limit_late"),
            ENOUGH,
            form=Percents(),
            why="see the phases named",
        ),
        between(
            "loss",
            "ours",
            "None of their packets is lost at the bottleneck after the first second of the run",
            most((row for row in mine if row["phase"] == 1), "dropped_late", label)
            | most((row for row in mine if row["phase"] > 1), "dropped", label),
            high=0,
            why="bursts of several hosts meet",
        ),
        between(
            "fair",
            "ours",
            "All of them stay within 2 % of the fair share from the first second of each phase on",
            most(mine, settled_s, label),
            high=SETTLING_S,
            why="see the phases named",
            form=Unit("s"),
        ),
    ]
    # What newcomers' slow start costs is a part of a phase.
    if mine and mine[0]["phase_s"] >= PHASE_S:
        claims.append(
            between(
                "changes",
                "ours",
                "With the first seconds after flows have left and joined, too, they have at least 98 % of it",
                of("of_limit", (2, 3)),
                ENOUGH,
                form=Percents(),
                why="a newcomer's slow start takes some round trips before it sends at its rate",
            )
        )
    return claims + judged(rows, "pacing.dmz")


def _draw(rtt_ms: float, runs: list[Run]) -> Figure:
    """Goodput over time of each scheme; throughput over buffers, and time to fair shares."""
    first = [run for run in of_first_seed(runs) if run.rows and run.rows[0]["buffer_percent"] == MAIN_PERCENT]
    columns = min(len(first), 3)
    lines = -(-len(first) // columns)
    figure = Figure(figsize=(max(4.2 * columns, 8), 3.0 * lines + 3.6), layout="constrained")
    grid = figure.add_gridspec(lines + 1, 2 * 3, height_ratios=[3.0] * lines + [3.6])
    width = 6 // columns
    panels = [
        figure.add_subplot(
            grid[number // columns, width * (number % columns) : width * (number % columns + 1)]
        )
        for number in range(len(first))
    ]
    for panel, run in zip(panels, first, strict=True):
        _draw_time(panel, run)
    panels[0].legend(fontsize="x-small", loc="center right")
    _draw_buffers(figure.add_subplot(grid[lines, :3]), all_rows(runs))
    _draw_shares(figure.add_subplot(grid[lines, 3:]), all_rows(runs), rtt_ms)
    return figure


def _draw_time(panel: Axes, run: Run) -> None:
    assert run.rows
    about = run.rows[0]
    edges = np.arange(0.0, len(ACTIVE) * about["phase_s"] + 1e-9, 2 * WINDOW_S)
    total = np.zeros(len(edges) - 1)
    for flow in range(FLOWS + LEAVING):
        rates = goodput(run.tables["flow_samples"], flow, edges) / 1e3
        total += rates
        label = "a flow each" if flow == 0 else None
        panel.plot(edges[1:], np.where(rates > 0, rates, np.nan), linewidth=0.7, label=label)
    panel.plot(edges[1:], total, color="black", linewidth=0.9, label="all flows")
    panel.set(title=SCHEMES[about["scheme"]], xlabel="time (s)", ylabel="goodput (Gbit/s)")
    panel.set(xlim=(0, edges[-1]), ylim=(0, 1.05 * about["rate_gbps"]))
    panel.grid(alpha=0.3)


def _draw_buffers(panel: Axes, rows: list[Row]) -> None:
    """The worst phase."""
    for scheme in dict.fromkeys(str(row["scheme"]) for row in rows):
        own = [row for row in rows if row["scheme"] == scheme]
        sizes = sorted({float(row["buffer_percent"]) for row in own})
        least = [min(row["of_limit_late"] for row in own if row["buffer_percent"] == size) for size in sizes]
        needed = buffer_needed(rows, scheme)
        enough = "with none" if needed is None else f"from {needed:g} %"
        panel.plot(sizes, least, "-o", markersize=4, label=f"{SCHEMES[scheme]} ({ENOUGH:.0%}: {enough})")
    panel.axhline(ENOUGH, color="0.6", linewidth=0.8, linestyle=":")
    lengths = [f"{seconds:g}" for seconds in sorted({float(row["phase_s"]) for row in rows})]
    panel.set(
        xlabel=f"buffer (% of a BDP); phases of {' and '.join(lengths)} s",
        ylabel="least part of the limit, after 1 s",
        xscale="log",
        ylim=(0, 1.03),
    )
    panel.legend(fontsize="x-small")
    panel.grid(alpha=0.3)


def _draw_shares(panel: Axes, rows: list[Row], rtt_ms: float) -> None:
    """How long until shares are fair; at the top: never."""
    main = [row for row in rows if row["buffer_percent"] == MAIN_PERCENT]
    schemes = list(dict.fromkeys(str(row["scheme"]) for row in main))
    end = max(float(row["phase_s"]) for row in main)
    for phase in range(1, len(ACTIVE) + 1):
        own = [row for row in main if row["phase"] == phase]
        values = [end if row["fair_after_s"] is None else row["fair_after_s"] for row in own]
        places = [schemes.index(row["scheme"]) + 0.2 * (phase - 2) for row in own]
        panel.plot(places, values, "o", markersize=5, label=f"phase {phase}: {len(ACTIVE[phase - 1])} flows")
    panel.axhline(end, color="0.6", linewidth=0.8, linestyle=":")
    inside = panel.get_yaxis_transform()
    panel.text(0.01, 1.03 * end, "not within the phase", va="bottom", fontsize="x-small", transform=inside)
    panel.set_xticks(
        range(len(schemes)), [SCHEMES[name] for name in schemes], rotation=20, ha="right", fontsize="x-small"
    )
    panel.set(ylabel=f"fair shares after (s), {rtt_ms:g} ms", ylim=(0, 1.1 * end))
    panel.legend(fontsize="x-small")
    panel.grid(alpha=0.3)
