"""Controllers on captures: the same objects as in the simulator and on interfaces."""

from __future__ import annotations

import itertools
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from conftest import EXAMPLES, Run, pcap, read_pcap
from namespaces import place
from switches import LEARNING, run, until_running
from test_control import PUNT
from tidegate import TidegateError, p4
from tidegate.control import Controller, Digest, PacketIn, SwitchApi
from tidegate.control.files import load
from tidegate.control.fixed import Unsupported
from tidegate.network import Network
from tidegate.replay import replay

LEARNER = EXAMPLES.parent / "learner.py"
MS = 1_000_000_000
Packets = list[tuple[int, bytes]]


class Recorded:
    """A run of the simulator with the example's controller, and what came in by each of the switch's ports."""

    def __init__(self, folder: Path) -> None:
        net = Network()
        switch = net.switch("s", LEARNING)
        hosts = [net.host(f"h{number}") for number in range(3)]
        for number, host in enumerate(hosts):
            link = net.link(host, switch, rate="100 Mbit/s", delay="1 ms")
            net.capture(link, switch, folder / f"all{number}.pcap")
        net.tcp(hosts[0], hosts[1], size="1 MB", start="3 ms")
        net.udp(hosts[2], hosts[0], rate="10 Mbit/s", start="150 ms", stop="350 ms")
        (controller,) = load(LEARNER)
        net.control(controller)
        self.notes = net.run("500 ms").notes
        self.packets: list[Packets] = []
        for number, host in enumerate(hosts):
            source = bytes(int(part) for part in net.address(host).split("."))
            whole = read_pcap(folder / f"all{number}.pcap")
            self.packets.append([(at, data) for at, data in whole if data[26:30] == source])
        self.files = {number: folder / f"h{number}.pcap" for number in range(3)}
        for number, file in self.files.items():
            file.write_bytes(pcap(self.packets[number], nanoseconds=True))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return Recorded(tmp_path_factory.mktemp("recorded"))


def learned(notes: pl.DataFrame) -> pl.DataFrame:
    """What was learned when, from the first on."""
    found = notes.filter(pl.col("quantity").str.starts_with("learned")).select("time_s", "quantity", "value")
    return found.with_columns((pl.col("time_s") - found["time_s"][0]).round(8))


def test_a_controller_sees_in_a_capture_what_it_saw_in_the_simulator(
    tidegate: Run, tmp_path: Path, recorded: Recorded
) -> None:
    words = [word for port, file in recorded.files.items() for word in ("--in", f"{port}={file}")]
    ran = tidegate("replay", LEARNING, *words, "--out", tmp_path, "--controller", LEARNER, "--json")
    assert (ran.code, ran.err) == (0, "")
    notes = pl.read_parquet(tmp_path / "notes.parquet")
    assert ran.json["notes_file"] == str(tmp_path / "notes.parquet")
    assert ran.json["controller_notes"] == notes.to_dicts()
    assert learned(notes).equals(learned(recorded.notes))
    assert len(learned(notes)) == 3
    ticks = notes.filter(pl.col("quantity") == "addresses")
    # The first packet is at 4 ms of the simulator's time, so that a tick is 4 ms later here; the last is at 0.35 s.
    assert ticks["time_s"].to_list() == [0.1, 0.2, 0.3]
    assert ticks["value"].to_list() == [2, 3, 3]
    assert recorded.notes.filter(pl.col("quantity") == "addresses")["value"].to_list()[:3] == [2, 3, 3]
    # Only the first frame of each side went to all ports.
    assert len(read_pcap(tmp_path / "port2.pcap")) == 1


