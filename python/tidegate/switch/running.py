"""A switch that runs: a network of one P4 switch, whose ports lead to hosts outside by links that cost nothing unless told otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidegate import _core, logs, p4, units
from tidegate.control import SwitchApi
from tidegate.control.delivery import Distributor, Listener
from tidegate.control.readings import MAX_CELLS, Subject
from tidegate.specs import Wire
from tidegate.switch.ports import SwitchPort

log = logs.logger("tidegate.switch")

NO_RATE = 8_000_000_000_000
"""A byte in a picosecond: an interface is slower."""
LONGEST = 65_535
"""Bytes from the IP header on; interfaces have limits of their own."""
ON_WIRES = 256 << 20
"""Bytes of memory for frames that links with a delay hold, over all of them."""
LOOK_S = 0.2
LOOK = int(LOOK_S * units.PS_PER_S)
"""How often a wait looks whether it is to end."""


class LiveSwitch:
    """A P4 switch between real interfaces, while the `with` block runs.

    Controllers and servers work on `api` meanwhile, from any thread: what they do happens between packets.
    """

    def __init__(
        self,
        program: p4.Program,
        ports: Sequence[SwitchPort],
        *,
        name: str = "switch",
        queues: int = 1,
        queue_packets: int | None = 1000,
        queue_bytes: int | None = None,
        cpu_port: int | None = None,
        merge: bool = True,
        profile: str = "latency",
        processor: int | None = None,
        napi_threads: bool | None = None,
        threads: int = 1,
        seed: int = 0,
        metrics_cells: int | None = None,
    ) -> None:
        """`metrics_cells`: cells of each register, counter and meter that have series of their own.

        `processor`: where the switch's thread stays, and behind it further ones. `napi_threads`: the kernel receives on threads of
        its own; `None`: with the profile `throughput` and more than two processors. `threads`: each has a group of ports.
        """
        self.program = program
        self.name = name
        self.ports = tuple(sorted(ports, key=lambda port: port.number))
        self.queues = queues
        self._merge = merge
        self._profile = profile
        self._processor = processor
        self._napi_threads = napi_threads
        self.threads = max(1, min(threads, len(self.ports)))
        if queue_packets is not None:
            units.below(queue_packets, 1, 2**32, "a queue's limit in packets")
        units.seed(seed)
        self.core = _core.Simulation(seed)
        self.node = self.core.switch(name, program.core, queues, cpu_port, False)
        self.core.harden(self.node)
        self._wiring: list[tuple[int, str | None, str, str]] = []
        self.wires: dict[int, int] = {}
        """For captures: of each port the number in `core` of the other end of its link."""
        holding = sum(1 + port.both for port in self.ports if port.delay)
        most = ON_WIRES // max(holding, 1)
        for port in self.ports:
            host = self.core.host(port.interface)
            rate = NO_RATE if port.rate is None else units.rate(port.rate)
            framing = 0 if port.rate is None else 14
            delay = units.time(port.delay)
            go = Wire(
                rate,
                delay,
                queue_packets,
                queue_bytes,
                framing=framing,
                mtu=LONGEST,
                most=most if delay else None,
            )
            come = go if port.both else Wire(NO_RATE, 0, None, None, framing=0, mtu=LONGEST)
            self.wires[port.number], _ = self.core.link(host, self.node, come, go, b_number=port.number)
            self._wiring.append((host, port.netns, port.interface, port.kind))
        self.control = _core.SwitchControl.of_switch(self.core, self.node)
        names = {port.number: port.interface for port in self.ports}
        last = max(names, default=-1)
        self.api = SwitchApi(name, self.control, [names.get(n, "") for n in range(last + 1)], self._note)
        self.notes: dict[str, float] = {}
        """What controllers have noted last, by quantity."""
        self.server: Callable[[], dict[str, int]] = dict
        """What a P4Runtime server in front of it has counted, if there is one."""
        self.dropped: Callable[[], dict[str, int]] = dict
        """Messages that its controllers did not take in time."""
        self.subject = Subject(
            self.api,
            self.control,
            lambda: self.program,
            [port.number for port in self.ports],
            interfaces=lambda: [(port.number, port.interface) for port in self.ports],
            statistics=self.statistics,
            notes=lambda: self.notes,
            planes=lambda: self.server(),
            dropped=lambda: self.dropped(),
            cells=MAX_CELLS if metrics_cells is None else metrics_cells,
        )
        self.messages = Distributor(self.control)
        """What hands digests, packets and idle notices to controllers and servers."""

    def _note(self, now: int, switch: str, quantity: str, value: float) -> None:
        self.notes[quantity] = value

    def script(self, path: Path) -> list[str]:
        """Run a file of the reference switch's commands; return notes on those that have no effect."""
        return self.control.script(path)

    def __enter__(self) -> Self:
        """Open the ports and start. Raises `TidegateError` with nothing left behind."""
        self.core.go_live(
            self._wiring, self._merge, self._profile, self._processor, self._napi_threads, self.threads
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take down all that was put up."""
        self.core.end_live()

    def listen(self, listener: Listener) -> None:
        """Have `wait` hand over what the switch has for controllers."""
        self.core.watch(self.node)
        self.messages.listen(listener)

    def wait(
        self, ended: Callable[[], bool], beat: Callable[[], None] | None = None, every_s: float = LOOK_S
    ) -> None:
        """Hand over messages until `ended` says so; call `beat` now and then. Says what becomes of interfaces."""
        while not ended():
            end = self.core.now() + int(every_s * units.PS_PER_S)
            while not ended() and self.core.live_until(min(end, self.core.now() + LOOK)) < end:
                self.messages.poll()
            # What has come just before the end, of which nobody is told again.
            self.messages.poll()
            for said in self.core.live_messages():
                log.warning("%s", said)
            if beat is not None:
                beat()

    def statistics(self) -> dict[str, Any]:
        """What the ports have done, how late frames left, and how often the threads have woken up."""
        return self.core.live_statistics()
