"""A network, described: hosts, routers, links, flows, and what happens when.

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
Quantities are text with a unit, or whole numbers of the base unit (see `tidegate.units`).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import numpy as np

from tidegate import _core, control, specs, units, workloads
from tidegate._core import TidegateError
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.specs import PageSpec, TcpSpec, UdpSpec, Wire

if TYPE_CHECKING:
    from tidegate.results import Result

Action = Callable[[], None]


@dataclass(frozen=True)
class Node:
    """A host or a router."""

    name: str
    number: int
    kind: str

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"


@dataclass(frozen=True, eq=False)
class Switch(Node):
    """A switch that runs a P4 program."""

    program: Program = field(repr=False)
    queues: int
    cpu_port: int | None = None
    commands: list[str] = field(default_factory=list, repr=False)
    ports: list[tuple[Link, control.Port]] = field(default_factory=list, repr=False)

    def __repr__(self) -> str:
        return f"<switch {self.name}>"


@dataclass(eq=False)
class Link:
    """A link between two nodes, the same in both directions unless it is changed."""

    network: Network
    number: int
    a: Node
    b: Node
    there: Wire
    back: Wire

    @property
    def name(self) -> str:
        """`a - b`."""
        return f"{self.a.name} - {self.b.name}"

    def set(
        self,
        at: units.Time,
        *,
        rate: units.Rate | None = None,
        delay: units.Time | None = None,
        queue: str | None = None,
        mark_above: int | None = None,
        loss: float | None = None,
        burst_loss: tuple[float, float, float, float] | None = None,
        jitter: units.Time | None = None,
        reorder: float | None = None,
        reorder_by: units.Time | None = None,
        duplicate: float | None = None,
        mtu: int | None = None,
        direction: str = "both",
    ) -> None:
        """Change the link at a time: what is not given stays. `direction` is `both`, `there` (from a to b) or `back`."""
        if direction not in ("both", "there", "back"):
            raise TidegateError(f"{self.name}: a direction is both, there or back, not {direction!r}")
        when = units.time(at)
        for side in ("there", "back"):
            if direction not in ("both", side):
                continue
            wire = self.network.wire_at(self, side, when)
            changes: dict[str, Any] = {
                "rate": None if rate is None else units.rate(rate),
                "delay": None if delay is None else units.time(delay),
                "mark_above": mark_above,
                "loss": loss,
                "burst_loss": burst_loss,
                "jitter": None if jitter is None else units.time(jitter),
                "reorder": reorder,
                "reorder_by": None if reorder_by is None else units.time(reorder_by),
                "duplicate": duplicate,
                "mtu": mtu,
            }
            new = replace(wire, **{name: value for name, value in changes.items() if value is not None})
            if queue is not None:
                packets, size = queue_limit(queue, new.rate, 2 * new.delay, self.name)
                new = replace(new, packets=packets, bytes=size)
            specs.demand(new, self.name)
            self.network.changes.append((when, self, side, new))
            if self.network.running is not None:
                self.network.running(when, self, side, new)


class FiveTuple(NamedTuple):
    """What tells a flow's packets from others, in the direction from its source."""

    source: str
    target: str
    protocol: int
    source_port: int
    target_port: int


@dataclass(frozen=True)
class Flow:
    """A TCP or UDP flow, or a connection of a page; `kind` is `tcp`, `udp` or `page`."""

    number: int
    kind: str
    source: Node
    target: Node
    label: str
    spec: TcpSpec | UdpSpec | PageSpec = field(repr=False)


@dataclass(frozen=True)
class Page:
    """A client that asks a server, several times in turn."""

    number: int
    label: str
    flows: tuple[Flow, ...]
    """Its connections."""


class TcpOptions(TypedDict, total=False):
    """What `Network.tcp` takes besides ends, times and size, by the same names."""

    congestion_control: str
    mss: int
    ecn: str
    initial_cwnd: int
    rto_min: units.Time
    delayed_ack: units.Time
    segmentation_offload: units.Size | None
    limit_output: units.Size | None
    ticks_per_second: int | None
    receive_buffer_max: units.Size
    sack: bool
    timestamps: bool
    pacing: bool
    extra_delay: units.Time


