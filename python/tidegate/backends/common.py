"""What the backends share: the controllers of a run, captures, changes of links, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
import numpy.typing as npt

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.backends.build import Ports, port_of
from tidegate.control import Controller, Port, SwitchApi
from tidegate.control import operations as op
from tidegate.control.objects import QueueState, port_spec
from tidegate.control.readings import Subject
from tidegate.control.runner import Clock, Managed, Runner, failure
from tidegate.files import beside, why
from tidegate.network import FiveTuple, Link, Network, Node, Switch
from tidegate.network.classes import RunningPort
from tidegate.network.links import Change
from tidegate.results import Note

# How often a run looks up: for Ctrl-C and the progress bar.
SLICE_S = 0.05

# And a run that is looked at.
WATCHED_SLICE_S = 0.02

Progress = Callable[[int, int], None]
HostFlows = Callable[[], dict[str, npt.NDArray[np.float32]]]
"""Flows of real hosts, as `view.frames` has them: those that something new is known of."""


class Watcher(Protocol):
    """Looks at runs between their slices, as the dashboard does; it changes nothing of what comes of them."""

    def begin(
        self,
        network: Network,
        core: _core.Simulation,
        ports: Ports,
        notes: list[Note],
        until: int,
        hosts: HostFlows | None = None,
    ) -> None:
        """A run begins; controllers' notes come to `notes`. With `hosts` it is a live one."""

    def limit(self, now: int) -> int | None:
        """The time at which the next slice has to end at the latest."""

    def look(self, now: int) -> None:
        """A slice has ended; the next one begins when this returns."""

    def end(self, now: int) -> None:
        """The run has ended."""


watcher: Watcher | None = None
"""Of the runs of this process."""

on_threads: Callable[[int], None] | None = None
"""Hears, between the slices of a simulation, on how many threads it runs."""


@contextmanager
def watching(by: Watcher) -> Iterator[None]:
    """While this lasts, runs of this process are looked at."""
    global watcher
    watcher = by
    try:
        yield
    finally:
        watcher = None


run_name = ""
"""What the run of this process is called, where it has a name."""


@contextmanager
def named(name: str) -> Iterator[None]:
    """While this lasts, who looks at runs of this process calls them by this name."""
    global run_name
    run_name = name
    try:
        yield
    finally:
        run_name = ""


def runner(
    network: Network, core: _core.Simulation, clock: Clock, notes: list[Note], *, with_flows: bool
) -> Runner:
    """What runs a network's controllers and the actions at times of the run. What controllers note comes to `notes`."""
    controllers: dict[Switch, list[Controller]] = {}
    for controller, asked in network.controllers:
        switches = asked or tuple(node for node in network.nodes if isinstance(node, Switch))
        if not switches:
            name = type(controller).__name__
            raise TidegateError(f"the controller {name} has no switch to control; make one with net.switch")
        for switch in switches:
            # One that was made after its controller.
            switch.demand_clock(controller)
            controllers.setdefault(switch, []).append(controller)

    def note(now: int, switch: str, quantity: str, value: float) -> None:
        notes.append((now, switch, quantity, value))

    if network.quantities:
        for node in network.nodes:
            if isinstance(node, Switch):
                controllers.setdefault(node, [])
    managed = []
    for switch, given in controllers.items():
        surface = _core.SwitchControl.of_switch(core, switch.number)
        if given:
            core.watch(switch.number)
        neighbours = _neighbours(network, switch)
        api = SwitchApi(switch.name, surface, neighbours, note)
        subject = Subject(
            api,
            surface,
            partial(getattr, switch, "program"),
            range(len(neighbours)),
            flows=_flows(network, core, with_flows),
        )
        managed.append(Managed(api, surface, given, subject))
    made = Runner(managed, clock, _failed)
    for when, action in network.actions:
        made.at(when, action)
    for when, controller, down in network.restarts:
        made.at(when, partial(made.stop, controller))
        made.at(when + down, partial(made.restart, controller))
    for period, quantity, *labels in network.quantities:
        for one in managed:
            if one.subject is not None:
                made.record(one.subject, quantity, tuple(labels), period)
    return made


def _failed(controller: Controller, method: str, error: BaseException) -> NoReturn:
    """An error in a controller ends the run, and is told as one of the controller."""
    if isinstance(error, TidegateError):
        raise error
    raise failure(controller, method, error)


def _flows(
    network: Network, core: _core.Simulation, with_flows: bool
) -> Callable[[], list[tuple[str, dict[str, Any]]]] | None:
    """What came of the flows that the core runs."""
    if not with_flows:
        return None
    return lambda: [(flow.label, core.outcome(flow.number)) for flow in network.flows]


