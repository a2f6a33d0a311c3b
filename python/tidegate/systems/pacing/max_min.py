"""Weighted max-min fair rates, computed from all flows and links at once: what the switches and hosts are to arrive at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Demand:
    """A flow: the links on its path, its weight, and the most that it sends."""

    links: Sequence[str]
    weight: float = 1.0
    most: float = float("inf")


@dataclass(frozen=True)
class Allocation:
    """Rates of the flows in their order, and how many levels of bottlenecks there are."""

    rates: tuple[float, ...]
    levels: int


def max_min(capacity: Mapping[str, float], flows: Sequence[Demand]) -> Allocation:
    """Progressive filling (D. Bertsekas, R. Gallager, "Data Networks", 1992, section 6.5.2), by weight.

    All flows' rates rise in proportion to their weights until a link is full, or a flow has what it sends; what is limited so stays.
    """
    rates = [0.0] * len(flows)
    rising = {number for number, flow in enumerate(flows) if flow.weight > 0}
    levels = 0
    while rising:
        steps = [
            (left / weights, link)
            for link, room in capacity.items()
            if (weights := sum(flows[number].weight for number in rising if link in flows[number].links)) > 0
            for left in (room - sum(rates[n] for n, flow in enumerate(flows) if link in flow.links),)
        ]
        steps += [((flows[number].most - rates[number]) / flows[number].weight, "") for number in rising]
        step = max(min(step for step, _ in steps), 0.0)
        for number in rising:
            rates[number] += step * flows[number].weight
        full = {link for needed, link in steps if needed <= step * (1 + 1e-9) + 1e-12 and link}
        rising -= {number for number in rising if full.intersection(flows[number].links)}
        rising -= {number for number in rising if rates[number] >= flows[number].most * (1 - 1e-9)}
        levels += 1
    return Allocation(tuple(rates), levels)
