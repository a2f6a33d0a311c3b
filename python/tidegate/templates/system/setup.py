"""Puts the marker into a network: the program, and a port's threshold in one call."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from tidegate import units
from tidegate.network import Link, Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.scenarios import Place, Scenario, Scheme

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


def _switch(network: Network, scenario: Scenario) -> Switch:
    return network.switch("left", program())


def _mark(place: Place) -> None:
    assert isinstance(place.left, Switch)
    mark(place.network, place.left, place.bottleneck)


scheme = Scheme(
    "marker",
    "ECN marks above a delay threshold, DCTCP",
    left=_switch,
    manage=_mark,
    flow=lambda scenario: {"congestion_control": "dctcp", "ecn": "on"},
)
"""For `tidegate compare ./marker:scheme fifo codel`: the marker in the scenarios that all schemes have."""
