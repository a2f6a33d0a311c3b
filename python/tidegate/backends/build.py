"""The core's network, as described."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.control import operations as op
from tidegate.control.api import port_spec
from tidegate.network import Link, Network, Node, Switch
from tidegate.network.links import Change
from tidegate.specs import PageSpec, TcpSpec, UdpSpec, Wire

Ports = dict[int, tuple[int, int]]
"""The core's ports of each link, by its number: at its node a and at its node b."""


UNLIMITED = 1_000_000
"""Packets of the queue behind a port of a Linux router, which has its own."""


def linux_ends(network: Network) -> dict[tuple[Node, Link], int]:
    """The ports of Linux routers, and the number that the core's end of each has: that of a host, behind which the router is.

    Hosts come first, so that they have the same addresses.
    """
    ends = [
        (node, link)
        for node in network.nodes
        if node.linux
        for link in network.links
        if node in (link.a, link.b)
    ]
    return {end: len(network.nodes) + number for number, end in enumerate(ends)}


def build(network: Network, seed: int, *, with_flows: bool) -> tuple[_core.Simulation, Ports]:
    """The core's network, with what is to be recorded of its queues; with the flows, if its hosts are simulated."""
    core = _core.Simulation(seed)
    outside = {} if with_flows else linux_ends(network)
    _add_nodes(network, core, outside)
    ports = {}
    for link in network.links:
        a, b = outside.get((link.a, link), link.a.number), outside.get((link.b, link), link.b.number)
        # What is set for the start holds from it on, also for a packet that is sent at that very moment.
        onward, back = (network.wire_at(link, side, 0) for side in ("forward", "reverse"))
        onward = onward if a == link.a.number else _behind_linux(onward)
        back = back if b == link.b.number else _behind_linux(back)
        ports[link.number] = core.link(a, b, onward, back)
    if with_flows:
        _add_flows(network, core)
    for change in network.changes:
        if change.when > 0:
            core.change_link(change.when, port_of(ports, change), change.wire)
    for router, to, over in (*_routes_through(network, outside), *network.routes):
        if (router, over) in outside:
            continue
        core.set_route(router.number, to.number, ports[over.number][0 if over.a is router else 1])
    _add_taps(network, core, ports)
    for node in network.nodes:
        if isinstance(node, Switch):
            _configure(network, node, core)
    watched = [number for link in watched_links(network) for number in ports[link.number]]
    for number in watched:
        core.record_waits(number)
    if network.sampling is not None:
        core.record(network.sampling, with_flows, watched)
    return core, ports


def _add_nodes(network: Network, core: _core.Simulation, outside: Mapping[tuple[Node, Link], int]) -> None:
    for node in network.nodes:
        if isinstance(node, Switch):
            core.switch(node.name, node.program.core, node.queues, node.cpu_port, node.nanoseconds)
        elif node.kind == "host":
            core.host(node.name)
        else:
            core.router(node.name)
    for (node, link), end in outside.items():
        assert core.host(f"{node.name}.{link.name}") == end


def _add_taps(network: Network, core: _core.Simulation, ports: Ports) -> None:
    for link, switch, forward, reverse, every in network.taps:
        try:
            for tapped, number in zip(ports[link.number], (forward, reverse), strict=True):
                if number is not None:
                    core.tap(tapped, switch.number, number, every)
        except TidegateError as error:
            raise TidegateError(f"the tap of {link.name}: {error}") from None


def _configure(network: Network, switch: Switch, core: _core.Simulation) -> None:
    """The switch's ports and what its commands say."""
    surface = _core.SwitchControl.of_switch(core, switch.number)
    try:
        for link, port in switch.ports:
            surface.act(op.PortSet(network.port(switch, link), port_spec(port)))
    except TidegateError as error:
        raise TidegateError(f"switch {switch.name}: {error}") from None
    for line in switch.commands:
        try:
            surface.command(line)
        except TidegateError as error:
            raise TidegateError(f"switch {switch.name}: {line}: {error}") from None


def port_of(ports: Ports, change: Change) -> int:
    """The core's port that a change of a link is of."""
    return ports[change.link.number][0 if change.side == "forward" else 1]


def _behind_linux(wire: Wire) -> Wire:
    """A link's direction that a Linux router sends over: its queue is in the router."""
    return replace(wire, packets=UNLIMITED, bytes=None, aqm=None, aqm_salt=0, mark_above=None)


def _routes_through(
    network: Network, outside: Mapping[tuple[Node, Link], int]
) -> Iterator[tuple[Node, Node, Link]]:
    """Routes of plain routers to hosts that are behind a Linux router, which the core does not see through."""
    if not outside:
        return
    for node in network.nodes:
        if node.kind != "router" or node.linux:
            continue
        links = [link for link in network.links if node in (link.a, link.b)]
        for host, ways in network.ways(node).items():
            yield node, host, links[ways[0]]


def watched_links(network: Network) -> list[Link]:
    """The links whose queues are recorded, each once."""
    return list(dict.fromkeys(network.watched))


def _add_flows(network: Network, core: _core.Simulation) -> None:
    # The first flow of a page makes them all.
    pages = {page.flows[0].number for page in network.pages}
    for flow in network.flows:
        if isinstance(flow.spec, TcpSpec):
            core.tcp(flow.spec)
        elif isinstance(flow.spec, UdpSpec):
            core.udp(flow.spec)
        elif isinstance(flow.spec, PageSpec) and flow.number in pages:
            core.page(flow.spec)
