"""Flows that leave, which the paper names in its abstract and does not run: with FIN, with RST, and hosts that vanish."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, Unit, between, medians, medians_of_times
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.experiments.star import Star, draw_rates

KINDS = {"fin": "closes (FIN)", "reset": "is killed (RST)", "gone": "host vanishes"}
FLOWS = 4
EVENT_S = 3.0
AFTER_S = 3.0


@experiment(
    "pacing.leave",
    (
        "kind",
        "rtt_ms",
        "in_force_ms",
        "after_close_ms",
        "goodput_before_mbps",
        "goodput_after_mbps",
        "of_given",
    ),
    backends=("sim", "live"),
    quick={"rtts_ms": (20.0,)},
)
def leave(
    kinds: Annotated[tuple[str, ...], OneOf(KINDS)] = tuple(KINDS),
    rate_mbps: Annotated[float, AtLeast(1.0)] = 100.0,
    rtts_ms: tuple[float, ...] = (1.0, 20.0),
    idle_s: Annotated[float, AtLeast(0.5)] = 1.0,
) -> Plan:
    """One of four flows leaves: how long until the others have its share, and how much of the link they use then."""
    cases = []
    for kind in kinds:
        for rtt_ms in rtts_ms:
            star = Star(rate_mbps, rtt_ms, options={"idle": f"{idle_s} s"})
            for number in range(FLOWS):
                leaves = kind != "gone" and number == 0
                star.flow(
                    star.host(), 0.2 * number, EVENT_S if leaves else None, ends=kind if leaves else None
                )
            if kind == "gone":
                star.access[0].set(f"{EVENT_S} s", loss=1.0)
            end_s = EVENT_S + AFTER_S + idle_s
            measure = partial(_row, star, kind, idle_s, end_s)
            cases.append(Case(f"{kind}-{rtt_ms:g}", star.network, f"{round(end_s * 1000)} ms", measure))
    return Plan(cases, partial(_claims, idle_s), partial(_draw, idle_s))


def _row(star: Star, kind: str, idle_s: float, end_s: float, result: Result) -> Row:
    before = star.rates(result, EVENT_S - 1.0, EVENT_S)
    told = star.in_force_ms(range(1, FLOWS), EVENT_S, end_s)
    after = star.rates(result, end_s - AFTER_S / 2, end_s)[1:]
    return {
        "kind": kind,
        "rtt_ms": star.rtt_ms,
        "in_force_ms": told,
        # Before its FIN, a real host sends what is in its buffer, and any host hears a round trip after it that it has come. A
        # connection that is reset is over at once.
        "after_close_ms": None
        if kind == "gone" or told is None
        else told - 1e3 * (star.agents[0].closed[0] - EVENT_S),
        "goodput_before_mbps": float(before.sum()),
        "goodput_after_mbps": float(after.sum()),
        "of_given": float(after.sum()) / star.given_mbps,
        "largest_mbps": float(after.max()),
        "least_mbps": float(after.min()),
        "retransmits": int(result.flows["retransmits"][1:].sum()),
    }


def _claims(idle_s: float, rows: list[Row]) -> list[Claim]:
    def late(kind: str, column: str) -> dict[str, float]:
        own = [row for row in rows if row["kind"] == kind]
        return medians_of_times(own, column, lambda row: f"{row['rtt_ms']:g} ms")

    claims = []
    if late("fin", "after_close_ms"):
        claims.append(
            between(
                "fin",
                "ours",
                "The new rate holds at all hosts at most 1 ms after the leaving host has its FIN acknowledged, a round trip after the FIN",
                late("fin", "after_close_ms"),
                high=1.0,
                why="the notice waits for the machine's processors",
                form=Unit("ms"),
            )
        )
    if late("reset", "after_close_ms"):
        claims.append(
            between(
                "reset",
                "ours",
                "The new rate holds at all hosts at most 1 ms after the leaving host has reset its connection",
                late("reset", "after_close_ms"),
                high=1.0,
                why="the notice waits for the machine's processors",
                form=Unit("ms"),
            )
        )
    if late("gone", "in_force_ms"):
        claims.append(
            between(
                "gone",
                "ours",
                f"After a host has vanished, the new rate holds within the idle time of {idle_s:g} s and 1.2 s, in which all are visited",
                late("gone", "in_force_ms"),
                high=1e3 * (idle_s + 1.2),
                why="a list that nothing has changed in is walked once in 1.05 s",
                form=Unit("ms"),
            )
        )
    used = medians(
        rows, lambda row: float(row["of_given"]) - 1, lambda row: f"{row['kind']} {row['rtt_ms']:g} ms"
    )
    claims.append(
        between(
            "used",
            "ours",
            "The flows that stay use what the link gives away, within 1 %",
            used,
            -0.01,
            0.01,
            why="flows send late by what the machine takes",
            form=Percents(),
        )
    )
    return claims


def _draw(idle_s: float, runs: list[Run]) -> Figure:
    """Goodput over time."""
    shown = of_first_seed(runs)
    figure = Figure(figsize=(4.5 * len(shown), 3.6), layout="constrained")
    for panel, run in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        draw_rates(panel, run, [f"flow {n + 1}" for n in range(FLOWS)], EVENT_S + AFTER_S + idle_s)
        panel.axvline(EVENT_S, color="0.5", linestyle=":")
        row = (run.rows or [{}])[0]
        panel.set_title(f"flow 1 {KINDS[row['kind']]}, {row['rtt_ms']:g} ms")
    return figure
