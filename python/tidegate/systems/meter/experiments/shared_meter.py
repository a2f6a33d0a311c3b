"""Several flows in one meter: their total rate and their fairness."""

from __future__ import annotations

from collections.abc import Callable

from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import Case, Numbers, Plan, Run, experiment
from tidegate.measures import last
from tidegate.plots import all_rows
from tidegate.results import Result, jain
from tidegate.systems.meter.controller import Meter
from tidegate.systems.meter.experiments.testbed import SCHEMES, SETTLED_S, Ours, Seconds, history, star

SECOND = units.PS_PER_S
WHY_FEW = "not explained"


@experiment("meter.shared", quick={"duration_s": 30, "numbers": (1, 2, 4, 16)}, also="meter.shared_meter")
def shared(
    numbers: Numbers = (1, 2, 4, 16, 64),
    target_mbps: int = 400,
    base_rtts_ms: tuple[float, ...] = (0.1, 1.0, 10.0),
    schemes: Ours = ("plain", "paper", "default"),
    duration_s: Seconds = 60,
) -> Plan:
    """Several flows in one meter: their total rate and their fairness."""

    def measure(scheme: str, rtt: float, number: int) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            passed = history(result.notes, 0)
            settled = min(SETTLED_S, float(passed.time_s[-1]) / 2)
            return {
                "scheme": scheme,
                "base_rtt_ms": rtt,
                "target_mbps": target_mbps,
                "flows": number,
                "achieved_mbps": passed.mbps(settled),
                "relative_error": passed.mbps(settled) / target_mbps - 1,
                "jain": jain(result.goodput_mbps(settled)["goodput_mbps"]),
                "drops": last(result.notes, "meter_0_dropped_packets"),
                "ce_marks": last(result.notes, "meter_0_marked_packets"),
                "timeouts": int(result.flows["timeouts"].sum()),
            }

        return row

    def case(scheme: str, rtt: float, number: int) -> Case:
        lab = star(rtt)
        net, (a, b) = lab.network, lab.hosts
        flows = [
            net.tcp(a, b, congestion_control="cubic", ecn="on", start=i * SECOND // number)
            for i in range(number)
        ]
        lab.meter([Meter(0, target_mbps * 1_000_000, tuple(map(net.five_tuple, flows)))], scheme)
        net.record("1 s")
        return Case(f"{scheme}-{rtt:g}ms-{number}", net, f"{duration_s} s", measure(scheme, rtt, number))

    def claims(rows: list[Row]) -> list[Claim]:
        ours = [row for row in rows if row["scheme"] == "default"]
        if not ours:
            return []

        def label(row: Row) -> str:
            return f"{row['flows']} flows, {row['base_rtt_ms']:g} ms"

        return [
            between(
                "rate",
                "ours",
                "friendly: all flows together at most 5 % from the target",
                medians(ours, "relative_error", label),
                -0.05,
                0.05,
                why=WHY_FEW,
                form=Percents(),
            ),
            between(
                "fair",
                "ours",
                "friendly: Jain's index at least 0.8 (in percent of 1)",
                medians(ours, "jain", label),
                0.8,
                why="a meter has one bucket for all its flows, and no mechanism for fairness between them",
                form=Percents(),
            ),
        ]

    def draw(runs: list[Run]) -> Figure:
        rows = all_rows(runs)
        figure = Figure(figsize=(1 + 3.2 * len(base_rtts_ms), 6), layout="constrained")
        panels = figure.subplots(2, len(base_rtts_ms), squeeze=False, sharex=True, sharey="row")
        for rtt, upper, lower in zip(base_rtts_ms, panels[0], panels[1], strict=True):
            for scheme in schemes:
                some = [row for row in rows if row["scheme"] == scheme and row["base_rtt_ms"] == rtt]
                for panel, column in ((upper, "achieved_mbps"), (lower, "jain")):
                    got = medians(some, column, lambda row: str(row["flows"]))
                    panel.plot(
                        [int(at) for at in got],
                        list(got.values()),
                        color=SCHEMES[scheme].colour,
                        marker=SCHEMES[scheme].marker,
                        markersize=4,
                        label=SCHEMES[scheme].text,
                    )
            upper.axhline(target_mbps, linestyle=":", color="0.4", label="target")
            upper.set(title=f"base RTT {rtt:g} ms", ylim=(0, 1.15 * target_mbps))
            lower.set(xscale="log", xlabel="flows in the meter", ylim=(0, 1.05))
            lower.set_xticks(numbers, [str(number) for number in numbers])
            lower.minorticks_off()
            for panel in (upper, lower):
                panel.grid(alpha=0.3)
        panels[0][0].set_ylabel("rate of all flows, IP bytes (Mbit/s)")
        panels[1][0].set_ylabel("Jain's index")
        panels[0][0].legend(loc="lower right", fontsize="small")
        figure.suptitle(f"CUBIC flows that share a meter of {target_mbps} Mbit/s")
        return figure

    cells = [(scheme, rtt, number) for rtt in base_rtts_ms for scheme in schemes for number in numbers]
    return Plan([case(*cell) for cell in cells], claims, draw)
