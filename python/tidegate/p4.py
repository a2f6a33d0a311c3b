"""P4 programs in Python: compile one, run packets through it, read and write what it remembers.

    >>> from tidegate import p4
    >>> switch = p4.compile("router.p4").pipeline()
    >>> switch.table_add("routes", ["10.0.0.0/8"], "next_hop", [2, "02:00:00:00:00:01", "02:00:00:00:00:02"])
    0
    >>> switch.process(now=0, port=1, packet=frame)
    [(2, b'...')]

Time is in picoseconds and is yours to say. Everything that is refused raises `TidegateError`, with nothing changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tidegate import _core

Value = int | str
"""A number, or what the reference switch's command line takes: `10.0.0.1`, `10.0.0.0/8`, `0x0a&&&0xff`, `1->9`."""
Words = npt.NDArray[np.uint64]


class Pipeline:
    """One switch that runs a program. Use it from the thread that made it."""

    def __init__(self, core: _core.Pipeline) -> None:
        self._core = core
        self._now = 0

    def process(self, now: int, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Run a packet that comes in by `port` at `now` (picoseconds); return ports and packets that leave."""
        self._now = now
        return self._core.process(now, port, packet)

    def trace(self, now: int, port: int, packet: bytes) -> tuple[list[tuple[int, bytes]], str]:
        """As `process`, and every step of the packet as text."""
        self._now = now
        return self._core.trace(now, port, packet)

    def command(self, line: str) -> str:
        """Run one line of the reference switch's command language; return its answer."""
        return self._core.command(self._now, line)

    def table_add(
        self,
        table: str,
        match: Iterable[Value],
        action: str,
        values: Iterable[Value] = (),
        priority: int | None = None,
    ) -> int:
        """Add an entry and return its handle. The smaller priority wins."""
        words = ["table_add", table, action, *match, "=>", *values]
        if priority is not None:
            words.append(priority)
        return int(self.command(_line(words)).rsplit(" ", 1)[1])

    def table_modify(self, table: str, handle: int, action: str, values: Iterable[Value] = ()) -> None:
        """Change what an entry does."""
        self.command(_line(["table_modify", table, action, handle, *values]))

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        self.command(_line(["table_delete", table, handle]))

    def table_set_default(self, table: str, action: str, values: Iterable[Value] = ()) -> None:
        """Set what happens on a miss."""
        self.command(_line(["table_set_default", table, action, *values]))

    def register_read(self, name: str) -> Words:
        """Read all cells: shape (cells,), or (cells, words) with the least significant word first if wider than 64 bits."""
        data, words = self._core.register_read(name)
        cells: Words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
        return cells if words == 1 else cells.reshape(-1, words)

    def register_write(self, name: str, values: npt.ArrayLike, start: int = 0) -> None:
        """Write cells from `start` on, in the shape in which `register_read` gives them."""
        array = np.asarray(values)
        if array.size and (array.dtype.kind not in "iu" or (array < 0).any()):
            raise _core.TidegateError("register cells are whole numbers that are not negative")
        self._core.register_write(name, start, array.astype("<u8").tobytes())

    def counter_read(self, name: str) -> Words:
        """Read all cells of a counter: shape (cells, 2), packets and bytes."""
        return np.frombuffer(self._core.counter_read(name), dtype="<u8").astype(np.uint64).reshape(-1, 2)

    @property
    def drops(self) -> dict[str, int]:
        """Packets dropped so far, by reason."""
        return dict(self._core.drops())


class Program:
    """A compiled program."""

    def __init__(self, core: _core.Program) -> None:
        self.core = core

    @property
    def p4info(self) -> str:
        """P4Info in protobuf text form."""
        return self.core.p4info()

    @property
    def summary(self) -> dict[str, Any]:
        """Headers, parser, tables and so on, as `tidegate check --json` has them."""
        summary: dict[str, Any] = json.loads(self.core.summary())
        return summary

    def pipeline(self, engine: Literal["interp", "jit"] = "jit", seed: int = 0) -> Pipeline:
        """Make a switch that runs it. `seed` is for the program's `random`."""
        return Pipeline(_core.Pipeline(self.core, engine, seed))


def compile(
    path: str | PathLike[str], *, includes: Sequence[str] = (), defines: Sequence[str] = ()
) -> Program:
    """Compile the program in a file. Raises `TidegateError` with all of the compiler's messages."""
    return Program(_core.Program(path, list(includes), list(defines)))


def _line(words: Iterable[Value]) -> str:
    parts = [str(word) for word in words]
    for part in parts:
        if not part or "#" in part or any(c.isspace() for c in part):
            raise _core.TidegateError(f"{part!r} is not a name or a value")
    return " ".join(parts)
