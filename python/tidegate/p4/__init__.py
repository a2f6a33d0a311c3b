"""P4 programs in Python: compile one, run packets through it, read and write its state.

    >>> import tidegate
    >>> from tidegate import p4
    >>> switch = p4.compile(tidegate.program("policer")).pipeline()
    >>> switch.register_write("rate", [100])
    >>> switch.process(now=0, port=0, packet=bytes(60))
    []
    >>> switch.register_write("burst", [8000])
    >>> switch.process(now=1_000_000_000, port=0, packet=bytes(60))
    [(1, b'...')]

The caller gives the time, in picoseconds. A refused call raises `TidegateError` and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from tidegate import INCLUDE, _core, units
from tidegate._core import TidegateError
from tidegate.control import Digest, PipelineApi
from tidegate.control.operations import DigestsTake
from tidegate.suggest import did_you_mean


class Pipeline(PipelineApi):
    """One switch that runs a program, without queues.

    >>> switch = compile(tidegate.program("policer")).pipeline()
    >>> [port for port, packet in switch.process(now=0, port=2, packet=bytes(60))]
    [3]
    """

    def __init__(self, core: _core.Pipeline) -> None:
        self.engine = core
        """The core pipeline, which processes packets."""
        self._core = _core.SwitchControl.of_pipeline(core)

    def process(self, now: int, port: int, packet: bytes) -> list[tuple[int, bytes]]:
        """Process a packet that arrives by `port` at `now` (picoseconds); return the ports and packets that leave."""
        # Per-packet call: arguments are checked only after an error.
        try:
            return self.engine.process(now, port, packet)
        except (TypeError, OverflowError):
            _demand_arrival(now, port, packet)
            raise

    def trace(self, now: int, port: int, packet: bytes) -> tuple[list[tuple[int, bytes]], str]:
        """Process a packet as `process` does, and return each step as text."""
        _demand_arrival(now, port, packet)
        return self.engine.trace(now, port, packet)

    @property
    def now(self) -> int:
        """The time of the last packet or `advance`, in picoseconds."""
        return self._core.now()

    def advance(self, now: int) -> None:
        """Advance the time without a packet."""
        self.engine.advance(units.below(now, 0, 2**64, "a time in picoseconds"))

    def digests(self) -> list[Digest]:
        """Messages that the program has sent with `digest` since this was last called."""
        found: list[Digest] = []
        # The engine gives some at a time.
        while more := self.act(DigestsTake()):
            found += [Digest(name, dict(fields)) for name, fields in more]
        return found


def _demand_arrival(now: int, port: int, packet: bytes) -> None:
    """Refuse an invalid time, port or packet."""
    if not isinstance(packet, bytes):
        raise TidegateError(f"a packet is bytes, not a {type(packet).__name__}")
    units.below(now, 0, 2**64, "a time in picoseconds")
    units.below(port, 0, 512, "a port's number")


class Program:
    """A compiled program.

    >>> program = compile(tidegate.program("meter"))
    >>> program.summary["architecture"], program.summary["parser"]["name"]
    ('v1model', 'MeterParser')
    """

    def __init__(self, core: _core.Program) -> None:
        self.core = core

    def __repr__(self) -> str:
        summary = self.summary
        kinds = {kind: len(found) for kind, found in summary.items() if isinstance(found, list)}
        counts = (f"{kind} {kinds.get(kind, 0)}" for kind in ("tables", "registers", "counters", "meters"))
        return f"<{summary['architecture']} program: {', '.join(counts)}>"

    @classmethod
    def from_text(
        cls, text: str, name: str = "program.p4", *, limits: Mapping[str, int] | None = None
    ) -> Program:
        """Compile a program from text. It can include only `core.p4` and its architecture's declarations."""
        return cls(_core.Program.from_text(name, text, _limits(limits)))

    @property
    def p4info(self) -> str:
        """P4Info in protobuf text form."""
        return self.core.p4info()

    @property
    def summary(self) -> dict[str, Any]:
        """Headers, parser, tables and so on, as `tidegate check --json` has them."""
        summary: dict[str, Any] = json.loads(self.core.summary())
        return summary

    def pipeline(self, engine: Literal["auto", "interp", "jit"] = "jit", seed: int = 0) -> Pipeline:
        """Create a switch that runs it. `seed` is for the program's `random`."""
        return Pipeline(_core.Pipeline(self.core, engine, units.seed(seed)))


def compile(
    path: str | PathLike[str],
    *,
    includes: Sequence[str] = (),
    defines: Sequence[str] = (),
    limits: Mapping[str, int] | None = None,
) -> Program:
    """Compile the program in a file. Raises `TidegateError` with all of the compiler's messages.

    Files are looked for beside the program, in `includes`, and last in `tidegate.INCLUDE`, which has `tidegate/p4/headers.p4` and the other
    files that systems share. `limits` replaces default limits of the compiler by name, `limits={"state_bytes": 4 << 30}`;
    docs/security.md lists them.
    """
    for name, given in (("includes", includes), ("defines", defines)):
        if isinstance(given, str):
            raise TidegateError(f"{name} is a list: write {name}=[{given!r}]")
    return Program(_core.Program(path, [*includes, INCLUDE], list(defines), _limits(limits)))


def _limits(given: Mapping[str, int] | None) -> dict[str, int]:
    return {name: units.below(value, 0, 2**64, f"the limit {name}") for name, value in (given or {}).items()}


def parse_limits(given: Sequence[str]) -> dict[str, int]:
    """Limits of the compiler by name, from `NAME=VALUE` texts. Raises `TidegateError`.

    >>> parse_limits(["state_bytes=4294967296"])
    {'state_bytes': 4294967296}
    """
    known = dict(_core.default_limits())
    found: dict[str, int] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if name not in known:
            raise TidegateError(
                f"there is no limit {name!r}; {did_you_mean(name, known)}the names are {', '.join(known)}"
            )
        if not equals:
            raise TidegateError(f"{text!r} is not NAME=VALUE; give a number, as {name}={known[name]}")
        if not (value.isascii() and value.isdecimal() and len(value) <= 20 and int(value) < 2**64):
            raise TidegateError(f"{text!r}: give a whole number from 0 to {2**64 - 1}")
        if name in found:
            raise TidegateError(f"{name} is given twice")
        found[name] = int(value)
    return found
