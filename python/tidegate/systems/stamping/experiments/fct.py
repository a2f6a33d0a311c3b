"""Flow completion times in a leaf-spine of 25 and 100 Gbit/s: all controls, by size of flow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.figure import Figure

from tidegate import workloads
from tidegate._core import TidegateError
from tidegate.claims import Claim, Percents, Row, between, medians_of_times
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.papers import of_run
from tidegate.plots import all_rows, colour, log_scale, whiskers
from tidegate.results import Result
from tidegate.systems.stamping.claims import CLAIMS
from tidegate.systems.stamping.experiments.contenders import (
    CONTENDERS,
    EDGE_GBPS,
    FRAMING,
    HEADERS,
    MTU,
    Contender,
)
from tidegate.systems.stamping.experiments.testbed import stamp_all
from tidegate.systems.stamping.telemetry import Telemetry
from tidegate.topologies import LinkOptions, leaf_spine

FABRIC_GBPS = 100.0
LEAVES, SPINES, HOSTS_PER_LEAF = 4, 2, 8
DELAY_US = 1.0
BUFFER = 1000
"""Packets."""
SAMPLES = 200
"""Of each queue while flows come."""
TOTAL_GBPS = EDGE_GBPS * LEAVES * HOSTS_PER_LEAF
UPLINK_SHARE = (LEAVES - 1) * HOSTS_PER_LEAF / (LEAVES * HOSTS_PER_LEAF - 1)
"""Of a host's traffic, which goes to the other hosts alike."""
KNOWN = CONTENDERS | {
    f"{name}-own": replace(
        CONTENDERS[name],
        text=f"{CONTENDERS[name].text}, hosts' ports too",
        own_port=True,
        form=Telemetry(4) if name in ("hpcc", "powertcp") else CONTENDERS[name].form,
    )
    for name in ("stamp", "hpcc", "powertcp", "timely-max")
}
"""Those of all experiments, and four whose hosts' own ports stamp as well: telemetry then has four hops."""
# TIMELY is there for a claim of the paper alone.
PEERS = tuple(name for name in KNOWN if not name.startswith("timely"))

WHY = "not explained"
WHY_OWN = (
    "stamps do not tell of the queue in the sender's own port, where flows of one host wait for each other: its p99 was 70 kB with `stamp` "
    "and with HPCC, 27 kB with DCTCP and 16 kB with TIMELY on the RTT, whose signals hold it (50 %, 400 arrivals)"
)

# Upper ends of the classes of sizes, in bytes.
CLASSES = {"below 10 kB": 10e3, "10 to 100 kB": 100e3, "0.1 to 1 MB": 1e6, "from 1 MB": float("inf")}
QUANTILES = {"p50": 0.5, "p99": 0.99, "p999": 0.999}


@dataclass(frozen=True)
class Scene:
    """A workload on the leaf-spine."""

    load: float
    sizes: str
    arrivals: int
    """Flows that come, on average."""
    spines: int

    @property
    def span_us(self) -> float:
        """How long flows come."""
        return self.arrivals * workloads.sizes(self.sizes).mean() * 8e-3 / (self.load * TOTAL_GBPS)

    def network(self, who: Contender, seed: int) -> Network:
        """The leaf-spine with the flows of a seed, all under one control."""
        net = Network()

        wire: LinkOptions = {
            "delay": f"{DELAY_US} us",
            "framing": FRAMING - who.imaginary,
            "mtu": MTU + who.imaginary,
            "queue": f"{BUFFER} packets",
            "mark_above": who.mark_above,
        }
        edge: LinkOptions = {**wire, "rate": f"{EDGE_GBPS:g} Gbit/s"}
        fabric: LinkOptions = {**wire, "rate": f"{FABRIC_GBPS:g} Gbit/s"}
        made = leaf_spine(
            net,
            LEAVES,
            self.spines,
            HOSTS_PER_LEAF,
            access=edge,
            fabric=fabric,
            switch=who.switch,
            port=who.port if who.own_port else None,
        )
        if who.form is not None:
            stamp_all(net, made.hosts, who.form)
        else:
            # As stamping switches do: hosts take turns at the spines, whatever the control.
            for number, host in enumerate(made.hosts):
                for leaf, links in zip(made.leaves, made.fabric, strict=True):
                    if host not in made.under(made.leaves.index(leaf)):
                        net.route(leaf, host, links[number % self.spines])
        net.workload(
            made.hosts,
            load=self.load,
            rate=f"{TOTAL_GBPS:g} Gbit/s",
            start="10 us",
            stop=f"{self.span_us + 10:.3f} us",
            sizes=self.sizes,
            seed=seed,
            **who.keywords,
        )
        # All flows are sampled as well, which takes memory.
        net.record(f"{self.span_us / SAMPLES:.3f} us", queues=made.access)
        return net


