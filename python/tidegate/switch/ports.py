"""Ports of a switch as the command line gives them: `1@eth1`, `2@tap:lab0`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tidegate import units
from tidegate._core import TidegateError

LAST_PORT = 510
"""The last number that v1model can send to."""

TAP = "tap"


class Mode(StrEnum):
    """How frames get from an interface."""

    AUTO = "auto"
    XDP = "xdp"
    XDP_GENERIC = "xdp-generic"
    PACKET = "packet"


@dataclass(frozen=True)
class SwitchPort:
    """A port and its interface."""

    number: int
    interface: str
    kind: str = Mode.AUTO
    """A mode, or `tap`."""
    netns: str | None = None
    """File of the interface's network namespace; `None`: that of this process."""
    rate: units.Rate | None = None
    """Of what leaves by the port; `None`: as fast as the interface takes it."""
    delay: units.Time = 0
    """Added to what leaves by the port."""


def parse_port(text: str, mode: Mode = Mode.AUTO) -> SwitchPort:
    """Read `PORT@INTERFACE` or `PORT@tap:NAME`."""
    number, at, interface = text.partition("@")
    if not at or not interface or not number.isascii() or not number.isdecimal():
        raise TidegateError(f"the port {text!r}: write PORT@INTERFACE, as 1@eth1, or PORT@tap:NAME")
    if int(number) > LAST_PORT:
        raise TidegateError(f"the port {text!r}: ports are 0 to {LAST_PORT}")
    if interface.startswith(f"{TAP}:"):
        return SwitchPort(int(number), interface.removeprefix(f"{TAP}:"), TAP)
    return SwitchPort(int(number), interface, mode)


def parse_ports(
    texts: Iterable[str], mode: Mode, rates: Iterable[str], delays: Iterable[str]
) -> list[SwitchPort]:
    """Read all `-i`, `--rate PORT=RATE` and `--delay PORT=TIME`."""
    ports: dict[int, SwitchPort] = {}
    for text in texts:
        port = parse_port(text, mode)
        if port.number in ports:
            raise TidegateError(
                f"the port {text!r}: {ports[port.number].interface} has the number {port.number}"
            )
        if any(port.interface == other.interface for other in ports.values()):
            raise TidegateError(f"the port {text!r}: {port.interface} is a port already")
        ports[port.number] = port
    for text in rates:
        port, value = _of_port("--rate", text, ports)
        units.rate(value)
        ports[port.number] = replace(port, rate=value)
    for text in delays:
        port, value = _of_port("--delay", text, ports)
        units.time(value)
        ports[port.number] = replace(port, delay=value)
    return list(ports.values())


def _of_port(option: str, text: str, ports: dict[int, SwitchPort]) -> tuple[SwitchPort, str]:
    number, equals, value = text.partition("=")
    if not equals or not number.isdecimal() or int(number) not in ports:
        known = ", ".join(str(known) for known in ports)
        raise TidegateError(f"{option} {text!r}: write PORT=VALUE with one of the ports {known}")
    return ports[int(number)], value
