"""Short (web) flows beside long ones: completion times, compared with drop tail, CoDel and PIE."""

from __future__ import annotations

import random
from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate._core import TidegateError
from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.measures import sampled_delays
from tidegate.results import Result
from tidegate.systems.aqm.experiments.measuring import QueueNotes
from tidegate.systems.aqm.experiments.testbed import (
    BASELINES,
    BOTTLENECK,
    WAYS,
    Bottleneck,
    Ways,
    bottleneck,
    classic_flows,
    l4s_flows,
)

NAMES = {"cubic": "CUBIC", "prague": "Prague"}
WHY_SLOWER = {
    "cubic": "not explained",
    "prague": "a short flow of Prague leaves slow start at its first mark",
}
WHY_L4S_DELAY = (
    "the p99 grows with the load of short flows: 0.68 ms at 2 % of the link, 1.03 at 5 %, 1.24 at 10 %, 1.78 at 20 % (20 s); "
    "one initial window of ten packets takes 1.0 ms of 120 Mbit/s"
)
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
    if not len(done):
        raise TidegateError(
            f"no short flow got through in {duration_s} s; give a larger load, or a longer run"
        )
    low = about["control"] == "prague" and WAYS[lab.way].queues == 2
    plain = WAYS[lab.way].program is None
    delays = (
        sampled_delays(result, BOTTLENECK, 3, duration_s)
        if plain
        else QueueNotes(result.notes).delays(int(low), 3, duration_s)
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


@experiment(
    "aqm.burst",
    ("case", "completion_ms_p50", "completion_ms_p95", "slowdown_mean", "delay_ms_p99"),
    also="aqm.short_flows",
    quick={"duration_s": 15},
)
def burst(
    ways: Ways = ("droptail", "codel", "pie", "pi2", "rfc"),
    controls: Annotated[tuple[str, ...], OneOf(("cubic", "prague"))] = ("cubic", "prague"),
    capacity_mbps: int = 120,
    long: Number = 2,
    load: Annotated[float, AtLeast(0.001)] = 0.2,
    duration_s: Annotated[int, AtLeast(8)] = 60,
) -> Plan:
    """Short (web) flows beside long ones: completion times."""
    if load >= 1:
        raise TidegateError(f"aqm.burst: load is {load:g}; give less than 1, which is all of the link")
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
        p95 = medians(rows, "completion_ms_p95", lambda row: f"{row['way']}-{row['control']}")
        out = []
        for control in controls:
            if "droptail-cubic" in p95 and f"rfc-{control}" in p95:
                ratio = {control: p95[f"rfc-{control}"] / p95["droptail-cubic"]}
                statement = f"short flows of {control} over DualPI2 take at most 0.9 of what CUBIC's take over drop tail (p95)"
                why = WHY_SLOWER[control]
                out.append(between(f"{control}-faster", "ours", statement, ratio, 0.0, 0.9, why=why))
        prague = [row for row in rows if row["control"] == "prague"]
        l4s = medians(prague, "delay_ms_p99", lambda row: str(row["way"]))
        if "rfc" in l4s:
            statement = "p99 of the L queue's delay below 1.5 ms with short flows of Prague in slow start"
            why = WHY_L4S_DELAY
            out.append(
                between("l-delay", "ours", statement, {"rfc": l4s["rfc"]}, 0.0, 1.5, why=why, form=Unit("ms"))
            )
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
        label = f"{WAYS[row['way']].text}, {NAMES[row['control']]}" if run.seed == runs[0].seed else None
        share = np.arange(1, len(times) + 1) / len(times)
        panel.plot(times, share, style, color=WAYS[row["way"]].colour, label=label)
    panel.set(
        xscale="log",
        xlabel="completion time of a short flow (ms)",
        ylabel="share of flows (CDF)",
        ylim=(0, 1.01),
    )
    panel.grid(alpha=0.3)
    panel.legend(fontsize="x-small")
    return figure
