"""What all translations have: the program's objects, and a way to ask."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    """Bytes of it, if they are many."""


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
