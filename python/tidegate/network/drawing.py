"""A network as a picture (SVG) for notebooks: its core in layers from left to right, and hosts at its ends.

Colours follow the page: strokes and text are `currentColor`, so that a dark page stays legible.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from tidegate import units

if TYPE_CHECKING:
    from tidegate.network.links import Link
    from tidegate.network.nodes import Node

MOST_NODES = 80
"""Networks with more are not drawn."""
WIDE, HIGH, MARGIN = 130, 34, 50
"""Pixels between columns, between rows, and around."""
LABELS = 24
"""With more links, their rates are only shown by the pointer."""
SHAPES = {
    "host": '<circle r="7" fill="#56b4e9" stroke="currentColor"/>',
    "router": '<rect x="-11" y="-9" width="22" height="18" rx="4" fill="#e69f00" stroke="currentColor"/>',
    "switch": '<rect x="-11" y="-9" width="22" height="18" fill="#009e73" stroke="currentColor"/>',
}

Place = tuple[float, float]
"""Column and row."""


def svg(nodes: Sequence[Node], links: Sequence[Link]) -> str:
    """The picture; empty for a network without nodes, or with too many."""
    if not 0 < len(nodes) <= MOST_NODES:
        return ""
    places = layout(nodes, links)
    left, top = (min(place[axis] for place in places.values()) for axis in (0, 1))
    at = {
        number: (MARGIN + (x - left) * WIDE, MARGIN / 2 + (y - top) * HIGH)
        for number, (x, y) in places.items()
    }
    width, height = (max(place[axis] for place in at.values()) + MARGIN for axis in (0, 1))
    parts = [_line(link, at, labelled=len(links) <= LABELS) for link in links]
    parts += [_node(node, *at[node.number]) for node in nodes]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'style="max-width:100%" role="img" aria-label="network of {len(nodes)} nodes" font-family="sans-serif" '
        f'font-size="11">{"".join(parts)}</svg>'
    )


def _line(link: Link, at: Mapping[int, Place], *, labelled: bool) -> str:
    (x1, y1), (x2, y2) = at[link.a.number], at[link.b.number]
    rate, delay = units.show_rate(link.forward.rate), units.show_time(link.forward.delay)
    text = (
        f'<text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2 - 4:.0f}" text-anchor="middle" fill="currentColor" '
        f'font-size="9">{escape(rate)}</text>'
    )
    return (
        f'<g><title>{escape(link.name)}: {escape(rate)}, {escape(delay)}</title><line x1="{x1:.0f}" y1="{y1:.0f}" '
        f'x2="{x2:.0f}" y2="{y2:.0f}" stroke="currentColor" stroke-opacity="0.6" stroke-width="2"/>'
        f"{text if labelled else ''}</g>"
    )


def _node(node: Node, x: float, y: float) -> str:
    return (
        f'<g transform="translate({x:.0f} {y:.0f})"><title>{escape(node.kind)} {escape(node.name)}</title>'
        f'{SHAPES.get(node.kind, SHAPES["router"])}<text y="20" text-anchor="middle" fill="currentColor">'
        f"{escape(node.name)}</text></g>"
    )


def layout(nodes: Sequence[Node], links: Sequence[Link]) -> dict[int, Place]:
    """Column and row of each node: switches and routers by their distance from one end, hosts outside of them."""
    beside: dict[int, list[int]] = {node.number: [] for node in nodes}
    for link in links:
        beside[link.a.number].append(link.b.number)
        beside[link.b.number].append(link.a.number)
    hosts = {node.number for node in nodes if node.kind == "host"}
    core = [node.number for node in nodes if node.number not in hosts] or [node.number for node in nodes]
    places = _layers(core, beside)
    last = max(x for x, _ in places.values())
    columns: dict[float, list[tuple[float, int]]] = {}
    for number in sorted(hosts - places.keys()):
        around = [places[other] for other in beside[number] if other in places]
        x, y = around[0] if around else (0.0, 0.0)
        if last == 0:
            # One switch: half of the hosts on each side.
            side = -1.0 if len(columns.get(-1.0, ())) <= len(columns.get(1.0, ())) else 1.0
        else:
            side = -1.0 if x == 0 else last + 1 if x == last else x + 0.5
        columns.setdefault(side, []).append((y, number))
    low = max(y for _, y in places.values())
    for x, column in columns.items():
        # In the middle of the picture, those of inner switches below it.
        top = low + 1.5 if 0 < x < last else (low - (len(column) - 1) * 1.3) / 2
        for row, (_, number) in enumerate(sorted(column)):
            places[number] = (x, top + row * 1.3)
    return places


def _layers(core: Sequence[int], beside: Mapping[int, Sequence[int]]) -> dict[int, Place]:
    """Breadth first from one end; in each layer those that have a neighbour far up come first."""
    places: dict[int, Place] = {}
    known = set(core)
    for first in core:
        if first in places:
            continue
        # The farthest from any node is an end; the one that was made first is on the left.
        end = list(_distances(first, beside, known))[-1]
        other = list(_distances(end, beside, known))[-1]
        distances = _distances(min(end, other), beside, known)
        below = max((y for _, y in places.values()), default=-1.6) + 1.6
        layers: dict[int, list[int]] = {}
        for number, distance in distances.items():
            layers.setdefault(distance, []).append(number)
        tallest = max(len(layer) for layer in layers.values())
        for distance, layer in layers.items():

            def middle(number: int, distance: int = distance, distances: dict[int, int] = distances) -> float:
                before = [places[n][1] for n in beside[number] if distances.get(n) == distance - 1]
                return sum(before) / len(before) if before else 0.0

            top = below + (tallest - len(layer)) * 0.8
            for row, number in enumerate(sorted(layer, key=middle)):
                places[number] = (float(distance), top + row * 1.6)
    return places


def _distances(first: int, beside: Mapping[int, Sequence[int]], known: set[int]) -> dict[int, int]:
    """Of all that can be reached in the core, nearest first."""
    found, waiting = {first: 0}, deque([first])
    while waiting:
        number = waiting.popleft()
        for other in beside[number]:
            if other in known and other not in found:
                found[other] = found[number] + 1
                waiting.append(other)
    return found
