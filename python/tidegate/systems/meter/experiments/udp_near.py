"""UDP near its rate, from below and above (section I of the paper: a UDP flow's rate is very close to the meter's, without data)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians, most
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.measures import last
from tidegate.papers import of_run
from tidegate.plots import all_rows, whiskers
from tidegate.results import Result
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.experiments.testbed import (
    SCHEMES,
    Seconds,
    history,
    meters_of,
    star,
)

LEVELS = [name for name in SCHEMES if name != "shaper"]
"""A shaper queues; there is no port of it here."""


@experiment(
    "meter.udp_near",
    ("scheme", "pattern", "target_mbps", "offered", "goodput_error", "relative_error", "loss"),
    quick={"duration_s": 20, "rates_mbps": (100,), "offered": (0.95, 1.0, 1.05)},
)
def udp_near(
    offered: Annotated[tuple[float, ...], AtLeast(0.001, 1000)] = (
        0.8,
        0.9,
        0.95,
        0.98,
        1.0,
        1.02,
        1.05,
        1.1,
        1.25,
    ),
    rates_mbps: tuple[int, ...] = (100, 400),
    patterns: Annotated[tuple[str, ...], OneOf(("constant", "poisson"))] = ("constant", "poisson"),
    schemes: Annotated[tuple[str, ...], OneOf(LEVELS)] = ("plain", "rfc2698", "paper-unbounded", "fair"),
    base_rtt_ms: float = 1.0,
    duration_s: Seconds = 60,
) -> Plan:
    """UDP at 0.8 to 1.25 times its rate through each meter: passed rate and loss (section I)."""

    def measure(scheme: str, pattern: str, rate: int, share: float) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            passed = history(result.notes, 0)
            flow = result.flows.row(0, named=True)
            # As an ideal meter would pass of it, IP bytes.
            ideal = min(share, 1) * rate
            return {
                "scheme": scheme,
                "pattern": pattern,
                "target_mbps": rate,
                "offered": share,
                "achieved_mbps": passed.mbps(),
                "goodput_mbps": flow["goodput_mbps"],
                "relative_error": passed.mbps() / ideal - 1,
                "goodput_error": flow["goodput_mbps"] / ideal - 1,
                "excess_10_s": float(passed.windows_mbps(10).max()) / rate - 1,
                "drops": last(result.notes, "meter_0_dropped_packets"),
                "loss": last(result.notes, "meter_0_dropped_packets") / flow["datagrams_sent"],
            }

        return row

    def case(scheme: str, pattern: str, rate: int, share: float) -> Case:
        lab = star(base_rtt_ms, data_plane=SCHEMES[scheme].data_plane)
        net, (a, b) = lab.network, lab.hosts
        flow = net.udp(a, b, rate=round(share * rate * 1_000_000), pattern=pattern)
        lab.meter(meters_of(net, [flow], [rate]), scheme)
        name = f"{scheme}-{pattern}-{rate}-{share:g}"
        return Case(name, net, f"{duration_s} s", measure(scheme, pattern, rate, share))

    def claims(rows: list[Row]) -> list[Claim]:
        def label(row: Row) -> str:
            return f"{row['scheme']}, {row['pattern']}, {row['target_mbps']} Mbit/s, {row['offered']:g} x"

        out = of_run(CLAIMS, "meter.udp_near", rows, {"duration_s": duration_s})
        below = [row for row in rows if row["offered"] <= 1 and row["pattern"] == "constant"]
        if below:
            statement = "a constant rate up to the target passes whole"
            values = most(below, "loss", label)
            out.append(between("whole", "ours", statement, values, 0.0, 0.0))
        above = [row for row in rows if row["offered"] > 1 and row["scheme"] != "paper-unbounded"]
        if above:
            excess = medians(above, "relative_error", label)
            statement = "above the target within 2 % of it, IP bytes, the bucket at the start included"
            why = (
                "a burst passes once, of up to 1.05 s of the rate behind the fair meter, which a minute holds 1.7 % of; Poisson arrivals "
                "close to the rate leave tokens unused that a bucket of 128 KiB does not keep"
            )
            out.append(between("held", "ours", statement, excess, -0.02, 0.02, why=why, form=Percents()))
        return out

    def draw(runs: list[Run]) -> Figure:
        rows = all_rows(runs)
        figure = Figure(figsize=(1.5 + 3.4 * len(rates_mbps), 1 + 2.8 * len(patterns)), layout="constrained")
        panels = figure.subplots(len(patterns), len(rates_mbps), squeeze=False, sharex=True, sharey=True)
        for line, pattern in zip(panels, patterns, strict=True):
            for panel, rate in zip(line, rates_mbps, strict=True):
                for place, scheme in enumerate(schemes):
                    some = [
                        row
                        for row in rows
                        if (row["scheme"], row["pattern"], row["target_mbps"]) == (scheme, pattern, rate)
                    ]
                    got = medians(some, "achieved_mbps", lambda row: str(row["offered"]))
                    panel.plot(
                        [float(at) for at in got],
                        [100 * (value / rate / min(float(at), 1) - 1) for at, value in got.items()],
                        color=SCHEMES[scheme].colour,
                        marker=SCHEMES[scheme].marker,
                        # Those that coincide stay visible: the first are the widest.
                        markersize=4 + 2 * (len(schemes) - 1 - place),
                        linewidth=1.2 + 1.5 * (len(schemes) - 1 - place),
                        label=SCHEMES[scheme].text,
                    )
                    whiskers(
                        panel,
                        some,
                        "achieved_mbps",
                        lambda row: str(row["offered"]),
                        colour=SCHEMES[scheme].colour,
                        scale={at: 100 / rate / min(float(at), 1) for at in got},
                        offset=-100,
                    )
                panel.axhline(0, linestyle=":", color="0.4")
                panel.axvline(1, linestyle=":", color="0.4")
                panel.set(title=f"{pattern}, {rate} Mbit/s")
                panel.grid(alpha=0.3)
            line[0].set_ylabel("passed, beside an ideal meter (%)")
        for panel in panels[-1]:
            panel.set_xlabel("offered rate / target rate")
        panels[0][0].legend(loc="best", fontsize="x-small")
        figure.suptitle(f"UDP near the rate of its meter, mean of {duration_s} s, IP bytes")
        return figure

    cells = [
        (scheme, pattern, rate, share)
        for scheme in schemes
        for pattern in patterns
        for rate in rates_mbps
        for share in offered
    ]
    return Plan([case(*cell) for cell in cells], claims, draw)
