"""The paper's testbed: flows of both kinds through one bottleneck, and its kinds of queue management.

Rates of links are of Ethernet frames (14 bytes more than IP), goodput is what applications get: at most 1448 of 1514 bytes with an
MTU of 1500.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from tidegate import units
from tidegate.control import Controller, Port, Queue, SwitchApi
from tidegate.experiments import OneOf
from tidegate.network import Link, Network, Node
from tidegate.systems.aqm.controller import BINS, FRAMING, LINUX, Aqm, dual_port
from tidegate.systems.aqm.setup import manage, program
from tidegate.systems.aqm.tofino import PAPER, TofinoAqm

HEADERS = 52
"""Bytes of IPv4 and TCP headers with timestamps."""
STEP_MS = 1.0
"""Delay from which on the single queue of `step` marks."""
BOTTLENECK = "switch -> sink"
# So that the bursts of the flows do not end at the same time.
STAGGER_MS = 4
ONE_QUEUE = Port((Queue(),))


@dataclass(frozen=True)
class Way:
    """A way to manage the bottleneck's queue."""

    text: str
    colour: str
    program: str | None
    """`None`: the queue of a plain router, with drop tail, the AQM `law` or an ECN step."""
    aqm: Aqm | TofinoAqm = PAPER
    port: Port = ONE_QUEUE
    law: str | None = None
    step: bool = False
    """Marks ECN-capable packets that find more than `STEP_MS` waiting; CUBIC has ECN there."""

    @property
    def queues(self) -> int:
        """One, or C and L."""
        return len(self.port.queues)


_TENTH = dual_port("deficit round robin", weight=9)
INSIDE = Aqm(
    target="20 ms",
    period="16 ms",
    ramp_from="1 ms",
    ramp="1 us",
    ramp_packets=None,
    random=True,
    spares_two=False,
)
"""The paper's settings with the PI controller in the data plane."""
WAYS = {
    "pi2": Way("PI2", "C0", "pi2_tofino"),
    "dualpi2": Way("DualPI2, the paper's settings", "C2", "dualpi2_tofino", port=_TENTH),
    "pi2-inside": Way("PI2, controller in the data plane", "C9", "pi2", INSIDE),
    "dualpi2-inside": Way("DualPI2, controller in the data plane", "C8", "dualpi2", INSIDE, _TENTH),
    "rfc": Way("DualPI2, RFC 9332's defaults", "C1", "dualpi2", Aqm(), dual_port()),
    "rfc-fifo": Way(
        "DualPI2, time-shifted FIFO",
        "C4",
        "dualpi2",
        Aqm(),
        dual_port("time-shifted FIFO", time_shift="50 ms"),
    ),
    "linux": Way("DualPI2, model of Linux's", "C6", "dualpi2", LINUX, dual_port(weight=9)),
    "step": Way("one queue with an ECN step at 1 ms", "C7", None, step=True),
    "droptail": Way("drop tail, 1 BDP", "0.5", None),
    "codel": Way("CoDel", "C3", None, law="codel"),
    "pie": Way("PIE", "C5", None, law="pie"),
    "fq_codel": Way("FQ-CoDel", "0.2", None, law="fq_codel"),
}
BASELINES = tuple(name for name, way in WAYS.items() if way.program is None)
"""Queues of a plain router. But for `step` they have one treatment for both kinds of flows, and drop."""
Ways = Annotated[tuple[str, ...], OneOf(WAYS)]
Managed = Annotated[tuple[str, ...], OneOf([name for name in WAYS if name not in BASELINES])]
"""The ways that are P4 programs."""


