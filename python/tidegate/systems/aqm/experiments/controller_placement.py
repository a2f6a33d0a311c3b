"""Two placements of the PI controller, data plane and control plane: the same steady state."""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import Case, Numbers, Plan, Run, experiment
from tidegate.results import Result
from tidegate.systems.aqm.experiments.measuring import rows_of
from tidegate.systems.aqm.experiments.testbed import WAYS, Bottleneck, bottleneck, classic_flows, l4s_flows

OUTSIDE = ("pi2", "dualpi2")


@experiment(
    "aqm.homes",
    ("case", "control", "goodput_mbps", "delay_ms_mean", "delay_ms_p99", "p_mean"),
    backends=("sim", "live"),
    also="aqm.controller_placement",
    quick={"duration_s": 30, "capacities_mbps": (120,)},
)
def homes(
    capacities_mbps: tuple[int, ...] = (120, 1000),
    base_rtts_ms: tuple[float, ...] = (10.0, 50.0),
    flows: Numbers = (10, 25),
    duration_s: int = 60,
) -> Plan:
    """The controller in the control plane, every 16 ms, and in the data plane: the same steady state."""
    cases = []
    for outside in OUTSIDE:
        for way in (outside, f"{outside}-inside"):
            for capacity in capacities_mbps:
                for rtt in base_rtts_ms:
                    for number in flows:
                        lab = bottleneck(way, capacity, rtt)
                        classic_flows(lab, number)
                        l4s_flows(lab, number)
                        lab.network.record("500 ms", queues=[lab.link])
                        about = {"capacity_mbps": capacity, "base_rtt_ms": rtt, "each": number}
                        measure = partial(_steady_rows, lab, about, duration_s)
                        name = f"{way}-{capacity}-{rtt:g}ms-{number}"
                        cases.append(Case(name, lab.network, f"{duration_s} s", measure))

    def claims(rows: list[Row]) -> list[Claim]:
        out = []
        for outside in OUTSIDE:
            for column, what in (("delay_ms_mean", "mean classic queue delay"), ("p_mean", "mean p'")):
                apart, inside = (
                    medians(
                        [row for row in rows if row["way"] == way and row["control"] == "cubic"],
                        column,
                        _steady_label,
                    )
                    for way in (outside, f"{outside}-inside")
                )
                ratios = {name: inside[name] / value for name, value in apart.items()}
                statement = (
                    f"{WAYS[outside].text}: {what} in the data plane within 5 % of the control plane's"
                )
                why = "not explained"
                out.append(between(f"{outside}-{column}", "ours", statement, ratios, 0.95, 1.05, why=why))
        return out

    return Plan(cases, claims, _draw_homes)


def _steady_rows(lab: Bottleneck, about: Row, duration_s: int, result: Result) -> list[Row]:
    return rows_of(result, lab, about, duration_s / 3, duration_s)


def _steady_label(row: Row) -> str:
    return f"{row['capacity_mbps']} Mbit/s, {row['base_rtt_ms']:g} ms, {row['each']}-{row['each']}"


def _draw_homes(runs: list[Run]) -> Figure:
    rows = [row for run in runs for row in run.rows or () if row["control"] == "cubic"]
    places = list(dict.fromkeys(_steady_label(row) for row in rows))
    figure = Figure(figsize=(8, 6.5), layout="constrained")
    panels = figure.subplots(2, 1, sharex=True)
    ways = [way for outside in OUTSIDE for way in (outside, f"{outside}-inside")]
    for place, way in enumerate(ways):
        own = [row for row in rows if row["way"] == way]
        for panel, column, scale in zip(panels, ("delay_ms_mean", "p_mean"), (1, 100), strict=True):
            values = medians(own, column, _steady_label)
            at = [places.index(name) + 0.12 * (place - 1.5) for name in values]
            heights = [scale * value for value in values.values()]
            panel.plot(at, heights, "o", color=WAYS[way].colour, label=WAYS[way].text)
    panels[0].set(ylabel="mean delay of the Classic queue (ms)", ylim=(0, 1.1 * panels[0].get_ylim()[1]))
    panels[1].set(ylabel="mean p' (%)", ylim=(0, 1.1 * panels[1].get_ylim()[1]))
    panels[1].set_xticks(range(len(places)))
    panels[1].set_xticklabels(places, rotation=20, ha="right", fontsize="x-small")
    panels[0].legend(fontsize="x-small", loc="lower right")
    for panel in panels:
        panel.grid(axis="y", alpha=0.3)
    return figure
