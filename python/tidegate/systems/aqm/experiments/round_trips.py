"""RTTs of 5 to 100 ms in one queue."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import Case, Number, Plan, Run, experiment
from tidegate.measures import goodputs_mbps
from tidegate.plots import all_rows, colour, whiskers
from tidegate.results import Result
from tidegate.systems.aqm.experiments.measuring import rows_of
from tidegate.systems.aqm.experiments.testbed import (
    WAYS,
    Bottleneck,
    Ways,
    bottleneck,
    classic_flows,
    l4s_flows,
)

WHY_ROUND_TRIPS = (
    "a CUBIC flow's RTT includes the C queue's delay, and Prague acts as if its RTT were at least 25 ms, so the ratio depends on the "
    "base RTT"
)

WHY_INDEPENDENT = (
    "a run of 24 s is short: the ratio is 0.77 to 0.87 there, and 0.81 to 0.83 in 90 s (four seeds, both DualPI2); that it is below 1 "
    "is not explained"
)


def of_many_rtts(way: str, capacity_mbps: int, rtts_ms: Sequence[float], flows: int) -> Bottleneck:
    """Flows of both kinds at each RTT; the delay above the shortest RTT is added at the source."""
    shortest = min(rtts_ms)
    lab = bottleneck(way, capacity_mbps, shortest)
    for rtt in rtts_ms:
        extra = round((rtt - shortest) * 1e9)
        classic_flows(lab, flows, extra_delay=extra)
        l4s_flows(lab, flows, extra_delay=extra)
    lab.network.record("500 ms", queues=[lab.link])
    return lab


def _rtt_rows(
    lab: Bottleneck, about: Row, rtts_ms: Sequence[float], flows: int, duration_s: int, result: Result
) -> list[Row]:
    begin = duration_s / 3
    fair = sum(goodputs_mbps(result, begin, duration_s).values()) / (2 * flows * len(rtts_ms))
    rows = []
    for number, rtt in enumerate(rtts_ms):
        own = set(range(2 * flows * number, 2 * flows * (number + 1)))
        for row in rows_of(result, lab, {**about, "base_rtt_ms": rtt}, begin, duration_s, flows=own):
            rows.append({**row, "of_fair": row["goodput_mbps"] / fair})
    return rows


@experiment(
    "aqm.rtts",
    ("case", "base_rtt_ms", "control", "goodput_mbps", "of_fair", "delay_ms_mean"),
    also="aqm.round_trips",
    quick={"duration_s": 24},
)
def rtts(
    ways: Ways = ("pi2", "dualpi2", "rfc"),
    capacity_mbps: int = 200,
    rtts_ms: tuple[float, ...] = (5.0, 10.0, 20.0, 50.0, 100.0),
    flows: Number = 2,
    duration_s: int = 90,
) -> Plan:
    """CUBIC and Prague with base RTTs from 5 to 100 ms in one queue."""
    cases = []
    for way in ways:
        lab = of_many_rtts(way, capacity_mbps, rtts_ms, flows)
        measure = partial(_rtt_rows, lab, {"capacity_mbps": capacity_mbps}, rtts_ms, flows, duration_s)
        cases.append(Case(way, lab.network, f"{duration_s} s", measure))

    def claims(rows: list[Row]) -> list[Claim]:
        out = []
        for way in ways:
            own = [row for row in rows if row["way"] == way]
            of_fair = {
                control: medians(
                    [row for row in own if row["control"] == control],
                    "of_fair",
                    lambda row: f"{row['base_rtt_ms']:g} ms",
                )
                for control in ("cubic", "prague")
            }
            ratios = {name: value / of_fair["prague"][name] for name, value in of_fair["cubic"].items()}
            text = WAYS[way].text
            statement = (
                f"{text}: a CUBIC flow gets 0.5 to 2 times what a Prague flow with the same base RTT gets"
            )
            out.append(between(f"{way}-coexist", "ours", statement, ratios, 0.5, 2.0, why=WHY_ROUND_TRIPS))
            # Behind a classic queue no round trip is that short.
            if WAYS[way].queues == 2 and {"5 ms", "20 ms"} <= set(of_fair["prague"]):
                ratio = {"5 ms over 20 ms": of_fair["prague"]["5 ms"] / of_fair["prague"]["20 ms"]}
                statement = (
                    f"{text}: below 25 ms, the rate of Prague flows does not depend on the RTT: 0.8 to 1.25"
                )
                out.append(
                    between(
                        f"{way}-independent",
                        "standard",
                        statement,
                        ratio,
                        0.8,
                        1.25,
                        published="RFC 9331, section 4.3",
                        why=WHY_INDEPENDENT,
                    )
                )
        return out

    return Plan(cases, claims, partial(_draw_rtts, ways))


def _draw_rtts(ways: Sequence[str], runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    figure = Figure(figsize=(1 + 3.6 * len(ways), 3.8), layout="constrained")
    panels = figure.subplots(1, len(ways), squeeze=False, sharey=True)[0]
    ticks = sorted({row["base_rtt_ms"] for row in rows})
    for way, panel in zip(ways, panels, strict=True):
        for control, name in (("cubic", "CUBIC"), ("prague", "Prague")):
            own = [row for row in rows if row["way"] == way and row["control"] == control]
            values = medians(own, "of_fair", lambda row: str(row["base_rtt_ms"]))
            panel.plot(
                [float(at) for at in values], list(values.values()), "o-", color=colour(control), label=name
            )
            whiskers(panel, own, "of_fair", lambda row: str(row["base_rtt_ms"]), colour=colour(control))
        panel.axhline(1, color="0.5", linestyle=":")
        panel.set(title=WAYS[way].text, xlabel="base RTT (ms)", xscale="log", ylim=(0, None))
        panel.set_xticks(ticks, [f"{rtt:g}" for rtt in ticks])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("goodput of a flow (fair share = 1)")
    panels[0].legend(fontsize="x-small")
    return figure
