"""Programs of ours give on the reference switch what they give here: the same packets by the same ports, the same registers.

The reference switch has the clock of its machine and takes captures as fast as it can. So these cases do not depend on when a packet
comes within some milliseconds, which the first test shows here; the second compares, where that switch and its compiler are installed.
"""

from __future__ import annotations

import random
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from conftest import Run, pcap, read_pcap
from tidegate.systems.meter.fair_harness import datagram, datagram6, segment

PYTHON = Path(__file__).parent.parent / "python"
SYSTEMS = PYTHON / "tidegate/systems"
COMPILER, SWITCH, CLIENT = NEEDED = ("p4c-bm2-ss", "simple_switch", "simple_switch_CLI")
MS = 10**6
S = 10**9
# From the start of the reference switch to the first packet; in the middle of a time slot of 2^18 us of `fair.p4`.
WAIT_S = 3
READ = re.compile(r"([\w.]+)\[(\d+)\]=\s*(\d+)")


@dataclass(frozen=True)
class Case:
    """A program, its configuration, frames with the ports by which they come, and cells of registers to compare."""

    program: Path
    commands: tuple[str, ...]
    frames: tuple[tuple[int, bytes], ...]
    ports: tuple[int, ...]
    cells: tuple[tuple[str, int], ...] = ()

    def write(self, folder: Path, gap: int) -> dict[int, Path]:
        """Captures of each port, with a frame each `gap` nanoseconds, seconds after one that starts the clock."""
        at: dict[int, list[tuple[int, bytes]]] = {port: [] for port in self.ports}
        at[self.ports[0]].append((S, bytes(60)))
        for number, (port, frame) in enumerate(self.frames):
            at[port].append((S + WAIT_S * S + number * gap, frame))
        paths = {port: folder / f"p{port}_in.pcap" for port in self.ports}
        for port, path in paths.items():
            path.write_bytes(pcap(at[port]))
        return paths

    def reads(self) -> list[str]:
        return [f"register_read {name} {cell}" for name, cell in self.cells]


@dataclass(frozen=True)
class Result:
    packets: dict[int, list[bytes]]
    registers: dict[tuple[str, int], int]


def parsed(text: str) -> dict[tuple[str, int], int]:
    """What `register_read` printed; the last reading of each cell."""
    return {(name.rpartition(".")[2], int(cell)): int(value) for name, cell, value in READ.findall(text)}


def here(tidegate: Run, case: Case, folder: Path, gap: int) -> Result:
    folder.mkdir()
    inputs = case.write(folder, gap)
    commands = folder / "commands"
    commands.write_text("\n".join([*case.commands, *case.reads()]) + "\n")
    words = [word for port, path in inputs.items() for word in ("--in", f"{port}={path}")]
    out = folder / "out"
    ran = tidegate("replay", case.program, *words, "--out", out, "--commands", commands)
    assert ran.code == 0, ran.err
    packets = {int(path.stem[4:]): [data for _, data in read_pcap(path)] for path in out.iterdir()}
    return Result(packets, parsed(ran.out))


def fair() -> Case:
    """Meters with room for few and for many packets; TCP and datagrams over IPv4 and IPv6, ECN-capable and not.

    A packet takes a quarter of a second and more, so that milliseconds decide nothing.
    """
    byte, level, most = 6250 << 32, 1 << 35, 15 << 36
    sources = random.Random(20)
    frames = []
    for _ in range(240):
        flow, ecn = sources.randrange(5), sources.randrange(4)
        kind = sources.choice([datagram, datagram6, segment, segment])
        frame = kind(flow, sources.randrange(48, 56), ecn if flow % 2 else 0)
        target = bytes([sources.choice(METERS), 0, 0, 1])
        frames.append((0, frame.replace(b"\x0a\x00\x00\x01", target)))
    control = "FairIngress"
    commands = [f"table_add {control}.forwarding.forward {control}.forwarding.to_port 02:00:00:00:00:02 => 1"]
    classified = f"table_add {control}.classification.targets"
    for index, number in enumerate(METERS):
        values = [byte, most, most, 0, 0, index * level, 4 * index * level, most - index * level]
        values += [36, index * 8, 7]
        commands += [
            f"{classified}4 {control}.classification.use {number}.0.0.0/8 => {number}",
            f"table_add {control}.meters {control}.configure {number} => {' '.join(map(str, values))}",
        ]
    commands += [f"{classified}6 {control}.classification.use fd00::/8 => {METERS[0]}"]
    return Case(SYSTEMS / "meter/fair.p4", tuple(commands), tuple(frames), (0, 1))


