"""What the backends share: the core's network as described, its controllers and captures, and the loop that runs it."""

from __future__ import annotations

import heapq
import time as clock
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.control.api import port_spec
from tidegate.control.controller import news_of, period_of
from tidegate.network import Link, Network, Switch
from tidegate.results import Note
from tidegate.specs import PageSpec, TcpSpec, UdpSpec, Wire

# How often a run looks up: for Ctrl-C and the progress bar.
SLICE_S = 0.05

Progress = Callable[[int, int], None]
Ports = dict[int, tuple[int, int]]
"""The core's ports of each link, by its number: at its node a and at its node b."""


def build(network: Network, seed: int, *, with_flows: bool) -> tuple[_core.Simulation, Ports]:
    """The core's network, with what is to be recorded of its queues; with the flows, if its hosts are simulated."""
    core = _core.Simulation(seed)
    for node in network.nodes:
        if isinstance(node, Switch):
            core.switch(node.name, node.program.core, node.queues, node.cpu_port)
        elif node.kind == "host":
            core.host(node.name)
        else:
            core.router(node.name)
    ports = {
        link.number: core.link(link.a.number, link.b.number, link.there, link.back) for link in network.links
    }
    if with_flows:
        _add_flows(network, core)
    for when, link, side, wire in network.changes:
        core.change_link(when, ports[link.number][0 if side == "there" else 1], wire)
    for router, to, over in network.routes:
        core.set_route(router.number, to.number, ports[over.number][0 if over.a is router else 1])
    for node in network.nodes:
        if isinstance(node, Switch):
            surface = core.control(node.number)
            try:
                for link, port in node.ports:
                    surface.port_write(network.port(node, link), port_spec(port))
            except TidegateError as error:
                raise TidegateError(f"switch {node.name}: {error}") from None
            for line in node.commands:
                try:
                    surface.command(line)
                except TidegateError as error:
                    raise TidegateError(f"switch {node.name}: {line}: {error}") from None
    watched = [number for link in watched_links(network) for number in ports[link.number]]
    for number in watched:
        core.record_waits(number)
    if network.sampling is not None:
        core.record(network.sampling, with_flows, watched)
    return core, ports


def watched_links(network: Network) -> list[Link]:
    """The links whose queues are recorded, each once."""
    return list(dict.fromkeys(network.watched))


def _add_flows(network: Network, core: _core.Simulation) -> None:
    # The first flow of a page makes them all.
    pages = {page.flows[0].number for page in network.pages}
    for flow in network.flows:
        if isinstance(flow.spec, TcpSpec):
            core.tcp(flow.spec)
        elif isinstance(flow.spec, UdpSpec):
            core.udp(flow.spec)
        elif isinstance(flow.spec, PageSpec) and flow.number in pages:
            core.page(flow.spec)


class Control:
    """The controllers of a run."""

    def __init__(self, network: Network, core: _core.Simulation) -> None:
        self.notes: list[Note] = []
        self._surfaces: list[tuple[_core.SwitchControl, SwitchApi, list[Controller]]] = []
        by_number: dict[int, tuple[_core.SwitchControl, SwitchApi, list[Controller]]] = {}
        for controller, asked in network.controllers:
            switches = asked or tuple(node for node in network.nodes if isinstance(node, Switch))
            if not switches:
                name = type(controller).__name__
                raise TidegateError(
                    f"the controller {name} has no switch to control; make one with net.switch"
                )
            for switch in switches:
                if switch.number not in by_number:
                    surface = core.control(switch.number)
                    api = SwitchApi(switch.name, surface, _neighbours(network, switch), self._note)
                    by_number[switch.number] = (surface, api, [])
                    core.watch(switch.number)
                by_number[switch.number][2].append(controller)
        self._surfaces = list(by_number.values())

    def _note(self, now: int, switch: str, quantity: str, value: float) -> None:
        self.notes.append((now, switch, quantity, value))

    def start(self) -> list[tuple[int, Controller, SwitchApi]]:
        """Starts all; gives the period of each that ticks."""
        ticking = []
        for _, api, controllers in self._surfaces:
            for controller in controllers:
                controller.start(api)
                period = period_of(controller)
                if period is not None:
                    ticking.append((period, controller, api))
        self.deliver()
        return ticking

    def deliver(self) -> None:
        """Hands over what switches have for their controllers, until there is no more."""
        for surface, api, controllers in self._surfaces:
            for method, message in news_of(surface):
                for controller in controllers:
                    getattr(controller, method)(api.now, api, message)


