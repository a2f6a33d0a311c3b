"""Puts the marker into a network: the program, and a port's threshold in one call."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from tidegate import units
from tidegate.network import Link, Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4

from .controller import MarkerController


@cache
def program() -> Program:
    """The data plane."""
    return compile_p4(Path(__file__).with_name("marker.p4"))


def mark(network: Network, switch: Switch, link: Link, threshold: units.Time = "1 ms") -> MarkerController:
    """Mark what waits for longer than `threshold` in front of a link of a switch that runs `marker.p4`."""
    ports = partial(network.forwarding, switch)
    controller = MarkerController({network.port(switch, link): threshold}, ports)
    network.control(controller, switch)
    return controller
