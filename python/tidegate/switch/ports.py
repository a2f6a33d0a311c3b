"""Ports of a switch as the command line gives them: `1@eth1`, `2@tap:lab0`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tidegate import units
from tidegate._core import TidegateError

LAST_PORT = 510
"""The last number that v1model can send to."""

MOST_QUEUES = 256
"""Of a port."""

TAP = "tap"


class Mode(StrEnum):
    """Packet I/O backend of an interface."""

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
    """Egress rate; `None`: as fast as the interface takes frames."""
    delay: units.Time = 0
    """Additional egress delay."""
    both: bool = False
    """Whether rate and delay hold for what comes as well: the other end of the link has none of its own."""


def parse_port(text: str, mode: Mode = Mode.AUTO) -> SwitchPort:
    """Read `PORT@INTERFACE` or `PORT@tap:NAME`."""
    digits, at, interface = text.partition("@")
    number = units.decimal(digits)
    if not at or not interface or number is None:
        raise TidegateError(f"the port {text!r}: write PORT@INTERFACE, as 1@eth1, or PORT@tap:NAME")
    if number > LAST_PORT:
        raise TidegateError(f"the port {text!r}: ports are 0 to {LAST_PORT}")
    if interface.startswith(f"{TAP}:"):
        name = interface.removeprefix(f"{TAP}:")
        if not name:
            raise TidegateError(
                f"the port {text!r}: the name of the TAP device is missing; write PORT@tap:NAME"
            )
        return SwitchPort(number, name, TAP)
    return SwitchPort(number, interface, mode)


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
    for number, rate in _by_port("--rate", rates, _rate, ports).items():
        ports[number] = replace(ports[number], rate=rate)
    for number, delay in _by_port("--delay", delays, units.time, ports).items():
        ports[number] = replace(ports[number], delay=delay)
    return list(ports.values())


def demand_values(rates: Iterable[str], delays: Iterable[str]) -> None:
    """Refuse values of `--rate` and `--delay` that no port can have; which ports there are is not known yet."""
    for option, texts, value_of in (("--rate", rates, _rate), ("--delay", delays, units.time)):
        for text in texts:
            _by_port(option, [text], value_of, range(LAST_PORT + 1))


def _rate(text: str) -> int:
    rate = units.rate(text)
    if rate == 0:
        raise TidegateError("a port with the rate 0 sends nothing; give a rate above 0")
    return rate


def _by_port(
    option: str, texts: Iterable[str], value_of: Callable[[str], int], ports: Collection[int]
) -> dict[int, int]:
    """The values of an option `PORT=VALUE`."""
    found: dict[int, int] = {}
    for text in texts:
        digits, equals, value = text.partition("=")
        number = units.decimal(digits)
        if not equals or number is None or number not in ports:
            known = f"0 to {LAST_PORT}" if isinstance(ports, range) else ", ".join(map(str, ports))
            raise TidegateError(f"{option} {text!r}: write PORT=VALUE with one of the ports {known}")
        if number in found:
            raise TidegateError(f"{option} {text!r}: the port {number} has one already; give it once")
        try:
            found[number] = value_of(value)
        except TidegateError as error:
            raise TidegateError(f"{option} {text!r}: {error}") from None
    return found
