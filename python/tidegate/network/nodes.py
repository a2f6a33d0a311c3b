"""Nodes of a network: hosts, plain routers, and switches that run a P4 program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate import control
from tidegate.control.controller import demand_clock
from tidegate.p4 import Program

if TYPE_CHECKING:
    from tidegate.network.links import Link


@dataclass(frozen=True)
class Node:
    """A host or a router."""

    name: str
    number: int
    kind: str
    linux: bool = field(default=False, kw_only=True)
    """In live runs the router is the Linux kernel."""

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


@dataclass(frozen=True, eq=False)
class Switch(Node):
    """A switch that runs a P4 program."""

    program: Program = field(repr=False)
    queues: int
    cpu_port: int | None = None
    nanoseconds: bool = False
    """Timestamps count in nanoseconds."""
    commands: list[str] = field(default_factory=list, repr=False)
    ports: list[tuple[Link, control.Port]] = field(default_factory=list, repr=False)

    @property
    def clock(self) -> int:
        """The unit of timestamps, in picoseconds."""
        return 1_000 if self.nanoseconds else 1_000_000

    def demand_clock(self, controller: control.Controller) -> None:
        """Raise `TidegateError` if the controller's program is written for timestamps in another unit."""
        demand_clock(controller, self.clock, self.name, 'give the switch clock="{asked}"')

    def __repr__(self) -> str:
        queues = f", {self.queues} queues a port" if self.queues > 1 else ""
        cpu = "" if self.cpu_port is None else f", CPU port {self.cpu_port}"
        return f"<switch {self.name}{queues}{cpu}>"
