"""Tables on the terminal: what has no room beside the rest is below it, and nothing is cut off."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

BESIDE = 3
"""Characters of a column that are not its text: a line and two blanks."""
PIPE = 240
"""Characters of a line in a file or a pipe, which has no width to fit into; more if the columns need them."""


def show(
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[int] = (),
    keys: int = 0,
    pipe: int = PIPE,
) -> None:
    """Print a table: the columns of `right` right-justified. Texts break between words where they have to.

    Where the terminal has no room for all columns there is a table for as many as fit, one below the other, each with the first `keys`
    columns, or as many of them as half a line has room for.
    """
    by_column = list(zip(names, *rows, strict=True))
    most = [max(map(_longest_line, cells)) for cells in by_column]
    least = [max(map(_longest_word, cells)) for cells in by_column]
    width = None if sys.stdout.isatty() else max(pipe, _across(least))
    console = Console(markup=False, emoji=False, width=width)
    for block in _blocks(least, keys, console.width):
        table = Table()
        widths = _widths([least[at] for at in block], [most[at] for at in block], console.width)
        for at, wide in zip(block, widths, strict=True):
            table.add_column(
                names[at], justify="right" if at in right else "left", width=wide, overflow="fold"
            )
        for row in rows:
            table.add_row(*(row[at] for at in block))
        console.print(table)


def _longest_line(text: str) -> int:
    return max(map(cell_len, text.splitlines()), default=0)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _across(widths: Sequence[int]) -> int:
    return sum(widths) + BESIDE * len(widths) + 1


def _blocks(least: Sequence[int], keys: int, width: int) -> list[list[int]]:
    """The columns of each table."""
    if _across(least) > width:
        while keys > 0 and _across(least[:keys]) > width / 2:
            keys -= 1
    first = list(range(keys))
    blocks, block = [], list(first)
    for at in range(keys, len(least)):
        if len(block) > keys and _across([least[one] for one in [*block, at]]) > width:
            blocks.append(block)
            block = list(first)
        block.append(at)
    return [*blocks, block]


def _widths(least: list[int], most: list[int], width: int) -> list[int]:
    """Of each column; what is left over goes to the narrowest of those that would break their text."""
    widths = list(least)
    for _ in range(width - _across(least)):
        wanting = [at for at in range(len(widths)) if widths[at] < most[at]]
        if not wanting:
            break
        widths[min(wanting, key=widths.__getitem__)] += 1
    # A single one that is wider than the terminal breaks within words.
    while _across(widths) > width and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths
