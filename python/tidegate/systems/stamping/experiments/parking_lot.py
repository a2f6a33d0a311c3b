"""One flow through several shared queues, of which only one is its bottleneck: the network of Figs. 2 to 4, and what is measured.

The primary flow, number 0, crosses all switches of a row. Cross flows share one link of the row each. The delays of the links are
such that the RTT without queues is the same for any number of shared queues. Rates are of packets with their headers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from random import Random
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl

from tidegate import units
from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments import AtLeast, MayRepeat
from tidegate.network import Network, Node
from tidegate.results import Result
from tidegate.systems.stamping.experiments.testbed import (
    HEADERS,
    PACKET,
    PLAIN,
    author_s_timely,
    is_stamp,
    payload,
    stamp_all,
    stamp_for,
)
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.setup import stamping

Floats = npt.NDArray[np.float64]

RATE_GBPS = 10.0
"""Of all links in the paper. On links of another rate all times are longer by its ratio, and queues in packets stay the same."""
US_PER_BYTE = 8 / (RATE_GBPS * 1e3)
# A packet and its ACK on one link.
WIRE_US = (PACKET + HEADERS) * US_PER_BYTE
MIN_RTT_US = 7 * (2 * 5.0 + WIRE_US)
"""Of the primary flow without queues: the paper's seven links, of 5 us each."""
LEAST_MBPS = 1
"""Rate that TIMELY does not go below."""
SAMPLE_US = 100
PEAK_US = 20
"""A queue that has not been longer than this had no peak: bursts of a few packets are none."""


MOST_QUEUES = 60
"""More would need links without delay for the same round trip."""


CrossFlows = Annotated[tuple[int, ...], AtLeast(1, 10_000), MayRepeat()]
"""The cross flows of each shared queue."""


def demand_queues(cross_flows: tuple[int, ...]) -> None:
    """Refuse more shared queues than there are."""
    if len(cross_flows) > MOST_QUEUES:
        raise TidegateError(
            f"cross_flows has {len(cross_flows)} numbers, one for each shared queue; give at most {MOST_QUEUES}"
        )


def author_s_constants(
    *,
    rate_gbps: float = RATE_GBPS,
    delta_mbps: float = 20.0,
    beta: float = 0.6,
    alpha: float = 0.3,
    t_low_us: float = 120.0,
    t_high_us: float = 500.0,
    start_gbps: float = 2.0,
    **more: object,
) -> dict[str, object]:
    """Options of `timely` for Figs. 2 to 4, after the public code of the paper's first author: those at 10 Gbit/s, in proportion."""
    scale = RATE_GBPS / rate_gbps
    return {
        "delta": f"{delta_mbps / scale:g} Mbit/s",
        "beta": beta,
        "alpha": alpha,
        "t_low": f"{t_low_us * scale:g} us",
        "t_high": f"{t_high_us * scale:g} us",
        "start_rate": f"{start_gbps / scale:g} Gbit/s",
        **({"min_rate": f"{LEAST_MBPS / scale:g} Mbit/s"} if scale > 1 else {}),
        **more,
    }


