"""Adds meters to a network: the programs, and meters with their controller in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

from tidegate.control.part import Part
from tidegate.network import Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.meter.controller import BOUNDED, PAPER, Bucket, Law, Meter, MeterController
from tidegate.systems.meter.fair import FairMeters


@cache
def program(name: str = "meter") -> Program:
    """A data plane of this folder."""
    return compile_p4(Path(__file__).with_name(f"{name}.p4"))


def meter(
    network: Network,
    switch: Switch,
    meters: Iterable[Meter],
    *,
    bucket: Bucket = PAPER,
    law: Law = BOUNDED,
    names: Mapping[str, str] | None = None,
    **options: Any,
) -> MeterController:
    """Meter what passes a switch that runs `meter.p4`: gives the network a controller, which forwards to its hosts as well.

    `bucket` and `law` say how: by default as the paper, with `PLAIN` and `Fixed()` as a token bucket. `names` says what the meter's
    tables, registers and counters are called in a program that includes `meter.p4`. `options` are those of `MeterController`. Hosts
    may be linked to the switch after this.
    """
    ports = partial(network.forwarding, switch)
    controller = MeterController(meters, ports=ports, bucket=bucket, law=law, **options)
    network.control(controller if names is None else Part(controller, names), switch)
    return controller


def fair(
    network: Network,
    switch: Switch,
    meters: Iterable[Meter],
    *,
    names: Mapping[str, str] | None = None,
    **options: Any,
) -> FairMeters:
    """Meter what passes a switch that runs `fair.p4`, fairly among flows; `names` are as with `meter`, `options` those of `FairMeters`.

    Hosts may be linked to the switch after this.
    """
    controller = FairMeters(meters, ports=partial(network.forwarding, switch), **options)
    network.control(controller if names is None else Part(controller, names), switch)
    return controller
