"""Whether a controller in the control plane is too slow for fast links: T from 1 to 64 ms, with the latency of reading and writing."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import AtLeast, Case, Plan, Run, experiment
from tidegate.papers import of_run
from tidegate.plots import all_rows, whiskers
from tidegate.results import Result
from tidegate.systems.aqm.claims import CLAIMS
from tidegate.systems.aqm.controller import Aqm
from tidegate.systems.aqm.experiments.measuring import QueueNotes, rows_of
from tidegate.systems.aqm.experiments.testbed import INSIDE, Bottleneck, bottleneck, classic_flows, l4s_flows
from tidegate.systems.aqm.tofino import PAPER, TofinoAqm

ARRIVALS_S = 0.5
"""Time in which the flows start, one after the other."""
START_S = 1.5
"""From the start to here the rows' columns `arrivals_` measure, from here on the others."""
RTT_MAX_MS = 100.0
"""RFC 9332's default."""
WHY_ARRIVALS = "until the controller has seen the slow starts and written p', nothing is signalled: a period and the latency"
WHY_STEADY = "p' is as old as a period and the latency, in which the queue goes on growing or falling"


def gains(period_ms: float) -> tuple[float, float]:
    """alpha and beta in Hz by RFC 9332 appendix A.1, for RTTs of 100 ms, or three periods if they are longer: T <= RTT_max / 3."""
    rtt_max = max(RTT_MAX_MS, 3 * period_ms) / 1e3
    return 0.1 * period_ms / 1e3 / rtt_max**2, 0.3 / rtt_max


def controlled(period_ms: float, latency_ms: float) -> TofinoAqm:
    """The paper's settings with another T, and half of the latency each for reading and writing."""
    half = round(latency_ms * 1e9 / 2)
    return replace(
        PAPER,
        period=round(period_ms * 1e9),
        gains=gains(period_ms),
        read_latency=half,
        write_latency=half,
    )


def crowded(capacity_gbps: int, base_rtt_ms: float, aqm: Aqm | TofinoAqm, flow_mbps: float) -> Bottleneck:
    """Flows of both kinds, each with the same share at any capacity: their windows, and so p', are the same."""
    way = "dualpi2" if isinstance(aqm, TofinoAqm) else "dualpi2-inside"
    access = f"{8 * capacity_gbps} Gbit/s"
    lab = bottleneck(way, capacity_gbps * 1000, base_rtt_ms, access=access, count_period="100 ms", aqm=aqm)
    each = max(1, round(capacity_gbps * 500 / flow_mbps))
    for number in range(each):
        at = ARRIVALS_S * number / each
        classic_flows(lab, 1, at)
        l4s_flows(lab, 1, at)
    lab.network.record("100 ms", queues=[lab.link])
    return lab


def _measure(lab: Bottleneck, about: Row, duration_s: float, result: Result) -> Row:
    cubic, prague = rows_of(result, lab, {}, START_S, duration_s)
    arrivals = QueueNotes(result.notes).delays(0, 0.0, START_S)
    return {
        **about,
        "steady_delay_ms_mean": cubic["delay_ms_mean"],
        "steady_delay_ms_p99": cubic["delay_ms_p99"],
        "steady_l_delay_ms_p99": prague["delay_ms_p99"],
        "p_mean": cubic["p_mean"],
        "p_std": cubic["p_std"],
        "arrivals_delay_ms_p99": arrivals.quantile_ms(0.99),
        "cubic_of_prague": cubic["goodput_mbps"] / max(prague["goodput_mbps"], 1e-9),
        "utilisation": cubic["utilisation"],
    }


@experiment(
    "aqm.period",
    (
        "case",
        "steady_delay_ms_mean",
        "steady_delay_ms_p99",
        "arrivals_delay_ms_p99",
        "p_mean",
        "p_std",
        "utilisation",
    ),
    quick={"capacities_gbps": (1,), "periods_ms": (1.0, 16.0, 64.0)},
)
def period(
    capacities_gbps: tuple[int, ...] = (1, 10, 100),
    periods_ms: Annotated[tuple[float, ...], AtLeast(0.1, 1000)] = (1.0, 4.0, 16.0, 64.0),
    latencies: Annotated[tuple[float, ...], AtLeast(0, 1)] = (0.0, 1.0),
    base_rtt_ms: float = 10.0,
    flow_mbps: Annotated[float, AtLeast(1, 500)] = 50.0,
    duration_s: Annotated[float, AtLeast(2)] = 3.0,
) -> Plan:
    """DualPI2 at 1 to 100 Gbit/s with T from 1 to 64 ms; reading and writing take a share (`latencies`) of T.

    A sequential loop takes at most T for both. The gains are those of RFC 9332 for each T, with T <= RTT_max / 3. Beside it the controller
    in the data plane, with T = 16 ms.
    """
    runs: list[tuple[str, Row, int, Aqm | TofinoAqm]] = []
    for capacity in capacities_gbps:
        about = {"capacity_gbps": capacity, "base_rtt_ms": base_rtt_ms}
        inside = {**about, "home": "data plane", "period_ms": 16.0, "latency_ms": 0.0}
        runs.append((f"{capacity}G-data", inside, capacity, INSIDE))
        for each in periods_ms:
            for share in latencies:
                outside = {**about, "home": "control plane", "period_ms": each, "latency_ms": share * each}
                name = f"{capacity}G-{each:g}ms-{share * each:g}ms"
                runs.append((name, outside, capacity, controlled(each, share * each)))
    cases = []
    for name, about, capacity, aqm in runs:
        lab = crowded(capacity, base_rtt_ms, aqm, flow_mbps)
        measure = partial(_measure, lab, about, duration_s)
        cases.append(Case(name, lab.network, f"{round(duration_s * 1000)} ms", measure))

    def claims(rows: list[Row]) -> list[Claim]:
        return [*_claims(rows), *of_run(CLAIMS, "aqm.period", rows, {})]

    return Plan(cases, claims, _draw)


