"""Makes a scenario's network with a scheme in it, and measures its runs."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import polars as pl

from tidegate import units
from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments import user_code
from tidegate.measures import goodputs_mbps, grown
from tidegate.network import Network, Node
from tidegate.results import Result, jain
from tidegate.scenarios import traces
from tidegate.scenarios.scenario import Scenario
from tidegate.scenarios.schemes import Place, Scheme
from tidegate.suggest import did_you_mean
from tidegate.topologies import LinkOptions

QUEUE_AT = "left"
"""The node that the scheme makes."""
OF_FLOWS = ("self", "source", "target", "start", "size", "label")
"""Of `Network.tcp`, what is the scenario's."""
SAMPLES = 500
"""Of a run."""
ACCESS = 10
"""Access links have so many times the rate of the link between."""


def network(scenario: Scenario, scheme: Scheme, seed: int = 1, **flow: Any) -> Network:
    """The network; starts of flows are shifted at random, by up to 10 % of the RTT, from the seed. `flow`: other keywords of its flows."""
    net = Network()
    rng = np.random.default_rng(seed)
    rate = units.rate(scenario.rate)
    fast: LinkOptions = {"rate": ACCESS * rate, "delay": 0, "queue": "100000 packets"}
    left, right = _left(scheme, net, scenario), net.router("right")
    front = net.router("front") if scheme.taps else left
    inner = net.link(front, left, **fast) if scheme.taps else None
    keywords = {**_flow(scheme, scenario), **flow}
    sources, sinks, starts = [], [], []
    ends = []
    for number, each in enumerate(scenario.flows):
        # A host for each set of long flows' members; short transfers share one.
        hosts = each.count if each.size is None else 1
        for index in range(hosts):
            source, sink = net.host(f"a{number}_{index}"), net.host(f"b{number}_{index}")
            net.link(source, front, **fast)
            far: LinkOptions = {**fast, "delay": units.time(each.rtt) // 2}
            net.link(right, sink, **far)
            sources.append(source)
            sinks.append(sink)
        for index in range(each.count):
            shift = rng.uniform(0, 0.1) * units.time(each.rtt)
            starts.append(units.time(each.start) + index * units.time(each.every) + int(shift))
            ends.append(
                (
                    each,
                    number,
                    sources[-1 - (hosts - 1 - index % hosts)],
                    sinks[-1 - (hosts - 1 - index % hosts)],
                )
            )
    bottleneck = net.link(left, right, rate=rate, delay=0, queue=f"{scenario.buffer_bytes} B", aqm=scheme.aqm)
    for start, (each, number, source, sink) in zip(starts, ends, strict=True):
        kind = "short" if each.size is not None else "fair" if each.share else "other"
        net.tcp(source, sink, start=start, size=each.size, label=f"{kind} {number}", **keywords)
    if scenario.trace is not None:
        traces.follow(bottleneck, traces.of(scenario.trace), scenario.duration)
    user_code.called(scheme.manage, Place(net, scenario, left, sources, sinks, inner, bottleneck))
    net.record(units.time(scenario.duration) // SAMPLES, queues=[bottleneck])
    return net


def _left(scheme: Scheme, net: Network, scenario: Scenario) -> Node:
    left = user_code.called(scheme.left, net, scenario)
    if not isinstance(left, Node) or left.name != QUEUE_AT:
        raise TidegateError(
            f"{user_code.defined(scheme.left)} returns {left!r:.60}; return the node that it makes, named {QUEUE_AT!r}"
        )
    return left


def _flow(scheme: Scheme, scenario: Scenario) -> dict[str, Any]:
    """What the scheme says of its flows."""
    keywords = user_code.called(scheme.flow, scenario)
    where = f"{user_code.defined(scheme.flow)} returns"
    if not isinstance(keywords, dict):
        raise TidegateError(f"{where} {keywords!r:.60}; return a dict of keywords of Network.tcp")
    known = [name for name in inspect.signature(Network.tcp).parameters if name not in OF_FLOWS]
    for name in keywords:
        if name not in known:
            raise TidegateError(
                f"{where} a keyword {name!r:.60}; {did_you_mean(str(name), known)}known: {', '.join(known)}"
            )
    return keywords


def capacity_mbps(scenario: Scenario) -> float:
    """What the link can carry from the end of the warm-up to the end of a run."""
    if scenario.trace is None:
        return units.rate(scenario.rate) / 1e6
    begin, end = units.time(scenario.warm_up), units.time(scenario.duration)
    packets = traces.of(scenario.trace).packets(begin, end)
    return packets * traces.PACKET * 8e-3 / ((end - begin) // traces.PS_PER_MS)


def _brought(result: Result, begin: float, end: float) -> int:
    """Bytes of all flows from the warm-up to the end of the run.

    Those of short transfers are from `flows`: what comes before a flow's first sample and after its last is not between two.
    """
    sampled = result.flow_samples.filter(pl.col("time_s") >= begin - 1e-9).group_by("flow")
    firsts = dict(sampled.agg(pl.col("bytes_received").first()).iter_rows())
    between = dict(grown(result, begin, end).select("flow", "bytes_received").iter_rows())
    total = 0
    columns = ("flow", "label", "start_s", "bytes_received")
    for flow, label, start, received in result.flows.select(columns).iter_rows():
        if not label.startswith("short"):
            total += between.get(flow, 0)
        elif start >= begin:
            total += received
        elif flow in firsts:
            # One without a sample had finished before.
            total += received - firsts[flow]
    return total


def measure(scenario: Scenario, scheme: Scheme, result: Result) -> Row:
    """Goodput of all flows, fairness of those that last, the queue, and how long short transfers take.

    `short_ms` is of those that finished: where `short_unfinished` is above 0, the longest are missing in it.
    """
    begin, end = (units.time(at) / units.PS_PER_S for at in (scenario.warm_up, scenario.duration))
    labels = {row["flow"]: row["label"] for row in result.flows.iter_rows(named=True)}
    goodputs = goodputs_mbps(result, begin, end)
    total = _brought(result, begin, end) * 8e-6 / (end - begin)
    fair = pl.Series([rate for flow, rate in goodputs.items() if labels[flow].startswith("fair")])
    transfers = result.flows.filter(pl.col("label").str.starts_with("short"))["completion_ms"]
    short = transfers.drop_nulls()
    # Of a port with several queues, the longer one.
    delays = (
        result.queue_samples.filter(
            pl.col("queue") == f"{QUEUE_AT} -> right",
            pl.col("time_s") > begin,
            pl.col("time_s") <= end + 1e-9,
        )
        .group_by("time_s", maintain_order=True)
        .agg(pl.col("queue_delay_ms").max())["queue_delay_ms"]
        .to_numpy()
    )
    return {
        "scenario": scenario.name,
        "scheme": scheme.name,
        "goodput_mbps": total,
        "of_capacity": total / capacity_mbps(scenario),
        "fairness": jain(fair),
        "queue_ms_mean": float(delays.mean()),
        "queue_ms_p99": float(np.quantile(delays, 0.99)),
        "short_ms": float(short.median()) if len(short) else math.nan,  # type: ignore[arg-type]
        "short_unfinished": transfers.null_count(),
        "retransmits": int(result.flows["retransmits"].sum()),
    }
