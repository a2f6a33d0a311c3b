"""Puts the combination into a network: the program, and the controllers of its parts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.control import Port
from tidegate.control.part import Part
from tidegate.network import Link, Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.systems.aqm import setup as aqm_setup
from tidegate.systems.aqm.controller import Aqm, AqmController
from tidegate.systems.aqm.setup import DEFAULTS
from tidegate.systems.meter import setup as meter_setup
from tidegate.systems.meter.controller import Meter, MeterController
from tidegate.systems.meter.fair import FairMeters
from tidegate.systems.stamping.controller import StampController
from tidegate.systems.stamping.field import Field

METER = "CombinedIngress.meter"
AQM = "CombinedIngress.aqm"
METER_NAMES = {
    "forward": f"{METER}.forwarding.forward",
    "wires": f"{METER}.forwarding.wires",
    "ports": f"{METER}.classification.ports",
    "sources4": f"{METER}.classification.sources4",
    "sources6": f"{METER}.classification.sources6",
    "targets4": f"{METER}.classification.targets4",
    "targets6": f"{METER}.classification.targets6",
    **{
        name: f"{METER}.{name}"
        for name in ("passed", "dropped", "marked", "spared", "updated", "rate", "target")
    },
}
FAIR_NAMES = {
    **METER_NAMES,
    **{
        name: f"{METER}.{name}"
        for name in ("told", "total", "peak", "flows", "finish", "state", "lowest", "reference", "amount")
    },
}
"""What the meter's controller calls its objects, and what they are in the whole program; names that only one part has are left out."""
AQM_NAMES = {
    "forward": f"{AQM}.forwarding.forward.forward",
    "sources4": f"{AQM}.sources4",
    "sources6": f"{AQM}.sources6",
}
STAMP_NAMES = {"ports": "CombinedEgress.stamp.ports"}


@cache
def _program(defines: tuple[str, ...]) -> Program:
    return compile_p4(Path(__file__).with_name("combined.p4"), defines=defines)


def program(form: Field, *, fair: bool = False) -> Program:
    """The data plane that stamps in a format; its carrier is the shim. With the paper's meter, or the fair one."""
    if form.carrier != "shim":
        raise TidegateError(
            "stamps of the combination are in a shim, so that the meter and DualPI2 see plain IP; give carrier='shim'"
        )
    return _program((*form.defines, *(["COMBINED_FAIR"] if fair else [])))


def combine(network: Network, name: str, form: Field, *, fair: bool = False) -> Switch:
    """Add a switch that runs the combination. Each part that is wanted is set up by a call of its own, when the links are there.

    With `fair` its meter is the fair one, which `fair_meter` sets up.
    """
    return network.switch(name, program(form, fair=fair), queues=2)


def meter(network: Network, switch: Switch, meters: Iterable[Meter], **options: Any) -> MeterController:
    """Meter what passes, as `meter.setup.meter` does."""
    return meter_setup.meter(network, switch, meters, names=METER_NAMES, **options)


def fair_meter(network: Network, switch: Switch, meters: Iterable[Meter], **options: Any) -> FairMeters:
    """Meter what passes, fairly among flows, as `meter.setup.fair` does."""
    return meter_setup.fair(network, switch, meters, names=FAIR_NAMES, **options)


def manage(
    network: Network, switch: Switch, link: Link, aqm: Aqm = DEFAULTS, *, port: Port | None = None
) -> AqmController:
    """Manage the queues in front of a link, as `aqm.setup.manage` does."""
    return aqm_setup.manage(network, switch, link, aqm, port=port, names=AQM_NAMES)


def unmanaged(network: Network, switch: Switch) -> None:
    """Leave all queues as they are: DualPI2's part only says where packets go."""
    network.control(Part(AqmController({}, ports=partial(network.forwarding, switch)), AQM_NAMES), switch)


def stamp(network: Network, switch: Switch, link: Link, form: Field) -> None:
    """Stamp at the port in front of a link."""
    number = network.port(switch, link)
    wire = link.forward if link.a is switch else link.reverse
    scale = form.scale(wire.rate, tick=switch.clock, mtu=wire.mtu)
    # Forwarding is the meter's and DualPI2's: the stamp's part has a table of its own that nobody asks.
    controller = StampController(dict, lambda: {number: scale})
    network.control(Part(controller, {**STAMP_NAMES, "forward": AQM_NAMES["forward"]}), switch)
