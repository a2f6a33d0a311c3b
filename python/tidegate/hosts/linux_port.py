"""The port of a Linux router as `Network.classes` sees it: queues by weight, limits and shapers, and a queue for each flow."""

from __future__ import annotations

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Port, Queue
from tidegate.control.objects import QueueState
from tidegate.hosts.linux_router import FRAMING, MOST_BPS, MTU, LinuxRouter
from tidegate.hosts.port_plan import Plan, QueuePlan
from tidegate.network import FiveTuple

BY_WEIGHT = "deficit round robin"
DEFAULT_PACKETS = 1000


def refusal(port: Port) -> str | None:
    """Why HTB cannot be a port as described; `None`: it can."""
    if len(port.queues) > 1 and port.scheduler != BY_WEIGHT:
        return f"{port.scheduler}; a Linux router's queues have the scheduler {BY_WEIGHT!r}"
    if port.shaper is not None or any(queue.time_shift for queue in port.queues):
        return "a shaper of the port, or a time shift; a Linux router has neither"
    return None


class LinuxPort:
    """Sets a `LinuxRouter` as a `Port` says: a queue's guarantee is its weight's part of the rate, its cap that of its shaper."""

    def __init__(self, router: LinuxRouter, rate_bps: int, port: Port, mtu: int = MTU) -> None:
        """`rate_bps` is that of the link, in IP packets of the full size, which is `mtu` bytes."""
        self._router = router
        self._mtu = mtu
        self._frame = mtu + FRAMING
        self._rate = min(rate_bps, MOST_BPS)
        self._flows: dict[FiveTuple, int] = {}
        self._queues: tuple[QueuePlan, ...] = ()
        self.set(port)

    def set(self, port: Port) -> None:
        """Set queues and shapers anew. Raises `TidegateError` for what HTB cannot do."""
        why = refusal(port)
        if why is not None:
            raise TidegateError(f"{self._router.interface}: {why}")
        weights = sum(queue.weight for queue in port.queues)
        self._apply(tuple(self._plan(queue, weights) for queue in port.queues), self._flows)

    def _plan(self, queue: Queue, weights: int) -> QueuePlan:
        limits = [
            *([] if queue.bytes is None else [units.size(queue.bytes)]),
            *([] if queue.packets is None else [queue.packets * self._frame]),
        ]
        # A shaper counts frames.
        cap = None if queue.shaper is None else units.rate(queue.shaper.rate) * self._mtu / self._frame
        share = queue.weight / weights if weights else 1.0
        return QueuePlan(self._rate * share, min(limits, default=DEFAULT_PACKETS * self._frame), cap)

    def _apply(self, queues: tuple[QueuePlan, ...], flows: dict[FiveTuple, int]) -> None:
        known = {flow: queue for flow, queue in flows.items() if queue < len(queues)}
        self._router.apply(Plan(queues, known))
        self._queues, self._flows = queues, flows

    def assign(self, flows: list[FiveTuple], queue: int | None) -> None:
        """Put the packets of flows into a queue from now on; with `None`, they are as all others again."""
        if queue is None:
            gone = set(flows)
            wanted = {flow: of for flow, of in self._flows.items() if flow not in gone}
        else:
            wanted = self._flows | dict.fromkeys(flows, queue)
        self._apply(self._queues, wanted)

    def queue(self, number: int) -> QueueState:
        """What waits, and counts. The kernel does not say how long packets have waited: these are 0."""
        counts = self._router.counts()
        if number >= len(counts):
            raise TidegateError(f"{self._router.interface}: there is no queue {number}")
        one = counts[number]
        return QueueState(
            waiting_packets=one["waiting_packets"],
            waiting_bytes=one["waiting_bytes"],
            head_wait=0,
            packets=one["packets"],
            bytes=one["bytes"],
            dropped=one["dropped"],
            dropped_in_egress=0,
            wait_sum=0.0,
            wait_max=0,
        )
