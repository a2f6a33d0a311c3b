"""Overload by unresponsive traffic: its share of the link, the share of responsive flows, and the queueing delays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.plots import all_rows, colour, log_scale, whiskers
from tidegate.results import Result
from tidegate.specs import UdpSpec
from tidegate.systems.aqm.experiments.judging import target_ms
from tidegate.systems.aqm.experiments.measuring import QueueNotes, rows_of
from tidegate.systems.aqm.experiments.testbed import (
    WAYS,
    Bottleneck,
    Managed,
    bottleneck,
    classic_flows,
    l4s_flows,
)
from tidegate.systems.aqm.tofino import TofinoAqm

WHY_FULL = "the paper's form drops no L packets, and p' goes by C alone: unresponsive ECT(1) datagrams fill the buffer of L"
SENT = {"not-ect": "datagrams not-ECT", "ect0": "datagrams ECT(0)", "ect1": "datagrams ECT(1)"}


def overloaded(way: str, capacity_mbps: int, load: float, ecn: str, flows: int) -> Bottleneck:
    """Flows of both kinds from the start; datagrams that respond to nothing from the third second on."""
    lab = bottleneck(way, capacity_mbps, 10.0)
    classic_flows(lab, flows)
    l4s_flows(lab, flows)
    rate = round(load * capacity_mbps * 1e6 * 1500 / 1514)
    lab.network.udp(lab.source, lab.sink, rate=rate, start="3 s", pattern="poisson", ecn=ecn)
    lab.network.record("500 ms", queues=[lab.link])
    return lab


def _overload_row(lab: Bottleneck, about: Row, flows: int, duration_s: int, result: Result) -> Row:
    begin = 3 + (duration_s - 3) / 3
    tcp = set(range(2 * flows))
    cubic, prague = rows_of(result, lab, {}, begin, duration_s, flows=tcp)
    udp = result.flows.row(2 * flows, named=True)
    noted = QueueNotes(result.notes)
    delays = [noted.delays(queue, begin, duration_s) for queue in (0, 1)]
    spec = lab.network.flows[2 * flows].spec
    assert isinstance(spec, UdpSpec)
    return {
        "way": lab.way,
        **about,
        "cubic_mbps": cubic["goodput_mbps"],
        "prague_mbps": prague["goodput_mbps"],
        "udp_mbps": udp["goodput_mbps"],
        "udp_got_share": udp["datagrams_received"] / max(udp["datagrams_sent"], 1),
        "c_delay_ms_mean": delays[0].mean_ms,
        "c_delay_ms_p99": delays[0].quantile_ms(0.99),
        "l_delay_ms_mean": delays[1].mean_ms,
        "l_delay_ms_p99": delays[1].quantile_ms(0.99),
        "p_mean": cubic["p_mean"],
        "utilisation": cubic["utilisation"],
        "overload_reports": overload_reports(result.notes),
    }


def overload_reports(notes: pl.DataFrame) -> int:
    """How many reports a controller made; each is two notes, since when and for how long."""
    return len(notes.filter(pl.col("quantity").str.contains(r"^overload_\d+_since_s$")))


@experiment(
    "aqm.overload",
    ("case", "cubic_mbps", "prague_mbps", "udp_mbps", "c_delay_ms_mean", "l_delay_ms_mean", "p_mean"),
    backends=("sim", "live"),
    quick={"duration_s": 12, "loads": (0.5, 1.0, 2.0), "ways": ("rfc", "rfc-fifo")},
)
def overload(
    ways: Managed = ("rfc", "rfc-fifo", "dualpi2"),
    loads: Annotated[tuple[float, ...], AtLeast(0.001, 1000)] = (0.5, 0.7, 0.9, 1.0, 1.4, 2.0),
    code_points: Annotated[tuple[str, ...], OneOf(("not-ect", "ect0", "ect1"))] = ("not-ect", "ect1"),
    capacity_mbps: int = 120,
    flows: Number = 5,
    duration_s: Annotated[int, AtLeast(4)] = 30,
) -> Plan:
    """Unresponsive UDP of 50 to 200 % of the link, as L4S and as Classic traffic, beside flows of both kinds."""
    cases = []
    for way in ways:
        for load in loads:
            for ecn in code_points:
                lab = overloaded(way, capacity_mbps, load, ecn, flows)
                about = {"capacity_mbps": capacity_mbps, "load": load, "ecn": ecn}
                measure = partial(_overload_row, lab, about, flows, duration_s)
                cases.append(Case(f"{way}-{load:g}-{ecn}", lab.network, f"{duration_s} s", measure))

    def claims(rows: list[Row]) -> list[Claim]:
        return [c for way in ways for c in _overload_claims([r for r in rows if r["way"] == way], way)]

    return Plan(cases, claims, lambda runs: _draw_overload(runs, ways, code_points, loads))


def _overload_claims(rows: list[Row], way: str) -> list[Claim]:
    text = WAYS[way].text

    def label(row: Row) -> str:
        return f"{100 * row['load']:g} %, {row['ecn']}"

    over = [row for row in rows if row["load"] >= 1]
    worse = {
        name: max(c, low)
        for (name, c), low in zip(
            medians(over, "c_delay_ms_mean", label).items(),
            medians(over, "l_delay_ms_mean", label).values(),
            strict=True,
        )
    }
    got = medians(rows, "udp_got_share", lambda row: f"{100 * row['load']:g} %{row['ecn']}")
    gains = {
        name.removesuffix("ect1"): value / got[name.removesuffix("ect1") + "not-ect"]
        for name, value in got.items()
        if name.endswith("ect1") and name.removesuffix("ect1") + "not-ect" in got
    }
    below = [row for row in rows if row["load"] < 0.95]
    ratios = {
        name: value / medians(below, "prague_mbps", label)[name]
        for name, value in medians(below, "cubic_mbps", label).items()
    }
    published = "RFC 9332, sections 4.2.3 and 4.2.3.1"
    return [
        between(
            f"{way}-delay",
            "standard",
            f"{text}: from 100 % on, the mean delay of the longer queue stays within 1.5 targets",
            worse,
            0.0,
            1.5 * target_ms(way),
            published=published,
            why=WHY_FULL
            if isinstance(WAYS[way].aqm, TofinoAqm)
            else "a time-shifted FIFO prefers L by 50 ms: unresponsive ECT(1) datagrams delay the packets of C",
            form=Unit("ms"),
        ),
        between(
            f"{way}-no-gain",
            "standard",
            f"{text}: datagrams marked ECT(1) get 0.9 to 1.1 of what they get unmarked",
            gains,
            0.9,
            1.1,
            published=published,
            why="below overload the scheduler prefers L, within its bounds",
        ),
        between(
            f"{way}-rest",
            "standard",
            f"{text}: below 100 %, CUBIC and Prague share the rest, 1 to 2 or 2 to 1 at most",
            ratios,
            0.5,
            2.0,
            published=published,
            why=WHY_FULL
            if isinstance(WAYS[way].aqm, TofinoAqm)
            else "with ECT(1) datagrams of 70 to 90 % of the link the scheduler leaves little to L (RFC 9332 section 4.2.2)",
        ),
    ]


def _load(row: Row) -> str:
    return str(row["load"])


def _draw_overload(
    runs: list[Run], ways: Sequence[str], code_points: Sequence[str], loads: Sequence[float]
) -> Figure:
    rows = all_rows(runs)
    figure = Figure(figsize=(1 + 4 * len(ways), 6.5), layout="constrained")
    panels = figure.subplots(2, len(ways), squeeze=False, sharex=True, sharey="row")
    at = [100 * load for load in loads]
    places = {str(load): 100 * load for load in loads}
    for way, upper, lower in zip(ways, panels[0], panels[1], strict=True):
        for ecn, style in zip(code_points, ("-", "--", ":"), strict=False):
            own = [row for row in rows if row["way"] == way and row["ecn"] == ecn]

            def line(column: str, own: list[Row] = own) -> list[float]:
                return list(medians(own, column, _load).values())

            for column, shade, name in (
                ("cubic_mbps", colour("cubic"), "a CUBIC flow"),
                ("prague_mbps", colour("prague"), "a Prague flow"),
                ("udp_mbps", "0.3", "all datagrams"),
            ):
                upper.plot(at, line(column), style, color=shade, label=f"{name}, {SENT[ecn]}", marker=".")
                whiskers(upper, own, column, _load, colour=shade, places=places)
            for column, shade, name in (
                ("c_delay_ms_mean", colour("cubic"), "C"),
                ("l_delay_ms_mean", colour("prague"), "L"),
            ):
                lower.plot(
                    at, line(column), style, color=shade, label=f"{name} queue, {SENT[ecn]}", marker="."
                )
                whiskers(lower, own, column, _load, colour=shade, places=places)
        upper.set(title=WAYS[way].text)
        log_scale(upper)
        lower.set(xlabel="load of the datagrams (% of the link)")
        for panel in (upper, lower):
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("goodput (Mbit/s)")
    panels[1][0].set_ylabel("mean queue delay (ms)")
    for panel in (panels[0][0], panels[1][0]):
        # Long enough to tell dashes by.
        panel.legend(fontsize="x-small", handlelength=4)
    return figure
