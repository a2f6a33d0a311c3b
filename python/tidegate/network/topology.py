"""Nodes, links, ports and their queues."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from os import PathLike

from tidegate import control, specs, units
from tidegate._core import TidegateError
from tidegate.control.objects import demand_port
from tidegate.network.classes import Classes
from tidegate.network.links import Change, Link, RunningLinks, queue_limit
from tidegate.network.nodes import Node, Switch
from tidegate.network.qdiscs import Qdisc
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.specs import Wire


def _called(one: object) -> str:
    """The name of a misplaced object in a message."""
    if isinstance(one, Node | Link):
        return one.name
    return repr(one) if isinstance(one, str) else f"a {type(one).__name__}"


class Topology:
    """Nodes, and links between them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._names: set[str] = set()
        self._linked: set[int] = set()
        self.links: list[Link] = []
        self.class_ports: list[Classes] = []
        self.qdiscs: dict[tuple[Node, Link], Qdisc] = {}
        self.scheduled: dict[tuple[Link, str], list[Change]] = {}
        """Changes of each direction of links in the order of their times. A list is replaced, never altered."""
        self._changed = 0
        self.running: RunningLinks | None = None

    def _take(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TidegateError(f"a node's name is text, not {name!r}")
        if not name.isprintable():
            raise TidegateError(f"the node's name {name!r} has a character that cannot be printed")
        if name in self._names:
            raise TidegateError(f"there is a node {name!r} already; give this one another name")
        self._names.add(name)

    def _node(self, name: str, kind: str, linux: bool = False) -> Node:
        self._take(name)
        node = Node(name, len(self.nodes), kind, linux=linux)
        self.nodes.append(node)
        return node

    def host(self, name: str) -> Node:
        """An end host: one link, TCP that follows Linux.

        >>> Network().host("a")
        <host a>
        """
        return self._node(name, "host")

    def router(self, name: str, *, linux: bool = False) -> Node:
        """A plain router: forwards by destination over shortest paths, with ECMP over ties.

        With `linux` it is the kernel's own forwarding where hosts are real, with HTB for its queues (docs/live.md); in the simulator
        it is an ordinary router.

        >>> Network().router("r")
        <router r>
        """
        return self._node(name, "router", linux)

    def switch(
        self,
        name: str,
        program: str | PathLike[str] | Program,
        *,
        queues: int = 1,
        cpu_port: int | None = None,
        clock: units.Time = "1 us",
        commands: Iterable[str] = (),
    ) -> Switch:
        """A switch that runs a P4 program (a file, or a `tidegate.p4.Program`).

        Its ports have the numbers of its links in the order in which they are made, from 0 on. A port has as many `queues` as
        are asked for, each with the limit of its link; `standard_metadata.priority` chooses one, the highest goes first.
        `configure` gives a port other queues and another scheduler. What the program sends to `cpu_port` goes to the
        controller (`control`). `clock` is the unit of the program's timestamps, which v1model leaves to the target: `1 us` as in the
        reference switch, or `1 ns`. `commands` set the switch up before the run, in the language of `simple_switch_CLI`; more can
        be appended to `Switch.commands`. Hosts have the addresses that `address` and `mac` give.

        >>> Network().switch("s", tidegate.program("meter"), queues=2)
        <switch s, 2 queues a port>
        """
        if not isinstance(queues, int) or queues < 1:
            raise TidegateError(f"the switch {name} has {queues!r} queues; give it at least one")
        if cpu_port is not None and (not isinstance(cpu_port, int) or not 0 <= cpu_port < 511):
            raise TidegateError(
                f"the switch {name}: cpu_port {cpu_port!r} is not a port number from 0 to 510"
            )
        if (unit := units.time(clock)) not in (1_000, 1_000_000):
            raise TidegateError(f"the switch {name} has the clock {clock!r}; give 1 us or 1 ns")
        if not isinstance(program, Program):
            program = compile_p4(program)
        self._take(name)
        node = Switch(
            name, len(self.nodes), "switch", program, queues, cpu_port, unit == 1_000, list(commands)
        )
        self.nodes.append(node)
        return node

    def configure(self, switch: Switch, link: Link, port: control.Port) -> None:
        """Configure queues, scheduler and shaper of a switch's port at a link, from the start of the run on."""
        self.port(switch, link)
        demand_port(port)
        switch.ports.append((link, port))

    def classes(self, router: Node, link: Link, port: control.Port) -> Classes:
        """Give a plain router's port at a link queues by class: what it has is set by `Classes.set`, a flow's queue by `Classes.assign`.

        The queues' limits take the place of the link's.
        """
        self._demand_node(router, "the router of queues by class")
        self._demand_link(link, "the link of queues by class")
        if router.kind != "router":
            raise TidegateError(f"{router.name} is a {router.kind}; queues by class are for plain routers")
        self.port(router, link)
        self._demand_plain_port(router, link)
        made = Classes(router, link, port)
        self.class_ports.append(made)
        return made

    def _demand_plain_port(self, router: Node, link: Link) -> None:
        if any(known.router is router and known.link is link for known in self.class_ports):
            raise TidegateError(f"the port of {router.name} at {link.name} has queues by class already")
        if (router, link) in self.qdiscs:
            raise TidegateError(f"the port of {router.name} at {link.name} has a qdisc already")

    def qdisc(self, router: Node, link: Link, qdisc: Qdisc) -> None:
        """Give a Linux router's port at a link a qdisc of the kernel in place of the link's queue and rate.

        Such a network runs only with `backend="live"`.
        """
        self._demand_node(router, "the router of a qdisc")
        self._demand_link(link, "the link of a qdisc")
        if not router.linux:
            raise TidegateError(
                f"{router.name} is not a Linux router (router(linux=True)); qdiscs are for those"
            )
        self.port(router, link)
        self._demand_plain_port(router, link)
        self.qdiscs[router, link] = qdisc

    def port(self, node: Node, link: Link) -> int:
        """The number of a link's port at one of its nodes."""
        if node not in (link.a, link.b):
            raise TidegateError(f"{link.name} is not a link of {node.name}")
        return [each for each in self.links if node in (each.a, each.b)].index(link)

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
        aqm_salt: int = 0,
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
        given. `mark_above`: ECN-capable packets that find at least this many packets waiting are marked CE. `aqm`:
        `codel`, `pie`, `drr` (a queue for each flow) or `fq_codel`; they drop. Both are for queues of hosts and plain
        routers. `aqm_salt`, if not 0, gives FQ-CoDel's hash a salt made of it, the run's seed and the port (RFC 8290
        section 4.1): the flows that share a queue are others for each. `framing`: bytes that the link adds to an IP packet. `burst_loss`: shares (good to bad, bad to good, lost
        in good, lost in bad), after Gilbert and Elliott. `reorder`: the share of packets that comes `reorder_by` later.

        >>> net = Network()
        >>> net.link(net.host("a"), net.router("r"), rate="1 Gbit/s", delay="2 ms", queue="1 BDP")
        <link a - r: 1 Gbit/s, 2 ms, queue of 500000 B>
        """
        for node in (a, b):
            self._demand_node(node, "an end of the link")
        name = f"{a.name} - {b.name}"
        if a is b:
            raise TidegateError(f"the link {name} connects a node to itself")
        for node in (a, b):
            if node.kind == "host" and node.number in self._linked:
                raise TidegateError(f"host {node.name} has a link already; connect it to a router")
            if isinstance(node, Switch) and (aqm is not None or mark_above is not None):
                what = "mark_above" if aqm is None else "aqm"
                raise TidegateError(
                    f"the link {name}: the queues of the P4 switch {node.name} are managed by its program; leave `{what}` out"
                )
        bits, wait = units.given_rate(rate), units.given_time(delay)
        round_trip = None if rtt is None else units.given_time(rtt)
        packets, size = queue_limit(queue, bits, 2 * wait if round_trip is None else round_trip, name)
        wire = Wire(
            rate=bits,
            delay=wait,
            packets=packets,
            bytes=size,
            mark_above=mark_above,
            aqm=aqm,
            aqm_salt=aqm_salt,
            framing=framing,
            loss=loss,
            burst_loss=burst_loss,
            jitter=units.given_time(jitter),
            reorder=reorder,
            reorder_by=units.given_time(reorder_by),
            duplicate=duplicate,
            mtu=mtu,
        )
        specs.demand(wire, f"the link {name}")
        specs.demand_possible(wire, f"the link {name}", (a.name, b.name))
        self._linked |= {a.number, b.number}
        link = Link(self, len(self.links), a, b, wire, wire, round_trip)
        self.links.append(link)
        return link

    @property
    def changes(self) -> list[Change]:
        """All changes of links that are known, in the order of their times."""
        every = (change for changes in self.scheduled.values() for change in changes)
        return sorted(every, key=lambda change: (change.when, change.order))

    def next_change(self) -> int:
        """A number for one more change, above those of all others."""
        self._changed += 1
        return self._changed

    def wire_at(self, link: Link, side: str, at: int) -> Wire:
        """The settings of a direction of a link at a time, with the changes known so far."""
        changes = self.scheduled.get((link, side), [])
        place = bisect_right(changes, at, key=lambda change: change.when)
        made = link.forward if side == "forward" else link.reverse
        return changes[place - 1].wire if place else made

    def _demand_node(self, one: object, what: str) -> None:
        own = isinstance(one, Node) and one.number < len(self.nodes) and self.nodes[one.number] is one
        if not own:
            raise TidegateError(f"{what} is {_called(one)}, which is not a node of this network")

    def _demand_link(self, one: object, what: str) -> None:
        if not isinstance(one, Link) or one.network is not self:
            raise TidegateError(f"{what} is {_called(one)}, which is not a link of this network")
