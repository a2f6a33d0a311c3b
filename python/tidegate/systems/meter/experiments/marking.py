"""RED_ECN with other values than the paper's: threshold R', probability P_M, an averaged level; and other congestion controls.

The paper expects more of an averaged level (section IV-B) and of a threshold that is not a power of 2 (section VI), which its switch
could not compute, and other values for other congestion controls (VI). It has no data on any of these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row
from tidegate.experiments import AtLeast, OneOf, Plan, Run, experiment
from tidegate.papers import of_run
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.controller import PAPER, UNBOUNDED
from tidegate.systems.meter.experiments.scheme_grid import QUICK_S
from tidegate.systems.meter.experiments.testbed import Seconds
from tidegate.systems.meter.experiments.variants import TABLE, draw_settings, varied_case

Shares = Annotated[tuple[float, ...], AtLeast(0.001, 1)]
CONTROLS = ("cubic", "reno", "bbr", "dctcp")


@experiment(
    "meter.marking",
    ("congestion_control", *TABLE),
    quick={
        "duration_s": QUICK_S,
        "rates_mbps": (100,),
        "thresholds": (0.5, 0.75),
        "probabilities": (0.2,),
        "average_shifts": (6,),
        "controls": ("cubic", "reno"),
    },
)
def marking(
    thresholds: Shares = (0.125, 0.25, 0.4, 0.5, 0.6, 0.75),
    probabilities: Shares = (0.05, 0.2, 0.5),
    average_shifts: Annotated[tuple[int, ...], AtLeast(1, 63)] = (3, 6, 9),
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = CONTROLS,
    rates_mbps: tuple[int, ...] = (100, 400),
    base_rtts_ms: tuple[float, ...] = (0.1, 1.0),
    duration_s: Seconds = 180,
) -> Plan:
    """RED_ECN with other thresholds, probabilities and an averaged level; other congestion controls (sections IV-B, VI)."""
    # The paper's values are always among them: the others are compared with those.
    least = dict.fromkeys((*thresholds, PAPER.threshold))
    chances = dict.fromkeys((*probabilities, PAPER.probability))
    variants = {f"R' {share:g}": replace(PAPER, threshold=share) for share in sorted(least)}
    variants |= {
        f"P_M {chance:g}": replace(PAPER, probability=chance)
        for chance in sorted(chances)
        if chance != PAPER.probability
    }
    variants |= {
        f"average 2^-{shift}": replace(PAPER, averages=True, average_shift=shift) for shift in average_shifts
    }

    def draw(runs: list[Run]) -> Figure:
        first = controls[0]
        return draw_settings(
            [run for run in runs if any(row["congestion_control"] == first for row in run.rows or ())],
            list(variants),
            base_rtts_ms,
            lower="timeouts_per_s",
            lower_label="timeouts per second",
            title=f"RED_ECN with one value changed, {first.upper()}, mean of {duration_s} s",
            xlabel="changed value",
            per_cent=False,
        )

    cases = [
        varied_case(
            name,
            bucket,
            UNBOUNDED,
            rtt,
            rate,
            duration_s,
            congestion_control=control,
            threshold=bucket.threshold,
            probability=bucket.probability,
            average_shift=bucket.average_shift if bucket.averages else None,
        )
        for control in controls
        for rtt in base_rtts_ms
        for name, bucket in variants.items()
        # Averages are asked of the paper's own congestion control.
        if not (bucket.averages and control != controls[0])
        for rate in rates_mbps
    ]

    def claims(rows: list[Row]) -> list[Claim]:
        return of_run(CLAIMS, "meter.marking", rows, {"duration_s": duration_s})

    return Plan(cases, claims, draw)
