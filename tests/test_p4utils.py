"""Topologies in the form of p4-utils (`p4app.json`): addresses by each strategy, ports, and what cannot be had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Run
from namespaces import needs_root
from tidegate._core import TidegateError
from tidegate.exercises import programs
from tidegate.exercises.files import read
from tidegate.exercises.topology import Topology

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/exercises/p4utils/p4app.json"
LINKS: list[Any] = [["h1", "s1"], ["s1", "s2"], ["s2", "h2"], ["other", "s2"]]


def topology(folder: Path, strategy: str = "l3", links: list[Any] = LINKS, **parts: Any) -> Topology:
    names = {name for link in links for name in link[:2]}
    about: dict[str, Any] = {
        "assignment_strategy": strategy,
        "links": links,
        "hosts": {name: {} for name in sorted(names) if name[0] != "s"},
        "switches": {name: {} for name in sorted(names) if name[0] == "s"},
    }
    beside = {
        name: parts.pop(name)
        for name in list(parts)
        if name in ("exec_scripts", "options", "pcap_dump", "switch_node")
    }
    path = folder / "p4app.json"
    path.write_text(json.dumps({"p4_src": "basic.p4", **beside, "topology": {**about, **parts}}))
    return read(path)


def test_the_example_is_read() -> None:
    found = read(EXAMPLE)
    assert [str(end) for end, _, _ in found.ends_of("s1")] == ["s1-p1", "s1-p2", "s1-p3"]
    assert [str(other) for _, other, _ in found.ends_of("s1")] == ["h1", "h2", "s2-p1"]
    assert [(link.delay, link.rate) for link in found.links] == [
        (0, 50_000_000),
        (0, 50_000_000),
        (5_000_000_000, 50_000_000),
        (0, 50_000_000),
    ]
    assert programs.program_of(found, found.switches["s2"], None).name == "ipv4_router.p4"
    assert found.switches["s2"].commands == "s2-commands.txt"
    assert found.notes == ()


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("l2", {"h1": ("10.0.0.1/16", None), "h2": ("10.0.0.2/16", None), "other": ("10.0.0.3/16", None)}),
        (
            "mixed",
            {
                "h1": ("10.0.1.1/24", "10.0.1.254"),
                "h2": ("10.0.2.2/24", "10.0.2.254"),
                "other": ("10.0.2.1/24", "10.0.2.254"),
            },
        ),
        (
            "l3",
            {
                "h1": ("10.1.1.2/24", "10.1.1.1"),
                "h2": ("10.2.2.2/24", "10.2.2.1"),
                "other": ("10.2.1.2/24", "10.2.1.1"),
            },
        ),
    ],
)
def test_hosts_have_the_addresses_of_the_strategy(
    tmp_path: Path, strategy: str, expected: dict[str, tuple[str, str | None]]
) -> None:
    found = topology(tmp_path, strategy)
    assert {name: (str(host.interface), host.gateway) for name, host in found.hosts.items()} == expected
    for host in found.hosts.values():
        octets = ":".join(f"{int(part):02x}" for part in host.address.split("."))
        assert host.mac == f"00:00:{octets}"
        if host.gateway is not None:
            assert (host.gateway, f"00:01:{octets}") in host.neighbours
    known = {name: {address for address, _ in host.neighbours} for name, host in found.hosts.items()}
    assert (
        known["h2"] - {found.hosts["h2"].gateway}
        == {
            "l2": {"10.0.0.1", "10.0.0.3"},
            "mixed": {"10.0.2.1"},
            "l3": set(),
        }[strategy]
    )


def test_numbers_above_a_byte(tmp_path: Path) -> None:
    found = topology(tmp_path, "l2", [["h258", "s1"]])
    assert str(found.hosts["h258"].interface) == "10.0.1.2/16"
    found = topology(tmp_path, "mixed", [["h5", "s300"]])
    assert str(found.hosts["h5"].interface) == "10.1.44.5/24"


@pytest.mark.parametrize("strategy", ["mixed", "l3"])
def test_without_tables_of_arp_hosts_ask(tmp_path: Path, strategy: str) -> None:
    off: dict[str, Any] = {"auto_arp_tables": False, "auto_gw_arp": False}
    assert all(not host.neighbours for host in topology(tmp_path, strategy, default=off).hosts.values())
    # Older files have them beside.
    assert all(not host.neighbours for host in topology(tmp_path, strategy, **off).hosts.values())


def test_manual_addresses(tmp_path: Path) -> None:
    hosts = {
        "h1": {"ip": "192.168.1.5/24", "gw": "192.168.1.1"},
        "h2": {"ip": "192.168.2.5", "defaultRoute": "via 192.168.2.1"},
    }
    found = topology(
        tmp_path,
        "manual",
        [["h1", "s1"], ["h2", "s1"]],
        hosts=hosts,
        switches={"s1": {"h1": "192.168.1.1/24"}},
    )
    assert {name: (str(host.interface), host.gateway, host.mac) for name, host in found.hosts.items()} == {
        "h1": ("192.168.1.5/24", "192.168.1.1", "00:00:c0:a8:01:05"),
        "h2": ("192.168.2.5/24", "192.168.2.1", "00:00:c0:a8:02:05"),
    }


def test_ports_are_numbered_by_the_names_of_the_links(tmp_path: Path) -> None:
    links: list[Any] = [["h3", "s3"], ["s10", "s3"], ["s2", "s3"], ["s3", "s1"]]
    found = topology(
        tmp_path, "l3", links, switches={"s1": {}, "s2": {}, "s3": {"cpu_port": True}, "s10": {}}
    )
    assert {str(other).split("-")[0]: end.port for end, other, _ in found.ends_of("s3")} == {
        "h3": 1,
        "s2": 2,
        "s1": 3,
        "s10": 5,
    }
    assert found.switches["s3"].cpu_port == 4
    assert found.notes == (
        "ports of s3 are numbered by the names of the links, as p4-utils does now; it once did so in their order in the file",
    )
    chosen = topology(tmp_path, "l3", [["h1", "s1", {"port2": 2}], ["h2", "s1"], ["h3", "s1"]])
    assert {str(other): end.port for end, other, _ in chosen.ends_of("s1")} == {"h1": 2, "h2": 1, "h3": 3}


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        (
            {"strategy": "l4"},
            "topology.assignment_strategy: 'l4' is not a strategy; known: l2, mixed",
        ),
        ({"links": [["h1", "s1", {"loss": 2}]]}, "topology.links[0]: a loss of 2 % cannot be had here"),
        (
            {"links": [["h1", "s1", {"max_queue_size": 50}]]},
            "max_queue_size 50: a link's queue holds 1000 packets here",
        ),
        (
            {"links": [["h1", "s1", {"dealy": 5}]]},
            "topology.links[0][2]: there is no 'dealy'; did you mean 'delay'?",
        ),
        ({"links": [["h1", "s1", 5]]}, "topology.links[0][2]: 5 is not an object"),
        ({"links": [["h1", "s1", {"port2": 600}]]}, "topology.links[0][2].port2: 600 is not a port"),
        ({"links": [["h1", "s1"], ["s1", "h1"]]}, "topology.links[1]: s1 and h1 are connected already"),
        ({"links": [["h1", "s1"], ["h1", "s2"]]}, "topology.links[1]: h1 has a link already"),
        ({"links": [["h1", "h2"], ["h1", "s1"]]}, "topology.links[0]: it connects two hosts"),
        ({"links": [["h300", "s1"]]}, "topology.hosts.h300: l3 has addresses for h1 to h253"),
        ({"links": [["h1", "s254"]]}, "topology.switches.s254: l3 has no addresses for the number 254"),
        (
            {"hosts": {"h1": {}, "h2": {"dhcp": True}, "other": {}}},
            "hosts.h2: an address by DHCP cannot be had here",
        ),
        (
            {"hosts": {"h1": {}, "h2": {"ip": "10.0.0.9"}, "other": {}}},
            "hosts.h2.ip: l3 gives addresses itself",
        ),
        ({"strategy": "manual"}, "topology.hosts.h1: the strategy manual needs an ip"),
        ({"routers": {"r1": {}}}, "topology.routers: routers with FRR cannot be had here"),
        ({"options": "--target bmv2 -DSOLUTION"}, "options of the compiler cannot be had here (-DSOLUTION)"),
        (
            {"switch_node": {"file_path": ".", "module_name": "mine"}},
            "switch_node: mine is a module of Python of its own",
        ),
        (
            {"switches": {"s1": {"cpu_prot": True}, "s2": {}}},
            "topology.switches.s1: there is no 'cpu_prot'; did you mean 'cpu_port'?",
        ),
        (
            {"switches": {"s1": {"cpu_port": 255}, "s2": {}}},
            "topology.switches.s1.cpu_port: 255 is not true or false",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(tmp_path: Path, parts: dict[str, Any], why: str) -> None:
    with pytest.raises(TidegateError) as caught:
        topology(tmp_path, **parts)
    assert str(caught.value).startswith(str(tmp_path / "p4app.json"))
    assert why in str(caught.value)


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    found = topology(
        tmp_path,
        links=[["h1", "s1"]],
        exec_scripts=[{"cmd": "python controller.py", "reboot_run": True}],
        pcap_dump=True,
        switch_node={"module_name": "p4utils.mininetlib.node", "object_name": "P4RuntimeSwitch"},
    )
    assert [note.split(";")[0] for note in found.notes] == [
        "exec_scripts is not run",
        "pcap_dump: not written here",
    ]


@needs_root
def test_the_example_runs(tidegate: Run) -> None:
    lines = ["pingall", "h1 ip route", "h1 ip neigh", "links"]
    said = tidegate("lab", EXAMPLE, *(word for line in lines for word in ("-c", line)), process=True)
    assert said.code == 0, said.err
    assert "h1 -> h2 h3\nh2 -> h1 h3\nh3 -> h1 h2\n0 of 6 lost (6 received)" in said.out
    assert "s1: ipv4_router.p4, ports 1, 2, 3, commands of s1-commands.txt" in said.err
    assert "default via 10.1.1.1 dev eth0" in said.out
    assert "10.1.1.1 dev eth0 lladdr 00:01:0a:01:01:02 PERMANENT" in said.out
    assert "s1-p3 - s2-p1, 5 ms, 50 Mbit/s" in said.out
