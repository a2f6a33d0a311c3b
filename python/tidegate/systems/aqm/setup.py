"""Adds PI2 or DualPI2 to a network: the programs, and the management of a port's queues in one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, overload

from tidegate import units
from tidegate.control import Port
from tidegate.control.part import Part
from tidegate.network import Link, Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.aqm.controller import Aqm, AqmController, dual_port
from tidegate.systems.aqm.tofino import TofinoAqm, TofinoController

DEFAULTS = Aqm()
"""Those of RFC 9332 appendix A."""


@cache
def program(name: str) -> Program:
    """A data plane of this folder: `pi2` or `dualpi2`, or `pi2_tofino` or `dualpi2_tofino`."""
    return compile_p4(Path(__file__).with_name(f"{name}.p4"))


@overload
def manage(
    network: Network,
    switch: Switch,
    link: Link,
    aqm: Aqm = ...,
    *,
    port: Port | None = ...,
    names: Mapping[str, str] | None = ...,
    **options: Any,
) -> AqmController: ...


@overload
def manage(
    network: Network, switch: Switch, link: Link, aqm: TofinoAqm, *, port: Port | None = ...
) -> TofinoController: ...


def manage(
    network: Network,
    switch: Switch,
    link: Link,
    aqm: Aqm | TofinoAqm = DEFAULTS,
    *,
    port: Port | None = None,
    names: Mapping[str, str] | None = None,
    **options: Any,
) -> AqmController | TofinoController:
    """Manage the queues of a switch in front of a link: gives the port its queues, and the network a controller.

    `port` is `dual_port()` for two queues unless it is given, or one queue for `pi2.p4`; the number of queues tells them apart.
    With a `TofinoAqm` for the programs in Tofino's form, each queue gets the limit of `aqm`. `names` says what the tables, registers
    and counters are called in a program that includes `dualpi2.p4`. `options` are those of `AqmController`.
    """
    number = network.port(switch, link)
    rate = (link.forward if link.a is switch else link.reverse).rate
    queues = dual_port() if port is None else port
    # Asked for at the start: hosts may be linked after this.
    ports = partial(network.forwarding, switch)
    controller: AqmController | TofinoController
    if isinstance(aqm, TofinoAqm):
        held = f"{units.time(aqm.limit) * rate // (8 * units.PS_PER_S)} B"
        queues = replace(queues, queues=tuple(replace(queue, bytes=held) for queue in queues.queues))
        controller = TofinoController({number: rate}, aqm, ports=ports, **options)
    else:
        controller = AqmController({number: rate}, aqm, ports=ports, **options)
    network.configure(switch, link, queues)
    network.control(controller if names is None else Part(controller, names), switch)
    return controller
