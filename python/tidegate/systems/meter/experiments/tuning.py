"""Tuning of the paper's controller, in the paper's order: Kp alone, then Ki, then Kd (section V-A, without data there)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Row
from tidegate.experiments import AtLeast, Plan, Run, experiment
from tidegate.papers import of_run
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.controller import PAPER, UNBOUNDED
from tidegate.systems.meter.experiments.scheme_grid import QUICK_S
from tidegate.systems.meter.experiments.testbed import Seconds
from tidegate.systems.meter.experiments.variants import TABLE, draw_settings, varied_case

Gains = Annotated[tuple[float, ...], AtLeast(0.001, 100)]


@experiment(
    "meter.tuning",
    TABLE,
    quick={"duration_s": QUICK_S, "rates_mbps": (100,), "kps": (0.1, 0.7), "kis": (0.15,), "kds": (0.5,)},
)
def tuning(
    kps: Gains = (0.1, 0.3, 0.7, 1.5),
    kis: Gains = (0.05, 0.15, 0.5),
    kds: Gains = (0.1, 0.5, 1.0),
    rates_mbps: tuple[int, ...] = (100, 400),
    base_rtts_ms: tuple[float, ...] = (0.1, 1.0),
    duration_s: Seconds = 180,
) -> Plan:
    """Gains of the paper's controller: Kp alone, Ki beside the paper's Kp, Kd beside both (section V-A)."""
    kp, ki = UNBOUNDED.kp, UNBOUNDED.ki
    alone = [(gain, 0.0, 0.0) for gain in (*kps, kp)]
    # The paper's gains are always among them: the others are compared with those.
    order = [*alone, *((kp, gain, 0.0) for gain in (*kis, ki)), *((kp, ki, gain) for gain in kds)]
    gains = {f"{p:g}, {i:g}, {d:g}": (p, i, d) for p, i, d in sorted(order, key=lambda one: one[::-1])}

    def draw(runs: list[Run]) -> Figure:
        return draw_settings(
            runs,
            list(gains),
            base_rtts_ms,
            lower="deviation",
            lower_label="standard deviation of 1 s rates (%)",
            title=f"Gains Kp, Ki, Kd of the paper's controller, {duration_s} s",
            xlabel="Kp, Ki, Kd",
        )

    cases = [
        varied_case(
            name,
            PAPER,
            replace(UNBOUNDED, kp=each[0], ki=each[1], kd=each[2]),
            rtt,
            rate,
            duration_s,
            kp=each[0],
            ki=each[1],
            kd=each[2],
        )
        for rtt in base_rtts_ms
        for name, each in gains.items()
        for rate in rates_mbps
    ]

    def claims(rows: list[Row]) -> list[Claim]:
        return of_run(CLAIMS, "meter.tuning", rows, {"duration_s": duration_s})

    return Plan(cases, claims, draw)
