"""Adds PI2 or DualPI2 to a network: the programs, and the management of a port's queues in one call."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path
from typing import Any

from tidegate.control import Port
from tidegate.network import Link, Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.aqm.controller import Aqm, AqmController, dual_port

DEFAULTS = Aqm()
"""Those of RFC 9332 appendix A."""


@cache
def program(name: str) -> Program:
    """A data plane of this folder: `pi2` or `dualpi2`."""
    return compile_p4(Path(__file__).with_name(f"{name}.p4"))


def manage(
    network: Network,
    switch: Switch,
    link: Link,
    aqm: Aqm = DEFAULTS,
    *,
    port: Port | None = None,
    **options: Any,
) -> AqmController:
    """Manage the queues of a switch in front of a link: gives the port its queues, and the network a controller.

    `port` is `dual_port()` for `dualpi2.p4` unless it is given, or one queue for `pi2.p4`; the number of queues tells them
    apart. `options` are those of `AqmController`.
    """
    number = network.port(switch, link)
    network.configure(switch, link, dual_port() if port is None else port)
    rate = (link.there if link.a is switch else link.back).rate
    # Asked for at the start: hosts may be linked after this.
    controller = AqmController({number: rate}, aqm, ports=partial(network.forwarding, switch), **options)
    network.control(controller, switch)
    return controller
