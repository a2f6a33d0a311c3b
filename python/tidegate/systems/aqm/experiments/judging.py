"""Claims that several experiments share, and their sources."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate import units
from tidegate.claims import Claim, Row, Unit, between, medians
from tidegate.systems.aqm.experiments.measuring import LATE
from tidegate.systems.aqm.experiments.testbed import WAYS

WHY_TARGET = "one or two flows of each have not converged within the judged time: while a CUBIC window grows, the queue is empty for a part of it"
WHY_UTILISATION = "flows with long RTTs still grow their windows in the judged time"
WHY_L4S_DELAY = (
    "where many Prague flows share a low rate, two packets in flight per flow exceed the BDP; at 1 Gbit/s the L queue stays at its "
    "step of 1 ms"
)


def target_ms(way: str) -> float:
    """The target of a way that is a P4 program."""
    return units.time(WAYS[way].aqm.target) / 1e9


def where(row: Row) -> str:
    """`120 Mbit/s, 10 ms, 1-1`."""
    return f"{row['capacity_mbps']} Mbit/s, {row['base_rtt_ms']:g} ms, {row['classic']}-{row['l4s']}"


def of(rows: Sequence[Row], control: str) -> list[Row]:
    """The rows of one congestion control."""
    return [row for row in rows if row["control"] == control]


def late(rows: Sequence[Row]) -> list[Row]:
    """The rows without the start, which claims of ours go by; the paper's go by whole runs and phases (`claims.py`)."""
    return [row for row in rows if row["window"] == LATE]


def steady_claims(rows: Sequence[Row], way: str) -> list[Claim]:
    """What must hold of CUBIC with Prague: the classic queue's delay and the utilisation."""
    text, classic = WAYS[way].text, of(rows, "cubic")
    target = target_ms(way)
    near = [row for row in classic if row["base_rtt_ms"] <= 20]
    many = [row for row in classic if row["classic"] + row["l4s"] >= 10]
    return [
        between(
            f"{way}-target",
            "ours",
            f"{text}: mean classic queue delay within 15 % of {target:g} ms at RTTs of up to 20 ms",
            medians(near, "delay_ms_mean", where),
            0.85 * target,
            1.15 * target,
            why=WHY_TARGET,
            form=Unit("ms"),
        ),
        between(
            f"{way}-utilisation",
            "ours",
            f"{text}: utilisation at least 0.97 with 10 flows or more",
            medians(many, "utilisation", where),
            0.97,
            1.0,
            why=WHY_UTILISATION,
        ),
    ]


def l4s_delay_claims(rows: Sequence[Row], way: str) -> list[Claim]:
    """The L queue's delay, at the capacities that there are: at low rates a few packets take longer than the step."""
    out = []
    for capacity, limit in ((120, 1.5), (200, 1.5), (1000, 1.0)):
        slow = [row for row in of(rows, "prague") if row["capacity_mbps"] == capacity]
        if slow:
            out.append(
                between(
                    f"{way}-l4s-{capacity}",
                    "ours",
                    f"{WAYS[way].text}: p99 of the L queue's delay below {limit:g} ms at {capacity} Mbit/s",
                    medians(slow, "delay_ms_p99", where),
                    0.0,
                    limit,
                    why=WHY_L4S_DELAY,
                    form=Unit("ms"),
                )
            )
    return out
