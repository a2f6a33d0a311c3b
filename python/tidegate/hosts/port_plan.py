"""What the port of a router that is not ours is to be: queues with rates, buffers and caps, and the flows in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