@dataclass(frozen=True)
class Lot:
    """The network: a signal, cross flows of each shared queue, options of TIMELY."""

    signal: str
    cross_flows: tuple[int, ...]
    constants: dict[str, object] = field(default_factory=dict)
    threshold_us: float = 120.0
    """Of IND."""
    cross_rtt_us: float = MIN_RTT_US
    """Of cross flows without queues. Times are those at 10 Gbit/s."""
    rate_gbps: float = RATE_GBPS
    """Of all links."""
    control: dict[str, object] | None = None
    """Options of the control `stamp`, instead of TIMELY."""

    @property
    def scale(self) -> float:
        """Times of this network in those at 10 Gbit/s."""
        return RATE_GBPS / self.rate_gbps

    @property
    def bottleneck(self) -> int:
        """The index of the queue with the most cross flows."""
        return int(np.argmax(self.cross_flows))

    @property
    def fair_gbps(self) -> float:
        """The primary flow's max-min share."""
        return self.rate_gbps / (max(self.cross_flows) + 1)

    @property
    def proportional_gbps(self) -> float:
        """The primary flow's share where rates are proportionally fair: it pays for each link that it crosses (Kelly, 1997)."""
        return self.rate_gbps / (sum(self.cross_flows) + 1)

    @property
    def form(self) -> Format:
        """The stamp on its packets."""
        return stamp_for(self.signal, self.threshold_us, self.scale)

    @property
    def payload(self) -> int:
        """Bytes of payload in a packet."""
        return payload(self.form)

    def network(self, seed: int) -> Network:
        """Flows start within the first round trip, at random."""
        network, random, form = Network(), Random(seed), self.form
        queues = len(self.cross_flows)
        delay_us = (MIN_RTT_US / (queues + 2) - WIRE_US) / 2
        switches: list[Node] = [
            stamping(network, f"s{number}", form, clock="1 ns") for number in range(queues + 1)
        ]

        def link(a: Node, b: Node, us: float, packets: int = 200) -> None:
            network.link(
                a,
                b,
                rate=f"{self.rate_gbps:g} Gbit/s",
                delay=round(us * self.scale * 1e6),
                framing=0,
                queue=f"{packets} packets",
            )

        # A source holds what its window lets go: only shared queues drop.
        own = 10_000
        source, target = network.host("source"), network.host("destination")
        ends = [(source, target)]
        link(source, switches[0], delay_us, own)
        for a, b in pairwise(switches):
            link(a, b, delay_us)
        shared = network.links[1:]
        link(switches[-1], target, delay_us)
        aside_us = (self.cross_rtt_us - 2 * delay_us - 3 * WIRE_US) / 4
        if aside_us < 0:
            raise TidegateError(f"cross flows have a round trip of {self.cross_rtt_us:g} us; give more")
        for number, count in enumerate(self.cross_flows):
            for each in range(count):
                a, b = network.host(f"from{number}.{each}"), network.host(f"to{number}.{each}")
                link(a, switches[number], aside_us, own)
                link(switches[number + 1], b, aside_us)
                ends.append((a, b))
        stamp_all(network, (host for pair in ends for host in pair), form)
        reading = form.control_options if is_stamp(self.signal) else {}
        keywords = author_s_timely(self.signal, reading, MIN_RTT_US * self.scale, **self.constants)
        if self.control is not None:
            times = {"base_rtt": f"{MIN_RTT_US * self.scale:g} us", "rtt": f"{MIN_RTT_US * self.scale:g} us"}
            line = {"line_rate": f"{self.rate_gbps:g} Gbit/s", "overhead": HEADERS + form.wire_bytes}
            options = {**reading, **times, **line, **self.control}
            keywords = {"congestion_control": "stamp", "control_options": options, **PLAIN}
        for a, b in ends:
            within = round(MIN_RTT_US * self.scale * units.PS_PER_S / 1e6)
            start = 0 if a is source else random.randrange(within)
            network.tcp(a, b, start=start, **keywords)
        network.record(round(SAMPLE_US * self.scale * 1e6), queues=shared)
        return network

    def queue_names(self) -> list[str]:
        """Of the shared queues, as in the tables."""
        return [f"s{number} -> s{number + 1}" for number in range(len(self.cross_flows))]

    def delays_us(self, queue_samples: pl.DataFrame, from_ms: float = 0.0, to_ms: float = 1e12) -> Floats:
        """What a packet that comes to each shared queue would wait, by queue and time."""
        between = queue_samples.filter(pl.col("time_s").is_between(from_ms / 1e3, to_ms / 1e3))
        by_name = between.partition_by("queue", as_dict=True)
        each = [by_name[name,].sort("time_s")["bytes"].to_numpy() for name in self.queue_names()]
        return np.array(each, dtype=float) * US_PER_BYTE * self.scale

    def rates_gbps(self, flow_samples: pl.DataFrame, from_ms: float) -> list[float]:
        """Of each flow, from a time on."""
        ends = (
            flow_samples.filter(pl.col("time_s") >= from_ms / 1e3)
            .sort("flow", "time_s")
            .group_by("flow", maintain_order=True)
            .agg(pl.col("bytes_received", "time_s").last() - pl.col("bytes_received", "time_s").first())
        )
        factor = 8e-9 * PACKET / self.payload
        return [received * factor / spent for _, received, spent in ends.iter_rows()]

    def rows(self, about: Row, warm_up_ms: float, result: Result) -> Row:
        """The run's row: throughputs, the primary flow's RTT, and its queues. The warm-up is that of this network."""
        rates = self.rates_gbps(result.flow_samples, warm_up_ms)
        delays = self.delays_us(result.queue_samples, warm_up_ms)
        rtts = MIN_RTT_US * self.scale + delays.sum(axis=0)
        own = delays[self.bottleneck]
        # By how much each signal differs from the bottleneck's queue.
        signals = {
            "sum": delays.sum(axis=0),
            "sum_squ": np.sqrt((delays**2).sum(axis=0)),
            "max": delays.max(axis=0),
        }
        row: Row = {
            "signal": self.signal,
            **about,
            "throughput_gbps": rates[0],
            "of_fair": rates[0] / self.fair_gbps,
            "rtt_us_mean": float(rtts.mean()),
            **{f"rtt_us_p{share}": float(np.quantile(rtts, share / 100)) for share in (50, 95, 99)},
            "srtt_us_p50": self._smoothed_us(result, warm_up_ms),
            "max_elsewhere": float(np.mean(delays.argmax(axis=0) != self.bottleneck)),
            **{f"noise_us_{name}": float((values - own).std()) for name, values in signals.items()},
            "first_peak_us": self._first_peak_us(result),
            "retransmits": int(result.flows["retransmits"].sum()),
            "timeouts": int(result.flows["timeouts"].sum()),
        }
        at = 1
        least, most = 1.0, 1.0
        for number, (count, queue) in enumerate(zip(self.cross_flows, delays, strict=True), 1):
            group = rates[at : at + count]
            share = (self.rate_gbps - self.fair_gbps) / count
            least, most = min(least, min(group) / share), max(most, max(group) / share)
            at += count
            row[f"queue{number}_us_mean"] = float(queue.mean())
            row[f"queue{number}_us_sd"] = float(queue.std())
            row[f"cross{number}_gbps"] = float(np.mean(group))
        return {**row, "cross_of_fair_least": least, "cross_of_fair_most": most}

    def _smoothed_us(self, result: Result, from_ms: float) -> float:
        """Median of the primary flow's smoothed RTT, which has in it what hosts take."""
        own = result.flow_samples.filter((pl.col("flow") == 0) & (pl.col("time_s") >= from_ms / 1e3))
        return float(np.median(own["srtt_ms"].drop_nulls().to_numpy())) * 1e3

    def _first_peak_us(self, result: Result) -> float:
        """Median over the queues of one cross flow: the longest that each is before it first falls to half of that."""
        peaks = []
        for count, queue in zip(self.cross_flows, self.delays_us(result.queue_samples), strict=True):
            highest = np.maximum.accumulate(queue)
            falls = np.flatnonzero((queue < highest / 2) & (highest > PEAK_US * self.scale))
            if count == min(self.cross_flows) and len(falls):
                peaks.append(highest[falls[0]])
        return float(np.median(peaks)) if peaks else 0.0


def measured(lot: Lot, about: Row, warm_up_ms: float) -> partial[Row]:
    """Measures a run of the network."""
    return partial(lot.rows, about, warm_up_ms)
