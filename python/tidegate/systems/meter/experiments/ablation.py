"""The effect of each part of the paper's meter (Table I, Figs. 11 and 12): goodput, drops and timeouts of Exp. 0 to 3."""

from __future__ import annotations

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import Plan, Run, experiment
from tidegate.papers import of_run
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.experiments.scheme_grid import (
    QUICK_S,
    TABLE,
    draw_rates,
    grid,
    rows_of,
    target_label,
)
from tidegate.systems.meter.experiments.testbed import SCHEMES, Mtu, Seconds

WHY_PARTS = (
    "the paper gives no RTT: at this one the plain meter is near its target already, or two packets per RTT exceed the rate; "
    "the paper's controller takes minutes to reach the rate"
)
EXPERIMENTS = ("plain", "red_ecn", "controller", "paper-unbounded")
"""Exp. 0 to 3 of Table I; the controller as published."""


@experiment("meter.ablation", TABLE, backends=("sim", "live"), quick={"duration_s": QUICK_S})
def ablation(
    rates_mbps: tuple[int, ...] = (100, 200, 400, 800),
    base_rtts_ms: tuple[float, ...] = (0.012, 0.1, 0.5),
    mtu: Mtu = 1500,
    duration_s: Seconds = 180,
) -> Plan:
    """The effect of each part of the paper's meter: none, RED_ECN, the controller, both (Table I, Figs. 11 and 12)."""

    def claims(rows: list[Row]) -> list[Claim]:
        out = of_run(CLAIMS, "meter.ablation", rows, {"duration_s": duration_s})
        for rtt in base_rtts_ms:
            errors = [
                medians(rows_of(rows, scheme, rtt), "goodput_error", target_label) for scheme in EXPERIMENTS
            ]
            for number, scheme in enumerate(EXPERIMENTS[1:], 1):
                gained = {name: error - errors[0][name] for name, error in errors[number].items()}
                out.append(
                    between(
                        f"{scheme}-{rtt:g}ms-helps",
                        "paper",
                        f"{SCHEMES[scheme].text}, {rtt:g} ms: more goodput than the plain meter (points of the target)",
                        gained,
                        0,
                        published=f"Exp. {number} is nearer than Exp. 0 (Figs. 11 and 12)",
                        why=WHY_PARTS,
                        form=Percents(),
                    )
                )
        return out

    def draw(runs: list[Run]) -> Figure:
        title = f"The parts of the paper's meter (Table I), mean of {duration_s} s"
        return draw_rates(runs, rates_mbps, base_rtts_ms, EXPERIMENTS, title)

    # The paper's means are those of whole runs.
    cases = grid(
        EXPERIMENTS, base_rtts_ms, [[rate] for rate in rates_mbps], duration_s, mtu=mtu, settled=False
    )
    return Plan(cases, claims, draw)
