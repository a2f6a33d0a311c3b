"""Several bottlenecks: what flows get on a chain of pacing switches, against weighted max-min fair rates.

The paper has one switch; its equation takes one number of flows for all links. Here each link has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.join import PAYLOAD, goodput
from tidegate.systems.pacing.max_min import Allocation, Demand, max_min
from tidegate.systems.pacing.setup import paced, pacing

DELAY_MS = 1.0
"""Of each link between switches."""
NEAR = 0.02


@dataclass(frozen=True)
class Chain:
    """Links one after another, and flows: the first link, the one behind the last, and the weight."""

    rates_mbps: tuple[float, ...]
    flows: tuple[tuple[int, int, int], ...]

    def allocation(self) -> Allocation:
        """Max-min fair rates of frames in Mbit/s; each link keeps its reserve."""
        links = {str(number): rate * (1 - RESERVE) for number, rate in enumerate(self.rates_mbps)}
        demands = [Demand([str(link) for link in range(a, b)], weight) for a, b, weight in self.flows]
        return max_min(links, demands)


CHAINS = {
    "parking-lot": Chain((100, 100, 100), ((0, 3, 1), (0, 1, 1), (1, 2, 1), (2, 3, 1))),
    "two-bottlenecks": Chain((100, 40), ((0, 1, 1), (0, 2, 1), (0, 2, 1), (1, 2, 1))),
    "levels": Chain((30, 60, 120, 240), ((0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 4, 1), (3, 4, 1))),
    "weights": Chain((100, 60, 100), ((0, 3, 3), (0, 1, 1), (1, 2, 2), (2, 3, 5), (0, 2, 1))),
}


def random_chain(seed: int) -> Chain:
    """Two to five links of 20 to 200 Mbit/s, and three to ten flows of weight 1 to 4."""
    draw = np.random.default_rng(seed)
    links = int(draw.integers(2, 6))
    rates = tuple(float(rate) for rate in draw.integers(20, 201, links))
    flows = []
    for _ in range(int(draw.integers(3, 11))):
        first = int(draw.integers(0, links))
        flows.append((first, int(draw.integers(first + 1, links + 1)), int(draw.integers(1, 5))))
    return Chain(rates, tuple(flows))


def _network(chain: Chain, step_s: float) -> Network:
    network = Network()
    switches = [pacing(network, f"switch{number}") for number in range(len(chain.rates_mbps) + 1)]
    for number, rate in enumerate(chain.rates_mbps):
        ends = switches[number : number + 2]
        network.link(*ends, rate=round(rate * 1e6), delay=f"{DELAY_MS} ms", queue="64 packets")
    for number, (first, last, weight) in enumerate(chain.flows):
        source, target = network.host(f"source{number + 1}"), network.host(f"target{number + 1}")
        for host, switch in ((source, switches[first]), (target, switches[last])):
            network.link(host, switch, rate="1 Gbit/s", delay="50 us", queue="1000 packets")
        paced(network, source, weight=weight)
        network.tcp(source, target, start=round(number * step_s * 1e12))
    network.record("50 ms")
    return network


def _rows(
    name: str, chain: Chain, network: Network, step_s: float, settle_s: float, result: Result
) -> list[Row]:
    """A row for each flow."""
    fair = chain.allocation()
    begin = (len(chain.flows) - 1) * step_s
    agents = [attached.agent for attached in network.agents if isinstance(attached.agent, PacingAgent)]
    last = [[change for change in agent.changes if change[0] >= begin - step_s / 2] for agent in agents]
    # A rate has settled when it stays near its last value; what queues drain by is less.
    settled = 0.0
    for number, changes in enumerate(last):
        final = agents[number].changes[-1][2]
        off = [time for time, _, rate in changes if abs(rate - final) > NEAR * final]
        later = [time for time, _, _ in changes if not off or time > max(off)]
        settled = max(settled, min(later, default=0.0))
    rtt_ms = 2 * (DELAY_MS * len(chain.rates_mbps) + 0.1)
    rows = []
    for number, (first, behind, weight) in enumerate(chain.flows):
        edges = np.array([begin + settle_s / 2, begin + settle_s])
        received = float(goodput(result.flow_samples, number, edges)[0])
        rows.append(
            {
                "chain": name,
                "flow": number + 1,
                "links": behind - first,
                "weight": weight,
                "fair_mbps": fair.rates[number] * PAYLOAD,
                "set_mbps": agents[number].changes[-1][2] / 1e6,
                "goodput_mbps": received,
                "off": received / (fair.rates[number] * PAYLOAD) - 1,
                "levels": fair.levels,
                "settled_ms": 1e3 * (settled - begin),
                "rtt_ms": rtt_ms,
                "settled_rtts": 1e3 * (settled - begin) / rtt_ms,
                "retransmits": int(result.flows["retransmits"].sum()),
            }
        )
    return rows


@experiment(
    "pacing.paths",
    (
        "chain",
        "flow",
        "links",
        "weight",
        "fair_mbps",
        "goodput_mbps",
        "off",
        "levels",
        "settled_ms",
        "settled_rtts",
    ),
    quick={"random_chains": 4},
)
def paths(
    chains: Annotated[tuple[str, ...], OneOf(CHAINS)] = tuple(CHAINS),
    random_chains: Annotated[int, AtLeast(0)] = 20,
    step_s: Annotated[float, AtLeast(0.2)] = 0.5,
    settle_s: Annotated[float, AtLeast(1.0)] = 2.0,
) -> Plan:
    """Chains of pacing switches: a parking lot, unequal links, several levels of bottlenecks, weights, and random ones."""
    all_chains = {name: CHAINS[name] for name in chains}
    all_chains |= {f"random-{seed}": random_chain(seed) for seed in range(1, random_chains + 1)}
    cases = []
    for name, chain in all_chains.items():
        network = _network(chain, step_s)
        duration = (len(chain.flows) - 1) * step_s + settle_s
        measure = partial(_rows, name, chain, network, step_s, settle_s)
        cases.append(Case(name, network, f"{round(duration * 1000)} ms", measure))
    return Plan(cases, _claims, _draw)


def _claims(rows: list[Row]) -> list[Claim]:
    off = medians(rows, "off", lambda row: f"{row['chain']} flow {row['flow']}")
    late = medians(rows, _late_ms, lambda row: str(row["chain"]))
    return [
        between(
            "max-min",
            "ours",
            "Each flow gets its weighted max-min fair rate within 2 %",
            off,
            -NEAR,
            NEAR,
            why="see the flows named",
            form=Percents(),
        ),
        between(
            "levels",
            "ours",
            "With N levels of bottlenecks, all rates stay within 2 % after N round trips of the longest path and 1 ms",
            late,
            high=1.0,
            why="links can find their order wrong first; and a queue drains after a burst was lost",
        ),
    ]


def _late_ms(row: Row) -> float:
    """After a round trip for each level."""
    return float(row["settled_ms"] - row["levels"] * row["rtt_ms"])


def _draw(runs: list[Run]) -> Figure:
    """What flows get over what is fair; how long it takes."""
    rows = all_rows(runs)
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    names = list(dict.fromkeys(str(row["chain"]) for row in rows))
    for label, chosen in _groups(rows):
        left.plot(
            [row["fair_mbps"] for row in chosen],
            [row["goodput_mbps"] for row in chosen],
            "o",
            markersize=4,
            label=label,
        )
    most = max(row["fair_mbps"] for row in rows)
    left.plot([0, most], [0, most], color="0.6", linewidth=0.8)
    left.set(
        xlabel="max-min fair rate (Mbit/s of payload)",
        ylabel="goodput (Mbit/s)",
        xlim=(0, None),
        ylim=(0, None),
    )
    left.legend(fontsize="small")
    left.grid(alpha=0.3)
    first = [next(row for row in rows if row["chain"] == name) for name in names]
    right.plot([row["levels"] for row in first], [row["settled_rtts"] for row in first], "o", alpha=0.6)
    levels = max(row["levels"] for row in first)
    right.plot([0, levels], [0, levels], color="0.6", linewidth=0.8, label="one round trip for each level")
    right.set(
        xlabel="levels of bottlenecks",
        ylabel="settled after (round trips)",
        xlim=(0, levels + 0.5),
        ylim=(0, None),
    )
    right.legend(fontsize="small")
    right.grid(alpha=0.3)
    return figure


def _groups(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    named = list(
        dict.fromkeys(str(row["chain"]) for row in rows if not str(row["chain"]).startswith("random"))
    )
    groups = [(name, [row for row in rows if row["chain"] == name]) for name in named]
    drawn = [row for row in rows if str(row["chain"]).startswith("random")]
    return groups + ([("random chains", drawn)] if drawn else [])
