"""What a topology of exercises is made of, and the checks that all forms of its file share."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate._core import TidegateError
from tidegate.exercises.host_commands import why_not
from tidegate.exercises.reading import Place
from tidegate.switch.ports import LAST_PORT

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,9}")
MOST_INTERFACE = 15
"""Characters of an interface's name (IFNAMSIZ without the zero at its end)."""
MAC = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")
BROADCAST = IPv4Address("255.255.255.255")
PARTS = ("hosts", "switches", "links")
MOST_HOSTS, MOST_SWITCHES = 100, 50
WORDS = ("exit", "help", "iperf", "links", "nodes", "pingall", "quit", "xterm")
"""What one can type at the prompt: no names of nodes."""
PS_PER_MS = 1_000_000_000
MOST_MBPS = 1_000_000
LONGEST_S = 60


@dataclass(frozen=True)
class Host:
    """A host."""

    name: str
    interface: IPv4Interface
    mac: str
    commands: tuple[str, ...]
    gateway: str | None = None
    """Of the default route."""
    neighbours: tuple[tuple[str, str], ...] = ()
    """Addresses and MACs that it need not ask for."""

    @property
    def address(self) -> str:
        """Its IPv4 address."""
        return str(self.interface.ip)


@dataclass(frozen=True)
class Switch:
    """A switch, with the files that it names."""

    name: str
    program: str | None
    runtime: str | None
    commands: str | None
    cpu_port: int | None
    queues: int = 1
    """Of each port, by `standard_metadata.priority`."""


@dataclass(frozen=True)
class End:
    """Where a link ends: at a host, or at a port of a switch."""

    node: str
    port: int | None

    def __str__(self) -> str:
        return self.node if self.port is None else f"{self.node}-p{self.port}"


@dataclass(frozen=True)
class Link:
    """A link; both directions are alike."""

    ends: tuple[End, End]
    delay: int
    """Picoseconds."""
    rate: int | None
    """Bit/s; `None`: as fast as the machine."""


@dataclass(frozen=True)
class Topology:
    """Hosts, switches and links."""

    path: Path
    hosts: dict[str, Host]
    switches: dict[str, Switch]
    links: tuple[Link, ...]
    notes: tuple[str, ...] = ()
    """What the file says and this network has not."""

    def ends_of(self, node: str) -> list[tuple[End, End, Link]]:
        """The node's ends of its links, and the other ends."""
        found = [(*link.ends, link) for link in self.links] + [
            (*link.ends[::-1], link) for link in self.links
        ]
        return sorted((one for one in found if one[0].node == node), key=lambda one: one[0].port or 0)


def demand_name(place: Place, name: str) -> None:
    """Refuse what is no name of a node."""
    if NAME.fullmatch(name) is None:
        raise place.wrong(f"{name!r} is not a name: a letter, then at most 9 letters and digits")
    if name in WORDS:
        raise place.wrong(f"{name!r} is a command of the prompt; give another name")


def address(place: Place, text: str) -> IPv4Interface:
    """An IPv4 address of a host with its prefix, 24 if it has none."""
    try:
        found = IPv4Interface(text if "/" in text else f"{text}/24")
    except ValueError as error:
        raise place.wrong(
            f"{text!r} is not an IPv4 address with its prefix, as 10.0.1.1/24: {error}"
        ) from None
    problem = _no_host(found)
    if problem is not None:
        raise place.wrong(f"{text!r} cannot be a host's address: {problem}")
    return found


def _no_host(given: IPv4Interface) -> str | None:
    """Why an address is that of no host, if so."""
    if given.ip.is_unspecified or given.ip == BROADCAST:
        return f"{given.ip} stands for no host"
    if given.ip.is_loopback:
        return "127.0.0.0/8 is of the loopback interface"
    if given.ip.is_multicast:
        return "224.0.0.0/4 is for multicast"
    # RFC 3021: both addresses of a /31 are hosts.
    if given.network.prefixlen < 31:
        if given.ip == given.network.network_address:
            return f"it is that of the network {given.network}"
        if given.ip == given.network.broadcast_address:
            return f"it is the broadcast address of {given.network}"
    return None


def mac_address(place: Place, text: str) -> str:
    """A MAC address of one host."""
    if MAC.fullmatch(text) is None or int(text[:2], 16) & 1 or not text.strip("0:"):
        raise place.wrong(f"{text!r} is not a MAC address of one host, as 08:00:00:00:01:11")
    return text.lower()


