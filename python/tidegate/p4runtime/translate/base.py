"""What all translations have: the program's objects, and a way to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tidegate._core import TidegateError
from tidegate.control.operations import Operation
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.handles import Handles

INSERT, MODIFY, DELETE = 1, 2, 3
"""`p4.Update.Type`."""

Act = Callable[[Operation], Any]
"""Does an operation; gives its answer."""
Look = Callable[..., list[Any]]
"""Reads entities like those that are given; no entities if there is none of their key."""


@dataclass(frozen=True)
class Part:
    """Entities of an answer: what the engine has said, and how messages are made of it, which takes longer."""

    count: int
    make: Callable[[], Iterable[Any]]
    """`p4.Entity` of each."""
    size: int = 0
    """Bytes of it, if they are many: of cells, of what groups and sets have, of values, metadata and wide entries."""


INSIDE = 64
"""Bytes, about, of a member of a group, an action of a set, a copy of a packet, a field of a member of a value set."""


MEMBERS, GROUPS = 1024, 16
"""Members of an action profile, and groups or sessions, that are read from the engine at a time: packets wait meanwhile."""


def pages(ask: Callable[[int, int], Sequence[Any]], size: int) -> Iterator[Sequence[Any]]:
    """Rows that begin with their number, some at a time: `ask` gives those from a number on, in order, as many as it is told.

    Of large ones it gives fewer.
    """
    start, rows = 0, ask(0, size)
    while rows:
        yield rows
        start = rows[-1][0] + 1
        rows = ask(start, size) if start < 1 << 32 else ()


def some(rows: Sequence[Any], start: int | None, count: int | None) -> Sequence[Any]:
    """Of rows that begin with their number those from one on, in order, as many as are asked for."""
    found = sorted((row for row in rows if row[0] >= (start or 0)), key=lambda row: row[0])
    return found[:count]


def nothing() -> None:
    """The answer of an operation that has none."""


@dataclass(frozen=True)
class Updates:
    """What an operation is as updates: kinds and entities."""

    updates: Sequence[tuple[int, Any]]
    done: Callable[[], Any] = nothing
    """To be called when all updates are done; gives the operation's answer."""
    no_entry: TidegateError | None = None
    """The error if the server has no entry with a key that was found by its handle: a server knows no handles."""


class Translation:
    """Of one kind of entities. A server has `act` alone, a client has all."""

    def __init__(
        self, schema: Schema, act: Act, look: Look | None = None, handles: Handles | None = None
    ) -> None:
        self._schema = schema
        self._act = act
        self._serves = look is None
        self._look: Look = look or _no_client
        self._handles = handles or Handles()


def _no_client(*_: Any) -> list[Any]:
    raise AssertionError("a server does not read over P4Runtime")
