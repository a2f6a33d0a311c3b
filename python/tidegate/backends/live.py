"""Runs a network between real Linux TCP stacks: hosts are namespaces, the rest runs by the real clock."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from os import PathLike
from typing import Any

import polars as pl

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.backends import common
from tidegate.backends.build import build, linux_ends, watched_links
from tidegate.control import Port, Queue
from tidegate.control.runner import Runner
from tidegate.hosts import linux_qdisc
from tidegate.hosts.agents import HostAgents
from tidegate.hosts.controls import Controls
from tidegate.hosts.linux_port import LinuxPort
from tidegate.hosts.linux_router import LinuxRouter
from tidegate.hosts.real_agents import RealAgents
from tidegate.lab import kernel
from tidegate.lab.interfaces import HOST_INTERFACE
from tidegate.lab.lab import SWITCH, Lab
from tidegate.lab.looking import Flows
from tidegate.lab.messages import Attach, Finish, Go, MakeLinks, Report, SetUp, SetUpRouter
from tidegate.lab.placement import placement
from tidegate.lab.plan import HostPlan, lacking, plan, router_plans
from tidegate.lab.routers import RouterPlan, interface
from tidegate.lab.tables import flow_tables
from tidegate.network import Link, Network, Node
from tidegate.network.classes import RunningPort
from tidegate.network.links import queue_names
from tidegate.results import Measurement, Note, Result, live_table
from tidegate.suggest import did_you_mean
from tidegate.units import PS_PER_S, counted

PS_PER_NS = 1000
PROFILES = (LATENCY, THROUGHPUT) = ("latency", "throughput")

# From here on a packet that is late by so much, or a p99 of that, is told of.
LATE_MS = 5.0
LATE_P99_MS = 1.0
# And if so many samples of flows are missing.
LEFT_OUT = 0.05

# How often agents of hosts are told of what there is.
AGENTS_PERIOD = PS_PER_S // 1000

# Queues by class at a port of a Linux router.
MOST_QUEUES = 256

# Of a host's interface.
COUNTS = (
    "received",
    "received_bytes",
    "sent",
    "sent_bytes",
    "truncated",
    "overrun",
    "wrong_size",
    "refused",
    "completed",
    "segmented",
)


def run(
    network: Network,
    until: int,
    seed: int,
    progress: common.Progress | None = None,
    profile: str = LATENCY,
) -> Result:
    """Run until `until` picoseconds; `profile` says what the ports are tuned for: `latency` or `throughput`."""
    if profile not in PROFILES:
        known = ", ".join(PROFILES)
        raise TidegateError(
            f"there is no live profile {profile!r}; {did_you_mean(profile, PROFILES)}known: {known}"
        )
    kernel.demand_privilege()
    with RealAgents(network) as real, Controls(lacking(network), real.shared) as controls:
        agents = HostAgents(network, real)
        try:
            hosts = plan(network, seed, controls, real.problem)
            return _run(network, hosts, (real, agents), controls, until, seed, progress, profile)
        finally:
            agents.end()


def _run(
    network: Network,
    hosts: list[HostPlan],
    given: tuple[RealAgents, HostAgents],
    controls: Controls,
    until: int,
    seed: int,
    progress: common.Progress | None,
    profile: str,
) -> Result:
    real, agents = given
    core, ports = build(network, seed, with_flows=False)
    routers = router_plans(network)
    notes: list[Note] = []
    watched = watched_links(network)
    interrupted = False
    shared = (*controls.markers.values(), *(real.programs or ()))
    called = [*(host.node.name for host in hosts), *(router.node.name for router in routers)]
    where = placement()
    receiving = [where.receivers if _only_receives(host) else where.senders for host in hosts]
    receiving += [where.senders] * len(routers)
    with Lab(called, shared, receiving) as lab, ExitStack() as kept:
        names = dict(zip(lab.hosts, hosts, strict=False))
        forwarding = dict(zip(lab.hosts[len(hosts) :], routers, strict=True))
        _set_up(lab, names, forwarding, real)
        elsewhere = _linux_ports(network, lab, forwarding, kept)

        def advance(end: int) -> int:
            lab.check()
            if not network.agents:
                return core.live_until(end)
            # They hear of news within this time.
            soon = min(end, core.now() + AGENTS_PERIOD)
            while True:
                real.flush()
                reached = core.live_until(soon)
                agents.deliver()
                # It ends early for a controller.
                if reached < soon or reached >= end:
                    return reached
                soon = min(end, reached + AGENTS_PERIOD)

        watcher = common.watcher
        by_slices = common.SlicedClock(core, advance, until, progress, watcher)
        runner = common.runner(network, core, by_slices, notes, with_flows=False)
        agents.plan(runner)
        with (
            common.changing(network, core, ports, elsewhere),
            _started(runner),
            common.captures(network, core, ports) as unwritten,
            _live(network, core, lab, names, forwarding, profile, where.network),
            _urgent(),
        ):
            try:
                origin = clock.monotonic_ns() - core.now() // PS_PER_NS
                real.begin(origin)
                lab.ask_all(dict.fromkeys(names, Go(origin, until // PS_PER_NS)))
                if watcher is not None:
                    watcher.begin(network, core, ports, notes, until, Flows(lab, names).look)
                with common.shown(progress):
                    runner.run(until)
            except KeyboardInterrupt:
                interrupted = True
            finally:
                if watcher is not None:
                    watcher.end(core.now())
            end = min(until, core.now())
            # Before the flows' ends say goodbye to each other.
            result = Result.of_network(network, core, ports, watched, notes, seed, interrupted)
            reports = lab.ask_all(dict.fromkeys(names, Finish()))
            statistics = core.live_statistics()
            lost = real.lost
    lost_captures = common.tell_unwritten(unwritten, interrupted)
    flows, samples = flow_tables(network, reports.values(), end)
    return replace(
        result,
        end_s=end / PS_PER_S,
        flows=flows,
        flow_samples=samples,
        queue_samples=_of_kernels(network, result.queue_samples),
        live=live_table(_measurements(statistics, _interfaces(hosts, routers))),
        warnings=(
            *lost_captures,
            *_warnings(network, _interfaces(hosts, routers), statistics, reports, end, lost),
        ),
    )


def _of_kernels(network: Network, samples: pl.DataFrame) -> pl.DataFrame:
    """The samples of queues without what is not known of those of Linux routers: what waits does so in the kernel."""
    names = queue_names(network.links)
    theirs = [names[link.number][link.b is node] for node, link in linux_ends(network)]
    known = pl.when(~pl.col("queue").is_in(theirs)).then(pl.col("stalled_s"))
    return samples.with_columns(known.alias("stalled_s"))


def _only_receives(host: HostPlan) -> bool:
    """Whether flows end at a host, and none begins there."""
    return bool(host.prepare.receives) and not host.prepare.sends


def _interface(number: int) -> str:
    """The switches' end of the link of a host."""
    return f"host{number}"