def commands_of(place: Place, given: dict[str, Any]) -> tuple[str, ...]:
    """What a host runs first."""
    commands = place.expect(given.get("commands", []), list)
    for number, one in enumerate(commands):
        problem = why_not((place / number).expect(one, str))
        if problem is not None:
            raise (place / number).wrong(problem)
    return tuple(commands)


def port_number(place: Place, number: int) -> int:
    """A port of a switch."""
    if not 0 <= number <= LAST_PORT:
        raise place.wrong(f"{number} is not a port: ports are 0 to {LAST_PORT}")
    return number


def switch_end(place: Place, node: str, number: int) -> End:
    """The end of a link at a switch's port."""
    end = End(node, port_number(place, number))
    if len(interface(end)) > MOST_INTERFACE:
        raise place.wrong(
            f"the interface {interface(end)} of {end} has {len(interface(end))} characters, and Linux has {MOST_INTERFACE} at most; "
            "give the switch a shorter name, or the port a smaller number"
        )
    return end


def interface(end: End) -> str:
    """What a switch's interface is called."""
    return f"{end.node}-eth{end.port}"


def delay_of(place: Place, value: object) -> int:
    """A delay in picoseconds: milliseconds, or a text with a unit."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_S * 1000:
        return round(value * PS_PER_MS)
    text = str(value)
    if re.fullmatch(r"[0.]+", text):
        text = "0ms"
    if re.fullmatch(r"[\d.]+", text):
        raise place.wrong(
            f'the delay {value!r} is a text without a unit; write {text} (milliseconds) or "{text}ms"'
        )
    try:
        delay = units.time(text)
    except TidegateError as error:
        raise place.wrong(f"the delay {value!r}: {error}") from None
    if delay > LONGEST_S * units.PS_PER_S:
        raise place.wrong(f"the delay {value!r} is longer than {LONGEST_S} s")
    return delay


def rate_of(place: Place, value: Any) -> int:
    """A rate in bit/s, which is written in Mbit/s."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_MBPS:
        raise place.wrong(f"the rate {value!r} is not one in Mbit/s, above 0 and at most {MOST_MBPS}")
    return max(1, round(value * 1e6))


def demand_ends(place: Place, first: End, second: End) -> None:
    """Refuse a link that cannot be."""
    if first.port is None and second.port is None:
        raise place.wrong("it connects two hosts; connect each to a switch")
    if first.node == second.node:
        raise place.wrong(f"it connects {first.node} to itself")


def demand_parts(place: Place, text: Collection[str]) -> None:
    """Refuse a topology without one of its parts."""
    for name in PARTS:
        if name not in text:
            raise place.wrong(f"there are no {name}; write hosts, switches and links")


def demand_nodes(place: Place, hosts: Collection[str], switches: Collection[str]) -> None:
    """Refuse too many nodes, too few, and two of a name."""
    for what, count, most in (("hosts", len(hosts), MOST_HOSTS), ("switches", len(switches), MOST_SWITCHES)):
        if not 1 <= count <= most:
            raise place.wrong(f"it has {count} {what}; there is room for 1 to {most}")
    for name in hosts:
        if name in switches:
            raise place.wrong(f"{name} is a host and a switch; give one of them another name")


def demand_whole(topology: Topology, place: Place) -> None:
    """What several parts say together."""
    seen: set[End] = set()
    for number, link in enumerate(topology.links):
        for end in link.ends:
            if end in seen:
                what = "has a link already; connect it to a switch" if end.port is None else "is taken"
                raise (place / "links" / number).wrong(f"{end} {what}")
            seen.add(end)
    for name in topology.hosts:
        if End(name, None) not in seen:
            raise (place / "hosts" / name).wrong("no link leads to it")
    _different(place, "address", {host.name: host.address for host in topology.hosts.values()})
    _different(place, "MAC", {host.name: host.mac for host in topology.hosts.values()})


def _different(place: Place, what: str, values: dict[str, str]) -> None:
    """Refuse two hosts with the same value."""
    first: dict[str, str] = {}
    for host, value in values.items():
        other = first.setdefault(value, host)
        if other != host:
            raise (place / "hosts" / host).wrong(f"{other} has the {what} {value}, too")
