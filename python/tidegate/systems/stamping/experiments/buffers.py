"""The smallest buffer that keeps links busy, for each congestion control, over the number of flows and of shared queues.

One flow crosses all shared links of a row. The others share one link each: the last link has all but one of `flows`, each other link
has one more. The RTT without queues is T0 for all. A buffer suffices if each shared link is busy for 98 % of the later half of a run;
in the second of two searches, also if no shared queue drops a packet in that half. A search halves the range of buffers: what it finds
suffices, and one packet less does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from tidegate.claims import Claim, Row, between
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import Link, Network, Node
from tidegate.papers import of_run
from tidegate.plots import all_rows, colour, log_scale
from tidegate.results import Result
from tidegate.systems.stamping.claims import CLAIMS
from tidegate.systems.stamping.experiments.contenders import (
    ACK_US,
    CONTENDERS,
    EDGE_GBPS,
    FRAMING,
    FULL_US,
    MTU,
    T0_US,
    Contender,
)
from tidegate.systems.stamping.experiments.testbed import stamp_all

NAMES = (
    "stamp",
    "timely-max",
    "timely-sum_squ",
    "timely-sum",
    "timely-rtt",
    "dctcp",
    "swift",
    "hpcc",
    "powertcp",
    "cubic",
)
TELEMETRY_HOPS = 2
"""Telemetry has room for three switches, so for two shared links."""
BUSY = 0.98
SAMPLES = 20


@dataclass(frozen=True)
class Chain:
    """Shared links in a row, with one congestion control."""

    contender: str
    flows: int
    hops: int
    most_packets: int
    duration_ms: float
    rto_min_ms: float
    threshold: int | None = None
    """At which DCTCP's queues mark, in packets."""

    @property
    def who(self) -> Contender:
        """The congestion control of all flows."""
        known = CONTENDERS[self.contender]
        return replace(known, mark_above=self.threshold) if self.threshold else known

    @property
    def until(self) -> str:
        """The end of a run."""
        return f"{self.duration_ms * 1e3:.0f} us"

    def network(self, seed: int, buffer: int | None = None) -> Network:
        """The network with a buffer, or with the largest; flows start within a base RTT, at random."""
        network, random, who = Network(), Random(seed), self.who
        packets = self.most_packets if buffer is None else buffer
        wire_us = FULL_US + ACK_US
        delay_us = (T0_US / (self.hops + 2) - wire_us) / 2
        aside_us = (T0_US - 2 * delay_us - 3 * wire_us) / 4
        switches = [who.switch(network, f"s{number}") for number in range(self.hops + 1)]

        def link(a: Node, b: Node, us: float, size: int) -> Link:
            return network.link(
                a,
                b,
                rate=f"{EDGE_GBPS:g} Gbit/s",
                delay=round(us * 1e6),
                framing=FRAMING - who.imaginary,
                mtu=MTU + who.imaginary,
                queue=f"{size} packets",
                mark_above=who.mark_above,
            )

        # A source holds what its window lets go: only shared queues drop.
        own = 10_000
        shared = [link(a, b, delay_us, packets) for a, b in pairwise(switches)]
        # From a switch, to another, and the delay of a host's link.
        ends = [(0, self.hops, delay_us)]
        ends += [(number, number + 1, aside_us) for number in range(self.hops - 1)]
        ends += [(self.hops - 1, self.hops, aside_us)] * (self.flows - 1)
        hosts: list[Node] = []
        for number, (first, last, us) in enumerate(ends):
            a, b = network.host(f"from{number}"), network.host(f"to{number}")
            link(a, switches[first], us, own)
            link(switches[last], b, us, own)
            hosts += [a, b]
        if who.form is not None:
            stamp_all(network, hosts, who.form)
        for a, b in zip(hosts[::2], hosts[1::2], strict=True):
            start = random.randrange(round(T0_US * 1e6))
            network.tcp(a, b, start=start, rto_min=round(self.rto_min_ms * 1e9), **who.keywords)
        network.record(round(self.duration_ms / SAMPLES * 1e9), queues=shared)
        return network

    def judge(self, result: Result) -> tuple[float, int]:
        """In the later half of the run: how long the least busy of the shared links sends, as a share, and what they drop."""
        later = result.queue_samples.filter(pl.col("time_s") >= self.duration_ms / 2e3 - 1e-9)
        names = [f"s{number} -> s{number + 1}" for number in range(self.hops)]
        shares, dropped = [], 0
        for name in names:
            own = later.filter(pl.col("queue") == name).sort("time_s")
            busy, times, drops = own["busy_s"], own["time_s"], own["dropped"]
            shares.append((busy[-1] - busy[0]) / (times[-1] - times[0]))
            dropped += drops[-1] - drops[0]
        return float(min(shares)), int(dropped)

    def rows(self, result: Result) -> Row:
        """The run's row. The result is that of the largest buffer, with which searches begin."""
        tried = {self.most_packets: self.judge(result)}

        def judged(buffer: int) -> tuple[float, int]:
            if buffer not in tried:
                # Ever the same seed: runs differ by the buffer alone.
                tried[buffer] = self.judge(
                    self.network(result.seed, buffer).run(self.until, seed=result.seed, progress=False)
                )
            return tried[buffer]

        def search(most_drops: float) -> int | None:
            def suffices(buffer: int) -> bool:
                busy, dropped = judged(buffer)
                return busy >= BUSY and dropped <= most_drops

            low, found = 0, self.most_packets
            if not suffices(found):
                return None
            while found - low > 1:
                middle = (low + found) // 2
                low, found = (low, middle) if suffices(middle) else (middle, found)
            return found

        least, lossless = search(np.inf), search(0)
        return {
            "contender": self.contender,
            "threshold": self.threshold,
            "flows": self.flows,
            "hops": self.hops,
            "buffer_packets": least,
            "dropped": None if least is None else judged(least)[1],
            "lossless_packets": lossless,
            "busy_with_most": judged(self.most_packets)[0],
            "dropped_with_most": judged(self.most_packets)[1],
        }


