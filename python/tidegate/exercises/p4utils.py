"""A network as p4-utils writes it (`p4app.json`): hosts get their addresses by `assignment_strategy`, ports their numbers by the links.

    {"p4_src": "router.p4",
     "topology": {"assignment_strategy": "l3", "default": {"bw": 10}, "links": [["h1", "s1"], ["s1", "h2", {"delay": 5}]],
                  "hosts": {"h1": {}, "h2": {}}, "switches": {"s1": {"cli_input": "s1-commands.txt", "cpu_port": true}}}}

Addresses are those of p4-utils' documentation of its strategies; MACs are `00:00:` (hosts) and `00:01:` (ports at hosts) with the address.
Ports are numbered from 1 in the natural order of the links' names, as p4-utils does since it has `NetworkAPI`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from tidegate.exercises.reading import Place
from tidegate.exercises.topology import (
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

PROGRAM = ("p4_src", "program")
"""The key of a program; the second one in older files."""
MODULES = (
    "compiler_module", "client_module", "mininet_module", "topo_module", "topodb_module", "controller_module",
    "host_node", "switch_node", "router_node",
)  # fmt: skip
"""Classes of Python that a file can name: those of p4-utils itself have a counterpart here."""
SCRIPTS = ("exec_scripts", "tasks_file")
QUIET = ("cli", "compiler", "options", "switch", "switch_cli")
"""Of no effect: there is the prompt, and neither compiler nor reference switch."""
LOGS = ("pcap_dump", "enable_log")
KEYS = (*PROGRAM, "topology", *SCRIPTS, *LOGS, *QUIET, *MODULES)
COMPILER_WORDS = ("--target", "bmv2", "--arch", "v1model", "--std", "p4-16", "p4_16", "-b", "bmv2-ss-p4org")
PARTS = (
    "assignment_strategy",
    "links",
    "hosts",
    "switches",
    "routers",
    "default",
    "auto_arp_tables",
    "auto_gw_arp",
)
LINK = ("bw", "delay", "loss", "max_queue_size", "queue_length", "weight")
ENDS = ("port1", "port2", "addr1", "addr2")
QUEUE = 1000
"""Packets of a link's queue, here and by default there."""
HOST = (
    "ip",
    "gw",
    "defaultRoute",
    "mac",
    "commands",
    "dhcp",
    "scheduler",
    "socket_path",
    "log_enabled",
    "log_dir",
)
SWITCH = (
    *PROGRAM, "cli_input", "cpu_port", "switch_node", "client_module", "log_enabled", "log_dir", "pcap_dump", "pcap_dir",
    "sw_bin", "thrift_port", "grpc_port",
)  # fmt: skip
STRATEGIES = ("l2", "mixed", "l3", "manual")
CPU = "sw-cpu"
"""What the link of a CPU port leads to there: it has its place in the order of the links."""


