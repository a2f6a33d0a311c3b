"""A switch that runs in the dashboard: its interfaces, rates, queues, what its controllers have noted, and the packets and flows of a port
that somebody has chosen, ten times a second; less often where there is so much that looking would take more than its share of the time (`WORTH`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from tidegate import units
from tidegate.switch.running import LiveSwitch
from tidegate.view.capturing import Capturing
from tidegate.view.page import WORTH, Page

PERIOD_S = 0.1
MOST_NOTES = 200


class Switching:
    """Looks at a running switch whenever `update` is called."""

    def __init__(self, switch: LiveSwitch, name: str) -> None:
        self._switch = switch
        self._last: tuple[float, Any] | None = None
        self._start = time.monotonic()
        self._begun = False
        self._looked_at = self._cost = 0.0
        self._capturing: Capturing | None = None
        self._only = ""
        self._choices = 0
        self._queues = [
            (port.number, queue)
            for port in switch.ports
            for queue in range(len(switch.api.port_read(port.number).queues))
        ]
        links = [
            [at + 1, 0, f"{port.interface}: received", f"{port.interface}: sent"]
            for at, port in enumerate(switch.ports)
        ]
        limits = [None if port.rate is None else units.rate(port.rate) / 1e6 for port in switch.ports]
        self._about: dict[str, Any] = {
            "title": f"switch {name}",
            "kind": "switch",
            "nodes": [[name, "switch"], *([port.interface, "host"] for port in switch.ports)],
            "links": links,
            "rates_mbps": [limit for limit in limits for _ in range(2)],
            "ports": [name for link in links for name in link[2:]],
            "queues": [f"port {port} queue {queue}" for port, queue in self._queues],
        }

    def update(self, page: Page) -> None:
        """Look again, if anybody is there."""
        # A page cannot change a switch; it can look at a port's packets.
        trace = self._traced(page.heard(), page.readers)
        if not page.ready or time.monotonic() - self._looked_at < WORTH * self._cost:
            return
        began = time.thread_time()
        if not self._begun:
            self._begun = True
            page.begin(self._about)
        now = time.monotonic()
        ports = self._switch.statistics()["ports"]
        counted = np.array(
            [(port[f"{way}_bytes"], port[way]) for port in ports for way in ("received", "sent")],
            dtype=np.float64,
        ).reshape(-1, 2)
        rates = np.full_like(counted, np.nan)
        if self._last is not None and now > self._last[0]:
            rates = (counted - self._last[1]) / (now - self._last[0])
        self._last = (now, counted)
        states = [self._switch.api.queue_read(*at) for at in self._queues]
        columns: dict[str, Any] = {
            "port rate_mbps": rates[:, 0] * 8e-6,
            "port packets_per_s": rates[:, 1],
            "queue packets": [state.waiting_packets for state in states],
            "queue bytes": [state.waiting_bytes for state in states],
            "queue dropped": [state.dropped for state in states],
        }
        notes = dict(list(self._switch.notes.items())[:MOST_NOTES])
        page.show({"t": now - self._start, "notes": notes, "trace": trace}, columns)
        self._cost = time.thread_time() - began
        self._looked_at = time.monotonic()

    def close(self) -> None:
        """Look no more."""
        if self._capturing is not None:
            self._capturing.close()
            self._capturing = None

    def _traced(self, said: Mapping[str, Any], readers: int) -> dict[str, Any] | None:
        if "trace" in said or not readers:
            self.close()
        chosen = said.get("trace", -1)
        if readers and 0 <= chosen < 2 * len(self._switch.ports):
            port = self._switch.ports[chosen // 2]
            self._choices += 1
            self._only = ""
            about = {"flow": chosen, "name": port.interface, "number": self._choices}
            self._capturing = Capturing(self._switch.core, self._switch.wires[port.number], about)
        self._only = said.get("only", self._only)
        return None if self._capturing is None else {**self._capturing.say(), "only": self._only}
