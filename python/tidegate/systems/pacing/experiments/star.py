"""Hosts around one pacing switch, whose link to a server is the bottleneck: what several experiments run on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from tidegate.experiments import Run
from tidegate.network import Link, Network, Node, Switch
from tidegate.results import Result
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.join import PAYLOAD, goodput, in_force_ms
from tidegate.systems.pacing.setup import paced, pacing

SAMPLE_MS = 50
ACCESS = "1 Gbit/s"


@dataclass
class Star:
    """A switch, its bottleneck, and hosts that send through it."""

    rate_mbps: float
    rtt_ms: float
    buffer_packets: int = 64
    options: dict[str, Any] = field(default_factory=dict)
    """Of `pacing`."""

    def __post_init__(self) -> None:
        self.network = Network()
        self.switch: Switch = pacing(self.network, "switch", **self.options)
        self.server = self.network.host("server")
        self.bottleneck: Link = self.network.link(
            self.switch,
            self.server,
            rate=round(self.rate_mbps * 1e6),
            delay=round(self.rtt_ms * 1e9 / 2 - 10e6),
            queue=f"{self.buffer_packets} packets",
        )
        self.network.record(f"{SAMPLE_MS} ms", queues=[self.bottleneck])
        self.hosts: list[Node] = []
        self.access: list[Link] = []

    def host(self, **options: Any) -> Node:
        """One more host that is paced; `options` are those of its agent."""
        host = self.plain_host()
        paced(self.network, host, **options)
        return host

    def plain_host(self) -> Node:
        """One more host, that is not paced."""
        host = self.network.host(f"host{len(self.hosts) + 1}")
        self.hosts.append(host)
        self.access.append(
            self.network.link(host, self.switch, rate=ACCESS, delay="10 us", queue="1000 packets")
        )
        return host

    def flow(self, host: Node, start_s: float = 0.0, stop_s: float | None = None, **options: Any) -> None:
        """A flow from a host to the server."""
        stop = None if stop_s is None else round(stop_s * 1e12)
        self.network.tcp(host, self.server, start=round(start_s * 1e12), stop=stop, **options)

    @property
    def given_mbps(self) -> float:
        """Payload of what the bottleneck gives away."""
        return self.rate_mbps * (1 - RESERVE) * PAYLOAD

    @property
    def agents(self) -> list[PacingAgent]:
        """Those of the hosts that are paced."""
        return [attached.agent for attached in self.network.agents if isinstance(attached.agent, PacingAgent)]

    def in_force_ms(self, flows: Collection[int], event_s: float, until_s: float) -> float | None:
        """From an event until these flows share the bottleneck evenly, and do so until a time; None: one of them has another rate."""
        fair = dict.fromkeys(flows, self.given_mbps / len(flows))
        return in_force_ms(self.agents, fair, event_s, until_s)

    def rates(self, result: Result, begin_s: float, end_s: float) -> npt.NDArray[np.float64]:
        """Goodput of each flow between two times, in Mbit/s."""
        return goodput_of(result, len(self.network.flows), begin_s, end_s)


def goodput_of(result: Result, flows: int, begin_s: float, end_s: float) -> npt.NDArray[np.float64]:
    """Goodput of the first so many flows between two times, in Mbit/s."""
    edges = np.array([begin_s, end_s])
    return np.array([goodput(result.flow_samples, flow, edges)[0] for flow in range(flows)])


def draw_rates(panel: Axes, run: Run, names: list[str], end_s: float, step_s: float = 0.1) -> None:
    """Goodput of flows over time, and their sum."""
    edges = np.arange(0.0, end_s + 1e-9, step_s)
    total = np.zeros(len(edges) - 1)
    for flow, name in enumerate(names):
        rates = goodput(run.tables["flow_samples"], flow, edges)
        total += rates
        panel.plot(edges[1:], np.where(rates > 0, rates, np.nan), linewidth=1.0, label=name)
    panel.plot(edges[1:], total, color="black", linewidth=0.8, label="sum")
    panel.set(xlabel="time (s)", ylabel="goodput (Mbit/s)", xlim=(0, end_s), ylim=(0, None))
    panel.grid(alpha=0.3)
    panel.legend(fontsize="x-small")
