"""Runs a network in the simulator: virtual time, one seed, one result."""

from __future__ import annotations

from tidegate.backends import common
from tidegate.network import Network
from tidegate.results import Result


def run(network: Network, until: int, seed: int, progress: common.Progress | None = None) -> Result:
    """Run until `until` picoseconds."""
    core, ports = common.build(network, seed, with_flows=True)
    control = common.Control(network, core)
    interrupted = False
    with common.changing(network, core, ports):
        try:
            with common.shown(progress), common.captures(network, core, ports):
                common.loop(network, control, control.start(), core.run_until, until, progress)
        except KeyboardInterrupt:
            interrupted = True
    watched = common.watched_links(network)
    return Result.of_simulation(network, core, ports, watched, control.notes, seed, interrupted)
