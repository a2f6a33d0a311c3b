"""A run in the dashboard while it goes on: what there is ten times a second, the packets of a chosen flow, and in the simulator pause and
step. Nobody looks at a run that no browser shows.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tidegate import _core, units
from tidegate._core import TidegateError
from tidegate.backends import common
from tidegate.backends.build import Ports
from tidegate.backends.common import HostFlows
from tidegate.network import Network, Node
from tidegate.network.links import queue_names
from tidegate.results import Note
from tidegate.units import PS_PER_S
from tidegate.view.asking import MOST_WATCHED
from tidegate.view.frames import Columns
from tidegate.view.page import WORTH, Page

PERIOD_S = 0.1
LOOKED_AT = 1000
"""Flows and ports of one look, beside those that somebody is shown; the others have their turn."""
MOST_FLOWS, MOST_LINKS = 20_000, 5000
"""That are shown, the first ones."""
MOST_NOTES = 200
SNAP = 128
MOST_TRACE = 64 << 20
"""Bytes of packets that are captured for one choice."""
LAST_WAIT_S = 0.5


class Running:
    """Shows the runs of this process, one after the other (`backends.common.Watcher`)."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._core: _core.Simulation | None = None
        self._runs = self._flows = 0
        self._live = self._paused = False
        self._step: int | None = None
        self._watched: list[int] = []
        self._asked: int | None = None
        self._traces = 0
        self._trace: _Trace | None = None

    def begin(
        self,
        network: Network,
        core: _core.Simulation,
        ports: Ports,
        notes: list[Note],
        until: int,
        hosts: HostFlows | None = None,
    ) -> None:
        """A run begins."""
        self._network, self._core, self._by_link, self._notes, self._until = (
            network,
            core,
            ports,
            notes,
            until,
        )
        self._hosts, self._live = hosts, hosts is not None
        # A live run's thread sleeps most of the time.
        self._clock = time.monotonic if self._live else time.thread_time
        self._links = network.links[:MOST_LINKS]
        self._flows = min(len(network.flows), MOST_FLOWS)
        at = [port for link in self._links for port in ports[link.number]]
        self._view = _core.View(core, at, 0 if self._live else self._flows)
        self._runs += 1
        kind = "live run" if self._live else "simulation"
        self._title = common.run_name or f"{kind} {self._runs}"
        self._begun = False
        self._ended = False
        self._next = self._spent_at = self._cost = 0.0
        self._stop_at: int | None = None
        self._said = 0
        self._noted: dict[str, float] = {}
        self._watched = []
        self.look(0)

    def limit(self, now: int) -> int | None:
        """Where the next slice has to end."""
        if self._step is not None:
            self._stop_at, self._step = now + self._step, None
        return self._stop_at

    def look(self, now: int) -> None:
        """Look at the run, if it is time; wait while it is paused."""
        reached = self._stop_at is not None and now >= self._stop_at
        clock = time.monotonic()
        if clock < self._next and not reached:
            return
        # Slices do not end when a look is due: a late one is no reason to have fewer.
        self._next = max(self._next + PERIOD_S, clock + PERIOD_S / 2)
        self._hear(self._page.heard())
        if reached:
            self._stop_at = None
            self._paused = True
        if self._paused:
            self._wait(now)
        elif self._clock() - self._spent_at >= WORTH * self._cost and self._page.ready:
            self._take(now)

    def end(self, now: int) -> None:
        """The run has ended."""
        if self._core is None:
            # It has not begun.
            return
        self._ended, self._paused, self._step = True, False, None
        self._hosts = None
        # Who comes later sees how it ended.
        self._page.settle(LAST_WAIT_S)
        self._take(now, whole=True)
        if self._trace is not None:
            self._trace.close()
            self._trace = None
        self._core = None

    def _hear(self, said: Mapping[str, Any]) -> bool:
        """Whether anything has changed in what is shown."""
        if "pause" in said:
            self._paused, self._step = said["pause"] and not self._live, None
        if "step" in said and not self._live:
            with suppress(TidegateError):
                self._step = max(1, units.time(said["step"]))
                self._paused = False
        if "watch" in said:
            self._watched = [flow for flow in said["watch"][:MOST_WATCHED] if 0 <= flow < self._flows]
        if "trace" in said and said["trace"] < self._flows:
            self._asked = said["trace"]
        return "trace" in said or "readers" in said

    def _wait(self, now: int) -> None:
        changed = True
        while self._paused and not self._page.gone:
            if changed and self._page.ready:
                self._take(now, whole=True)
                changed = False
            # Not for ever: Ctrl-C comes between two waits.
            changed = self._hear(self._page.heard(PERIOD_S)) or changed
        self._paused = False

    def _take(self, now: int, *, whole: bool = False) -> None:
        if self._page.gone:
            return
        began = time.thread_time()
        if not self._begun:
            self._begun = True
            self._page.begin(self._about())
        looked_at = max(self._flows, 2 * len(self._links)) if whole else LOOKED_AT
        columns: Columns = {
            name: np.frombuffer(data, "<f4") for name, data in self._view.look(self._watched, looked_at)
        }
        if self._hosts is not None:
            columns |= self._hosts()
        for _, switch, quantity, value in self._notes[self._said :]:
            self._noted[f"{switch} {quantity}"] = value
        self._said = len(self._notes)
        header = {
            "t": now / PS_PER_S,
            "paused": self._paused,
            "ended": self._ended,
            "notes": dict(list(self._noted.items())[:MOST_NOTES]),
            "trace": self._traced(),
        }
        self._page.show(header, columns)
        self._cost = time.thread_time() - began
        self._spent_at = self._clock()

    def _about(self) -> dict[str, Any]:
        network = self._network
        left_out = []
        if len(network.flows) > self._flows:
            left_out.append(f"{self._flows} of {len(network.flows)} flows")
        if len(network.links) > len(self._links):
            left_out.append(f"{len(self._links)} of {len(network.links)} links")
        nodes: dict[Node, int] = {}
        for link in self._links:
            for node in (link.a, link.b):
                nodes.setdefault(node, len(nodes))
        names = [name for both in queue_names(self._links) for name in both]
        return {
            "title": self._title,
            "kind": "live" if self._live else "running",
            "until_s": self._until / PS_PER_S,
            "left_out": f"shown are the first {' and '.join(left_out)}" if left_out else "",
            "nodes": [[node.name, node.kind] for node in nodes],
            "links": [
                [nodes[link.a], nodes[link.b], *names[2 * at : 2 * at + 2]]
                for at, link in enumerate(self._links)
            ],
            "rates_mbps": [wire.rate / 1e6 for link in self._links for wire in (link.forward, link.reverse)],
            "queues": names,
            "flows": [flow.label for flow in network.flows[: self._flows]],
        }

    def _traced(self) -> dict[str, Any] | None:
        asked, self._asked = self._asked, None
        if asked is not None:
            if self._trace is not None:
                self._trace.close()
                self._trace = None
            if asked >= 0 and not self._ended and self._core is not None:
                self._traces += 1
                self._trace = _Trace(self._network, self._core, self._by_link, asked, self._traces)
        return None if self._trace is None else self._trace.say()


