"""Routers that cannot be programmed: what the controller asks of them, and what it does not need to know.

| module | router |
|---|---|
| `simulated` | a plain router of a network, in the simulator or in the lab |
| `linux` | HTB at an interface of Linux, and a classifier in BPF |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tidegate.network import FiveTuple


@dataclass(frozen=True)
class QueuePlan:
    """A queue of the router's port."""

    rate_bps: float
    """What it is guaranteed while others have something to send."""
    buffer_bytes: int
    cap_bps: float | None = None
    """What it may not exceed; `None`: it takes what others leave."""


@dataclass(frozen=True)
class Plan:
    """The queues of a port, and the flows in them. Flows that are not named are in queue 0."""

    queues: tuple[QueuePlan, ...]
    flows: Mapping[FiveTuple, int]


class Router(Protocol):
    """A port of a router."""

    @property
    def most_queues(self) -> int:
        """Queues that the port can have."""
        ...

    def apply(self, plan: Plan) -> None:
        """Make the port be as planned. On an error it is as it was."""
        ...
