"""The paper's testbed (section IV): hosts, a switch, the router R1, the congested link to R2, a switch, hosts.

Senders are linked to S1, receivers to S2. A flow's round-trip time is that of its receiver's link, the others are short. R1's port
to R2 is the one whose queues differ from scheme to scheme.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tidegate.measures import growth
from tidegate.network import Flow, Link, Network, Node, Switch
from tidegate.results import Result
from tidegate.systems.aqm import setup as aqm
from tidegate.systems.meter import setup as meters
from tidegate.systems.meter.tables import IngressPort, Meter
from tidegate.systems.separation.controller import SeparationController
from tidegate.systems.separation.setup import separation
from tidegate.systems.separation.shares import max_min

SCHEMES: dict[str, str] = {
    "fifo": "one queue",
    "drr": "a queue for each flow (DRR)",
    "fq_codel": "FQ-CoDel",
    "guarantee": "separation, guarantees",
    "cap": "separation, caps",
}
SEPARATED = ("guarantee", "cap")
ROUTERS = ("tidegate", "linux")
"""Who the router of a live run is: Tidegate's own, or the kernel with HTB. In the simulator both are the same."""
MTU, FRAMING, PAYLOAD = 1500, 14, 1448
EDGE_GBPS = 40.0
EDGE_DELAY_MS = 0.01
STEP_S = 0.5
"""Between samples."""


def goodput_of(ip_bps: float) -> float:
    """Mbit/s of payload in packets of the full size that come to so many bit/s of IP."""
    return ip_bps * PAYLOAD / MTU / 1e6


def jain(rates: np.ndarray) -> float:
    """Jain's index: 1 if all are the same, 1 / n if one has all."""
    total = float((rates**2).sum())
    return float(rates.sum()) ** 2 / (len(rates) * total) if total > 0 else 1.0


@dataclass
class Testbed:
    """A network with flows to come."""

    scheme: str
    rate_mbps: float
    buffer_ms: float
    """Of the one queue, in time of the link."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of the controller."""
    router: str = "tidegate"
    sample_ms: float = STEP_S * 1e3
    network: Network = field(default_factory=Network)
    flows: list[Flow] = field(default_factory=list)
    access: list[Link] = field(default_factory=list)
    """Of the senders."""
    controller: SeparationController | None = None

    def __post_init__(self) -> None:
        net = self.network
        # A sender at S1 is a host; between the senders and R1 is one link, which is tapped.
        self.s1, r2, self.s2 = (net.router(name) for name in ("s1", "r2", "s2"))
        self.r1 = r1 = self._first_router()
        edge = {"rate": f"{EDGE_GBPS:g} Gbit/s", "delay": f"{EDGE_DELAY_MS} ms", "queue": "100000 packets"}
        self.before = before = net.link(self.s1, r1, **edge)  # type: ignore[arg-type]
        size = max(round(self.rate_mbps * 1e6 * self.buffer_ms / 1e3 / 8), 2 * (MTU + FRAMING))
        by_flow = self.scheme if self.scheme in ("drr", "fq_codel", "codel") else None
        limit = f"{size} B" if by_flow != "fq_codel" else "10240 packets"
        self.bottleneck = net.link(
            r1, r2, rate=f"{self.rate_mbps:g} Mbit/s", delay=f"{EDGE_DELAY_MS} ms", queue=limit, aqm=by_flow
        )
        net.link(r2, self.s2, **edge)  # type: ignore[arg-type]
        if self.scheme in SEPARATED:
            hold = "cap" if self.scheme == "cap" else "guarantee"
            self.controller = separation(
                net, "monitor", r1, before, self.bottleneck, buffer=f"{size} B", hold=hold, **self.options
            )
        net.record(f"{self.sample_ms} ms", [self.bottleneck])

    def _first_router(self) -> Node:
        if self.scheme == "dualpi2":
            return self.network.switch("r1", aqm.program("dualpi2"), queues=2)
        if self.scheme == "meter":
            return self.network.switch("r1", meters.program("fair"))
        return self.network.router("r1", linux=self.router == "linux")

    def manage(self) -> None:
        """Give DualPI2 its port, or all that comes one fair meter at the link's rate; when all flows are known."""
        if isinstance(self.r1, Switch) and self.scheme == "dualpi2":
            aqm.manage(self.network, self.r1, self.bottleneck)
        if isinstance(self.r1, Switch) and self.scheme == "meter":
            # The link counts frames, the meter bytes of IP.
            rate = round(self.rate_mbps * 1e6 * MTU / (MTU + FRAMING))
            meters.fair(
                self.network,
                self.r1,
                [Meter(0, rate, (IngressPort(self.network.port(self.r1, self.before)),))],
            )

    def ends(self, rtt_ms: float, access_mbps: float = 1e3 * EDGE_GBPS) -> tuple[Node, Node]:
        """A sender and a receiver with this round-trip time between them."""
        net, number = self.network, len(self.access)
        sender, receiver = net.host(f"sender{number + 1}"), net.host(f"receiver{number + 1}")
        link = net.link(
            sender,
            self.s1,
            rate=f"{access_mbps:g} Mbit/s",
            delay=f"{EDGE_DELAY_MS} ms",
            queue="100000 packets",
        )
        self.access.append(link)
        own = max(rtt_ms / 2 - 4 * EDGE_DELAY_MS, EDGE_DELAY_MS)
        net.link(receiver, self.s2, rate=f"{EDGE_GBPS:g} Gbit/s", delay=f"{own} ms", queue="100000 packets")
        return sender, receiver

    def tcp(self, rtt_ms: float, start_s: float, stop_s: float | None = None, **options: Any) -> Flow:
        """A flow of a new pair of hosts, with a receive window of 200 MB as in the paper."""
        sender, receiver = self.ends(rtt_ms)
        stop = None if stop_s is None else f"{stop_s} s"
        flow = self.network.tcp(
            sender,
            receiver,
            start=round(start_s * 1e12),
            stop=stop,
            **{"receive_buffer_max": "200 MB", **options},
        )
        self.flows.append(flow)
        return flow

    def limit(self, sender: int, at_s: float, mbps: float | None) -> None:
        """What a sender's link lets through from a time on; `None`: all."""
        rate = 1e3 * EDGE_GBPS if mbps is None else mbps
        self.access[sender].set(f"{at_s} s", rate=f"{rate:g} Mbit/s", direction="forward")

    def fair(self, demands_mbps: list[float]) -> npt.NDArray[np.float64]:
        """Max-min fair goodputs of flows that send so much payload at most."""
        return max_min(goodput_of(self.rate_mbps * 1e6 * MTU / (MTU + FRAMING)), demands_mbps)


