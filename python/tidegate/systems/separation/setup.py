"""Puts flow separation into a network: taps, a monitor, and a controller of a router's port."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Port, Queue
from tidegate.network import Link, Network, Node, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.separation.controller import SeparationController, Taps
from tidegate.systems.separation.measured import MOST_BITS, SKETCH_BITS
from tidegate.systems.separation.routers.simulated import PORT_QUEUES, SimulatedRouter

PORTS = Taps(before=(1, 2), after=3)
"""Of the monitor."""


@cache
def program(flow_bits: int = 12, packet_bits: int = 16, sketch_bits: int = SKETCH_BITS[0]) -> Program:
    """The monitor with tables for 2 * 2^flow_bits flows, and 2 * 2^packet_bits packets that wait for their acknowledgments."""
    for name, bits in (("flow_bits", flow_bits), ("packet_bits", packet_bits), ("sketch_bits", sketch_bits)):
        if not isinstance(bits, int) or not 4 <= bits <= (MOST_BITS if name != "packet_bits" else 20):
            raise TidegateError(f"{name} is {bits!r}; give 4 to 16, and for packet_bits 4 to 20")
    sizes = [f"FLOW_BITS={flow_bits}", f"PACKET_BITS={packet_bits}", f"SKETCH_BITS={sketch_bits}"]
    return compile_p4(Path(__file__).with_name("monitor.p4"), defines=sizes)


def monitor(
    network: Network, name: str, before: Link, after: Link, into: Node, *, every: int = 1, **sizes: int
) -> Switch:
    """Add a monitor that sees two links: `before`, by which packets come to the router `into`, and `after`, by which they leave it.

    `every` is that of `Network.tap`: a flow is seen in one of so many seconds.
    """
    if into not in (before.a, before.b) or into not in (after.a, after.b):
        raise TidegateError(
            f"{into.name} is not between {before.name} and {after.name}; give the router between the taps"
        )
    switch = network.switch(name, program(**sizes))
    forth, back = PORTS.before
    arrives = before.b is into
    network.tap(
        before,
        switch,
        forward=forth if arrives else back,
        reverse=back if arrives else forth,
        every=every,
    )
    leaves = after.a is into
    network.tap(
        after,
        switch,
        forward=PORTS.after if leaves else None,
        reverse=None if leaves else PORTS.after,
        every=every,
    )
    return switch


def separation(
    network: Network,
    name: str,
    router: Node,
    before: Link,
    after: Link,
    *,
    buffer: units.Size,
    sizes: dict[str, int] | None = None,
    most_queues: int = PORT_QUEUES,
    every: int = 1,
    **options: Any,
) -> SeparationController:
    """Separate the flows that a plain router sends over the link `after`; they come to it by the link `before`.

    The router has one queue of `buffer` bytes until the controller knows flows. `sizes` are those of `program`, `options` those of
    `SeparationController`, whose period is `every` seconds if it is not given.
    """
    wire = after.forward if after.a is router else after.reverse
    classes = network.classes(router, after, Port((Queue(bytes=buffer),), "deficit round robin"))
    simulated = SimulatedRouter(classes, most_queues, wire.mtu)
    packet_ps = (wire.mtu + wire.framing) * 8 * units.PS_PER_S // max(wire.rate, 1)
    taps = Taps(PORTS.before, PORTS.after, wire.delay + packet_ps)
    # Rates are of IP packets of the full size.
    rate = wire.rate * wire.mtu // (wire.mtu + wire.framing)
    options = {"rate": rate, "every": every, "period": f"{every} s", **options}
    controller = SeparationController(simulated, taps, ready=simulated.begin, **options)
    network.control(controller, monitor(network, name, before, after, router, every=every, **(sizes or {})))
    return controller