def build(path: Path, text: dict[str, Any]) -> Topology:
    """The topology; raises `TidegateError` with the place of what is wrong or cannot be had here."""
    place = Place(path)
    place.known(text, KEYS)
    notes = _rest(place, text)
    at = place / "topology"
    about = at.expect(text["topology"], dict)
    at.known(about, PARTS)
    demand_parts(at, about)
    if about.get("routers"):
        raise (at / "routers").wrong("routers with FRR cannot be had here; leave them out")
    hosts, switches = (((at / name).expect(about[name], dict)) for name in ("hosts", "switches"))
    for kind, nodes in (("hosts", hosts), ("switches", switches)):
        for name in nodes:
            demand_name(at / kind / name, name)
    demand_nodes(at, hosts, switches)
    default = (at / "default").expect(about.get("default", {}), dict)
    (at / "default").known(default, (*LINK, "auto_arp_tables", "auto_gw_arp"))
    drafts = [
        _draft(at / "links" / number, link, hosts, switches, default)
        for number, link in enumerate((at / "links").expect(about["links"], list))
    ]
    with_cpu = [name for name, one in switches.items() if _flag(at / "switches" / name, one, "cpu_port")]
    ports = _numbered(drafts, with_cpu, switches, _by_name)
    in_file = _numbered(drafts, with_cpu, switches, _in_file)
    other = sorted(
        {node for (peer, node), number in ports.items() if in_file[peer, node] != number}, key=natural
    )
    if other:
        notes.append(
            f"ports of {', '.join(other)} are numbered by the names of the links, as p4-utils does now; it once did so in their "
            "order in the file"
        )
    links = tuple(_link(draft, ports, switches) for draft in drafts)
    strategy = (at / "assignment_strategy").expect(about.get("assignment_strategy", ""), str)
    if strategy not in STRATEGIES:
        raise (at / "assignment_strategy").wrong(
            f"{strategy!r} is not a strategy; {did_you_mean(strategy, STRATEGIES)}known: {', '.join(STRATEGIES)}"
        )
    macs = {node: mac for draft in drafts for node, mac in draft.macs.items()}
    plan = _plan(at, strategy, hosts, switches, links)
    made = {
        name: _host(at / "hosts" / name, name, one, strategy, plan.get(name), macs)
        for name, one in hosts.items()
    }
    found = Topology(
        path,
        _acquainted(at, made, plan, {**about, **default}),
        {
            name: _switch(
                at / "switches" / name, name, one, (place, text), (*hosts, *switches), ports.get((CPU, name))
            )
            for name, one in switches.items()
        },
        links,
        tuple(notes),
    )
    demand_whole(found, at)
    return found


# What a file says beside the topology.


def _rest(place: Place, text: dict[str, Any]) -> list[str]:
    """Refuse what would make another network; give what is left out."""
    options = str(text.get("options") or "").split()
    other = [word for word in options if word not in COMPILER_WORDS]
    if other:
        raise (place / "options").wrong(
            f"options of the compiler cannot be had here ({' '.join(other)}); leave them out, and give -D and -I to tidegate lab"
        )
    for name in MODULES:
        _own(place / name, text.get(name))
    notes = [
        f"{name} is not run; start it beside, or use --grpc and -c" for name in SCRIPTS if text.get(name)
    ]
    left = [name for name in LOGS if text.get(name)]
    if left:
        notes.append(
            f"{' and '.join(left)}: not written here; `ip netns exec NAME tcpdump` captures at each interface"
        )
    return notes


def _own(place: Place, module: object) -> None:
    """Refuse a class that is not of p4-utils."""
    if module is None:
        return
    given = place.expect(module, dict)
    name = str(given.get("module_name", "p4utils"))
    if given.get("file_path") or not name.startswith("p4utils"):
        raise place.wrong(f"{name} is a module of Python of its own, which cannot be had here; leave it out")


def _flag(place: Place, about: object, name: str, default: bool = False) -> bool:
    return (place / name).expect(place.expect(about, dict).get(name, default), bool)


# Links and ports.


@dataclass(frozen=True)
class _Draft:
    """A link whose ports have no numbers yet."""

    place: Place
    nodes: tuple[str, str]
    ports: tuple[int | None, int | None]
    delay: int
    rate: int | None
    macs: dict[str, str]


def _draft(
    place: Place, link: object, hosts: dict[str, Any], switches: dict[str, Any], default: dict[str, Any]
) -> _Draft:
    given = place.expect(link, list)
    if not 2 <= len(given) <= 3:
        raise place.wrong('a link is written ["h1", "s1"], then an object, as {"delay": 5, "bw": 10}')
    nodes = (place / 0).expect(given[0], str), (place / 1).expect(given[1], str)
    for number, name in enumerate(nodes):
        if name not in hosts and name not in switches:
            known = (*hosts, *switches)
            raise (place / number).wrong(
                f"there is no {name!r}; {did_you_mean(name, known)}known: {', '.join(known)}"
            )
    own = (place / 2).expect(given[2], dict) if len(given) == 3 else {}
    (place / 2).known(own, (*LINK, *ENDS))
    options = {**{name: value for name, value in default.items() if name in LINK}, **own}
    if options.get("loss"):
        raise place.wrong(f"a loss of {options['loss']} % cannot be had here; leave it out")
    for name in ("max_queue_size", "queue_length"):
        if options.get(name) not in (None, QUEUE):
            raise place.wrong(
                f"{name} {options[name]}: a link's queue holds {QUEUE} packets here; leave it out"
            )
    delay, rate = options.get("delay"), options.get("bw")
    numbers = [
        None
        if own.get(name) is None
        else port_number(place / 2 / name, (place / 2 / name).expect(own[name], int))
        for name in ("port1", "port2")
    ]
    macs = {
        node: mac_address(place / 2 / name, (place / 2 / name).expect(own[name], str))
        for node, name in zip(nodes, ("addr1", "addr2"), strict=True)
        if own.get(name) is not None
    }
    return _Draft(
        place,
        nodes,
        (numbers[0], numbers[1]),
        0 if delay is None else delay_of(place, delay),
        None if rate is None else rate_of(place, rate),
        macs,
    )


