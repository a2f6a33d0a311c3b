"""Topologies for experiments: dumbbell, parking lot, leaf-spine, Clos.

    from tidegate.network import Network
    from tidegate.topologies import dumbbell

    net = Network()
    bell = dumbbell(net, 10, bottleneck={"rate": "1 Gbit/s", "delay": "8 ms", "queue": "1 BDP", "rtt": "20 ms"})
    for source, target in bell.pairs:
        net.tcp(source, target)
    net.record("10 ms", queues=[bell.bottleneck])

Each function adds nodes and links to a network and gives them back by name. Links are described by the keywords of
`Network.link`; what is left out has the default that the function names. Routers are plain ones unless `switch` makes others:

    dumbbell(net, 10, switch=lambda net, name: net.switch(name, "router.p4"))

P4 switches forward by their tables, which are for the caller to fill (`Network.port`, `Network.address`). `prefix` goes in
front of every name, so that one network can hold several.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, cast

from tidegate import units
from tidegate._core import TidegateError
from tidegate.network import Link, Network, Node
from tidegate.suggest import did_you_mean

MakeSwitch = Callable[[Network, str], Node]


class LinkOptions(TypedDict, total=False):
    """Keywords of `Network.link`."""

    rate: units.Rate
    delay: units.Time
    queue: str
    rtt: units.Time
    mark_above: int | None
    framing: int
    loss: float
    burst_loss: tuple[float, float, float, float] | None
    jitter: units.Time
    reorder: float
    reorder_by: units.Time
    duplicate: float
    mtu: int


def _router(net: Network, name: str) -> Node:
    return net.router(name)


def _options(topology: str, what: str, given: LinkOptions | None, default: LinkOptions) -> LinkOptions:
    given = given or {}
    known = LinkOptions.__annotations__
    for name in given:
        if name not in known:
            raise TidegateError(
                f"{topology}: {what} has no option {name!r}; {did_you_mean(name, known)}known: {', '.join(known)}"
            )
    return cast("LinkOptions", {**default, **given})


WITHIN_HOST = "1 Tbit/s"
"""Between a host and its own port, where that is a switch."""


def _counts(topology: str, **counts: int) -> None:
    for name, count in counts.items():
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise TidegateError(f"{topology}: {name} is {count!r}; give a whole number of at least 1")


def _connect(net: Network, a: Node, b: Node, options: LinkOptions) -> Link:
    return net.link(a, b, **options)


@dataclass(frozen=True)
class Dumbbell:
    """Pairs of hosts on two sides of one link."""

    left: Node
    right: Node
    sources: tuple[Node, ...]
    targets: tuple[Node, ...]
    bottleneck: Link
    """From `left` to `right`."""
    access: tuple[Link, ...]
    """Links of the hosts, in pairs: of the first source, of the first target, of the second source, ..."""

    @property
    def pairs(self) -> tuple[tuple[Node, Node], ...]:
        """Source and target of each pair."""
        return tuple(zip(self.sources, self.targets, strict=True))


def dumbbell(
    net: Network,
    pairs: int,
    *,
    bottleneck: LinkOptions | None = None,
    access: LinkOptions | None = None,
    switch: MakeSwitch = _router,
    prefix: str = "",
) -> Dumbbell:
    """Hosts `a0`, `a1`, ... at `left`, hosts `b0`, `b1`, ... at `right`, one link between `left` and `right`.

    Defaults: a bottleneck of 1 Gbit/s and 8 ms with 1000 packets; access links of 10 Gbit/s and 1 ms with 100 000 packets,
    which makes a base RTT of 20 ms.

    >>> net = Network()
    >>> dumbbell(net, 2).bottleneck
    <link left - right: 1 Gbit/s, 8 ms, queue of 1000 packets>
    >>> net
    <Network: 4 hosts, 2 routers, 5 links>
    """
    _counts("dumbbell", pairs=pairs)
    middle = _options("dumbbell", "bottleneck", bottleneck, {"rate": "1 Gbit/s", "delay": "8 ms"})
    edge = _options(
        "dumbbell", "access", access, {"rate": "10 Gbit/s", "delay": "1 ms", "queue": "100000 packets"}
    )
    left, right = switch(net, f"{prefix}left"), switch(net, f"{prefix}right")
    between = _connect(net, left, right, middle)
    sources, targets, links = [], [], []
    for i in range(pairs):
        source, target = net.host(f"{prefix}a{i}"), net.host(f"{prefix}b{i}")
        links += [_connect(net, source, left, edge), _connect(net, target, right, edge)]
        sources.append(source)
        targets.append(target)
    return Dumbbell(left, right, tuple(sources), tuple(targets), between, tuple(links))


@dataclass(frozen=True)
class ParkingLot:
    """Several bottlenecks in a row: some flows cross all of them, others one each."""

    routers: tuple[Node, ...]
    bottlenecks: tuple[Link, ...]
    """Link i goes from router i to router i + 1."""
    long: tuple[tuple[Node, Node], ...]
    """Source and target of the pairs over all bottlenecks."""
    cross: tuple[tuple[tuple[Node, Node], ...], ...]
    """For each bottleneck, source and target of the pairs that cross only this one."""
    access: tuple[Link, ...]
    """Links of the hosts: those of the long pairs first, each source before its target."""


def parking_lot(
    net: Network,
    hops: int,
    *,
    long_pairs: int = 1,
    cross_pairs: int = 1,
    bottleneck: LinkOptions | None = None,
    access: LinkOptions | None = None,
    switch: MakeSwitch = _router,
    prefix: str = "",
) -> ParkingLot:
    """`hops` bottlenecks between routers `r0`, `r1`, ...; long pairs `a0`, `b0`, ...; pairs `a0.1`, `b0.1` over bottleneck 0.

    Defaults: bottlenecks of 100 Mbit/s and 5 ms with 1000 packets, access links of 1 Gbit/s and 1 ms with 100 000.

    >>> parking_lot(Network(), 2).cross
    (((<host a0.1>, <host b0.1>),), ((<host a1.1>, <host b1.1>),))
    """
    _counts("parking lot", hops=hops, long_pairs=long_pairs, cross_pairs=cross_pairs)
    middle = _options("parking lot", "bottleneck", bottleneck, {"rate": "100 Mbit/s", "delay": "5 ms"})
    edge = _options(
        "parking lot", "access", access, {"rate": "1 Gbit/s", "delay": "1 ms", "queue": "100000 packets"}
    )
    routers = [switch(net, f"{prefix}r{i}") for i in range(hops + 1)]
    bottlenecks = [_connect(net, routers[i], routers[i + 1], middle) for i in range(hops)]
    links: list[Link] = []

    def pair(name: str, first: Node, last: Node) -> tuple[Node, Node]:
        source, target = net.host(f"{prefix}a{name}"), net.host(f"{prefix}b{name}")
        links.extend([_connect(net, source, first, edge), _connect(net, target, last, edge)])
        return source, target

    long = [pair(f"{i}", routers[0], routers[-1]) for i in range(long_pairs)]
    cross = [
        tuple(pair(f"{hop}.{i + 1}", routers[hop], routers[hop + 1]) for i in range(cross_pairs))
        for hop in range(hops)
    ]
    return ParkingLot(tuple(routers), tuple(bottlenecks), tuple(long), tuple(cross), tuple(links))


@dataclass(frozen=True)
class LeafSpine:
    """Hosts under leaves, every leaf linked to every spine."""

    hosts: tuple[Node, ...]
    """Those of the first leaf first."""
    leaves: tuple[Node, ...]
    spines: tuple[Node, ...]
    access: tuple[Link, ...]
    """The link of each host, from host to leaf."""
    fabric: tuple[tuple[Link, ...], ...]
    """For each leaf its links to the spines, from leaf to spine."""

    def under(self, leaf: int) -> tuple[Node, ...]:
        """The hosts of a leaf, by its number."""
        each = len(self.hosts) // len(self.leaves)
        return self.hosts[leaf * each : (leaf + 1) * each]


def leaf_spine(
    net: Network,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    *,
    access: LinkOptions | None = None,
    fabric: LinkOptions | None = None,
    switch: MakeSwitch = _router,
    port: MakeSwitch | None = None,
    prefix: str = "",
) -> LeafSpine:
    """Hosts `h0`, `h1`, ..., leaves `leaf0`, ..., spines `spine0`, ...; flows are split over the spines.

    With `port` a host's own port is a switch, `nic0`, ..., which can do what switches do; the link from host to port takes no time.
    Defaults: access links of 10 Gbit/s and 2 us, fabric links of 40 Gbit/s and 2 us, each with 1000 packets.

    >>> leaf_spine(Network(), leaves=2, spines=2, hosts_per_leaf=2).under(1)
    (<host h2>, <host h3>)
    """
    _counts("leaf-spine", leaves=leaves, spines=spines, hosts_per_leaf=hosts_per_leaf)
    edge = _options("leaf-spine", "access", access, {"rate": "10 Gbit/s", "delay": "2 us"})
    middle = _options("leaf-spine", "fabric", fabric, {"rate": "40 Gbit/s", "delay": "2 us"})
    hosts = [net.host(f"{prefix}h{i}") for i in range(leaves * hosts_per_leaf)]
    lower = [switch(net, f"{prefix}leaf{i}") for i in range(leaves)]
    upper = [switch(net, f"{prefix}spine{i}") for i in range(spines)]
    ends = [host if port is None else port(net, f"{prefix}nic{i}") for i, host in enumerate(hosts)]
    for host, end in zip(hosts, ends, strict=True):
        if end is not host:
            within = {name: value for name, value in edge.items() if name in ("framing", "mtu")}
            _connect(net, host, end, cast("LinkOptions", {**within, "rate": WITHIN_HOST, "delay": 0}))
    links = [_connect(net, end, lower[i // hosts_per_leaf], edge) for i, end in enumerate(ends)]
    up = [tuple(_connect(net, leaf, spine, middle) for spine in upper) for leaf in lower]
    return LeafSpine(tuple(hosts), tuple(lower), tuple(upper), tuple(links), tuple(up))


@dataclass(frozen=True)
class Clos:
    """Three levels of switches: top of rack, aggregation in pods, core."""

    hosts: tuple[Node, ...]
    """Those of the first rack first."""
    tors: tuple[Node, ...]
    """Those of the first pod first; so are the aggregation switches."""
    aggregations: tuple[Node, ...]
    cores: tuple[Node, ...]
    access: tuple[Link, ...]
    """The link of each host, from host to ToR."""
    pod_links: tuple[tuple[Link, ...], ...]
    """For each ToR its links to the aggregation switches of its pod, from ToR to aggregation."""
    core_links: tuple[tuple[Link, ...], ...]
    """For each aggregation switch its links to the cores, from aggregation to core."""


def clos(
    net: Network,
    *,
    pods: int = 4,
    tors_per_pod: int = 3,
    hosts_per_tor: int = 16,
    aggregations_per_pod: int = 2,
    cores: int = 2,
    access: LinkOptions | None = None,
    pod: LinkOptions | None = None,
    core: LinkOptions | None = None,
    spread: str = "flow",
    switch: MakeSwitch = _router,
    prefix: str = "",
) -> Clos:
    """Hosts `h0`, ..., switches `tor0`, ..., `agg0`, ..., `core0`, ...; every aggregation switch is linked to every core.

    `spread` selects the load balancing. `flow`: each flow takes a path at random. `destination`: all packets for host d go over
    aggregation switch d mod A and core (d div A) mod C, for A aggregation switches and C cores (plain routers only).

    Defaults: 192 hosts at 1 Gbit/s, 10 Gbit/s within a pod, 40 Gbit/s to the cores, 5 us and 200 packets everywhere.

    >>> net = Network()
    >>> made = clos(net)
    >>> net
    <Network: 192 hosts, 22 routers, 232 links>
    """
    _counts(
        "clos",
        pods=pods,
        tors_per_pod=tors_per_pod,
        hosts_per_tor=hosts_per_tor,
        aggregations_per_pod=aggregations_per_pod,
        cores=cores,
    )
    if spread not in ("flow", "destination"):
        raise TidegateError(f"clos: spread is {spread!r}; known: flow, destination")
    short: LinkOptions = {"delay": "5 us", "queue": "200 packets"}
    edge = _options("clos", "access", access, {**short, "rate": "1 Gbit/s"})
    within = _options("clos", "pod", pod, {**short, "rate": "10 Gbit/s"})
    above = _options("clos", "core", core, {**short, "rate": "40 Gbit/s"})
    k = aggregations_per_pod
    hosts = [net.host(f"{prefix}h{i}") for i in range(pods * tors_per_pod * hosts_per_tor)]
    tors = [switch(net, f"{prefix}tor{i}") for i in range(pods * tors_per_pod)]
    aggregations = [switch(net, f"{prefix}agg{i}") for i in range(pods * k)]
    tops = [switch(net, f"{prefix}core{i}") for i in range(cores)]
    links = [_connect(net, host, tors[i // hosts_per_tor], edge) for i, host in enumerate(hosts)]
    up = []
    for i, tor in enumerate(tors):
        first = i // tors_per_pod * k
        up.append(tuple(_connect(net, tor, agg, within) for agg in aggregations[first : first + k]))
    over = [tuple(_connect(net, agg, top, above) for top in tops) for agg in aggregations]
    made = Clos(
        tuple(hosts), tuple(tors), tuple(aggregations), tuple(tops), tuple(links), tuple(up), tuple(over)
    )
    if spread == "destination":
        if any(node.kind != "router" for node in (*tors, *aggregations, *tops)):
            raise TidegateError(
                "clos: spread='destination' sets the routes of plain routers; fill the tables of P4 switches yourself"
            )
        _by_destination(net, made, tors_per_pod, hosts_per_tor)
    return made


def _by_destination(net: Network, made: Clos, tors_per_pod: int, hosts_per_tor: int) -> None:
    k = len(made.pod_links[0])
    for d, host in enumerate(made.hosts):
        rack = d // hosts_per_tor
        home = rack // tors_per_pod
        way, top = d % k, d // k % len(made.cores)
        for i, tor in enumerate(made.tors):
            if i != rack:
                net.route(tor, host, made.pod_links[i][way])
        for i, agg in enumerate(made.aggregations):
            if i // k != home:
                net.route(agg, host, made.core_links[i][top])
        for c, core in enumerate(made.cores):
            net.route(core, host, made.core_links[home * k + way][c])
