"""Other queues in the place of PI2 and DualPI2: drop tail, CoDel, PIE, FQ-CoDel, DualPI2 by RFC 9332 and as in Linux, an ECN step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import Case, OneOf, OrZero, Plan, Run, demand_warm_up, experiment
from tidegate.papers import of_run
from tidegate.plots import all_rows, colour, log_scale
from tidegate.systems.aqm.claims import CLAIMS
from tidegate.systems.aqm.experiments.judging import late, of, where
from tidegate.systems.aqm.experiments.measuring import WHOLE
from tidegate.systems.aqm.experiments.static_mixes import measure, mixed
from tidegate.systems.aqm.experiments.testbed import BASELINES, WAYS, Ways

CONTENDERS = ("pi2", "dualpi2", "rfc", "rfc-fifo", "linux", "step", "droptail", "codel", "pie", "fq_codel")
MIXES = {
    f"{classic}-{l4s}": (classic, l4s)
    for classic, l4s in (
        *((number, number) for number in (1, 2, 5, 10, 25, 50)),
        *((9 * number, number) for number in (1, 5, 10)),
        *((number, 9 * number) for number in (1, 5, 10)),
    )
}
"""Numbers of CUBIC and Prague flows: those of Figs. 6 to 8."""
SHORT = {
    "pi2": "PI2",
    "dualpi2": "DualPI2",
    "pi2-inside": "PI2, data plane",
    "dualpi2-inside": "DualPI2, data plane",
    "rfc": "DualPI2, RFC 9332",
    "rfc-fifo": "DualPI2, FIFO",
    "linux": "DualPI2, Linux",
    "step": "ECN step, 1 ms",
    "droptail": "tail drop",
    "codel": "CoDel",
    "pie": "PIE",
    "fq_codel": "FQ-CoDel",
}
"""Names of queues below a panel."""
WHY_SHARE = (
    "behind two queues a CUBIC flow's RTT includes the C queue's delay, Prague's only its floor of 25 ms; where nine Prague flows share "
    "a low rate, their minimum window of two packets exceeds their share"
)
WHY_DELAY = "45 Prague flows of two packets each in flight exceed the BDP: their queue is as long as their windows, whatever marks"
WHY_ISOLATED = "FQ-CoDel has a queue for each flow and serves them in turns; DualPI2 has two queues and relies on the senders' laws"


@experiment(
    "aqm.queues",
    (
        "case",
        "window",
        "control",
        "goodput_mbps",
        "error_mean",
        "error_abs_mean",
        "delay_ms_mean",
        "delay_ms_p99",
        "dropped_share",
        "utilisation",
    ),
    quick={"duration_s": 15, "warm_up_s": 5, "base_rtts_ms": (10.0,), "mixes": ("1-1", "10-10")},
)
def queues(
    ways: Ways = CONTENDERS,
    capacities_mbps: tuple[int, ...] = (120,),
    base_rtts_ms: tuple[float, ...] = (10.0, 50.0),
    mixes: Annotated[tuple[str, ...], OneOf(MIXES)] = ("1-1", "10-10", "45-5", "5-45"),
    duration_s: int = 120,
    warm_up_s: OrZero = 30,
    mtu: int = 1500,
) -> Plan:
    """Cells of Figs. 4 to 8 with each kind of queue: shares of CUBIC and Prague, and their delays.

    A plain queue's delay is that of a packet that comes at the time of a sample, FQ-CoDel's that of all its bytes.
    """
    demand_warm_up(warm_up_s, duration_s)
    cases = []
    for way in ways:
        for capacity in capacities_mbps:
            for rtt in base_rtts_ms:
                for mix in mixes:
                    classic, l4s = MIXES[mix]
                    lab = mixed(way, capacity, rtt, classic, l4s, mtu)
                    about = {"capacity_mbps": capacity, "base_rtt_ms": rtt, "classic": classic, "l4s": l4s}
                    rows_of_case = partial(measure, lab, about, warm_up_s, duration_s)
                    name = f"{way}-{capacity}-{rtt:g}ms-{mix}"
                    cases.append(Case(name, lab.network, f"{duration_s} s", rows_of_case))

    def claims(rows: list[Row]) -> list[Claim]:
        steady = late(rows)
        out = [claim for way in ways if WAYS[way].queues == 2 for claim in _dual_claims(steady, ways, way)]
        return out + of_run(CLAIMS, "aqm.queues", rows, {"duration_s": duration_s, "mtu": mtu})

    return Plan(cases, claims, partial(_draw, ways))


def _dual_claims(rows: list[Row], ways: Sequence[str], way: str) -> list[Claim]:
    """What two coupled queues should have: shares as one queue with the same law, and a short L queue."""

    def each(name: str, control: str, column: str) -> dict[str, float]:
        return medians([row for row in of(rows, control) if row["way"] == name], column, where)

    text = WAYS[way].text
    cubic, prague = (each(way, control, "goodput_mbps") for control in ("cubic", "prague"))
    out = [
        between(
            f"{way}-share",
            "ours",
            f"{text}: a CUBIC flow has 0.5 to 2 times what a Prague flow has",
            {at: rate / prague[at] for at, rate in cubic.items()},
            0.5,
            2.0,
            why=WHY_SHARE,
        )
    ]
    single = [name for name in ways if name in BASELINES and name != "step"]
    own = each(way, "prague", "delay_ms_p99")
    if single:
        least = {at: min(each(name, "prague", "delay_ms_p99")[at] for name in single) for at in own}
        statement = f"{text}: the p99 of Prague's delay is below that of each queue without ECN"
        ratio = {at: delay / max(least[at], 1e-6) for at, delay in own.items()}
        out.append(between(f"{way}-delay", "ours", statement, ratio, 0.0, 1.0, why=WHY_DELAY))
    if "fq_codel" in ways:
        ours, theirs = (
            {at: abs(error) for at, error in each(name, "cubic", "error_mean").items()}
            for name in (way, "fq_codel")
        )
        statement = f"{text}: CUBIC's absolute error is at most 0.05 above FQ-CoDel's"
        more = {at: error - theirs[at] for at, error in ours.items()}
        out.append(between(f"{way}-isolated", "ours", statement, more, -1.0, 0.05, why=WHY_ISOLATED))
    return out


def _draw(ways: Sequence[str], runs: list[Run]) -> Figure:
    """Goodput of CUBIC over Prague's above, p99 of the delays of both below, of whole runs; a column for each mix."""
    rows = [row for row in all_rows(runs) if row["window"] == WHOLE]
    mixes = list(dict.fromkeys((row["classic"], row["l4s"]) for row in rows))
    places = list(dict.fromkeys((row["capacity_mbps"], row["base_rtt_ms"]) for row in rows))
    figure = Figure(figsize=(1.5 + 3.2 * len(mixes), 8), layout="constrained")
    panels = figure.subplots(2, len(mixes), squeeze=False, sharex=True, sharey="row")
    at = range(len(ways))
    for column, (classic, l4s) in enumerate(mixes):
        upper, lower = panels[0][column], panels[1][column]
        for number, (capacity, rtt) in enumerate(places):
            marker = "osD^v"[number % 5]
            label = f"{capacity} Mbit/s, {rtt:g} ms"

            def line(
                control: str, quantity: str, cell: tuple[object, ...] = (classic, l4s, capacity, rtt)
            ) -> list[float]:
                own = [
                    row
                    for row in of(rows, control)
                    if (row["classic"], row["l4s"], row["capacity_mbps"], row["base_rtt_ms"]) == cell
                ]
                values = medians(own, quantity, lambda row: str(row["way"]))
                return [values[way] for way in ways]

            ratio = [
                a / max(b, 1e-6)
                for a, b in zip(line("cubic", "goodput_mbps"), line("prague", "goodput_mbps"), strict=True)
            ]
            upper.plot(at, ratio, marker, color="0.2", fillstyle="none" if number else "full", label=label)
            for control, name, shift in (("cubic", "CUBIC", -0.15), ("prague", "Prague", 0.15)):
                lower.plot(
                    [place + shift for place in at],
                    line(control, "delay_ms_p99"),
                    marker,
                    color=colour(control),
                    fillstyle="none" if number else "full",
                    label=f"{name}, {label}",
                )
        upper.axhline(1, color="0.5", linestyle=":")
        upper.set(title=f"{classic} of CUBIC, {l4s} of Prague")
        log_scale(upper)
        log_scale(lower)
        lower.set_xticks(at, [SHORT.get(way, way) for way in ways], rotation=60, ha="right", fontsize="small")
        for panel, ticks in ((upper, (0.1, 0.2, 0.5, 1, 2, 5)), (lower, (0.1, 0.3, 1, 3, 10, 30, 100, 300))):
            panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
            panel.minorticks_off()
        for panel in (upper, lower):
            panel.grid(alpha=0.3)
    panels[0][0].set_ylabel("goodput, CUBIC flow over Prague flow")
    panels[1][0].set_ylabel("p99 of the queue delay (ms)")
    both = [panel.get_legend_handles_labels() for panel in (panels[0][0], panels[1][0])]
    lines = [line for of in both for line in of[0]]
    labels = [label for of in both for label in of[1]]
    figure.legend(lines, labels, fontsize="small", loc="outside lower center", ncols=6)
    figure.suptitle("CUBIC beside Prague, by the kind of queue that they share; dotted: equal goodput")
    return figure
