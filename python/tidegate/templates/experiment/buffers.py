"""What a flow gets, and how long its packets wait, with queues of several lengths.

Run it with `tidegate run ./buffers.py --quick`.
"""

from __future__ import annotations

from functools import partial

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import Case, Plan, Run, experiment
from tidegate.measures import goodputs_mbps, sampled_delays
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result

RATE_MBPS = 50
BASE_RTT_MS = 20


def bottleneck(buffer_bdp: float, congestion_control: str) -> Network:
    """One flow through a router with a queue of so many BDP."""
    net = Network()
    source, router, sink = net.host("source"), net.router("router"), net.host("sink")
    net.link(source, router, rate="1 Gbit/s", delay=0)
    slow = net.link(
        router,
        sink,
        rate=f"{RATE_MBPS} Mbit/s",
        delay=f"{BASE_RTT_MS / 2} ms",
        queue=f"{buffer_bdp} BDP",
    )
    net.tcp(source, sink, congestion_control=congestion_control)
    net.record("20 ms", queues=[slow])
    return net


def measure(buffer_bdp: float, duration_s: int, result: Result) -> Row:
    """One row of the table, from the samples of the last two thirds of a run."""
    begin = duration_s / 3
    return {
        "buffer_bdp": buffer_bdp,
        "goodput_mbps": sum(goodputs_mbps(result, begin, duration_s).values()),
        "delay_ms_mean": sampled_delays(result, "router -> sink", begin, duration_s).mean_ms,
    }


@experiment("my.buffers", quick={"duration_s": 6})
def buffers(
    buffers_bdp: tuple[float, ...] = (0.25, 1.0, 4.0), congestion_control: str = "cubic", duration_s: int = 30
) -> Plan:
    """One flow through queues of several lengths: goodput and delay."""
    cases = [
        Case(
            f"{size:g}bdp",
            bottleneck(size, congestion_control),
            f"{duration_s} s",
            partial(measure, size, duration_s),
        )
        for size in buffers_bdp
    ]
    return Plan(cases, claims, draw)


def claims(rows: list[Row]) -> list[Claim]:
    """What is claimed of the rows, beside what was measured."""
    whole = [row for row in rows if row["buffer_bdp"] >= 1]
    shares = {name: value / RATE_MBPS for name, value in medians(whole, "goodput_mbps", label).items()}
    statement = "with a queue of a BDP or more the flow has 0.9 of the link"
    return [between("goodput", "ours", statement, shares, 0.9, form=Unit("of the link"))]


def label(row: Row) -> str:
    """What rows of several seeds have in common."""
    return f"{row['buffer_bdp']:g} BDP"


def draw(runs: list[Run]) -> Figure:
    """The figure, from the rows and tables of all runs."""
    rows = all_rows(runs)
    names = list(medians(rows, "goodput_mbps", label))
    figure = Figure(figsize=(7, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.bar(names, list(medians(rows, "goodput_mbps", label).values()))
    left.set(xlabel="queue", ylabel="goodput (Mbit/s)")
    right.bar(names, list(medians(rows, "delay_ms_mean", label).values()))
    right.set(xlabel="queue", ylabel="mean queue delay (ms)")
    return figure
