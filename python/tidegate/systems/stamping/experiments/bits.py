"""Figures 5 and 6 of the paper: how many bits a stamp needs, in a tree of 192 hosts.

Rates are of packets with their headers. A packet's RTT is that of its path without queues, and what waits in the path's queues both
ways at the time of a sample; samples count by the bytes that their flow then receives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure

from tidegate import units
from tidegate._core import TidegateError
from tidegate.claims import Claim, Row, medians
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import Network, Node
from tidegate.papers import of_run
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.stamping.claims import CLAIMS
from tidegate.systems.stamping.experiments.testbed import (
    HEADERS,
    PACKET,
    author_s_timely,
    payload,
    stamp_all,
)
from tidegate.systems.stamping.format import BITS, Format, unit_options
from tidegate.systems.stamping.setup import stamping

Floats = npt.NDArray[np.float64]

RACKS, RACKS_OF_POD = 8, 2
GBPS = {"h": 1, "nic": 1, "tor": 10, "agg": 40}
"""Of the link up from a node of each kind."""
DELAY_US = 5
PS_PER_BYTE = 800
"""The author's code takes bytes for a time at 10 Gbit/s, whatever the link."""
MANTISSA = {4: 2, 8: 5, 16: 12}
"""Bits of the mantissa of logarithmic bins; fewer bits have no bins of this kind that differ from equal ones."""
SAMPLE_US = 500


