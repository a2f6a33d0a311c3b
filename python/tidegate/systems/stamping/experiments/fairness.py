"""Shares of the control `stamp` beside DCTCP and CUBIC: unequal round trips, flows that join and leave, a flow beside unmanaged ones.

Rates are those that a live run carries. The bottleneck of `stamp` flows is a stamping switch; that of the others is a plain router with
the same queue, which marks CE for DCTCP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.hosts.agents import Agent
from tidegate.hosts.shims import Echo, Insert, Signal
from tidegate.measures import received_bytes
from tidegate.network import Link, Network
from tidegate.plots import of_first_seed
from tidegate.results import Result, jain
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.setup import stamping

CONTROLS = {"stamp": "stamp", "dctcp": "DCTCP", "cubic": "CUBIC"}
# The longest time that is told apart is twice the buffer at 100 Mbit/s; a step is 8 us.
FORM = Format("32 ms", 8, bins="log", mantissa=5)
ACCESS = "1 Gbit/s"
QUEUE_PACKETS = 250
MARK_ABOVE = 20
RATIO = 10
SAMPLE_MS = 10
WINDOW_S = 0.1
"""Shares are those of so long."""
NEAR = 0.25
"""A share has settled when it stays within this part of the fair one."""
JOINING = 4
WARM_UP_S = 1.0


class Host(Agent):
    """Has its packets stamped, and echoes and reads stamps. An echo is the largest since the last: ACKs may be delayed."""

    shims = (Insert(FORM.option, FORM.blank), Echo(FORM.option, FORM.echo, keep="max"), Signal(FORM.echo))


@dataclass
class Star:
    """Senders, a bottleneck and a receiver."""

    network: Network
    link: Link
    base_rtt_ms: float

    @staticmethod
    def of(control: str, rate_mbps: float, base_rtt_ms: float) -> Star:
        """A receiver behind the bottleneck that a control needs, and no senders yet."""
        network = Network()
        is_stamped = control == "stamp"
        middle = stamping(network, "switch", FORM) if is_stamped else network.router("switch")
        target = network.host("target")
        link = network.link(
            middle,
            target,
            rate=round(rate_mbps * 1e6),
            delay=round(base_rtt_ms * 1e9 / 4),
            queue=f"{QUEUE_PACKETS} packets",
            mark_above=MARK_ABOVE if control == "dctcp" else None,
        )
        network.record(f"{SAMPLE_MS} ms", queues=[link])
        if is_stamped:
            network.agent(target, Host())
        return Star(network, link, base_rtt_ms)

    def flow(self, control: str, rtt_ms: float, start_s: float = 0.0, stop_s: float | None = None) -> None:
        """A flow from a host of its own, without end or until a time."""
        network, (middle, target) = self.network, (self.link.a, self.link.b)
        source = network.host(f"source{len(network.flows) + 1}")
        # The other half of a round trip is the bottleneck's link.
        network.link(
            source, middle, rate=ACCESS, delay=round((rtt_ms / 2 - self.base_rtt_ms / 4) * 1e9), queue="10 MB"
        )
        options: dict[str, object] = {}
        if control == "stamp":
            network.agent(source, Host())
            options = {
                **FORM.control_options,
                "line_rate": ACCESS,
                "base_rtt": f"{self.base_rtt_ms:g} ms",
                "min_rate": "1 Mbit/s",
                "min_cwnd": 2,
            }
        network.tcp(
            source,
            target,
            congestion_control=control,
            control_options=options,
            ecn="on" if control == "dctcp" else "off",
            segmentation_offload=None,
            start=round(start_s * 1e12),
            stop=None if stop_s is None else round(stop_s * 1e12),
        )

    @property
    def name(self) -> str:
        """Of the bottleneck's queue in results."""
        return f"{self.link.a.name} -> {self.link.b.name}"


@dataclass(frozen=True)
class Spans:
    """Who sends when: the ends of the intervals in seconds, and the flows of each."""

    ends: tuple[float, ...]
    flows: tuple[tuple[int, ...], ...]


def together(count: int, duration_s: float) -> Spans:
    """All from the start."""
    return Spans((0.0, duration_s), (tuple(range(count)),))


def joins(step_s: float) -> Spans:
    """One more after each step, then one less, the oldest first."""
    steps = [tuple(range(most)) for most in range(1, JOINING + 1)]
    steps += [tuple(range(least, JOINING)) for least in range(1, JOINING)]
    return Spans(tuple(step_s * number for number in range(len(steps) + 1)), tuple(steps))


def shares(samples: pl.DataFrame, count: int, duration_s: float) -> npt.NDArray[np.float64]:
    """Goodput of each flow in Mbit/s, by flow and interval of `WINDOW_S`."""
    edges = np.arange(0.0, duration_s + WINDOW_S / 2, WINDOW_S)
    received = np.array([received_bytes(samples, number, edges) for number in range(count)])
    return received * 8e-6 / WINDOW_S