_Order = Callable[[list[tuple[str, str]]], list[tuple[str, str]]]


def _by_name(links: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(links, key=lambda link: tuple(map(natural, link)))


def _in_file(links: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return links


def natural(name: str) -> list[int | str]:
    """By this s2 comes before s10.

    >>> sorted(["s10", "s2", "h1"], key=natural)
    ['h1', 's2', 's10']
    """
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def _numbered(
    drafts: list[_Draft], with_cpu: list[str], switches: dict[str, Any], order: _Order
) -> dict[tuple[str, str], int]:
    """The port of each switch to each neighbour, and to the CPU."""
    links = order([draft.nodes for draft in drafts] + [(name, CPU) for name in with_cpu])
    if len({frozenset(link) for link in links}) < len(links):
        twice = next(
            draft
            for number, draft in enumerate(drafts)
            if set(draft.nodes) in [set(d.nodes) for d in drafts[:number]]
        )
        raise twice.place.wrong(f"{' and '.join(twice.nodes)} are connected already; p4-utils takes one link")
    found = {
        (draft.nodes[1 - end], draft.nodes[end]): number
        for draft in drafts
        for end, number in enumerate(draft.ports)
        if number is not None and draft.nodes[end] in switches
    }
    for first, second in links:
        for node, other in ((first, second), (second, first)):
            if node in switches and (other, node) not in found:
                taken = {number for (_, of), number in found.items() if of == node}
                found[other, node] = next(
                    number for number in range(1, len(taken) + 2) if number not in taken
                )
    return found


def _link(draft: _Draft, ports: dict[tuple[str, str], int], switches: dict[str, Any]) -> Link:
    first, second = draft.nodes
    ends = tuple(
        switch_end(draft.place / number, node, ports[other, node]) if node in switches else End(node, None)
        for number, (node, other) in enumerate(((first, second), (second, first)))
    )
    demand_ends(draft.place, ends[0], ends[1])
    return Link((ends[0], ends[1]), draft.delay, draft.rate)


# Addresses.


@dataclass(frozen=True)
class _Given:
    """What a strategy gives to a host."""

    interface: IPv4Interface
    gateway: str | None


def _ids(names: Collection[str], letter: str) -> dict[str, int]:
    """`s7` is 7; names without a number have the least one that is free, in natural order."""
    found = {
        name: int(match[1]) for name in names if (match := re.fullmatch(rf"{letter}(\d+)", name)) is not None
    }
    for name in sorted(names, key=natural):
        if name not in found:
            taken = set(found.values())
            found[name] = next(number for number in range(1, len(taken) + 2) if number not in taken)
    return found


def _plan(
    place: Place, strategy: str, hosts: dict[str, Any], switches: dict[str, Any], links: tuple[Link, ...]
) -> dict[str, _Given]:
    """Addresses and gateways by the strategy; none by `manual`."""
    if strategy == "manual":
        return {}
    at = {
        end.node: other.node
        for link in links
        for end, other in (link.ends, link.ends[::-1])
        if end.port is None
    }
    ids = _ids(switches, "s")
    groups: dict[str, list[str]] = {}
    for host, switch in at.items():
        groups.setdefault("" if strategy == "l2" else switch, []).append(host)
    found = {}
    for members in groups.values():
        for host, number in _ids(members, "h").items():
            there, last = ids[at[host]], 65_534 if strategy == "l2" else 253
            if not 1 <= number <= last:
                raise (place / "hosts" / host).wrong(
                    f"{strategy} has addresses for h1 to h{last}; give another name"
                )
            if strategy != "l2" and there > (253 if strategy == "l3" else 65_535):
                raise (place / "switches" / at[host]).wrong(
                    f"{strategy} has no addresses for the number {there}"
                )
            network = f"10.{there >> 8}.{there & 255}"
            text, gateway = {
                "l2": (f"10.0.{number >> 8}.{number & 255}/16", None),
                "mixed": (f"{network}.{number}/24", f"{network}.254"),
                "l3": (f"10.{there}.{number}.2/24", f"10.{there}.{number}.1"),
            }[strategy]
            found[host] = _Given(IPv4Interface(text), gateway)
    return found


def _mac(first: str, at: IPv4Interface) -> str:
    return f"00:{first}:" + ":".join(f"{byte:02x}" for byte in at.ip.packed)


def _host(
    place: Place, name: str, about: object, strategy: str, planned: _Given | None, macs: dict[str, str]
) -> Host:
    given = place.expect(about, dict)
    place.known(given, HOST)
    if given.get("dhcp") or given.get("ip") == "auto":
        raise place.wrong("an address by DHCP cannot be had here; give one by ip")
    if strategy == "manual":
        if "ip" not in given:
            raise place.wrong("the strategy manual needs an ip")
        interface = address(place / "ip", (place / "ip").expect(given["ip"], str))
    elif "ip" in given:
        raise (place / "ip").wrong(
            f"{strategy} gives addresses itself; leave it out, or take the strategy manual"
        )
    elif planned is None:
        raise place.wrong("no link leads to it")
    else:
        interface = planned.interface
    gateway = None if planned is None else planned.gateway
    for key in ("gw", "defaultRoute"):
        if key in given:
            text = (place / key).expect(given[key], str).split()[-1:]
            gateway = str(address(place / key, text[0] if text else "").ip)
    mac = macs.get(name) or given.get("mac") or _mac("00", interface)
    return Host(
        name,
        interface,
        mac_address(place / "mac", (place / "mac").expect(mac, str)),
        commands_of(place / "commands", given),
        gateway,
    )


def _acquainted(
    place: Place, hosts: dict[str, Host], plan: dict[str, _Given], default: dict[str, Any]
) -> dict[str, Host]:
    """The hosts with the MACs that they know from the start: of hosts of the same network, and of the gateway."""
    tables, gateways = (_flag(place, default, name, True) for name in ("auto_arp_tables", "auto_gw_arp"))
    found = {}
    for name, host in hosts.items():
        known = [
            (other.address, other.mac)
            for other in hosts.values()
            if tables and other is not host and other.interface.network == host.interface.network
        ]
        if gateways and name in plan and host.gateway == plan[name].gateway and host.gateway is not None:
            known.append((host.gateway, _mac("01", host.interface)))
        found[name] = replace(host, neighbours=tuple(known))
    return found


def _switch(
    place: Place,
    name: str,
    about: object,
    whole: tuple[Place, dict[str, Any]],
    nodes: Collection[str],
    cpu_port: int | None,
) -> Switch:
    given = place.expect(about, dict)
    # A neighbour's name is a note for controllers.
    place.known({key: value for key, value in given.items() if key not in nodes}, SWITCH)
    for key in ("switch_node", "client_module"):
        _own(place / key, given.get(key))
    program = next(
        (
            (at / key).expect(there[key], str)
            for at, there in ((place, given), whole)
            for key in PROGRAM
            if there.get(key) is not None
        ),
        None,
    )
    commands = (
        None if given.get("cli_input") is None else (place / "cli_input").expect(given["cli_input"], str)
    )
    return Switch(name, program, None, commands, cpu_port)
