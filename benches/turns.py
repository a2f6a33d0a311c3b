"""What a page costs something that runs: kinds of it in turns, and ratios to that without a page.

A ratio is that of the runs of one round, and the median of the rounds is what counts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

KINDS = ("alone", "page", "reader")
"""Without a page, with a page that nobody looks at, and with a reader that takes all it is sent."""
Runs = dict[str, list[dict[str, float]]]


def in_turns(rounds: int, measure: Callable[[str], dict[str, float]]) -> Runs:
    """What each kind's runs gave; each is the first in a third of the rounds."""
    runs: Runs = {kind: [] for kind in KINDS}
    for number in range(rounds):
        for kind in KINDS[number % 3 :] + KINDS[: number % 3]:
            runs[kind].append(measure(kind))
    return runs


def print_ratios(runs: Runs, what: str, name: str, holds: Callable[[float], bool]) -> None:
    """A quantity without a page, and its ratios with one, by whose median the goal holds or not."""
    alone = [one[what] for one in runs["alone"]]
    print(f"alone   {statistics.median(alone):.3f} {name} ({min(alone):.3f} to {max(alone):.3f})")
    for kind in KINDS[1:]:
        ratios = [one[what] / base for one, base in zip(runs[kind], alone, strict=True)]
        median = statistics.median(ratios)
        each = " ".join(f"{ratio:.3f}" for ratio in ratios)
        print(f"{kind:7} {name:22} {median:.3f} ({'holds' if holds(median) else 'DOES NOT HOLD'}; {each})")