def stamp_format(bits: int, bins: str, buffer_packets: int) -> Format:
    """Bytes in the queue: bins from zero to the full buffer, as in the paper. 32 bits are exact: steps of a hundredth of a byte."""
    full = buffer_packets * PACKET
    if bits == 32:
        return Format((1 << 32) // 100, bits=32, source="bytes")
    if bins == "log":
        return Format(full, bits=bits, source="bytes", bins="log", mantissa=MANTISSA[bits])
    return Format(full, bits=bits, source="bytes")


def reading(form: Format) -> dict[str, str | int]:
    """Options by which `timely` reads such stamps as times."""
    options: dict[str, str | int] = {
        **unit_options(PS_PER_BYTE * form.full / form.range),
        "stamp_kind": form.echo.kind,
    }
    return options | ({"stamp_mantissa": form.mantissa} if form.bins == "log" else {})


def _up(name: str, hosts_per_rack: int) -> str:
    """The next node up the tree from a host or switch; a host's own port counts to the host."""
    kind = name.rstrip("0123456789")
    number = int(name[len(kind) :])
    return {"h": f"tor{number // hosts_per_rack}", "tor": f"agg{number // RACKS_OF_POD}", "agg": "core0"}[
        kind
    ]


def path(source: str, target: str, hosts_per_rack: int) -> list[str]:
    """The nodes from a host to another."""
    up, down = [source], [target]
    while up[-1] != down[-1]:
        up.append(_up(up[-1], hosts_per_rack))
        down.append(_up(down[-1], hosts_per_rack))
    return [*up, *reversed(down[:-1])]


def _kind(name: str) -> str:
    return name.rstrip("0123456789")


def gbps(a: str, b: str) -> int:
    """The rate of the link between two nodes."""
    return next(rate for kind, rate in GBPS.items() if kind in (_kind(a), _kind(b)))


@dataclass(frozen=True)
class Tree:
    """The network: a stamp's bits and bins, the buffers, whether hosts' own ports stamp, and the flows' times."""

    bits: int
    bins: str = "equal"
    buffer_packets: int = 200
    sender_stamps: bool = True
    hosts: int = 192
    duration_ms: int = 100
    edge_ms: float = 20.0

    @property
    def form(self) -> Format:
        """Of the stamps."""
        return stamp_format(self.bits, self.bins, self.buffer_packets)

    @property
    def hosts_per_rack(self) -> int:
        """Hosts under a ToR."""
        return self.hosts // RACKS

    def network(self, seed: int) -> Network:
        """A long flow from each host to another at random, with a start in the first and an end in the last part of the run."""
        network, random, form = Network(), Random(seed), self.form
        hosts = self._build(network)
        stamp_all(network, hosts, form)
        constants = {
            "alpha": 0.3,
            "t_low": "0 us",
            "t_high": "1 ms",
            "delta": "30 Mbit/s",
            "beta": 0.8,
            "start_rate": "0.75 Gbit/s",
        }
        keywords = author_s_timely("max", reading(form), 0.0, **constants)
        edge = round(self.edge_ms * units.PS_PER_S / 1e3)
        last = self.duration_ms * (units.PS_PER_S // 1000)
        for number, host in enumerate(hosts):
            other = hosts[(number + 1 + random.randrange(self.hosts - 1)) % self.hosts]
            start, stop = random.randrange(edge), last - random.randrange(edge)
            network.tcp(host, other, start=start, stop=stop, **keywords)
        return network

    def _build(self, network: Network) -> list[Node]:
        """Hosts and switches; the queues of the tree's links are recorded."""
        form, tree = self.form, []

        def link(a: Node, b: Node) -> None:
            options = {"rate": f"{gbps(a.name, b.name)} Gbit/s", "queue": f"{self.buffer_packets} packets"}
            tree.append(network.link(a, b, delay=f"{DELAY_US} us", framing=0, **options))  # type: ignore[arg-type]

        core = stamping(network, "core0", form)
        pods = [stamping(network, f"agg{number}", form) for number in range(RACKS // RACKS_OF_POD)]
        racks = [stamping(network, f"tor{number}", form) for number in range(RACKS)]
        for pod in pods:
            link(pod, core)
        for number, rack in enumerate(racks):
            link(rack, pods[number // RACKS_OF_POD])
        hosts = []
        for number in range(self.hosts):
            host: Node = network.host(f"h{number}")
            hosts.append(host)
            port = host
            if self.sender_stamps:
                # A switch of one port that is the host's own: the link to it takes no time.
                port = stamping(network, f"nic{number}", form)
                network.link(host, port, rate="1 Tbit/s", delay=0, framing=0)
            link(port, racks[number // self.hosts_per_rack])
        network.record(f"{SAMPLE_US} us", queues=tree)
        return hosts

    def rows(self, result: Result) -> Row:
        """The run's row."""
        rtts, weights = self._rtts_us(result)
        order = np.argsort(rtts)
        share = np.cumsum(weights[order]) / weights.sum()
        form = self.form
        factor = 8e-9 * PACKET / payload(form)
        spent = (self.duration_ms - 2 * self.edge_ms) / 1e3
        drops = int(result.queues["dropped"].sum())
        return {
            "bits": self.bits,
            "bins": self.bins,
            "buffer_packets": self.buffer_packets,
            "sender_stamps": self.sender_stamps,
            "hosts": self.hosts,
            "rtt_us_mean": float(np.average(rtts, weights=weights)),
            **{f"rtt_us_p{at}": float(rtts[order][np.searchsorted(share, at / 100)]) for at in (50, 95, 99)},
            "throughput_gbps": float(weights.sum()) * factor / spent,
            "dropped": drops,
            "retransmits": int(result.flows["retransmits"].sum()),
            "timeouts": int(result.flows["timeouts"].sum()),
            "field_share": (form.wire_bytes + form.echo_bytes) / (PACKET + HEADERS + form.echo_bytes),
            "counter_bits": (self.buffer_packets * PACKET).bit_length(),
        }

    def _rtts_us(self, result: Result) -> tuple[Floats, Floats]:
        """RTTs and the bytes received in the interval, of all flows and samples while all flows send."""
        begin, end = self.edge_ms / 1e3 - 1e-9, (self.duration_ms - self.edge_ms) / 1e3 + 1e-9
        between = pl.col("time_s").is_between(begin, end)
        queues = result.queue_samples.filter(between).partition_by("queue", as_dict=True)
        # A host's own port counts to the host.
        waiting = {
            str(name[0]).replace("nic", "h"): part.sort("time_s")["bytes"].to_numpy()
            for name, part in queues.items()
        }
        flows = result.flow_samples.filter(between).partition_by("flow", as_dict=True)
        rtts, weights = [], []
        for number, source, target in result.flows.select("flow", "source", "target").iter_rows():
            part = flows[number,].sort("time_s")
            nodes = path(source, target, self.hosts_per_rack)
            rtt = np.zeros(len(part))
            for a, b in pairwise(nodes):
                bits_per_us = gbps(a, b) * 1e3
                rtt += 2 * DELAY_US + (PACKET + HEADERS) * 8 / bits_per_us
                rtt += (waiting[f"{a} -> {b}"] + waiting[f"{b} -> {a}"]) * 8 / bits_per_us
            rtts.append(rtt[1:])
            weights.append(np.diff(part["bytes_received"].to_numpy()).astype(float))
        return np.concatenate(rtts), np.concatenate(weights)


@experiment(
    "stamping.bits",
    ("bits", "bins", "buffer_packets", "rtt_us_mean", "rtt_us_p95", "throughput_gbps", "dropped"),
    quick={
        "bits": (1, 2, 4, 8, 32),
        "bins": ("equal",),
        "buffers_packets": (200,),
        "duration_ms": 40,
        "edge_ms": 10.0,
    },
)
def bits(
    bits: Annotated[tuple[int, ...], OneOf(BITS)] = BITS,
    bins: Annotated[tuple[str, ...], OneOf(("equal", "log"))] = ("equal", "log"),
    buffers_packets: Annotated[tuple[int, ...], AtLeast(10, 100_000)] = (50, 200, 800),
    sender_stamps: bool = True,
    hosts: Number = 192,
    duration_ms: Number = 100,
    edge_ms: float = 20.0,
) -> Plan:
    """MAX of 1 to 32 bits in a tree of 192 hosts: RTTs and throughput (Figs. 5 and 6)."""
    if duration_ms <= 2 * edge_ms:
        raise TidegateError(
            f"flows start and stop within {edge_ms:g} ms: {duration_ms} ms leave nothing to measure; give more"
        )
    if hosts % RACKS or hosts == 0:
        raise TidegateError(f"{hosts} hosts do not fill {RACKS} racks; give a multiple of {RACKS}")
    cases = []
    for buffer in buffers_packets:
        for kind in bins:
            for number in bits:
                if kind == "equal" or number in MANTISSA:
                    tree = Tree(number, kind, buffer, sender_stamps, hosts, duration_ms, edge_ms)
                    name = f"{number}-{kind}-{buffer}"
                    cases.append(Case(name, tree.network, f"{duration_ms} ms", tree.rows))
    return Plan(cases, _claims, partial(_draw, buffers_packets))


def _claims(rows: list[Row]) -> list[Claim]:
    return of_run(CLAIMS, "stamping.bits", rows, {})


def _draw(buffers: tuple[int, ...], runs: list[Run]) -> Figure:
    """RTTs and throughput over the number of bits; bars go from the least to the largest of the seeds."""
    rows = all_rows(runs)
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    styles = {"equal": "-", "log": "--"}
    for number, buffer in enumerate(buffers):
        for kind, style in styles.items():
            own = [row for row in rows if row["buffer_packets"] == buffer and row["bins"] == kind]
            if not own:
                continue
            label = f"{kind} bins" + (f", {buffer} packets" if len(buffers) > 1 else "")
            colours = [f"C{number}"] * 3 if len(buffers) > 1 else ["C0", "C1", "C2"]
            _line(left, own, "rtt_us_mean", f"mean, {label}", colours[0], style, "o")
            _line(left, own, "rtt_us_p95", f"p95, {label}", colours[1], style, "^")
            _line(right, own, "throughput_gbps", label, colours[2], style, "o")
    for panel, what in ((left, "RTT (us)"), (right, "throughput of all flows (Gbit/s)")):
        panel.set(xlabel="bits of a stamp", ylabel=what, xscale="log", ylim=(0, None))
        ticks = sorted({row["bits"] for row in rows})
        panel.set_xticks(ticks, [str(tick) for tick in ticks])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
        panel.legend(fontsize="x-small", handlelength=4)
    return figure


def _line(panel: Any, rows: list[Row], column: str, label: str, colour: str, style: str, mark: str) -> None:
    middle = medians(rows, column, lambda row: str(row["bits"]))
    at = [int(name) for name in middle]
    values = np.array(list(middle.values()))
    every = [[row[column] for row in rows if row["bits"] == number] for number in at]
    spread = [values - [min(each) for each in every], [max(each) for each in every] - values]
    # Those of logarithmic bins are open, and beside the others.
    is_log = style != "-"
    places = [number * 1.07 for number in at] if is_log else at
    panel.errorbar(
        places,
        values,
        spread,
        fmt=mark + style,
        color=colour,
        markerfacecolor="white" if is_log else colour,
        capsize=2,
        label=label,
    )
