"""Phases of growing load: 1-1, 2-2, 10-10 and 25-25 flows of CUBIC and Prague (Figs. 4 and 5 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import Case, Plan, Run, experiment
from tidegate.papers import of_run
from tidegate.plots import colour
from tidegate.results import Result
from tidegate.systems.aqm.claims import CLAIMS
from tidegate.systems.aqm.controller import FRAMING
from tidegate.systems.aqm.experiments.judging import (
    l4s_delay_claims,
    late,
    of,
    steady_claims,
    target_ms,
    where,
)
from tidegate.systems.aqm.experiments.measuring import QueueNotes, begun, expected_p, windows
from tidegate.systems.aqm.experiments.testbed import (
    HEADERS,
    WAYS,
    Bottleneck,
    Managed,
    bottleneck,
    classic_flows,
    l4s_flows,
)

TABLE = (
    "case",
    "control",
    "flows",
    "goodput_mbps",
    "error_mean",
    "delay_ms_mean",
    "delay_ms_p99",
    "p_mean",
    "utilisation",
)
COLOURS = {control: colour(control) for control in ("cubic", "prague")}
PHASES = (1, 2, 10, 25)


def phased(way: str, capacity_mbps: int, base_rtt_ms: float, phase_s: int, mtu: int = 1500) -> Bottleneck:
    """In each phase new flows come, of both kinds."""
    lab = bottleneck(way, capacity_mbps, base_rtt_ms, mtu=mtu)
    there = 0
    for phase, number in enumerate(PHASES):
        classic_flows(lab, number - there, phase * phase_s)
        l4s_flows(lab, number - there, phase * phase_s)
        there = number
    lab.network.record("250 ms", queues=[lab.link])
    return lab


def _phase_rows(lab: Bottleneck, about: Row, phase_s: int) -> Callable[[Result], list[Row]]:
    def measure(result: Result) -> list[Row]:
        rows = []
        for phase, number in enumerate(PHASES):
            begin, end = phase * phase_s, (phase + 1) * phase_s
            here = {**about, "phase": phase, "classic": number, "l4s": number}
            flows = begun(lab, begin + phase_s / 3)
            rows += windows(result, lab, here, begin, end, phase_s / 3, flows)
        return rows

    return measure


@experiment(
    "aqm.phases",
    (*TABLE[:1], "phase", "window", *TABLE[1:]),
    backends=("sim", "live"),
    quick={"phase_s": 9},
    live={"phase_s": 30},
    live_quick={"phase_s": 9},
)
def phases(
    ways: Managed = ("pi2", "dualpi2"),
    capacities_mbps: tuple[int, ...] = (120, 1000),
    base_rtts_ms: tuple[float, ...] = (10.0, 50.0),
    phase_s: int = 120,
    mtu: int = 1500,
) -> Plan:
    """1-1, 2-2, 10-10 and 25-25 flows of CUBIC and Prague, in successive phases (Figs. 4 and 5).

    The rows of a phase are of all of it, as in the paper, and without its first third.
    """
    parameters = {"phase_s": phase_s, "mtu": mtu}
    cases = []
    for way in ways:
        for capacity in capacities_mbps:
            for rtt in base_rtts_ms:
                lab = phased(way, capacity, rtt, phase_s, mtu)
                about = {"capacity_mbps": capacity, "base_rtt_ms": rtt}
                name = f"{way}-{capacity}-{rtt:g}ms"
                cases.append(Case(name, lab.network, f"{4 * phase_s} s", _phase_rows(lab, about, phase_s)))

    def claims(rows: list[Row]) -> list[Claim]:
        ours = [[row for row in late(rows) if row["way"] == way] for way in ways]
        return [
            *(claim for way, own in zip(ways, ours, strict=True) for claim in _phase_claims(own, way, mtu)),
            *of_run(CLAIMS, "aqm.phases", rows, parameters),
        ]

    def draw(runs: list[Run]) -> Figure:
        return _draw_phases(runs, ways, capacities_mbps, base_rtts_ms, phase_s, mtu)

    return Plan(cases, claims, draw)


def _phase_claims(rows: list[Row], way: str, mtu: int) -> list[Claim]:
    text = WAYS[way].text
    classic = of(rows, "cubic")
    many = [row for row in classic if row["classic"] + row["l4s"] >= 10]
    out = [
        *steady_claims(rows, way),
        between(
            f"{way}-fair",
            "ours",
            f"{text}: with 10-10 and 25-25 flows a CUBIC flow has from 0.5 to 1.5 of a fair share",
            {name: 1 + value for name, value in medians(many, "error_mean", where).items()},
            0.5,
            1.5,
            why="at 1 Gbit/s and 50 ms flows that come late take longer than a phase to reach their share",
        ),
    ]
    if WAYS[way].queues == 2:
        out += l4s_delay_claims(rows, way)
    else:
        out += _law_claims(classic, way, mtu)
    return out


def _law_claims(classic: list[Row], way: str, mtu: int) -> list[Claim]:
    many: dict[str, float] = {}
    few: dict[str, float] = {}
    delays_ms = medians(classic, "delay_ms_mean", where)
    for name, p in medians(classic, "p_mean", where).items():
        row = next(row for row in classic if where(row) == name)
        rtt = row["base_rtt_ms"] + delays_ms[name]
        ratio = p / expected_p(
            row["capacity_mbps"], rtt, rtt, row["classic"], row["l4s"], 8 * (mtu + FRAMING)
        )
        (many if row["classic"] >= 10 else few)[name] = ratio
    statement = f"{WAYS[way].text}: p' over what the window laws of CUBIC and Prague give, from 0.75 to 1.33"
    why = "the laws hold in the steady state, which these flows have not reached within a phase"
    return [
        between(f"{way}-law", "ours", f"{statement}, 10-10 and 25-25 flows", many, 0.75, 1.33, why=why),
        between(
            f"{way}-law-few",
            "ours",
            f"{statement}, 1-1 and 2-2 flows (at 1 Gbit/s a sawtooth is longer than a phase)",
            few,
            0.75,
            1.33,
            why=why,
        ),
    ]


def _draw_phases(
    runs: list[Run],
    ways: Sequence[str],
    capacities: Sequence[int],
    rtts: Sequence[float],
    phase_s: int,
    mtu: int,
) -> Figure:
    places = [(capacity, rtt) for capacity in capacities for rtt in rtts]
    # At one position: the queues are shown next to each other.
    down, across = (1, len(ways)) if len(places) == 1 else (len(ways), len(places))
    figure = Figure(figsize=(1 + 3.9 * across, 0.8 + 7.2 * down), layout="constrained")
    panels = figure.subplots(3 * down, across, squeeze=False)
    first = {run.case: run for run in reversed(runs)}
    for group, way in enumerate(ways):
        for place, (capacity, rtt) in enumerate(places):
            run = first[f"{way}-{capacity}-{rtt:g}ms"]
            row, column = (0, group) if len(places) == 1 else (group, place)
            upper, middle, lower = (panels[3 * row + line][column] for line in range(3))
            _goodput_panel(upper, run, capacity, phase_s, mtu)
            p = run.tables["notes"].filter(pl.col("quantity").str.starts_with("p_"))
            middle.plot(p["time_s"], 100 * p["value"], color="0.4", linewidth=0.5)
            middle.set(ylim=(0, None), xlim=(0, 4 * phase_s), xlabel="time (s)")
            _delay_panel(lower, run, way, phase_s)
            upper.set_title(f"{WAYS[way].text}, {capacity} Mbit/s, {rtt:g} ms", fontsize="small")
            if column == 0:
                upper.set_ylabel("goodput of a flow (Mbit/s)")
                middle.set_ylabel("p' (%)")
                lower.set_ylabel("share of packets (CDF)")
            for panel in (upper, middle, lower):
                panel.grid(alpha=0.3)
    panels[0][0].legend(fontsize="x-small", loc="upper right")
    # Their lines are the ways' own.
    for row in range(down):
        for panel in panels[3 * row + 2][-1:] if down > 1 else panels[2]:
            panel.legend(fontsize="x-small", loc="lower right")
    return figure


def _goodput_panel(panel: Axes, run: Run, capacity: int, phase_s: int, mtu: int) -> None:
    labels = run.tables["flows"].select("flow", "label").sort("flow")["label"].to_list()
    named = set()
    for (flow,), samples in run.tables["flow_samples"].partition_by("flow", as_dict=True).items():
        time, received = samples["time_s"].to_numpy(), samples["bytes_received"].to_numpy()
        # Over a second each.
        steps = max(1, round(1 / (time[1] - time[0]))) if len(time) > 1 else 1
        if len(time) <= steps:
            continue
        rate = (received[steps:] - received[:-steps]) * 8e-6 / (time[steps:] - time[:-steps])
        control = labels[int(str(flow))].split()[0]
        name = None if control in named else {"cubic": "CUBIC", "prague": "Prague"}[control]
        named.add(control)
        panel.plot(time[steps:], rate, color=COLOURS[control], linewidth=0.6, alpha=0.6, label=name)
    for phase, number in enumerate(PHASES):
        fair = capacity * (mtu - HEADERS) / (mtu + FRAMING) / (2 * number)
        label = None if phase else "fair share"
        panel.plot(
            [phase * phase_s, (phase + 1) * phase_s], [fair, fair], color="black", linestyle=":", label=label
        )
    panel.set(yscale="log", ylim=(capacity / 1000, capacity * 1.2), xlim=(0, 4 * phase_s), xlabel="time (s)")


def _delay_panel(panel: Axes, run: Run, way: str, phase_s: int) -> None:
    queues = WAYS[way].queues
    noted = QueueNotes(run.tables["notes"])
    for phase, number in enumerate(PHASES):
        for queue in range(queues):
            delays = noted.delays(queue, phase * phase_s, (phase + 1) * phase_s)
            share = np.concatenate(([0.0], delays.shares.cumsum()))
            style = "--" if queue == 1 else "-"
            name = f"{number}-{number}" + ("" if queues == 1 else ", L" if queue == 1 else ", C")
            panel.plot(delays.edges_ms, share, color=f"C{phase + 2}", linestyle=style, label=name)
    panel.axvline(target_ms(way), color="0.6", linestyle=":")
    # The curves of L would be hidden by the axis at 0.
    panel.set(xlim=(-1, 50), ylim=(0, 1.02), xlabel="queue delay (ms)")