METRICS = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1]).read().decode())
"""


@pytest.mark.live
def test_and_on_interfaces(recorded: Recorded) -> None:
    """The capture's first frames, in their order, through `tidegate switch`."""
    frames = sorted((at, port, data) for port in (0, 1) for at, data in recorded.packets[port][:50])
    with place(2) as two:
        process = run(
            two, str(LEARNING), "-i", "0@p1", "-i", "1@p2", "--controller", str(LEARNER),
            "--metrics-addr", "127.0.0.1:0", "--mode", "packet",
        )  # fmt: skip
        try:
            said = until_running(process)
            (address,) = (line.split()[-1] for line in said.splitlines() if line.startswith("metrics at "))
            for _, port, data in frames:
                two.hosts[port].send(data)
                time.sleep(0.002)
            time.sleep(0.3)
            ask = ["ip", "netns", "exec", two.name, sys.executable, "-c", METRICS, address]
            metrics = subprocess.run(ask, capture_output=True, text=True, timeout=30, check=True).stdout
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=20)
    noted = dict(re.findall(r'tidegate_note{quantity="(\w+)"} ([\d.]+)', metrics))
    in_simulator = learned(recorded.notes).filter(pl.col("value") < 2)
    assert {name: float(value) for name, value in noted.items()} == {
        "addresses": 2.0,
        **dict(zip(in_simulator["quantity"], in_simulator["value"], strict=True)),
    }


@pytest.fixture(scope="module")
def punt(tmp_path_factory: pytest.TempPathFactory) -> p4.Program:
    path = tmp_path_factory.mktemp("punt") / "punt.p4"
    path.write_text(PUNT)
    return p4.compile(path)


def punted(number: int) -> bytes:
    return bytes(12) + b"\x12\x34" + bytes([number]) + bytes(45)


def capture(folder: Path, *times_ms: float) -> Path:
    """Packets for the controller at times."""
    file = folder / "in.pcap"
    start = 1_700_000_000 * 10**9
    file.write_bytes(
        pcap([(start + int(at * 1e6), punted(n)) for n, at in enumerate(times_ms)], nanoseconds=True)
    )
    return file


class Logs(Controller):
    """Writes down what it is called for, and sends packets back."""

    period = "10 ms"

    def start(self, switch: SwitchApi) -> None:
        self.log: list[tuple[float, str]] = [(switch.now / MS, "start")]
        self.packets: list[PacketIn] = []

    def tick(self, now: int, switch: SwitchApi) -> None:
        assert now == switch.now
        self.log.append((now / MS, "tick"))
        switch.note("seen", int(switch.register_read("seen", 0, 1)[0]))

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        assert now == switch.now == packet.at
        self.log.append((now / MS, "packet"))
        self.packets.append(packet)
        switch.packet_out(packet.data)


def test_ticks_and_packets_come_at_their_times(punt: p4.Program, tmp_path: Path) -> None:
    """A packet at a tick's time comes before it; there are no ticks after the last packet."""
    controller = Logs()
    file = capture(tmp_path, 0, 3, 3, 10, 34.5)
    done = replay(punt, {0: file}, tmp_path / "out", controllers=[controller], cpu_port=100)
    assert controller.log == [
        (0, "start"), (0, "packet"), (3, "packet"), (3, "packet"), (10, "packet"), (10, "tick"), (20, "tick"),
        (30, "tick"), (34.5, "packet"),
    ]  # fmt: skip
    assert done.notes["time_s"].to_list() == [0.01, 0.02, 0.03]
    # The controller's packets do not pass the register.
    assert done.notes["value"].to_list() == [4, 4, 4]
    assert [packet.data for packet in controller.packets] == [punted(n) for n in range(5)]
    start = 1_700_000_000 * 10**9
    assert read_pcap(tmp_path / "out" / "port1.pcap") == [
        (start + int(at * 1e6), punted(n)) for n, at in enumerate((0, 3, 3, 10, 34.5))
    ]
    assert (done.answer["packets_to_controller"], done.answer["packets_from_controller"]) == (5, 5)
    assert [entry["port"] for entry in done.answer["outputs"]] == [1]


