"""Runs of `meter.fair` beside each other, as a table in Markdown: `python -m tidegate.systems.meter.side_by_side runs/live runs/sim`.

Each cell has the median over the repeats, and in brackets the least and the largest value where they differ: the worst ten seconds, from
the tenth on, of the worst flow as a part of its max-min share, and retransmissions of all TCP flows after 5 s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments.folder import read_record
from tidegate.systems.meter.demo import Key, results_of
from tidegate.systems.meter.experiments.contenders import CONTENDERS
from tidegate.systems.meter.experiments.fair_sharing import CELLS

NAME = "meter.fair"
Found = dict[Key, list[tuple[float, int]]]
"""By cell and contender, what `results_of` has of each repeat."""


def repeats(rows: Sequence[Row]) -> Found:
    """The results of each seed."""
    found: Found = {}
    for seed in sorted({row["seed"] for row in rows}):
        for key, result in results_of([row for row in rows if row["seed"] == seed]).items():
            found.setdefault(key, []).append(result)
    return found


def spread(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """`0.95 (0.90 to 0.97)`."""
    middle, least, most = shown(median(values)), shown(min(values)), shown(max(values))
    return middle if least == most else f"{middle} ({least} to {most})"


def table(sides: dict[str, Found]) -> list[str]:
    """Lines of the table, of the cells and contenders that all sides have, in the order of the first one."""
    first, *others = sides.values()
    heads = [f"{what}, {name}" for what in ("worst 10 s", "retransmissions") for name in sides]
    lines = ["| flows | meter | " + " | ".join(heads) + " |", "|---" * (2 + len(heads)) + "|"]
    for key in first:
        if not all(key in other for other in others):
            continue
        cell, contender = key
        results = [side[key] for side in sides.values()]
        columns = [spread([share for share, _ in result], "{:.2f}".format) for result in results]
        columns += [spread([count for _, count in result], "{:.0f}".format) for result in results]
        lines.append(f"| {CELLS[cell].text} | {CONTENDERS[contender].text} | {' | '.join(columns)} |")
    if len(lines) == 2:
        raise TidegateError("the runs have no cell and contender in common")
    return lines


def of_folder(folder: Path) -> Found:
    """The results of a run's folder."""
    record = read_record(folder)
    if record["experiment"] != NAME:
        raise TidegateError(f"{folder} holds a run of {record['experiment']}, not of {NAME}")
    return repeats(record["rows"])


def main(words: Sequence[str]) -> None:
    """Print the table of some folders; the head has their last names."""
    if not words:
        raise TidegateError(f"give folders of runs of {NAME}")
    folders = [Path(word) for word in words]
    names = [folder.name for folder in folders]
    if len(set(names)) < len(names):
        raise TidegateError(
            f"the folders' last names are the heads: {', '.join(names)} are not all different"
        )
    print("\n".join(table({folder.name: of_folder(folder) for folder in folders})))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except TidegateError as error:
        sys.exit(f"tidegate: error: {error}")
