"""Topologies of P4 exercises: what their files say, and the networks that they become."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import Run
from live import labs_of
from namespaces import needs_root
from tidegate import p4
from tidegate._core import TidegateError
from tidegate.exercises import commands, programs, prompt, running, runtime
from tidegate.exercises.files import read
from tidegate.exercises.running import LiveTopology, ending
from tidegate.exercises.topology import End
from tidegate.lab import kernel, names

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/exercises/two_routers/topology.json"
TABLES = """
#include <core.p4>
#include <v1model.p4>
header word_t { bit<32> a; bit<16> b; bit<8> c; }
struct headers_t { word_t w; }
struct meta_t { }
parser Read(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {
    state start { p.extract(h.w); transition accept; }
}
control Verify(inout headers_t h, inout meta_t m) { apply { } }
control MyIngress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {
    action send(bit<9> port, bit<8> c) { s.egress_spec = port; h.w.c = c; }
    action drop() { mark_to_drop(s); }
    action copy() { s.mcast_grp = 7; clone(CloneType.I2E, 5); }
    table exact_one { key = { h.w.c : exact; } actions = { send; copy; drop; } default_action = drop(); }
    table prefix { key = { h.w.a : lpm; h.w.c : exact; } actions = { send; drop; } }
    table masked { key = { h.w.a : ternary; h.w.b : range; } actions = { send; drop; } }
    apply { exact_one.apply(); prefix.apply(); masked.apply(); }
}
control MyEgress(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }
control Compute(inout headers_t h, inout meta_t m) { apply { } }
control Write(packet_out p, in headers_t h) { apply { p.emit(h.w); } }
V1Switch(Read(), Verify(), MyIngress(), MyEgress(), Compute(), Write()) main;
"""
SEND = {"action_name": "MyIngress.send", "action_params": {"port": 3, "c": "0x2a"}}


def example() -> dict[str, Any]:
    found = json.loads(EXAMPLE.read_text())
    assert isinstance(found, dict)
    return found


def test_the_example_is_read() -> None:
    found = read(EXAMPLE)
    assert found.hosts["h2"].address == "10.0.2.1"
    assert found.links[3].ends == (End("s1", 4), End("s2", 4))
    assert (found.links[3].delay, found.links[3].rate) == (5_000_000_000, 50_000_000)
    assert [str(end) for end, _, _ in found.ends_of("s1")] == ["s1-p1", "s1-p4"]
    source = programs.program_of(found, found.switches["s1"], None)
    assert source.name == "ipv4_router.p4"


def change(topology: dict[str, Any], keys: list[Any], value: Any) -> dict[str, Any]:
    at: Any = topology
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return topology


@pytest.mark.parametrize(
    ("keys", "value", "why"),
    [
        (["hosts"], [], "hosts: [] is not an object"),
        (["host"], {}, "there is no 'host'; did you mean 'hosts'?"),
        (["topology"], {}, "there is no 'hosts'; known: p4_src, program, topology,"),
        (["hosts", "h1", "ip"], "10.0.1/24", "hosts.h1.ip: '10.0.1/24' is not an IPv4 address"),
        (["hosts", "h1", "ip"], "10.0.2.1/24", "hosts.h2: h1 has the address 10.0.2.1, too"),
        (
            ["hosts", "h1", "mac"],
            "01:00:00:00:00:01",
            "hosts.h1.mac: '01:00:00:00:00:01' is not a MAC address of one host",
        ),
        (
            ["hosts", "h1", "mac"],
            "00:00:00:00:00:00",
            "hosts.h1.mac: '00:00:00:00:00:00' is not a MAC address of one host",
        ),
        (["hosts", "h1", "mac"], "ff:ff:ff:ff:ff:ff", "is not a MAC address of one host"),
        (
            ["hosts", "h1", "ip"],
            "127.0.0.5/8",
            "hosts.h1.ip: '127.0.0.5/8' cannot be a host's address: 127.0.0.0/8 is of the",
        ),
        (
            ["hosts", "h1", "ip"],
            "224.0.0.5",
            "'224.0.0.5' cannot be a host's address: 224.0.0.0/4 is for multicast",
        ),
        (["hosts", "h1", "ip"], "0.0.0.0/0", "0.0.0.0 stands for no host"),
        (["hosts", "h1", "ip"], "255.255.255.255/32", "255.255.255.255 stands for no host"),
        (["hosts", "h1", "ip"], "10.0.1.0/24", "it is that of the network 10.0.1.0/24"),
        (["hosts", "h1", "ip"], "10.0.1.255", "it is the broadcast address of 10.0.1.0/24"),
        (["links", 0], ["h1", "s1-p511"], "links[0][1]: 511 is not a port: ports are 0 to 510"),
        (["links", 0], ["h1", "s1-p99999"], "links[0][1]: 99999 is not a port: ports are 0 to 510"),
        (["links", 0], ["h1", "s1-p" + "9" * 5000], "...' has no port of a switch: ports are 0 to 510"),
        (["hosts", "h\x1b[2J1\n"], {}, r"hosts.h\x1b[2J1\n: 'h\x1b[2J1\n' is not a name"),
        (["switches", "s1", "runtime_json"], {"a\x1b": 1}, "is not a text"),
        (["hosts", "h1", "comands"], [], "hosts.h1: there is no 'comands'; did you mean 'commands'?"),
        (["hosts", "h1", "commands"], [1], "hosts.h1.commands[0]: 1 is not a text"),
        (["hosts", "exit"], {}, "hosts.exit: 'exit' is a command of the prompt"),
        (["hosts", "h 4"], {}, "'h 4' is not a name"),
        (["hosts", "h4"], {}, "hosts.h4: no link leads to it"),
        (["switches", "h1"], {}, "h1 is a host and a switch"),
        (["switches", "s1", "cpu_port"], 600, "600 is not a port: ports are 0 to 510"),
        (["links", 0], ["h1", "s1"], "links[0][1]: the port of s1 is missing; write s1-p1"),
        (["links", 0], ["h1", "s3-p1"], "there is no 's3'; known: h1, h2, h3, s1, s2;"),
        (["links", 0], ["h1", "h2"], "links[0]: it connects two hosts"),
        (["links", 0], ["h1"], "a link is written"),
        (["links", 0], ["h1", "s1-p4"], "links[3]: s1-p4 is taken"),
        (["links", 0], ["h2", "s1-p1"], "h2 has a link already"),
        (["links", 0], ["s1-p1", "s1-p2"], "it connects s1 to itself"),
        (["links", 0], ["h1", "s1-p1", "5 parsec"], "links[0][2]: the delay '5 parsec'"),
        (["links", 0], ["h1", "s1-p1", 1e9], "links[0][2]: the delay"),
        (["links", 0], ["h1", "s1-p1", 0, -1], "links[0][3]: the rate -1 is not one in Mbit/s"),
    ],
)
def test_topologies_that_cannot_be(tmp_path: Path, keys: list[Any], value: Any, why: str) -> None:
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(change(example(), keys, value)))
    with pytest.raises(TidegateError) as caught:
        read(path)
    assert str(caught.value).startswith(str(path))
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"hosts": ', ":1:11: not JSON: Expecting value"),
        (" \n", ": is empty; it is to hold an object of JSON"),
        ("[]", "[] is not an object"),
        ("[" * 100_000, "nested too deeply"),
        (
            '{"hosts": {"h1": {}, "h2": {}, "h1": {}}}',
            ": hosts.h1: this key is there twice; leave one of them out",
        ),
        ('{"links": [{"a\\u001b": 1, "a\\u001b": 2}]}', r": links[0].a\x1b: this key is there twice"),
        ('{"hosts": {}, "hosts": {"h1": 1, "h1": 2}}', ": hosts: this key is there twice"),
    ],
)
def test_files_that_are_not_json(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "topology.json"
    path.write_text(text)
    with pytest.raises(TidegateError) as caught:
        read(path)
    assert why in str(caught.value)


def test_a_program_is_found_by_what_was_compiled_from_it(tmp_path: Path) -> None:
    (tmp_path / "pod").mkdir()
    (tmp_path / "basic.p4").write_text(TABLES)
    topology = example()
    topology["switches"] = {name: {"runtime_json": f"pod/{name}.json"} for name in ("s1", "s2")}
    path = tmp_path / "pod" / "topology.json"
    path.write_text(json.dumps(topology))
    found = read(path)
    runtime_file = tmp_path / "pod" / "s1.json"
    runtime_file.write_text(
        json.dumps({"p4info": "build/basic.p4.p4info.txtpb", "bmv2_json": "build/basic.json"})
    )
    assert programs.program_of(found, found.switches["s1"], None) == tmp_path / "basic.p4"
    runtime_file.write_text(json.dumps({"p4info": "build/other.p4.p4info.txtpb"}))
    with pytest.raises(
        TidegateError, match=r"its source other\.p4 is in none of .*; give --program FOLDER/other\.p4"
    ):
        programs.program_of(found, found.switches["s1"], None)
    assert programs.program_of(found, found.switches["s1"], EXAMPLE) == EXAMPLE
    with pytest.raises(
        TidegateError, match=r"switches\.s2\.runtime_json names pod/s2\.json, which is in none of"
    ):
        programs.program_of(found, found.switches["s2"], None)


@pytest.fixture
def tables() -> tuple[p4.Program, p4.Pipeline]:
    program = p4.Program.from_text(TABLES)
    return program, program.pipeline()


def written(path: Path, tables: tuple[p4.Program, p4.Pipeline], **parts: Any) -> int:
    path.write_text(json.dumps(parts))
    return runtime.write(path, *tables)


def test_a_runtime_file_is_written_into_a_switch(
    tmp_path: Path, tables: tuple[p4.Program, p4.Pipeline]
) -> None:
    entries = [
        {
            "table": "MyIngress.exact_one",
            "match": {"h.w.c": 1},
            "action_name": "MyIngress.copy",
            "action_params": {},
        },
        {"table": "exact_one", "match": {"h.w.c": [2]}, **SEND},
        {"table": "MyIngress.prefix", "match": {"h.w.a": ["10.0.1.0", 24], "h.w.c": 3}, **SEND},
        {"table": "MyIngress.prefix", "match": {"h.w.c": 3}, **SEND},
        {"table": "MyIngress.masked", "match": {"h.w.a": ["10.0.0.0", "255.0.0.0"]}, "priority": 1, **SEND},
        {"table": "MyIngress.masked", "match": {"h.w.b": [80, 90]}, "priority": 9, **SEND},
        {"table": "MyIngress.exact_one", "default_action": True, **SEND},
    ]
    count = written(
        tmp_path / "s1-runtime.json",
        tables,
        target="bmv2",
        table_entries=entries,
        multicast_group_entries=[
            {"multicast_group_id": 7, "replicas": [{"egress_port": 1, "instance": 4}, {"egress_port": 2}]}
        ],
        clone_session_entries=[
            {
                "clone_session_id": 5,
                "replicas": [{"egress_port": 6, "instance": 1}],
                "packet_length_bytes": 64,
            }
        ],
    )
    assert count == 9
    pipeline = tables[1]
    said = pipeline.command("table_dump MyIngress.masked")
    # The larger priority of the file wins, here the smaller one.
    assert "h.w.b=0x50->0x5a priority 2147483638" in said
    assert "h.w.a=0xa000000&&&0xff000000 h.w.b=0x0->0xffff priority 2147483646" in said
    assert "h.w.a=0xa000100/24" in pipeline.command("table_dump MyIngress.prefix")
    # By the exact key, to a multicast group, and a clone; others by the default.
    went = dict(pipeline.process(0, 0, bytes([10, 0, 1, 1, 0, 80, 1])))
    assert {1, 2, 6} <= went.keys()
    other = pipeline.process(1, 0, bytes([10, 0, 1, 1, 0, 85, 9]))
    assert other == [(3, bytes([10, 0, 1, 1, 0, 85, 0x2A]))]


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({}, "there is no table"),
        ({"table": "MyIngress.exact", **SEND}, "table: there is no table 'MyIngress.exact'; did you mean 'MyIngress.exact_one'"),
        ({"table": "exact_one", "action_name": "sent"}, "action_name: there is no action 'sent'"),
        ({"table": "exact_one", "match": {"h.w.c": 1}, "action_name": "send", "action_params": {"port": 1}}, "there is no c"),
        ({"table": "exact_one", **SEND}, "match.h.w.c: an exact key needs a value"),
        ({"table": "exact_one", "match": {"h.w.d": 1}, **SEND}, "match: there is no 'h.w.d'; did you mean 'h.w.c'"),
        ({"table": "exact_one", "match": {"h.w.c": 300}, **SEND}, "table_entries[0]: "),
        ({"table": "exact_one", "match": {"h.w.c": 1.5}, **SEND}, "match.h.w.c: 1.5 is neither a number nor"),
        ({"table": "masked", "match": {}, **SEND}, "there is no priority, which this table needs"),
        ({"table": "prefix", "match": {"h.w.a": "10.0.0.0/8", "h.w.c": 1}, **SEND}, "a match of kind lpm is a list"),
        ({"table": "exact_one", "match": {"h.w.c": 1}, "default_action": True, **SEND}, "a default action has no match"),
        ({"table": "exact_one", "matches": {}, **SEND}, "there is no 'matches'; did you mean 'match'?"),
    ],
)  # fmt: skip
def test_entries_that_cannot_be(
    tmp_path: Path, tables: tuple[p4.Program, p4.Pipeline], entry: dict[str, Any], why: str
) -> None:
    path = tmp_path / "s1-runtime.json"
    with pytest.raises(TidegateError) as caught:
        written(path, tables, table_entries=[entry])
    assert str(caught.value).startswith(f"{path}: table_entries[0]")
    assert why in str(caught.value)


@needs_root
def test_an_exercise_runs(tidegate: Run) -> None:
    lines = [
        "pingall",
        "h1 true && echo at $0 h2",
        "s1 table_num_entries RouterIngress.routes",
        "iperf h1 h2 1",
        "nodes",
    ]
    said = tidegate("lab", EXAMPLE, *(word for line in lines for word in ("-c", line)), process=True)
    assert said.code == 0, said.err
    assert "h1 -> h2 h3\nh2 -> h1 h3\nh3 -> h1 h2\n0 of 6 lost (6 received)" in said.out
    assert "at sh 10.0.2.1" in said.out
    rate = float(said.out.partition("h1 -> h2: ")[2].split()[0])
    # The link between the switches has 50 Mbit/s, for frames.
    assert 10 < rate < 50
    assert "s1: ports 1 (s1-eth1), 4 (s1-eth4)" in said.out


@needs_root
def test_what_readers_of_an_exercise_type(tidegate: Run) -> None:
    """A host has its own interfaces in `/sys`, too; commands in the background can be ended; a queue has its limit."""
    lines = [
        "h1 ls /sys/class/net",
        "h1 ls /sys/fs/cgroup",
        "h1 sleep 60 &",
        "h2 sleep 61 &",
        "kill %1",
        "jobs",
        "s1 op port_read port=4",
        "s1 set_queue_depth 64",
    ]
    words = [word for line in lines for word in ("-c", line)]
    said = tidegate("lab", EXAMPLE, "--queue-limit", "7", *words, process=True)
    assert said.code == 0, said.err
    groups = sorted(os.listdir("/sys/fs/cgroup"))
    assert said.out.startswith("\n".join(["eth0", "lo", *groups, "2: h2 sleep 61"]))
    assert "packets:7," in said.out
    assert "`set_queue_depth` has no effect: queues are set at the start, by --queue-limit" in said.out


@needs_root
def test_a_switch_without_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topology = example()
    for switch in topology["switches"].values():
        switch["runtime_json"] = str(EXAMPLE.parent / switch["runtime_json"])
        switch["program"] = str(ROOT / "examples/p4/ipv4_router/ipv4_router.p4")
    topology["switches"]["s3"] = {"program": str(ROOT / "examples/p4/ipv4_router/ipv4_router.p4")}
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(topology))
    said: list[str] = []
    with LiveTopology(read(path), say=said.append) as live:
        assert commands.run(live, "nodes")
    assert said[-1] == "s3: ipv4_router.p4, no ports, no entries"
    assert "s3: no ports\n" in capsys.readouterr().out


@needs_root
def test_a_shell_of_another_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveTopology(read(EXAMPLE)) as live:
        assert commands.run(live, "xterm h2 h1")
        told, *found = capsys.readouterr().out.splitlines()
        assert told == "in another terminal, as root:"
        shell = found[0].removesuffix(" bash").split()
        there = subprocess.run([*shell, "ip", "-br", "addr", "show", "eth0"], capture_output=True, text=True)
        assert "10.0.2.1/24" in there.stdout, there.stderr
        for line, why in (
            ("xterm h1 h9", "there is no host 'h9'; "),
            ("xterm", "write xterm and a host, as: xterm h1"),
            ("pingall h1", "pingall stands alone; write: pingall"),
            ("h1 &", "write h1 and a command, as: h1 ip addr"),
            ("kill", "write kill and a number that `jobs` shows, as: kill 1"),
            ("kill 1", "there is no '1' in the background; nothing goes on there"),
        ):
            with pytest.raises(TidegateError) as caught:
                commands.run(live, line)
            assert str(caught.value).startswith(why)


def test_without_root_there_is_no_other_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "capabilities", lambda: 0)
    monkeypatch.setattr(running, "demand_own", lambda path: None)
    with pytest.raises(TidegateError) as caught:
        LiveTopology(read(EXAMPLE))
    assert str(caught.value) == (
        "tidegate lab makes network namespaces, for which it needs root "
        "(CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW): run it with sudo"
    )


@needs_root
def test_a_program_that_no_switch_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TidegateError) as caught:
        LiveTopology(read(EXAMPLE), tmp_path / "other.p4")
    assert str(caught.value) == (
        f"{EXAMPLE}: no switch runs {tmp_path / 'other.p4'}: its files name ipv4_router.p4; "
        'give a program of such a name, or change "program" at switches'
    )


@needs_root
def test_what_cannot_be_is_said(tidegate: Run, tmp_path: Path) -> None:
    failed = tidegate("lab", EXAMPLE, "-c", "h1 exit 3", "-c", "h9 true", "-c", "pingall", process=True)
    assert failed.code == 1
    assert "there is no 'h9'" in failed.err
    topology = example()
    topology["hosts"]["h2"]["commands"] = ["ip route add nonsense"]
    for name in ("s1", "s2"):
        topology["switches"][name] = {"program": str(ROOT / "examples/p4/ipv4_router/ipv4_router.p4")}
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(topology))
    refused = tidegate("lab", path, "-c", "pingall", process=True)
    assert refused.code == 1
    assert "hosts.h2.commands[0]: ip route add nonsense: Error" in refused.err
    # Others' labs may end while this one looks.
    assert labs_of(failed.pid) == labs_of(refused.pid) == []


def test_a_signal_that_ends_a_command_is_named() -> None:
    assert ending(3) == "ended with 3"
    assert ending(-signal.SIGABRT) == "was ended by SIGABRT"
    # Real-time signals but the first and the last have no name in Python.
    assert ending(-40) == "was ended by signal 40"


@needs_root
def test_an_address_of_p4runtime_that_is_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(running, "FIRST_GRPC", port - 1)
        with pytest.raises(TidegateError) as caught:
            LiveTopology(read(EXAMPLE), grpc=True)
    assert str(caught.value) == (
        f"P4Runtime of s2 is served at 127.0.0.1:{port}: Address already in use; "
        "end what listens there, which `ss -ltnp` shows"
    )


BESIDE_GRPC = """
import sys
from pathlib import Path
from tidegate.exercises import running
from tidegate.exercises.files import read

running.FIRST_GRPC = int(sys.argv[2])
with running.LiveTopology(read(Path(sys.argv[1])), grpc=True) as live:
    for _ in range(5):
        assert live.output("h1", "echo $PPID") == (0, "1\\n")
"""


@needs_root
def test_hosts_run_commands_beside_grpc(tmp_path: Path) -> None:
    topology = example()
    for host in topology["hosts"].values():
        host["commands"] += ["true"] * 5
    for switch in topology["switches"].values():
        switch["program"] = str(ROOT / "examples/p4/ipv4_router/ipv4_router.p4")
        switch["runtime_json"] = str(EXAMPLE.parent / switch["runtime_json"])
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(topology))
    # gRPC's handler of forks is on: nothing here may fork beside its threads.
    environment = {**os.environ, "GRPC_ENABLE_FORK_SUPPORT": "1"}
    for _ in range(4):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = str(taken.getsockname()[1])
        command = [sys.executable, "-c", BESIDE_GRPC, str(path), port]
        ran = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
        assert ran.returncode == 0, ran.stderr


@needs_root
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_however_it_ends(how: signal.Signals, tmp_path: Path) -> None:
    marker = f"31.4{os.getpid()}{how.value}"
    command = [sys.executable, "-m", "tidegate.cli", "lab", str(EXAMPLE)]
    lines = ["-c", f"h1 sh -c 'sleep {marker}' &", "-c", f"h2 echo ready; sleep {marker}"]
    with subprocess.Popen(
        [*command, *lines],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Where the tests run in the background, it is ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        os.kill(process.pid, how)
        process.wait(30)
    assert process.returncode == (-9 if how == signal.SIGKILL else 130)

    def alive() -> list[str]:
        return subprocess.run(["pgrep", "-f", marker], capture_output=True, text=True).stdout.split()

    end = time.monotonic() + 10
    while alive() and time.monotonic() < end:
        time.sleep(0.05)
    assert alive() == []
    names.remove_dead()
    assert labs_of(process.pid) == []


def test_interfaces_of_a_switch_have_names_that_linux_takes(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    text = json.dumps(example()).replace("s1-p", "switch_abc-p").replace('"s1"', '"switch_abc"')
    path.write_text(text)
    assert End("switch_abc", 1) in read(path).links[0].ends
    path.write_text(text.replace("switch_abc-p1", "switch_abc-p10"))
    with pytest.raises(TidegateError) as caught:
        read(path)
    assert str(caught.value) == (
        f"{path}: links[0][1]: the interface switch_abc-eth10 of switch_abc-p10 has 16 characters, and Linux has 15 at most; "
        "give the switch a shorter name, or the port a smaller number"
    )


def test_a_line_that_is_no_text_costs_that_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b"# begin\nh1 \xff\nhelp\nexit\n"), "utf-8")
    )
    net: Any = SimpleNamespace(check=lambda: None, topology=SimpleNamespace(hosts={}), switches={})
    assert not prompt.interact(net)
    said = capsys.readouterr()
    assert said.err == "line 2 of standard input is not text in UTF-8; it is left out\n"
    assert "pingall" in said.out


@pytest.mark.parametrize("text", [f'{{"hosts": {"1" * 5000}}}', "[" * 5000])
def test_a_file_that_python_cannot_parse_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "topology.json"
    path.write_text(text)
    with pytest.raises(TidegateError, match="a number has too many digits, or values are nested"):
        read(path)


def test_a_program_with_a_name_that_is_too_long(tmp_path: Path) -> None:
    about = example()
    about["switches"]["s1"]["program"] = "p" * 5000 + ".p4"
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(about))
    topology = read(path)
    with pytest.raises(TidegateError, match="give --program"):
        programs.program_of(topology, topology.switches["s1"], None)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_does_not_run_the_commands_of_a_topology_that_others_can_write(tmp_path: Path) -> None:
    path = tmp_path / "topology.json"
    about = example()
    about["hosts"]["h1"]["commands"] = ["true"]
    path.write_text(json.dumps(about))
    path.chmod(0o666)
    with pytest.raises(TidegateError, match="can be written by others"):
        LiveTopology(read(path))
