"""An explicit rate after RCP (N. Dukkipati, "Rate Control Protocol (RCP)", PhD thesis, Stanford University, 2007): pacing's nearest kin.

A link tells all of its flows one rate R. Each T a controller computes R <- R (1 + T/d (alpha (C - y) - beta q/d) / C) from the capacity
C, the rate y that comes for the link, the queue q and the round trip d. The switch counts no flows.

In RCP a router computes this itself. Here a controller reads the switch's counter of bytes and its queue, and writes R into a
register; what it knows of d is the path's round trip without queues. Rates travel in the band, in an option of data packets and
SYNs, and back in ACKs and SYN-ACKs. Hosts are TCP with its congestion control, paced at R: a loss costs them a window, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.shims import Echo, Insert, Option, Report
from tidegate.network import Link, Network, Node, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.pacing.format import LARGEST, number, packed
from tidegate.systems.pacing.setup import forwarding

ALPHA, BETA = 0.4, 0.226
"""The gains of XCP (D. Katabi, M. Handley, C. Rohrs, SIGCOMM 2002), for which any round trip is stable."""
LEAST = 0.001
"""Of the capacity: R is never lower."""
FORWARD, BACK = Option("ip", 94), Option("ip", 158)
NO_RATE = b"\xff\xff"
PAYLOAD = 1444 / 1514
"""Of a frame with the option."""


@cache
def program() -> Program:
    """The data plane."""
    return compile_p4(Path(__file__).with_name("rcp.p4"))


def next_rate(
    rate: float, capacity: float, arriving: float, queued: float, period: float, rtt: float
) -> float:
    """RCP's law: bit/s, bits and seconds. The rate stays within 0.1 % of the capacity and all of it."""
    spare = ALPHA * (capacity - arriving) - BETA * queued / rtt
    changed = rate * (1 + period / rtt * spare / capacity)
    return min(max(changed, LEAST * capacity), capacity)


class RcpController(Controller):
    """Computes a link's rate."""

    clock = "1 us"

    def __init__(
        self, network: Network, switch: Switch, link: Link, rtt: units.Time, period: units.Time
    ) -> None:
        self.period = period
        self._ports = partial(forwarding, network, switch)
        self._port = partial(network.port, switch, link)
        self._capacity = link.forward.rate
        self._rtt = units.time(rtt) / units.PS_PER_S
        if self._rtt == 0:
            raise TidegateError("RCP divides by the round trip, which is 0; give a longer one")

    def start(self, switch: SwitchApi) -> None:
        """The first flow may take all."""
        for address, port in self._ports().items():
            switch.table_add("forward", [address], "to_port", [port])
        self._rate = float(self._capacity)
        self._bytes = 0
        self._before = 0
        self._tell(switch)

    def tick(self, now: int, switch: SwitchApi) -> None:
        """RCP's law, over the time since the last tick."""
        port = self._port()
        (count,) = switch.register_read("arrived", port, 1)
        elapsed, self._before = (now - self._before) / units.PS_PER_S, now
        arriving = 8 * ((int(count) - self._bytes) % 2**32) / elapsed
        self._bytes = int(count)
        queued = 8 * switch.queue_read(port).waiting_bytes
        self._rate = next_rate(self._rate, self._capacity, arriving, queued, elapsed, self._rtt)
        self._tell(switch)

    def _tell(self, switch: SwitchApi) -> None:
        switch.register_write("rate", [packed(min(int(self._rate) // 1000, LARGEST))], self._port())


class RcpSender(Agent):
    """Sends at the rate that comes back."""

    sysctls = (("ipv4/tcp_tso_rtt_log", "0"),)
    shims = (Insert(FORWARD, NO_RATE, on=("syn", "data")), Report(BACK))

    def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
        """A rate has come back."""
        if connection.active and len(data) == 2 and data != NO_RATE:
            connection.pace(max(round(number(int.from_bytes(data)) * 1000 * PAYLOAD), 1))


class RcpReceiver(Agent):
    """Sends back the rates that come."""

    shims = (Echo(FORWARD, BACK, on=("ack", "syn-ack")),)


def rcp_switch(network: Network, name: str) -> Switch:
    """Add a switch that tells rates."""
    return network.switch(name, program())


def rcp(
    network: Network, switch: Switch, link: Link, rtt: units.Time, senders: Iterable[Node], receiver: Node
) -> None:
    """Have a switch tell the flows of its link their rate, which is computed twice a round trip."""
    period = units.time(rtt) // 2
    network.control(RcpController(network, switch, link, rtt, period), switch)
    for host in senders:
        network.agent(host, RcpSender())
    network.agent(receiver, RcpReceiver())
