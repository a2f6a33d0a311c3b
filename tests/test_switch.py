"""`tidegate switch`: a P4 switch between real interfaces."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from namespaces import Place, needs_root, place
from tidegate import p4
from tidegate._core import TidegateError
from tidegate.switch.metrics import families
from tidegate.switch.ports import Mode, SwitchPort, parse_port, parse_ports
from tidegate.switch.running import LiveSwitch

PROGRAMS = Path(__file__).parent.parent / "examples/p4"
LEARNING = PROGRAMS / "learning_switch/learning_switch.p4"
MACS = [bytes([2, 0, 0, 0, 0, number]) for number in range(3)]
KINDS = ["packet", "xdp", "xdp-generic"]


def test_ports_are_read() -> None:
    assert parse_port("1@eth1") == SwitchPort(1, "eth1", "auto")
    assert parse_port("510@eth1.5", Mode.XDP) == SwitchPort(510, "eth1.5", "xdp")
    assert parse_port("0@tap:lab0", Mode.PACKET) == SwitchPort(0, "lab0", "tap")
    ports = parse_ports(["1@a", "2@b"], Mode.AUTO, ["2=100 Mbit/s"], ["1=10ms"])
    assert [(port.rate, port.delay) for port in ports] == [(None, "10ms"), ("100 Mbit/s", 0)]


@pytest.mark.parametrize(
    ("given", "rates", "why"),
    [
        (["eth1"], [], "the port 'eth1': write PORT@INTERFACE, as 1@eth1, or PORT@tap:NAME"),
        (["x@eth1"], [], "the port 'x@eth1': write PORT@INTERFACE, as 1@eth1, or PORT@tap:NAME"),
        (["511@eth1"], [], "the port '511@eth1': ports are 0 to 510"),
        (["1@a", "1@b"], [], "the port '1@b': a has the number 1"),
        (["1@a", "2@a"], [], "the port '2@a': a is a port already"),
        (["1@a"], ["3=1 Mbit/s"], "--rate '3=1 Mbit/s': write PORT=VALUE with one of the ports 1"),
    ],
)
def test_ports_that_make_no_sense(given: list[str], rates: list[str], why: str) -> None:
    with pytest.raises(TidegateError) as refused:
        parse_ports(given, Mode.AUTO, rates, [])
    assert str(refused.value) == why


@pytest.fixture
def two() -> Iterator[Place]:
    with place(2) as made:
        yield made


def frame(source: int, target: int, length: int = 60) -> bytes:
    """A frame of a type of its own."""
    head = MACS[target] + MACS[source] + b"\x88\xb5"
    return head + bytes(index % 251 for index in range(length - len(head)))


def ports(at: Place, kind: str) -> list[SwitchPort]:
    return [SwitchPort(number, f"p{number}", kind, str(at.file)) for number in (1, 2)]


def between(live: LiveSwitch) -> None:
    """Send by addresses."""
    for number in (1, 2):
        live.api.table_add("destination", [MACS[number].hex(":")], "forward", [number])
        live.api.table_add("source", [MACS[number].hex(":")], "NoAction")


@needs_root
@pytest.mark.parametrize(
    ("kind", "mtu"), [*((kind, 1500) for kind in KINDS), ("packet", 9000), ("auto", 9000)]
)
def test_frames_of_all_sizes_pass_as_they_are(kind: str, mtu: int) -> None:
    with place(2, mtu) as two:
        frames_of_all_sizes(two, kind, mtu)


def frames_of_all_sizes(two: Place, kind: str, mtu: int) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind))
    between(live)
    one, other = two.hosts
    sent = [frame(1, 2, length) for length in (14, 15, 59, 60, 64, 1513, mtu + 14)]
    # A VLAN tag, two of them, and with the longest packet.
    for tags in (b"\x81\x00\x20\x05", b"\x88\xa8\x00\x07\x81\x00\x00\x05"):
        sent.append(MACS[2] + MACS[1] + tags + frame(1, 2, 100)[12:])
    sent.append(MACS[2] + MACS[1] + b"\x81\x00\x00\x05" + frame(1, 2, mtu + 14)[12:])
    with live:
        for each in sent:
            one.send(each)
        assert other.receive(len(sent)) == sent
        other.send(frame(2, 1))
        assert one.receive(1) == [frame(2, 1)]
        first, second = live.statistics()["ports"]
    assert first["kind"] == (kind if kind != "auto" else "packet")
    assert (first["received"], first["sent"], second["received"], second["sent"]) == (
        len(sent),
        1,
        1,
        len(sent),
    )
    assert first["received_bytes"] == sum(len(each) for each in sent)
    assert live.api.drops == {}


@needs_root
def test_what_is_counted_has_a_name(two: Place) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"), queue_packets=77)
    between(live)
    with live:
        two.hosts[0].send(frame(1, 2, 100))
        two.hosts[1].receive(1)
        found = {(family.name, labels): value for family in families(live) for labels, value in family.rows}
    assert found["port_packets", ("1", "p1", "received")] == 1
    assert found["port_bytes", ("2", "p2", "sent")] == 100
    assert found["queue_packets", ("2", "0")] == 1
    assert found["packets", ("transmitted",)] == 1
    assert found["table_entries", ("SwitchIngress.destination",)] == 2
    assert live.api.port_read(2).queues[0].packets == 77


def run(at: Place, *words: str) -> subprocess.Popen[str]:
    """`tidegate switch` in the switch's namespace."""
    command = ["ip", "netns", "exec", at.name, sys.executable, "-m", "tidegate.cli", "switch", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def until_running(process: subprocess.Popen[str]) -> str:
    """What it says until it runs."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if line.startswith("running"):
            return said
    raise AssertionError(f"it has ended with {process.wait()}: {said}")


@needs_root
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_runs_until_it_is_told(two: Place, tmp_path: Path, ending: signal.Signals) -> None:
    commands = tmp_path / "commands"
    commands.write_text(f"table_add destination forward {MACS[2].hex(':')} => 9\n")
    process = run(two, str(LEARNING), "-i", "1@p1", "-i", "9@p2", "--commands", str(commands))
    try:
        said = until_running(process)
        assert "port 9: p2, " in said
        two.hosts[0].send(frame(1, 2))
        assert two.hosts[1].receive(1) == [frame(1, 2)]
    finally:
        process.send_signal(ending)
        _, rest = process.communicate(timeout=10)
    assert (process.returncode, rest) == (0, "")
