"""RFC 7928's scenarios for queue management, beside drop tail, CoDel and PIE."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import Case, OneOf, Plan, Run, experiment
from tidegate.measures import goodputs_mbps, sampled_delays, utilisation
from tidegate.plots import all_rows
from tidegate.results import Result, jain
from tidegate.systems.aqm.experiments.measuring import QueueNotes
from tidegate.systems.aqm.experiments.testbed import (
    BASELINES,
    BOTTLENECK,
    WAYS,
    Bottleneck,
    Ways,
    bottleneck,
    classic_flows,
)

RTT_MS = 40.0
WHY_ABOVE_PIE = "PI2's target is 20 ms and PIE's is 15: with 50 flows (8.2.4, 16 s) PI2's mean is 20.0 ms, and PIE's, 13.6 ms, is below its target"
WHY_BELOW_PIE = (
    "with bursts over one long flow (7, 16 s) PIE keeps a queue of 10.4 ms on average, PI2 of 1.9 and DualPI2 of 2.7 ms; "
    "for other scenarios not explained"
)
CAPACITY_MBPS = 50


@dataclass(frozen=True)
class Scenario:
    """One of RFC 7928's: what is sent, and which flows are judged."""

    text: str
    load: Callable[[Bottleneck, float], None]


def _long(count: int, **options: Any) -> Callable[[Bottleneck, float], None]:
    return lambda lab, duration_s: classic_flows(lab, count, **options)


def _unresponsive(lab: Bottleneck, duration_s: float) -> None:
    classic_flows(lab, 4)
    rate = round(0.25 * CAPACITY_MBPS * 1e6)
    lab.network.udp(lab.source, lab.sink, rate=rate, pattern="poisson")


def _rtt_fairness(lab: Bottleneck, duration_s: float) -> None:
    classic_flows(lab, 2)
    classic_flows(lab, 2, extra_delay="60 ms")


def _bursts(lab: Bottleneck, duration_s: float) -> None:
    """Answers of 100 kB from a server's first windows, over one long flow."""
    classic_flows(lab, 1)
    chance = random.Random(7)
    at, flows = 2.0, []
    while at < duration_s - 1:
        flows.append((round(at * 1e12), "100 kB", lab.source, lab.sink))
        at += chance.expovariate(4)
    lab.network.transfers(flows, congestion_control="cubic", ecn="off")


def _varying(lab: Bottleneck, duration_s: float) -> None:
    """A quarter of the capacity for the middle third of the time, and what was there before afterwards."""
    classic_flows(lab, 5)
    slow = round(CAPACITY_MBPS * 1e6 / 4)
    lab.link.set(round(duration_s / 3 * 1e12), rate=slow, direction="there")
    lab.link.set(round(duration_s * 2 / 3 * 1e12), rate=round(CAPACITY_MBPS * 1e6), direction="there")


def _mix(lab: Bottleneck, duration_s: float) -> None:
    """Long flows, short ones, calls and a video of constant rate."""
    classic_flows(lab, 3)
    for number in range(5):
        lab.network.udp(lab.source, lab.sink, rate="87 kbit/s", payload=172, start=f"{number} ms")
    lab.network.udp(lab.source, lab.sink, rate="4 Mbit/s", payload=1200)
    chance = random.Random(9)
    at, flows = 2.0, []
    while at < duration_s - 1:
        flows.append((round(at * 1e12), chance.choice(["15 kB", "60 kB", "250 kB"]), lab.source, lab.sink))
        at += chance.expovariate(5)
    lab.network.transfers(flows, congestion_control="cubic", ecn="off")


SCENARIOS = {
    "5.1": Scenario("TCP-friendly senders (Reno)", _long(5, congestion_control="reno")),
    "5.2": Scenario("aggressive sender (CUBIC, initial window 10)", _long(5)),
    "5.3": Scenario("unresponsive senders, a quarter of the link", _unresponsive),
    "6": Scenario("RTTs of 40 and 100 ms", _rtt_fairness),
    "7": Scenario("bursts over a long flow", _bursts),
    "8.2.2": Scenario("mild congestion, 2 flows", _long(2)),
    "8.2.3": Scenario("medium congestion, 10 flows", _long(10)),
    "8.2.4": Scenario("heavy congestion, 50 flows", _long(50)),
    "8.2.6": Scenario("capacity that changes", _varying),
    "9": Scenario("a mix of applications", _mix),
}


def scenario_lab(way: str, name: str, duration_s: float) -> Bottleneck:
    """A scenario over a way to manage the queue."""
    lab = bottleneck(way, CAPACITY_MBPS, RTT_MS)
    SCENARIOS[name].load(lab, duration_s)
    lab.network.record("20 ms", queues=[lab.link])
    return lab