def per_step(
    times_s: npt.NDArray[np.float64], count: npt.NDArray[np.int64], end_s: float
) -> npt.NDArray[np.float64]:
    """How much a count grows in each step of `STEP_S`."""
    return growth(times_s, count, np.arange(round(end_s / STEP_S) + 1.0) * STEP_S)


def goodputs(result: Result, flows: int, end_s: float) -> npt.NDArray[np.float64]:
    """Mbit/s of TCP flows: shape (flows, steps); step k is from k to k + 1 times `STEP_S`."""
    found = np.zeros((flows, round(end_s / STEP_S)))
    for (number,), samples in result.flow_samples.group_by("flow", maintain_order=True):
        received = per_step(samples["time_s"].to_numpy(), samples["bytes_received"].to_numpy(), end_s)
        found[int(number)] = received * 8 / STEP_S / 1e6
    return found


def _part(result: Result, seconds: str, from_s: float, to_s: float) -> float | None:
    """How much a count of seconds of the congested link grows in a time, as a part of it; `None`: not known."""
    chosen = (
        (pl.col("queue") == "r1 -> r2") & (pl.col("number") == 0) & pl.col("time_s").is_between(from_s, to_s)
    )
    samples = result.queue_samples.filter(chosen).select("time_s", seconds)
    if len(samples) < 2:
        return 0.0
    (first, before), (last, after) = samples.row(0), samples.row(-1)
    return None if before is None or after is None else float((after - before) / (last - first))


def busy(result: Result, from_s: float, to_s: float) -> float:
    """Part of a time in which the congested link was sending."""
    return _part(result, "busy_s", from_s, to_s) or 0.0


def idle_while_waiting(result: Result, from_s: float, to_s: float) -> float | None:
    """Part of a time in which the congested link was idle while packets waited for it; not known of a P4 switch's."""
    return _part(result, "stalled_s", from_s, to_s)


def settled_s(
    rates: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64], near: float, hold_s: float
) -> float | None:
    """Seconds until all rates are as wanted, within a part of it, and are so for a while; `None`: never.

    `rates` has the shape (flows, steps), from the event on.
    """
    off = np.abs(rates - wanted[:, None]) / np.maximum(wanted[:, None], 1e-9)
    close: npt.NDArray[np.bool_] = off.max(axis=0) <= near
    needed = max(round(hold_s / STEP_S), 1)
    for step in range(len(close) - needed + 1):
        if close[step : step + needed].all():
            return step * STEP_S
    return None
