"""The rows of the experiments: results of the flows and of their queues."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.measures import (
    NO_DELAYS,
    Delays,
    Noted,
    goodputs_mbps,
    grown,
    sampled_delays,
    utilisation,
    within,
)
from tidegate.results import Result, jain
from tidegate.specs import PageSpec
from tidegate.systems.aqm.controller import LOW, bin_edges_us
from tidegate.systems.aqm.experiments.flow_history import FlowHistory
from tidegate.systems.aqm.experiments.testbed import BOTTLENECK, WAYS, Bottleneck, Counts

WHOLE, LATE = "whole", "late"
"""A row's window: all of a run or phase, as in the paper, or that without its start."""
RAMP_SHARE = 0.8
"""Of a fair share of the link: where a flow has ramped up."""


class QueueNotes(Noted):
    """What `Counts` recorded of a port's queues: counts, and a histogram of delays."""

    def delays(self, queue: int, from_s: float, to_s: float) -> Delays:
        """Delays of the packets that left a queue in this time."""
        prefix = f"q{queue}_bin_"
        numbers = sorted(int(name[len(prefix) :]) for name in self.parts if name.startswith(prefix))
        counts = np.array([self.since(f"{prefix}{number}", from_s, to_s) for number in numbers])
        if not numbers or counts.sum() == 0:
            return NO_DELAYS
        # Bins between these without a packet have a share of 0.
        first, last = numbers[0], numbers[-1]
        shares = np.zeros(last - first + 1)
        shares[np.array(numbers) - first] = counts / counts.sum()
        edges = [bin_edges_us(number)[0] / 1e3 for number in range(first, last + 1)]
        edges.append(bin_edges_us(last)[1] / 1e3)
        mean = self.since(f"q{queue}_delay_sum_us", from_s, to_s) / counts.sum() / 1e3
        return Delays(np.array(edges), shares, float(mean), int(counts.sum()))


def starts_s(lab: Bottleneck) -> dict[int, float]:
    """When flows start."""
    specs = ((flow.number, flow.spec) for flow in lab.network.flows)
    return {number: spec.start / 1e12 for number, spec in specs if not isinstance(spec, PageSpec)}


def begun(lab: Bottleneck, time_s: float) -> set[int]:
    """Flows that have started by then."""
    return {number for number, start in starts_s(lab).items() if start < time_s}


def std_ms(delays: Delays) -> float:
    """Standard deviation of delays, by the middles of their bins."""
    middles = (delays.edges_ms[:-1] + delays.edges_ms[1:]) / 2
    mean = float((delays.shares * middles).sum())
    return float(np.sqrt((delays.shares * (middles - mean) ** 2).sum()))


def _sampled(result: Result, number: int, count: str, from_s: float, to_s: float) -> int:
    """The growth of a count of the bottleneck's queue of this number, from its samples."""
    samples = within(result.queue_samples, from_s, to_s).filter(
        pl.col("queue") == BOTTLENECK, pl.col("number") == number
    )
    return 0 if samples.is_empty() else int(samples[count][-1] - samples[count][0])


def _plain_dropped_share(result: Result, from_s: float, to_s: float) -> float:
    """Of a plain queue: dropped packets over those and the sent ones, which are sent bytes by the mean length of the run's packets."""
    queue = result.queues.filter(pl.col("queue") == BOTTLENECK).row(0, named=True)
    sent, dropped = (_sampled(result, 0, name, from_s, to_s) for name in ("sent_bytes", "dropped"))
    packets = sent * queue["packets"] / max(queue["bytes"], 1)
    return float(dropped / max(packets + dropped, 1))


def _dropped_share(result: Result, queue: int, counts: dict[str, float], from_s: float, to_s: float) -> float:
    """Of a queue behind a P4 program: packets that the AQM, the program's buffer or the queue's limit dropped, over those and the sent ones."""
    tail = counts["overflowed"] + _sampled(result, queue, "dropped", from_s, to_s)
    signals = counts["dropped_not_ect"] + counts["dropped_ect"]
    return (signals + tail) / max(counts["presented"] + tail, 1.0)