def _label(row: Row) -> str:
    return f"{row['capacity_gbps']} Gbit/s, T {row['period_ms']:g} ms, latency {row['latency_ms']:g} ms"


def _claims(rows: list[Row]) -> list[Claim]:
    outside = [row for row in rows if row["home"] == "control plane"]
    reference = [row for row in rows if row["home"] == "data plane"]
    out = []
    for id, column, most, what, why in (
        ("steady", "steady_delay_ms_p99", 1.25, "in the steady state the p99 of C", WHY_STEADY),
        ("arrivals", "arrivals_delay_ms_p99", 1.5, "while flows come the p99 of C", WHY_ARRIVALS),
    ):
        inside = medians(reference, column, lambda row: f"{row['capacity_gbps']} Gbit/s")
        for latent in (False, True):
            own = [row for row in outside if (row["latency_ms"] > 0) == latent]
            if not own:
                continue
            ratio = {
                name: value / inside[name.partition(",")[0]]
                for name, value in medians(own, column, _label).items()
            }
            how = "with a latency of T" if latent else "without latency"
            statement = f"{what} is at most {most:g} times that with the controller in the data plane, {how}"
            out.append(
                between(
                    f"{id}-{'latency' if latent else 'period'}", "ours", statement, ratio, 0, most, why=why
                )
            )
    slow, fast = (which(row["capacity_gbps"] for row in outside) for which in (min, max))
    if slow < fast:
        at: dict[int, dict[str, float]] = {
            capacity: medians(
                [row for row in outside if row["capacity_gbps"] == capacity],
                "steady_delay_ms_p99",
                lambda row: f"T {row['period_ms']:g} ms, latency {row['latency_ms']:g} ms",
            )
            for capacity in (slow, fast)
        }
        ratio = {name: value / at[slow][name] for name, value in at[fast].items()}
        statement = f"with the same T and latency the p99 of C at {fast} Gbit/s is at most 1.1 times that at {slow} Gbit/s"
        out.append(between("speed", "ours", statement, ratio, 0, 1.1, why="not explained"))
    return out


def _draw(runs: list[Run]) -> Figure:
    """p99 of C over T: steady and while flows come; and how much p' varies."""
    rows = all_rows(runs)
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    panels = figure.subplots(1, 3)
    shown = (
        ("steady_delay_ms_p99", "p99 of C, steady (ms)", 1.0),
        ("arrivals_delay_ms_p99", "p99 of C while flows come (ms)", 1.0),
        ("p_std", "standard deviation of p' (%)", 100.0),
    )
    capacities = sorted({row["capacity_gbps"] for row in rows})
    for panel, (column, text, scale) in zip(panels, shown, strict=True):
        for number, capacity in enumerate(capacities):
            own = [row for row in rows if row["capacity_gbps"] == capacity]
            outside = [row for row in own if row["home"] == "control plane"]
            for latent, style, how in ((False, "o-", "no latency"), (True, "s--", "latency T")):
                kept = [row for row in outside if (row["latency_ms"] > 0) == latent]
                values = medians(kept, column, lambda row: f"{row['period_ms']:g}")
                heights = [scale * value for value in values.values()]
                label = f"{capacity} Gbit/s, {how}"
                if values:
                    panel.plot([float(at) for at in values], heights, style, color=f"C{number}", label=label)
                    whiskers(
                        panel,
                        kept,
                        column,
                        lambda row: f"{row['period_ms']:g}",
                        colour=f"C{number}",
                        scale=scale,
                    )
            inside = [row for row in own if row["home"] == "data plane"]
            for value in medians(inside, column, lambda row: "").values():
                panel.axhline(
                    scale * value, color=f"C{number}", linestyle=":", label=f"{capacity} Gbit/s, data plane"
                )
        ticks = sorted({row["period_ms"] for row in rows})
        panel.set(xscale="log", xlabel="T (ms)", ylabel=text, ylim=(0, 1.1 * panel.get_ylim()[1]))
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.minorticks_off()
        panel.grid(alpha=0.3)
    panels[0].legend(fontsize="xx-small")
    figure.suptitle(
        "DualPI2's control loop: delay of C and p' by its period T; dotted: controller in the data plane, 16 ms"
    )
    return figure
