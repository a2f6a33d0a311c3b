"""Schemes that can be put into a scenario: queues of plain routers, and the systems, each with what it needs of hosts.

A scheme makes the node at `left`, and manages its queue in front of the link when all flows are known. It says which congestion control
flows have, unless the user says: systems with a part in hosts are compared as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate import units
from tidegate._core import TidegateError
from tidegate.network import Link, Network, Node, Switch
from tidegate.scenarios.scenario import Scenario


@dataclass
class Place:
    """Where a scheme is put: the nodes and links of a scenario's network."""

    network: Network
    scenario: Scenario
    left: Node
    sources: list[Node]
    sinks: list[Node]
    inner: Link | None
    """From the router in front to `left`, if the scheme needs one."""
    bottleneck: Link


def _router(net: Network, scenario: Scenario) -> Node:
    return net.router("left")


def _nothing(place: Place) -> None:
    pass


@dataclass(frozen=True)
class Scheme:
    """How the queue in front of the link is managed, and what flows go with it."""

    name: str
    """In rows and figures: letters, digits and `._+-`."""
    text: str
    """What it is, in a few words."""
    left: Callable[[Network, Scenario], Node] = _router
    """Makes the node in front of the link, by default a plain router; its name has to be `left`."""
    manage: Callable[[Place], None] = _nothing
    """Puts controllers, and what hosts need, into the network, where all flows are known."""
    aqm: str | None = None
    """Of the plain router's queue."""
    flow: Callable[[Scenario], dict[str, Any]] = field(default=lambda _: {"congestion_control": "cubic"})
    """Keywords of `Network.tcp`."""
    taps: bool = False
    """It looks at the links before and behind a router that has one link in front."""

    def __post_init__(self) -> None:
        # Here the place in the user's file is known.
        if not isinstance(self.name, str) or not re.fullmatch(r"[\w.+-]{1,64}", self.name):
            raise TidegateError(
                f"a scheme is called {self.name!r}; give a name of letters, digits and ._+-, of 64 at most"
            )
        for name in ("left", "manage", "flow"):
            if not callable(getattr(self, name)):
                raise TidegateError(f"the scheme {self.name}: {name} is no function; give one")


def _meter(net: Network, scenario: Scenario) -> Switch:
    from tidegate.systems.meter.setup import program

    return net.switch("left", program("fair"))


def _meter_all(place: Place) -> None:
    """One fair meter for all that the sources send: 95 % of the link, in IP bytes."""
    from tidegate.systems.meter.controller import Meter
    from tidegate.systems.meter.fair import peak_for
    from tidegate.systems.meter.setup import fair
    from tidegate.systems.meter.tables import IngressPort

    assert isinstance(place.left, Switch)
    ports = [
        IngressPort(place.network.port(place.left, link))
        for link in place.network.links
        if place.left in (link.a, link.b) and link is not place.bottleneck
    ]
    target = units.rate(place.scenario.rate) * 95 // 100
    peak = peak_for(max(units.time(flows.rtt) for flows in place.scenario.flows))
    fair(place.network, place.left, [Meter(0, target, tuple(ports))], peak=peak)


def _aqm(net: Network, scenario: Scenario) -> Switch:
    from tidegate.systems.aqm.setup import program

    return net.switch("left", program("dualpi2"), queues=2)


def _aqm_manage(place: Place) -> None:
    from tidegate.systems.aqm.setup import manage

    assert isinstance(place.left, Switch)
    manage(place.network, place.left, place.bottleneck)


def _pacing(net: Network, scenario: Scenario) -> Switch:
    from tidegate.systems.pacing.setup import pacing

    return pacing(net, "left")


def _pacing_hosts(place: Place) -> None:
    from tidegate.systems.pacing.setup import paced

    for host in place.sources:
        paced(place.network, host)


def _form(scenario: Scenario) -> Any:
    from tidegate.systems.stamping.format import Format

    return Format(32 * units.time(scenario.rtt), bits=8, bins="log", mantissa=5)


def _stamping(net: Network, scenario: Scenario) -> Switch:
    from tidegate.systems.stamping.setup import stamping

    return stamping(net, "left", _form(scenario))


def _stamping_hosts(place: Place) -> None:
    from tidegate.systems.stamping.experiments.testbed import stamp_all

    stamp_all(place.network, [*place.sources, *place.sinks], _form(place.scenario))


def _stamp_flow(scenario: Scenario) -> dict[str, Any]:
    form = _form(scenario)
    options = {
        "base_rtt": f"{units.time(scenario.rtt) // 1000} ns",
        "line_rate": units.show_rate(units.rate(scenario.rate)),
        "rtt": f"{units.time(scenario.rtt) // 1000} ns",
        "min_rate": units.show_rate(max(units.rate(scenario.rate) // 1000, 10_000)),
        **form.control_options,
    }
    return {
        "congestion_control": "stamp",
        "control_options": options,
        "mss": 1460 - form.wire_bytes,
        "ecn": "off",
    }


def _separate(place: Place) -> None:
    from tidegate.systems.separation.setup import separation

    assert place.inner is not None
    separation(
        place.network,
        "monitor",
        place.left,
        place.inner,
        place.bottleneck,
        buffer=f"{place.scenario.buffer_bytes} B",
    )


SCHEMES: Mapping[str, Scheme] = {
    one.name: one
    for one in (
        Scheme("fifo", "FIFO, drop tail"),
        Scheme("codel", "CoDel (RFC 8289)", aqm="codel"),
        Scheme("fq_codel", "FQ-CoDel (RFC 8290)", aqm="fq_codel"),
        Scheme("drr", "DRR, a queue for each flow", aqm="drr"),
        Scheme("meter", "fair meter at 95 % of the link", _meter, _meter_all),
        Scheme(
            "aqm",
            "DualPI2, Prague",
            _aqm,
            _aqm_manage,
            flow=lambda _: {"congestion_control": "prague", "ecn": "accurate"},
        ),
        Scheme("pacing", "switch-driven pacing, CUBIC", _pacing, _pacing_hosts),
        Scheme("stamping", "queue stamps, control `stamp`", _stamping, _stamping_hosts, flow=_stamp_flow),
        Scheme("separation", "flow separation, CUBIC", manage=_separate, taps=True),
    )
}
