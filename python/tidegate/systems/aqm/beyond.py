"""Beyond the paper: overload by what does not respond, short flows over long ones, links of 10 to 100 Gbit/s."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from tidegate.experiments import Case, Claim, Plan, Row, Run, experiment
from tidegate.network import UdpSpec
from tidegate.results import Result
from tidegate.systems.aqm.controller import Aqm, Home
from tidegate.systems.aqm.judge import between, over_seeds
from tidegate.systems.aqm.lab import (
    BASELINES,
    WAYS,
    Bottleneck,
    Noted,
    bottleneck,
    classic_flows,
    l4s_flows,
    rows_of,
    sampled_delays,
)

FRAME_SHARE = 1472 / 1514


# Overload.


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
    noted = Noted(result.notes)
    delays = [noted.delays(queue, begin, duration_s) for queue in (0, 1)]
    spec = lab.network.flows[2 * flows].spec
    assert isinstance(spec, UdpSpec)
    reported = [value for name, value in _notes(result, "overload_") if name.endswith("_s")]
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
        "overload_reports": len(reported),
    }


def _notes(result: Result, prefix: str) -> list[tuple[str, float]]:
    rows = result.notes.select("quantity", "value").iter_rows()
    return [(name, value) for name, value in rows if name.startswith(prefix)]


@experiment(
    "aqm.overload",
    ("case", "cubic_mbps", "prague_mbps", "udp_mbps", "c_delay_ms_mean", "l_delay_ms_mean", "p_mean"),
)
def overload(
    ways: tuple[str, ...] = ("rfc", "rfc-fifo", "dualpi2"),
    loads: tuple[float, ...] = (0.5, 0.7, 0.9, 1.0, 1.4, 2.0),
    code_points: tuple[str, ...] = ("not-ect", "ect1"),
    capacity_mbps: int = 120,
    flows: int = 5,
    duration_s: int = 30,
    quick: bool = False,
) -> Plan:
    """Datagrams that respond to nothing, 50 to 200 % of the link, as L4S and as classic, over flows of both kinds."""
    if quick:
        duration_s, loads, ways = 12, (0.5, 1.0, 2.0), ways[:2]
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
    target = 15 if way.startswith("rfc") else 20

    def label(row: Row) -> str:
        return f"{100 * row['load']:g} %, {row['ecn']}"

    over = [row for row in rows if row["load"] >= 1]
    worse = {
        name: max(c, low)
        for (name, c), low in zip(
            over_seeds(over, "c_delay_ms_mean", label).items(),
            over_seeds(over, "l_delay_ms_mean", label).values(),
            strict=True,
        )
    }
    got = over_seeds(rows, "udp_got_share", lambda row: f"{100 * row['load']:g} %{row['ecn']}")
    gains = {
        name.removesuffix("ect1"): value / got[name.removesuffix("ect1") + "not-ect"]
        for name, value in got.items()
        if name.endswith("ect1") and name.removesuffix("ect1") + "not-ect" in got
    }
    below = [row for row in rows if row["load"] < 0.95]
    ratios = {
        name: value / over_seeds(below, "prague_mbps", label)[name]
        for name, value in over_seeds(below, "cubic_mbps", label).items()
    }
    published = "RFC 9332, sections 4.2.3 and 4.2.3.1"
    return [
        between(
            f"{way}-delay",
            f"{text}: from 100 % on, the mean delay of the longer queue stays within 1.5 targets",
            published,
            worse,
            0.0,
            1.5 * target,
        ),
        between(
            f"{way}-no-gain",
            f"{text}: datagrams marked ECT(1) get 0.9 to 1.1 of what they get unmarked",
            published,
            gains,
            0.9,
            1.1,
        ),
        between(
            f"{way}-rest",
            f"{text}: below 100 %, CUBIC and Prague share the rest, 1 to 2 or 2 to 1 at most",
            published,
            ratios,
            0.5,
            2.0,
        ),
    ]


def _load(row: Row) -> str:
    return str(row["load"])


def _draw_overload(
    runs: list[Run], ways: Sequence[str], code_points: Sequence[str], loads: Sequence[float]
) -> Figure:
    rows = [row for run in runs for row in run.rows or ()]
    figure = Figure(figsize=(1 + 4 * len(ways), 6.5), layout="constrained")
    panels = figure.subplots(2, len(ways), squeeze=False, sharex=True, sharey="row")
    at = [100 * load for load in loads]
    for way, upper, lower in zip(ways, panels[0], panels[1], strict=True):
        for ecn, style in zip(code_points, ("-", "--"), strict=False):
            own = [row for row in rows if row["way"] == way and row["ecn"] == ecn]

            def line(column: str, own: list[Row] = own) -> list[float]:
                return list(over_seeds(own, column, _load).values())

            for column, colour, name in (
                ("cubic_mbps", "C0", "a CUBIC flow"),
                ("prague_mbps", "C1", "a Prague flow"),
                ("udp_mbps", "0.3", "datagrams"),
            ):
                upper.plot(at, line(column), style, color=colour, label=f"{name}, {ecn}", marker=".")
            for column, colour, name in (("c_delay_ms_mean", "C0", "C"), ("l_delay_ms_mean", "C1", "L")):
                lower.plot(at, line(column), style, color=colour, label=f"{name} queue, {ecn}", marker=".")
        upper.set(title=WAYS[way].text, yscale="log")
        lower.set(xlabel="datagrams (% of the link)")
        for panel in (upper, lower):
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("goodput (Mbit/s)")
    panels[1][0].set_ylabel("mean queue delay (ms)")
    for panel in (panels[0][0], panels[1][0]):
        panel.legend(fontsize="x-small")
    return figure


# Short flows.

SHORT_SIZES = (6_000, 15_000, 30_000, 60_000, 150_000)


def with_short_flows(
    way: str, control: str, capacity_mbps: int, long: int, load: float, duration_s: int
) -> tuple[Bottleneck, list[int]]:
    """Long flows of both kinds (of CUBIC alone over one classic queue), and short ones at random times; gives their numbers."""
    lab = bottleneck(way, capacity_mbps, 20.0)
    classic_flows(lab, long)
    if way not in BASELINES:
        l4s_flows(lab, long)
    else:
        classic_flows(lab, long)
    chance = random.Random(1)
    options = {"congestion_control": control, "ecn": "accurate" if control == "prague" else "off"}
    gap_s = float(np.mean(SHORT_SIZES)) * 8 / (load * capacity_mbps * 1e6)
    at, flows = 3.0, []
    while at < duration_s - 1:
        at += chance.expovariate(1 / gap_s)
        flows.append((round(at * 1e12), chance.choice(SHORT_SIZES), lab.source, lab.sink))
    made = lab.network.transfers(flows, **options)  # type: ignore[arg-type]
    lab.network.record("20 ms", queues=[lab.link])
    return lab, [flow.number for flow in made]


def _burst_row(lab: Bottleneck, about: Row, short: list[int], duration_s: int, result: Result) -> Row:
    flows = result.flows[short]
    done = flows["completion_ms"].drop_nulls().to_numpy()
    low = about["control"] == "prague" and WAYS[lab.way].queues == 2
    plain = WAYS[lab.way].program is None
    delays = (
        sampled_delays(result, 3, duration_s)
        if plain
        else Noted(result.notes).delays(int(low), 3, duration_s)
    )
    return {
        "way": lab.way,
        **about,
        "short_flows": len(short),
        "unfinished": len(short) - len(done),
        "completion_ms_p50": float(np.quantile(done, 0.5)),
        "completion_ms_p95": float(np.quantile(done, 0.95)),
        "slowdown_mean": float(flows["slowdown"].drop_nulls().to_numpy().mean()),
        "delay_ms_mean": delays.mean_ms,
        "delay_ms_p99": delays.quantile_ms(0.99),
        "retransmits": int(flows["retransmits"].sum()),
    }


@experiment("aqm.burst", ("case", "completion_ms_p50", "completion_ms_p95", "slowdown_mean", "delay_ms_p99"))
def burst(
    ways: tuple[str, ...] = ("droptail", "codel", "pie", "pi2", "rfc"),
    controls: tuple[str, ...] = ("cubic", "prague"),
    capacity_mbps: int = 120,
    long: int = 2,
    load: float = 0.2,
    duration_s: int = 60,
    quick: bool = False,
) -> Plan:
    """Short flows, as of the web, over long ones: how long they take."""
    if quick:
        duration_s = 15
    cases = []
    for way in ways:
        for control in controls:
            if control == "prague" and way in BASELINES:
                continue
            lab, short = with_short_flows(way, control, capacity_mbps, long, load, duration_s)
            about = {"control": control, "capacity_mbps": capacity_mbps, "load": load}
            measure = partial(_burst_row, lab, about, short, duration_s)
            cases.append(Case(f"{way}-{control}", lab.network, f"{duration_s} s", measure))

    def claims(rows: list[Row]) -> list[Claim]:
        p95 = over_seeds(rows, "completion_ms_p95", lambda row: f"{row['way']}-{row['control']}")
        out = []
        for control in controls:
            if "droptail-cubic" in p95 and f"rfc-{control}" in p95:
                ratio = {control: p95[f"rfc-{control}"] / p95["droptail-cubic"]}
                statement = f"short flows of {control} over DualPI2 take at most 0.9 of what CUBIC's take over drop tail (p95)"
                out.append(between(f"{control}-faster", statement, "no figure", ratio, 0.0, 0.9))
        l4s = {row["way"]: row["delay_ms_p99"] for row in rows if row["control"] == "prague"}
        if "rfc" in l4s:
            statement = "p99 of the L queue's delay below 1.5 ms with short flows of Prague in slow start"
            out.append(between("l-delay", statement, "no figure", {"rfc": l4s["rfc"]}, 0.0, 1.5))
        return out

    return Plan(cases, claims, _draw_burst)


def _draw_burst(runs: list[Run]) -> Figure:
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    panel = figure.subplots()
    for run in runs:
        if run.rows is None:
            continue
        (row,) = run.rows
        short = run.tables["flows"].filter(run.tables["flows"]["size_bytes"].is_not_null())
        times = np.sort(short["completion_ms"].drop_nulls().to_numpy())
        style = "--" if row["control"] == "prague" else "-"
        label = f"{WAYS[row['way']].text}, {row['control']}" if run.seed == runs[0].seed else None
        share = np.arange(1, len(times) + 1) / len(times)
        panel.plot(times, share, style, color=WAYS[row["way"]].colour, label=label)
    panel.set(
        xscale="log", xlabel="completion time of a short flow (ms)", ylabel="share of flows", ylim=(0, 1.01)
    )
    panel.grid(alpha=0.3)
    panel.legend(fontsize="x-small")
    return figure


# Fast links.

FAST = Aqm(target="1 ms", rtt_max="10 ms", period="330 us", ramp_from="100 us", ramp="50 us", limit="25 ms")
"""For round trips of a data centre or a metropolitan network."""
SLOW_LOOP = replace(FAST, home="control plane", period="16 ms")


ARRIVALS_S = 0.5
"""Flows come one after the other for so long; their slow starts are what the controller has to answer."""


def fast(capacity_gbps: int, base_rtt_ms: float, home: Home, flows: int) -> Bottleneck:
    """As many flows of both kinds over a fast link; the slow controller has the paper's period."""
    lab = bottleneck(
        "rfc",
        capacity_gbps * 1000,
        base_rtt_ms,
        access=f"{8 * capacity_gbps} Gbit/s",
        count_period="100 ms",
        aqm=FAST if home == "data plane" else SLOW_LOOP,
        watch="16 ms",
    )
    for number in range(flows):
        at = ARRIVALS_S * number / flows
        classic_flows(lab, 1, at, receive_buffer_max="256 MiB")
        l4s_flows(lab, 1, at, receive_buffer_max="256 MiB")
    lab.network.record("5 ms", queues=[lab.link])
    return lab


