"""The one runner of controllers, in all backends: it starts them, ticks them, hands them what switches send, stops and restarts
them.

    runner = Runner([Managed(api, core, [controller])], clock)
    runner.start()
    runner.run(until)

The clock says what time is. In virtual time nothing happens while a controller works, so no tick is ever late. By the real
clock ticks that a slow controller has missed are left out: the next one is the first that is still to come.

Order at one time: packets, then messages (switch by switch; digests before packets; each message to all of the switch's
controllers in turn), then actions, then ticks, each in the order in which they were planned and with the messages that it causes;
then recordings.

All of it happens on the thread that calls `run`.
"""

from __future__ import annotations

import heapq
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol

from tidegate._core import TidegateError
from tidegate.control import quantities
from tidegate.control.api import Digest, PacketIn, SwitchApi
from tidegate.control.controller import Controller, period_of
from tidegate.control.readings import Subject

FOREVER = 2**63
"""Picoseconds: a run that something else ends."""

DigestFields = tuple[str, list[tuple[str, int]]]
"""A digest as switches give it: its name, and its fields by name."""
Packet = tuple[int, bytes, int]
"""A packet for the controller as switches give it: the fields of `PacketIn`."""


class Clock(Protocol):
    """What time it is, in picoseconds."""

    def now(self) -> int:
        """The time."""
        ...

    def wait(self, until: int) -> int:
        """Go on to a time, or less far if a switch has a message or it takes long; give the time reached."""
        ...


class Source(Protocol):
    """Where a switch's messages for its controllers come from; each is given once."""

    def take_digests(self) -> list[DigestFields]:
        """All digests that are there."""
        ...

    def take_packet_in(self) -> Packet | None:
        """The next packet for the controller."""
        ...


OnError = Callable[[Controller, str, BaseException], None]
"""Told which controller failed, in which method, with what. If it does not raise, the controller is stopped."""


@dataclass(frozen=True)
class Managed:
    """A switch with its controllers."""

    api: SwitchApi
    source: Source
    controllers: Sequence[Controller]
    subject: Subject | None = None
    """What its quantities are read of."""


@dataclass(order=True)
class _Planned:
    """What is to be called at a time; after that every `period`, if there is one."""

    when: int
    rank: int
    """Of what is due at one time, actions come first, then ticks, then recordings."""
    order: int
    call: Callable[[], object] = field(compare=False)
    period: int | None = field(compare=False, default=None)
    owner: Controller | None = field(compare=False, default=None)
    cancelled: bool = field(compare=False, default=False)


