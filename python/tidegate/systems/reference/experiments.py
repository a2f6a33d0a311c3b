"""What other simulators and a real kernel were measured on, for comparison with them: a dumbbell, and a policer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import polars as pl
from matplotlib.figure import Figure

from tidegate import topologies
from tidegate.experiments import (
    AtLeast,
    Case,
    Claim,
    Numbers,
    OrZero,
    Plan,
    Row,
    Run,
    demand_warm_up,
    experiment,
    median,
    spread,
)
from tidegate.network import Network
from tidegate.p4 import compile as compile_p4
from tidegate.results import Result, jain

BOTTLENECK = "left -> right"

# ns-3-dev of 2026-07, optimised build, CUBIC: mean queue delay in ms and goodput in Mbit/s, by number of flows.
NS3_QUEUE_MS = {1: 12.39, 10: 16.82, 50: 18.00}
NS3_GOODPUT_MBPS = 964.0


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
                    )
                )
        return out

    def draw(runs: list[Run]) -> Figure:
        first = [run for run in runs if run.seed == runs[0].seed]
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
            right.set(xlim=(0, None), ylim=(0, 1.05), ylabel="share of flows")
            right.legend(loc="best", fontsize="small")
        panels[-1][0].set_xlabel("time (s); grey: not measured")
        panels[-1][1].set_xlabel("goodput of a flow (Mbit/s)")
        figure.suptitle(f"{congestion_control}: 1 Gbit/s bottleneck, 20 ms base RTT, queue of {queue}")
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


POLICER = Path(__file__).with_name("policer.p4")

# Linux 6.18, CUBIC, ECN asked for, offloads off, three runs of 6 s each: lowest, middle and highest goodput in Mbit/s, by base
# round trip in us and rate in Mbit/s. 12 us: two namespaces with a bridge between them, the policer in BPF at a port of the
# bridge; the kernel says 7 to 11 us of its smallest round trip. The others: TAP devices, policer and delay in one thread that
# spins, on a machine with little else to do.
LINUX_MBPS = {
    (12, 100): (14.3, 14.5, 15.0),
    (12, 400): (7.5, 7.9, 8.4),
    (12, 800): (7.8, 8.4, 8.6),
    (100, 100): (8.2, 8.9, 10.6),
    (100, 400): (355.0, 378.4, 378.4),
    (100, 800): (734.2, 740.5, 754.3),
    (1000, 100): (94.3, 94.6, 95.4),
    (1000, 400): (297.8, 322.0, 334.7),
    (1000, 800): (573.9, 581.1, 687.5),
}


def policer_network(
    rate_mbps: int,
    round_trip_us: int,
    bucket_kib: int = 128,
    congestion_control: str = "cubic",
    link_rate: str = "10 Gbit/s",
) -> Network:
    """Two hosts at a switch that polices what the first one sends."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    bits = bucket_kib * 1024 * 8
    registers = {"rate": rate_mbps, "burst": bits, "tokens": bits}
    commands = [f"register_write PolicerIngress.{name} 0 {value}" for name, value in registers.items()]
    policer = net.switch("policer", compile_p4(POLICER), commands=commands)
    for host in (a, b):
        net.link(host, policer, rate=link_rate, delay=round_trip_us * 1_000_000 // 4, queue="10000 packets")
    net.tcp(a, b, congestion_control=congestion_control, ecn="on")
    net.record("1 ms")
    return net


@experiment("reference.policer", quick={"duration_s": 4})
def policer(
    # What the registers of the program hold.
    rates_mbps: Annotated[tuple[int, ...], AtLeast(1, 65_535)] = (100, 400, 800),
    round_trips_us: tuple[int, ...] = (12, 100, 1000),
    bucket_kib: Annotated[int, AtLeast(1, 524_287)] = 128,
    congestion_control: str = "cubic",
    link_rate: str = "10 Gbit/s",
    duration_s: int = 12,
) -> Plan:
    """One flow through a token-bucket policer: it collapses where two packets a round trip are more than the rate."""

    def measure(result: Result) -> Row:
        flow = result.flows.row(0, named=True)
        cwnd = result.flow_samples["cwnd_packets"]
        return {
            "goodput_mbps": flow["bytes_received"] * 8 / duration_s / 1e6,
            "retransmits": flow["retransmits"],
            "timeouts": flow["timeouts"],
            "fast_recoveries": flow["fast_recoveries"],
            "tail_loss_probes": flow["tail_loss_probes"],
            "cwnd_packets_median": float(cwnd.median() or 0.0),  # type: ignore[arg-type]
        }

    names = {(rtt, rate): f"rtt{rtt}us-{rate}" for rtt in round_trips_us for rate in rates_mbps}

    def claims(rows: list[Row]) -> list[Claim]:
        out = []
        as_measured = congestion_control == "cubic" and bucket_kib == 128
        for (rtt, rate), case in names.items():
            if not as_measured or (rtt, rate) not in LINUX_MBPS:
                continue
            low, middle, high = LINUX_MBPS[rtt, rate]
            goodput, timeouts = median(rows, case, "goodput_mbps"), median(rows, case, "timeouts")
            starved = middle < 0.2 * rate
            if starved:
                statement = f"{rate} Mbit/s, {rtt} us: at most 20 % of the rate, and most of the time waiting for a timeout"
                holds = goodput <= 0.2 * rate and timeouts * 0.2 > 0.8 * duration_s
            else:
                statement = f"{rate} Mbit/s, {rtt} us: at least 70 % of the rate, no timeouts"
                holds = goodput >= 0.7 * rate and timeouts == 0
            out.append(
                Claim(
                    id=case,
                    of="peer",
                    statement=statement,
                    published=f"{middle} Mbit/s ({low} to {high}; Linux)",
                    measured=f"{goodput:.1f} Mbit/s, {timeouts:.0f} timeouts in {duration_s} s",
                    holds=holds,
                )
            )
        return out

    def draw(runs: list[Run]) -> Figure:
        first = {run.case: run for run in runs if run.seed == runs[0].seed}
        figure = Figure(figsize=(10, 2.4 * len(round_trips_us)), layout="constrained")
        panels = figure.subplots(len(round_trips_us), 2, squeeze=False, width_ratios=[3, 2])
        for (left, right), rtt in zip(panels, round_trips_us, strict=True):
            for index, rate in enumerate(rates_mbps):
                run = first.get(names[rtt, rate])
                if run is None:
                    continue
                if run.rows is not None:
                    right.bar(index, run.rows[0]["goodput_mbps"] / rate, color=f"C{index}", width=0.6)
                known = LINUX_MBPS.get((rtt, rate))
                if known is not None:
                    low, middle, high = (value / rate for value in known)
                    right.errorbar(
                        index,
                        middle,
                        [[middle - low], [high - middle]],
                        fmt="o",
                        color="black",
                        capsize=4,
                        label="Linux 6.18, three runs" if index == 0 else None,
                    )
                samples = run.tables["flow_samples"].filter(pl.col("time_s") <= 1)
                left.plot(
                    samples["time_s"],
                    samples["bytes_received"] * 8 / 1e6 / rate,
                    color=f"C{index}",
                    linewidth=0.9,
                    label=f"{rate} Mbit/s",
                )
            left.plot([0, 1], [0, 1], linestyle=":", color="0.5", label="all of the rate")
            left.set(xlim=(0, 1), ylim=(0, 1.15), ylabel="received / rate (s)", title=f"{rtt} us round trip")
            right.set(
                ylim=(0, 1.05), ylabel="goodput / rate", xticks=range(len(rates_mbps)), xticklabels=rates_mbps
            )
        panels[0][0].legend(loc="upper left", fontsize="small")
        panels[0][1].legend(loc="upper right", fontsize="small")
        panels[-1][0].set_xlabel("time (s)")
        panels[-1][1].set_xlabel("rate of the policer (Mbit/s)")
        figure.suptitle(f"{congestion_control} through a policer with a bucket of {bucket_kib} KiB")
        return figure

    cases = [
        Case(
            case,
            policer_network(rate, rtt, bucket_kib, congestion_control, link_rate),
            f"{duration_s} s",
            measure,
        )
        for (rtt, rate), case in names.items()
    ]
    return Plan(cases, claims, draw)
