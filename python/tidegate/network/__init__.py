"""Descriptions of networks: hosts, routers, links, flows, and timed actions.

    from tidegate.network import Network

    net = Network()
    left, right = net.router("left"), net.router("right")
    a, b = net.host("a"), net.host("b")
    net.link(a, left, rate="10 Gbit/s", delay="1 ms")
    net.link(b, right, rate="10 Gbit/s", delay="1 ms")
    bottleneck = net.link(left, right, rate="1 Gbit/s", delay="8 ms", queue="1667 packets")
    net.tcp(a, b, congestion_control="cubic")
    result = net.run("10 s")
    print(result.flows)

A description is data: nothing runs before `Network.run`, and the same description can be run again, with another seed.
Quantities are text with a unit, or whole numbers of the base unit (see `tidegate.units`). A bare number that is too small to be
meant so (`start=1`, `rate=10`) is refused, as everything that makes no sense, where it is written.
"""

from __future__ import annotations

from tidegate.network.classes import Classes
from tidegate.network.flows import FiveTuple, Flow, RequestResponse, TcpOptions
from tidegate.network.links import Link, queue_limit
from tidegate.network.network import Action, Network
from tidegate.network.nodes import Node, Switch
from tidegate.network.qdiscs import Qdisc

Page = RequestResponse
"""The former name."""

__all__ = [
    "Action",
    "Classes",
    "FiveTuple",
    "Flow",
    "Link",
    "Network",
    "Node",
    "Page",
    "Qdisc",
    "RequestResponse",
    "Switch",
    "TcpOptions",
    "queue_limit",
]
