"""UDP through a meter: limited to the rate above it, without loss below it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians, most
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.measures import last
from tidegate.plots import all_rows, whiskers
from tidegate.results import Result
from tidegate.systems.meter.controller import Meter
from tidegate.systems.meter.experiments.testbed import (
    SCHEMES,
    SETTLED_S,
    Ours,
    Seconds,
    history,
    star,
)


@experiment("meter.udp", backends=("sim", "live"), quick={"duration_s": 30})
def udp(
    target_mbps: int = 100,
    offered: Annotated[tuple[float, ...], AtLeast(0.001, 1000)] = (0.5, 0.9, 1.1, 2.0, 10.0),
    patterns: Annotated[tuple[str, ...], OneOf(("constant", "poisson", "on-off"))] = (
        "constant",
        "poisson",
        "on-off",
    ),
    schemes: Ours = ("plain", "paper", "fair"),
    duration_s: Seconds = 60,
) -> Plan:
    """UDP through each meter: limited to the rate above it, without loss below it."""

    def measure(scheme: str, pattern: str, share: float) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            passed = history(result.notes, 0)
            settled = min(SETTLED_S, float(passed.time_s[-1]) / 2)
            flow = result.flows.row(0, named=True)
            sent = flow["datagrams_sent"]
            return {
                "scheme": scheme,
                "pattern": pattern,
                "target_mbps": target_mbps,
                "offered": share,
                "offered_mbps": share * target_mbps,
                "achieved_mbps": passed.mbps(settled),
                "relative_error": passed.mbps(settled) / target_mbps - 1,
                "excess_10_s": float(passed.windows_mbps(10, settled).max()) / target_mbps - 1,
                "drops": last(result.notes, "meter_0_dropped_packets"),
                "loss": last(result.notes, "meter_0_dropped_packets") / sent if sent else 0.0,
            }

        return row

    def case(scheme: str, pattern: str, share: float) -> Case:
        lab = star(1.0, data_plane=SCHEMES[scheme].data_plane)
        net, (a, b) = lab.network, lab.hosts
        # On half of the time: twice the rate then.
        rate = round(share * target_mbps * 1_000_000 * (2 if pattern == "on-off" else 1))
        flow = net.udp(a, b, rate=rate, pattern=pattern, on="100 ms", off="100 ms")
        lab.meter([Meter(0, target_mbps * 1_000_000, (net.five_tuple(flow),))], scheme)
        return Case(f"{scheme}-{pattern}-{share:g}", net, f"{duration_s} s", measure(scheme, pattern, share))

    def claims(rows: list[Row]) -> list[Claim]:
        def label(row: Row) -> str:
            return f"{SCHEMES[row['scheme']].text}, {row['pattern']}, {row['offered']:g} x"

        above = [row for row in rows if row["offered"] > 1 and not row["scheme"].startswith("paper")]
        below = [row for row in rows if row["offered"] < 1 and (row["pattern"] == "constant")]
        # Of what was asked for: `offered` may have one side alone.
        out = []
        if above:
            excess = most(above, "excess_10_s", label)
            statement = "all but the paper's: never more than 5 % above the target over any 10 s"
            why = "a burst of 1.05 s of the rate, filled while the sender is silent, passes in addition"
            out.append(between("held", "ours", statement, excess, -1, 0.05, why=why, form=Percents()))
        if below:
            loss = most(below, "loss", label)
            statement = "a constant rate below the target passes whole"
            out.append(between("whole", "ours", statement, loss, 0.0, 0.0, form=Percents()))
        return out

    def draw(runs: list[Run]) -> Figure:
        rows = all_rows(runs)
        figure = Figure(figsize=(1 + 3.2 * len(patterns), 3.6), layout="constrained")
        panels = figure.subplots(1, len(patterns), squeeze=False, sharey=True)[0]
        for panel, pattern in zip(panels, patterns, strict=True):
            panel.plot(
                offered, [min(share, 1) for share in offered], linestyle=":", color="0.4", label="ideal"
            )
            for place, scheme in enumerate(schemes):
                some = [row for row in rows if row["scheme"] == scheme and row["pattern"] == pattern]
                got = medians(some, "achieved_mbps", lambda row: str(row["offered"]))
                panel.plot(
                    [float(at) for at in got],
                    [value / target_mbps for value in got.values()],
                    color=SCHEMES[scheme].colour,
                    marker=SCHEMES[scheme].marker,
                    # Those that coincide stay visible: the first are the widest.
                    markersize=4 + 2 * (len(schemes) - 1 - place),
                    linewidth=1.5 + 1.5 * (len(schemes) - 1 - place),
                    label=SCHEMES[scheme].text,
                )
                whiskers(
                    panel,
                    some,
                    "achieved_mbps",
                    lambda row: str(row["offered"]),
                    colour=SCHEMES[scheme].colour,
                    scale=1 / target_mbps,
                )
            panel.set(
                xscale="log", title=pattern.capitalize(), xlabel="offered rate / target rate", ylim=(0, None)
            )
            panel.set_xticks(offered, [f"{share:g}" for share in offered], rotation=60, fontsize="small")
            panel.minorticks_off()
            panel.grid(alpha=0.3)
        panels[0].set_ylabel("passed rate / target rate")
        panels[0].set_ylim(0, 1.05 * panels[0].get_ylim()[1])
        panels[0].legend(loc="lower right", fontsize="small")
        figure.suptitle(f"UDP through a meter of {target_mbps} Mbit/s")
        return figure

    cells = [(scheme, pattern, share) for scheme in schemes for pattern in patterns for share in offered]
    return Plan([case(*cell) for cell in cells], claims, draw)
