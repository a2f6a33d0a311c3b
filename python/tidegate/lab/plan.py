"""From a `Network` to a plan for each host of a lab.

Whatever this kernel does not support is refused here, all at once and by name, before anything is set up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts import controls as host_controls
from tidegate.hosts import real_agents
from tidegate.hosts.controls import ACCURATE_ECN, BOTH_ENDS, Control, Controls
from tidegate.lab import iperf, kernel, routers
from tidegate.lab.messages import FlowPlan, Prepare, Route, SetUp
from tidegate.lab.routers import RouterPlan
from tidegate.network import Flow, Link, Network, Node
from tidegate.specs import TcpSpec, UdpSpec

T = TypeVar("T")

PS_PER_NS = 1000
PS_PER_MS = 1_000_000_000

# Linux's defaults.
INITIAL_CWND = 10
RTO_MIN = 200 * PS_PER_MS
DELAYED_ACK = 40 * PS_PER_MS
SEGMENTATION_OFFLOAD = 64 * 1024
LEAST_GSO = 4096

MOST_HOSTS = 400
MOST_IPERF = 500
MOST_OWN = 5000
# What one process can send.
MOST_OWN_DATAGRAMS_PER_S = 200_000
# What connections begin with whose way does not say: it is in every kernel, may be the default everywhere, and does not pace.
NEUTRAL_CONGESTION_CONTROL = "reno"

# Bytes of a connection below TCP. Linux's 4 MiB are more than the 256 packets that a veth holds: one turn of a sender would lose some.
OUTPUT_LIMIT = 128 << 10

NO_CONTROLS = Controls(())


def _tool(spec: object) -> str:
    """The traffic generator of a flow with constant rate."""
    # iperf3's receiver leaves before it has all of a flow of known size, and it sets the congestion control after the handshake.
    # It does not close the connection that it has sent by: the receiver ends it.
    own = isinstance(spec, TcpSpec) and (
        spec.size is not None or spec.ends is not None or spec.congestion_control in BOTH_ENDS
    )
    return "own" if own else "iperf3"


@dataclass(frozen=True)
class HostPlan:
    """A host of the lab, and its port of the network."""

    node: Node
    link: Link | None
    mtu: int
    set_up: SetUp
    prepare: Prepare


def plan(
    network: Network, seed: int, controls: Controls = NO_CONTROLS, no_agents: str | None = None
) -> list[HostPlan]:
    """The plan of each host; raises `TidegateError` with everything that a lab does not support.

    `controls` has the congestion controls that Tidegate adds to the kernel, `no_agents` why there can be no agents of hosts.
    """
    return _Planner(network, seed, controls, no_agents).plan()


def router_plans(network: Network) -> list[RouterPlan]:
    """The plans of the Linux routers of a network that `plan` takes."""
    return routers.plans(network, routers.Ways(network))


def _control(spec: TcpSpec) -> Control:
    return Control(spec.congestion_control, spec.control_options)


def lacking(network: Network) -> set[Control]:
    """Requested congestion controls that the kernel lacks."""
    asked = {_control(flow.spec) for flow in network.flows if isinstance(flow.spec, TcpSpec)}
    there = kernel.congestion_controls({one.name for one in asked})
    return {one for one in asked if one.name not in there}


def demand_controls(cases: Mapping[str, Network]) -> None:
    """Refuse cases with a congestion control that neither this kernel nor Tidegate has, before any of them runs."""
    without: dict[str, list[str]] = {}
    for case, network in cases.items():
        for control in lacking(network):
            if control.name not in host_controls.SOURCES:
                without.setdefault(control.name, []).append(case)
    if without:
        said = [
            f"{name} ({of[0]}{f' and {len(of) - 1} more' if len(of) > 1 else ''})"
            for name, of in sorted(without.items())
        ]
        raise TidegateError(
            f"this kernel does not have the congestion control {'; '.join(said)}; it has "
            f"{kernel.known_congestion_controls()}: leave these cases out"
        )


class _Planner:
    def __init__(self, network: Network, seed: int, controls: Controls, no_agents: str | None) -> None:
        self._network = network
        self._seed = seed
        self._controls = controls
        self._no_agents = no_agents
        self._hosts = [node for node in network.nodes if node.kind == "host"]
        self._ways = routers.Ways(network)
        self._refused: list[str] = []
        self._links: dict[Node, Link] = {}
        for link in network.links:
            for end in (link.a, link.b):
                if end.kind == "host":
                    self._links[end] = link

    def _refuse(self, why: str) -> None:
        if why not in self._refused:
            self._refused.append(why)

    def plan(self) -> list[HostPlan]:
        self._check_size()
        self._check_congestion_controls()
        self._check_ways()
        self._check_agents()
        for why in routers.refusals(self._network, self._ways):
            self._refuse(why)
        flows = [self._flow(flow) for flow in self._network.flows]
        if any(one.tool == "iperf3" for one in flows if one is not None):
            missing = kernel.missing_program(iperf.PROGRAM)
            if missing is not None:
                self._refuse(missing)
        hosts: list[HostPlan] = []
        if len(self._hosts) <= MOST_HOSTS:
            made = [one for one in flows if one is not None]
            hosts = [self._host(host, made) for host in self._hosts]
        if self._refused:
            raise TidegateError("\n".join(["the live backend cannot run this network:", *self._refused]))
        return hosts

    def _check_size(self) -> None:
        if len(self._hosts) > MOST_HOSTS:
            self._refuse(f"it has {len(self._hosts)} hosts; the lab has room for {MOST_HOSTS}")
        tools = [_tool(flow.spec) for flow in self._network.flows]
        if tools.count("iperf3") > MOST_IPERF or tools.count("own") > MOST_OWN:
            self._refuse(
                f"it has {len(tools)} flows; the lab has room for {MOST_IPERF} without a size and {MOST_OWN} with one"
            )

    def _tcp(self) -> Iterable[tuple[Flow, TcpSpec]]:
        return ((flow, flow.spec) for flow in self._network.flows if isinstance(flow.spec, TcpSpec))

    def _check_congestion_controls(self) -> None:
        missing = lacking(self._network) - set(self._controls.names)
        for flow, spec in self._tcp():
            control = _control(spec)
            name = control.name
            refused = list(host_controls.refusals(control))
            if control in missing and (name not in host_controls.SOURCES or not refused):
                why = self._controls.problems.get(control)
                self._refuse(
                    f"{flow.label}: this kernel does not have the congestion control {name}; "
                    + (
                        f"it has {kernel.known_congestion_controls()}"
                        if why is None
                        else f"Tidegate's own cannot be loaded: {why}"
                    )
                )
                continue
            for reason in refused:
                self._refuse(f"{flow.label}: {reason}")

    def _check_agents(self) -> None:
        for why in real_agents.refusals(self._network):
            self._refuse(why)
        if self._no_agents is not None:
            hosts = dict.fromkeys(attached.host.name for attached in self._network.agents)
            self._refuse(f"{', '.join(hosts)}: no agents of real hosts: {self._no_agents}")

    def _called(self, spec: TcpSpec) -> str:
        """The kernel's name of a flow's congestion control."""
        return self._controls.names.get(_control(spec), spec.congestion_control)

    def _flow(self, flow: Flow) -> FlowPlan | None:
        if isinstance(flow.spec, TcpSpec):
            return self._tcp_flow(flow, flow.spec)
        if isinstance(flow.spec, UdpSpec):
            return self._udp_flow(flow, flow.spec)
        self._refuse(f"{flow.label}: request-response connections run in the simulator only")
        return None

    def _check_ways(self) -> None:
        """As the simulator does when it begins; hosts do not forward."""
        inside: dict[Node, Node] = {node: node for node in self._network.nodes}

        def island(node: Node) -> Node:
            while inside[node] is not node:
                node = inside[node]
            return node

        for link in self._network.links:
            if link.a.kind != "host" and link.b.kind != "host":
                inside[island(link.a)] = island(link.b)
        for flow in self._network.flows:
            ends = [self._links.get(end) for end in (flow.source, flow.target)]
            at = [
                None if link is None else island(link.a if link.b is end else link.b)
                for link, end in zip(ends, (flow.source, flow.target), strict=True)
            ]
            if None in ends or not (ends[0] is ends[1] or at[0] is at[1]):
                self._refuse(
                    f"{flow.label}: there is no way from {flow.source.name} to {flow.target.name}; add a link"
                )

    def _mtu(self, flow: Flow) -> int:
        return min(self._mtu_of(flow.source), self._mtu_of(flow.target))

    def _mtu_of(self, host: Node) -> int:
        link = self._links.get(host)
        return 1500 if link is None else min(link.forward.mtu, link.reverse.mtu)

    def _ends(self, flow: Flow, spec: TcpSpec | UdpSpec, tool: str) -> FlowPlan:
        """The plan that all flows have in common."""
        five = self._network.five_tuple(flow)
        return FlowPlan(
            number=flow.number,
            label=flow.label,
            kind=flow.kind,
            tool=tool,
            source=five.source,
            target=five.target,
            source_port=five.source_port,
            target_port=five.target_port,
            start=spec.start // PS_PER_NS,
            stop=None if spec.stop is None else spec.stop // PS_PER_NS,
        )

    def _tcp_flow(self, flow: Flow, spec: TcpSpec) -> FlowPlan:
        control = spec.congestion_control
        for wrong, why in (
            (spec.extra_delay, "extra_delay: a real host cannot hold back one flow; give it a longer link"),
            (spec.delayed_ack != DELAYED_ACK, "delayed_ack: the kernel's 40 ms cannot be changed"),
            (
                spec.ecn == "accurate" and control not in ACCURATE_ECN,
                f"ecn 'accurate': {control} has off, passive and on (RFC 3168) in a kernel; "
                f"{', '.join(sorted(ACCURATE_ECN))} asks for accurate ECN",
            ),
            (
                spec.ecn != "accurate" and control in ACCURATE_ECN,
                f"ecn {spec.ecn!r}: {control} always asks for accurate ECN in a kernel; say ecn='accurate'",
            ),
            (
                spec.segmentation_offload is not None and spec.segmentation_offload < LEAST_GSO,
                f"segmentation_offload: less than {LEAST_GSO} bytes; None is for single segments",
            ),
            (
                spec.ticks_per_second not in (None, kernel.ticks_per_second()),
                f"ticks_per_second: {spec.ticks_per_second}; this kernel's clock has {kernel.ticks_per_second()}",
            ),
            ((spec.limit_output or 0) >= 2**31, "limit_output: the kernel takes less than 2 GiB"),
            # The sender's buffer is twice as large.
            (
                spec.receive_buffer_max >= 2**30,
                "receive_buffer_max: the lab takes less than 1 GiB, as the kernel's buffers are below 2 GiB",
            ),
            (spec.rto_min % PS_PER_MS, "rto_min: the kernel takes whole milliseconds"),
            (not 88 <= spec.mss <= 32767, f"mss: {spec.mss}; the kernel takes 88 to 32767"),
        ):
            if wrong:
                self._refuse(f"{flow.label}: {why}")
        return replace(
            self._ends(flow, spec, _tool(spec)),
            size=spec.size,
            ends=spec.ends,
            congestion_control=self._called(spec),
            both_ends=control in BOTH_ENDS,
            mss=None if spec.mss == self._mtu(flow) - 40 else spec.mss,
            pacing=spec.pacing,
        )

    def _udp_flow(self, flow: Flow, spec: UdpSpec) -> FlowPlan:
        size = spec.payload + iperf.IP_UDP_BYTES
        if size > self._mtu(flow):
            self._refuse(
                f"{flow.label}: datagrams of {spec.payload} bytes do not fit the MTU of {self._mtu(flow)}"
            )
        room = max(real_agents.ip_room(self._network, flow.source, kind) for kind in ("udp", "data"))
        if size <= self._mtu(flow) < size + room:
            self._refuse(
                f"{flow.label}: datagrams of {spec.payload} bytes leave no room for {room} bytes of IP options in the "
                f"MTU of {self._mtu(flow)}; give them at most {self._mtu(flow) - room - iperf.IP_UDP_BYTES} bytes"
            )
        # Below what iperf3 needs for its own numbers.
        own = spec.pattern != "constant" or spec.payload < iperf.LEAST_PAYLOAD
        if own and spec.rate > MOST_OWN_DATAGRAMS_PER_S * size * 8:
            self._refuse(
                f"{flow.label}: more than the {MOST_OWN_DATAGRAMS_PER_S} packets a second that the lab sends "
                f"of the pattern {spec.pattern}"
            )
        return replace(
            self._ends(flow, spec, "own" if own else "iperf3"),
            rate=spec.rate,
            payload=spec.payload,
            pattern=spec.pattern,
            on=spec.on // PS_PER_NS,
            off=spec.off // PS_PER_NS,
            tos=spec.ecn,
            seed=self._seed * 1_000_003 + flow.number,
        )

    def _one(self, flows: list[tuple[Flow, TcpSpec]], of: Callable[[TcpSpec], T], what: str, other: T) -> T:
        """The common value of a setting that the kernel has once for all of these flows."""
        found = {of(spec) for _, spec in flows}
        if len(found) > 1:
            self._refuse(f"{', '.join(flow.label for flow, _ in flows)}: they differ in {what}")
        return next(iter(found), other)

    def _host(self, host: Node, flows: list[FlowPlan]) -> HostPlan:
        network = self._network
        address = network.address(host)
        mine = [(flow, spec) for flow, spec in self._tcp() if host in (flow.source, flow.target)]
        sent = [(flow, spec) for flow, spec in mine if flow.source is host]
        came = [(flow, spec) for flow, spec in mine if flow.target is host]
        of_host = f"all that {host.name} sends and receives has the same in a kernel"
        sack = self._one(mine, lambda spec: spec.sack, f"sack; {of_host}", True)
        stamps = self._one(mine, lambda spec: spec.timestamps, f"timestamps; {of_host}", True)
        offload = self._one(
            sent,
            lambda spec: spec.segmentation_offload or 0,
            f"segmentation_offload; all that {host.name} sends has the same in a kernel",
            SEGMENTATION_OFFLOAD,
        )
        buffer = self._one(
            came,
            lambda spec: spec.receive_buffer_max,
            f"receive_buffer_max; all that {host.name} receives has the same in a kernel",
            units.size("32 MiB"),
        )
        output = self._one(
            sent,
            lambda spec: spec.limit_output,
            f"limit_output; all that {host.name} sends has the same in a kernel",
            None,
        )
        send_buffer = 2 * max((spec.receive_buffer_max for _, spec in sent), default=units.size("32 MiB"))
        link = self._links.get(host)
        return HostPlan(
            node=host,
            link=link,
            mtu=self._mtu_of(host),
            set_up=SetUp(
                address=address,
                mac=network.mac(host),
                mtu=self._mtu_of(host),
                # A segment that is cut in the interface has one time for all of its packets.
                gso_max_segments=1 if offload == 0 or real_agents.stamps_data(network, host) else None,
                gso_max_bytes=offload if offload not in (0, SEGMENTATION_OFFLOAD) else None,
                neighbours=tuple(
                    (network.address(other), self._ways.next_mac(host, other))
                    for other in self._hosts
                    if other is not host
                ),
                routes=tuple(self._routes(host, sent, came)),
                sysctls=(
                    ("ipv4/conf/all/rp_filter", "0"),
                    ("ipv4/conf/default/rp_filter", "0"),
                    ("ipv4/tcp_congestion_control", NEUTRAL_CONGESTION_CONTROL),
                    # Asked for on the ways of the flows that want it; granted to all who ask.
                    ("ipv4/tcp_ecn", "2"),
                    # A SYN that is lost was not lost for what it asks: it asks again.
                    ("ipv4/tcp_ecn_fallback", "0"),
                    ("ipv4/tcp_no_metrics_save", "1"),
                    # A connection whose process was killed keeps its namespace and its congestion control until it gives up.
                    ("ipv4/tcp_orphan_retries", "1"),
                    ("ipv4/tcp_sack", str(int(sack))),
                    ("ipv4/tcp_timestamps", str(int(stamps))),
                    ("ipv4/tcp_rmem", f"4096 {min(131072, buffer)} {buffer}"),
                    ("ipv4/tcp_wmem", f"4096 {min(16384, send_buffer)} {send_buffer}"),
                    # Above the ports of flows (`Network.five_tuple`).
                    ("ipv4/ip_local_port_range", "58000 65535"),
                    ("ipv4/tcp_limit_output_bytes", str(output or OUTPUT_LIMIT)),
                    *(
                        one
                        for attached in network.agents
                        if attached.host is host
                        for one in attached.agent.sysctls
                    ),
                ),
                egress=tuple(
                    marker
                    for name, marker in self._controls.markers.items()
                    if any(spec.congestion_control == name for _, spec in mine)
                ),
            ),
            prepare=Prepare(
                sends=tuple(one for one in flows if one.source == address),
                receives=tuple(one for one in flows if one.target == address),
                period=None if network.sampling is None else max(1, network.sampling // PS_PER_NS),
            ),
        )

    def _routes(
        self, host: Node, sent: list[tuple[Flow, TcpSpec]], came: list[tuple[Flow, TcpSpec]]
    ) -> Iterable[Route]:
        by_source: dict[Node, list[tuple[Flow, TcpSpec]]] = {}
        for flow, spec in came:
            by_source.setdefault(flow.source, []).append((flow, spec))
        # Who receives acknowledges by the route to the source.
        quick = {
            source: self._one(
                flows,
                lambda spec: spec.quick_ack,
                f"quick_ack; all that {host.name} gets from {source.name} has the same in a kernel",
                False,
            )
            for source, flows in by_source.items()
        }
        room, mtu = real_agents.ip_room(self._network, host, "data"), self._mtu_of(host)
        by_target: dict[Node, list[tuple[Flow, TcpSpec]]] = {}
        for flow, spec in sent:
            by_target.setdefault(flow.target, []).append((flow, spec))
        for target, flows in by_target.items():
            where = f"all that goes from {host.name} to {target.name} has the same in a kernel"
            cwnd = self._one(flows, lambda spec: spec.initial_cwnd, f"initial_cwnd; {where}", INITIAL_CWND)
            rto_min = self._one(flows, lambda spec: spec.rto_min, f"rto_min; {where}", RTO_MIN)
            # Those that both ends take part in ask for it by themselves.
            asking = [(flow, spec) for flow, spec in flows if spec.congestion_control not in BOTH_ENDS]
            ecn = self._one(asking, lambda spec: spec.ecn == "on", f"asking for ECN; {where}", False)
            controls = {self._called(spec) for _, spec in flows}
            yield Route(
                to=self._network.address(target),
                # From the first packet on; iperf3 chooses after the handshake.
                congestion_control=controls.pop() if len(controls) == 1 else None,
                ecn=ecn,
                initial_cwnd=None if cwnd == INITIAL_CWND else cwnd,
                rto_min_ms=None if rto_min == RTO_MIN else rto_min // PS_PER_MS,
                quick_ack=quick.pop(target, False),
                room=(mtu - room, mtu - iperf.IP_TCP_BYTES) if room else None,
            )
        yield from (
            Route(to=self._network.address(source), quick_ack=True)
            for source, asked in quick.items()
            if asked
        )
