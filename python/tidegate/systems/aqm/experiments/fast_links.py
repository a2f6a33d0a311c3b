"""Links of 10 to 100 Gbit/s: the PI controller in the data plane, and in the control plane every 16 ms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import Case, Number, OneOf, Plan, Run, experiment
from tidegate.results import Result
from tidegate.systems.aqm.controller import Aqm, Home
from tidegate.systems.aqm.experiments.measuring import QueueNotes, rows_of
from tidegate.systems.aqm.experiments.testbed import Bottleneck, bottleneck, classic_flows, l4s_flows

FAST = Aqm(target="1 ms", rtt_max="10 ms", period="330 us", ramp_from="100 us", ramp="50 us", limit="25 ms")
"""For round trips of a data centre or a metropolitan network."""


SLOW_LOOP = replace(FAST, home="control plane", period="16 ms")
WHY_AS_FAST = (
    "at 10 Gbit/s a period of 16 ms costs little: the p99 is 2.4 to 2.6 ms in the data plane, and every 4, 16 and 64 ms 2.7 to 2.8, "
    "2.8 to 3.0 and 6.3 ms (two seeds); other rates are not explained"
)
ARRIVALS_S = 0.5
"""Time in which the flows start, one after the other; the controller has to respond to their slow starts."""


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
    noted = QueueNotes(result.notes)
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
    also="aqm.fast_links",
    quick={"duration_s": 2.0, "capacities_gbps": (10,)},
)
def rates(
    capacities_gbps: tuple[int, ...] = (10, 40, 100),
    base_rtt_ms: float = 2.0,
    homes: Annotated[tuple[str, ...], OneOf(("data plane", "control plane"))] = (
        "data plane",
        "control plane",
    ),
    flows: Number = 25,
    duration_s: float = 3.0,
) -> Plan:
    """10 to 100 Gbit/s with a target of 1 ms: the controller in the data plane, and in the control plane every 16 ms."""
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
                "ours",
                "controller in the data plane: mean classic queue delay within 15 % of 1 ms",
                medians(inside, "delay_ms_mean", label),
                0.85,
                1.15,
                why="at 100 Gbit/s the flows have not converged within the run",
                form=Unit("ms"),
            ),
            between(
                "l-delay",
                "ours",
                "controller in the data plane: p99 of the L queue's delay below 0.25 ms",
                medians(l4s, "delay_ms_p99", label),
                0.0,
                0.25,
                why="slow starts of many flows meet in the L queue",
                form=Unit("ms"),
            ),
            between(
                "utilisation",
                "ours",
                "controller in the data plane: utilisation at least 0.97",
                medians(inside, "utilisation", label),
                0.97,
                1.0,
                why="the flows still grow their windows",
            ),
        ]
        outside = [row for row in classic if row["home"] == "control plane"]
        if outside and inside:
            slow, quick_ones = (medians(each, "arrivals_delay_ms_p99", label) for each in (outside, inside))
            ratio = {name: slow[name] / quick_ones[name] for name in slow}
            statement = (
                "while flows come, the p99 of the classic delay is at least 1.3 times as large "
                "with the controller in the control plane, every 16 ms"
            )
            why = WHY_AS_FAST
            out.append(between("slow-loop", "ours", statement, ratio, 1.3, why=why))
        return out

    return Plan(cases, claims, partial(_draw_rates, capacities_gbps, homes))


def _draw_rates(capacities: Sequence[int], homes: Sequence[str], runs: list[Run]) -> Figure:
    figure = Figure(figsize=(1 + 4 * len(capacities), 6), layout="constrained")
    panels = figure.subplots(2, len(capacities), squeeze=False, sharex=True, sharey="row")
    most = 2.0
    for column, capacity in enumerate(capacities):
        for home, colour in zip(homes, ("C1", "C0"), strict=False):
            run = next(run for run in runs if run.case == f"{capacity}G-{home.split()[0]}")
            samples = run.tables["queue_samples"]
            own = samples.filter((samples["queue"] == "switch -> sink") & (samples["number"] == 0))
            label = f"controller in the {home}"
            panels[0][column].plot(
                own["time_s"], own["queue_delay_ms"], color=colour, linewidth=0.7, label=label
            )
            # The first moments may be beyond the picture.
            most = max(most, 1.1 * float(own["queue_delay_ms"].quantile(0.995) or 0))
            notes = run.tables["notes"]
            p = notes.filter(notes["quantity"] == "p_1")
            panels[1][column].plot(p["time_s"], 100 * p["value"], color=colour, linewidth=0.7)
        panels[0][column].axhline(1, color="0.5", linestyle=":")
        panels[0][column].set(title=f"{capacity} Gbit/s", ylim=(0, most))
        panels[1][column].set(xlabel="time (s)", ylim=(0, None))
        for line in (0, 1):
            panels[line][column].grid(alpha=0.3)
    panels[0][0].set_ylabel("delay of the C queue (ms)")
    panels[1][0].set_ylabel("p' (%)")
    panels[0][0].legend(fontsize="x-small")
    return figure
