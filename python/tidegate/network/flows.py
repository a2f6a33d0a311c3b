"""Flows of a network: TCP, UDP, transfers, workloads and request-response connections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from tidegate import _core, specs, units, workloads
from tidegate._core import TidegateError
from tidegate.network.nodes import Node
from tidegate.network.routing import Routing
from tidegate.specs import PageSpec, TcpSpec, UdpSpec
from tidegate.suggest import did_you_mean


class FiveTuple(NamedTuple):
    """The five header fields of a flow's packets, in the direction from its source."""

    source: str
    target: str
    protocol: int
    source_port: int
    target_port: int


@dataclass(frozen=True)
class Flow:
    """A TCP or UDP flow, or a request-response connection; `kind` is `tcp`, `udp` or `page`."""

    number: int
    kind: str
    source: Node
    target: Node
    label: str
    spec: TcpSpec | UdpSpec | PageSpec = field(repr=False)

    def __repr__(self) -> str:
        return f"<{self.kind} flow {self.number}: {self.label}, {self.about}>"

    @property
    def about(self) -> str:
        """`5 MB from 0 s`: how much, and when."""
        spec = self.spec
        if isinstance(spec, PageSpec):
            return (
                f"{spec.objects} objects of {spec.response} B from {units.show_time(spec.connection.start)}"
            )
        much = f"{units.show_rate(spec.rate)} " if isinstance(spec, UdpSpec) else ""
        if isinstance(spec, TcpSpec) and spec.size is not None:
            much = f"{spec.size} B "
        until = "" if spec.stop is None else f" to {units.show_time(spec.stop)}"
        return f"{much}from {units.show_time(spec.start)}{until}"


@dataclass(frozen=True)
class RequestResponse:
    """A client that requests objects from a server in turn."""

    number: int
    label: str
    flows: tuple[Flow, ...]
    """Its connections."""

    def __repr__(self) -> str:
        return f"<{self.label}: {self.flows[0].about}>"


class TcpOptions(TypedDict, total=False):
    """Keywords of `Network.tcp` besides ends, times and size."""

    congestion_control: str
    control_options: Mapping[str, object]
    mss: int
    ecn: str
    initial_cwnd: int
    rto_min: units.Time
    delayed_ack: units.Time
    quick_ack: bool
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

