"""Puts a stamping switch into a network: the program for a format, and the controller that gives ports their full scale."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.network import Network, Node, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.stamping.controller import StampController
from tidegate.systems.stamping.field import Field, Scale


@cache
def _program(defines: tuple[str, ...]) -> Program:
    return compile_p4(Path(__file__).with_name("stamp.p4"), defines=defines)


def program(form: Field) -> Program:
    """The data plane that stamps in a format."""
    return _program(tuple(form.defines))


def stamping(
    network: Network,
    name: str,
    form: Field,
    *,
    clock: units.Time = "1 us",
    to_hosts: bool = True,
    **options: Any,
) -> Switch:
    """Add a switch that stamps at all of its ports, or with `to_hosts=False` at all but those to hosts. Hosts may be linked to it after this.

    `clock` is the unit in which the switch measures times. `options` are those of `Network.switch`. A run begins with an error if
    a path has more stamping switches than a vector has room for.
    """
    switch = network.switch(name, program(form), clock=clock, **options)
    scales = partial(_scales, network, switch, form, clock)
    network.control(StampController(partial(forwarding, network, switch), scales, to_hosts), switch)
    return switch


def forwarding(network: Network, switch: Switch) -> dict[str, int]:
    """The port of a switch to each host, by the host's Ethernet address. Hosts take turns at the ports of the shortest paths."""
    hosts = [node for node in network.nodes if node.kind == "host"]
    ways = network.ways(switch)
    return {
        network.mac(host): ways[host][turn % len(ways[host])]
        for turn, host in enumerate(hosts)
        if host in ways
    }


def _stamping(network: Network) -> dict[Switch, StampController]:
    """The switches that stamp, and the controller of each."""
    return {
        switch: known
        for known, switches in network.controllers
        if isinstance(known, StampController)
        for switch in switches
    }


def _stamps(controller: StampController, next_hop: Node) -> bool:
    """Whether the port to a neighbour stamps."""
    return controller.to_hosts or next_hop.kind != "host"


def _scales(network: Network, switch: Switch, form: Field, clock: units.Time) -> dict[int, Scale]:
    """The scale of each of a switch's ports that stamp."""
    form.demand_hops(_longest_path(network, switch) if form.fold == "vector" else 0)
    controller = _stamping(network)[switch]
    ends = [
        (link.forward, link.b) if link.a is switch else (link.reverse, link.a)
        for link in network.links
        if switch in (link.a, link.b)
    ]
    return {
        port: form.scale(wire.rate, tick=clock, mtu=wire.mtu)
        for port, (wire, next_hop) in enumerate(ends)
        if _stamps(controller, next_hop)
    }


def _longest_path(network: Network, switch: Switch) -> int:
    """The most switches that stamp on a path between two hosts; 0 for all switches but the first, as it is the same for all."""
    stamping = _stamping(network)
    if switch is not next(iter(stamping)):
        return 0
    hosts = list(network.ways(switch))
    firsts = {
        link.b if link.a is host else link.a
        for link in network.links
        for host in (link.a, link.b)
        if host in hosts
    }
    return max((_hops(network, first, host, stamping) for first in firsts for host in hosts), default=0)


def _hops(network: Network, node: Node, host: Node, stamping: dict[Switch, StampController]) -> int:
    """Ports that stamp from a node on to a host, on a shortest path."""
    hops = 0
    while node is not host:
        link = [each for each in network.links if node in (each.a, each.b)][network.ways(node)[host][0]]
        next_hop = link.b if link.a is node else link.a
        hops += isinstance(node, Switch) and node in stamping and _stamps(stamping[node], next_hop)
        node = next_hop
    return hops
