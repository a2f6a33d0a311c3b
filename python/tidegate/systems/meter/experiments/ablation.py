"""The effect of each part of the paper's meter (Table I, Figs. 11 and 12)."""

from __future__ import annotations

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians, percent
from tidegate.experiments import Plan, Run, experiment
from tidegate.systems.meter.experiments.scheme_grid import (
    QUICK_S,
    TABLE,
    draw_rates,
    grid,
    rows_of,
    target_label,
)
from tidegate.systems.meter.experiments.testbed import SCHEMES, Seconds

WHY_PARTS = (
    "the paper gives no RTT: at this one the plain meter is near its target already, or two packets per RTT exceed the rate; "
    "the paper's controller takes minutes to reach the rate"
)


@experiment("meter.ablation", TABLE, backends=("sim", "live"), quick={"duration_s": QUICK_S})
def ablation(
    rates_mbps: tuple[int, ...] = (100, 200, 400, 800),
    base_rtts_ms: tuple[float, ...] = (0.012, 0.1, 0.5),
    duration_s: Seconds = 180,
) -> Plan:
    """The effect of each part of the paper's meter: none, RED_ECN, the controller, both (Table I, Figs. 11 and 12)."""
    schemes = ("plain", "red_ecn", "controller", "paper")

    def claims(rows: list[Row]) -> list[Claim]:
        out = []
        for rtt in base_rtts_ms:
            errors = {
                scheme: medians(rows_of(rows, scheme, rtt), "relative_error", target_label)
                for scheme in schemes
            }
            for scheme, published in (("red_ecn", "Exp. 1"), ("controller", "Exp. 2"), ("paper", "Exp. 3")):
                gained = {name: error - errors["plain"][name] for name, error in errors[scheme].items()}
                statement = f"{SCHEMES[scheme].text}, {rtt:g} ms: nearer to the target than the plain meter"
                out.append(
                    between(
                        f"{scheme}-{rtt:g}ms-helps",
                        "paper",
                        statement,
                        gained,
                        0,
                        published=f"{published} is nearer than Exp. 0 (Figs. 11 and 12)",
                        why=WHY_PARTS,
                        form=Percents(),
                    )
                )
            for scheme, figure in (("controller", -0.20), ("paper", -0.10)):
                if "100 Mbit/s" in errors[scheme]:
                    one = {"100 Mbit/s": errors[scheme]["100 Mbit/s"]}
                    statement = (
                        f"{SCHEMES[scheme].text}, {rtt:g} ms, 100 Mbit/s: within 10 points of the paper's"
                    )
                    low, high = figure - 0.1, figure + 0.1
                    out.append(
                        between(
                            f"{scheme}-{rtt:g}ms-100",
                            "paper",
                            statement,
                            one,
                            low,
                            high,
                            published=f"{percent(figure)} (section V-B)",
                            why=WHY_PARTS,
                            form=Percents(),
                        )
                    )
        return out

    def draw(runs: list[Run]) -> Figure:
        title = f"The parts of the paper's meter, mean of {duration_s} s"
        return draw_rates(runs, rates_mbps, base_rtts_ms, schemes, title)

    return Plan(grid(schemes, base_rtts_ms, [[rate] for rate in rates_mbps], duration_s), claims, draw)
