"""A network as the public P4 tutorials write it (`topology.json`).

    {"hosts": {"h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11", "commands": ["route add default gw 10.0.1.10 dev eth0"]}},
     "switches": {"s1": {"runtime_json": "s1-runtime.json", "cli_input": "s1-commands.txt", "program": "basic.p4"}},
     "links": [["h1", "s1-p1"], ["s1-p3", "s2-p3", "5ms", 100]]}

A link has two ends, then a delay (milliseconds, or text with a unit) and a rate (Mbit/s). A switch's end names its port.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tidegate.exercises.reading import Place
from tidegate.exercises.topology import (
    PARTS,
    End,
    Host,
    Link,
    Switch,
    Topology,
    address,
    commands_of,
    delay_of,
    demand_ends,
    demand_name,
    demand_nodes,
    demand_parts,
    demand_whole,
    mac_address,
    port_number,
    rate_of,
    switch_end,
)
from tidegate.suggest import did_you_mean
from tidegate.switch.ports import LAST_PORT, MOST_QUEUES

END = re.compile(r"(.+)-p([0-9]+)")
MOST_DIGITS = 9


def build(path: Path, text: dict[str, Any]) -> Topology:
    """The topology; raises `TidegateError` with the place of what is wrong."""
    place = Place(path)
    place.known(text, PARTS)
    demand_parts(place, text)
    hosts = {
        name: _host(place / "hosts" / name, name, about, number)
        for number, (name, about) in enumerate((place / "hosts").expect(text["hosts"], dict).items(), 1)
    }
    switches = {
        name: _switch(place / "switches" / name, name, about)
        for name, about in (place / "switches").expect(text["switches"], dict).items()
    }
    demand_nodes(place, hosts, switches)
    links = tuple(
        _link(place / "links" / number, link, hosts, switches)
        for number, link in enumerate((place / "links").expect(text["links"], list))
    )
    found = Topology(path, hosts, switches, links)
    demand_whole(found, place)
    return found


def _host(place: Place, name: str, about: object, number: int) -> Host:
    demand_name(place, name)
    given = place.expect(about, dict)
    place.known(given, ("ip", "mac", "commands"))
    text = (place / "ip").expect(given.get("ip", f"10.0.0.{number}/24"), str)
    mac = (place / "mac").expect(given.get("mac", f"08:00:00:00:{number:02x}:{number:02x}"), str)
    return Host(
        name,
        address(place / "ip", text),
        mac_address(place / "mac", mac),
        commands_of(place / "commands", given),
    )


def _switch(place: Place, name: str, about: object) -> Switch:
    demand_name(place, name)
    given = place.expect(about, dict)
    place.known(given, ("program", "runtime_json", "cli_input", "cpu_port", "priority_queues"))
    program, runtime, commands = (
        None if key not in given else (place / key).expect(given[key], str)
        for key in ("program", "runtime_json", "cli_input")
    )
    cpu = None
    if "cpu_port" in given:
        cpu = port_number(place / "cpu_port", _number(place / "cpu_port", given["cpu_port"]))
    queues = _number(place / "priority_queues", given.get("priority_queues", 1))
    if not 1 <= queues <= MOST_QUEUES:
        raise (place / "priority_queues").wrong(f"a port has 1 to {MOST_QUEUES} queues, not {queues}")
    return Switch(name, program, runtime, commands, cpu, queues)


def _number(place: Place, value: object) -> int:
    """A whole number, which some files write as a text."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 10:
        return int(value)
    return place.expect(value, int)


def _link(place: Place, about: object, hosts: Iterable[str], switches: Iterable[str]) -> Link:
    given = place.expect(about, list)
    if not 2 <= len(given) <= 4:
        raise place.wrong('a link is written ["h1", "s1-p1"], then its delay and its rate in Mbit/s')
    nodes = (tuple(hosts), tuple(switches))
    ends = (_end(place / 0, given[0], *nodes), _end(place / 1, given[1], *nodes))
    demand_ends(place, *ends)
    delay = delay_of(place / 2, given[2]) if len(given) > 2 else 0
    rate = rate_of(place / 3, given[3]) if len(given) > 3 else None
    return Link(ends, delay, rate)


def _end(place: Place, about: object, hosts: tuple[str, ...], switches: tuple[str, ...]) -> End:
    text = place.expect(about, str)
    if text in hosts:
        return End(text, None)
    match = END.fullmatch(text)
    if match is not None and match[1] in switches:
        if len(match[2]) > MOST_DIGITS:
            raise place.wrong(f"'{text[:40]}...' has no port of a switch: ports are 0 to {LAST_PORT}")
        return switch_end(place, match[1], int(match[2]))
    if text in switches:
        raise place.wrong(f"the port of {text} is missing; write {text}-p1")
    node = match[1] if match is not None else text
    raise place.wrong(
        f"there is no {node!r}; {did_you_mean(node, (*hosts, *switches))}known: {', '.join((*hosts, *switches))}; a switch's end is written s1-p1"
    )