def test_a_controller_hears_of_each_digest_before_the_next_packet(tmp_path: Path) -> None:
    """What it writes holds for the packet after."""

    class Learns(Controller):
        def start(self, switch: SwitchApi) -> None:
            self.heard: list[int] = []

        def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
            self.heard.append(now)
            switch.table_add("source", [digest.fields["src"]], "NoAction")

    learner = Learns()
    file = tmp_path / "in.pcap"
    frames = [bytes(6) + bytes([2, 0, 0, 0, 0, n]) + b"\x88\xb5" + bytes(46) for n in (1, 1, 2, 1, 2)]
    file.write_bytes(pcap([(10**9 + n, data) for n, data in enumerate(frames)], nanoseconds=True))
    replay(LEARNING, [(0, file)], tmp_path / "out", controllers=[learner])
    assert learner.heard == [0, 2000]


def test_it_is_the_same_each_time(punt: p4.Program, tmp_path: Path) -> None:
    file = capture(tmp_path, *itertools.accumulate(n % 7 * 0.37 for n in range(200)))
    answers = []
    for folder in ("a", "b"):
        done = replay(punt, {0: file}, tmp_path / folder, controllers=[Logs()], cpu_port=100)
        answers.append((done.notes.to_dicts(), (tmp_path / folder / "port1.pcap").read_bytes()))
    assert answers[0] == answers[1]
    assert len(answers[0][0]) > 10


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda s: s.port_read(0), "ports and queues"),
        (lambda s: s.queue_read(0), "ports and queues"),
        (lambda s: s.queue_write(0, 0, packets=1), "ports and queues"),
        (lambda s: s.generator_set(1, port=0, packet=b"", period="1 ms"), "packet generators"),
        (lambda s: s.generator_period(1, "1 ms"), "packet generators"),
        (lambda s: s.generator_stop(1), "packet generators"),
        (lambda s: s.statistics, "statistics"),
    ],
)
def test_what_a_replay_lacks_is_refused(punt: p4.Program, tmp_path: Path, call: object, what: str) -> None:
    said: list[str] = []

    class Asks(Controller):
        def start(self, switch: SwitchApi) -> None:
            with pytest.raises(Unsupported) as caught:
                call(switch)  # type: ignore[operator]
            said.append(str(caught.value))
            with pytest.raises(TidegateError, match="give it a cpu_port"):
                switch.packet_out(b"x")
            assert switch.drops == {}
            assert switch.ports == ("in",)

    replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "out", controllers=[Asks()])
    assert said == [
        f"switch replays captures; run the controller in the simulator or by `tidegate switch` for {what}"
    ]


def test_an_error_of_a_controller_ends_the_replay(punt: p4.Program, tmp_path: Path) -> None:
    class Fails(Controller):
        period = "1 ms"

        def tick(self, now: int, switch: SwitchApi) -> None:
            switch.table_delete("routes", 7)

    with pytest.raises(TidegateError, match=r"the controller Fails failed in tick \(.*py:\d+\): .*no entry"):
        replay(punt, {0: capture(tmp_path, 0, 5)}, tmp_path / "out", controllers=[Fails()])
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--controller", "none.py"], "none.py: there is no such file"),
        (["--controller", LEARNER, "--cpu-port", "0"], "port 0 is the controller's"),
    ],
)
def test_what_the_command_refuses(tidegate: Run, tmp_path: Path, words: list[object], message: str) -> None:
    file = capture(tmp_path, 0)
    ran = tidegate("replay", LEARNING, "--in", f"0={file}", "--out", tmp_path / "out", *words)
    assert ran.code == 1
    assert message in ran.err


def test_a_port_of_the_controller_needs_a_controller(tidegate: Run, tmp_path: Path) -> None:
    file = capture(tmp_path, 0)
    ran = tidegate("replay", LEARNING, "--in", f"0={file}", "--out", tmp_path / "out", "--cpu-port", "100")
    assert ran.code == 2
    assert "it is for --controller; give that too" in " ".join(ran.err.split())