# More flows than this are refused: a description of them would take gigabytes.
_MOST_FLOWS = 4_000_000

_ECN = {"not-ect": 0, "ect1": 1, "ect0": 2}
_PATTERNS = ("constant", "poisson", "on-off", "on-off exponential")


def _called(one: object) -> str:
    """What a message calls something that is in the wrong place."""
    if isinstance(one, Node | Link):
        return one.name
    return repr(one) if isinstance(one, str) else f"a {type(one).__name__}"


def queue_limit(text: str, rate: int, rtt: int, where: str) -> tuple[int | None, int | None]:
    """Packets and bytes that a queue holds, of `100 packets`, `64 KiB`, `1 BDP` or both as `100 packets, 64 KiB`.

    A BDP is what the link carries in `rtt` picoseconds.
    """
    packets: int | None = None
    size: int | None = None
    if not isinstance(text, str):
        raise TidegateError(f"{where}: the queue {text!r}: write it as `100 packets`, `64 KiB` or `1 BDP`")
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\d_]+(?:\.\d+)?)\s*(packets?|BDP)\s*", part)
        if match is None:
            size = units.size(part)
        elif match[2] == "BDP":
            wanted = float(match[1]) * rate * rtt / units.PS_PER_S / 8
            size = units.below(int(min(wanted, 2.0**64)), 0, 2**63, f"a size in bytes ({part.strip()})")
            if size == 0:
                raise TidegateError(
                    f"{where}: a BDP of this link is less than a byte; give the queue in packets or bytes, or say `rtt`"
                )
        else:
            if "." in match[1]:
                raise TidegateError(f"{where}: {part.strip()!r} is no whole number of packets")
            packets = units.below(int(match[1]), 1, 2**32, f"a queue's limit in packets ({where})")
    return packets, size


