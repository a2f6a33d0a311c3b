"""The paper's testbed: hosts at a switch that meters, its counters, and the rows of the experiments.

Rates are of IP bytes, as RFC 2697 and RFC 2698 count; goodput, what an application has of them, is at most 1448 of 1500.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
import polars as pl

from tidegate import units
from tidegate.claims import Row
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, OneOf
from tidegate.measures import History, last
from tidegate.network import Flow, Network, Node, Switch
from tidegate.results import Result
from tidegate.systems.meter.controller import (
    FRAME_BYTES,
    PAPER,
    PLAIN,
    UNBOUNDED,
    Bucket,
    Fixed,
    Law,
    Meter,
    MeterController,
    Pid,
)
from tidegate.systems.meter.experiments.standard_meters import StandardMeters, shaped_port
from tidegate.systems.meter.fair import FairMeters
from tidegate.systems.meter.setup import program
from tidegate.systems.meter.tables import MeterTables

# Seconds in which a controller finds its rate; the paper's means over 180 s include them.
SETTLED_S = 10


@dataclass(frozen=True)
class Scheme:
    """A way to meter: a data plane, and for `meter.p4` its bucket and law."""

    text: str
    colour: str
    marker: str
    data_plane: Literal["meter", "standard", "fair"] = "meter"
    bucket: Bucket = PLAIN
    law: Law = field(default_factory=Fixed)


SECOND = "1048576 us"
"""Of the rate: as many bytes as the fair meter lets through at once."""
SCHEMES = {
    "plain": Scheme("plain meter", "C3", "v"),
    "plain-1s": Scheme("plain meter, 1 s", "C1", "<", bucket=replace(PLAIN, burst_time=SECOND)),
    "paper": Scheme("the paper's meter, our bounds", "C0", "o", bucket=PAPER, law=Pid()),
    "paper-unbounded": Scheme("the paper's meter", "C9", "P", bucket=PAPER, law=UNBOUNDED),
    "paper-1s": Scheme(
        "the paper's meter, 1 s", "C6", "p", bucket=replace(PAPER, burst_time=SECOND), law=UNBOUNDED
    ),
    "fair": Scheme("fair meter, 1 s", "C2", "s", "fair"),
    # Of the ablation, with the controller as published.
    "red_ecn": Scheme("meter, RED_ECN", "C1", "^", bucket=PAPER),
    "controller": Scheme("meter, controller", "C4", "D", law=UNBOUNDED),
    # Others' meters, of `standard.p4`.
    "rfc2697": Scheme("RFC 2697", "C5", "<", "standard"),
    "rfc2698": Scheme("RFC 2698", "C8", ">", "standard"),
    "shaper": Scheme("shaped queue", "0.5", "x", "standard"),
}
"""By name. The bucket holds 128 KiB, if it does not say otherwise."""
STANDARD = tuple(name for name, way in SCHEMES.items() if way.data_plane == "standard")
Schemes = Annotated[tuple[str, ...], OneOf(SCHEMES)]
Ours = Annotated[tuple[str, ...], OneOf([name for name in SCHEMES if name not in STANDARD])]
"""Those of `meter.p4` and `fair.p4`."""


Seconds = Annotated[int, AtLeast(2)]
"""Of a case: what is judged is its second half, by what is noted each second."""

Mtu = Annotated[int, AtLeast(576, 9000)]
"""Bytes of IP; the paper does not give it."""


class Counts(Controller):
    """Records the counts of the first meters periodically."""

    def __init__(self, meters: int, period: units.Time = "1 s", counters: Sequence[str] = ()) -> None:
        self.period = period
        self._meters = meters
        self._counters = counters or ("passed", "dropped", "marked")

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Record the counts."""
        counts = {
            name: switch.counter_read(name, 0, self._meters).astype(np.int64) for name in self._counters
        }
        for number in range(self._meters):
            packets, frames = counts["passed"][number].tolist()
            switch.note(f"meter_{number}_ip_bytes", frames - FRAME_BYTES * packets)
            for name in self._counters[1:]:
                switch.note(f"meter_{number}_{name}_packets", counts[name][number, 0])


