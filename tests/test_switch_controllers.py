"""Controllers of `tidegate switch`."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from namespaces import Place, needs_root, place
from switches import LEARNING, MACS, between, frame, ports, run, until_running, waited_for
from tidegate import p4, p4runtime
from tidegate._core import TidegateError
from tidegate.control import Controller, Digest, PacketIn, SwitchApi
from tidegate.control.files import load
from tidegate.switch.controllers import Controlled
from tidegate.switch.remote import served
from tidegate.switch.running import LiveSwitch

EVERYTHING = Path(p4runtime.__file__).with_name("everything.p4")
METER = Path(__file__).parent.parent / "python/tidegate/systems/meter/meter.p4"
FAIR_METER = METER.with_name("fair.p4")
EXAMPLE = Path(__file__).parent.parent / "examples/meters.py"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1", "makes no controller; give the name `controllers`"),
        ("controllers = []", "makes no controller"),
        ("controllers = [1]", "makes no controller"),
        ("\nraise ValueError('nine')", ":2: ValueError: nine"),
        ("controllers = (", ":1: SyntaxError"),
        ("raise SystemExit(3)", ":1: SystemExit: 3"),
        ("import no_such_module", ":1: ModuleNotFoundError"),
        (
            "from tidegate.systems.meter.controller import *\nMeterController(bucket=Bucket(burst=0))",
            "burst is 0",
        ),
    ],
)
def test_files_that_make_no_controllers(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "mine.py"
    path.write_text(text)
    with pytest.raises(TidegateError) as caught:
        load(path)
    assert str(caught.value).startswith(str(path))
    assert why in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="there is no such file"):
        load(tmp_path / "mine.py")


def test_the_examples_make_controllers() -> None:
    (controller,) = load(EXAMPLE)
    assert controller.period is None
    (controller,) = load(EXAMPLE.with_name("pacing.py"))
    assert controller.period is None


def until(true: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


class Ticks(Controller):
    """Counts its ticks, and may fail at one."""

    period = "10 ms"

    def __init__(self, fails_at: int | None = None) -> None:
        self.ticks: list[int] = []
        self.fails_at = fails_at

    def tick(self, now: int, switch: SwitchApi) -> None:
        self.ticks.append(now)
        if len(self.ticks) == self.fails_at:
            raise ValueError("enough")


@pytest.fixture
def two() -> Iterator[Place]:
    with place(2) as made:
        yield made


@needs_root
def test_controllers_tick_by_the_clock_and_one_that_fails_stops(
    two: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = Ticks(), Ticks(fails_at=3)
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "packet"))
    between(live)
    with live, Controlled(live, [good, bad]):
        until(lambda: len(good.ticks) >= 20)
        two.hosts[0].send(frame(1, 2))
        assert two.hosts[1].receive(1) == [frame(1, 2)]
    assert len(bad.ticks) == 3
    gaps = [after - before for before, after in zip(good.ticks, good.ticks[1:], strict=False)]
    assert min(gaps) > 0
    said = capsys.readouterr().err
    assert re.fullmatch(
        r"error: the controller Ticks failed in tick \(.*test_switch_controllers.py:\d+\): ValueError: enough; "
        "the switch goes on with what it has set last\n",
        said,
    )


class Rude(Controller):
    """Ends the process where it should not, or does not come back."""

    period = "10 ms"

    def __init__(self, where: str) -> None:
        self.where = where
        self.woken = threading.Event()
        self.free = threading.Event()

    def start(self, switch: SwitchApi) -> None:
        if self.where == "start":
            sys.exit(3)
        if self.where == "nowhere in start":
            self.free.wait(60)

    def tick(self, now: int, switch: SwitchApi) -> None:
        self.woken.set()
        if self.where == "tick":
            sys.exit(3)
        self.free.wait(60)


@needs_root
def test_a_controller_that_fails_in_start_is_an_error(two: Place) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "packet"))
    failed = r"the controller Rude failed in start \(.*py:\d+\): SystemExit: 3"
    with live, pytest.raises(TidegateError, match=failed), Controlled(live, [Rude("start")]):
        pass


@needs_root
def test_a_controller_that_leaves_is_told_of(two: Place, capsys: pytest.CaptureFixture[str]) -> None:
    rude, good = Rude("tick"), Ticks()
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "packet"))
    with live, Controlled(live, [rude, good]):
        until(lambda: rude.woken.is_set() and len(good.ticks) >= 3)
    assert "the controller Rude failed in tick" in capsys.readouterr().err


@needs_root
def test_a_controller_that_does_not_come_back_does_not_keep_the_switch(
    two: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    rude = Rude("nowhere")
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "packet"))
    with live, Controlled(live, [rude]):
        until(rude.woken.is_set)
    assert "a controller has not come back; ending without it" in capsys.readouterr().err
    rude.free.set()


@needs_root
def test_a_controller_that_does_not_come_back_from_its_start_does_not_keep_it_either(
    two: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    rude = Rude("nowhere in start")
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "packet"))
    begun = time.monotonic()
    with live, Controlled(live, [rude], lambda: time.monotonic() > begun + 0.5):
        assert time.monotonic() < begun + 10
    assert "a controller has not come back; ending without it" in capsys.readouterr().err
    rude.free.set()


@pytest.mark.live
def test_a_meter_in_a_wire(two: Place, tmp_path: Path) -> None:
    file = tmp_path / "meters.py"
    file.write_text(EXAMPLE.read_text().replace("100 Mbit/s", "8 Mbit/s"))
    for host in two.hosts:
        subprocess.run(
            ["ip", "-n", host.netns, "addr", "add", f"10.0.0.{host.number}/24", "dev", "e0"], check=True
        )
        subprocess.run(["ethtool", "-K", "e0", "tx", "off", "tso", "off"], capture_output=True, check=False)
    process = run(two, str(FAIR_METER), "-i", "1@p1", "-i", "2@p2", "--controller", str(file))
    try:
        until_running(process)
        with subprocess.Popen(
            ["ip", "netns", "exec", two.hosts[1].netns, "python3", "-c", SINK],
            stdout=subprocess.PIPE,
            text=True,
        ) as sink:
            assert sink.stdout is not None
            assert sink.stdout.readline() == "listening\n"
            subprocess.run(
                ["ip", "netns", "exec", two.hosts[0].netns, "python3", "-c", SOURCE], check=True, timeout=30
            )
            came = int(sink.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    # Four seconds at 8 Mbit/s of IP, and at most the burst of 1.05 s more.
    assert 0.7 * 4e6 < came < 4e6 + 1.05e6


SINK = """
import socket
server = socket.create_server(("10.0.0.2", 5000))
print("listening", flush=True)
came, connection = 0, server.accept()[0]
while data := connection.recv(65536):
    came += len(data)