def test_whatever_a_controller_raises_is_its_own_failure(punt: p4.Program, tmp_path: Path) -> None:
    class Odd(BaseException):
        pass

    class Raises(Controller):
        def __init__(self, error: BaseException) -> None:
            self.error = error

        def start(self, switch: SwitchApi) -> None:
            raise self.error

    for error in (Odd("x"), GeneratorExit(), SystemExit(3)):
        with pytest.raises(TidegateError, match=r"the controller Raises failed in start \(.*py:\d+\): "):
            replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "out", controllers=[Raises(error)])
    with pytest.raises(KeyboardInterrupt):
        replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "out", controllers=[Raises(KeyboardInterrupt())])

    class Stands(Controller):
        period = "1 ms"

    stands = Stands()
    stands.tick = lambda now, switch: 1 // 0  # type: ignore[method-assign]
    with pytest.raises(TidegateError, match=r"failed in tick \(.*test_replay_controllers.py:\d+\): ZeroDiv"):
        replay(punt, {0: capture(tmp_path, 0, 5)}, tmp_path / "out", controllers=[stands])
    file = tmp_path / "odd.py"
    file.write_text("class Odd(BaseException): ...\nraise Odd('y')\n")
    with pytest.raises(TidegateError, match=r"odd.py:2: Odd: y"):
        load(file)


def test_what_is_wrong_with_a_controller_is_one_line_with_its_name(punt: p4.Program, tmp_path: Path) -> None:
    class Odd(Controller):
        period = "0.5"

        def start(self, switch: SwitchApi) -> None:
            raise ValueError("one\ntwo")

    with pytest.raises(
        TidegateError, match=r"^the controller Odd failed in start \(.*\): ValueError: one two$"
    ):
        replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "out", controllers=[Odd()])
    Odd.start = Controller.start  # type: ignore[method-assign]
    with pytest.raises(TidegateError, match=r"^the period of the controller Odd: `0.5` is not a time"):
        replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "out", controllers=[Odd()])


def test_a_controller_for_another_clock_is_refused(punt: p4.Program, tmp_path: Path) -> None:
    class Counts(Controller):
        clock = "1 ns"

    with pytest.raises(
        TidegateError, match=r"has the clock 1 us, and the program of its controller counts in 1 ns"
    ):
        replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "out", controllers=[Counts()])
    assert not (tmp_path / "out").exists()


def test_captures_get_their_names_only_with_the_notes(punt: p4.Program, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "notes.parquet").mkdir(parents=True)
    with pytest.raises(TidegateError, match=r"notes.parquet: cannot be written: it is a directory"):
        replay(punt, {0: capture(tmp_path, 0)}, out, controllers=[Logs()], cpu_port=100)
    assert list(out.iterdir()) == [out / "notes.parquet"]

    class Odd(Controller):
        def start(self, switch: SwitchApi) -> None:
            switch.note("x\ud800", 1)

    with pytest.raises(TidegateError, match=r"is not the name of a quantity"):
        replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "new", controllers=[Odd()])
    assert not (tmp_path / "new").exists()


def test_a_capture_of_months_is_replayed_to_its_end(punt: p4.Program, tmp_path: Path) -> None:
    days = [0, 100, 200]
    file = tmp_path / "long.pcap"
    file.write_bytes(pcap([(day * 86_400 * 10**9, bytes(64)) for day in days]))
    for controllers in ([], [Controller()]):
        done = replay(punt, {0: file}, tmp_path / "out", controllers=controllers)
        assert done.answer["packets_in"] == 3


