"""How long packets wait, and what a flow gets, at several thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import Case, Plan, Run, experiment
from tidegate.measures import goodputs_mbps, last, sampled_delays
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result

from ..setup import mark, program

RATE_MBPS = 50
BASE_RTT_MS = 10.0
PORT = 1


def bottleneck(threshold_ms: float) -> Network:
    """Two DCTCP flows through a switch whose port to the receiver is slow."""
    net = Network()
    source, sink = net.host("source"), net.host("sink")
    switch = net.switch("switch", program())
    net.link(source, switch, rate="1 Gbit/s", delay=0, queue="10000 packets")
    slow = net.link(
        switch, sink, rate=RATE_MBPS * 1_000_000, delay=round(BASE_RTT_MS * 1e9 / 2), queue="1000 packets"
    )
    mark(net, switch, slow, round(threshold_ms * 1e9))
    for _ in range(2):
        net.tcp(source, sink, congestion_control="dctcp", ecn="on")
    net.record("50 ms", queues=[slow])
    return net


def _measure(threshold_ms: float, duration_s: int, result: Result) -> Row:
    begin = duration_s / 3
    delays = sampled_delays(result, "switch -> sink", begin, duration_s)
    return {
        "threshold_ms": threshold_ms,
        "goodput_mbps": sum(goodputs_mbps(result, begin, duration_s).values()),
        "delay_ms_mean": delays.mean_ms,
        "delay_ms_p99": delays.quantile_ms(0.99),
        "marked": last(result.notes, f"port_{PORT}_marked_packets"),
        "forwarded": last(result.notes, f"port_{PORT}_forwarded_packets"),
    }


@experiment("marker.threshold", backends=("sim", "live"), quick={"duration_s": 6})
def threshold(thresholds_ms: tuple[float, ...] = (2.0, 5.0, 20.0), duration_s: int = 30) -> Plan:
    """Two DCTCP flows through a port that marks above a threshold: delay and goodput."""
    cases = [
        Case(f"{wait:g}ms", bottleneck(wait), f"{duration_s} s", partial(_measure, wait, duration_s))
        for wait in thresholds_ms
    ]

    def claims(rows: list[Row]) -> list[Claim]:
        over = [{**row, "over": row["delay_ms_mean"] / row["threshold_ms"]} for row in rows]
        return [
            between(
                "delay",
                "ours",
                "the mean delay of the queue is at most 1.5 thresholds",
                medians(over, "over", _label),
                0,
                1.5,
                why="slow start, or a threshold below what two packets of each flow take",
            ),
            between(
                "goodput",
                "ours",
                "both flows together have at least 0.8 of the link",
                {name: value / RATE_MBPS for name, value in medians(rows, "goodput_mbps", _label).items()},
                0.8,
                why="a threshold below a seventh of the round trip leaves the queue empty for a part of the time",
                form=Unit("of the link"),
            ),
        ]

    return Plan(cases, claims, partial(_draw, thresholds_ms))


def _label(row: Row) -> str:
    return f"{row['threshold_ms']:g} ms"


def _draw(thresholds_ms: Sequence[float], runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(thresholds_ms, list(medians(rows, "delay_ms_mean", _label).values()), "o-", label="mean")
    left.plot(thresholds_ms, list(medians(rows, "delay_ms_p99", _label).values()), "s--", label="p99")
    left.plot(thresholds_ms, thresholds_ms, ":", color="0.5", label="threshold")
    left.set(xlabel="threshold (ms)", ylabel="queue delay (ms)", ylim=(0, None))
    left.legend(fontsize="small")
    right.plot(thresholds_ms, list(medians(rows, "goodput_mbps", _label).values()), "o-")
    right.set(xlabel="threshold (ms)", ylabel="goodput of both flows (Mbit/s)", ylim=(0, 1.05 * RATE_MBPS))
    for panel in (left, right):
        panel.grid(alpha=0.3)
    return figure
