"""Scenarios: networks that any scheme can be put into, as typed descriptions: rates, delays, buffers, flows.

All have one shape: sources at `left`, sinks at `right`, and between the two a link whose queue at `left` is the scheme's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tidegate import units
from tidegate._core import TidegateError
from tidegate.scenarios import traces
from tidegate.suggest import did_you_mean


@dataclass(frozen=True)
class FlowSet:
    """TCP flows that are alike."""

    count: int
    rtt: units.Time
    """Base RTT: twice the one-way delay from source to sink."""
    size: units.Size | None = None
    """Bytes of each; `None`: as much as possible to the end."""
    start: units.Time = 0
    every: units.Time = 0
    """Between the starts of two of them."""
    share: bool = True
    """They count for fairness: flows that are to have the same rate."""


@dataclass(frozen=True)
class Scenario:
    """A network, its flows, and how long it is measured."""

    name: str
    text: str
    rate: units.Rate
    """Of the link from left to right."""
    rtt: units.Time
    """That the buffer is sized for."""
    buffer: str
    """`1 BDP`, `200 packets`, ...: the queue at left without a scheme's own."""
    flows: tuple[FlowSet, ...]
    duration: units.Time
    warm_up: units.Time
    trace: Path | traces.Trace | None = None
    """The link's rate follows this trace in place of `rate`, which is then its mean."""

    def __post_init__(self) -> None:
        for one in self.flows:
            for given in (one.rtt, one.start, one.every, self.rtt):
                units.given_time(given)
        if not 0 <= units.given_time(self.warm_up) < units.given_time(self.duration):
            raise TidegateError(f"{self.name}: a warm-up of {self.warm_up} leaves nothing of {self.duration}")
        if not any(one.size is None and one.share for one in self.flows):
            raise TidegateError(f"{self.name}: it has no flow that lasts; goodput and fairness are of those")

    @property
    def buffer_bytes(self) -> int:
        """The buffer in bytes."""
        from tidegate.network import queue_limit

        packets, size = queue_limit(self.buffer, units.rate(self.rate), units.time(self.rtt), self.name)
        return size if size is not None else (packets or 1) * 1514


FOLDER = Path(__file__).parent
WIFI = FOLDER / "wifi.trace"
TRACE = "trace"
"""The name of the scenario of a trace of the user's."""

SCENARIOS: Mapping[str, Scenario] = {
    one.name: one
    for one in (
        Scenario(
            "access",
            "access link: 50 Mbit/s, 20 ms; four downloads and small transfers",
            "50 Mbit/s",
            "20 ms",
            "2 BDP",
            (
                FlowSet(4, "20 ms", every="100 ms"),
                FlowSet(20, "20 ms", size="50 kB", start="2 s", every="300 ms"),
            ),
            "12 s",
            "4 s",
        ),
        Scenario(
            "wan",
            "WAN: 200 Mbit/s, RTTs of 20, 40 and 80 ms",
            "200 Mbit/s",
            "40 ms",
            "1 BDP",
            tuple(FlowSet(2, rtt, every="100 ms") for rtt in ("20 ms", "40 ms", "80 ms")),
            "15 s",
            "5 s",
        ),
        Scenario(
            "datacenter",
            "data centre: 10 Gbit/s, 100 us; eight flows and small transfers",
            "10 Gbit/s",
            "100 us",
            "4 BDP",
            (
                FlowSet(8, "100 us", every="100 us"),
                FlowSet(20, "100 us", size="20 kB", start="40 ms", every="2 ms"),
            ),
            "100 ms",
            "30 ms",
        ),
        Scenario(
            "satellite",
            "satellite: 20 Mbit/s, 600 ms",
            "20 Mbit/s",
            "600 ms",
            "1 BDP",
            (FlowSet(3, "600 ms", every="500 ms"),),
            "60 s",
            "20 s",
        ),
        Scenario(
            "wifi",
            "Wi-Fi-like: a rate that varies by a trace in Mahimahi's format, mean 28 Mbit/s; 30 ms",
            traces.read(WIFI).mean_rate,
            "30 ms",
            "200 packets",
            (FlowSet(3, "30 ms", every="100 ms"),),
            "15 s",
            "5 s",
            WIFI,
        ),
    )
}


def on_trace(trace: traces.Trace) -> Scenario:
    """The scenario `trace`: that of `wifi` with another trace. Raises `TidegateError` for one that has nothing to measure."""
    if not trace.mean_rate:
        raise TidegateError(f"{trace.name} has less than 1 bit/s on average; give a trace with more packets")
    made = replace(
        SCENARIOS["wifi"],
        name=TRACE,
        text=f"a rate that follows {trace.name}; 30 ms",
        rate=trace.mean_rate,
        trace=trace,
    )
    begin, end = units.time(made.warm_up), units.time(made.duration)
    if not trace.packets(begin, end):
        raise TidegateError(
            f"{trace.name} has no packet from {units.show_time(begin)} to {units.show_time(end)}, which is what is measured; "
            "give a trace with some"
        )
    return made


def find(name: str) -> Scenario:
    """A scenario by name."""
    if name not in SCENARIOS:
        raise TidegateError(
            f"there is no scenario {name!r}; {did_you_mean(name, SCENARIOS)}known: {', '.join(SCENARIOS)}"
        )
    return SCENARIOS[name]