def test_what_a_switch_does_is_whole(punt: p4.Program, tmp_path: Path) -> None:
    """Groups do not take each other's nodes, modes are those that there are, and a reset leaves no group."""
    said: list[object] = []

    class Sets(Controller):
        def start(self, switch: SwitchApi) -> None:
            for line in ("mc_mgrp_create 1", "mc_mgrp_create 2", "mc_node_create 0 7"):
                switch.command(line)
            for group in (1, 2):
                switch.command(f"mc_node_associate {group} 0")
            switch.multicast_set(1, [5])
            said.append(switch.command("mc_dump"))
            switch.multicast_delete(1)
            said.append(switch.command("mc_dump"))
            switch.command("reset_state")
            said.append(switch.command("mc_dump"))
            with pytest.raises(TidegateError, match="'All' is not a mode of a batch: give each or all"):
                switch.batch([], mode="All")  # type: ignore[arg-type]

    replay(punt, {0: capture(tmp_path, 0)}, tmp_path / "out", controllers=[Sets()])
    both, one, none = said
    assert both == "group 1: node 1 rid 0 ports [5]\ngroup 2: node 0 rid 0 ports [7]"
    assert one == "group 2: node 0 rid 0 ports [7]"
    assert none == ""


def test_what_a_command_looks_at_may_be_gone_at_the_end(tidegate: Run, tmp_path: Path) -> None:
    commands = tmp_path / "commands.txt"
    commands.write_text(
        "mirroring_add 5 1\nmirroring_get 5\nop mirror_read start=5 count=1\nmirroring_delete 5\n"
    )
    file = capture(tmp_path, 0)
    words = ("--in", f"0={file}", "--out", tmp_path / "out", "--commands", commands)
    ran = tidegate("replay", LEARNING, *words, "--json")
    assert ran.code == 0
    first, second = ran.json["readings"]
    assert [first] == [
        {
            "line": 2,
            "command": "mirroring_get 5",
            "before": "session 5: port 1",
            "after": "there is no mirror session 5",
        }
    ]
    assert json.loads(second["before"])[0]["session"] == 5
    assert json.loads(second["after"]) == []


def test_notes_of_an_earlier_run_are_told_of(punt: p4.Program, tmp_path: Path) -> None:
    file = capture(tmp_path, 0, 50)
    replay(punt, {0: file}, tmp_path, controllers=[Logs()], cpu_port=100)
    done = replay(punt, {0: file}, tmp_path)
    assert any("notes.parquet: is from an earlier run" in note for note in done.answer["notes"])
    assert done.answer["controller_notes"] == []


MANY = """
#include <core.p4>
#include <v1model.p4>
header H_t { bit<32> key; bit<32> rest; }
struct H { H_t h; } struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action to(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    table t { key = { h.h.key: exact; } actions = { to; drop; } size = 100000; default_action = drop(); }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control C(inout H h, inout M m) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


ENTRIES = 70_000


class Removes(Controller):
    """So many entries that captures are looked ahead in; the last goes at each tick."""

    period = "1950 us"

    def start(self, switch: SwitchApi) -> None:
        self.handles = [switch.table_add("t", [number], "to", [1 + number % 2]) for number in range(ENTRIES)]

    def tick(self, now: int, switch: SwitchApi) -> None:
        switch.table_delete("t", self.handles.pop())


def test_packets_that_are_foreseen_wait_for_their_time(tmp_path: Path) -> None:
    """Memory is asked for by what a table has before a packet comes; what a controller changes holds from its time on."""
    (tmp_path / "many.p4").write_text(MANY)
    # Sixteen packets of each key, in 2 ms; no packet comes at a tick.
    places = [(number * 125_003, number // 16) for number in range(400)]
    frames = [(at, (ENTRIES - 1 - place).to_bytes(4) + bytes(4)) for at, place in places]
    for port in (0, 1):
        (tmp_path / f"{port}.pcap").write_bytes(pcap(frames[port::2], nanoseconds=True))
    inputs = {port: tmp_path / f"{port}.pcap" for port in (0, 1)}
    replay(tmp_path / "many.p4", inputs, out=tmp_path / "out", controllers=[Removes()])
    left = [frame for frame, (at, place) in zip(frames, places, strict=True) if at < 1_950_000 * (place + 1)]
    assert 250 < len(left) < 350
    out = [packet for port in (1, 2) for packet in read_pcap(tmp_path / "out" / f"port{port}.pcap")]
    assert sorted(out) == left