class _Trace:
    """A capture at a flow's source, from now on. Its file has no name: nothing is left of it however this process ends."""

    def __init__(
        self, network: Network, core: _core.Simulation, ports: Ports, flow: int, number: int
    ) -> None:
        self._core = core
        self._port: int | None = None
        self._file: int | None = None
        self._said: dict[str, Any] = {"flow": flow, "number": number, "file": None, "problem": ""}
        five = network.five_tuple(network.flows[flow])
        self._said["ends"] = [(five.source, five.source_port), (five.target, five.target_port)]
        source = network.flows[flow].source
        link = next((one for one in network.links if source in (one.a, one.b)), None)
        if link is None:
            self._said["problem"] = f"{source.name} has no link"
            return
        port = ports[link.number][0 if link.a is source else 1]
        try:
            with tempfile.TemporaryDirectory(prefix="tidegate-trace-") as folder:
                file = Path(folder) / "trace.pcap"
                core.capture(port, file, SNAP)
                self._port = port
                self._file = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            self._said["file"] = f"/proc/{os.getpid()}/fd/{self._file}"
        except (TidegateError, OSError) as error:
            self._stop()
            self._said["problem"] = str(error)

    def say(self) -> dict[str, Any]:
        """What the page's process needs to read it."""
        if self._port is not None and self._file is not None:
            self._core.flush_captures()
            if os.fstat(self._file).st_size > MOST_TRACE:
                self._said["problem"] = (
                    "the trace has ended: it is long enough; choose the flow again to go on"
                )
                self._stop()
        return self._said

    def _stop(self) -> None:
        if self._port is not None:
            with suppress(TidegateError):
                self._core.end_capture(self._port)
            self._port = None

    def close(self) -> None:
        """End it."""
        self._stop()
        if self._file is not None:
            os.close(self._file)
            self._file = None
