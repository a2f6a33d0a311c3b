"""How the experiments are judged: medians over seeds, and claims about them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidegate.experiments import Claim, Row, medians
from tidegate.systems.aqm.lab import WAYS, series

TARGET_MS = 20.0


def between(
    id: str, statement: str, published: str, values: dict[str, float], low: float, high: float, unit: str = ""
) -> Claim:
    """The claim that all of these values, in this unit, are from `low` to `high`. What was measured names those that are not."""
    beyond = {name: value for name, value in values.items() if not low <= value <= high}
    measured = f"{series(list(values.values()))} {unit}".rstrip() if values else "nothing to measure"
    if beyond:
        named = [f"{name} ({value:.3g})" for name, value in beyond.items()]
        more = f" and {len(named) - 8} more of {len(values)}" if len(named) > 8 else ""
        measured += "; beyond: " + ", ".join(named[:8]) + more
    return Claim(id, statement, published, measured, holds=bool(values) and not beyond)


def mean_below(id: str, statement: str, published: str, values: dict[str, float], high: float) -> Claim:
    """The claim that the mean of these values is below `high`."""
    mean = float(np.mean(list(values.values()))) if values else float("nan")
    return Claim(id, statement, published, f"{mean:.3g}", holds=mean < high)


def where(row: Row) -> str:
    """`120 Mbit/s, 10 ms, 1-1`."""
    return f"{row['capacity_mbps']} Mbit/s, {row['base_rtt_ms']:g} ms, {row['classic']}-{row['l4s']}"


def of(rows: Sequence[Row], control: str) -> list[Row]:
    """The rows of one congestion control."""
    return [row for row in rows if row["control"] == control]


def steady_claims(rows: Sequence[Row], way: str, published: str) -> list[Claim]:
    """What must hold of CUBIC with Prague: the classic queue's delay and the utilisation."""
    text, classic = WAYS[way].text, of(rows, "cubic")
    near = [row for row in classic if row["base_rtt_ms"] <= 20]
    many = [row for row in classic if row["classic"] + row["l4s"] >= 10]
    return [
        between(
            f"{way}-target",
            f"{text}: mean classic queue delay within 15 % of 20 ms at round trips of up to 20 ms",
            published,
            medians(near, "delay_ms_mean", where),
            0.85 * TARGET_MS,
            1.15 * TARGET_MS,
            "ms",
        ),
        between(
            f"{way}-utilisation",
            f"{text}: utilisation at least 0.97 with 10 flows or more",
            "no figure",
            medians(many, "utilisation", where),
            0.97,
            1.0,
        ),
    ]


def l4s_delay_claims(rows: Sequence[Row], way: str, published: str) -> list[Claim]:
    """The L queue's delay, at the capacities that there are."""
    out = []
    for capacity, limit in ((120, 1.5), (1000, 1.0)):
        slow = [row for row in of(rows, "prague") if row["capacity_mbps"] == capacity]
        if slow:
            out.append(
                between(
                    f"{way}-l4s-{capacity}",
                    f"{WAYS[way].text}: p99 of the L queue's delay below {limit:g} ms at {capacity} Mbit/s",
                    published,
                    medians(slow, "delay_ms_p99", where),
                    0.0,
                    limit,
                    "ms",
                )
            )
    return out
