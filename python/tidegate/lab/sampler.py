"""Samples of a namespace's TCP connections."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass

from tidegate.lab.messages import FlowPlan
from tidegate.lab.tcp_info import Diag, TcpInfo, parse


@dataclass
class Seen:
    """The last sample of a connection."""

    first: int
    """When it was first seen, since the start of the run."""
    look: int
    """The number of the look at which it was last seen."""
    info: TcpInfo


class Sampler:
    """Samples all connections of this namespace at once, and keeps those of known flows."""

    def __init__(self) -> None:
        self._diag = Diag()
        self.start = 0
        """When the run began, by the monotonic clock."""
        self._ends: dict[tuple[int, int], tuple[int, bool]] = {}
        self._sent: dict[int, Seen] = {}
        self._received: dict[int, Seen] = {}
        self.sender_rows: array[int] = array("Q")
        self.receiver_rows: array[int] = array("Q")
        self.late = 0
        self._tick = -1
        self._looks = 0

    def add_sender(self, plan: FlowPlan) -> None:
        """Add a flow that this host sends."""
        self._ends[plan.source_port, plan.target_port] = (plan.number, True)

    def add_receiver(self, plan: FlowPlan) -> None:
        """Add a flow that this host receives."""
        self._ends[plan.target_port, plan.source_port] = (plan.number, False)

    def begin(self, start: int) -> None:
        """Set the start of the run, by the monotonic clock."""
        self.start = start

    def since_start(self, monotonic: int) -> int:
        """Convert a time of the monotonic clock to a time of the run."""
        return max(0, monotonic - self.start)

    def seen(self, flow: int) -> Seen | None:
        """The last sample of a flow at its sender."""
        return self._sent.get(flow)

    def seen_by_receiver(self, flow: int) -> Seen | None:
        """The last sample of a flow at its receiver."""
        return self._received.get(flow)

    def is_there(self, seen: Seen) -> bool:
        """Whether the last sample had the connection."""
        return seen.look == self._looks

    def look(self) -> list[tuple[int, int, bool, TcpInfo]]:
        """Sample the connections now: time, flow, whether this host sends it, and its values."""
        rows = []
        self._looks += 1
        for connection in self._diag.dump():
            known = self._ends.get((connection.local_port, connection.remote_port))
            if known is None or connection.info is None:
                continue
            flow, sends = known
            info = parse(connection.info)
            now = max(0, time.monotonic_ns() - self.start)
            kept = self._sent if sends else self._received
            if flow in kept:
                kept[flow].look, kept[flow].info = self._looks, info
            else:
                kept[flow] = Seen(now, self._looks, info)
            rows.append((now, flow, sends, info))
        return rows

    def sample(self, period: int) -> int:
        """Record a sample; return the time of the next, by the monotonic clock."""
        tick = (time.monotonic_ns() - self.start) // period
        # A last sample may come right after another.
        rows = self.look()
        for now, flow, sends, i in rows if tick != self._tick else ():
            if sends:
                queue = (i.cwnd, i.ssthresh, i.in_flight, i.srtt, i.rto, i.pacing_rate)
                counts = (i.retransmits, i.timeouts, i.delivered_ce, i.delivery_rate, i.bytes_acked)
                self.sender_rows.extend((tick, now, flow, *queue, *counts))
            else:
                self.receiver_rows.extend((tick, now, flow, i.bytes_received))
        if self._tick >= 0:
            self.late += max(0, tick - self._tick - 1)
        self._tick = tick
        following = max(tick, (time.monotonic_ns() - self.start) // period) + 1
        return self.start + following * period
