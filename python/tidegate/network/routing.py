"""Paths through a network: shortest paths, routes set by hand, and the entries of a P4 switch's forwarding table."""

from __future__ import annotations

from tidegate._core import TidegateError, host_ipv4, host_mac
from tidegate.network.links import Link
from tidegate.network.nodes import Node, Switch
from tidegate.network.topology import Topology


class Routing(Topology):
    """Addresses of hosts, and paths to them."""

    def __init__(self) -> None:
        super().__init__()
        self.routes: list[tuple[Node, Node, Link]] = []
        # Index of each host among the hosts, valid for `_numbered` nodes.
        self._numbers: dict[Node, int] = {}
        self._numbered = 0

    def address(self, host: Node) -> str:
        """The IPv4 address of a host."""
        return host_ipv4(self._host_number(host))

    def mac(self, host: Node) -> str:
        """The Ethernet address of a host."""
        return host_mac(self._host_number(host))

    def _host_number(self, host: Node) -> int:
        if self._numbered != len(self.nodes):
            hosts = [node for node in self.nodes if node.kind == "host"]
            self._numbers = {node: number for number, node in enumerate(hosts)}
            self._numbered = len(self.nodes)
        if host not in self._numbers:
            raise TidegateError(f"{host.name} is not a host of this network")
        return self._numbers[host]

    def ways(self, node: Node) -> dict[Node, tuple[int, ...]]:
        """For each host that a node can reach, its ports on the shortest paths, as plain routers use them.

        For filling a P4 switch's tables; several ports for a host are equal-cost paths.
        """
        neighbours: dict[Node, list[tuple[int, Node]]] = {each: [] for each in self.nodes}
        for link in self.links:
            for one, other in ((link.a, link.b), (link.b, link.a)):
                neighbours[one].append((len(neighbours[one]), other))
        # Hops from the node, and the ports on the shortest paths; other hosts do not forward.
        distance, ports, edge = {node: 0}, {node: frozenset[int]()}, [node]
        for one in edge:
            for port, other in neighbours[one]:
                by = frozenset([port]) if one is node else ports[one]
                if other not in distance:
                    distance[other], ports[other] = distance[one] + 1, by
                    if other.kind != "host":
                        edge.append(other)
                elif distance[other] == distance[one] + 1:
                    ports[other] |= by
        hosts = [host for host in self.nodes if host.kind == "host" and host is not node]
        return {host: tuple(sorted(ports[host])) for host in hosts if host in ports}

    def forwarding(self, switch: Switch) -> dict[str, int]:
        """The port of a switch on the shortest path to each host, by the host's Ethernet address."""
        return {self.mac(host): ports[0] for host, ports in self.ways(switch).items()}

    def route(self, router: Node, to: Node, over: Link) -> None:
        """Send packets for host `to` over that link of a router, instead of the shortest path."""
        self._demand_link(over, "the link of a route")
        self._demand_node(to, "the end of a route")
        if router not in (over.a, over.b):
            raise TidegateError(
                f"the route of {router.name} to {to.name}: {over.name} is not a link of {router.name}"
            )
        self.routes.append((router, to, over))
