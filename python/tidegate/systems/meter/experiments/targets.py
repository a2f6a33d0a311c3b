"""Four flows at once with different targets (Figs. 17 to 22)."""

from __future__ import annotations

from tidegate.experiments import Plan, experiment
from tidegate.systems.meter.experiments.scheme_grid import TABLE, grid
from tidegate.systems.meter.experiments.several_flows import draw_flows, flow_claims
from tidegate.systems.meter.experiments.testbed import Mtu, Schemes, Seconds


@experiment(
    "meter.targets",
    ("case", "flow", *TABLE[2:]),
    backends=("sim", "live"),
    quick={"duration_s": 30, "base_rtts_ms": (0.1,)},
)
def targets(
    low_mbps: tuple[int, ...] = (100, 200, 300, 400),
    high_mbps: tuple[int, ...] = (400, 500, 600, 700),
    base_rtts_ms: tuple[float, ...] = (0.012, 0.1, 0.5, 1.0),
    schemes: Schemes = ("plain", "paper", "paper-unbounded", "fair"),
    mtu: Mtu = 1500,
    duration_s: Seconds = 180,
) -> Plan:
    """Four flows at once with different targets (Figs. 17 to 22)."""
    sets = [low_mbps, high_mbps]
    return Plan(
        grid(schemes, base_rtts_ms, sets, duration_s, mtu=mtu),
        lambda rows: flow_claims("meter.targets", rows, schemes, base_rtts_ms, duration_s),
        lambda runs: draw_flows(
            runs, schemes, base_rtts_ms, sets, f"Four flows, four targets, mean of {duration_s} s"
        ),
    )
