"""Files in the forms that the public P4 tutorials have, and the tutorials themselves where TIDEGATE_TUTORIALS names their folder."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import tutorials
from conftest import Run
from namespaces import needs_root
from test_exercises import SEND, TABLES, written
from tidegate import p4
from tidegate._core import TidegateError
from tidegate.exercises import programs
from tidegate.exercises.files import read
from tidegate.exercises.running import LiveTopology
from tidegate.exercises.topology import Topology

ROOT = Path(__file__).resolve().parent.parent
ROUTER = ROOT / "examples/p4/ipv4_router/ipv4_router.p4"
GIVEN = os.environ.get("TIDEGATE_TUTORIALS")
FOUND = sorted(Path(GIVEN).glob("exercises/*/**/topology.json")) if GIVEN else []


def host(network: str, own: int, gateway: int, number: int) -> dict[str, Any]:
    return {
        "ip": f"{network}.{own}/31",
        "mac": f"06:00:00:00:{number:02x}:01",
        "commands": [
            f"route add default gw {network}.{gateway} dev eth0",
            f"arp -i eth0 -s {network}.{gateway} 06:00:00:00:{number:02x}:ff",
            # It is there already.
            f"ip route add {network}.{min(own, gateway)}/31 dev eth0",
        ],
    }


def network(folder: Path, switch: dict[str, Any], middle: list[Any]) -> Path:
    """Two routers in the tutorials' form, a host at each."""
    topology = {
        "hosts": {"h1": host("10.7.1", 5, 4, 1), "h2": host("10.7.2", 8, 9, 2)},
        "switches": {name: {"runtime_json": f"{name}-runtime.json", **switch} for name in ("s1", "s2")},
        "links": [["h1", "s1-p1"], ["s2-p4", "s1-p4", *middle], ["s2-p1", "h2"]],
    }
    (folder / "net").mkdir()
    shutil.copy(ROUTER, folder)
    for name, near, far in (("s1", 1, 2), ("s2", 2, 1)):
        routes = [
            {
                "table": "RouterIngress.routes",
                "match": {"hdr.ipv4.dst": [f"10.7.{number}.0", 24]},
                "action_name": "RouterIngress.next_hop",
                "action_params": {
                    "port": [port],
                    "src": "06:00:00:00:12:ff",
                    "dst": f"06:00:00:00:{number:02x}:01",
                },
            }
            for number, port in ((near, 1), (far, 4))
        ]
        named = {"target": "bmv2", "p4info": "build/ipv4_router.p4.p4info.txtpb"}
        text = {**named, "bmv2_json": "build/ipv4_router.json", "table_entries": routes}
        (folder / "net" / f"{name}-runtime.json").write_text(json.dumps(text))
    path = folder / "net" / "topology.json"
    path.write_text(json.dumps(topology))
    return path


@needs_root
def test_a_network_in_the_form_of_the_tutorials_runs(tidegate: Run, tmp_path: Path) -> None:
    path = network(tmp_path, {"cpu_port": "510", "priority_queues": 2}, ["0", 0.25])
    said = tidegate("lab", path, "-c", "pingall", "-c", "links", "-c", "h1 ip route", process=True)
    assert said.code == 0, said.err
    assert "0 of 2 lost (2 received)" in said.out
    assert "s2-p4 - s1-p4, 0.25 Mbit/s" in said.out
    assert "default via 10.7.1.4 dev eth0" in said.out
    assert "s1: ipv4_router.p4, ports 1, 4, 2 entries" in said.err


def test_numbers_of_a_switch_can_be_texts(tmp_path: Path) -> None:
    found = read(network(tmp_path, {"cpu_port": "510", "priority_queues": "8"}, []))
    assert {(switch.cpu_port, switch.queues) for switch in found.switches.values()} == {(510, 8)}


