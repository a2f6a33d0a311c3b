"""Captures through a program and its controllers, by the captures' timestamps.

    >>> from tidegate.replay import replay
    >>> done = replay("learning_switch.p4", {1: "left.pcap", 2: "right.pcap"}, "out", controllers=[Learner()])
    >>> done.notes

The controllers are those of the simulator and of `tidegate switch`. Time is virtual: 0 is the first packet, a tick is due every period
from then on, and the last is at the last packet's time at the latest. There are no queues: a packet leaves at its arrival time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from tidegate import _core, p4, units
from tidegate._core import TidegateError
from tidegate.control import Controller
from tidegate.control.controller import LIVE_CLOCK, demand_clock
from tidegate.control.fixed import WithoutFixedParts
from tidegate.control.readings import Subject
from tidegate.control.runner import Managed, Runner, failure
from tidegate.files import replacing

if TYPE_CHECKING:
    import polars as pl

    from tidegate.results import Note

NOTES = "notes.parquet"
NOTE = ("time_s", "switch", "quantity", "value")
LAST = 2**64 - 1
"""Picoseconds: what a replay can last at most, 213 days."""


@dataclass(frozen=True)
class Replayed:
    """What came of a replay."""

    answer: dict[str, Any]
    """Packets in and out by port, drops by reason, and so on, as `tidegate replay --json` has them."""
    noted: list[Note]

    @property
    def notes(self) -> pl.DataFrame:
        """What controllers noted (`SwitchApi.note`): time_s, switch, quantity, value."""
        from tidegate.results import notes_table

        return notes_table(self.noted)


class ReplaySwitch(WithoutFixedParts):
    """A switch whose packets come from captures, as controllers see it.

    It has what the program has, and `packet_out` if it has a `cpu_port`; the fixed parts of a switch raise `Unsupported`.
    """

    reason = "replays captures; run the controller in the simulator or by `tidegate switch` for"

    def __init__(
        self,
        name: str,
        session: _core.Replay,
        ports: Sequence[str],
        note: Callable[[int, str, str, float], None],
    ) -> None:
        super().__init__(name, session.control, ports, note)
        self._session = session

    def packet_out(self, packet: bytes) -> None:
        """Send a packet into the switch by the controller's port. It leaves at once."""
        if not isinstance(packet, bytes):
            raise TidegateError(f"a packet is bytes, not a {type(packet).__name__}")
        self._session.packet_out(packet)


class _CaptureClock:
    """The captures' time."""

    def __init__(self, session: _core.Replay, progress: Callable[[int], None] | None) -> None:
        self._session = session
        self._progress = progress
        self.now = session.control.now

    def wait(self, until: int) -> int:
        """Run packets until a time, the first with a message for a controller, or the captures' end."""
        return self._session.advance(until, True, self._progress)


class _Messages:
    """What the program has for controllers."""

    def __init__(self, session: _core.Replay) -> None:
        self.take_digests = session.control.take_digests
        self.take_packet_in = session.take_packet_in


def replay(
    program: p4.Program | str | PathLike[str],
    inputs: Mapping[int, str | PathLike[str]] | Iterable[tuple[int, str | PathLike[str]]],
    out: str | PathLike[str],
    *,
    commands: str | PathLike[str] | None = None,
    controllers: Sequence[Controller] = (),
    cpu_port: int | None = None,
    name: str = "switch",
    ports: Sequence[str] | None = None,
    engine: Literal["auto", "interp", "jit"] = "auto",
    trace: int = 0,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Replayed:
    """Replay captures (pcap, pcapng): `inputs` has the file of each port. What leaves goes to `out/portN.pcap`.

    `commands` is a file as `simple_switch_CLI` takes it. `controllers` are started before the first packet; what they note is in
    `Replayed.notes` and, if there are any, in `out/notes.parquet`. Packets for `cpu_port` go to them. `ports` are the names of what is
    at the other end of each port, by number; the names of the captures are the default. `trace` is a number of packets whose steps
    are recorded. `progress` gets the number of packets now and then.

    An error in a controller ends the replay with a `TidegateError` that says where; no file is written then.
    """
    for controller in controllers:
        demand_clock(controller, LIVE_CLOCK, name, "run it in the simulator")
    file = Path(out) / NOTES
    if controllers and file.is_dir():
        raise TidegateError(f"{file}: cannot be written: it is a directory; move it, or give another folder")
    compiled = program if isinstance(program, p4.Program) else p4.compile(program)
    pairs = inputs.items() if isinstance(inputs, Mapping) else inputs
    files = [(port, Path(file)) for port, file in pairs]
    if cpu_port is not None:
        units.below(cpu_port, 0, 511, "cpu_port, the controller's port")
    units.below(trace, 0, 2**64, "a number of packets (trace)")
    session = _core.Replay(compiled.core, files, out, commands, engine, trace, units.seed(seed), cpu_port)
    notes: list[Note] = []
    try:
        if controllers:
            names = {port: file.stem for port, file in files}
            known = [names.get(port, "") for port in range(max(names) + 1)] if ports is None else ports
            switch = ReplaySwitch(name, session, known, lambda *note: notes.append(note))
            clock = _CaptureClock(session, progress)
            subject = Subject(switch, session.control, lambda: compiled)
            runner = Runner([Managed(switch, _Messages(session), controllers, subject)], clock, _ends)
            runner.start()
            runner.run(LAST, ended=lambda: session.done)
        else:
            session.advance(None, False, progress)
        # The captures get their names only if the notes can be written.
        if controllers:
            with replacing(file) as to:
                Replayed({}, notes).notes.write_parquet(to)
                done = Replayed(json.loads(session.finish()), notes)
        else:
            done = Replayed(json.loads(session.finish()), notes)
    except BaseException:
        session.abandon()
        raise
    done.answer["controller_notes"] = [
        dict(zip(NOTE, (at / units.PS_PER_S, *rest), strict=True)) for at, *rest in notes
    ]
    if controllers:
        done.answer["notes_file"] = str(file)
    elif file.exists():
        done.answer["notes"].append(f"{file}: is from an earlier run; this one had no controller")
    return done


def _ends(controller: Controller, method: str, error: BaseException) -> NoReturn:
    raise failure(controller, method, error)
