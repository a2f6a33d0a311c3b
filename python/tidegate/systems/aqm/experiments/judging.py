"""Claims that several experiments share, and their sources."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.claims import Claim, Of, Row, Unit, between, medians
from tidegate.systems.aqm.experiments.testbed import WAYS

TARGET_MS = 20.0
WHY_TARGET = "one or two flows of each have not converged within the judged time: while a CUBIC window grows, the queue is empty for a part of it"
WHY_UTILISATION = "flows with long RTTs still grow their windows in the judged time"
WHY_L4S_DELAY = (
    "where many Prague flows share a low rate, two packets in flight per flow exceed the BDP; at 1 Gbit/s the L queue stays at its "
    "step of 1 ms"
)


def where(row: Row) -> str:
    """`120 Mbit/s, 10 ms, 1-1`."""
    return f"{row['capacity_mbps']} Mbit/s, {row['base_rtt_ms']:g} ms, {row['classic']}-{row['l4s']}"


def of(rows: Sequence[Row], control: str) -> list[Row]:
    """The rows of one congestion control."""
    return [row for row in rows if row["control"] == control]


def of_paper(way: str, published: str) -> tuple[Of, str | None]:
    """Whose a claim about a way to manage the queue is, and what was published: the paper has PI2 and DualPI2 alone."""
    return ("paper", published) if way in ("pi2", "dualpi2") else ("ours", None)


def steady_claims(rows: Sequence[Row], way: str, published: str) -> list[Claim]:
    """What must hold of CUBIC with Prague: the classic queue's delay and the utilisation."""
    text, classic = WAYS[way].text, of(rows, "cubic")
    near = [row for row in classic if row["base_rtt_ms"] <= 20]
    many = [row for row in classic if row["classic"] + row["l4s"] >= 10]
    whose, said = of_paper(way, published)
    return [
        between(
            f"{way}-target",
            whose,
            f"{text}: mean classic queue delay within 15 % of 20 ms at RTTs of up to 20 ms",
            medians(near, "delay_ms_mean", where),
            0.85 * TARGET_MS,
            1.15 * TARGET_MS,
            published=said,
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


def l4s_delay_claims(rows: Sequence[Row], way: str, published: str | None) -> list[Claim]:
    """The L queue's delay, at the capacities that there are; `published` is for 1 Gbit/s, 1.5 ms at 120 Mbit/s are ours."""
    out = []
    for capacity, limit in ((120, 1.5), (1000, 1.0)):
        slow = [row for row in of(rows, "prague") if row["capacity_mbps"] == capacity]
        whose, said = ("ours", None) if capacity == 120 or published is None else of_paper(way, published)
        if slow:
            out.append(
                between(
                    f"{way}-l4s-{capacity}",
                    whose,
                    f"{WAYS[way].text}: p99 of the L queue's delay below {limit:g} ms at {capacity} Mbit/s",
                    medians(slow, "delay_ms_p99", where),
                    0.0,
                    limit,
                    published=said,
                    why=WHY_L4S_DELAY,
                    form=Unit("ms"),
                )
            )
    return out