def settled_ms(rates: npt.NDArray[np.float64]) -> float:
    """How long until all flows stay within `NEAR` of an equal share; flows by intervals. All of the time if they never do."""
    fair = rates.sum(axis=0) / len(rates)
    away = np.flatnonzero((np.abs(rates - fair) > NEAR * fair).any(axis=0))
    return float((0 if len(away) == 0 else away[-1] + 1) * WINDOW_S * 1e3)


def _row(star: Star, spans: Spans, about: Row, warm_up_s: float, result: Result) -> Row:
    """Shares in the later half of each interval, delays after the warm-up."""
    duration = spans.ends[-1]
    rates = shares(result.flow_samples, len(star.network.flows), duration)
    fairness, settling = [], []
    for begin, end, flows in zip(spans.ends, spans.ends[1:], spans.flows, strict=False):
        first, last = round(begin / WINDOW_S), round(end / WINDOW_S)
        here = rates[list(flows), first:last]
        fairness.append(jain(pl.Series(here[:, (last - first) // 2 :].mean(axis=1))))
        settling.append(settled_ms(here))
    queue = result.queue_samples.filter((pl.col("time_s") > warm_up_s) & (pl.col("queue") == star.name))
    rtt = result.flow_samples.filter((pl.col("time_s") > warm_up_s) & (pl.col("flow") == 0))["srtt_ms"]
    busy, times, delays = queue["busy_s"], queue["time_s"], queue["queue_delay_ms"]
    after = rates[:, round(warm_up_s / WINDOW_S) :].mean(axis=1)
    return {
        **about,
        "jain": min(fairness),
        "first_share": float(after[0] / after.sum()),
        "settled_ms": max(settling),
        "utilisation": float((busy[-1] - busy[0]) / (times[-1] - times[0])),
        "queue_ms_mean": float(np.mean(delays.to_numpy())),
        "queue_ms_p99": float(np.quantile(delays.to_numpy(), 0.99)),
        "rtt_ms_first": float(np.mean(rtt.to_numpy())),
        "rtt_ms_first_p99": float(np.quantile(rtt.to_numpy(), 0.99)),
        "retransmits": int(result.flows["retransmits"].sum()),
    }


def _case(
    scenario: str, name: str, star: Star, spans: Spans, about: Row, warm_up_s: float = WARM_UP_S
) -> Case:
    said = {"scenario": scenario, "flows": name, **about}
    measure = partial(_row, star, spans, said, warm_up_s)
    return Case(f"{scenario}-{name}", star.network, f"{round(spans.ends[-1] * 1000)} ms", measure)


@experiment(
    "stamping.fairness",
    ("scenario", "flows", "jain", "first_share", "settled_ms", "utilisation", "queue_ms_p99", "rtt_ms_first"),
    backends=("sim", "live"),
    quick={"duration_s": 6.0, "step_s": 1.0},
)
def fairness(
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = ("stamp", "dctcp", "cubic"),
    rate_mbps: float = 100.0,
    base_rtt_ms: float = 2.0,
    duration_s: Annotated[float, AtLeast(2.5)] = 30.0,
    step_s: Annotated[float, AtLeast(0.5)] = 3.0,
) -> Plan:
    """Round trips of 1:10, flows that join and leave, and a `stamp` flow beside unmanaged ones, in the simulator or live."""
    about: Row = {"rate_mbps": rate_mbps, "base_rtt_ms": base_rtt_ms}
    cases = []
    for control in controls:
        star = Star.of(control, rate_mbps, base_rtt_ms)
        for rtt_ms in (base_rtt_ms, RATIO * base_rtt_ms):
            star.flow(control, rtt_ms)
        # The longer flow takes many of its round trips.
        later = duration_s / 2
        cases.append(_case("round_trips", control, star, together(2, duration_s), about, later))
    for control in controls:
        star, spans = Star.of(control, rate_mbps, base_rtt_ms), joins(step_s)
        for number in range(JOINING):
            star.flow(control, base_rtt_ms, number * step_s, (JOINING + number) * step_s)
        cases.append(_case("joins", control, star, spans, about))
    if "stamp" in controls:
        for name, others in (("stamp", ()), ("stamp+cubic", ("cubic",)), ("stamp+stamp", ("stamp",))):
            star = Star.of("stamp", rate_mbps, base_rtt_ms)
            for control in ("stamp", *others):
                star.flow(control, base_rtt_ms)
            spans = together(len(star.network.flows), duration_s)
            cases.append(_case("beside", name, star, spans, about))
    return Plan(cases, partial(_claims, base_rtt_ms), partial(_draw, controls, rate_mbps, step_s))


WHY_LATE = "real hosts take a part of each round trip: the window of the least one leaves it idle, and stalls come in bursts"
WHY_SLOW = (
    "the step of a long round trip is smaller by its ratio, so old flows take thousands of short round trips; what real hosts "
    "take of a round trip costs the short one more"
)


def _claims(base_rtt_ms: float, rows: list[Row]) -> list[Claim]:
    def of(scenario: str, column: str, flows: Sequence[str] = ("stamp",)) -> dict[str, float]:
        chosen = [row for row in rows if row["scenario"] == scenario and row["flows"] in flows]
        return medians(chosen, column, lambda row: str(row["flows"]))

    if not of("joins", "jain"):
        return []
    alone, beside = of("beside", "rtt_ms_first"), of("beside", "rtt_ms_first", ("stamp+cubic",))
    unmanaged = {"times": beside["stamp+cubic"] / alone["stamp"]} if alone and beside else {}
    return [
        between(
            "round-trips",
            "ours",
            "Two stamp flows with round trips of 1:10 share with a Jain index of at least 0.98",
            of("round_trips", "jain"),
            0.98,
            why=WHY_SLOW,
        ),
        between(
            "joins",
            "ours",
            "Of up to four stamp flows that join and leave, shares have a Jain index of at least 0.95 in the later half of each step",
            of("joins", "jain"),
            0.95,
            why=WHY_LATE,
        ),
        between(
            "queue",
            "ours",
            "With stamp flows that join and leave, the queue's p99 stays below 2 base round trips",
            of("joins", "queue_ms_p99"),
            high=2 * base_rtt_ms,
            why="a newcomer starts at the rate of its own link",
            form=Unit("ms"),
        ),
        between(
            "utilisation",
            "ours",
            "They use at least 95 % of the link",
            of("joins", "utilisation"),
            0.95,
            why=WHY_LATE,
        ),
        between(
            "beside-unmanaged",
            "ours",
            "A CUBIC flow in the same queue makes the mean round trip of a stamp flow at most 2 times as long",
            unmanaged,
            high=2.0,
            why="there is one queue, and CUBIC fills it; stamps say so, and the stamp flow yields the link",
        ),
    ]


def _draw(controls: Sequence[str], rate_mbps: float, step_s: float, runs: list[Run]) -> Figure:
    """Goodput over time of the flows that join and leave, and of unequal round trips; round trips beside others."""
    first = {run.case: run for run in of_first_seed(runs)}
    figure = Figure(figsize=(12, 8.5), layout="constrained")
    columns = max(len(controls), 1)
    grid = figure.add_gridspec(3, columns)
    for row, scenario in enumerate(("round_trips", "joins")):
        shared: Axes | None = None
        for column, control in enumerate(controls):
            panel = figure.add_subplot(grid[row, column], sharey=shared)
            shared = shared or panel
            _draw_shares(panel, scenario, first[f"{scenario}-{control}"], rate_mbps)
            kind = "RTT 1:10" if scenario == "round_trips" else f"one more or less each {step_s:g} s"
            panel.set(title=f"{CONTROLS[control]}: {kind}", xlabel="time (s)", ylim=(0, 1.3 * rate_mbps))
            if column == 0:
                panel.set_ylabel("goodput (Mbit/s)")
    if "stamp" in controls:
        _draw_rtts(figure.add_subplot(grid[2, :]), first)
    return figure


def _draw_shares(panel: Axes, scenario: str, run: Run, rate_mbps: float) -> None:
    samples = run.tables["flow_samples"]
    count = 2 if scenario == "round_trips" else JOINING
    duration = float(samples["time_s"].max())  # type: ignore[arg-type]
    found = shares(samples, count, duration)
    times = WINDOW_S * (np.arange(found.shape[1]) + 0.5)
    names = (
        ("short RTT", "long RTT") if scenario == "round_trips" else [f"flow {n + 1}" for n in range(count)]
    )
    for number, name in enumerate(names):
        shown = found[number] > 0
        panel.plot(times[shown], found[number][shown], linewidth=1.0, label=name)
    panel.grid(alpha=0.3)
    panel.legend(fontsize="x-small", loc="upper center", ncols=4)


def _draw_rtts(panel: Axes, first: dict[str, Run]) -> None:
    """Distribution of the RTT of the first flow."""
    for name, label in (
        ("stamp", "stamp alone"),
        ("stamp+stamp", "beside a stamp flow"),
        ("stamp+cubic", "beside a CUBIC flow"),
    ):
        samples = first[f"beside-{name}"].tables["flow_samples"]
        own = samples.filter((pl.col("flow") == 0) & (pl.col("time_s") > WARM_UP_S))["srtt_ms"].drop_nulls()
        values = np.sort(own.to_numpy())
        panel.plot(values, np.arange(1, len(values) + 1) / max(len(values), 1), label=label)
    panel.set(
        xlabel="smoothed RTT of a stamp flow (ms)",
        ylabel="share of samples (CDF)",
        xlim=(0, None),
        ylim=(0, 1.02),
    )
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