class Counts(Controller):
    """Records the counts of a port's queues periodically: `q0_...` of C (or of the only queue), `q1_...` of L."""

    NAMES = ("arrived", "forwarded", "marked", "dropped_not_ect", "dropped_ect", "overflowed")

    def __init__(self, port: int, queues: int, period: units.Time = "1 s", *, buffer: bool = True) -> None:
        """`buffer`: the program has a buffer of its own, and counts what overflows."""
        self.period = period
        self._names = self.NAMES if buffer else self.NAMES[:-1]
        self._port = port
        self._queues = queues

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Record the counts."""
        first = 2 * self._port
        for name in self._names:
            for queue, cell in enumerate(switch.counter_read(name, first, self._queues).tolist()):
                switch.note(f"q{queue}_{name}_packets", cell[0])
        sums = switch.register_read("delay_sum", first, self._queues).tolist()
        for queue in range(self._queues):
            switch.note(f"q{queue}_delay_sum_us", sums[queue])
            bins = switch.counter_read("delay_histogram", (first + queue) * BINS, BINS)[:, 0]
            switch.note(f"q{queue}_presented_packets", bins.sum())
            for number in np.flatnonzero(bins).tolist():
                switch.note(f"q{queue}_bin_{number}", bins[number])


@dataclass(frozen=True)
class Bottleneck:
    """A source and a sink, and a switch between them whose port to the sink is slow."""

    network: Network
    source: Node
    sink: Node
    link: Link
    way: str
    mtu: int = 1500

    @property
    def frame_bits(self) -> int:
        """Of a full frame."""
        return 8 * (self.mtu + FRAMING)

    @property
    def goodput_share(self) -> float:
        """The part of the link's rate that is goodput at most."""
        return (self.mtu - HEADERS) / (self.mtu + FRAMING)


def bottleneck(
    way: str,
    capacity_mbps: float,
    base_rtt_ms: float,
    *,
    access: units.Rate = "40 Gbit/s",
    count_period: units.Time = "1 s",
    aqm: Aqm | TofinoAqm | None = None,
    port: Port | None = None,
    mtu: int = 1500,
    **options: Any,
) -> Bottleneck:
    """The paper's testbed, with the delay on the link to the sink, half of it each way.

    Drop tail holds a BDP, but at least 20 ms; the other queues of plain routers hold 250 ms, as PI2 and DualPI2 do. `aqm` and `port`
    are those of the way if they are not given. `options` are those of `AqmController`.
    """
    net = Network()
    source, sink = net.host("source"), net.host("sink")
    how = WAYS[way]
    rate, delay = round(capacity_mbps * 1e6), round(base_rtt_ms * 1e9 / 2)
    if how.program is None:
        router = net.router("switch")
        net.link(source, router, rate=access, delay=0, queue="1000000 packets", mtu=mtu)
        held_ms = 250 if how.law or how.step else max(base_rtt_ms, 20)
        link = net.link(
            router,
            sink,
            rate=rate,
            delay=delay,
            queue=f"{round(capacity_mbps * 1e3 / 8 * held_ms)} B",
            aqm=how.law,
            mark_above=max(1, round(rate * STEP_MS / 1e3 / (8 * (mtu + FRAMING)))) if how.step else None,
            mtu=mtu,
        )
        return Bottleneck(net, source, sink, link, way, mtu)
    switch = net.switch("switch", program(how.program), queues=how.queues)
    net.link(source, switch, rate=access, delay=0, queue="1000000 packets", mtu=mtu)
    link = net.link(switch, sink, rate=rate, delay=delay, mtu=mtu)
    managed = how.aqm if aqm is None else aqm
    queues = replace(how.port if port is None else port, quantum=f"{mtu + FRAMING} B")
    if isinstance(managed, TofinoAqm):
        manage(net, switch, link, managed, port=queues)
    else:
        manage(net, switch, link, replace(managed, mtu=mtu), port=queues, **options)
    counts = Counts(net.port(switch, link), how.queues, count_period, buffer=isinstance(managed, Aqm))
    net.control(counts, switch)
    return Bottleneck(net, source, sink, link, way, mtu)


def classic_flows(lab: Bottleneck, count: int, start_s: float = 0.0, **options: Any) -> None:
    """CUBIC, without ECN as in the paper; with it before a queue that has nothing but an ECN step."""
    ecn = "on" if WAYS[lab.way].step else "off"
    settings: dict[str, Any] = {"congestion_control": "cubic", "ecn": ecn, **options}
    _flows(lab, count, start_s, settings)


def l4s_flows(lab: Bottleneck, count: int, start_s: float = 0.0, **options: Any) -> None:
    """Prague."""
    settings: dict[str, Any] = {"congestion_control": "prague", "ecn": "accurate", **options}
    _flows(lab, count, start_s, settings)


def _flows(lab: Bottleneck, count: int, start_s: float, settings: dict[str, Any]) -> None:
    for number in range(count):
        start = round(start_s * units.PS_PER_S) + number * STAGGER_MS * 1_000_000_000
        lab.network.tcp(lab.source, lab.sink, start=start, mss=lab.mtu - 40, **settings)
