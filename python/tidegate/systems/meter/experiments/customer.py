"""A customer: hosts whose flows share one meter, and what each flow gets of it.

    sources -- meter -- far -- sinks

The meter is the contender: a P4 switch, for `drr` a plain router whose link to `far` has the metered rate, or a Linux router with a
qdisc. What passes is counted on
that link, in bytes of IP, for all contenders alike. TCP flows go to one sink; a UDP flow has a sink of its own, whose link is counted.
Goodput is scaled by 1500/1448 (MTU over payload, with timestamps) to compare it with rates of IP.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from tidegate import units
from tidegate.control import Port, Queue, Shaper
from tidegate.measures import History
from tidegate.network import Flow, Link, Network, Node, Qdisc, Switch
from tidegate.results import Result
from tidegate.systems.meter.controller import FRAME_BYTES, Match, Meter, Prefix
from tidegate.systems.meter.experiments.contenders import CONTENDERS, burst_bytes, rate_bps
from tidegate.systems.meter.setup import program

TCP_IP_BYTES = 52
"""Headers of a segment with timestamps."""
FRAME_OF_IP = (1500 + FRAME_BYTES) / 1500
SINK = "far -> udp{}"
PASSED = "meter -> far"


@dataclass
class Customer:
    """A network with one meter of `rate_mbps`, and flows that share it; `longest_rtt_ms` is what a contender's burst may depend on."""

    contender: str
    rate_mbps: float
    base_rtt_ms: float
    longest_rtt_ms: float = 0.0
    apart: bool = False
    """Whether each flow has a source of its own: what a kernel does with ECN is the same for all that a host sends to another."""
    link_rate: units.Rate = "10 Gbit/s"
    network: Network = field(init=False, repr=False)
    meter: Node = field(init=False, repr=False)
    passed: Link = field(init=False, repr=False)
    watched: list[Link] = field(init=False, repr=False)
    flows: list[Flow] = field(init=False, repr=False, default_factory=list)
    demands_mbps: list[float] = field(init=False, repr=False, default_factory=list)
    """Of IP; infinite for TCP."""

    def __post_init__(self) -> None:
        self.longest_rtt_ms = max(self.longest_rtt_ms, self.base_rtt_ms)
        way, net = CONTENDERS[self.contender], Network()
        self.network = net
        self._delay = round(self.base_rtt_ms * 1e9 / 4)
        self._source, self._sink = net.host("source"), net.host("sink")
        self._sources: list[Node] = [self._source]
        self.meter = (
            net.router("meter", linux=way.qdisc is not None)
            if way.data_plane is None
            else net.switch("meter", program(way.data_plane))
        )
        self._far = net.router("far")
        self._join(self._source, self.meter)
        if isinstance(self.meter, Switch) or way.qdisc is not None:
            self.passed = net.link(
                self.meter, self._far, rate=self.link_rate, delay=0, queue="10000 packets", framing=0
            )
            if way.qdisc is not None:
                # The kernel counts frames; full packets leave at the rate of IP.
                rate = round(self.rate_mbps * 1e6 * FRAME_OF_IP)
                size = round(self.burst * FRAME_OF_IP)
                net.qdisc(self.meter, self.passed, Qdisc(way.qdisc, rate, burst=size, limit=size))
        else:
            self.passed = net.link(
                self.meter,
                self._far,
                rate=rate_bps(self.rate_mbps),
                delay=0,
                queue=f"{self.burst} B",
                framing=0,
                aqm="drr",
            )
            self.passed.set(0, rate=self.link_rate, direction="reverse")
        self._join(self._far, self._sink)
        self.watched = [self.passed]

    @property
    def burst(self) -> int:
        """The contender's burst in bytes."""
        return burst_bytes(self.contender, self.rate_mbps, self.longest_rtt_ms)

    def _join(self, a: Node, b: Node, framing: int = FRAME_BYTES) -> Link:
        return self.network.link(
            a, b, rate=self.link_rate, delay=self._delay, queue="10000 packets", framing=framing
        )

    def tcp(self, control: str, *, ecn: str = "off", rtt_ms: float | None = None, **options: Any) -> Flow:
        """A TCP flow; `rtt_ms` is its base RTT, if it is longer than the others'."""
        longer = 0 if rtt_ms is None else round((rtt_ms - self.base_rtt_ms) * 1e9)
        # Twice what the largest window needs.
        window = round(4 * self.rate_mbps * 125 * max(self.longest_rtt_ms, 1))
        flow = self.network.tcp(
            self._from(longer),
            self._sink,
            congestion_control=control,
            ecn=ecn,
            extra_delay=0 if self.apart else longer,
            receive_buffer_max=max(32 * 2**20, window),
            **options,
        )
        self.flows.append(flow)
        self.demands_mbps.append(math.inf)
        return flow

    def _from(self, longer: int = 0) -> Node:
        """Where a flow comes from; `longer`: what its RTT has in addition, in ps, if it comes from a host of its own."""
        if not self.apart:
            return self._source
        host = self.network.host(f"source{len(self.flows)}")
        self._sources.append(host)
        self.network.link(
            host, self.meter, rate=self.link_rate, delay=self._delay + longer // 2, queue="10000 packets"
        )
        return host

    def named(self, name: str, **options: Any) -> Flow:
        """A TCP flow by `control`, without ECN, or `control+ECN`; Prague's is accurate."""
        control, _, ecn = name.partition("+")
        return self.tcp(control, ecn=ecn_of(control) if ecn else "off", **options)

    def udp(self, offered: float, **options: Any) -> Flow:
        """Datagrams at a multiple of the metered rate, to a sink of their own."""
        sink = self.network.host(f"udp{len(self.watched) - 1}")
        self.watched.append(self._join(self._far, sink, framing=0))
        flow = self.network.udp(self._from(), sink, rate=rate_bps(offered * self.rate_mbps), **options)
        self.flows.append(flow)
        self.demands_mbps.append(offered * self.rate_mbps)
        return flow

    def workload(self, load: float, stop: units.Time, **options: Any) -> list[Flow]:
        """TCP flows that come by chance (`Network.workload`), with `load` of the metered rate; not among `flows`."""
        return self.network.workload(
            [(self._source, self._sink)], load=load, rate=rate_bps(self.rate_mbps), stop=stop, **options
        )

    def attach(self, period: units.Time, *, by_flow: bool = True, sinks: bool = True) -> Network:
        """Put all flows under the meter, and record on a period; call it when all flows are there.

        With `by_flow` the meter knows each flow; otherwise everything that the sources send. `sinks`: whether what each UDP flow's sink
        is sent is recorded too.
        """
        net, way = self.network, CONTENDERS[self.contender]
        if isinstance(self.meter, Switch) and way.control is not None:
            matches: tuple[Match, ...] = tuple(Prefix(f"{net.address(host)}/32") for host in self._sources)
            if by_flow:
                matches = tuple(map(net.five_tuple, self.flows))
            meters = [Meter(0, rate_bps(self.rate_mbps), matches)]
            ports, rtt_s = net.forwarding(self.meter), self.longest_rtt_ms / 1e3
            net.control(way.control(meters, ports, self.burst, rtt_s), self.meter)
            if way.waits:
                # A shaper counts frames; full packets leave at the rate of IP.
                rate = round(self.rate_mbps * 1e6 * FRAME_OF_IP)
                size = round(self.burst * FRAME_OF_IP)
                queue = Queue(bytes=size, shaper=Shaper(rate, f"{1500 + FRAME_BYTES} B"))
                net.configure(self.meter, self.passed, Port((queue,)))
        net.record(period, self.watched if sinks else [self.passed])
        return net

    def shares_mbps(self) -> list[float]:
        """The max-min share of each flow: a flow that asks for less than an equal share gets that, and leaves the rest to others."""
        return max_min(self.rate_mbps, self.demands_mbps)

    def histories(self, result: Result) -> list[History]:
        """Bytes of IP of each flow that came through: scaled goodput of TCP, what a UDP flow's sink was sent."""
        sinks = iter(range(len(self.watched)))
        return [
            tcp_history(result, flow.number) if flow.kind == "tcp" else sent(result, SINK.format(next(sinks)))
            for flow in self.flows
        ]