class SlicedClock:
    """The time of a network that `advance` takes to a time, or less far if a controller has something to do or it takes long.

    It goes on in slices of about the same length in real time. Between them are Ctrl-C and the progress.
    """

    def __init__(
        self,
        core: _core.Simulation,
        advance: Callable[[int], int],
        until: int,
        progress: Progress | None,
        watcher: Watcher | None = None,
    ) -> None:
        self._watcher = watcher
        self._slice_s = SLICE_S if watcher is None else WATCHED_SLICE_S
        self.now = core.now
        self._advance = advance
        self._until = until
        self._progress = progress
        self._step = max(1, until // 1000)
        self._reached = 0
        self._told = time.perf_counter()

    def wait(self, until: int) -> int:
        """Go on, by one slice at most."""
        end = min(until, self._reached + self._step)
        if self._watcher is not None:
            end = min(end, self._watcher.limit(self._reached) or end)
        began, before = time.perf_counter(), self._reached
        self._reached = self._advance(end)
        now = time.perf_counter()
        whole = self._reached >= end
        if self._progress is not None and (whole or now > self._told + SLICE_S):
            self._progress(self._reached, self._until)
            self._told = now
        if whole and now - began < self._slice_s / 2:
            self._step = min(self._step * 2, self._until)
        elif now - began > self._slice_s * 2:
            # A long slice of many events ends early.
            self._step = max(1, min(self._step, self._reached - before) // 2)
        if self._watcher is not None:
            self._watcher.look(self._reached)
        return self._reached


def _neighbours(network: Network, switch: Switch) -> list[str]:
    links = [link for link in network.links if switch in (link.a, link.b)]
    return [(link.b if link.a is switch else link.a).name for link in links]


@contextmanager
def captures(network: Network, core: _core.Simulation, ports: Ports) -> Iterator[list[str]]:
    """Captures to files under other names, which get their own when the run has ended, however it has.

    Gives what could not be written, which is known at the end, for `tell_unwritten`. Where an exception ends the run, its notes say it.
    """
    files = [(path, beside(path)) for _, _, path, _ in network.captures]
    try:
        for (link, node, path, snap), (_, part) in zip(network.captures, files, strict=True):
            try:
                core.capture(ports[link.number][0 if link.a is node else 1], part, snap)
            except TidegateError as error:
                raise TidegateError(f"the capture {path}: {error}") from None
    except TidegateError:
        for _, part in files:
            part.unlink(missing_ok=True)
        raise
    unwritten: list[str] = []
    try:
        yield unwritten
    except BaseException as error:
        unwritten += _give_names(files, core.flush_captures())
        for each in unwritten:
            error.add_note(each)
        raise
    unwritten += _give_names(files, core.flush_captures())


def _give_names(files: list[tuple[Path, Path]], failures: list[str | None]) -> list[str]:
    """Give all captures their names that are whole; says which are not."""
    unwritten = []
    for (path, part), said in zip(files, failures, strict=False):
        if said is None:
            try:
                part.replace(path)
            except OSError as error:
                said = why(error)
        if said is not None:
            unwritten.append(f"{path}: cannot be written: {said}; what there is of it is in {part}")
    return unwritten


def tell_unwritten(unwritten: list[str], interrupted: bool) -> tuple[str, ...]:
    """Raise what could not be written of the captures; of a run that was interrupted it is a warning beside its result."""
    if unwritten and not interrupted:
        raise TidegateError("\n".join(unwritten))
    return tuple(unwritten)


class CorePort:
    """A port of a plain router in the core, as `Network.classes` sees it."""

    def __init__(self, core: _core.Simulation, port: int, as_described: Port) -> None:
        self._port = _core.RouterPort(core, port, op.PortSet(0, port_spec(as_described)))

    def set(self, port: Port) -> None:
        """Set queues, scheduler and shapers anew."""
        self._port.act(op.PortSet(0, port_spec(port)))

    def assign(self, flows: list[FiveTuple], queue: int | None) -> None:
        """Put flows into a queue."""
        self._port.assign(flows, queue)

    def queue(self, number: int) -> QueueState:
        """What waits in a queue, and its counts."""
        return QueueState(**self._port.act(op.QueueRead(0, number)))


class _Links:
    """Links of the core, as `Link.set` sees them during a run."""

    def __init__(self, core: _core.Simulation, ports: Ports, live: bool) -> None:
        self._core = core
        self._ports = ports
        self._live = live

    def now(self) -> int:
        """Picoseconds of the run."""
        return self._core.now()

    def change(self, changes: Sequence[Change]) -> None:
        """Have changes come about. The core keeps what it was told before for the same time, and does this right after it."""
        if self._live:
            for change in changes:
                fixed = change.link.fixed_in_live_runs(change.side)
                if fixed is not None:
                    raise TidegateError(fixed)
        for change in changes:
            self._core.change_link(change.when, port_of(self._ports, change), change.wire)


@contextmanager
def changing(
    network: Network,
    core: _core.Simulation,
    ports: Ports,
    elsewhere: Mapping[tuple[Node, Link], RunningPort] | None = None,
) -> Iterator[None]:
    """While this lasts, changes of links and of routers' queues hold at once, and for this run alone.

    `elsewhere` are ports that the core of a live run does not have: those of Linux routers.
    """
    planned = dict(network.scheduled)
    network.running = _Links(core, ports, live=elsewhere is not None)
    elsewhere = elsewhere or {}
    try:
        for classes in network.class_ports:
            running = elsewhere.get((classes.router, classes.link))
            if running is None:
                port = ports[classes.link.number][0 if classes.link.a is classes.router else 1]
                running = CorePort(core, port, classes.port)
            for flow, queue in classes.flows.items():
                running.assign([flow], queue)
            classes.running = running
        yield
    finally:
        network.running = None
        for classes in network.class_ports:
            classes.running = None
        network.scheduled = planned


def shown(progress: Progress | None) -> AbstractContextManager[object]:
    """What shows the progress, as a context."""
    return progress if isinstance(progress, AbstractContextManager) else nullcontext()
