"""BBRv1 beside CUBIC in deep buffers: the simulator, a real kernel, and the model of Ware et al. (IMC 2019).

Ware, Mukerjee, Seshan, Sherry, "Modeling BBR's Interactions with Loss-Based Congestion Control". A bottleneck has the rate c,
the base RTT l and a queue of q = X BDP. The model's p is CUBIC's share of what is in flight, not BBR's. In PROBE_RTT, BBR has 4
packets in flight and takes for propagation what CUBIC keeps in the queue: RTT = (p q + 4) / c + l. Afterwards it has its cap in
flight, 2 (1 - p) c RTT, and this is its part of the full queue and the link, (1 - p) (q + c l). So

    p = 1/2 - 1 / (2 X) - 4 / q,

and of each ten seconds BBR sends nothing for as long as a full queue, 200 ms and the base RTT last.
"""

from __future__ import annotations

from typing import Annotated

import polars as pl
from matplotlib.figure import Figure

from tidegate._core import TidegateError
from tidegate.claims import Claim, Row, median, spread
from tidegate.experiments import AtLeast, Case, Numbers, OrZero, Plan, Run, demand_warm_up, experiment
from tidegate.network import Network
from tidegate.plots import all_rows, of_first_seed
from tidegate.results import Result

BOTTLENECK = "left -> right"
FRAME_BYTES = 1514
PROBE_CWND = 4
PROBE_INTERVAL_S = 10.0

# Linux 6.18, its bbr (version 1) and cubic between namespaces (docs/live.md), 10 Mbit/s and 40 ms: BBR's share of the goodput from
# 20 to 240 s, by buffer in BDP, a value for each run. Access links had 1 ms instead of 0.5, and the bottleneck that much less.
LINUX_SHARES: dict[int, tuple[float, ...]] = {
    2: (0.646,),
    4: (0.499,),
    8: (0.447, 0.455),
    16: (0.376, 0.383),
    32: (0.193, 0.204, 0.205, 0.213),
    48: (0.124,),
    64: (0.075, 0.082, 0.087),
}
MEASURED = (10, 40, 20, 240)
"""Rate in Mbit/s, base RTT in ms, warm-up and duration in s of these runs."""

WHY_DEEP = (
    "the model's equilibrium takes minutes to reach, and in a deep queue BBR is limited by its pacing rate, not by its cap: after each "
    "PROBE_RTT CUBIC has the queue, and few round trips are left until the next; Linux has as little (docs/simulator.md)"
)
WHY_SHALLOW = "not explained; Linux has as little (docs/simulator.md)"
SHALLOW_BDP = 4
WHY_OTHER = (
    "not explained: the causes were looked for at 10 Mbit/s and 40 ms, from 20 to 240 s (docs/simulator.md)"
)
WHY_LINUX = "not explained; Linux was measured in one to four runs a buffer"


def model_share(buffer_bdp: float, rate_mbps: float, base_rtt_ms: float) -> float:
    """BBR's share of the goodput of one BBR and one CUBIC flow by Ware et al.; at most 1, at least 0."""
    rtt_s = base_rtt_ms / 1e3
    packets = buffer_bdp * rate_mbps * 1e6 * rtt_s / 8 / FRAME_BYTES
    cubic = min(max(0.5 - 1 / (2 * buffer_bdp) - PROBE_CWND / packets, 0.0), 1.0)
    silent_s = buffer_bdp * rtt_s + 0.2 + rtt_s
    return (1 - cubic) * max(0.0, 1 - silent_s / PROBE_INTERVAL_S)


def why_not_as_modelled(buffer_bdp: int) -> str:
    """Why BBR's share is not the model's, at the settings that were measured."""
    return WHY_SHALLOW if buffer_bdp <= SHALLOW_BDP else WHY_DEEP