@pytest.mark.parametrize(
    ("switch", "why"),
    [
        ({"cpu_port": "5x"}, 'switches.s1.cpu_port: "5x" is not a whole number'),
        ({"cpu_port": "600"}, "switches.s1.cpu_port: 600 is not a port: ports are 0 to 510"),
        ({"priority_queues": 0}, "switches.s1.priority_queues: a port has 1 to 256 queues, not 0"),
        ({"priority_queues": True}, "switches.s1.priority_queues: true is not a whole number"),
    ],
)
def test_numbers_of_a_switch_that_cannot_be(tmp_path: Path, switch: dict[str, Any], why: str) -> None:
    path = network(tmp_path, switch, [])
    with pytest.raises(TidegateError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: {why}"


@pytest.mark.parametrize(
    ("delay", "milliseconds"), [("0", 0), ("0.0", 0), (0, 0), (0.5, 0.5), ("5ms", 5), ("40us", 0.04)]
)
def test_delays_of_links(tmp_path: Path, delay: object, milliseconds: float) -> None:
    found = read(network(tmp_path, {}, [delay]))
    assert found.links[1].delay == milliseconds * 1e9


def test_a_delay_without_a_unit_says_how_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as caught:
        read(network(tmp_path, {}, ["5"]))
    assert str(caught.value).endswith(
        "links[1][2]: the delay '5' is a text without a unit; write 5 (milliseconds) or \"5ms\""
    )


@pytest.mark.parametrize(
    ("entry", "dumped"),
    [
        ({"match": {"h.w.c": [7]}, **SEND}, "h.w.c=0x7 => MyIngress.send(port=0x3, c=0x2a)"),
        ({"match": {"h.w.c": 7}, "action_name": "send", "action_params": {"port": [3], "c": -1}}, "c=0xff"),
        ({"match": {"h.w.c": -1}, **SEND}, "h.w.c=0xff =>"),
        ({"match": None, "default_action": True, "priority": None, **SEND}, "default => MyIngress.send"),
        ({"match": {"h.w.c": 7}, "default_action": False, "action_name": "drop"}, "0x7 => MyIngress.drop()"),
    ],
)
def test_forms_of_entries(tmp_path: Path, entry: dict[str, Any], dumped: str) -> None:
    program = p4.Program.from_text(TABLES)
    tables = program, program.pipeline()
    written(tmp_path / "s1-runtime.json", tables, table_entries=[{"table": "MyIngress.exact_one", **entry}])
    assert dumped in tables[1].command("table_dump MyIngress.exact_one")


def test_addresses_of_ipv6(tmp_path: Path) -> None:
    program = p4.Program.from_text(TABLES.replace("bit<32> a;", "bit<128> a;"))
    tables = program, program.pipeline()
    entries = [
        {"table": "MyIngress.prefix", "match": {"h.w.a": ["2001:db8::1", 64], "h.w.c": 3}, **SEND},
        {"table": "MyIngress.masked", "match": {"h.w.a": ["2001:db8::1", "ffff::"]}, "priority": 1, **SEND},
    ]
    written(tmp_path / "s1-runtime.json", tables, table_entries=entries)
    assert f"h.w.a=0x20010db8{'0' * 24}/64" in tables[1].command("table_dump MyIngress.prefix")
    assert f"&&&0xffff{'0' * 28}" in tables[1].command("table_dump MyIngress.masked")


def sources(topology: Topology, given: Path) -> dict[str, Path]:
    return {name: programs.program_of(topology, switch, given) for name, switch in topology.switches.items()}


def test_a_program_stands_in_for_the_one_of_its_name(tmp_path: Path) -> None:
    path = network(tmp_path, {}, [])
    about = json.loads(path.read_text())
    about["switches"]["s1"]["program"] = "build/wall.json"
    path.write_text(json.dumps(about))
    (tmp_path / "wall.p4").write_text("")
    topology = read(path)
    own, solution, other = (tmp_path / name for name in ("ipv4_router.p4", "solution/wall.p4", "other.p4"))
    assert sources(topology, solution) == {"s1": solution, "s2": own}
    # One of another name is for switches whose topology names none.
    assert sources(topology, other) == {"s1": tmp_path / "wall.p4", "s2": other}


def solved(topology: Path, folder: Path) -> tuple[Path, Path]:
    """A copy of an exercise with its solution: the topology, and the program."""
    assert GIVEN is not None
    exercise = topology.relative_to(Path(GIVEN) / "exercises").parts[0]
    source = Path(GIVEN) / "exercises" / exercise
    work = folder / exercise
    shutil.copytree(source, work)
    path = work / topology.relative_to(source)
    for entries in work.glob("solution/*-runtime.json"):
        shutil.copy(entries, path.parent)
    solutions = sorted(work.glob("solution/*.p4"))
    return path, solutions[0] if solutions else next(work.glob("*.p4"))


@pytest.mark.skipif(not FOUND, reason="TIDEGATE_TUTORIALS names no folder of github.com/p4lang/tutorials")
@needs_root
@pytest.mark.parametrize("topology", FOUND, ids=lambda path: str(path.relative_to(Path(GIVEN or "/"))))
def test_the_public_exercises_run(topology: Path, tmp_path: Path) -> None:
    path, program = solved(topology, tmp_path)
    exercise = path.relative_to(tmp_path).parts[0]
    with LiveTopology(read(path), program, grpc=exercise in tutorials.BY_CONTROLLER) as net:
        tutorials.look(exercise, net, program)
