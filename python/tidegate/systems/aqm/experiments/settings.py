"""What the settings change that the paper leaves open: T, both gains, the buffer, and what a weight of 1/10 is of."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import Case, Numbers, OrZero, Plan, Run, demand_warm_up, experiment
from tidegate.plots import all_rows, whiskers
from tidegate.systems.aqm.controller import dual_port
from tidegate.systems.aqm.experiments.judging import late, of, where
from tidegate.systems.aqm.experiments.measuring import WHOLE
from tidegate.systems.aqm.experiments.static_mixes import measure
from tidegate.systems.aqm.experiments.testbed import bottleneck, classic_flows, l4s_flows
from tidegate.systems.aqm.tofino import PAPER

TENTH = dual_port("deficit round robin", weight=9)
VARIANTS = {
    "as set": (PAPER, TENTH),
    "T 4 ms": (replace(PAPER, period="4 ms", gains=(0.04, 3.0)), TENTH),
    "T 32 ms": (replace(PAPER, period="32 ms", gains=(0.3125, 3.125)), TENTH),
    "gains halved": (replace(PAPER, gains=(0.08, 1.5)), TENTH),
    "gains doubled": (replace(PAPER, gains=(0.32, 6.0)), TENTH),
    "buffer 50 ms": (replace(PAPER, limit="50 ms"), TENTH),
    "weights 1:10": (PAPER, dual_port("deficit round robin", weight=10)),
}
"""Settings and the port's queues. Gains go with T as RFC 9332 computes them; at 32 ms those are 2.5 times PIE's (RFC 8033)."""


@experiment(
    "aqm.settings",
    ("case", "window", "control", "goodput_mbps", "delay_ms_mean", "delay_ms_p99", "p_mean", "utilisation"),
    quick={"duration_s": 15, "warm_up_s": 5, "base_rtts_ms": (10.0,)},
)
def settings(
    capacity_mbps: int = 120,
    base_rtts_ms: tuple[float, ...] = (10.0, 50.0),
    flows: Numbers = (1, 10),
    duration_s: int = 120,
    warm_up_s: OrZero = 30,
) -> Plan:
    """DualPI2 with other values of what the paper leaves open."""
    demand_warm_up(warm_up_s, duration_s)
    cases = []
    for variant, (aqm, port) in VARIANTS.items():
        for rtt in base_rtts_ms:
            for number in flows:
                lab = bottleneck("dualpi2", capacity_mbps, rtt, aqm=aqm, port=port)
                classic_flows(lab, number)
                l4s_flows(lab, number)
                lab.network.record("500 ms", queues=[lab.link])
                about = {
                    "variant": variant,
                    "capacity_mbps": capacity_mbps,
                    "base_rtt_ms": rtt,
                    "classic": number,
                    "l4s": number,
                }
                rows_of_case = partial(measure, lab, about, warm_up_s, duration_s)
                name = f"{variant.replace(' ', '_').replace(',', '')}-{rtt:g}ms-{number}"
                cases.append(Case(name, lab.network, f"{duration_s} s", rows_of_case))

    def claims(rows: list[Row]) -> list[Claim]:
        return [
            _steady_claim(late(rows), "delay", "delay_ms_mean", "the mean delay of C"),
            _steady_claim(late(rows), "share", "goodput_mbps", "the goodput of a CUBIC flow"),
        ]

    return Plan(cases, claims, _draw)


def _steady_claim(rows: list[Row], id: str, column: str, what: str) -> Claim:
    """Each variant over the settings as they are, of CUBIC."""
    values = {
        variant: medians([row for row in of(rows, "cubic") if row["variant"] == variant], column, where)
        for variant in VARIANTS
    }
    ratio = {
        f"{variant}, {at}": value / values["as set"][at]
        for variant, own in values.items()
        for at, value in own.items()
        if variant != "as set"
    }
    statement = f"{what} is 0.9 to 1.1 of that with our settings, with any of the other values"
    why = "a single flow of each kind makes p' vary by more than the controller's gains can hold"
    return between(id, "ours", statement, ratio, 0.9, 1.1, why=why)


def _draw(runs: list[Run]) -> Figure:
    rows = [row for row in all_rows(runs) if row["window"] == WHOLE]
    places = list(dict.fromkeys(where(row) for row in rows))
    figure = Figure(figsize=(9, 8), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    shown = (
        ("error_mean", "cubic", "goodput error of CUBIC"),
        ("delay_ms_p99", "cubic", "p99 of C (ms)"),
        ("delay_ms_p99", "prague", "p99 of L (ms)"),
    )
    for panel, (column, control, text) in zip(panels, shown, strict=True):
        for number, place in enumerate(places):
            own = [row for row in of(rows, control) if where(row) == place]
            values = medians(own, column, lambda row: str(row["variant"]))
            at = [list(VARIANTS).index(variant) + 0.1 * number for variant in values]
            panel.plot(at, list(values.values()), "osD^v"[number % 5], color=f"C{number}", label=place)
            whiskers(
                panel,
                own,
                column,
                lambda row: str(row["variant"]),
                colour=f"C{number}",
                places=dict(zip(values, at, strict=True)),
            )
        panel.set(ylabel=text)
        if column == "error_mean":
            panel.axhline(0, color="0.5", linestyle=":")
        else:
            panel.set_ylim(0, 1.1 * panel.get_ylim()[1])
        panel.grid(alpha=0.3)
    panels[-1].set_xticks(range(len(VARIANTS)), list(VARIANTS), rotation=30, ha="right")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", fontsize="small", ncols=len(places))
    return figure