def pair_network(buffer_bdp: int, rate_mbps: int, base_rtt_ms: int) -> Network:
    """A BBR and a CUBIC flow, each between hosts of its own, through a tail-drop queue; receive windows never limit."""
    net = Network()
    left, right = net.router("left"), net.router("right")
    packets = round(buffer_bdp * rate_mbps * 1e3 * base_rtt_ms / 8 / FRAME_BYTES)
    pairs = []
    for name in ("bbr", "cubic"):
        source, target = net.host(f"{name}-sender"), net.host(f"{name}-receiver")
        net.link(source, left, rate="1 Gbit/s", delay="500 us")
        net.link(right, target, rate="1 Gbit/s", delay="500 us")
        pairs.append((name, source, target))
    bottleneck = net.link(
        left,
        right,
        rate=f"{rate_mbps} Mbit/s",
        delay=f"{base_rtt_ms * 500 - 1000} us",
        queue=f"{packets} packets",
    )
    for name, source, target in pairs:
        net.tcp(source, target, congestion_control=name, label=name, receive_buffer_max="64 MiB")
    net.record("50 ms", queues=[bottleneck])
    return net


def _range(values: list[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:.3f}" if low == high else f"{low:.3f} to {high:.3f}"


def probes(samples: pl.DataFrame) -> list[tuple[float, float]]:
    """Start and end in seconds of each PROBE_RTT that both begins and ends in these samples of a BBR flow."""
    begun, out, before = None, [], True
    for time_s, cwnd in samples.sort("time_s").select("time_s", "cwnd_packets").iter_rows():
        probing = cwnd <= PROBE_CWND
        if probing and not before:
            begun = time_s
        elif not probing and begun is not None:
            out.append((begun, time_s))
            begun = None
        before = probing
    return out


@experiment("reference.bbr_cubic", backends=("sim", "live"), quick={"buffers_bdp": (8, 32)})
def bbr_cubic(
    buffers_bdp: Numbers = (2, 4, 8, 16, 32, 48, 64),
    rate_mbps: Annotated[int, AtLeast(1, 1000)] = 10,
    base_rtt_ms: Annotated[int, AtLeast(3, 1000)] = 40,
    duration_s: int = 240,
    warm_up_s: OrZero = 20,
) -> Plan:
    """One BBRv1 flow beside one CUBIC flow: BBR's share by buffer depth, beside Linux's and the model of Ware et al."""
    demand_warm_up(warm_up_s, duration_s)
    for depth in buffers_bdp:
        if depth * rate_mbps * 1e3 * base_rtt_ms / 8 < 2 * PROBE_CWND * FRAME_BYTES:
            raise TidegateError(
                f"a buffer of {depth} BDP has fewer than 8 packets at {rate_mbps} Mbit/s and {base_rtt_ms} ms; give more of one of them"
            )

    def measure(result: Result) -> Row:
        rates = result.goodput_mbps(warm_up_s)["goodput_mbps"]
        queue = result.queue_samples.filter(pl.col("time_s") >= warm_up_s, pl.col("queue") == BOTTLENECK)
        bbr = result.flow_samples.filter(pl.col("time_s") >= warm_up_s, pl.col("flow") == 0)
        found = probes(bbr)
        least_ms = [
            queue.filter(pl.col("time_s").is_between(start, end))["queue_delay_ms"].min()
            for start, end in found
        ]
        lengths = pl.Series([end - start for start, end in found], dtype=pl.Float64)
        starts = pl.Series([start for start, _ in found], dtype=pl.Float64)
        least = pl.Series(least_ms, dtype=pl.Float64)
        sending = bbr.filter(pl.col("cwnd_packets") > PROBE_CWND)
        return {
            "bbr_share": float(rates[0] / rates.sum()),
            "goodput_mbps": float(rates.sum()),
            "queue_delay_ms_mean": queue["queue_delay_ms"].mean(),
            "probes": len(found),
            "probe_interval_s": starts.diff().mean(),
            "probe_length_s": lengths.mean(),
            "rtt_in_probe_ms": None if least.is_empty() else base_rtt_ms + float(least.mean()),  # type: ignore[arg-type]
            "bbr_cwnd_packets": sending["cwnd_packets"].mean(),
            "bbr_in_flight_packets": sending["in_flight_packets"].mean(),
            "bbr_pacing_mbps": sending["pacing_rate_mbps"].median(),
        }

    as_measured = (rate_mbps, base_rtt_ms, warm_up_s, duration_s) == MEASURED

    def claims(rows: list[Row]) -> list[Claim]:
        out = []
        for depth in buffers_bdp:
            case = f"{depth}bdp"
            share, (low, high) = median(rows, case, "bbr_share"), spread(rows, case, "bbr_share")
            measured = f"{share:.3f} ({low:.3f} to {high:.3f})"
            if as_measured and depth in LINUX_SHARES:
                linux = sorted(LINUX_SHARES[depth])
                out.append(
                    Claim(
                        id=f"linux-{case}",
                        of="peer",
                        statement=f"{depth} BDP: BBR's share within 0.05 of Linux's",
                        published=f"{_range(linux)} (Linux 6.18)",
                        measured=measured,
                        holds=linux[0] - 0.05 <= share <= linux[-1] + 0.05,
                        why=WHY_LINUX,
                    )
                )
            model = model_share(depth, rate_mbps, base_rtt_ms)
            out.append(
                Claim(
                    id=f"model-{case}",
                    of="peer",
                    statement=f"{depth} BDP: BBR's share within 0.1 of the model of Ware et al.",
                    published=f"{model:.3f} (Ware et al. 2019, the model)",
                    measured=measured,
                    holds=abs(share - model) <= 0.1,
                    why=why_not_as_modelled(depth) if as_measured else WHY_OTHER,
                )
            )
        return out

    def draw(runs: list[Run]) -> Figure:
        figure = Figure(figsize=(11, 4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=[2, 3])
        depths = sorted(buffers_bdp)
        left.plot(
            depths,
            [model_share(x, rate_mbps, base_rtt_ms) for x in depths],
            color="0.4",
            linestyle="--",
            label="model (Ware et al.)",
        )
        rows = all_rows(runs)
        done = [x for x in depths if any(row["case"] == f"{x}bdp" for row in rows)]
        left.plot(
            done, [median(rows, f"{x}bdp", "bbr_share") for x in done], marker="o", label="measured, median"
        )
        known = [(x, share) for x in depths if as_measured for share in LINUX_SHARES.get(x, ())]
        if known:
            left.scatter(
                *zip(*known, strict=True), marker="x", color="black", zorder=3, label="Linux 6.18, each run"
            )
        left.set_xscale("log", base=2)
        left.set(
            xticks=depths,
            xticklabels=depths,
            ylim=(0, 1),
            xlabel="buffer (BDP)",
            ylabel="BBR's share of the goodput",
        )
        left.minorticks_off()
        left.legend(loc="upper right", fontsize="small")
        last = {run.case: run for run in of_first_seed(runs)}.get(f"{depths[-1]}bdp")
        if last is not None:
            since = max(warm_up_s, duration_s - 60)
            bbr = last.tables["flow_samples"].filter(pl.col("flow") == 0, pl.col("time_s") >= since)
            right.plot(bbr["time_s"], bbr["cwnd_packets"], label="cwnd")
            right.plot(bbr["time_s"], bbr["in_flight_packets"], label="in flight")
            for index, (start, end) in enumerate(probes(bbr)):
                right.axvspan(start, end, color="0.9", label=None if index else "PROBE_RTT")
            right.set(
                xlim=(since, duration_s),
                ylim=(0, 1.15 * float(bbr["cwnd_packets"].max() or 1)),  # type: ignore[arg-type]
                xlabel="time (s)",
                ylabel="packets",
                title=f"BBR at {depths[-1]} BDP",
            )
            right.legend(loc="upper center", ncols=3, fontsize="small")
        figure.suptitle(f"BBRv1 beside CUBIC: {rate_mbps} Mbit/s, base RTT {base_rtt_ms} ms, tail drop")
        return figure

    cases = [
        Case(f"{depth}bdp", pair_network(depth, rate_mbps, base_rtt_ms), f"{duration_s} s", measure)
        for depth in buffers_bdp
    ]
    return Plan(cases, claims, draw)
