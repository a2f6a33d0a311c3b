"""Puts a stamping switch into a network: the program for a format, and the controller that gives ports their full scale."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.network import Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.stamping.controller import StampController
from tidegate.systems.stamping.format import Format, Scale


@cache
def _program(defines: tuple[str, ...]) -> Program:
    return compile_p4(Path(__file__).with_name("stamp.p4"), defines=defines)


def program(form: Format) -> Program:
    """The data plane that stamps in a format."""
    return _program(tuple(form.defines))


def stamping(
    network: Network, name: str, form: Format, *, clock: units.Time = "1 us", **options: Any
) -> Switch:
    """Add a switch that stamps at all of its ports. Hosts may be linked to it after this.

    `clock` is the unit in which the switch measures times. `options` are those of `Network.switch`.
    """
    tick = units.time(clock)
    if tick != units.PS_PER_S // 1_000_000:
        options["clock"] = clock
    switch = network.switch(name, program(form), **options)
    scales = partial(_scales, network, switch, form, tick)
    network.control(StampController(partial(network.forwarding, switch), scales), switch)
    return switch


def _scales(network: Network, switch: Switch, form: Format, tick: int) -> dict[int, Scale]:
    """The full scale of each of a switch's ports."""
    links = [link for link in network.links if switch in (link.a, link.b)]
    return {port: form.scale(tick) for port, _ in enumerate(links)}