METERS = (10, 11, 12, 13)


def monitor() -> Case:
    """The talk of `monitor.stf` until it gives ports roles, once in the sketch alone and once with a place for the flow."""
    talk = (SYSTEMS / "separation/monitor.stf").read_text().partition("\nadd taps")[0]
    packets = [(int(port), bytes.fromhex(data)) for port, data in PACKET.findall(talk)]
    places = ("packets", "bytes", "resent", "rtt_samples", "ended", "stamp_seen")
    cells = [(name, direction) for name in places for direction in (5842, 5843, 7516)]
    commands = ("register_write idle_time 0 60000000", "register_write waiting_time 0 2000000")
    sketch = (("sketched", 0), ("sketch_1", 2921), ("sketch_2", 367), ("offered", 7516))
    return Case(SYSTEMS / "separation/monitor.p4", commands, tuple(packets), (1, 2), (*cells, *sketch))


PACKET = re.compile(r"^packet ([12]) ([0-9a-f ]+)$", re.MULTILINE)
CASES = {"fair": fair, "monitor": monitor}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]()


def test_cases_do_not_hang_on_the_clock(tidegate: Run, tmp_path: Path, case: Case) -> None:
    results = [here(tidegate, case, tmp_path / str(gap), gap) for gap in (MS // 100, MS // 20, MS // 4)]
    assert results[0] == results[1] == results[2]
    # And they tell something: packets are dropped and marked, or registers have counts.
    sent = [frame for _, frame in case.frames]
    out = [frame for frames in results[0].packets.values() for frame in frames]
    assert len(out) < len(sent)
    assert (
        set(out) - set(sent)
        or sum(value > 0 for value in results[0].registers.values()) > len(case.cells) // 2
    )


@contextmanager
def reference_switch(case: Case, folder: Path, program: Path) -> Iterator[Callable[[list[str]], str]]:
    """Run it on captures in a folder: gives its client, that answers commands."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    interfaces = [word for port in case.ports for word in ("-i", f"{port}@p{port}")]
    command = [SWITCH, "--use-files", str(WAIT_S), "--thrift-port", str(number), *interfaces, str(program)]

    def ask(lines: list[str]) -> str:
        text = "".join(f"{line}\n" for line in lines)
        client = [CLIENT, "--thrift-port", str(number)]
        ran = subprocess.run(client, input=text, capture_output=True, text=True, check=True, timeout=60)
        assert not re.search("error|invalid|unknown", ran.stdout, re.IGNORECASE), ran.stdout
        return ran.stdout

    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as running:
        try:
            for _ in range(100):
                assert running.poll() is None, "the reference switch has ended"
                with socket.socket() as client:
                    if client.connect_ex(("127.0.0.1", number)) == 0:
                        break
                time.sleep(0.02)
            yield ask
        finally:
            running.terminate()


def there(case: Case, folder: Path) -> Result:
    """On the reference switch."""
    folder.mkdir()
    case.write(folder, MS // 20)
    program = folder / "program.json"
    compiler = [COMPILER, "--std", "p4-16", "-I", str(PYTHON), "-o", str(program), str(case.program)]
    compiled = subprocess.run(compiler, capture_output=True, text=True, check=False, timeout=600)
    assert compiled.returncode == 0, compiled.stderr
    with reference_switch(case, folder, program) as ask:
        ask(list(case.commands))
        time.sleep(WAIT_S + 1)
        registers = parsed(ask(case.reads())) if case.cells else {}
    packets = {port: packets_of(folder / f"p{port}_out.pcap") for port in case.ports}
    return Result({port: frames for port, frames in packets.items() if frames}, registers)


def packets_of(path: Path) -> list[bytes]:
    with RawPcapReader(str(path)) as packets:
        return [data for data, _ in packets]


def test_the_reference_switch_gives_the_same(tidegate: Run, tmp_path: Path, case: Case) -> None:
    for name in NEEDED:
        if shutil.which(name) is None:
            pytest.skip(f"needs {', '.join(NEEDED)}: the reference switch with its compiler and its client")
    ours = here(tidegate, case, tmp_path / "here", MS // 20)
    # A machine that pauses, or a slot of time that ends between two packets, is no difference: it comes once.
    for attempt in range(3):
        theirs = there(case, tmp_path / f"there{attempt}")
        if theirs == ours:
            return
    assert theirs == ours
