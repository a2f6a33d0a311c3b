"""Queues by class at a port of a plain router, and the filter that puts flows into them: a router's class of service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from tidegate import control, units
from tidegate._core import TidegateError
from tidegate.control.objects import QueueState, demand_port

if TYPE_CHECKING:
    from tidegate.network.flows import FiveTuple
    from tidegate.network.links import Link
    from tidegate.network.nodes import Node


class RunningPort(Protocol):
    """The port while a run lasts."""

    def set(self, port: control.Port) -> None:
        """Set queues, scheduler and shapers anew."""

    def assign(self, flows: list[FiveTuple], queue: int | None) -> None:
        """Put flows into a queue."""

    def queue(self, number: int) -> QueueState:
        """What waits in a queue, and its counts."""


class Classes:
    """The queues of a router's port. Flows that are not assigned to one use queue 0.

    What is set before a run is part of the network's description; what is set during a run holds for that run.
    """

    def __init__(self, router: Node, link: Link, port: control.Port) -> None:
        self.router = router
        self.link = link
        self.port = port
        """As it is at the start of a run."""
        self.flows: dict[FiveTuple, int] = {}
        """Queues of flows at the start of a run."""
        self.running: RunningPort | None = None
        """While a run lasts, the port."""
        demand_port(port)

    @property
    def name(self) -> str:
        """`router -> neighbour`."""
        other = self.link.b if self.link.a is self.router else self.link.a
        return f"{self.router.name} -> {other.name}"

    def set(self, port: control.Port) -> None:
        """Set queues, scheduler and shapers. Packets of a removed queue move to the last remaining one."""
        demand_port(port)
        if self.running is None:
            self.port = port
        else:
            self.running.set(port)

    def assign(self, flows: Iterable[FiveTuple], queue: int | None) -> None:
        """Assign flows to a queue from now on; `None` removes the assignment."""
        number = None if queue is None else units.below(queue, 0, 2**16, f"a queue of {self.name}")
        if self.running is not None:
            self.running.assign(list(flows), number)
            return
        for flow in flows:
            if number is None:
                self.flows.pop(flow, None)
            else:
                self.flows[flow] = number

    def queue(self, number: int) -> QueueState:
        """What waits in a queue, and its counts, during a run.

        Raises `TidegateError` outside of a run, and if there is no such queue.
        """
        if self.running is None:
            raise TidegateError(f"{self.name}: queues have a state during a run only")
        number = units.below(number, 0, 2**16, f"a queue of {self.name}")
        return self.running.queue(number)
