"""Host agents: the part of a system that runs on a host, between its connections and its port.

    class Pacer(Agent):
        shims = (Report(Option("tcp", 253)),)

        def on_report(self, now, connection, kind, data):
            connection.pace(int.from_bytes(data) * 1000)

    net.agent(host, Pacer())

What is done to each packet is done by the agent's shims (`tidegate.hosts.shims`); the agent itself acts per connection: it hears of
connections and of what its shims report, ticks on a period, and limits what connections send. Times are picoseconds.

An agent that goes (`Attached.kill`) leaves nothing behind: its options vanish from what is sent from then on, and its limits are
lifted. Of several agents of a host the first is next to TCP, and the least of their limits holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Protocol

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts.shims import Option, Shim

if TYPE_CHECKING:
    from tidegate.control.runner import Runner
    from tidegate.network import Network, Node


class Core(Protocol):
    """What runs the shims: the simulator's `_core.HostAgents`, or `RealAgents`. Rates are in bit/s."""

    def add(self, host: int, shims: tuple[Shim, ...]) -> int:
        """Put an agent on a host; gives its number."""

    def remove(self, agent: int) -> None:
        """End an agent."""

    def pace(self, agent: int, connection: int, rate: int | None) -> None:
        """Limit a connection's rate."""

    def limit_cwnd(self, agent: int, connection: int, packets: int | None) -> None:
        """Limit a connection's packets in flight."""

    def send(self, agent: int, connection: int, place: str, kind: int, data: bytes) -> bool:
        """Send a pure ACK with an option; gives whether the connection is established."""

    def bytes_sent(self, connection: int) -> int | None:
        """Bytes that a connection has sent, modulo 2^32; None: it is not established, or has sent its FIN."""

    def take_news(self) -> list[tuple[int, int, int, str, int, bytes]]:
        """Time, agent, connection, what has happened, and of a report the option's kind and data."""

    def counts(self, agent: int) -> tuple[int, int, int, int]:
        """Packets dropped, packets held, options without room, options that were not believed."""

    def flow(self, connection: int) -> tuple[int, bool, tuple[str, str], tuple[int, int]]:
        """The flow's number, whether this end opened it, addresses and ports of this end and the other."""


@dataclass(eq=False)
class Connection:
    """One end of a TCP connection, as an agent of its host sees it."""

    number: int
    """No other end of a connection in the network has it."""
    flow: int
    """Number of the flow that it is of (`Flow.number`)."""
    active: bool
    """This end opened the connection."""
    source: str
    target: str
    """IPv4 addresses of this end and of the other."""
    source_port: int
    target_port: int
    _core: Core = field(repr=False)
    _agent: int = field(repr=False)

    def pace(self, rate: units.Rate | None) -> None:
        """Send at this rate of payload at most (`SO_MAX_PACING_RATE`); `None` lifts that.

        A higher rate holds from the next ACK on. As in Linux, a connection that was limited once goes on spacing what it sends.
        """
        bps = None if rate is None else units.rate(rate)
        if bps == 0:
            raise TidegateError(
                "a pacing rate of 0 lets nothing through; give one above 0, or None to lift it"
            )
        self._core.pace(self._agent, self.number, bps)

    def limit_cwnd(self, packets: int | None) -> None:
        """Have so many packets in flight at most; `None` lifts that."""
        if packets is not None and packets < 1:
            raise TidegateError(f"a window of {packets} packets lets nothing through; give at least 1")
        self._core.limit_cwnd(self._agent, self.number, packets)

    def in_namespace(self) -> AbstractContextManager[None]:
        """While this lasts, this thread is in the network namespace of the connection's host, which is a real one.

        For settings of the host that agents have no call for. Raises `TidegateError` in the simulator.
        """
        inside = getattr(self._core, "inside", None)
        if inside is None:
            raise TidegateError(
                "hosts of the simulator have no network namespace; this needs real hosts: run it with --backend live"
            )
        there: AbstractContextManager[None] = inside(self._agent)
        return there

    def bytes_sent(self) -> int | None:
        """A count of bytes that the connection has sent, once each, modulo 2^32; None: it is not established, or has sent its FIN.

        Differences between two calls are exact: it may start anywhere.
        """
        return self._core.bytes_sent(self.number)

    def send(self, option: Option, data: bytes) -> bool:
        """Send a pure ACK with an option, beside those that TCP sends; gives whether the connection is established.

        It acknowledges what TCP has acknowledged last, in the simulator what has come in order, and costs the data no room.
        """
        return self._core.send(self._agent, self.number, option.place, option.kind, data)


