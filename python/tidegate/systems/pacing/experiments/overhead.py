"""What it costs to tell all hosts of a change: notices, their bytes, and the time until all flows have the rate that follows from it.

The paper says that its packets are little overhead. How much they are depends on the flows of a link and on how often one joins.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, most
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows, log_scale
from tidegate.results import Result
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.claims import judged
from tidegate.systems.pacing.controller import ManagedLink
from tidegate.systems.pacing.experiments.join import PAYLOAD, in_force_ms
from tidegate.systems.pacing.format import number as unpacked
from tidegate.systems.pacing.format import packed
from tidegate.systems.pacing.setup import paced, pacing

HOSTS = 10
RATE_GBPS = 10.0
RTT_MS = 10.0
SPREAD_S = 0.5
"""In which the flows begin."""
FIRST_S = 1.5
JOINS = 5
APART_S = 0.2
NOTICE_BYTES = 66
"""Of a notice's frame, and of its answer's."""
CHANGES_PER_S = 10.0
"""Of which the part of the link is said."""
NEAR = 1e-4
"""How far off a rate may be: less than the step between two numbers of the option."""
OUT = 0


class Count(Controller):
    """Notes the notices of the bottleneck's flows."""

    period = "10 ms"

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note them."""
        switch.note("notices", float(switch.counter_read("notices", OUT, 1)[0, 0]))


@experiment(
    "pacing.overhead",
    ("notices_by", "flows", "hosts", "notices_per_change", "bytes_per_change", "of_link", "in_force_ms"),
    quick={"flows": (4, 100)},
)
def overhead(
    flows: Annotated[tuple[int, ...], AtLeast(1, 65_536)] = (4, 100, 1000, 10_000),
    notices_by: Annotated[tuple[str, ...], OneOf(("host", "flow"))] = ("host", "flow"),
) -> Plan:
    """Flows of ten hosts over 10 Gbit/s, and five that join: what is sent for each of them."""
    cases = []
    for by in notices_by:
        for count in flows:
            network, agents = _network(by, count)
            until_ms = round(1000 * (FIRST_S + JOINS * APART_S))
            cases.append(Case(f"{by}-{count}", network, f"{until_ms} ms", partial(_row, by, count, agents)))
    return Plan(cases, _claims, _draw)


def _network(by: str, flows: int) -> tuple[Network, list[PacingAgent]]:
    network = Network()
    switch = pacing(network, "switch", notices_by=by)
    network.control(Count(), switch)
    server = network.host("server")
    delay = f"{round(1000 * RTT_MS / 2)} us"
    network.link(switch, server, rate=f"{RATE_GBPS} Gbit/s", delay=delay, queue="2000 packets")
    hosts, agents = [], []
    for number in range(HOSTS + 1):
        host = network.host(f"host{number + 1}")
        network.link(host, switch, rate="25 Gbit/s", delay="10 us", queue="1000 packets")
        hosts.append(host)
        agents.append(paced(network, host, lends=False))
    for number in range(flows):
        start = round(1e12 * SPREAD_S * number / flows)
        network.tcp(hosts[number % HOSTS], server, start=start)
    for join in range(JOINS):
        network.tcp(hosts[HOSTS], server, start=round(1e12 * (FIRST_S + join * APART_S)))
    return network, agents


def fair_mbps(flows: int) -> float:
    """A flow's payload where so many share the link, as the option's rounded numbers tell it."""
    rate = unpacked(packed(ManagedLink(f"{RATE_GBPS} Gbit/s", 1).kbps()))
    return rate / 1e3 / unpacked(packed(flows, up=True)) * PAYLOAD


def _row(by: str, flows: int, agents: list[PacingAgent], result: Result) -> Row:
    notes = result.notes.filter(pl.col("quantity") == "notices").sort("time_s")
    times, notices = notes["time_s"].to_numpy(), notes["value"].to_numpy()
    edges = FIRST_S + APART_S * np.arange(JOINS + 1)
    told = np.interp(edges, times, notices)
    late = []
    for number, begin in enumerate(sorted(agents[-1].opened.values())):
        members = flows + number + 1
        fair = dict.fromkeys(range(members), fair_mbps(members))
        late.append(in_force_ms(agents, fair, begin, begin + APART_S, NEAR))
    per_change = float(told[-1] - told[0]) / JOINS
    size = per_change * 2 * NOTICE_BYTES
    return {
        "notices_by": by,
        "flows": flows,
        "hosts": min(flows, HOSTS),
        "notices_per_change": per_change,
        "bytes_per_change": size,
        "of_link": size * 8 * CHANGES_PER_S / (RATE_GBPS * 1e9),
        "in_force_ms": None if None in late else float(np.median(late)),  # type: ignore[arg-type]
    }


def _claims(rows: list[Row]) -> list[Claim]:
    by_host = [row for row in rows if row["notices_by"] == "host"]
    claims = []
    if by_host:
        # One for each host, and those of the flow that joins: after its SYN-ACK, and where it is lost again.
        statement = (
            "A flow that joins makes at most one notice for each host that has flows, and two of its own"
        )
        more = most(
            by_host,
            lambda row: float(row["notices_per_change"]) - row["hosts"],
            lambda row: f"{row['flows']} flows",
        )
        why = "many flows fill the queue at times, which is drained: that, too, is told"
        claims.append(between("one-each", "ours", statement, more, high=2.0, why=why))
    return claims + judged(rows, "pacing.overhead")


def _draw(runs: list[Run]) -> Figure:
    """Notices for a change, and the time until all have it, over the number of flows."""
    rows = all_rows(runs)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    shown = (
        ("notices_per_change", "notices for a flow that joins"),
        ("in_force_ms", "until the last flow's rate changes (ms)"),
    )
    for panel, (column, label) in zip(panels, shown, strict=True):
        for by, marker in (("host", "o"), ("flow", "s")):
            own = sorted((row["flows"], row[column]) for row in rows if row["notices_by"] == by)
            found = [(flows, value) for flows, value in own if value is not None]
            line = panel.plot(*zip(*found, strict=True), marker=marker, label=f"by {by}") if found else []
            # `notices_per_change` is always known.
            never = [flows for flows, value in own if value is None]
            panel.plot(
                never,
                [1e3 * APART_S] * len(never),
                marker=marker,
                linestyle="none",
                markerfacecolor="none",
                color=line[0].get_color() if line else None,
                label=f"by {by}: not within {1e3 * APART_S:g} ms" if never else None,
            )
        panel.set(xlabel="flows of ten hosts", ylabel=label, xscale="log")
        panel.grid(alpha=0.3, which="both")
        panel.legend(loc="upper left")
        log_scale(panel)
    return figure
