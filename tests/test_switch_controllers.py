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
from switches import LEARNING, between, frame, ports, run, until_running
from tidegate import p4
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.switch.controllers import Controlled, load
from tidegate.switch.running import LiveSwitch

METER = Path(__file__).parent.parent / "python/tidegate/systems/meter/meter.p4"
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


def test_the_example_makes_controllers() -> None:
    (controller,) = load(EXAMPLE)
    assert controller.period == "1 s"


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


@needs_root
def test_a_meter_in_a_wire(two: Place, tmp_path: Path) -> None:
    file = tmp_path / "meters.py"
    file.write_text(EXAMPLE.read_text().replace("100 Mbit/s", "8 Mbit/s"))
    for host in two.hosts:
        subprocess.run(
            ["ip", "-n", host.netns, "addr", "add", f"10.0.0.{host.number}/24", "dev", "e0"], check=True
        )
        subprocess.run(["ethtool", "-K", "e0", "tx", "off", "tso", "off"], capture_output=True, check=False)
    process = run(two, str(METER), "-i", "1@p1", "-i", "2@p2", "--controller", str(file))
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
    # Four seconds at 8 Mbit/s of IP, and at most the account's 0.4 s and the bucket's 128 KiB more.
    assert 0.7 * 4e6 < came < 1.06 * (4e6 + 0.4e6 + 131_072)


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


def test_one_control_plane_at_a_time() -> None:
    words = ["-i", "1@lo", "--controller", str(EXAMPLE), "--grpc-addr", ":0"]
    done = subprocess.run(
        [sys.executable, "-m", "tidegate.cli", "switch", str(METER), *words], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "leave one out" in done.stderr