@experiment(
    "stamping.buffers",
    (
        "contender",
        "threshold",
        "flows",
        "hops",
        "buffer_packets",
        "dropped",
        "lossless_packets",
        "busy_with_most",
    ),
    quick={
        "contenders": ("stamp", "timely-max", "timely-rtt", "dctcp", "cubic"),
        "flows": (2, 10),
        "hops": (3,),
        "thresholds": (3, 8, 20),
        "duration_ms": 6.0,
        "most_packets": 256,
    },
)
def buffers(
    contenders: Annotated[tuple[str, ...], OneOf(CONTENDERS)] = NAMES,
    flows: Annotated[tuple[int, ...], AtLeast(1, 1000)] = (1, 2, 10, 30, 100),
    hops: Annotated[tuple[int, ...], AtLeast(2, 12)] = (2, 4, 8, 12),
    flows_of_hops: Number = 10,
    thresholds: Annotated[tuple[int, ...], AtLeast(1, 1000)] = (2, 3, 5, 8, 13, 20, 40),
    most_packets: Annotated[int, AtLeast(2, 100_000)] = 512,
    duration_ms: Annotated[float, AtLeast(1)] = 20.0,
    rto_min_ms: Annotated[float, AtLeast(0.1, 1000)] = 1.0,
) -> Plan:
    """The smallest buffer that keeps links busy for 98 % of the time: `flows` over one queue, `flows_of_hops` over `hops` queues."""
    scenes = [(number, 1) for number in flows] + [(flows_of_hops, number) for number in hops]
    cases = []
    for name in contenders:
        for number, queues in scenes:
            if CONTENDERS[name].control in ("hpcc", "powertcp") and queues > TELEMETRY_HOPS:
                continue
            for threshold in thresholds if name == "dctcp" else (None,):
                chain = Chain(name, number, queues, most_packets, duration_ms, rto_min_ms, threshold)
                case = f"{name}{'' if threshold is None else threshold}-{number}-{queues}"
                cases.append(Case(case, chain.network, chain.until, chain.rows))
    return Plan(cases, partial(_claims, contenders), partial(_draw, contenders, scenes))


