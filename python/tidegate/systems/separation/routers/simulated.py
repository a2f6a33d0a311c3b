"""A plain router of a network, in the simulator or in the lab: queues by class, weighted by deficit round robin."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tidegate.control import Port, Queue, Shaper
from tidegate.network import Classes, FiveTuple
from tidegate.systems.separation.routers import Plan, QueuePlan

MOST_WEIGHT, PARTS = 128, 16
"""Of the round robin: the weight of the queue with the highest rate, and parts of a packet that a unit of weight sends in a round. So the
first queue sends eight packets at a time."""
CAP_BURST = 16 * 1514
"""Bytes that a capped queue may send at once: two turns of the round robin, or it would lose what it may send while it waits for its own."""
FRAMING = 14
"""Bytes that a shaper counts beside an IP packet."""
PORT_QUEUES = 8
"""As many as the paper's router has."""


def port(queues: tuple[QueuePlan, ...], mtu: int) -> Port:
    """The settings of a port: a plan's rates are of IP packets, which are `mtu` bytes long, and a shaper's of frames."""
    most = max(max(queue.rate_bps for queue in queues), 1.0)
    return Port(
        tuple(
            Queue(
                bytes=queue.buffer_bytes,
                weight=max(1, round(MOST_WEIGHT * queue.rate_bps / most)),
                shaper=None
                if queue.cap_bps is None
                else Shaper(round(queue.cap_bps * (mtu + FRAMING) / mtu), CAP_BURST),
            )
            for queue in queues
        ),
        "deficit round robin",
        quantum=-(-1514 // PARTS),
    )


@dataclass
class SimulatedRouter:
    """A port with `Network.classes`."""

    classes: Classes
    most_queues: int = PORT_QUEUES
    mtu: int = 1500
    """Of the port's link."""
    _flows: dict[FiveTuple, int] = field(default_factory=dict)
    _queues: tuple[QueuePlan, ...] = ()

    def begin(self) -> None:
        """A run begins: the port is as it is described."""
        self._flows, self._queues = dict(self.classes.flows), ()

    def apply(self, plan: Plan) -> None:
        """Set queues that differ, and move flows that are elsewhere."""
        if plan.queues != self._queues:
            self.classes.set(port(plan.queues, self.mtu))
            self._queues = plan.queues
        moved: defaultdict[int, list[FiveTuple]] = defaultdict(list)
        for flow, queue in plan.flows.items():
            if self._flows.get(flow, 0) != queue:
                moved[queue].append(flow)
        gone = [flow for flow, queue in self._flows.items() if queue and flow not in plan.flows]
        for queue, flows in moved.items():
            self.classes.assign(flows, queue)
        self.classes.assign(gone, None)
        self._flows = dict(plan.flows)