_ECN = {"not-ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
_ENDS = ("fin", "reset")
_PATTERNS = ("constant", "poisson", "on-off", "on-off exponential")


class Flows(Routing):
    """The flows of a network."""

    def __init__(self) -> None:
        super().__init__()
        self.flows: list[Flow] = []
        self.pages: list[RequestResponse] = []

    def five_tuple(self, flow: Flow) -> FiveTuple:
        """Addresses, protocol and ports of a flow's packets."""
        # TCP and UDP are counted apart.
        udp = flow.kind == "udp"
        number = sum((other.kind == "udp") == udp for other in self.flows[: flow.number])
        ends = (self.address(flow.source), self.address(flow.target))
        return FiveTuple(*ends, 17 if udp else 6, *_core.flow_ports(number, udp))

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
        control_options: Mapping[str, object] | None = None,
        start: units.Time = 0,
        stop: units.Time | None = None,
        ends: str | None = None,
        size: units.Size | None = None,
        label: str | None = None,
        mss: int = 1460,
        ecn: str = "passive",
        initial_cwnd: int = 10,
        rto_min: units.Time = "200 ms",
        delayed_ack: units.Time = "40 ms",
        quick_ack: bool = False,
        segmentation_offload: units.Size | None = "64 KiB",
        limit_output: units.Size | None = None,
        ticks_per_second: int | None = None,
        receive_buffer_max: units.Size = "32 MiB",
        sack: bool = True,
        timestamps: bool = True,
        pacing: bool = False,
        extra_delay: units.Time = 0,
    ) -> Flow:
        """A TCP flow over a connection of its own: `size` bytes, or as much as possible until `stop`.

        `ends` says how the connection ends at `stop`: with a FIN behind what has been sent (`fin`), or at once with a RST
        (`reset`), as of an application that is killed. Without it that is a FIN in the simulator; real hosts use iperf3, whose
        receiver ends the connection. With it, real hosts use Tidegate's own sockets, and send what the kernel holds before a FIN.

        `control_options` are the congestion control's parameters, such as `{"t_low": "50 us", "signal": "stamp"}` for
        `timely` (see docs/simulator.md); of real hosts' controls `stamp` has them. `ecn` is `off`, `passive`, `on` (RFC 3168) or
        `accurate`; `mss` is the MTU less 40, `segmentation_offload` the largest burst that the host hands down, `None` for
        single segments. `limit_output` is for hosts whose own link is the bottleneck: the most of this flow that waits
        there (TCP small queues; 4 MiB in Linux, less at low rates); without it the host's link is treated as one behind
        the host's own queue, as in the lab. `ticks_per_second` is the kernel's CONFIG_HZ, the resolution of CUBIC's clock:
        250 in the simulator if it is not given. `extra_delay` makes the round trip of this flow longer: what the source
        sends waits so long in it. With `quick_ack` the receiver acknowledges each packet at once, as with
        `ip route ... quickack 1`. The other names are Linux's.

        >>> net = Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> net.tcp(a, b, congestion_control="bbr", start="1 s", size="5 MB")
        <tcp flow 0: bbr a -> b, 5000000 B from 1 s>
        """
        name = self._ends(source, target, "TCP")
        if not isinstance(control_options, Mapping | None) or not all(
            isinstance(key, str) for key in control_options or ()
        ):
            raise TidegateError(
                f"control_options of the TCP flow {name} are {control_options!r:.40}; "
                "give a dictionary of values by name"
            )
        parameters = tuple((key, str(value)) for key, value in (control_options or {}).items())
        try:
            _core.check_congestion_control(str(congestion_control), parameters)
        except TidegateError as error:
            raise TidegateError(f"the TCP flow {name}: {error}") from None
        if ticks_per_second is not None:
            units.below(ticks_per_second, 1, 10_001, f"the kernel's ticks_per_second (the TCP flow {name})")
        if ends is not None and ends not in _ENDS:
            raise TidegateError(
                f"the TCP flow {name} ends by {ends!r}, which there is not; {did_you_mean(ends, _ENDS)}known: {', '.join(_ENDS)}"
            )
        if ends is not None and stop is None:
            raise TidegateError(f"the TCP flow {name} ends by {ends!r}, but never; give a stop")
        spec = TcpSpec(
            source=source.number,
            target=target.number,
            start=units.given_time(start),
            stop=None if stop is None else units.given_time(stop),
            ends=ends,
            size=None if size is None else units.size(size),
            congestion_control=congestion_control,
            control_options=parameters,
            mss=mss,
            ecn=ecn,
            initial_cwnd=initial_cwnd,
            rto_min=units.given_time(rto_min),
            delayed_ack=units.given_time(delayed_ack),
            quick_ack=quick_ack,
            segmentation_offload=None if segmentation_offload is None else units.size(segmentation_offload),
            limit_output=None if limit_output is None else units.size(limit_output),
            ticks_per_second=ticks_per_second,
            receive_buffer_max=units.size(receive_buffer_max),
            sack=sack,
            timestamps=timestamps,
            pacing=pacing,
            extra_delay=units.given_time(extra_delay),
        )
        specs.demand(spec, f"the TCP flow {name}")
        self._demand_possible(spec, f"the TCP flow {name}", source, target)
        return self._flow("tcp", source, target, label or f"{congestion_control} {name}", spec)

    def transfers(
        self,
        flows: Iterable[
            tuple[units.Time, units.Size, Node, Node] | tuple[units.Time, units.Size, Node, Node, units.Time]
        ],
        **options: Unpack[TcpOptions],
    ) -> list[Flow]:
        """TCP flows from a list of start, size, source, target and, for a longer RTT, extra delay.

        `options` are those of `tcp`, for all of them.

        >>> net = Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> net.transfers([(0, "10 kB", a, b), ("1 ms", "20 kB", a, b)], congestion_control="reno")
        [<tcp flow 0: reno a -> b, 10000 B from 0 s>, <tcp flow 1: reno a -> b, 20000 B from 1 ms>]
        """
        given = units.given_time
        extra = given(options.get("extra_delay", 0))
        if not isinstance(flows, Iterable):
            raise TidegateError(f"transfers are {flows!r:.40}; give a list of start, size, source and target")
        rows = []
        for number, flow in enumerate(flows):
            if not isinstance(flow, tuple | list) or len(flow) not in (4, 5):
                raise TidegateError(
                    f"transfer {number} is {flow!r:.60}; give start, size, source, target and, for a longer RTT, an extra delay"
                )
            start, size, source, target, *more = flow
            rows.append((given(start), size, source, target, given(more[0]) if more else extra))
        return self._transfers(rows, options)

    def _transfers(
        self, flows: Iterable[tuple[int, units.Size, Node, Node, int]], options: TcpOptions
    ) -> list[Flow]:
        """As `transfers`, with the start and the extra delay of each in picoseconds."""
        made: list[Flow] = []
        template: TcpSpec | None = None
        for start, size, source, target, extra in flows:
            if template is None:
                # Checks the options, which are the same for all; the flow itself is made below.
                spec = self.tcp(source, target, **options).spec
                self.flows.pop()
                assert isinstance(spec, TcpSpec)
                template = spec
            name = self._ends(source, target, "TCP")
            label = f"{template.congestion_control} {name}"
            length = units.size(size)
            if length == 0:
                raise TidegateError(f"the TCP flow {name} has the size 0; give it a size above 0")
            spec = replace(
                template,
                source=source.number,
                target=target.number,
                start=start,
                size=length,
                extra_delay=extra,
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
        """TCP flows that arrive as a Poisson process from `start` to `stop`, with sizes of an empirical distribution.

        `ends` are hosts (each flow goes from one of them to another, chosen uniformly) or pairs of source and target. The flows'
        bytes make `load` of `rate`, on average and in total: for a load of hosts' links, give the sum of their rates.
        `sizes` is `web-search`, `data-mining`, or a file (see `tidegate.workloads`). The flows depend on `seed` alone, not
        on that of the run. `options` are those of `tcp`.

        >>> net = Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> flows = net.workload([(a, b)], load=0.5, rate="100 Mbit/s", stop="1 s")
        >>> len(flows), flows[0]
        (2, <tcp flow 0: cubic a -> b, 1431847 B from 444764518.29 ns>)
        """
        pairs = [end for end in ends if not isinstance(end, Node)]
        hosts = [end for end in ends if isinstance(end, Node)]
        if (pairs and hosts) or not (pairs or len(hosts) > 1):
            raise TidegateError("a workload needs two hosts or more, or pairs of hosts (and not both)")
        bits, first, last = units.given_rate(rate), units.given_time(start), units.given_time(stop)
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
        extra = units.given_time(options.get("extra_delay", 0))
        return self._transfers(((at, size, *pair(number), extra) for at, size, number in flows), options)

    def request_response(
        self,
        client: Node,
        server: Node,
        *,
        request: units.Size = "500 B",
        response: units.Size = "100 kB",
        objects: int = 1,
        think_time: units.Time = 0,
        connections: str = "persistent",
        start: units.Time = 0,
        label: str | None = None,
        **options: Unpack[TcpOptions],
    ) -> RequestResponse:
        """A client requests `objects` objects in turn, and pauses for `think_time` between a response and the next request.

        `connections` is `persistent`, one for all, or `new`, one for each. `Result.pages` has the times. In `Result.flows` the
        bytes and retransmissions are those of the responses. `options` are those of `tcp`.

        >>> net = Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> net.request_response(a, b, response="50 kB", objects=3, think_time="10 ms")
        <page a -> b: 3 objects of 50000 B from 0 s>
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
            think=units.given_time(think_time),
            persistent=connections == "persistent",
        )
        self._demand_possible(spec, f"the {name}", client, server)
        flows = tuple(
            self._flow("page", client, server, name, spec) for _ in range(1 if spec.persistent else objects)
        )
        page = RequestResponse(len(self.pages), name, flows)
        self.pages.append(page)
        return page

    def page(self, client: Node, server: Node, *, think: units.Time = 0, **rest: Any) -> RequestResponse:
        """`request_response` by its former name, with `think` for `think_time`."""
        return self.request_response(client, server, **{"think_time": think, **rest})

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
        exponential). Each on-time begins with a datagram, so that a short one sends more than its share: at 15 Mbit/s 13 in 10 ms,
        where 12.5 are due. `ecn` is `not-ect`, `ect0`, `ect1` or `ce`; with `ce` the sender sets CE itself, which
        RFC 3168 forbids.

        >>> net = Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> net.udp(a, b, rate="20 Mbit/s", stop="3 s")
        <udp flow 0: udp a -> b, 20 Mbit/s from 0 s to 3 s>
        """
        name = self._ends(source, target, "UDP")
        if not isinstance(ecn, str) or ecn not in _ECN:
            raise TidegateError(
                f"the UDP flow {name}: there is no ECN code point {ecn!r}; {did_you_mean(ecn, _ECN)}known: {', '.join(_ECN)}"
            )
        if pattern not in _PATTERNS:
            raise TidegateError(
                f"the UDP flow {name}: there is no pattern {pattern!r}; {did_you_mean(pattern, _PATTERNS)}known: {', '.join(_PATTERNS)}"
            )
        spec = UdpSpec(
            source=source.number,
            target=target.number,
            start=units.given_time(start),
            stop=None if stop is None else units.given_time(stop),
            rate=units.given_rate(rate),
            payload=payload,
            pattern=pattern,
            on=units.given_time(on),
            off=units.given_time(off),
            ecn=_ECN[ecn],
        )
        specs.demand(spec, f"the UDP flow {name}")
        self._demand_possible(spec, f"the UDP flow {name}", source, target)
        return self._flow("udp", source, target, label or f"udp {name}", spec)

    def _demand_possible(
        self, spec: TcpSpec | UdpSpec | PageSpec, where: str, source: Node, target: Node
    ) -> None:
        """Refuse what the simulator would refuse at the start of a run."""
        if isinstance(spec, PageSpec):
            between: TcpSpec | UdpSpec | PageSpec = replace(
                spec, connection=replace(spec.connection, source=0, target=1)
            )
        else:
            # Where there is no end that could be before it, the start does not matter.
            between = replace(spec, source=0, target=1, start=0 if spec.stop is None else spec.start)
        specs.demand_possible(between, where, (source.name, target.name))

    def _flow(
        self, kind: str, source: Node, target: Node, label: str, spec: TcpSpec | UdpSpec | PageSpec
    ) -> Flow:
        if not isinstance(label, str) or not units.is_text(label):
            raise TidegateError(
                f"the label {label!r} of a flow from {source.name} to {target.name} is not text"
            )
        flow = Flow(len(self.flows), kind, source, target, label, spec)
        self.flows.append(flow)
        return flow
