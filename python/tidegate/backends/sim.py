"""Runs a network in the simulator: virtual time, one seed, one result."""

from __future__ import annotations

import time as clock
from collections.abc import Callable

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.network import Link, Network, Switch, TcpSpec, UdpSpec, Wire
from tidegate.results import Result

# How often a run looks up: for Ctrl-C and the progress bar.
SLICE_S = 0.05


def build(network: Network, seed: int) -> tuple[_core.Simulation, dict[int, tuple[int, int]]]:
    """The simulator's network, and the ports of each link: at its node a and at its node b."""
    core = _core.Simulation(seed)
    for node in network.nodes:
        if isinstance(node, Switch):
            core.switch(node.name, node.program.core, node.queues)
        elif node.kind == "host":
            core.host(node.name)
        else:
            core.router(node.name)
    ports = {
        link.number: core.link(link.a.number, link.b.number, link.there, link.back) for link in network.links
    }
    for flow in network.flows:
        if isinstance(flow.spec, TcpSpec):
            core.tcp(flow.spec)
        elif isinstance(flow.spec, UdpSpec):
            core.udp(flow.spec)
    for when, link, side, wire in network.changes:
        core.change_link(when, ports[link.number][0 if side == "there" else 1], wire)
    for router, to, over in network.routes:
        core.set_route(router.number, to.number, ports[over.number][0 if over.a is router else 1])
    for node in network.nodes:
        if isinstance(node, Switch):
            for line in node.commands:
                try:
                    core.command(node.number, line)
                except TidegateError as error:
                    raise TidegateError(f"switch {node.name}: {line}: {error}") from None
    return core, ports


def run(
    network: Network, until: int, seed: int, progress: Callable[[int, int], None] | None = None
) -> Result:
    """Run until `until` picoseconds."""
    core, ports = build(network, seed)
    watched: list[Link] = list(dict.fromkeys(network.watched)) if network.watched else []
    for link in watched:
        for port in ports[link.number]:
            core.record_waits(port)
    if network.sampling is not None:
        core.record(network.sampling, True, [port for link in watched for port in ports[link.number]])

    def change(when: int, link: Link, side: str, wire: Wire) -> None:
        core.change_link(when, ports[link.number][0 if side == "there" else 1], wire)

    interrupted = False
    planned = len(network.changes)
    network.running = change
    pending = sorted(((when, order) for order, (when, _) in enumerate(network.actions)), reverse=True)
    step = max(1, until // 1000)
    done = 0
    try:
        while True:
            end = min(until, done + step)
            if pending and pending[-1][0] <= end:
                end = max(done, pending[-1][0])
            began = clock.perf_counter()
            core.run_until(end)
            spent = clock.perf_counter() - began
            done = end
            while pending and pending[-1][0] <= done:
                network.actions[pending.pop()[1]][1]()
            if progress is not None:
                progress(done, until)
            if done >= until:
                break
            # Slices of about the same length in real time.
            if spent < SLICE_S / 2:
                step *= 2
            elif spent > SLICE_S * 2:
                step = max(1, step // 2)
    except KeyboardInterrupt:
        interrupted = True
    finally:
        network.running = None
        del network.changes[planned:]
    return Result.of_simulation(network, core, ports, watched, core.now(), seed, interrupted)
