"""The flows of a lab while it runs, as far as its agents have told, for who looks at it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tidegate.lab.lab import Lab
from tidegate.lab.messages import Looked

PERIOD_S = 0.1
WORTH = 40
"""An agent looks again when so many times the time of its last look has passed."""
AT_ONCE = 16
"""Agents that are asked at a time; the others have their turn."""
NAMES = ("at", "rate_mbps", "cwnd_packets", "srtt_ms", "retransmits")
UNKNOWN = (np.nan,) * 4


class Flows:
    """The flows of these hosts. What is not known is NaN: of a UDP flow of iperf3, all, until it ends."""

    def __init__(self, lab: Lab, hosts: Iterable[str]) -> None:
        self._lab = lab
        self._turn = deque(hosts)
        self._next = dict.fromkeys(self._turn, 0.0)
        self._rows: dict[int, tuple[float, ...]] = {}
        self._received: dict[int, tuple[int, int]] = {}
        self._under_way: dict[str, set[int]] = {}

    def look(self) -> dict[str, npt.NDArray[np.float32]]:
        """Columns of the flows of which agents have told since the last look; see `view.frames`."""
        now = time.monotonic()
        asked = [name for name in self._turn if self._next[name] <= now][:AT_ONCE]
        for name in asked:
            self._turn.remove(name)
            self._turn.append(name)
        changed: set[int] = set()
        for name, looked in self._lab.look(asked):
            self._next[name] = now + max(PERIOD_S * 0.9, WORTH * looked.cost / 1e9)
            changed |= self._take(name, looked)
        rows = np.array([(flow, *self._rows[flow]) for flow in sorted(changed)], "<f4").reshape(
            -1, len(NAMES)
        )
        return {f"flow {name}": np.ascontiguousarray(rows[:, at]) for at, name in enumerate(NAMES)}

    def _take(self, name: str, looked: Looked) -> set[int]:
        changed: set[int] = set()
        values = looked.sent
        for at in range(0, len(values), 4):
            flow, cwnd, srtt_us, retransmits = values[at : at + 4]
            self._rows[flow] = (self._rows.get(flow, UNKNOWN)[0], cwnd, srtt_us / 1e3, retransmits)
            changed.add(flow)
        values = looked.received
        for at in range(0, len(values), 3):
            flow, time_ns, size = values[at : at + 3]
            last_ns, last = self._received.get(flow, (time_ns, size))
            self._received[flow] = (time_ns, size)
            if time_ns > last_ns:
                rate = max(0, size - last) * 8e3 / (time_ns - last_ns)
                self._rows[flow] = (rate, *self._rows.get(flow, UNKNOWN)[1:])
                changed.add(flow)
        under_way = set(values[::3])
        for flow in self._under_way.get(name, set()) - under_way:
            self._rows[flow] = (0.0, *self._rows.get(flow, UNKNOWN)[1:])
            changed.add(flow)
        self._under_way[name] = under_way
        return changed