def alone_us(size: int, links_gbps: list[float]) -> float:
    """How long a flow takes alone, of packets without a stamp: the handshake, then packets back to back over these links."""
    packets = -(-size // (MTU - HEADERS))
    last = size - (packets - 1) * (MTU - HEADERS) + HEADERS + FRAMING
    full = MTU + FRAMING
    delay = DELAY_US * len(links_gbps)
    slowest = min(links_gbps)
    handshake = 2 * delay + sum(2 * (HEADERS + 8 + FRAMING) * 8e-3 / rate for rate in links_gbps)
    # The last packet follows the full ones over the slowest link.
    ahead = max(0, packets - 2) * full * 8e-3 / slowest
    first = sum(full * 8e-3 / rate for rate in links_gbps) if packets > 1 else 0.0
    rest = last * 8e-3 / slowest if packets > 1 else sum(last * 8e-3 / rate for rate in links_gbps)
    return handshake + delay + ahead + first + rest


def _alone_between_us(source: str, target: str, size: int) -> float:
    leaves = {int(name[1:]) // HOSTS_PER_LEAF for name in (source, target)}
    edges, fabric = [EDGE_GBPS] * 2, [FABRIC_GBPS] * 2
    return alone_us(size, edges + fabric * (len(leaves) > 1))


def quantile(values: npt.NDArray[np.float64], share: float) -> float | None:
    """A quantile where some values are infinite; `None`: it is, too."""
    ended = np.sort(values[np.isfinite(values)])
    if share * (len(values) - 1) > len(ended) - 1:
        return None
    # Those beyond the quantile do not change it.
    return float(np.quantile(np.concatenate((ended, np.full(len(values) - len(ended), ended[-1]))), share))


def _rows(name: str, scene: Scene, result: Result) -> list[Row]:
    """A row for each class of sizes."""
    ends = result.flows.select("source", "target", "size_bytes", "completion_ms")
    slow = np.array(
        [
            np.inf if took is None else took * 1e3 / _alone_between_us(source, target, size)
            for source, target, size, took in ends.iter_rows()
        ]
    )
    sizes = ends["size_bytes"].to_numpy()
    busy = pl.col("time_s") <= scene.span_us / 1e6
    # Queues in front of hosts.
    queues = result.queue_samples.filter(busy & pl.col("queue").str.contains("-> (h|nic)"))["bytes"]
    got = result.flow_samples.filter(busy).group_by("flow").agg(pl.col("bytes_received").max())
    common: Row = {
        "queue_kb_p99": float(np.quantile(queues.to_numpy(), 0.99)) / 1e3,
        "utilisation": float(got["bytes_received"].sum()) * 8e-3 / scene.span_us / TOTAL_GBPS,
        "retransmits": int(result.flows["retransmits"].sum()),
    }
    rows: list[Row] = []
    least = 0.0
    for label, most in CLASSES.items():
        own = slow[(sizes >= least) & (sizes < most)]
        least = most
        unfinished = int(np.isinf(own).sum())
        if unfinished == len(own):
            raise TidegateError(f"no flow {label} got through; give more arrivals")
        row: Row = {"contender": name, "load": scene.load, "size": label, "flows": len(own)}
        row["unfinished"] = unfinished
        row["slowdown_mean"] = None if unfinished else float(np.mean(own))
        row |= {f"slowdown_{column}": quantile(own, share) for column, share in QUANTILES.items()}
        rows.append(row | common)
    return rows


@experiment(
    "stamping.fct",
    (
        "contender",
        "load",
        "size",
        "flows",
        "unfinished",
        "slowdown_p50",
        "slowdown_p99",
        "slowdown_p999",
        "queue_kb_p99",
    ),
    quick={"arrivals": 400},
)
def fct(
    contenders: Annotated[tuple[str, ...], OneOf(KNOWN)] = PEERS,
    loads: Annotated[tuple[float, ...], AtLeast(0.01, 0.99)] = (0.5, 0.8),
    sizes: Annotated[str, OneOf(("web-search", "data-mining"))] = "web-search",
    arrivals: Annotated[int, AtLeast(100, 1_000_000)] = 4000,
    spines: Annotated[int, AtLeast(1, 8)] = SPINES,
) -> Plan:
    """Flow completion times in a leaf-spine: a few bits, full telemetry, round trips, marks and losses.

    The slowdown of a flow that does not end is infinite: a mean or a quantile that has it is left empty.
    """
    for load in loads:
        fabric = load * UPLINK_SHARE * EDGE_GBPS * HOSTS_PER_LEAF / (spines * FABRIC_GBPS)
        if fabric >= 1:
            raise TidegateError(
                f"a load of {load:.0%} is {fabric:.0%} of what {spines} spine(s) carry; give less load or more spines"
            )
    cases = []
    for load in loads:
        scene = Scene(load, sizes, arrivals, spines)
        for name in contenders:
            # Three times as long again for what is left.
            until = f"{4 * scene.span_us + 1000:.0f} us"
            network = partial(scene.network, KNOWN[name])
            cases.append(Case(f"{name}-{load:g}", network, until, partial(_rows, name, scene)))
    return Plan(cases, partial(_claims, contenders), partial(_draw, contenders, loads))


def _ratios(rows: list[Row], a: str, b: str, columns: list[str], sizes: list[str]) -> dict[str, float]:
    """Medians of one contender over those of another, by load, size and column."""
    out = {}
    for column in columns:
        values = medians_of_times(
            rows, column, lambda row: f"{row['contender']}|{row['load']:.0%} {row['size']}"
        )
        for key, value in values.items():
            who, cell = key.split("|")
            if who == a and any(cell.endswith(size) for size in sizes):
                other = values[f"{b}|{cell}"]
                # What is infinite on both sides cannot be compared, and breaks a claim.
                ratio = value / other if np.isfinite([value, other]).any() else np.inf
                out[f"{cell} {column.removeprefix('slowdown_')}"] = ratio
    return out


def _claims(contenders: tuple[str, ...], rows: list[Row]) -> list[Claim]:
    out = of_run(CLAIMS, "stamping.fct", rows, {})
    if "stamp" in contenders:
        out += _claims_of("stamp", "", contenders, rows, WHY_OWN)
    if "stamp-own" in contenders:
        out += _claims_of("stamp-own", "-own", contenders, rows, WHY)
    if "stamp" in contenders and "stamp4" in contenders:
        quantiles = [f"slowdown_{column}" for column in QUANTILES]
        ratios = _ratios(rows, "stamp4", "stamp", quantiles, list(CLASSES))
        out.append(_at_most("bits", "4 bits have at most 105 % of the slowdown of 8 bits", ratios, 0.05, WHY))
    return out


def _at_most(id: str, statement: str, ratios: dict[str, float], most: float, why: str) -> Claim:
    """No ratio is above 1 by more than `most`."""
    changes = {cell: ratio - 1 for cell, ratio in ratios.items()}
    if np.inf in changes.values():
        why = f"flows that did not end count as infinite; beside them: {why}"
    return between(id, "ours", statement, changes, -1.0, most, why=why, form=Percents())


def _claims_of(
    ours: str, ending: str, contenders: tuple[str, ...], rows: list[Row], why_tail: str
) -> list[Claim]:
    """The claims of our control; `ending` is that of the telemetry's names whose hosts' ports stamp as ours do."""
    small, *large = CLASSES
    quantiles = [f"slowdown_{column}" for column in QUANTILES]
    text = KNOWN[ours].text
    out = []

    def judge(id: str, peer: str, statement: str, columns: list[str], sizes: list[str], most: float) -> None:
        if peer in contenders:
            against = f"{text}, against {KNOWN[peer].text}: {statement}"
            ratios = _ratios(rows, ours, peer, columns, sizes)
            why = why_tail if peer in ("dctcp", "swift") else WHY
            out.append(_at_most(f"{id}{ending}", against, ratios, most, why))

    for name in ("hpcc", "powertcp"):
        peer = f"{name}{ending}"
        judge(
            f"{name}-large",
            peer,
            "flows from 10 kB have at most 95 % of the slowdown",
            quantiles,
            large,
            -0.05,
        )
        judge(
            f"{name}-small",
            peer,
            "flows below 10 kB have at most 103 % of the slowdown",
            quantiles,
            [small],
            0.03,
        )
    if not ending:
        judge("law", "hpcc_free", "at most 110 % of the slowdown", quantiles, list(CLASSES), 0.1)
    queue = "the p99 of the queues in front of hosts is at most 150 %"
    judge("queue", f"hpcc{ending}", queue, ["queue_kb_p99"], [small], 0.5)
    for peer in ("dctcp", "swift"):
        judge(f"{peer}-mean", peer, "a lower mean slowdown", ["slowdown_mean"], list(CLASSES), 0.0)
        judge(
            f"{peer}-tail", peer, "at most 105 % of the p99 slowdown", ["slowdown_p99"], list(CLASSES), 0.05
        )
    return out


def _few_digits(value: float, _: object) -> str:
    """A label of an axis between two powers of ten."""
    text = f"{value:g}"
    return text if text.lstrip("0.")[:1] in ("2", "3", "5") else ""


def _draw(contenders: tuple[str, ...], loads: tuple[float, ...], runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    figure = Figure(figsize=(11, 3.6 * len(loads)), layout="constrained")
    panels = figure.subplots(len(loads), 3, squeeze=False, sharex=True)
    places = np.arange(len(CLASSES))
    for line, load in zip(panels, loads, strict=True):
        own = [row for row in rows if row["load"] == load]
        for panel, column in zip(line, QUANTILES, strict=True):
            values = medians_of_times(
                own, f"slowdown_{column}", lambda row: f"{row['contender']}|{row['size']}"
            )
            for name in contenders:
                heights = [values[f"{name}|{size}"] for size in CLASSES]
                heights = [height if np.isfinite(height) else np.nan for height in heights]
                style = "-" if name.startswith("stamp") else ":" if name.startswith("timely") else "--"
                text = KNOWN[name].text
                panel.plot(places, heights, style, marker="o", markersize=3, color=colour(name), label=text)
                whiskers(
                    panel,
                    [row for row in own if row["contender"] == name],
                    f"slowdown_{column}",
                    lambda row: str(row["size"]),
                    colour=colour(name),
                    places={size: place for place, size in enumerate(CLASSES)},
                )
            title = {"p50": "p50", "p99": "p99", "p999": "p99.9"}[column]
            panel.set(title=f"{title} at {load:.0%} load")
            log_scale(panel)
            panel.set_xticks(places, list(CLASSES), fontsize="small")
            panel.yaxis.set_major_formatter("{x:g}")
            low, high = panel.get_ylim()
            # Over more decades, and of all digits, labels between them would cover each other.
            panel.yaxis.set_minor_formatter(_few_digits if high < 50 * low else "")
            panel.tick_params(axis="y", which="both", labelsize="small")
            panel.grid(alpha=0.3, which="both")
        line[0].set_ylabel("completion time / alone")
    handles = panels[0, 0].get_legend_handles_labels()
    figure.legend(*handles, fontsize="small", loc="outside lower center", ncols=4)
    return figure