def _tick(controller: Controller, api: SwitchApi) -> None:
    controller.tick(api.now, api)


def _neighbours(network: Network, switch: Switch) -> list[str]:
    links = [link for link in network.links if switch in (link.a, link.b)]
    return [(link.b if link.a is switch else link.a).name for link in links]


@contextmanager
def captures(network: Network, core: _core.Simulation, ports: Ports) -> Iterator[None]:
    """Captures to files under other names, which get their own when the run has ended, however it has."""
    files = [(path, path.with_name(f".{path.name}.part")) for _, _, path, _ in network.captures]
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
    try:
        yield
    finally:
        for (path, part), failure in zip(files, core.flush_captures(), strict=True):
            if failure is not None:
                raise TidegateError(f"{path}: cannot be written: {failure}; what there is of it is in {part}")
            part.replace(path)


@contextmanager
def changing(network: Network, core: _core.Simulation, ports: Ports) -> Iterator[None]:
    """While this lasts, changes of links hold at once, and for this run alone."""

    def change(when: int, link: Link, side: str, wire: Wire) -> None:
        core.change_link(when, ports[link.number][0 if side == "there" else 1], wire)

    planned = len(network.changes)
    network.running = change
    try:
        yield
    finally:
        network.running = None
        del network.changes[planned:]


def shown(progress: Progress | None) -> AbstractContextManager[object]:
    """What shows the progress, as a context."""
    return progress if isinstance(progress, AbstractContextManager) else nullcontext()


def loop(
    network: Network,
    control: Control,
    ticking: list[tuple[int, Controller, SwitchApi]],
    advance: Callable[[int], int],
    until: int,
    progress: Progress | None,
) -> None:
    """Run to a time, with all that is to be called on the way.

    `advance` runs the network until a time, or less far if a controller has something to do or it takes long, and gives the time reached.
    `ticking` is what `Control.start` gave.
    """
    # What is to be called when: time, order, what, and the period if it is called again.
    agenda: list[tuple[int, int, Callable[[], None], int | None]] = []
    for when, action in network.actions:
        agenda.append((when, len(agenda), action, None))
    for period, controller, api in ticking:
        agenda.append((period, len(agenda), partial(_tick, controller, api), period))
    heapq.heapify(agenda)
    order = len(agenda)
    step = max(1, until // 1000)
    done, told = 0, clock.perf_counter()
    while True:
        end = min(until, done + step)
        if agenda and agenda[0][0] <= end:
            end = max(done, agenda[0][0])
        began = clock.perf_counter()
        done = advance(end)
        now = clock.perf_counter()
        spent = now - began
        control.deliver()
        if done < end:
            if progress is not None and now > told + SLICE_S:
                progress(done, until)
                told = now
            continue
        while agenda and agenda[0][0] <= done:
            when, _, call, again = heapq.heappop(agenda)
            call()
            if again is not None:
                heapq.heappush(agenda, (when + again, order, call, again))
                order += 1
            control.deliver()
        if progress is not None:
            progress(done, until)
            told = now
        if done >= until:
            break
        # Slices of about the same length in real time.
        if spent < SLICE_S / 2:
            step = min(step * 2, until)
        elif spent > SLICE_S * 2:
            step = max(1, step // 2)