def needed(rows: Sequence[Row], contender: str, column: str) -> dict[str, float]:
    """The smallest buffer by flows and shared queues: the median over the seeds, at DCTCP's best threshold; infinite if none suffices."""
    found: dict[str, dict[int | None, list[float]]] = {}
    for row in rows:
        if row["contender"] == contender:
            cell = found.setdefault(f"{row['flows']} over {row['hops']}", {})
            cell.setdefault(row["threshold"], []).append(np.inf if row[column] is None else row[column])
    return {
        name: min(float(np.median(values)) for values in by_threshold.values())
        for name, by_threshold in found.items()
    }


SEARCHES = {"buffer_packets": "losses allowed", "lossless_packets": "without losses"}
WHY = (
    "with more flows than the 19 packets of a base RTT, windows are of one packet, only rates control, and the loop of `stamp` oscillates: "
    "the link is idle at times whatever the buffer. With fewer flows DCTCP at 2 or 3 packets needs little "
    "more, and where losses are allowed every control gets by with a few packets"
)


def _claims(contenders: tuple[str, ...], rows: list[Row]) -> list[Claim]:
    out = of_run(CLAIMS, "stamping.buffers", rows, {})
    if not {"stamp", "dctcp"} <= set(contenders):
        return out
    for column, text in SEARCHES.items():
        own, marks = (needed(rows, name, column) for name in ("stamp", "dctcp"))
        statement = "`stamp` needs at most half of the buffer that DCTCP needs at its best threshold"
        ratios = {name: own[name] / marks[name] for name in own if np.isfinite(marks[name])}
        id = f"half-of-dctcp-{text.split()[0]}"
        out.append(between(id, "ours", f"{statement}, {text}", ratios, high=0.5, why=WHY))
    return out


def _draw(contenders: tuple[str, ...], scenes: list[tuple[int, int]], runs: list[Run]) -> Figure:
    """The smallest buffer over the number of flows, and of shared queues."""
    rows = all_rows(runs)
    figure = Figure(figsize=(11, 8), layout="constrained")
    by_flows = [number for number, queues in scenes if queues == 1]
    of_hops = scenes[-1][0]
    by_hops = [queues for number, queues in scenes if queues > 1]
    columns = (
        (by_flows, [f"{count} over 1" for count in by_flows], "flows", "flows over one queue"),
        (
            by_hops,
            [f"{of_hops} over {count}" for count in by_hops],
            "shared queues",
            f"{of_hops} flows over the last of several",
        ),
    )
    panels = figure.subplots(2, 2, sharey=True)
    for line, (column, said) in zip(panels, SEARCHES.items(), strict=True):
        for panel, (places, cells, label, title) in zip(line, columns, strict=True):
            for name in contenders:
                found = needed(rows, name, column)
                values = np.array([found.get(cell, np.inf) for cell in cells])
                style = {"stamp": "-", "dctcp": "-."}.get(name, "--")
                text = CONTENDERS[name].text + (", best threshold" if name == "dctcp" else "")
                shown = np.where(np.isfinite(values), values, np.nan)
                panel.plot(places, shown, style, marker="o", markersize=4, color=colour(name), label=text)
            panel.set(xlabel=label, title=f"{title}, {said}", xscale="log")
            log_scale(panel)
            panel.set_xticks(places, [str(place) for place in places])
            panel.xaxis.set_minor_locator(NullLocator())
            panel.yaxis.set_major_formatter("{x:g}")
            panel.grid(alpha=0.3, which="both")
        line[0].set_ylabel("smallest buffer for 98 % (packets)")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, fontsize="small", loc="outside lower center", ncols=4)
    return figure