def _fast_rows(lab: Bottleneck, about: Row, duration_s: float, result: Result) -> list[Row]:
    rows = rows_of(result, lab, about, duration_s / 2, duration_s)
    noted = Noted(result.notes)
    arrivals = noted.delays(0, 0.0, ARRIVALS_S)
    return [{**row, "arrivals_delay_ms_p99": arrivals.quantile_ms(0.99)} for row in rows]


@experiment(
    "aqm.rates",
    (
        "case",
        "control",
        "goodput_mbps",
        "delay_ms_mean",
        "delay_ms_p99",
        "p_mean",
        "arrivals_delay_ms_p99",
        "utilisation",
    ),
)
def rates(
    capacities_gbps: tuple[int, ...] = (10, 40, 100),
    base_rtt_ms: float = 2.0,
    homes: tuple[str, ...] = ("data plane", "control plane"),
    flows: int = 25,
    duration_s: float = 3.0,
    quick: bool = False,
) -> Plan:
    """10 to 100 Gbit/s with a target of 1 ms: the controller in the data plane, and in the control plane every 16 ms."""
    if quick:
        capacities_gbps, duration_s = capacities_gbps[:1], 2.0
    cases = []
    for capacity in capacities_gbps:
        for home in homes:
            where: Home = "control plane" if home == "control plane" else "data plane"
            lab = fast(capacity, base_rtt_ms, where, flows)
            about = {"capacity_gbps": capacity, "base_rtt_ms": base_rtt_ms, "home": home}
            measure = partial(_fast_rows, lab, about, duration_s)
            name = f"{capacity}G-{home.split()[0]}"
            cases.append(Case(name, lab.network, f"{round(duration_s * 1000)} ms", measure))

    def claims(rows: list[Row]) -> list[Claim]:
        classic = [row for row in rows if row["control"] == "cubic"]
        inside = [row for row in classic if row["home"] == "data plane"]
        l4s = [row for row in rows if row["control"] == "prague" and row["home"] == "data plane"]

        def label(row: Row) -> str:
            return f"{row['capacity_gbps']} Gbit/s"

        out = [
            between(
                "target",
                "controller in the data plane: mean classic queue delay within 15 % of 1 ms",
                "future work",
                over_seeds(inside, "delay_ms_mean", label),
                0.85,
                1.15,
            ),
            between(
                "l-delay",
                "controller in the data plane: p99 of the L queue's delay below 0.25 ms",
                "future work",
                over_seeds(l4s, "delay_ms_p99", label),
                0.0,
                0.25,
            ),
            between(
                "utilisation",
                "controller in the data plane: utilisation at least 0.97",
                "future work",
                over_seeds(inside, "utilisation", label),
                0.97,
                1.01,
            ),
        ]
        outside = [row for row in classic if row["home"] == "control plane"]
        if outside and inside:
            slow, quick_ones = (
                over_seeds(each, "arrivals_delay_ms_p99", label) for each in (outside, inside)
            )
            ratio = {name: slow[name] / quick_ones[name] for name in slow}
            statement = (
                "while flows come, the p99 of the classic delay is at least 1.3 times as large "
                "with the controller in the control plane, every 16 ms"
            )
            out.append(between("slow-loop", statement, "may be too slow", ratio, 1.3, float("inf")))
        return out

    return Plan(cases, claims, partial(_draw_rates, capacities_gbps, homes))


