"""One to four flows at once with the same target (Figs. 13 to 16)."""

from __future__ import annotations

from tidegate.experiments import Number, Plan, experiment
from tidegate.systems.meter.experiments.scheme_grid import QUICK_S, TABLE, grid
from tidegate.systems.meter.experiments.several_flows import draw_flows, flow_claims
from tidegate.systems.meter.experiments.testbed import Mtu, Schemes, Seconds


@experiment(
    "meter.flows",
    ("case", "flow", *TABLE[2:]),
    backends=("sim", "live"),
    quick={"duration_s": QUICK_S, "most": 2, "base_rtts_ms": (0.1, 1.0)},
)
def flows(
    most: Number = 4,
    target_mbps: int = 400,
    base_rtts_ms: tuple[float, ...] = (0.012, 0.1, 0.5, 1.0),
    schemes: Schemes = ("plain", "paper", "paper-unbounded", "fair"),
    mtu: Mtu = 1500,
    duration_s: Seconds = 180,
) -> Plan:
    """One to four flows at once, a meter each, all with the same target (Figs. 13 to 16)."""
    sets = [[target_mbps] * number for number in range(1, most + 1)]
    title = f"1 to {most} flows with a meter of {target_mbps} Mbit/s each, mean of {duration_s} s"
    return Plan(
        grid(schemes, base_rtts_ms, sets, duration_s, mtu=mtu),
        lambda rows: flow_claims("meter.flows", rows, schemes, base_rtts_ms, duration_s),
        lambda runs: draw_flows(runs, schemes, base_rtts_ms, sets, title),
    )