class Network:
    """A network and what is to happen in it."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._names: set[str] = set()
        self.links: list[Link] = []
        self.flows: list[Flow] = []
        self.pages: list[Page] = []
        self.changes: list[tuple[int, Link, str, Wire]] = []
        self.actions: list[tuple[int, Action]] = []
        self.routes: list[tuple[Node, Node, Link]] = []
        self.controllers: list[tuple[control.Controller, tuple[Switch, ...]]] = []
        self.running: Callable[[int, Link, str, Wire], None] | None = None
        self.sampling: int | None = None
        self.watched: list[Link] = []
        self.captures: list[tuple[Link, Node, Path, int]] = []

    def _take(self, name: str) -> None:
        if name in self._names:
            raise TidegateError(f"there is a node {name!r} already; give this one another name")
        self._names.add(name)

    def _node(self, name: str, kind: str) -> Node:
        self._take(name)
        node = Node(name, len(self.nodes), kind)
        self.nodes.append(node)
        return node

    def host(self, name: str) -> Node:
        """An end host: TCP as Linux has it, one link."""
        return self._node(name, "host")

    def router(self, name: str) -> Node:
        """A plain router: forwards by destination over shortest ways, flows split over ties."""
        return self._node(name, "router")

    def switch(
        self,
        name: str,
        program: str | PathLike[str] | Program,
        *,
        queues: int = 1,
        cpu_port: int | None = None,
        commands: Iterable[str] = (),
    ) -> Switch:
        """A switch that runs a P4 program (a file, or a `tidegate.p4.Program`).

        Its ports have the numbers of its links in the order in which they are made, from 0 on. A port has as many `queues` as
        are asked for, each with the limit of its link; `standard_metadata.priority` chooses one, the highest goes first.
        `configure` gives a port other queues and another scheduler. What the program sends to `cpu_port` goes to the
        controller (`control`). `commands` set the switch up before the run, in the language of `simple_switch_CLI`; more can
        be appended to `Switch.commands`. Hosts have the addresses that `address` and `mac` give.
        """
        if not isinstance(queues, int) or queues < 1:
            raise TidegateError(f"the switch {name} has {queues!r} queues; give it at least one")
        if cpu_port is not None and (not isinstance(cpu_port, int) or not 0 <= cpu_port < 511):
            raise TidegateError(f"the switch {name}: cpu_port {cpu_port!r} is no port number from 0 to 510")
        if not isinstance(program, Program):
            program = compile_p4(program)
        self._take(name)
        node = Switch(name, len(self.nodes), "switch", program, queues, cpu_port, list(commands))
        self.nodes.append(node)
        return node

    def configure(self, switch: Switch, link: Link, port: control.Port) -> None:
        """Give the port of a switch at a link queues, a scheduler and a shaper of its own, from the start of the run on."""
        self.port(switch, link)
        switch.ports.append((link, port))

    def control(self, controller: control.Controller, *switches: Switch) -> None:
        """Let a controller run switches; all of the network if none is given."""
        if not isinstance(controller, control.Controller):
            raise TidegateError(f"{controller!r} is no controller")
        for switch in switches:
            if not isinstance(switch, Switch) or switch not in self.nodes:
                name = getattr(switch, "name", repr(switch))
                raise TidegateError(f"{name} is no switch of this network")
        self.controllers.append((controller, switches))

    def port(self, node: Node, link: Link) -> int:
        """The number of a link's port at one of its nodes."""
        if node not in (link.a, link.b):
            raise TidegateError(f"{link.name} is not a link of {node.name}")
        return [each for each in self.links if node in (each.a, each.b)].index(link)

    def address(self, host: Node) -> str:
        """The IPv4 address of a host."""
        number = self._host_number(host) + 1
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def mac(self, host: Node) -> str:
        """The Ethernet address of a host."""
        number = self._host_number(host) + 1
        return "02:00:" + ":".join(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))

    def five_tuple(self, flow: Flow) -> FiveTuple:
        """Addresses, protocol and ports of a flow's packets."""
        # As the simulator gives them: TCP and UDP are counted apart.
        udp = flow.kind == "udp"
        number = sum((other.kind == "udp") == udp for other in self.flows[: flow.number])
        ends = (self.address(flow.source), self.address(flow.target))
        high, low = divmod(number, 16_000)
        receiver = (42_000 if udp else 26_000) + (low + high) % 16_000
        return FiveTuple(*ends, 17 if udp else 6, 10_000 + low, receiver)

    def _host_number(self, host: Node) -> int:
        hosts = [node for node in self.nodes if node.kind == "host"]
        if host not in hosts:
            raise TidegateError(f"{host.name} is no host of this network")
        return hosts.index(host)

    def link(
        self,
        a: Node,
        b: Node,
        *,
        rate: units.Rate,
        delay: units.Time,
        queue: str = "1000 packets",
        rtt: units.Time | None = None,
        mark_above: int | None = None,
        aqm: str | None = None,
        framing: int = 14,
        loss: float = 0.0,
        burst_loss: tuple[float, float, float, float] | None = None,
        jitter: units.Time = 0,
        reorder: float = 0.0,
        reorder_by: units.Time = 0,
        duplicate: float = 0.0,
        mtu: int = 1500,
    ) -> Link:
        """Connect two nodes in both directions.

        `queue` is `100 packets`, `64 KiB` or `1 BDP`; a BDP is `rate` times `rtt`, or times twice `delay` if `rtt` is not
        given. `mark_above`: packets that find so many waiting are marked CE, if they can be. `aqm`: `codel`
        or `pie`, for a host's or plain router's queues; they drop. `framing`: bytes that the
        link adds to an IP packet. `burst_loss`: shares (good to bad, bad to good, lost in good, lost in bad), after
        Gilbert and Elliott. `reorder`: the share of packets that comes `reorder_by` later.
        """
        for node in (a, b):
            self._demand_node(node, "an end of the link")
        name = f"{a.name} - {b.name}"
        bits, wait = units.rate(rate), units.time(delay)
        packets, size = queue_limit(queue, bits, 2 * wait if rtt is None else units.time(rtt), name)
        wire = Wire(
            rate=bits,
            delay=wait,
            packets=packets,
            bytes=size,
            mark_above=mark_above,
            aqm=aqm,
            framing=framing,
            loss=loss,
            burst_loss=burst_loss,
            jitter=units.time(jitter),
            reorder=reorder,
            reorder_by=units.time(reorder_by),
            duplicate=duplicate,
            mtu=mtu,
        )
        specs.demand(wire, f"the link {name}")
        link = Link(self, len(self.links), a, b, wire, wire)
        self.links.append(link)
        return link

    def wire_at(self, link: Link, side: str, at: int) -> Wire:
        """What a direction of a link is at a time, by the changes known so far."""
        wire = link.there if side == "there" else link.back
        for when, changed, which, new in sorted(self.changes, key=lambda change: change[0]):
            if changed is link and which == side and when <= at:
                wire = new
        return wire

    def ways(self, node: Node) -> dict[Node, tuple[int, ...]]:
        """For each host that a node can reach, its ports on the shortest ways there, as plain routers use them.

        To fill a P4 switch's tables with; a host with more than one port is for whoever spreads flows over them.
        """
        neighbours: dict[Node, list[tuple[int, Node]]] = {each: [] for each in self.nodes}
        for link in self.links:
            for one, other in ((link.a, link.b), (link.b, link.a)):
                neighbours[one].append((len(neighbours[one]), other))
        found: dict[Node, tuple[int, ...]] = {}
        for host in self.nodes:
            if host.kind != "host" or host is node:
                continue
            # Hops to the host; other hosts do not forward.
            distance, edge = {host: 0}, [host]
            for one in edge:
                for _, other in neighbours[one]:
                    if other not in distance:
                        distance[other] = distance[one] + 1
                        if other.kind != "host":
                            edge.append(other)
            if node in distance:
                nearer = distance[node] - 1
                ports = [
                    port
                    for port, other in neighbours[node]
                    if distance.get(other) == nearer and (other is host or other.kind != "host")
                ]
                found[host] = tuple(ports)
        return found

    def forwarding(self, switch: Switch) -> dict[str, int]:
        """For each host by its Ethernet address, the port of a switch that leads there the shortest way."""
        return {self.mac(host): ports[0] for host, ports in self.ways(switch).items()}

    def route(self, router: Node, to: Node, over: Link) -> None:
        """Send packets for host `to` over that link of a router, whatever the shortest way is."""
        self._demand_link(over, "the link of a route")
        self._demand_node(to, "the end of a route")
        if router not in (over.a, over.b):
            raise TidegateError(
                f"the route of {router.name} to {to.name}: {over.name} is not a link of {router.name}"
            )
        self.routes.append((router, to, over))

    def _demand_node(self, one: object, what: str) -> None:
        own = isinstance(one, Node) and one.number < len(self.nodes) and self.nodes[one.number] is one
        if not own:
            raise TidegateError(f"{what} is {_called(one)}, which is no node of this network")

    def _demand_link(self, one: object, what: str) -> None:
        if not isinstance(one, Link) or one.network is not self:
            raise TidegateError(f"{what} is {_called(one)}, which is no link of this network")

    def _ends(self, source: Node, target: Node, kind: str) -> str:
        for node in (source, target):
            self._demand_node(node, f"an end of the {kind} flow")
        label = f"{source.name} -> {target.name}"
        for node in (source, target):
            if node.kind != "host":
                raise TidegateError(
                    f"the {kind} flow {label}: {node.name} is a {node.kind}; a flow ends at hosts"
                )
        if source is target:
            raise TidegateError(f"the {kind} flow {label} goes from a host to itself")
        return label

    def tcp(
        self,
        source: Node,
        target: Node,
        *,
        congestion_control: str = "cubic",
        start: units.Time = 0,
        stop: units.Time | None = None,
        size: units.Size | None = None,
        label: str | None = None,
        mss: int = 1460,
        ecn: str = "passive",
        initial_cwnd: int = 10,
        rto_min: units.Time = "200 ms",
        delayed_ack: units.Time = "40 ms",
        segmentation_offload: units.Size | None = "64 KiB",
        limit_output: units.Size | None = None,
        ticks_per_second: int | None = None,
        receive_buffer_max: units.Size = "32 MiB",
        sack: bool = True,
        timestamps: bool = True,
        pacing: bool = False,
        extra_delay: units.Time = 0,
    ) -> Flow:
        """A TCP flow over a connection of its own: `size` bytes, or as much as goes through until `stop`.

        `ecn` is `off`, `passive`, `on` (RFC 3168) or `accurate`; `mss` is the MTU less 40, `segmentation_offload` the
        largest burst that the host hands down, `None` for single segments. `limit_output` is for hosts whose own link is the
        bottleneck: the most of this flow that waits there (TCP small queues; 4 MiB in Linux, less at low rates); without it
        the host's link is taken for one behind its own queue, as in the lab. `ticks_per_second` is the kernel's CONFIG_HZ, by
        which CUBIC goes: 250 in the simulator if it is not given. `extra_delay` makes the round trip of this flow
        longer: what the source sends waits so long in it. The other names are Linux's.
        """
        name = self._ends(source, target, "TCP")
        known = _core.congestion_controls()
        if congestion_control not in known:
            raise TidegateError(
                f"the TCP flow {name}: there is no congestion control {congestion_control!r}; known: {', '.join(known)}"
            )
        if ticks_per_second is not None:
            units.below(ticks_per_second, 1, 10_001, f"the kernel's ticks_per_second (the TCP flow {name})")
        spec = TcpSpec(
            source=source.number,
            target=target.number,
            start=units.time(start),
            stop=None if stop is None else units.time(stop),
            size=None if size is None else units.size(size),
            congestion_control=congestion_control,
            mss=mss,
            ecn=ecn,
            initial_cwnd=initial_cwnd,
            rto_min=units.time(rto_min),
            delayed_ack=units.time(delayed_ack),
            segmentation_offload=None if segmentation_offload is None else units.size(segmentation_offload),
            limit_output=None if limit_output is None else units.size(limit_output),
            ticks_per_second=ticks_per_second,
            receive_buffer_max=units.size(receive_buffer_max),
            sack=sack,
            timestamps=timestamps,
            pacing=pacing,
            extra_delay=units.time(extra_delay),
        )
        specs.demand(spec, f"the TCP flow {name}")
        return self._flow("tcp", source, target, label or f"{congestion_control} {name}", spec)

    def transfers(
        self,
        flows: Iterable[
            tuple[units.Time, units.Size, Node, Node] | tuple[units.Time, units.Size, Node, Node, units.Time]
        ],
        **options: Unpack[TcpOptions],
    ) -> list[Flow]:
        """TCP flows by a list of start, size, source, target and, where its round trip is to be longer, extra delay.

        `options` are those of `tcp`, for all of them.
        """
        made: list[Flow] = []
        template: TcpSpec | None = None
        extra = units.time(options.get("extra_delay", 0))
        for start, size, source, target, *more in flows:
            if template is None:
                # Checks the options, which are the same for all; the flow itself is made below.
                spec = self.tcp(source, target, **options).spec
                self.flows.pop()
                assert isinstance(spec, TcpSpec)
                template = spec
            label = f"{template.congestion_control} {self._ends(source, target, 'TCP')}"
            spec = replace(
                template,
                source=source.number,
                target=target.number,
                start=units.time(start),
                size=units.size(size),
                extra_delay=units.time(more[0]) if more else extra,
            )
            made.append(self._flow("tcp", source, target, label, spec))
        return made

    def workload(
        self,
        ends: Sequence[Node] | Sequence[tuple[Node, Node]],
        *,
        load: float,
        rate: units.Rate,
        stop: units.Time,
        start: units.Time = 0,
        sizes: str | PathLike[str] | _core.Sizes = "web-search",
        seed: int = 1,
        **options: Unpack[TcpOptions],
    ) -> list[Flow]:
        """TCP flows that come as a Poisson process from `start` to `stop`, with sizes of an empirical distribution.

        `ends` are hosts (each flow goes from one of them to another, all alike) or pairs of source and target. The flows'
        bytes make `load` of `rate`, on average and in total: for a load of hosts' links, give the sum of their rates.
        `sizes` is `web-search`, `data-mining`, or a file (see `tidegate.workloads`). The flows depend on `seed` alone, not
        on that of the run. `options` are those of `tcp`.
        """
        pairs = [end for end in ends if not isinstance(end, Node)]
        hosts = [end for end in ends if isinstance(end, Node)]
        if (pairs and hosts) or not (pairs or len(hosts) > 1):
            raise TidegateError("a workload needs two hosts or more, or pairs of hosts (and not both)")
        bits, first, last = units.rate(rate), units.time(start), units.time(stop)
        if not (isinstance(load, int | float | np.number) and 0 < load < math.inf and bits > 0):
            raise TidegateError(
                f"a workload with a load of {load} of {units.show_rate(bits)} makes no flows; give numbers above 0"
            )
        if last <= first:
            raise TidegateError(
                f"the workload stops at {units.show_time(last)}, before it starts at {units.show_time(first)}"
            )
        distribution = workloads.sizes(sizes)
        gap = distribution.mean() * 8 * units.PS_PER_S / (load * bits)
        expected = (last - first) / gap
        if expected > _MOST_FLOWS:
            raise TidegateError(
                f"the workload makes about {expected:.0f} flows, more than {_MOST_FLOWS}; make it shorter"
            )
        others = len(hosts) - 1

        def pair(number: int) -> tuple[Node, Node]:
            if pairs:
                return pairs[number]
            a, b = divmod(number, others)
            return hosts[a], hosts[b + (b >= a)]

        units.seed(seed)
        count = len(pairs) or len(hosts) * others
        flows = distribution.poisson(max(1, round(gap)), first, last, count, seed)
        return self.transfers(((at, size, *pair(number)) for at, size, number in flows), **options)

    def page(
        self,
        client: Node,
        server: Node,
        *,
        request: units.Size = "500 B",
        response: units.Size = "100 kB",
        objects: int = 1,
        think: units.Time = 0,
        connections: str = "persistent",
        start: units.Time = 0,
        label: str | None = None,
        **options: Unpack[TcpOptions],
    ) -> Page:
        """A client asks and a server answers, `objects` times in turn, with `think` between an answer and the next question.

        `connections` is `persistent`, one for all, or `new`, one for each. `Result.pages` has the times; in `Result.flows` a
        page's bytes and retransmissions are those of the answers. `options` are those of `tcp`.
        """
        name = label or f"page {self._ends(client, server, 'page')}"
        if connections not in ("persistent", "new"):
            raise TidegateError(f"the {name}: connections are persistent or new, not {connections!r}")
        if not isinstance(objects, int) or not 1 <= objects <= _MOST_FLOWS:
            raise TidegateError(f"the {name} has {objects!r} objects; give a whole number of at least 1")
        # Checks the options as those of a flow; the flow itself is not wanted.
        flow = self.tcp(client, server, start=start, **options)
        self.flows.pop()
        assert isinstance(flow.spec, TcpSpec)
        spec = PageSpec(
            connection=flow.spec,
            request=units.size(request),
            response=units.size(response),
            objects=objects,
            think=units.time(think),
            persistent=connections == "persistent",
        )
        flows = tuple(
            self._flow("page", client, server, name, spec) for _ in range(1 if spec.persistent else objects)
        )
        page = Page(len(self.pages), name, flows)
        self.pages.append(page)
        return page

    def udp(
        self,
        source: Node,
        target: Node,
        *,
        rate: units.Rate,
        start: units.Time = 0,
        stop: units.Time | None = None,
        payload: int = 1472,
        pattern: str = "constant",
        on: units.Time = "1 s",
        off: units.Time = "1 s",
        ecn: str = "not-ect",
        label: str | None = None,
    ) -> Flow:
        """Datagrams of `payload` bytes at a rate of IP bytes.

        `pattern` is `constant`, `poisson`, `on-off` or `on-off exponential`, with times `on` and `off` (means, if
        exponential). `ecn` is `not-ect`, `ect0` or `ect1`.
        """
        name = self._ends(source, target, "UDP")
        if not isinstance(ecn, str) or ecn not in _ECN:
            raise TidegateError(
                f"the UDP flow {name}: there is no ECN code point {ecn!r}; known: {', '.join(_ECN)}"
            )
        if pattern not in _PATTERNS:
            raise TidegateError(
                f"the UDP flow {name}: there is no pattern {pattern!r}; known: {', '.join(_PATTERNS)}"
            )
        spec = UdpSpec(
            source=source.number,
            target=target.number,
            start=units.time(start),
            stop=None if stop is None else units.time(stop),
            rate=units.rate(rate),
            payload=payload,
            pattern=pattern,
            on=units.time(on),
            off=units.time(off),
            ecn=_ECN[ecn],
        )
        specs.demand(spec, f"the UDP flow {name}")
        return self._flow("udp", source, target, label or f"udp {name}", spec)

    def _flow(
        self, kind: str, source: Node, target: Node, label: str, spec: TcpSpec | UdpSpec | PageSpec
    ) -> Flow:
        if not isinstance(label, str):
            raise TidegateError(
                f"the label {label!r} of a flow from {source.name} to {target.name} is no text"
            )
        flow = Flow(len(self.flows), kind, source, target, label, spec)
        self.flows.append(flow)
        return flow

    def at(self, when: units.Time, action: Action) -> None:
        """Call `action` at a time of the run. What it changes of links (`Link.set`) holds for that run alone."""
        if not callable(action):
            raise TidegateError(f"an action at a time of the run is something to call, not {action!r}")
        self.actions.append((units.time(when), action))

    def record(self, period: units.Time, queues: Iterable[Link] = ()) -> None:
        """Sample all TCP flows, and the queues of these links in both directions, on a period."""
        self.sampling = units.time(period)
        if self.sampling == 0:
            raise TidegateError("the period of recording is 0; give one above 0")
        links = [queues] if isinstance(queues, Link) else list(queues)
        for link in links:
            self._demand_link(link, "a link whose queues are recorded")
        self.watched.extend(links)

    def capture(
        self, link: Link, node: Node, path: str | PathLike[str], *, snap: units.Size = "256 KiB"
    ) -> None:
        """Capture what goes over a link, both ways, as `node` sees it at its end: a pcap file with times in nanoseconds.

        What the node sends has the time of its first bit on the wire, after the queue; what comes, that of its last. `snap`
        cuts packets to a length: headers need at most 94 bytes, and payload is zero bytes anyway. The file is there when
        the run has ended, and takes the place of one of that name.
        """
        self._demand_link(link, f"the link of the capture {path}")
        if node not in (link.a, link.b):
            raise TidegateError(f"the capture {path}: {node.name} is at no end of {link.name}")
        length, file = units.size(snap), Path(path)
        if not 1 <= length <= 256 * 1024:
            raise TidegateError(f"the capture {path}: a snap length of {length} bytes; give 1 B to 256 KiB")
        if file.exists() and not file.is_file():
            what = "a folder" if file.is_dir() else "a device or a pipe"
            raise TidegateError(f"the capture {path}: that is {what}; give a file's name")
        if any(file == other for *_, other, _ in self.captures):
            raise TidegateError(f"the capture {path}: there is one with that name already")
        self.captures.append((link, node, file, length))

    def run(
        self,
        until: units.Time,
        *,
        backend: str = "sim",
        seed: int = 1,
        progress: Callable[[int, int], None] | bool | None = None,
    ) -> Result:
        """Run the network until a time, and give what came of it.

        `backend` is `sim`, the simulator, or `live`: real Linux hosts, by the clock (docs/live.md). `progress` is called now
        and then with the picoseconds done and to do. If it is not given and standard error is a terminal, a bar shows
        simulated time, speed and estimate when a run takes longer than two seconds; `False`: never, `True`: always. An interrupt (Ctrl-C) ends the run; the result holds what was recorded until then, and says so in
        `Result.interrupted`.
        """
        from tidegate import backends
        from tidegate.progress import Bar

        chosen = backends.find(backend)
        units.seed(seed)
        if progress is None:
            progress = sys.stderr.isatty()
            wait_s = 2.0
        else:
            wait_s = 0.0
        if isinstance(progress, bool):
            told: Callable[[int, int], None] | None = (
                Bar(wait_s, "simulating" if backend == "sim" else "running") if progress else None
            )
        else:
            told = progress
        return chosen(self, units.time(until), seed, told)