print(came, flush=True)
"""

SOURCE = """
import socket, time
end = time.monotonic() + 4
connection = socket.create_connection(("10.0.0.2", 5000), timeout=10)
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
connection.settimeout(0.1)
while time.monotonic() < end:
    try:
        connection.send(bytes(10000))
    except TimeoutError:
        pass
connection.close()
"""


class Hears(Controller):
    """Learns from digests, and keeps what it gets."""

    def start(self, switch: SwitchApi) -> None:
        self.learned: list[int] = []
        self.packets: list[bytes] = []
        switch.table_set_default("learning", "learn")

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        # A second one may be on its way before the entry is there.
        if digest.fields["from"] not in self.learned:
            switch.table_add("learning", [digest.fields["from"]], "NoAction")
        self.learned.append(digest.fields["from"])

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        self.packets.append(packet.data)


class HearsAndCounts(Hears):
    """As a P4Runtime client, of a switch that has a controller of its own: that sets the tables."""

    def start(self, switch: SwitchApi) -> None:
        self.learned, self.packets = [], []

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        self.learned.append(digest.fields["from"])


@needs_root
def test_digests_and_packets_reach_controllers_and_p4runtime_clients_alike(two: Place) -> None:
    lldp = bytes(12) + b"\x88\xcc" + bytes(46)
    near, far = Hears(), HearsAndCounts()
    live = LiveSwitch(p4.compile(EVERYTHING), ports(two, "packet"), cpu_port=100)

    def send() -> bool:
        two.hosts[0].send(frame(1, 2))
        two.hosts[1].send(lldp)
        return bool(near.learned and near.packets and far.learned and far.packets)

    with (
        live,
        Controlled(live, [near]),
        served(live, "127.0.0.1:0", 1, None) as server,
        p4runtime.connect(server.address) as remote,
        waited_for(live),
    ):
        listening = threading.Thread(
            target=remote.run, args=(far, "20 s", lambda: bool(far.learned and far.packets))
        )
        listening.start()
        until(lambda: server.statistics["streams"] == 1 and hasattr(far, "learned"))
        # The client asks for the digest before it starts its controller.
        until(send)
        listening.join()
    assert near.learned[0] == far.learned[0] == int.from_bytes(MACS[1])
    assert near.packets[0] == far.packets[0]
    assert len(live.api.table_entries("learning")) == 1