def _draw_rates(capacities: Sequence[int], homes: Sequence[str], runs: list[Run]) -> Figure:
    figure = Figure(figsize=(1 + 4 * len(capacities), 6), layout="constrained")
    panels = figure.subplots(2, len(capacities), squeeze=False, sharex=True)
    for column, capacity in enumerate(capacities):
        for home, colour in zip(homes, ("C1", "C0"), strict=False):
            run = next(run for run in runs if run.case == f"{capacity}G-{home.split()[0]}")
            samples = run.tables["queue_samples"]
            own = samples.filter((samples["queue"] == "switch -> sink") & (samples["number"] == 0))
            label = f"controller in the {home}"
            panels[0][column].plot(
                own["time_s"], own["queue_delay_ms"], color=colour, linewidth=0.7, label=label
            )
            notes = run.tables["notes"]
            p = notes.filter(notes["quantity"] == "p_1")
            panels[1][column].plot(p["time_s"], 100 * p["value"], color=colour, linewidth=0.7)
        panels[0][column].axhline(1, color="0.5", linestyle=":")
        panels[0][column].set(title=f"{capacity} Gbit/s", ylim=(0, 8))
        panels[1][column].set(xlabel="time (s)", ylim=(0, None))
        for line in (0, 1):
            panels[line][column].grid(alpha=0.3)
    panels[0][0].set_ylabel("delay of the C queue (ms)")
    panels[1][0].set_ylabel("p' (%)")
    panels[0][0].legend(fontsize="x-small")
    return figure
