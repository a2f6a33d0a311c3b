"""A simulation in the dashboard while it runs: what there is ten times a second, pause and step, and the packets of a chosen flow."""

from __future__ import annotations

import struct
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from tidegate import _core, units
from tidegate._core import TidegateError
from tidegate.backends.build import Ports
from tidegate.network import Network
from tidegate.results import Note
from tidegate.specs import TcpSpec
from tidegate.units import PS_PER_S
from tidegate.view.frames import pack

PERIOD_S = 0.1
WORTH = 40
"""A look comes when the simulation has had so many times the processor time of the last one: looking takes 2.5 % at most."""
TRACED = 40
"""Packets of a chosen flow that are shown."""
SNAP = 128
MOST_TRACE = 64 << 20
"""Bytes of packets that are looked at for one choice."""
HEAD, RECORD = 24, 16
FLAGS = (
    (0x02, "SYN"),
    (0x01, "FIN"),
    (0x04, "RST"),
    (0x08, "PSH"),
    (0x10, "ACK"),
    (0x40, "ECE"),
    (0x80, "CWR"),
)


class Running:
    """Watches the simulations of this process, one after the other (`backends.common.Watcher`)."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self._epoch = 0
        self._about: dict[str, Any] = {"title": "starting", "kind": "running", "nodes": [], "links": []}
        self._number = 0
        self._frame: bytes | None = None
        self._paused = False
        self._step: int | None = None
        self._asked: int | None = None
        self._trace: _Trace | None = None
        self._network: Network | None = None
        self._ended = False

    # What the page asks, on the server's thread.

    def about(self) -> tuple[int, dict[str, Any]]:
        """What the network is."""
        with self._lock:
            return self._epoch, self._about

    def frame(self) -> tuple[int, bytes | None]:
        """What there is now."""
        with self._lock:
            return self._number, self._frame

    def command(self, said: dict[str, Any]) -> None:
        """`{"pause": true}`, `{"step": "10 ms"}`, `{"trace": 3}`."""
        with self._lock:
            if "pause" in said:
                self._paused, self._step = bool(said["pause"]), None
            if "step" in said:
                try:
                    self._step = max(1, units.time(str(said["step"])[:40]))
                except TidegateError as error:
                    raise ValueError(str(error)) from None
                self._paused = False
            if "trace" in said:
                flow = said["trace"]
                if (
                    type(flow) is not int
                    or self._network is None
                    or not -1 <= flow < len(self._network.flows)
                ):
                    raise ValueError(flow)
                self._asked = flow
            self._lock.notify_all()

    # What the simulation calls, on its own thread.

    def begin(
        self, network: Network, core: _core.Simulation, ports: Ports, notes: list[Note], until: int
    ) -> None:
        """A simulation begins."""
        self._network, self._core, self._notes, self._until = network, core, notes, until
        self._ports = [port for link in network.links for port in ports[link.number]]
        self._by_link = ports
        self._last_look = self._spent_at = self._cost = 0.0
        self._last: tuple[int, Any, Any] | None = None
        self._rates: dict[str, Any] = {}
        self._said = 0
        self._noted: dict[str, float] = {}
        self._stop_at: int | None = None
        names = [
            name
            for link in network.links
            for name in (f"{link.a.name} -> {link.b.name}", f"{link.b.name} -> {link.a.name}")
        ]
        numbers = {node.number: at for at, node in enumerate(network.nodes)}
        with self._lock:
            self._epoch += 1
            self._ended = False
            self._about = {
                "title": f"simulation {self._epoch}",
                "kind": "running",
                "until_s": until / PS_PER_S,
                "nodes": [[node.name, node.kind] for node in network.nodes],
                "links": [
                    [numbers[link.a.number], numbers[link.b.number], *names[2 * at : 2 * at + 2]]
                    for at, link in enumerate(network.links)
                ],
                "rates_mbps": [
                    wire.rate / 1e6 for link in network.links for wire in (link.forward, link.reverse)
                ],
                "queues": names,
                "flows": [flow.label for flow in network.flows],
            }
        self.look(0)

    def limit(self, now: int) -> int | None:
        """Where the next slice has to end."""
        with self._lock:
            if self._step is not None:
                self._stop_at, self._step = now + self._step, None
        return self._stop_at

    def look(self, now: int) -> None:
        """Look at the simulation, if it is time; wait while it is paused."""
        reached = self._stop_at is not None and now >= self._stop_at
        if reached:
            self._stop_at = None
            with self._lock:
                self._paused = True
        if reached or (
            time.monotonic() - self._last_look >= PERIOD_S
            and time.thread_time() - self._spent_at >= WORTH * self._cost
        ):
            self._take(now)
        while self._paused:
            # Not for ever: Ctrl-C comes between two waits.
            with self._lock:
                self._lock.wait(PERIOD_S)
            self._take(now)

    def end(self, now: int) -> None:
        """The simulation has ended."""
        with self._lock:
            self._ended = True
        self._take(now)
        if self._trace is not None:
            self._trace.close()
            self._trace = None

    def _take(self, now: int) -> None:
        began = time.thread_time()
        flows, queues = (pl.DataFrame(part) for part in self._core.snapshot(self._ports))
        assert self._network is not None
        columns = self._flow_columns(flows) | self._queue_columns(queues)
        received, sent = columns.pop("received"), columns.pop("sent")
        fresh = self._last is None or now > self._last[0]
        if self._last is None:
            self._rates = {
                "flow rate_mbps": np.full(len(received), np.nan),
                "queue rate_mbps": np.full(len(sent), np.nan),
            }
        elif fresh:
            spent = (now - self._last[0]) / PS_PER_S
            self._rates = {
                "flow rate_mbps": np.maximum(received - self._last[1], 0.0) * 8e-6 / spent,
                "queue rate_mbps": (sent - self._last[2]) * 8e-6 / spent,
            }
        rates = self._rates
        if fresh:
            self._last = (now, received, sent)
        for _, switch, quantity, value in self._notes[self._said :]:
            self._noted[f"{switch} {quantity}"] = value
        self._said = len(self._notes)
        header = {
            "kind": "running",
            "t": now / PS_PER_S,
            "fresh": fresh,
            "paused": self._paused,
            "ended": self._ended,
            "notes": dict(list(self._noted.items())[:200]),
            "trace": self._traced(),
        }
        packed = pack(header, rates | columns)
        self._last_look, self._spent_at = time.monotonic(), time.thread_time()
        self._cost = self._spent_at - began
        with self._lock:
            self._frame = packed
            self._number += 1

    def _flow_columns(self, flows: pl.DataFrame) -> dict[str, Any]:
        assert self._network is not None
        count = len(self._network.flows)
        at = flows["flow"].to_numpy().astype(np.int64)
        # A flow that has ended has what it had.
        received = np.zeros(count) if self._last is None else self._last[1].copy()
        received[at] = flows["bytes_received"].to_numpy()
        columns: dict[str, Any] = {"received": received}
        for name, column, unit in (
            ("cwnd_packets", "cwnd", 1),
            ("srtt_ms", "srtt", 1e9),
            ("retransmits", "retransmits", 1),
        ):
            values = np.full(count, np.nan)
            values[at] = flows[column].to_numpy() / unit
            columns[f"flow {name}"] = values
        return columns

    def _queue_columns(self, queues: pl.DataFrame) -> dict[str, Any]:
        # A switch's port has several queues: their packets are summed, and the longest delay counts.
        by_port = queues
        if queues.height > len(self._ports):
            by_port = queues.group_by("port", maintain_order=True).agg(
                pl.col("packets").sum(),
                pl.col("delay").max(),
                pl.col("dropped").sum(),
                pl.col("sent_bytes").first(),
            )
        return {
            "sent": by_port["sent_bytes"].to_numpy().astype(np.float64),
            "queue packets": by_port["packets"].to_numpy(),
            "queue delay_ms": by_port["delay"].to_numpy() / 1e9,
            "queue dropped": by_port["dropped"].to_numpy(),
        }

    def _traced(self) -> dict[str, Any] | None:
        with self._lock:
            asked, self._asked = self._asked, None
        if asked is not None:
            if self._trace is not None:
                self._trace.close()
                self._trace = None
            if asked >= 0 and self._network is not None:
                self._trace = _Trace(self._network, self._core, self._by_link, asked)
        return self._trace.look() if self._trace is not None else None


class _Trace:
    """The packets of a flow at its source, from now on."""

    def __init__(self, network: Network, core: _core.Simulation, ports: Ports, number: int) -> None:
        self._core, self._number = core, number
        self._packets: deque[list[Any]] = deque(maxlen=TRACED)
        self._problem = ""
        self._read = HEAD
        self._port: int | None = None
        flow = network.flows[number]
        udp = flow.kind == "udp"
        apart = [one for one in network.flows if (one.kind == "udp") == udp]
        self._pair = set(_core.flow_ports(apart.index(flow), udp))
        self._folder = tempfile.TemporaryDirectory(prefix="tidegate-trace-")
        self._file = Path(self._folder.name) / "trace.pcap"
        source = flow.target if not isinstance(flow.spec, TcpSpec) and not udp else flow.source
        link = next((one for one in network.links if source in (one.a, one.b)), None)
        if link is None:
            self._problem = f"{source.name} has no link"
            return
        port = ports[link.number][0 if link.a is source else 1]
        try:
            core.capture(port, self._file, SNAP)
            self._port = port
        except TidegateError as error:
            self._problem = str(error)

    def look(self) -> dict[str, Any]:
        """The newest packets."""
        if self._port is not None:
            self._core.flush_captures()
            with self._file.open("rb") as file:
                file.seek(self._read)
                data = file.read()
            self._read += self._parse(data)
            if self._read > MOST_TRACE:
                self._problem = "the trace has ended: it is long enough; choose the flow again to go on"
                self._stop()
        return {"flow": self._number, "packets": list(self._packets), "problem": self._problem}

    def _parse(self, data: bytes) -> int:
        at = 0
        while at + RECORD <= len(data):
            seconds, nanoseconds, length, wire = struct.unpack_from("<IIII", data, at)
            if at + RECORD + length > len(data):
                break
            with suppress(struct.error, IndexError):
                self._packet(seconds + nanoseconds / 1e9, data[at + RECORD : at + RECORD + length], wire)
            at += RECORD + length
        return at

    def _packet(self, time_s: float, frame: bytes, wire: int) -> None:
        if frame[12:14] != b"\x08\x00":
            return
        ip = frame[14:]
        transport = ip[4 * (ip[0] & 15) :]
        source, target = struct.unpack_from(">HH", transport)
        if {source, target} != self._pair:
            return
        seq = ack = None
        flags = ""
        if ip[9] == 6:
            seq, ack, _, bits = struct.unpack_from(">IIBB", transport, 4)
            flags = " ".join(name for bit, name in FLAGS if bits & bit)
        ecn = ("", "ECT(1)", "ECT(0)", "CE")[ip[1] & 3]
        self._packets.append([time_s, f"{source} > {target}", flags, seq, ack, wire, ecn])

    def _stop(self) -> None:
        if self._port is not None:
            with suppress(TidegateError):
                self._core.end_capture(self._port)
            self._port = None

    def close(self) -> None:
        """End it; nothing is left."""
        self._stop()
        self._folder.cleanup()