def rows_of(
    result: Result,
    lab: Bottleneck,
    about: Row,
    from_s: float,
    to_s: float,
    *,
    flows: Collection[int] | None = None,
) -> list[Row]:
    """A row for each congestion control: goodput of its flows, and delays, marks and drops in their queue.

    `flows`: the flows to measure, by default all. `ce_told`: packets with CE that the receivers reported to the senders.
    `dropped_share`: packets that the queue dropped for any reason, over those and the sent ones. An error is
    a flow's goodput over an equal share of the total, less 1. Its quantiles are those over the flows; a single flow has those over
    its intervals of a second. `goodput_cv`: standard deviation over mean of a flow's goodput in such intervals, the mean of the flows.
    `ramp_s`: from the start of a flow to the first interval with `RAMP_SHARE` of a fair share of the link, the median of the flows
    that start in this time; `None` if none does. `loss_cost`: the mean of `FlowHistory.loss_costs`; `None` without a single loss.
    """
    noted, history = QueueNotes(result.notes), FlowHistory(result)
    starts = starts_s(lab)
    link = lab.link.forward.rate / 1e6 * lab.goodput_share
    rates = {
        flow: rate
        for flow, rate in goodputs_mbps(result, from_s, to_s).items()
        if flows is None or flow in flows
    }
    fair = sum(rates.values()) / len(rates)
    if not fair:
        raise TidegateError(
            f"no flow got anything through from {from_s:g} to {to_s:g} s; give a longer run, or shorter round trips"
        )
    told = {int(flow): int(marks) for flow, *_, marks in grown(result, from_s, to_s).iter_rows()}
    controls: dict[str, list[int]] = {}
    for flow in rates:
        spec: Any = lab.network.flows[flow].spec
        controls.setdefault(spec.congestion_control, []).append(flow)
    p = noted.values(f"p_{lab.network.port(lab.link.a, lab.link)}", from_s, to_s)
    plain = WAYS[lab.way].program is None
    rows = []
    for control, members in controls.items():
        own = [rates[flow] for flow in members]
        low = control == "prague"
        queue = LOW if low and WAYS[lab.way].queues == 2 else 0
        errors = np.array(own) / fair - 1
        each = [history.intervals_mbps(flow, from_s, to_s) for flow in members]
        spread = errors if len(members) > 1 else each[0] / fair - 1
        ramps = [
            history.ramp_s(flow, starts[flow], to_s, RAMP_SHARE * link / len(rates))
            for flow in members
            if from_s <= starts[flow] < to_s
        ]
        costs = [cost for flow in members for cost in history.loss_costs(flow, from_s, to_s)]
        delays = (
            sampled_delays(result, BOTTLENECK, from_s, to_s) if plain else noted.delays(queue, from_s, to_s)
        )
        counts = {
            name: noted.since(f"q{queue}_{name}_packets", from_s, to_s)
            for name in (*Counts.NAMES, "presented")
        }
        rows.append(
            {
                "way": lab.way,
                **about,
                "control": control,
                "flows": len(own),
                "goodput_mbps": float(np.mean(own)),
                "goodputs_mbps": [round(rate, 4) for rate in own],
                "error_p25": float(np.quantile(spread, 0.25)),
                "error_mean": float(errors.mean()),
                "error_p99": float(np.quantile(spread, 0.99)),
                "error_abs_mean": float(np.abs(errors).mean()),
                "delay_ms_p25": delays.quantile_ms(0.25),
                "delay_ms_mean": delays.mean_ms,
                "delay_ms_p99": delays.quantile_ms(0.99),
                "delay_ms_std": std_ms(delays),
                "goodput_cv": float(np.mean([rate.std() / max(rate.mean(), 1e-9) for rate in each])),
                "ramp_s": float(np.median(ramps)) if ramps else None,
                "loss_cost": float(np.mean(costs)) if costs else None,
                "marked_share": counts["marked"] / max(counts["presented"], 1.0),
                "ce_told": sum(told[flow] for flow in members),
                "dropped_share": _plain_dropped_share(result, from_s, to_s)
                if plain
                else _dropped_share(result, queue, counts, from_s, to_s),
                "p_mean": float(p.mean()) if len(p) else 0.0,
                "p_std": float(p.std()) if len(p) else 0.0,
                "goodput_total_mbps": sum(rates.values()),
                "utilisation": utilisation(result, BOTTLENECK, from_s, to_s),
                "jain": jain(pl.Series(list(rates.values()))),
            }
        )
    return rows


def windows(
    result: Result,
    lab: Bottleneck,
    about: Row,
    from_s: float,
    to_s: float,
    warm_up_s: float,
    flows: Collection[int] | None = None,
) -> list[Row]:
    """The rows of a run or phase from beginning to end (`WHOLE`), and those without its first `warm_up_s` (`LATE`)."""
    return [
        row
        for window, begin in ((WHOLE, from_s), (LATE, from_s + warm_up_s))
        for row in rows_of(result, lab, {**about, "window": window}, begin, to_s, flows=flows)
    ]


def expected_p(
    capacity_mbps: float,
    rtt_classic_ms: float,
    rtt_l4s_ms: float,
    classic: int,
    l4s: int,
    frame_bits: int = 8 * 1514,
) -> float:
    """p' at which the window laws of CUBIC and Prague fill the link.

    CUBIC's window is the larger of its own, 1.054 (R/p_C)^(3/4), and Reno's, 1.22 / sqrt(p_C) (RFC 9438); p_C = p'^2. Prague's is
    2 (1 - p_L) / p_L, by the ratio of the round trip to 25 ms where that is shorter; p_L = 2 p'.
    """
    packets = capacity_mbps * 1e6 / frame_bits
    classic_s, l4s_s = rtt_classic_ms / 1e3, rtt_l4s_ms / 1e3

    def load(p: float) -> float:
        square, coupled = p * p, min(2 * p, 1.0)
        cubic = max(1.054 * math.pow(classic_s / square, 0.75), 1.22 / p, 2.0)
        prague = max(2 * (1 - coupled) / coupled * min(l4s_s / 0.025, 1.0), 2.0)
        return classic * cubic / classic_s + l4s * prague / l4s_s

    low, high = 1e-6, 1.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if load(middle) > packets else (low, middle)
    return low