def ecn_of(control: str) -> str:
    """How a control asks for ECN: RFC 3168, or accurate ECN."""
    return "accurate" if control == "prague" else "on"


def max_min(capacity: float, demands: Sequence[float]) -> list[float]:
    """Max-min fair shares of a capacity."""
    shares = [0.0] * len(demands)
    left, waiting = capacity, sorted(range(len(demands)), key=lambda number: demands[number])
    while waiting:
        number = waiting.pop(0)
        shares[number] = min(demands[number], left / (len(waiting) + 1))
        left -= shares[number]
    return shares


def excess(history: History, rate_mbps: float) -> float:
    """The most that passed in any window beyond rate x time, in bytes: the burst of the smallest bucket that would pass all."""
    credit = history.bytes - history.time_s * rate_mbps * 125_000
    return float((credit - np.minimum.accumulate(credit)).max())


def sent(result: Result, queue: str) -> History:
    """Bytes of IP that a link without framing has taken (`left -> right`)."""
    samples = result.queue_samples.filter(pl.col("queue") == queue, pl.col("number") == 0)
    return _from_zero(samples["time_s"].to_numpy(), samples["sent_bytes"].to_numpy())


def ip_of_payload(mtu: int) -> float:
    """Bytes of IP for a byte of goodput, in full packets with timestamps."""
    return mtu / (mtu - TCP_IP_BYTES)


def tcp_history(result: Result, flow: int, mtu: int = 1500) -> History:
    """Goodput of a TCP flow, by its number, in bytes of IP."""
    samples = result.flow_samples.filter(pl.col("flow") == flow)
    return _from_zero(
        samples["time_s"].to_numpy(), samples["bytes_received"].to_numpy().astype(float) * ip_of_payload(mtu)
    )


def _from_zero(time_s: Any, count: Any) -> History:
    if len(time_s) and time_s[0] == 0:
        return History(time_s, count)
    return History(np.concatenate(([0.0], time_s)), np.concatenate(([0.0], count)))


def retransmits_since(result: Result, flow: Flow, since_s: float) -> int:
    """Retransmissions of a TCP flow after a time, by its samples."""
    samples = result.flow_samples.filter(pl.col("flow") == flow.number)
    before = samples.filter(pl.col("time_s") <= since_s + 1e-9)["retransmits"]
    return int(samples["retransmits"][-1]) - (int(before[-1]) if len(before) else 0)
