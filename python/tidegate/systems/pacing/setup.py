"""Puts pacing into a network: switches that know their links' flows, and hosts that send at the rate they are told."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.network import Link, Network, Node, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.controller import APPENDED, RESERVE, ManagedLink, PacingController

OWN = ("tick", "idle", "again", "keys", "share_by", "trace", "notices_by")


PLACES = 3 << 16
"""For flows, of a switch."""


@cache
def program(places: int = PLACES) -> Program:
    """The data plane, with places for so many flows: 3 times a power of 2, from 6 to 196 608."""
    bits = max(places // 3, 1).bit_length() - 1
    if places != 3 << bits or not 1 <= bits <= 16:
        raise TidegateError(
            f"a pacing switch cannot have {places} places; give 3 times a power of 2, from 6 to {PLACES}"
        )
    return compile_p4(Path(__file__).with_name("pacing.p4"), defines=[f"WAY_BITS={bits}"])


def pacing(
    network: Network, name: str, *, reserve: float = RESERVE, places: int = PLACES, **options: Any
) -> Switch:
    """Add a switch that manages its links to other nodes. Hosts may be linked to it after this. It has `places` for flows.

    A link is managed in the direction from the switch. Options that `PacingController` has go to it (`tick`, `idle`, `again`,
    `keys`, `share_by`, `trace`, `notices_by`), the others to `Network.switch`.
    """
    own = {option: options.pop(option) for option in OWN if option in options}
    switch = network.switch(name, program(places), **options)
    links = partial(_links, network, switch, reserve)
    network.control(PacingController(partial(forwarding, network, switch), links, **own), switch)
    return switch


def paced(network: Network, host: Node, **options: Any) -> PacingAgent:
    """Have a host ask for its flows to be paced. `options` are those of `PacingAgent`."""
    agent = PacingAgent(**options)
    network.agent(host, agent)
    return agent


def forwarding(network: Network, switch: Switch) -> dict[str, int]:
    """The port of a switch to each host, by the host's Ethernet address. Hosts take turns at the ports of the shortest paths."""
    hosts = [node for node in network.nodes if node.kind == "host"]
    ways = network.ways(switch)
    return {
        network.mac(host): ways[host][turn % len(ways[host])]
        for turn, host in enumerate(hosts)
        if host in ways
    }


def wires(network: Network, switch: Switch) -> Iterable[tuple[int, Link, Any]]:
    """Ports of a switch, with their links and the direction that leaves the switch."""
    links = [link for link in network.links if switch in (link.a, link.b)]
    for port, link in enumerate(links):
        yield port, link, link.forward if link.a is switch else link.reverse


def _links(network: Network, switch: Switch, reserve: float) -> dict[int, ManagedLink]:
    numbers = _numbers(network)
    _room_for_traces(network)
    return {
        port: ManagedLink(wire.rate, numbers[switch, port], reserve, wire.mtu + wire.framing)
        for port, _, wire in wires(network, switch)
    }


def _room_for_traces(network: Network) -> None:
    """Where traces are appended, a SYN-ACK has to have room for all switches of a path."""
    appending = {
        switch
        for known, switches in network.controllers
        if isinstance(known, PacingController) and known.trace == "append"
        for switch in switches
    }
    if len(appending) <= APPENDED:
        return
    ways = {node: network.ways(node) for node in network.nodes}
    beside: dict[Node, list[Node]] = {node: [] for node in network.nodes}
    for link in network.links:
        beside[link.a].append(link.b)
        beside[link.b].append(link.a)
    for source in network.nodes:
        for target, ports in ways[source].items() if source.kind == "host" else ():
            node, passed, port = source, 0, ports[0]
            while node is not target:
                node = beside[node][port]
                passed += node in appending
                port = ways[node][target][0] if node is not target else 0
            if passed > APPENDED:
                raise TidegateError(
                    f"the path from {source.name} to {target.name} has {passed} pacing switches, and a SYN-ACK has room for the "
                    f'traces of {APPENDED}; give the switches trace="narrowest"'
                )


def _numbers(network: Network) -> dict[tuple[Switch, int], int]:
    """A number for each managed link of the network."""
    pacing = [
        one for known, ones in network.controllers if isinstance(known, PacingController) for one in ones
    ]
    managed = [(switch, port) for switch in pacing for port, _, _ in wires(network, switch)]
    if len(managed) > 254:
        raise TidegateError(
            f"this network has {len(managed)} managed links; a pacing option tells 254 apart: "
            "give the links of distinct paths numbers of their own with PacingController"
        )
    return {key: number for number, key in enumerate(managed, 1)}