def _router_interface(number: int, port: int) -> str:
    """The switches' end of a link of a Linux router."""
    return f"router{number}.{port}"


def _interfaces(hosts: list[HostPlan], routers: list[RouterPlan]) -> list[str]:
    """What the interfaces of a run are called, in the order of `_live`."""
    return [
        *(host.node.name for host in hosts if host.link is not None),
        *(f"{router.node.name} {interface(port)}" for router in routers for port in range(len(router.links))),
    ]


def _set_up(lab: Lab, hosts: dict[str, HostPlan], routers: dict[str, RouterPlan], real: RealAgents) -> None:
    """Links, addresses, agents, and whoever listens."""
    pairs = [
        (_interface(number), lab.pid(name), host.mtu, HOST_INTERFACE)
        for number, (name, host) in enumerate(hosts.items())
        if host.link is not None
    ]
    pairs += [
        (_router_interface(number, port), lab.pid(name), router.wire(link).mtu, interface(port))
        for number, (name, router) in enumerate(routers.items())
        for port, link in enumerate(router.links)
    ]
    lab.ask(SWITCH, MakeLinks(tuple(pairs)))
    set_up: dict[str, SetUp | SetUpRouter] = {name: host.set_up for name, host in hosts.items()}
    set_up |= {name: router.set_up for name, router in routers.items()}
    lab.ask_all(set_up)
    if real.programs is not None:
        with_agents = {
            name: host.node
            for name, host in hosts.items()
            if host.link is not None and host.node.number in real.hosts
        }
        cookies = lab.ask_all(dict.fromkeys(with_agents, Attach(*real.programs)))
        real.attach({node: (cookies[name], lab.namespace(name)) for name, node in with_agents.items()})
    lab.ask_all({name: host.prepare for name, host in hosts.items()})