class Agent:
    """Base of agents. All methods may be left as they are."""

    shims: Sequence[Shim] = ()
    """What is done to each packet."""
    period: ClassVar[units.Time | None] = None
    """How often `tick` is called."""
    sysctls: ClassVar[Sequence[tuple[str, str]]] = ()
    """Settings of its host, where that is a real one: names below /proc/sys/net, and values."""

    def on_open(self, now: int, connection: Connection) -> None:
        """A connection is about to send its SYN, or has got one."""

    def on_established(self, now: int, connection: Connection) -> None:
        """A connection's handshake is done."""

    def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
        """A `Report` shim has seen an option of this kind with other data than before."""

    def on_closed(self, now: int, connection: Connection) -> None:
        """A connection is closed, reset or given up."""

    def tick(self, now: int, connections: Sequence[Connection]) -> None:
        """Called every `period`, with the connections that are open. Ticks that a slow agent has missed are left out."""


@dataclass(eq=False)
class Attached:
    """An agent on a host of a network; acts on the run that is going on."""

    host: Node
    agent: Agent
    _run: _Run | None = field(default=None, repr=False)

    def kill(self) -> None:
        """End the agent, as by `kill -9`: nothing is called any more, its options vanish, its limits are lifted."""
        self._running().kill()

    def counts(self) -> dict[str, int]:
        """What its shims have done: packets `dropped` and `held`, options that found `no_room`, options `refused`."""
        return self._running().counts()

    def _running(self) -> _Run:
        if self._run is None:
            name = type(self.agent).__name__
            raise TidegateError(f"the agent {name} of {self.host.name} is not running; call this from net.at")
        return self._run


class _Run:
    """An agent in a run."""

    def __init__(self, core: Core, attached: Attached) -> None:
        self._core = core
        self._agent = attached.agent
        self.number = core.add(attached.host.number, tuple(attached.agent.shims))
        self._connections: dict[int, Connection] = {}
        self.alive = True

    def kill(self) -> None:
        if self.alive:
            self.alive = False
            self._core.remove(self.number)

    def counts(self) -> dict[str, int]:
        dropped, held, no_room, refused = self._core.counts(self.number)
        return {"dropped": dropped, "held": held, "no_room": no_room, "refused": refused}

    def tick(self, now: int) -> None:
        self._agent.tick(now, tuple(self._connections.values()))

    def tell(self, now: int, number: int, what: str, kind: int, data: bytes) -> None:
        connection = self._connections.get(number)
        if connection is None:
            flow, active, (source, target), ports = self._core.flow(number)
            connection = Connection(number, flow, active, source, target, *ports, self._core, self.number)
            self._connections[number] = connection
        if what == "report":
            self._agent.on_report(now, connection, kind, data)
        elif what == "opened":
            self._agent.on_open(now, connection)
        elif what == "established":
            self._agent.on_established(now, connection)
        else:
            del self._connections[number]
            self._agent.on_closed(now, connection)


class HostAgents:
    """The agents of a run."""

    def __init__(self, network: Network, core: Core) -> None:
        self._core = core
        self._attached = network.agents
        self._runs: dict[int, _Run] = {}
        for attached in network.agents:
            run = _Run(self._core, attached)
            self._runs[run.number] = attached._run = run

    def plan(self, runner: Runner) -> None:
        """Have the runner call the agents that tick."""
        for attached in self._attached:
            run, period = attached._running(), attached.agent.period
            if period is None:
                continue
            every = units.given_time(period)
            if every == 0:
                raise TidegateError(
                    f"the agent {type(attached.agent).__name__} has a period of 0; give one above 0"
                )
            self._tick(runner, run, every, every)

    def _tick(self, runner: Runner, run: _Run, when: int, period: int) -> None:
        def call() -> None:
            if run.alive:
                run.tick(runner.now)
                self._tick(runner, run, runner.following(when, period), period)

        runner.at(when, call)

    def deliver(self) -> None:
        """Hand over what agents are to be told, until there is no more."""
        if not self._runs:
            return
        while news := self._core.take_news():
            for now, agent, connection, what, kind, data in news:
                run = self._runs[agent]
                if run.alive:
                    run.tell(now, connection, what, kind, data)

    def end(self) -> None:
        """The run has ended."""
        for attached in self._attached:
            attached._run = None