class Runner:
    """Runs controllers by a clock.

    Without `on_error` an exception of a controller passes through `start` or `run`, which it ends.
    """

    def __init__(self, switches: Sequence[Managed], clock: Clock, on_error: OnError | None = None) -> None:
        self._switches = list(switches)
        self._clock = clock
        self._on_error = on_error
        self._agenda: list[_Planned] = []
        self._numbers = count()
        self._stopped: set[int] = set()
        # Who is being called: what it records ends with it.
        self._current: Controller | None = None
        for managed in self._switches:
            managed.api.subject = managed.subject
            if managed.subject is not None:
                managed.api.recorder = partial(self.record, managed.subject)

    @property
    def now(self) -> int:
        """Picoseconds of the run."""
        return self._clock.now()

    def following(self, when: int, period: int) -> int:
        """When what was due at `when` is due again, every `period`: the first time that is still to come."""
        late = max(0, self._clock.now() - when)
        return when + (late // period + 1) * period

    def at(self, when: int, action: Callable[[], object]) -> None:
        """Call something at a time."""
        heapq.heappush(self._agenda, _Planned(when, 0, next(self._numbers), action))

    def start(self) -> None:
        """Start all controllers. Their first ticks are one period after the last of them has started."""
        self._start([(managed.api, one) for managed in self._switches for one in managed.controllers])
        self.deliver()

    def _start(self, pairs: Sequence[tuple[SwitchApi, Controller]]) -> None:
        ticking = []
        for api, controller in pairs:
            if self._do(api, controller, "start"):
                period = period_of(controller)
                if period is not None:
                    ticking.append((period, api, controller))
        began = self._clock.now()
        for period, api, controller in ticking:
            tick = partial(self._do, api, controller, "tick")
            planned = _Planned(began + period, 1, next(self._numbers), tick, period, controller)
            heapq.heappush(self._agenda, planned)

    def record(self, subject: Subject, quantity: str, labels: tuple[object, ...], period: int) -> None:
        """Note the values of a quantity every `period` from now on; as long as the controller runs that asks for it."""
        quantities.demand(subject, quantity, labels)
        if period == 0:
            raise TidegateError(f"the period of recording {quantity} is 0; give one above 0")
        owner = self._current
        note = partial(self._record, subject, quantity, labels, owner)
        due = self._clock.now() + period
        heapq.heappush(self._agenda, _Planned(due, 2, next(self._numbers), note, period, owner))

    def _record(
        self, subject: Subject, quantity: str, labels: tuple[object, ...], owner: Controller | None
    ) -> None:
        try:
            for at, value in quantities.read(subject, quantity, *labels).items():
                subject.api.note(quantities.note_name(quantity, at), value)
        except TidegateError as error:
            # The program may be another one by now.
            if self._on_error is None or owner is None:
                raise
            self._on_error(owner, "record", error)
            self.stop(owner)

    def stop(self, controller: Controller) -> None:
        """Call a controller no more, for any switch, and end its recordings. The switches keep what it has set."""
        self._stopped.add(id(controller))
        for planned in self._agenda:
            planned.cancelled |= planned.owner is controller

    def restart(self, controller: Controller) -> None:
        """Start a controller anew, as one that has died and comes back: it reads from its switches what they have.

        It ticks from now on. Messages that came while it was stopped are gone.
        """
        self.stop(controller)
        self._stopped.discard(id(controller))
        served = [
            managed.api for managed in self._switches if any(c is controller for c in managed.controllers)
        ]
        self._start([(api, controller) for api in served])

    def run(self, until: int | None = None, ended: Callable[[], bool] = lambda: False) -> None:
        """Run until a time, what is due then included, or until `ended` says so."""
        last = FOREVER if until is None else until
        done = self._clock.now()
        while not ended():
            end = last
            if self._agenda and self._agenda[0].when <= end:
                end = max(done, self._agenda[0].when)
            done = self._clock.wait(end)
            self.deliver()
            if done < end:
                continue
            while self._agenda and self._agenda[0].when <= done:
                self._call(heapq.heappop(self._agenda))
            if done >= last:
                break

    def _call(self, planned: _Planned) -> None:
        if planned.cancelled:
            return
        planned.call()
        if planned.period is not None and not planned.cancelled:
            planned.when = self.following(planned.when, planned.period)
            planned.order = next(self._numbers)
            heapq.heappush(self._agenda, planned)
        self.deliver()

    def deliver(self) -> None:
        """Hand over what switches have for their controllers, until there is no more."""
        for managed in self._switches:
            for method, message in _messages(managed.source):
                for controller in managed.controllers:
                    self._do(managed.api, controller, method, message)

    def _do(self, api: SwitchApi, controller: Controller, method: str, *what: Digest | PacketIn) -> bool:
        """Calls a controller that runs; gives whether it goes on."""
        if id(controller) in self._stopped:
            return False
        self._current = controller
        try:
            getattr(controller, method)(*(() if method == "start" else (api.now,)), api, *what)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Whatever the user's code raises is its own failure.
            if self._on_error is None:
                raise
            self._on_error(controller, method, error)
            self.stop(controller)
            return False
        finally:
            self._current = None
        return True


def _messages(source: Source) -> Iterator[tuple[str, Digest | PacketIn]]:
    """What a switch has for its controllers, until there is no more: the method that it is for, and the message."""
    more = True
    while more:
        more = False
        for name, fields in source.take_digests():
            more = True
            yield "on_digest", Digest(name, dict(fields))
        if (packet := source.take_packet_in()) is not None:
            more = True
            yield "on_packet_in", PacketIn(*packet)


def failure(controller: Controller, method: str, error: BaseException) -> TidegateError:
    """What is said of a controller that has failed, and where."""
    name = type(controller).__name__
    frames = traceback.extract_tb(error.__traceback__)
    # The method's own, or what stands in its place, which the runner has called.
    where = [frame for frame in frames if frame.name == method] or frames[1:2]
    place = f" ({where[-1].filename}:{where[-1].lineno})" if where else ""
    said = " ".join(str(error).splitlines())
    what = said if isinstance(error, TidegateError) else f"{type(error).__name__}: {said}"
    made = TidegateError(f"the controller {name} failed in {method}{place}: {what}")
    made.__cause__ = error
    return made
