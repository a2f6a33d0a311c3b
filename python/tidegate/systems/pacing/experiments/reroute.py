"""Flows that are moved to another link and back, which the paper leaves for later: shares go along with the first packet."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, Unit, between, medians, medians_of_times
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Plan, Run, experiment
from tidegate.network import Network, Node
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.join import PAYLOAD, in_force_ms
from tidegate.systems.pacing.experiments.star import draw_rates, goodput_of
from tidegate.systems.pacing.setup import paced, pacing

FLOWS = 4
AWAY_S, BACK_S, END_S = 3.0, 6.0, 9.0
SETTLE_S = 1.0


class Rerouter(Controller):
    """Moves the servers that are reached by the second link to the first, and back."""

    period = "10 ms"

    def __init__(self, network: Network, servers: list[Node]) -> None:
        self._addresses = {int(network.mac(server).replace(":", ""), 16) for server in servers}
        self._moved: dict[int, int] = {}

    def start(self, switch: SwitchApi) -> None:
        """Nothing has moved."""
        self._moved.clear()

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Move them at their times."""
        if AWAY_S * units.PS_PER_S <= now < BACK_S * units.PS_PER_S and not self._moved:
            for entry in switch.table_entries("forward"):
                if entry.match[0].value in self._addresses and entry.values == (1,):
                    self._moved[entry.handle] = 1
                    switch.table_modify("forward", entry.handle, "to_port", [0])
        elif now >= BACK_S * units.PS_PER_S and self._moved:
            for handle, port in self._moved.items():
                switch.table_modify("forward", handle, "to_port", [port])
            self._moved.clear()


@experiment(
    "pacing.reroute",
    ("span", "fair_mbps", "largest_off", "in_force_ms", "retransmits"),
    quick={"delay_ms": 2.0},
)
def reroute(
    first_mbps: Annotated[float, AtLeast(1.0)] = 60.0,
    second_mbps: Annotated[float, AtLeast(1.0)] = 40.0,
    delay_ms: Annotated[float, AtLeast(0.01)] = 5.0,
) -> Plan:
    """Four flows over two links; the two of the second are moved to the first at 3 s, and back at 6 s."""
    network = Network()
    near, far = pacing(network, "near"), pacing(network, "far")
    for rate in (first_mbps, second_mbps):
        network.link(near, far, rate=round(rate * 1e6), delay=f"{delay_ms} ms", queue="64 packets")
    sources = [network.host(f"source{number + 1}") for number in range(FLOWS)]
    servers = [network.host(f"target{number + 1}") for number in range(FLOWS)]
    for hosts, switch in ((sources, near), (servers, far)):
        for host in hosts:
            network.link(host, switch, rate="1 Gbit/s", delay="10 us", queue="1000 packets")
    for number, (source, target) in enumerate(zip(sources, servers, strict=True)):
        paced(network, source)
        network.tcp(source, target, start=f"{100 * number} ms")
    network.control(Rerouter(network, servers), near)
    network.record("50 ms")
    measure = partial(_rows, network, (first_mbps, second_mbps))
    return Plan(
        [Case("reroute", network, f"{round(END_S * 1000)} ms", measure)], partial(_claims, delay_ms), _draw
    )


def _rows(network: Network, rates_mbps: tuple[float, float], result: Result) -> list[Row]:
    agents = [attached.agent for attached in network.agents if isinstance(attached.agent, PacingAgent)]
    given = [rate * (1 - RESERVE) * PAYLOAD for rate in rates_mbps]
    ports = _ports(network)
    rows = []
    spans = {"before": (1.0, AWAY_S), "away": (AWAY_S, BACK_S), "back": (BACK_S, END_S)}
    for name, (begin, end) in spans.items():
        there = [0] * FLOWS if name == "away" else ports
        fair = [given[port] / there.count(port) for port in there]
        found = goodput_of(result, FLOWS, begin + (SETTLE_S if name != "before" else 0.0), end)
        off = [float(rate) / share - 1 for rate, share in zip(found, fair, strict=True)]
        rows.append(
            {
                "span": name,
                "fair_mbps": min(fair),
                "largest_off": max(off, key=abs),
                "in_force_ms": None
                if name == "before"
                else in_force_ms(agents, dict(enumerate(fair)), begin, end),
                "retransmits": int(result.flows["retransmits"].sum()),
            }
        )
    return rows


def _ports(network: Network) -> list[int]:
    """The link of each flow: hosts take turns at them, as `setup.forwarding` says."""
    hosts = [node for node in network.nodes if node.kind == "host"]
    return [hosts.index(flow.target) % 2 for flow in network.flows]


def _claims(delay_ms: float, rows: list[Row]) -> list[Claim]:
    off = medians(rows, "largest_off", _span)
    times = medians_of_times([row for row in rows if row["span"] != "before"], "in_force_ms", _span)
    return [
        between(
            "shares",
            "ours",
            "A second after a move each flow has its fair rate within 2 %",
            off,
            -0.02,
            0.02,
            form=Percents(),
        ),
        between(
            "in-force",
            "ours",
            "Rates stay within 2 % from a round trip and 10 ms after a move on",
            times,
            high=2 * delay_ms + 10.0,
            why="a burst of two links' packets makes a queue, which drains",
            form=Unit("ms"),
        ),
    ]


def _span(row: Row) -> str:
    return str(row["span"])


def _draw(runs: list[Run]) -> Figure:
    """Goodput over time."""
    shown = of_first_seed(runs)
    figure = Figure(figsize=(8, 3.8), layout="constrained")
    panel = figure.subplots()
    draw_rates(panel, shown[0], [f"flow {n + 1}" for n in range(FLOWS)], END_S)
    for time in (AWAY_S, BACK_S):
        panel.axvline(time, color="0.5", linestyle=":")
    panel.set_title("all flows on the first link between the dotted lines")
    return figure