def _linux_ports(
    network: Network, lab: Lab, routers: dict[str, RouterPlan], kept: ExitStack
) -> dict[tuple[Node, Link], RunningPort]:
    """HTB at each port of Linux routers: the rate of the link and its queue, or the queues by class that it has; or its qdisc."""
    described = {(one.router, one.link): one.port for one in network.class_ports}
    made: dict[tuple[Node, Link], RunningPort] = {}
    for name, router in routers.items():
        for number, link in enumerate(router.links):
            wire = router.wire(link)
            qdisc = network.qdiscs.get((router.node, link))
            if qdisc is not None:
                linux_qdisc.install(qdisc, interface(number), lab.namespace(name))
                continue
            # Rates of links count frames with `framing`, those of the router IP packets.
            rate = wire.rate * wire.mtu // (wire.mtu + wire.framing)
            queue = Queue(packets=wire.packets, bytes=wire.bytes)
            port = described.get((router.node, link), Port((queue,)))
            there = LinuxRouter(
                interface(number),
                rate,
                most_queues=MOST_QUEUES,
                namespace=lab.namespace(name),
                mtu=wire.mtu,
                framing=wire.framing,
            )
            kept.callback(there.close)
            made[router.node, link] = LinuxPort(there, rate, port, wire.mtu)
    return made


@contextmanager
def _live(
    network: Network,
    core: _core.Simulation,
    lab: Lab,
    hosts: dict[str, HostPlan],
    routers: dict[str, RouterPlan],
    profile: str,
    processor: int | None,
) -> Iterator[None]:
    """While this lasts, the network runs by the clock."""
    namespace = lab.namespace(SWITCH)
    wiring: list[tuple[int, str | PathLike[str] | None, str, str]] = [
        (host.node.number, namespace, _interface(number), "auto")
        for number, host in enumerate(hosts.values())
        if host.link is not None
    ]
    ends = linux_ends(network)
    wiring += [
        (ends[router.node, link], namespace, _router_interface(number, port), "auto")
        for number, router in enumerate(routers.values())
        for port, link in enumerate(router.links)
    ]
    core.go_live(wiring, profile=profile, processor=processor)
    try:
        yield
    finally:
        core.end_live()


@contextmanager
def _urgent() -> Iterator[None]:
    """While this lasts, this thread is as urgent as the network's own: that waits for it when a controller reads or writes."""
    before, parameter = os.sched_getscheduler(0), os.sched_getparam(0)
    # Without CAP_SYS_NICE neither is urgent.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, parameter)


@contextmanager
def _started(runner: Runner) -> Iterator[None]:
    """Controllers start when routers have their queues, and before there are packets."""
    runner.start()
    yield


def _ms(ps: int | None) -> float:
    return (ps or 0) / 1e9


def _measurements(statistics: dict[str, Any], interfaces: list[str]) -> list[Measurement]:
    """How late frames were, and what the interfaces counted."""
    late = statistics["lateness"]
    rows: list[Measurement] = [("", "frames", late["frames"])]
    rows += [("", f"lateness_ms_{name}", _ms(late[name])) for name in ("p50", "p90", "p99", "p999", "max")]
    for name, port in zip(interfaces, statistics["ports"], strict=True):
        rows.append((name, f"by {port['kind']}", 1.0))
        rows += [(name, quantity, float(port[quantity])) for quantity in COUNTS]
    return rows


def _warnings(
    network: Network,
    interfaces: list[str],
    statistics: dict[str, Any],
    reports: dict[str, Report],
    end: int,
    lost: int,
) -> Iterator[str]:
    """What makes the figures doubtful."""
    if lost:
        yield f"agents of hosts were too slow for {lost} of the reports and events that they were to be told"
    late = statistics["lateness"]
    most, p99 = _ms(late["max"]), _ms(late["p99"])
    if most > LATE_MS or p99 > LATE_P99_MS:
        yield (
            f"packets were late by {p99:.2f} ms (p99), one by {most:.1f} ms: the machine was busy with other things, "
            "or more packets came at once than it forwards"
        )
    for name, port in zip(interfaces, statistics["ports"], strict=True):
        if port["notice"] is not None:
            yield f"{name}: {port['notice']}"
        for quantity, what in (
            ("overrun", "came faster than they were taken"),
            ("refused", "could not be taken"),
        ):
            if port[quantity]:
                yield f"{name}: {counted(port[quantity], 'packet')} {what}"
    for report in reports.values():
        for flow in report.sent:
            if flow.problem is not None:
                yield f"{network.flows[flow.number].label}: {flow.problem}"
    if network.sampling is not None:
        due = max(1, end // network.sampling)
        most, name = max((report.late_samples / due, name) for name, report in reports.items())
        if most > LEFT_OUT:
            yield f"the machine was too slow for {most:.0%} of the samples of flows at {name}"