def _scenario_row(lab: Bottleneck, about: Row, duration_s: float, result: Result) -> Row:
    begin = duration_s / 4
    specs = [flow.spec for flow in lab.network.flows]
    long = {
        flow.number
        for flow, spec in zip(lab.network.flows, specs, strict=True)
        if flow.kind == "tcp" and getattr(spec, "size", None) is None
    }
    rates = {flow: rate for flow, rate in goodputs_mbps(result, begin, duration_s).items() if flow in long}
    plain = lab.way in BASELINES
    delays = (
        sampled_delays(result, BOTTLENECK, begin, duration_s)
        if plain
        else QueueNotes(result.notes).delays(0, begin, duration_s)
    )
    short = result.flows.filter(pl.col("size_bytes").is_not_null())["completion_ms"].drop_nulls().to_numpy()
    return {
        "way": lab.way,
        **about,
        "goodput_mbps": sum(rates.values()),
        "delay_ms_mean": delays.mean_ms,
        "delay_ms_p95": delays.quantile_ms(0.95),
        "utilisation": utilisation(result, BOTTLENECK, begin, duration_s),
        "jain": jain(pl.Series(list(rates.values()))),
        "retransmits": int(result.flows["retransmits"].sum()),
        "short_ms_p95": float(np.quantile(short, 0.95)) if len(short) else 0.0,
    }


@experiment(
    "aqm.rfc7928",
    ("case", "goodput_mbps", "delay_ms_mean", "delay_ms_p95", "utilisation", "jain", "short_ms_p95"),
    quick={"duration_s": 16},
)
def rfc7928(
    ways: Ways = ("droptail", "codel", "pie", "pi2", "rfc"),
    scenarios: Annotated[tuple[str, ...], OneOf(SCENARIOS)] = tuple(SCENARIOS),
    duration_s: int = 60,
) -> Plan:
    """RFC 7928's scenarios: 50 Mbit/s, 40 ms, Classic traffic; goodput against delay for each queue."""
    cases = []
    for name in scenarios:
        for way in ways:
            lab = scenario_lab(way, name, duration_s)
            measure = partial(_scenario_row, lab, {"scenario": name}, duration_s)
            cases.append(Case(f"{name}-{way}", lab.network, f"{duration_s} s", measure))

    def claims(rows: list[Row]) -> list[Claim]:
        out = []
        delay, used = (
            medians(rows, column, lambda row: row["case"]) for column in ("delay_ms_mean", "utilisation")
        )
        for way in ways:
            if way in BASELINES:
                continue
            text = WAYS[way].text
            if "pie" in ways:
                ratio = {name: delay[f"{name}-{way}"] / delay[f"{name}-pie"] for name in scenarios}
                statement = f"{text}: mean delay at most 1.4 times PIE's (targets: 15 and, PI2 as in the paper, 20 ms)"
                why = WHY_ABOVE_PIE
                out.append(between(f"{way}-as-pie", "ours", statement, ratio, 0.0, 1.4, why=why))
                share = {name: used[f"{name}-{way}"] - used[f"{name}-pie"] for name in scenarios}
                statement = f"{text}: utilisation at most 0.03 below PIE's"
                why = WHY_BELOW_PIE
                out.append(between(f"{way}-used", "ours", statement, share, -0.03, 1.0, why=why))
            if "droptail" in ways:
                ratio = {name: delay[f"{name}-{way}"] / delay[f"{name}-droptail"] for name in scenarios}
                statement = f"{text}: mean delay below drop tail's"
                why = "not explained"
                out.append(between(f"{way}-below-droptail", "ours", statement, ratio, 0.0, 1.0, why=why))
        return out

    return Plan(cases, claims, partial(_draw_scenarios, ways, scenarios))


def _draw_scenarios(ways: Sequence[str], scenarios: Sequence[str], runs: list[Run]) -> Figure:
    """Goodput over delay, as RFC 7928 section 2.7 has it."""
    rows = all_rows(runs)
    columns = min(5, len(scenarios))
    lines = -(-len(scenarios) // columns)
    figure = Figure(figsize=(0.6 + 3 * columns, 0.6 + 2.8 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    most = CAPACITY_MBPS * 1448 / 1514
    for name, panel in zip(scenarios, panels, strict=False):
        for way in ways:
            own = [row for row in rows if row["way"] == way and row["scenario"] == name]
            panel.plot(
                [row["delay_ms_mean"] for row in own],
                [row["goodput_mbps"] for row in own],
                "o",
                color=WAYS[way].colour,
                label=WAYS[way].text,
            )
        panel.set_title(f"{name}: {SCENARIOS[name].text}", fontsize="x-small")
        panel.set(xlim=(0, None), ylim=(0, 1.05 * most))
        panel.grid(alpha=0.3)
    for panel in panels[len(scenarios) :]:
        panel.set_visible(False)
    panels[0].legend(fontsize="xx-small", loc="lower right")
    figure.supxlabel("mean queue delay (ms)")
    figure.supylabel("goodput of long flows (Mbit/s)")
    return figure