@dataclass(frozen=True)
class Star:
    """Hosts at a switch."""

    network: Network
    switch: Switch
    hosts: list[Node]

    def attach(self, meters: Iterable[Meter], scheme: str) -> MeterTables | None:
        """Attach the controller of this scheme; returns it if meters can change while it runs."""
        asked, way = list(meters), SCHEMES[scheme]
        ports = self.network.forwarding(self.switch)
        if scheme in STANDARD:
            burst = units.size(way.bucket.burst)
            self.network.control(StandardMeters(asked, ports=ports, scheme=scheme, burst=burst))
            return None
        made: MeterTables
        if way.data_plane == "fair":
            made = FairMeters(asked, ports=ports)
        else:
            made = MeterController(asked, ports=ports, bucket=way.bucket, law=way.law)
        self.network.control(made)
        return made

    def meter(self, meters: Sequence[Meter], scheme: str) -> MeterTables | None:
        """As `attach`, and record the counts of all meters."""
        made = self.attach(meters, scheme)
        counters = ("passed", "dropped") if scheme in STANDARD else ()
        self.network.control(Counts(len(meters), counters=counters))
        return made


def star(
    base_rtt_ms: float,
    *,
    hosts: int = 2,
    link_rate: units.Rate = "10 Gbit/s",
    data_plane: str = "meter",
    mtu: int = 1500,
) -> Star:
    """Hosts at a switch with the meters' program, the same base RTT between any two."""
    net = Network()
    ends = [net.host(f"h{number}") for number in range(hosts)]
    switch = net.switch("meter", program(data_plane))
    for host in ends:
        delay = round(base_rtt_ms * 1e9 / 4)
        net.link(host, switch, rate=link_rate, delay=delay, queue="10000 packets", mtu=mtu)
    return Star(net, switch, ends)


def metered_flows(
    scheme: str,
    base_rtt_ms: float,
    targets_mbps: Sequence[int],
    *,
    congestion_control: str = "cubic",
    ecn: str = "on",
    link_rate: units.Rate = "10 Gbit/s",
    receive_buffer_max: units.Size = "32 MiB",
    mtu: int = 1500,
) -> Network:
    """TCP flows from a host to another, each through a meter of its own (Fig. 8 of the paper)."""
    lab = star(base_rtt_ms, link_rate=link_rate, data_plane=SCHEMES[scheme].data_plane, mtu=mtu)
    net, (a, b) = lab.network, lab.hosts
    flows = [
        net.tcp(
            a,
            b,
            congestion_control=congestion_control,
            ecn=ecn,
            receive_buffer_max=receive_buffer_max,
            mss=mtu - 40,
        )
        for _ in targets_mbps
    ]
    if scheme == "shaper":
        net.configure(lab.switch, net.links[1], shaped_port(targets_mbps, mtu))
    lab.meter(meters_of(net, flows, targets_mbps), scheme)
    return net


def meters_of(net: Network, flows: Sequence[Flow], targets_mbps: Sequence[int]) -> list[Meter]:
    """A meter for each flow."""
    pairs = zip(flows, targets_mbps, strict=True)
    return [Meter(n, mbps * 1_000_000, (net.five_tuple(flow),)) for n, (flow, mbps) in enumerate(pairs)]


def history(notes: pl.DataFrame, meter: int) -> History:
    """IP bytes that a meter let pass, from what `Counts` noted."""
    return History.noted(notes, f"meter_{meter}_ip_bytes")


def flow_rows(result: Result, scheme: str, base_rtt_ms: float, targets_mbps: Sequence[int]) -> list[Row]:
    """A row for each flow of `metered_flows`; errors are shares of the target, of IP bytes but for `goodput_error`, which is the
    paper's: payload, as iperf counts it, start included."""
    rows: list[Row] = []
    for number, target in enumerate(targets_mbps):
        passed = history(result.notes, number)
        flow = result.flows.row(number, named=True)
        settled = min(SETTLED_S, float(passed.time_s[-1]) / 2)
        errors_30 = passed.windows_mbps(30, settled) / target - 1
        rows.append(
            {
                "scheme": scheme,
                "base_rtt_ms": base_rtt_ms,
                "target_mbps": target,
                "flow": number,
                "achieved_mbps": passed.mbps(),
                "goodput_mbps": flow["goodput_mbps"],
                "relative_error": passed.mbps() / target - 1,
                "goodput_error": flow["goodput_mbps"] / target - 1,
                "settled_error": passed.mbps(settled) / target - 1,
                "settled_error_30_s": float(errors_30[np.abs(errors_30).argmax()]),
                "settled_excess_10_s": float(passed.windows_mbps(10, settled).max()) / target - 1,
                # A shaper drops in its queue.
                "drops": last(result.notes, f"meter_{number}_dropped_packets")
                if scheme != "shaper"
                else int(result.queues.filter(pl.col("number") == number)["dropped"].sum()),
                "ce_marks": last(result.notes, f"meter_{number}_marked_packets")
                if scheme not in STANDARD
                else 0,
                "timeouts": flow["timeouts"],
                "timeouts_per_s": None
                if flow["timeouts"] is None
                else flow["timeouts"] / float(passed.time_s[-1]),
            }
        )
    return rows
