"""Linux routers of a lab: which interface leads to whom, and what cannot be one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tidegate.hosts import linux_port, linux_qdisc
from tidegate.lab.messages import RouterPort, SetUpRouter
from tidegate.network import Link, Network, Node, Switch
from tidegate.specs import Wire

MOST_ROUTERS = 1000
MOST_LINKS = 10_000
"""Of a router: names of interfaces have 15 characters."""


@dataclass(frozen=True)
class RouterPlan:
    """A Linux router: its links in the order of its interfaces `eth0`, `eth1`, ..."""

    node: Node
    links: tuple[Link, ...]
    set_up: SetUpRouter

    def wire(self, link: Link) -> Wire:
        """What it sends over."""
        return sent_over(self.node, link)


def sent_over(node: Node, link: Link) -> Wire:
    """The direction of a link that starts at a node."""
    return link.forward if link.a is node else link.reverse


def interface(number: int) -> str:
    """The name of a router's interface."""
    return f"eth{number}"


class Ways:
    """The next hops of a network with Linux routers, as Ethernet addresses: one by IP, all others forward by it as well."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.routers = [node for node in network.nodes if node.linux]
        self.links = {node: self._links_of(node) for node in network.nodes} if self.routers else {}
        self.to_hosts = cache(network.ways)

    def _links_of(self, node: Node) -> list[Link]:
        return [link for link in self._network.links if node in (link.a, link.b)]

    def mac(self, router: Node, link: Link) -> str:
        """The Ethernet address of a router's interface."""
        number = self.routers.index(router) << 16 | self.links[router].index(link)
        # Those of hosts begin with 02:00:00.
        return f"02:01:{number.to_bytes(4).hex(':')}"

    def _steps(self, node: Node, host: Node) -> Iterator[tuple[Node, Link]]:
        """Nodes behind this one on the way to a host, and the links by which they are reached; none if there is no way."""
        while node is not host and host in self.to_hosts(node):
            link = self.links[node][self.to_hosts(node)[host][0]]
            node = link.b if link.a is node else link.a
            yield node, link

    def next_mac(self, node: Node, host: Node) -> str:
        """Where packets for a host go: to the next Linux router on the way, or to the host."""
        if self.routers:
            for other, link in self._steps(node, host):
                if other.linux:
                    return self.mac(other, link)
        return self._network.mac(host)

    def switches_before(self, router: Node) -> list[str]:
        """P4 switches on the way of a host to this router, if it is the first: they forward by the Ethernet addresses of hosts."""
        found: dict[str, None] = {}
        hosts = [node for node in self._network.nodes if node.kind == "host"]
        for source in (*hosts, *self.routers):
            if source is router:
                continue
            for host in hosts:
                passed: list[str] = []
                for other, _ in self._steps(source, host):
                    if other is router:
                        found.update(dict.fromkeys(passed))
                    if other.linux:
                        break
                    if isinstance(other, Switch):
                        passed.append(other.name)
        return list(found)


def refusals(network: Network, ways: Ways) -> Iterator[str]:
    """What a Linux router cannot do."""
    for link, side in network.scheduled:
        fixed = link.fixed_in_live_runs(side)
        if fixed is not None:
            yield fixed
    if len(ways.routers) > MOST_ROUTERS:
        yield f"it has {len(ways.routers)} Linux routers; the lab has room for {MOST_ROUTERS}"
    for router in ways.routers:
        if len(ways.links[router]) > MOST_LINKS:
            yield f"{router.name}: it has {len(ways.links[router])} links; a Linux router has at most {MOST_LINKS}"
        for link in ways.links[router]:
            wire = sent_over(router, link)
            if wire.aqm is not None:
                yield f"{router.name}: its queue to {link.name} has aqm={wire.aqm!r}; the queues of a Linux router are HTB's, without an AQM"
            if wire.mark_above is not None:
                yield f"{router.name}: mark_above at {link.name}; the queues of a Linux router do not mark"
        for name in ways.switches_before(router):
            yield (
                f"{router.name}: the P4 switch {name} is between a host and this Linux router, and forwards by Ethernet addresses, which "
                "routers change; put the switch behind it, or take a router"
            )
    for router, _, over in network.routes:
        if router.linux:
            yield f"{router.name}: a route over {over.name}; a Linux router takes the shortest paths"
    for (router, _), qdisc in network.qdiscs.items():
        lacking = linux_qdisc.why_not(qdisc.kind)
        if lacking is not None:
            yield f"{router.name}: {lacking}"
    for classes in network.class_ports:
        if not classes.router.linux:
            continue
        why = linux_port.refusal(classes.port)
        if why is not None:
            yield f"{classes.name}: {why}"


def plans(network: Network, ways: Ways) -> list[RouterPlan]:
    """The plan of each Linux router."""
    hosts = [node for node in network.nodes if node.kind == "host"]
    made = []
    for router in ways.routers:
        links = ways.links[router]
        reached: dict[int, list[tuple[str, str]]] = {number: [] for number in range(len(links))}
        for host in hosts:
            by = ways.to_hosts(router).get(host)
            if by is not None:
                reached[by[0]].append((network.address(host), ways.next_mac(router, host)))
        ports = tuple(
            RouterPort(interface(number), ways.mac(router, link), tuple(reached[number]))
            for number, link in enumerate(links)
        )
        made.append(RouterPlan(router, tuple(links), SetUpRouter(ports)))
    return made
