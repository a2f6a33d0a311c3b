"""The paper's equation (1) on paths whose switches count different numbers of flows, beside ours.

The paper sets R' = (1/m) min C - l. Each switch of a path has its own number of flows m, but the equation has one: it can be that of
the link with the least capacity, or the largest. Ours at one link is (C - l) / m, of which a flow takes the least; what a flow leaves
at a link then goes to others, so that rates become max-min fair. Rates of the first three are set by hand, and stay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, Unit, between, medians, most
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.join import PAYLOAD, ByHand, goodput
from tidegate.systems.pacing.experiments.paths import CHAINS, NEAR, Chain, random_chain
from tidegate.systems.pacing.setup import paced, pacing

OWN_CHAINS = {
    "same-number": CHAINS["parking-lot"],
    "levels": CHAINS["levels"],
    "crowded-wide": Chain((100, 60), ((0, 2, 1), *((0, 1, 1),) * 9)),
    "crowded-narrow": Chain((100, 60), ((0, 2, 1), (0, 1, 1), *((1, 2, 1),) * 5)),
}
STEP_S = 0.05


def counts(chain: Chain) -> list[int]:
    """The flows of each link."""
    return [sum(a <= link < b for a, b, _ in chain.flows) for link in range(len(chain.rates_mbps))]


def _of_narrowest(chain: Chain) -> list[float]:
    m, rates = counts(chain), chain.rates_mbps
    narrowest = [min(range(a, b), key=lambda link: rates[link]) for a, b, _ in chain.flows]
    return [rates[link] * (1 - RESERVE) / m[link] for link in narrowest]


def _of_most(chain: Chain) -> list[float]:
    m, rates = counts(chain), chain.rates_mbps
    return [min(rates[a:b]) * (1 - RESERVE) / max(m[a:b]) for a, b, _ in chain.flows]


def _of_each(chain: Chain) -> list[float]:
    m, rates = counts(chain), chain.rates_mbps
    return [min(rates[link] * (1 - RESERVE) / m[link] for link in range(a, b)) for a, b, _ in chain.flows]


FORMULAS: dict[str, tuple[str, Callable[[Chain], list[float]] | None]] = {
    "narrowest": ("(1/m) min C - l, m of the narrowest link", _of_narrowest),
    "most": ("(1/m) min C - l, largest m", _of_most),
    "each": ("min (C - l)/m", _of_each),
    "ours": ("max-min, told by switches", None),
}
"""Mbit/s of frames; `None`: what the switches tell. The reserve l is the same part of each link."""


def _network(chain: Chain, rates: list[float] | None) -> Network:
    network = Network()
    names = [f"switch{number}" for number in range(len(chain.rates_mbps) + 1)]
    nodes = [pacing(network, name) if rates is None else network.router(name) for name in names]
    for number, rate in enumerate(chain.rates_mbps):
        network.link(*nodes[number : number + 2], rate=round(rate * 1e6), delay="1 ms", queue="64 packets")
    for number, (first, last, _) in enumerate(chain.flows):
        source, target = network.host(f"source{number + 1}"), network.host(f"target{number + 1}")
        for host, node in ((source, nodes[first]), (target, nodes[last])):
            network.link(host, node, rate="1 Gbit/s", delay="50 us", queue="1000 packets")
        if rates is None:
            paced(network, source)
        else:
            network.agent(source, ByHand(round(rates[number] * 1e6 * PAYLOAD)))
        network.tcp(source, target, start=round(number * STEP_S * 1e12))
    network.record("50 ms")
    return network


def _rows(about: Row, chain: Chain, rates: list[float] | None, settle_s: float, result: Result) -> list[Row]:
    """A row for each flow."""
    fair = chain.allocation().rates
    begin = len(chain.flows) * STEP_S
    edges = np.array([begin + settle_s / 2, begin + settle_s])
    load = None
    if rates is not None:
        load = max(
            sum(rate for rate, (a, b, _) in zip(rates, chain.flows, strict=True) if a <= link < b) / capacity
            for link, capacity in enumerate(chain.rates_mbps)
        )
    rows = []
    for number, (first, behind, _) in enumerate(chain.flows):
        received = float(goodput(result.flow_samples, number, edges)[0])
        rows.append(
            {
                **about,
                "flow": number + 1,
                "links": behind - first,
                "fair_mbps": fair[number] * PAYLOAD,
                "set_mbps": None if rates is None else rates[number] * PAYLOAD,
                "goodput_mbps": received,
                "off": received / (fair[number] * PAYLOAD) - 1,
                "most_load": load,
                "retransmits": int(result.flows["retransmits"].sum()),
            }
        )
    return rows


@experiment(
    "pacing.equation",
    ("chain", "formula", "flow", "links", "fair_mbps", "set_mbps", "goodput_mbps", "off", "most_load"),
    quick={"random_chains": 2},
)
def equation(
    chains: Annotated[tuple[str, ...], OneOf(OWN_CHAINS)] = tuple(OWN_CHAINS),
    formulas: Annotated[tuple[str, ...], OneOf(FORMULAS)] = tuple(FORMULAS),
    random_chains: Annotated[int, AtLeast(0)] = 10,
    settle_s: Annotated[float, AtLeast(1.0)] = 4.0,
) -> Plan:
    """The paper's equation for a host's rate where switches count different numbers of flows, beside ours and max-min."""
    known = {name: OWN_CHAINS[name] for name in chains}
    for seed in range(1, random_chains + 1):
        drawn = random_chain(seed)
        known[f"random-{seed}"] = Chain(drawn.rates_mbps, tuple((a, b, 1) for a, b, _ in drawn.flows))
    cases = []
    for name, chain in known.items():
        for formula in formulas:
            _, rule = FORMULAS[formula]
            rates = None if rule is None else rule(chain)
            duration = len(chain.flows) * STEP_S + settle_s
            measure = partial(_rows, {"chain": name, "formula": formula}, chain, rates, settle_s)
            cases.append(
                Case(f"{name}-{formula}", _network(chain, rates), f"{round(duration * 1000)} ms", measure)
            )
    return Plan(cases, _claims, _draw)


def _claims(rows: list[Row]) -> list[Claim]:
    def label(row: Row) -> str:
        return f"{row['chain']} flow {row['flow']}"

    off = medians([row for row in rows if row["formula"] == "ours"], "off", label)
    load = most([row for row in rows if row["formula"] == "each"], "most_load", label)
    claims = []
    if off:
        claims.append(
            between(
                "max-min",
                "ours",
                "With rates that switches tell, each flow gets its max-min fair rate within 2 %",
                off,
                -NEAR,
                NEAR,
                why="see the flows named",
                form=Percents(),
            )
        )
    if load:
        claims.append(
            between(
                "feasible",
                "ours",
                "The least of (C - l)/m loads no link with more than its capacity",
                load,
                high=1.0,
                form=Unit("of the capacity"),
            )
        )
    return claims


def _draw(runs: list[Run]) -> Figure:
    """What flows get over what is fair, a panel for each formula; the load of each chain's most loaded link."""
    rows = all_rows(runs)
    formulas = list(dict.fromkeys(str(row["formula"]) for row in rows))
    figure = Figure(figsize=(3.4 * len(formulas), 3.6), layout="constrained")
    panels = np.atleast_1d(np.asarray(figure.subplots(1, len(formulas), sharex=True, sharey=True)))
    largest = max(float(row["fair_mbps"]) for row in rows)
    for panel, formula in zip(panels, formulas, strict=True):
        own = [row for row in rows if row["formula"] == formula]
        panel.plot([row["fair_mbps"] for row in own], [row["goodput_mbps"] for row in own], "o", markersize=4)
        panel.plot([0, largest], [0, largest], color="0.6", linewidth=0.8)
        loads = most(
            [row for row in own if row["most_load"] is not None], "most_load", lambda row: str(row["chain"])
        )
        over = sum(load > 1 for load in loads.values())
        note = f"\n{over} of {len(loads)} chains overloaded" if loads else "\n"
        panel.set_title(FORMULAS[formula][0] + note, fontsize="small")
        panel.set(xlabel="max-min fair rate (Mbit/s)", xlim=(0, None), ylim=(0, None))
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("goodput (Mbit/s)")
    return figure
