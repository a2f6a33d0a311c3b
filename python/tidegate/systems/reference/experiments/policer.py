"""A token-bucket policer behind which a real kernel was measured."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, median, spread
from tidegate.experiments import AtLeast, Case, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.reference.setup import police

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


WHY_SHORT_RTT = "below 50 us the goodput changes with single microseconds of RTT: 49 Mbit/s of 400 at 8 us, 85 at 16 us (docs/simulator.md)"
WHY_OTHER = "not explained; Linux was measured in three runs of 6 s"


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
    policer = police(net, "policer", rate_mbps, bucket_kib)
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
    """One flow through a token-bucket policer: it collapses where two packets per RTT exceed the rate."""

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
            starved = middle < 0.2 * rate
            goodput, timeouts = median(rows, case, "goodput_mbps"), median(rows, case, "timeouts")
            if starved:
                statement = f"{rate} Mbit/s, {rtt} us: at most 20 % of the rate, and most of the time waiting for a timeout"
                holds = goodput <= 0.2 * rate and timeouts * 0.2 > 0.8 * duration_s
            else:
                statement = f"{rate} Mbit/s, {rtt} us: at least 70 % of the rate, no timeouts"
                _, timeouts = spread(rows, case, "timeouts")
                holds = goodput >= 0.7 * rate and timeouts == 0
            out.append(
                Claim(
                    id=case,
                    of="peer",
                    statement=statement,
                    published=f"{middle} Mbit/s ({low} to {high}; Linux)",
                    measured=f"{goodput:.1f} Mbit/s, {timeouts:.0f} timeouts in {duration_s} s",
                    holds=holds,
                    why=WHY_SHORT_RTT if rtt < 50 else WHY_OTHER,
                )
            )
        return out

    def draw(runs: list[Run]) -> Figure:
        first = {run.case: run for run in of_first_seed(runs)}
        figure = Figure(figsize=(10, 2.4 * len(round_trips_us)), layout="constrained")
        panels = figure.subplots(len(round_trips_us), 2, squeeze=False, width_ratios=[3, 2])
        for (left, right), rtt in zip(panels, round_trips_us, strict=True):
            for index, rate in enumerate(rates_mbps):
                run = first.get(names[rtt, rate])
                if run is None:
                    continue
                if run.rows is not None:
                    right.bar(
                        index,
                        run.rows[0]["goodput_mbps"] / rate,
                        color=f"C{index}",
                        width=0.6,
                        label=None if index else "simulator",
                    )
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
            left.set(
                xlim=(0, 1), ylim=(0, 1.15), ylabel="received bytes / rate (s)", title=f"base RTT {rtt} us"
            )
            right.set(
                ylim=(0, 1.05),
                ylabel="goodput / rate",
                xticks=range(len(rates_mbps)),
                xticklabels=rates_mbps,
            )
        panels[0][0].legend(loc="upper left", fontsize="small")
        panels[0][1].legend(loc="upper right", fontsize="small")
        panels[-1][0].set_xlabel("time (s)")
        panels[-1][1].set_xlabel("rate of the policer (Mbit/s)")
        figure.suptitle(f"{congestion_control.upper()} through a policer with a bucket of {bucket_kib} KiB")
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
