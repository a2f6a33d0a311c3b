"""The table of flows that `tidegate monitor` prints."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

ENDS = ("", "from", "to")
LEAST_FIRST = (
    "samples",
    "p95",
    "packets",
    "at both",
    "bytes",
    "max ms",
    "resent",
    "Mbit/s",
    "p99",
    "lost",
    "p50",
    "Mbit/s now",
    "p99 ms",
    "queue p50",
    "RTT min",
)
"""Columns in the order in which they are left out where a terminal has no room for them."""
GAP = 2
UNLIMITED = 10_000
"""Width of a table in a file or a pipe."""


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> tuple[Table, list[str]]:
    """The table, and the columns that `width` characters have no room for."""
    from rich.table import Table

    widths = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    kept = list(range(len(columns)))
    for least in LEAST_FIRST:
        if sum(widths[place] + GAP for place in kept) - GAP <= width:
            break
        kept = [place for place in kept if columns[place] != least]
    found = Table(box=None, pad_edge=False)
    for place in kept:
        found.add_column(columns[place], justify="left" if columns[place] in ENDS else "right", no_wrap=True)
    for row in rows:
        found.add_row(*(row[place] for place in kept))
    return found, [name for place, name in enumerate(columns) if place not in kept]


def show(columns: Sequence[str], rows: Sequence[Sequence[str]], summary: str) -> None:
    """Print the table, what is said below it, and what there was no room for."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else UNLIMITED
    console = Console(highlight=False, markup=False, width=width)
    found, left_out = table(columns, rows, console.width)
    console.print(found)
    print(summary)
    if left_out:
        print(f"without {', '.join(left_out)}: the terminal has {console.width} columns")
