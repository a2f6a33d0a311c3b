"""A network as the public P4 tutorials write it (`topology.json`).

    {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["route add default gw 10.0.1.10 dev eth0"]}},
     "switches": {"s1": {"runtime_json": "s1-runtime.json", "cli_input": "s1-commands.txt", "program": "basic.p4"}},
     "links": [["h1", "s1-p1"], ["s1-p3", "s2-p3", "5ms", 100]]}

A link has two ends, then a delay (milliseconds, or text with a unit) and a rate (Mbit/s). A switch's end names its port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate._core import TidegateError
from tidegate.exercises.reading import Place, load
from tidegate.suggest import did_you_mean
from tidegate.switch.ports import LAST_PORT

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,9}")
MOST_INTERFACE = 15
"""Characters of an interface's name (IFNAMSIZ without the zero at its end)."""
END = re.compile(r"(.+)-p(\d+)")
MAC = re.compile(r"[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}")
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

    def ends_of(self, node: str) -> list[tuple[End, End, Link]]:
        """The node's ends of its links, and the other ends."""
        found = [(*link.ends, link) for link in self.links] + [
            (*link.ends[::-1], link) for link in self.links
        ]
        return sorted((one for one in found if one[0].node == node), key=lambda one: one[0].port or 0)


def read(path: Path) -> Topology:
    """The topology in a file; raises `TidegateError` with the place of what is wrong."""
    text, place = load(path), Place(path)
    if "topology" in text:
        raise place.wrong(
            "this is the form of p4-utils with `topology` and `assignment_strategy`; write `hosts`, `switches` "
            "and `links` at the top, as the public P4 tutorials do"
        )
    place.known(text, ("hosts", "switches", "links"))
    for name in ("hosts", "switches", "links"):
        if name not in text:
            raise place.wrong(f"there are no {name}; write hosts, switches and links")
    hosts = {
        name: _host(place / "hosts" / name, name, about, number)
        for number, (name, about) in enumerate((place / "hosts").expect(text["hosts"], dict).items(), 1)
    }
    switches = {
        name: _switch(place / "switches" / name, name, about)
        for name, about in (place / "switches").expect(text["switches"], dict).items()
    }
    for what, count, most in (("hosts", len(hosts), MOST_HOSTS), ("switches", len(switches), MOST_SWITCHES)):
        if not 1 <= count <= most:
            raise place.wrong(f"it has {count} {what}; there is room for 1 to {most}")
    for name in hosts.keys() & switches.keys():
        raise place.wrong(f"{name} is a host and a switch; give one of them another name")
    links = tuple(
        _link(place / "links" / number, link, hosts, switches)
        for number, link in enumerate((place / "links").expect(text["links"], list))
    )
    found = Topology(path, hosts, switches, links)
    _check(found, place)
    return found


def _name(place: Place, name: str) -> None:
    if NAME.fullmatch(name) is None:
        raise place.wrong(f"{name!r} is not a name: a letter, then at most 9 letters and digits")
    if name in WORDS:
        raise place.wrong(f"{name!r} is a command of the prompt; give another name")


def _host(place: Place, name: str, about: object, number: int) -> Host:
    _name(place, name)
    given = place.expect(about, dict)
    place.known(given, ("ip", "mac", "commands"))
    text = (place / "ip").expect(given.get("ip", f"10.0.0.{number}/24"), str)
    try:
        interface = IPv4Interface(text if "/" in text else f"{text}/24")
    except ValueError as error:
        raise (place / "ip").wrong(
            f"{text!r} is not an IPv4 address with its prefix, as 10.0.1.1/24: {error}"
        ) from None
    mac = (place / "mac").expect(given.get("mac", f"08:00:00:00:{number:02x}:{number:02x}"), str)
    if MAC.fullmatch(mac) is None or int(mac[:2], 16) & 1:
        raise (place / "mac").wrong(f"{mac!r} is not a MAC address of one host, as 08:00:00:00:01:11")
    commands = tuple(
        (place / "commands" / at).expect(one, str)
        for at, one in enumerate((place / "commands").expect(given.get("commands", []), list))
    )
    return Host(name, interface, mac.lower(), commands)


def _switch(place: Place, name: str, about: object) -> Switch:
    _name(place, name)
    given = place.expect(about, dict)
    place.known(given, ("program", "runtime_json", "cli_input", "cpu_port"))
    program, runtime, commands = (
        None if key not in given else (place / key).expect(given[key], str)
        for key in ("program", "runtime_json", "cli_input")
    )
    cpu = None
    if "cpu_port" in given:
        cpu = _port(place / "cpu_port", (place / "cpu_port").expect(given["cpu_port"], int))
    return Switch(name, program, runtime, commands, cpu)


def _port(place: Place, number: int) -> int:
    if not 0 <= number <= LAST_PORT:
        raise place.wrong(f"{number} is not a port: ports are 0 to {LAST_PORT}")
    return number


def _link(place: Place, about: object, hosts: Iterable[str], switches: Iterable[str]) -> Link:
    given = place.expect(about, list)
    if not 2 <= len(given) <= 4:
        raise place.wrong('a link is written ["h1", "s1-p1"], then its delay and its rate in Mbit/s')
    ends = tuple(_end(place / at, given[at], tuple(hosts), tuple(switches)) for at in (0, 1))
    if all(end.port is None for end in ends):
        raise place.wrong("it connects two hosts; connect each to a switch")
    if ends[0].node == ends[1].node:
        raise place.wrong(f"it connects {ends[0].node} to itself")
    delay = _delay(place / 2, given[2]) if len(given) > 2 else 0
    rate = _rate(place / 3, given[3]) if len(given) > 3 else None
    return Link((ends[0], ends[1]), delay, rate)


def _end(place: Place, about: object, hosts: tuple[str, ...], switches: tuple[str, ...]) -> End:
    text = place.expect(about, str)
    if text in hosts:
        return End(text, None)
    match = END.fullmatch(text)
    if match is not None and match[1] in switches and len(match[2]) < 5:
        end = End(match[1], _port(place, int(match[2])))
        if len(interface(end)) > MOST_INTERFACE:
            raise place.wrong(
                f"the interface {interface(end)} of {text} has {len(interface(end))} characters, and Linux has {MOST_INTERFACE} at most; "
                "give the switch a shorter name, or the port a smaller number"
            )
        return end
    if text in switches:
        raise place.wrong(f"the port of {text} is missing; write {text}-p1")
    node = match[1] if match is not None else text
    raise place.wrong(
        f"there is no {node!r}; {did_you_mean(node, (*hosts, *switches))}known: {', '.join((*hosts, *switches))}; a switch's end is written s1-p1"
    )


def interface(end: End) -> str:
    """What a switch's interface is called."""
    return f"{end.node}-eth{end.port}"


def _delay(place: Place, value: object) -> int:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_S * 1000:
        return round(value * PS_PER_MS)
    text = str(value)
    if re.fullmatch(r"[\d.]+", text):
        text += "ms"
    try:
        delay = units.time(text)
    except TidegateError as error:
        raise place.wrong(f"the delay {value!r}: {error}") from None
    if delay > LONGEST_S * units.PS_PER_S:
        raise place.wrong(f"the delay {value!r} is longer than {LONGEST_S} s")
    return delay


def _rate(place: Place, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MOST_MBPS:
        raise place.wrong(f"the rate {value!r} is not one in Mbit/s, above 0 and at most {MOST_MBPS}")
    return max(1, round(value * 1e6))


def _check(topology: Topology, place: Place) -> None:
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
