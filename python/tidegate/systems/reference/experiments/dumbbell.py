"""A dumbbell on which ns-3 was measured."""

from __future__ import annotations

import polars as pl
from matplotlib.figure import Figure

from tidegate import topologies
from tidegate.claims import Claim, Row, median, spread
from tidegate.experiments import Case, Numbers, OrZero, Plan, Run, demand_warm_up, experiment
from tidegate.network import Network
from tidegate.plots import of_first_seed
from tidegate.results import Result, jain

BOTTLENECK = "left -> right"


# ns-3-dev of 2026-07, optimised build, CUBIC: mean queue delay in ms and goodput in Mbit/s, by number of flows.
NS3_QUEUE_MS = {1: 12.39, 10: 16.82, 50: 18.00}


NS3_GOODPUT_MBPS = 964.0
WHY = "ns-3 was measured over 10 s: a shorter run has a part of a sawtooth, whose mean depends on which"


def dumbbell_network(flows: int, congestion_control: str, queue: str, ecn: str, mark_above: int) -> Network:
    """N hosts on each side, 10 Gbit/s and 1 ms to their router; 1 Gbit/s and 8 ms between the routers; 20 ms base RTT."""
    net = Network()
    bell = topologies.dumbbell(
        net,
        flows,
        bottleneck={"queue": queue, "rtt": "20 ms", "framing": 0, "mark_above": mark_above or None},
        access={"framing": 0},
    )
    for i, (a, b) in enumerate(bell.pairs):
        start = i * 1_000_000_000_000 // flows
        net.tcp(a, b, congestion_control=congestion_control, start=start, ecn=ecn)
    net.record("10 ms", queues=[bell.bottleneck])
    return net


@experiment("reference.dumbbell", quick={"duration_s": 4, "warm_up_s": 2})
def dumbbell(
    flows: Numbers = (1, 10, 50),
    congestion_control: str = "cubic",
    queue: str = "1667 packets",
    ecn: str = "passive",
    mark_above: OrZero = 0,
    duration_s: int = 10,
    warm_up_s: OrZero = 2,
) -> Plan:
    """N long flows through one 1 Gbit/s bottleneck with a base RTT of 20 ms and a drop-tail queue of one BDP."""
    demand_warm_up(warm_up_s, duration_s)

    def measure(result: Result) -> Row:
        rates = result.goodput_mbps(warm_up_s)["goodput_mbps"]
        samples = result.queue_samples.filter(pl.col("time_s") >= warm_up_s, pl.col("queue") == BOTTLENECK)
        queue = result.queues.filter(pl.col("queue") == BOTTLENECK).row(0, named=True)
        delay = samples["queue_delay_ms"]
        return {
            "goodput_mbps": float(rates.sum()),
            "jain": jain(rates),
            "queue_delay_ms_mean": float(delay.mean() or 0.0),  # type: ignore[arg-type]
            "queue_delay_ms_p99": float(delay.quantile(0.99) or 0.0),
            "drops": queue["dropped"],
            "marks": queue["marked"],
            "retransmits": int(result.flows["retransmits"].sum()),
            "timeouts": int(result.flows["timeouts"].sum()),
        }

    def claims(rows: list[Row]) -> list[Claim]:
        out = []
        as_measured = congestion_control == "cubic" and queue == "1667 packets" and not mark_above
        for n in flows if as_measured else ():
            case = f"n{n}"
            goodput = median(rows, case, "goodput_mbps")
            out.append(
                Claim(
                    id=f"goodput-n{n}",
                    of="peer",
                    statement=f"N={n}: goodput within 20 Mbit/s (2 points of utilisation) of ns-3's",
                    published=f"{NS3_GOODPUT_MBPS} Mbit/s (ns-3)",
                    measured=f"{goodput:.1f} Mbit/s",
                    holds=abs(goodput - NS3_GOODPUT_MBPS) <= 20,
                    why=WHY,
                )
            )
            if n in NS3_QUEUE_MS:
                delay, (low, high) = (
                    median(rows, case, "queue_delay_ms_mean"),
                    spread(rows, case, "queue_delay_ms_mean"),
                )
                out.append(
                    Claim(
                        id=f"queue-n{n}",
                        of="peer",
                        statement=f"N={n}: mean queue delay within 2 ms of ns-3's",
                        published=f"{NS3_QUEUE_MS[n]} ms (ns-3)",
                        measured=f"{delay:.2f} ms ({low:.2f} to {high:.2f})",
                        holds=abs(delay - NS3_QUEUE_MS[n]) <= 2,
                        why=WHY,
                    )
                )
        return out

    def draw(runs: list[Run]) -> Figure:
        first = of_first_seed(runs)
        figure = Figure(figsize=(9, 2.6 * len(first)), layout="constrained")
        panels = figure.subplots(len(first), 2, squeeze=False, width_ratios=[2, 1])
        for (left, right), run in zip(panels, first, strict=True):
            samples = run.tables["queue_samples"].filter(pl.col("queue") == BOTTLENECK)
            left.plot(samples["time_s"], samples["queue_delay_ms"], linewidth=0.8)
            left.axvspan(0, warm_up_s, color="0.92")
            left.set(
                xlim=(0, duration_s), ylim=(0, None), ylabel="queue delay (ms)", title=f"N = {run.case[1:]}"
            )
            flows = run.tables["flow_samples"].filter(pl.col("time_s") >= warm_up_s)
            ends = flows.group_by("flow").agg(
                (pl.col("bytes_received").last() - pl.col("bytes_received").first()).alias("bytes"),
                (pl.col("time_s").last() - pl.col("time_s").first()).alias("spent"),
            )
            rates = (ends["bytes"] * 8 / ends["spent"] / 1e6).sort()
            share = [(i + 1) / len(rates) for i in range(len(rates))]
            right.step(rates, share, where="post", marker="." if len(rates) < 20 else None)
            right.axvline(float(rates.mean() or 0), linestyle=":", color="0.4", label="fair share")  # type: ignore[arg-type]
            right.set(xlim=(0, None), ylim=(0, 1.05), ylabel="share of flows (CDF)")
            right.legend(loc="best", fontsize="small")
        panels[-1][0].set_xlabel("time (s); grey: not measured")
        panels[-1][1].set_xlabel("goodput of a flow (Mbit/s)")
        figure.suptitle(
            f"{congestion_control.upper()}: 1 Gbit/s bottleneck, 20 ms base RTT, queue of {queue}"
        )
        return figure

    cases = [
        Case(
            f"n{n}",
            dumbbell_network(n, congestion_control, queue, ecn, mark_above),
            f"{duration_s} s",
            measure,
        )
        for n in flows
    ]
    return Plan(cases, claims, draw)
