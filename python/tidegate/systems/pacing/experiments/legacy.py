"""Plain routers on the way (the paper's abstract: not all switches need be programmable), and ones that drop packets with options."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, furthest
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.join import PAYLOAD
from tidegate.systems.pacing.experiments.star import draw_rates, goodput_of
from tidegate.systems.pacing.setup import paced, pacing

FLOWS = 4
WARM_UP_S = 1.5
AT = {0: "none", 1: "before it", 2: "before and behind it"}
"""Plain routers, and where they are."""


@experiment(
    "pacing.legacy", ("routers", "flow", "goodput_mbps", "of_fair", "retransmits"), quick={"duration_s": 4.0}
)
def legacy(
    routers: Annotated[tuple[int, ...], OneOf((0, 1, 2))] = (0, 1, 2),
    rate_mbps: Annotated[float, AtLeast(1.0)] = 100.0,
    duration_s: Annotated[float, AtLeast(3.0)] = 8.0,
) -> Plan:
    """Four paced flows through a pacing switch with no, one or two plain routers beside it on the way."""
    cases = []
    for count in routers:
        network = Network()
        chain = [network.router("first")] if count > 0 else []
        switch = pacing(network, "switch")
        chain.append(switch)
        chain += [network.router("second")] if count > 1 else []
        server = network.host("server")
        for a, b in zip(chain, [*chain[1:], server], strict=True):
            rate = round(rate_mbps * 1e6) if a is switch else "1 Gbit/s"
            network.link(a, b, rate=rate, delay="5 ms", queue="64 packets")
        for number in range(FLOWS):
            host = network.host(f"host{number + 1}")
            network.link(host, chain[0], rate="1 Gbit/s", delay="10 us", queue="1000 packets")
            paced(network, host)
            network.tcp(host, server, start=f"{100 * number} ms")
        network.record("50 ms")
        measure = partial(_rows, count, rate_mbps, duration_s)
        cases.append(Case(f"{count}-routers", network, f"{round(duration_s * 1000)} ms", measure))
    return Plan(cases, _claims, partial(_draw, duration_s))


def _rows(count: int, rate_mbps: float, duration_s: float, result: Result) -> list[Row]:
    fair = rate_mbps * (1 - RESERVE) * PAYLOAD / FLOWS
    rates = goodput_of(result, FLOWS, WARM_UP_S, duration_s)
    retransmits = result.flows["retransmits"].to_list()
    return [
        {
            "routers": count,
            "flow": flow + 1,
            "goodput_mbps": float(rates[flow]),
            "of_fair": float(rates[flow]) / fair,
            "retransmits": int(retransmits[flow]),
        }
        for flow in range(FLOWS)
    ]


def _claims(rows: list[Row]) -> list[Claim]:
    off = furthest(
        rows,
        lambda row: float(row["of_fair"]) - 1,
        lambda row: f"{row['routers']} routers, flow {row['flow']}",
    )
    return [
        between(
            "legacy",
            "ours",
            "Plain routers on the way change no flow's rate by more than 1 %",
            off,
            -0.01,
            0.01,
            form=Percents(),
        )
    ]


def _draw(duration_s: float, runs: list[Run]) -> Figure:
    """Goodput over time."""
    shown = of_first_seed(runs)
    figure = Figure(figsize=(4.5 * len(shown), 3.6), layout="constrained")
    for panel, run in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        draw_rates(panel, run, [f"flow {n + 1}" for n in range(FLOWS)], duration_s)
        panel.set_title(f"plain routers: {AT[(run.rows or [{}])[0].get('routers', 0)]}")
    return figure
