"""Runs a network in the simulator: virtual time, one seed, one result."""

from __future__ import annotations

from dataclasses import replace

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.backends import common
from tidegate.backends.build import build, watched_links
from tidegate.hosts.agents import HostAgents
from tidegate.network import Network
from tidegate.results import Note, Result


def run(
    network: Network,
    until: int,
    seed: int,
    progress: common.Progress | None = None,
    *,
    threads: int = 1,
) -> Result:
    """Run until `until` picoseconds, on so many threads where that gains anything.

    Raises `TidegateError` for a network with qdiscs of Linux.
    """
    for (router, link), qdisc in network.qdiscs.items():
        raise TidegateError(
            f"{router.name}: {qdisc.kind} at {link.name} is a qdisc of the kernel, which the simulator does not have; run it with "
            "--backend live"
        )
    core, ports = build(network, seed, with_flows=True)
    core.set_threads(threads)
    notes: list[Note] = []
    handle = _core.HostAgents(core)
    agents = HostAgents(network, handle)

    def advance(end: int) -> int:
        reached = core.run_until(end)
        if common.on_threads is not None:
            common.on_threads(core.threads()[0])
        agents.deliver()
        return reached

    watcher = common.watcher
    clock = common.SlicedClock(core, advance, until, progress, watcher)
    runner = common.runner(network, core, clock, notes, with_flows=True)
    agents.plan(runner)
    interrupted = False
    unwritten: list[str] = []
    with common.changing(network, core, ports):
        try:
            with common.shown(progress), common.captures(network, core, ports) as unwritten:
                runner.start()
                if watcher is not None:
                    watcher.begin(network, core, ports, notes, until)
                runner.run(until)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            agents.end()
            if watcher is not None:
                watcher.end(core.now())
    lost = common.tell_unwritten(unwritten, interrupted)
    watched = watched_links(network)
    result = Result.of_simulation(network, core, ports, watched, notes, seed, interrupted)
    return replace(
        result,
        malformed_options=handle.malformed_options(),
        warnings=(*result.warnings, *lost, *_fewer(core, threads)),
    )


def _fewer(core: _core.Simulation, threads: int) -> list[str]:
    """Why a run had fewer threads than it was to have."""
    used, why = core.threads()
    return [] if used >= threads else [f"ran on {used} of {threads} threads: {why}"]
